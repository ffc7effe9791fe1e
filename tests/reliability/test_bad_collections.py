"""Collections and stores that are odd, one test per row of the table in docs/bad_inputs.rst."""

from __future__ import annotations

import os

import numpy as np
import pytest

import kreinlearn as kl
from kreinlearn.data.tiles import TILE

N = 5 * TILE + 300  # more than are held
X = np.random.default_rng(0).normal(size=(N, 3))
Y = np.sin(2 * X[:, 0]) + X[:, 1]
GIVEN = {"kernel": "delta_gauss", "landmarks": 15, "random_state": 3}


@pytest.fixture(scope="module")
def wanted():
    return kl.KreinRidge(**GIVEN).fit(X, Y).dual_coef_.tobytes()


@pytest.fixture
def da():
    dask, array = pytest.importorskip("dask"), pytest.importorskip("dask.array")
    with dask.config.set(scheduler="threads", num_workers=2):
        yield array


def lazy(da, values, lengths):
    return da.from_array(values, chunks=(lengths, *values.shape[1:]))


def found(rows, targets):
    return kl.KreinRidge(**GIVEN).fit(rows, targets).dual_coef_.tobytes()


def test_bad_input_85_chunks_of_unknown_sizes(da, wanted):
    both = lazy(da, np.column_stack([X, Y]), 3000)
    both = both[both[:, 0] > -1e9]
    assert np.isnan(both.shape[0])
    assert found(both[:, :3], both[:, 3]) == wanted
    model = kl.KreinRidge(**GIVEN).fit(X, Y)
    np.testing.assert_allclose(model.predict(both[:, :3]).compute(), model.predict(X), rtol=1e-12)


def test_bad_input_86_chunks_of_columns(da, wanted):
    rows = da.from_array(X, chunks=(4000, (1, 2)))
    assert rows.numblocks == (3, 2)
    assert found(rows, lazy(da, Y, 5000)) == wanted


def test_bad_input_87_an_empty_chunk(da, wanted):
    lengths = (0, 4000, 0, N - 4000, 0)
    ends = np.cumsum(lengths)
    rows = da.map_blocks(part_of, ends, lengths, chunks=(lengths, (3,)), dtype=X.dtype)
    assert rows.chunks[0] == lengths
    model = kl.KreinRidge(**GIVEN).fit(rows, lazy(da, Y, 3000))
    assert model.dual_coef_.tobytes() == wanted
    assert model.predict(rows).compute().shape == (N,)
    with pytest.raises(ValueError, match="0 sample"):
        kl.KreinRidge(**GIVEN).fit(da.zeros((0, 3)), Y[:0])


def part_of(ends, lengths, block_info=None):
    i = block_info[None]["chunk-location"][0]
    return X[ends[i] - lengths[i] : ends[i]]


def test_bad_input_65_a_second_fit_with_the_same_store(tmp_path):
    pytest.importorskip("zarr")
    path, errors = tmp_path / "store", []

    def kernel(A, B):
        if not errors:
            errors.append(None)
            with pytest.raises(Exception, match=str(os.getpid())) as caught:
                kl.KreinNystroem("delta_gauss", resources=kl.Resources(store=path)).fit(X[:50])
            errors[0] = caught.value
        return np.asarray(A) @ np.asarray(B).T

    model = kl.KreinNystroem(kernel, landmarks=5, resources=kl.Resources(store=path)).fit(X[:50])
    assert model.rank_ == 3
    assert repr(str(path))[1:-1] in str(errors[0])
