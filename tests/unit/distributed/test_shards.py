"""A store of a dask collection: each span of rows has a shard, and nothing is evaluated twice."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

import kreinlearn as kl
from kreinlearn import Landmarks, Resources
from kreinlearn.data.tiles import TILE
from kreinlearn.pairs.store.folder import Folder
from tests.oracles import products
from tests.unit.distributed.lazy import N, W, X, Y, array, dask

pytest.importorskip("zarr")

M = 10
# pairs at most by which a user's function is looked at before anything is trusted: 8 of each shard,
# 8 of what the client holds, and those of a probe before each fit
PROBED = 150


class Counted:
    """tanh(x z - 1), which counts its values, and may fail."""

    def __init__(self):
        self.count, self.most = 0, np.inf

    def kernel(self):
        counted = self

        def tanh(A, B):
            if counted.count > counted.most:
                raise RuntimeError("the power is gone")
            counted.count += len(A) * len(B)
            return np.tanh(products(np.asarray(A), np.asarray(B)) - 1.0)

        return tanh


@pytest.fixture
def counted():
    return Counted()


def model_with(counted, store, kind=kl.KreinRidge, landmarks=M, **more):
    more = {"lambda_plus": 1e-3, "lambda_minus": 1e-3} | more
    return kind(
        counted.kernel(), landmarks=Landmarks(landmarks, "uniform"), random_state=0,
        resources=Resources(store=store), **more,
    )  # fmt: skip


def test_a_second_fit_evaluates_nothing_and_has_the_same_bits(tmp_path, counted):
    wanted = model_with(counted, None).fit(X, Y, W).dual_coef_.tobytes()
    model = model_with(counted, tmp_path / "store")
    counted.count = 0
    assert model.fit(array(X), array(Y), array(W)).dual_coef_.tobytes() == wanted
    assert counted.count >= (N - M) * M
    counted.count = 0
    model.fit(array(X, "uneven"), array(Y), array(W))  # chunks do not matter
    assert model.dual_coef_.tobytes() == wanted
    assert counted.count <= PROBED
    names = {path.name for path in (tmp_path / "store").iterdir()}
    assert {"here", "rows-0-2048", f"rows-{5 * TILE}-{N}"} < names


def test_other_learners_and_more_landmarks_go_on_from_it(tmp_path, counted):
    model_with(counted, tmp_path / "store").fit(array(X), array(Y))
    counted.count, labels = 0, np.where(Y > 100.5, "up", "down")
    machine = model_with(counted, tmp_path / "store", kl.KreinSVC).fit(array(X), array(labels))
    assert counted.count <= PROBED
    wanted = model_with(counted, None, kl.KreinSVC).fit(X, labels).dual_coef_
    np.testing.assert_allclose(machine.dual_coef_, wanted, rtol=0, atol=1e-9 * abs(wanted).max())
    counted.count = 0
    more = model_with(counted, tmp_path / "store", landmarks=M + 5).fit(array(X), array(Y))
    assert 5 * (N - M - 5) <= counted.count <= 5 * N + 2 * PROBED  # of the new columns alone
    wanted = model_with(counted, None, landmarks=M + 5).fit(X, Y).dual_coef_
    np.testing.assert_array_equal(more.dual_coef_, wanted)


def test_a_fit_that_fails_goes_on_from_what_is_there(tmp_path, counted):
    wanted = model_with(counted, None).fit(X, Y).dual_coef_
    counted.count, counted.most = 0, 3 * TILE * M
    model = model_with(counted, tmp_path / "store")
    with dask.config.set(scheduler="sync"), pytest.raises(RuntimeError, match="power is gone"):
        model.fit(array(X), array(Y))
    before, counted.count, counted.most = counted.count, 0, np.inf
    np.testing.assert_array_equal(model.fit(array(X), array(Y)).dual_coef_, wanted)
    # what was finished is not lost, but for the call that failed
    assert before + counted.count <= (N + TILE) * M + 2 * PROBED


def test_a_shard_that_is_in_use_is_done_without(tmp_path, counted):
    wanted = model_with(counted, None).fit(X, Y).dual_coef_
    held = Folder(tmp_path / "store" / f"rows-{TILE}-{2 * TILE}")
    try:
        model = model_with(counted, tmp_path / "store").fit(array(X), array(Y))
    finally:
        held.close()
    np.testing.assert_array_equal(model.dual_coef_, wanted)


def test_values_of_other_rows_or_kernels_are_refused(tmp_path, counted):
    model_with(counted, tmp_path / "store").fit(array(X), array(Y))
    other = X.copy()
    other[3000] += 1.0
    with pytest.raises(ValueError, match=r"rows-2048-4096.* differ from those in the store"):
        model_with(counted, tmp_path / "store").fit(array(other), array(Y))
    with pytest.raises(ValueError, match="another kernel"):
        model_with(counted, tmp_path / "store").set_params(kernel="gaussian").fit(
            array(X), array(Y)
        )


@pytest.mark.parametrize("left", ["here", "rows-*", "*"])
def test_a_function_whose_values_have_changed_is_refused(tmp_path, left):
    """As in one process: by landmarks on the client, and by rows and landmarks on workers."""
    factor = {"is": 1.0}

    def scaled(A, B):
        return factor["is"] * np.tanh(np.asarray(A) @ np.asarray(B).T - 1.0)

    model = kl.KreinRidge(
        scaled, landmarks=Landmarks(M, "uniform"), random_state=0, lambda_plus=1e-3,
        lambda_minus=1e-3, resources=Resources(store=tmp_path / "store"),
    ).fit(array(X), array(Y))  # fmt: skip
    kept = set((tmp_path / "store").glob(left))
    for folder in set((tmp_path / "store").iterdir()) - kept:
        shutil.rmtree(folder)
    factor["is"] = 2.0
    with pytest.raises(ValueError, match=r"the kernel gives \S+ now, and \S+ is stored; it is not"):
        model.fit(array(X), array(Y))


def test_a_store_of_one_process_has_another_form(tmp_path, counted):
    model_with(counted, tmp_path / "one").fit(X[:300], Y[:300])
    with pytest.raises(ValueError, match="of another form; pass another path"):
        model_with(counted, tmp_path / "one").fit(array(X), array(Y))
    model_with(counted, tmp_path / "many").fit(array(X), array(Y))
    with pytest.raises(ValueError, match="it is no store"):
        model_with(counted, tmp_path / "many").fit(X[:300], Y[:300])
