"""Same seed, same machine: the same coefficients, bit for bit, however the rows come and go."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

import kreinlearn as kl
from kreinlearn import Blocks, Landmarks, Resources
from kreinlearn.data.tiles import TILE
from kreinlearn.sums.parallel import spans_of

N = 17 * TILE + 77  # more than a pool, and no whole number of tiles
M = 25
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
Y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 100.0
W = RNG.random(N) + 0.1
LABELS = np.array(["a", "bb", "c"])[np.digitize(X[:, 0] + 0.3 * X[:, 1], [-0.5, 0.7])]
GIVEN = {"kernel": "delta_gauss", "landmarks": M, "random_state": 3}
LEAST_SQUARES = {**GIVEN, "landmarks": Landmarks(M, core="ls")}
CHUNKS = [1, 7, 98]
BUDGETS = ["5MB", "7MB", "12MB", "30MB", 10**9]  # all kernel values are 7 MB

MODELS = {
    "ridge": (kl.KreinRidge(**GIVEN), Y, None),
    "two folds": (kl.KreinRidge(**GIVEN, cv=2), Y, None),  # of which one leads the search
    "weights": (kl.KreinRidge(**LEAST_SQUARES), Y, W),
    "ill-conditioned": (
        kl.KreinRidge(**GIVEN, kernel_params={"width": 100.0}, lambda_plus=1e-8, lambda_minus=1e-8),
        np.column_stack([Y, X[:, 2]]),
        None,
    ),
    "classifier": (
        kl.KreinRidgeClassifier(**GIVEN, class_weight="balanced"),
        LABELS,
        W,
    ),
    "front door": (kl.KreinClassifier(**GIVEN), LABELS, W),
    "front door of numbers": (kl.KreinRegressor(**GIVEN), Y, None),
    "variance": (kl.KreinVCRidge(**GIVEN), Y, None),
    "map": (kl.KreinNystroem(**GIVEN), None, None),
    "least-squares map": (kl.KreinNystroem(**LEAST_SQUARES), None, None),
}
FEW = 4 * TILE + 900  # rows of a machine, which takes many passes; still more than a pool
SMALLER = {**GIVEN, "landmarks": 20}
FIXED = {"lambda_plus": 1e-4, "lambda_minus": 1e-3}
MACHINES = {
    "machine": (kl.KreinSVC(**SMALLER), LABELS[:FEW] == "bb", None),
    "machine of three classes": (kl.KreinSVC(**SMALLER, **FIXED), LABELS[:FEW], W[:FEW]),
}
IN_PROCESS = {**MODELS, **MACHINES}
FOUND = ("dual_coef_", "intercept_", "coef_", "lambda_plus_", "lambda_minus_", "eigenvalues_")
FOUND += ("landmark_indices_", "landmarks_", "normalization_", "expected_error_", "part_weights_")


def rows_for(name):
    y = IN_PROCESS[name][1]
    return X if y is None else X[: len(y)]


def numbers(values):
    return np.asarray([*values.values()] if isinstance(values, dict) else values)


def fitted(name, rows=None, wrap=None, memory_budget=None, **params):
    """What a fit finds, as bytes; ``wrap`` says how targets and weights come."""
    model, y, w = IN_PROCESS[name]
    wrap = wrap or (lambda values: values)
    data = [wrap(values) for values in (y, w) if values is not None]
    rows = rows_for(name) if rows is None else rows
    resources = Resources(memory_budget=memory_budget)
    model = clone(model).set_params(resources=resources, **params).fit(rows, *data)
    found = {key: numbers(getattr(model, key)) for key in FOUND if hasattr(model, key)}
    assert len(found) >= 3
    assert all(values.dtype in (np.float64, np.intp) for values in found.values())
    return {key: values.tobytes() for key, values in found.items()}


@pytest.fixture(scope="module")
def wanted():
    """By one thread, from an array."""
    found = {}

    def of(name):
        if name not in found:
            found[name] = fitted(name, n_jobs=1)
        return found[name]

    return of


def in_blocks(count, rows=X):
    parts = np.array_split(rows, count)
    return Blocks(lambda: iter(parts))


def test_spans_are_of_several_tiles_and_of_one():
    sizes = {-(-(stop - start) // TILE) for start, stop in spans_of(N)}
    assert sizes == {1, 2}
    assert N % TILE


@pytest.mark.parametrize("name", IN_PROCESS)
@pytest.mark.parametrize("n_jobs", [2, 4])
def test_threads_change_no_bit(name, n_jobs, wanted):
    assert fitted(name, n_jobs=n_jobs) == wanted(name)


@pytest.mark.parametrize("name", IN_PROCESS)
def test_memory_changes_no_bit(name, wanted):
    for i, budget in enumerate(BUDGETS):
        assert fitted(name, n_jobs=2 - i % 2, memory_budget=budget) == wanted(name)


@pytest.mark.parametrize("name", IN_PROCESS)
@pytest.mark.parametrize("count", CHUNKS)
def test_blocks_of_a_source_change_no_bit(name, count, wanted):
    n_jobs, rows = 1 if count == 7 else 3, in_blocks(count, rows_for(name))
    assert fitted(name, rows, n_jobs=n_jobs, memory_budget="30MB") == wanted(name)


def test_files_change_no_bit(tmp_path, wanted):
    np.save(tmp_path / "X.npy", X)
    for rows in (str(tmp_path / "X.npy"), np.load(tmp_path / "X.npy", mmap_mode="r")):
        assert fitted("ridge", rows, n_jobs=2, memory_budget="30MB") == wanted("ridge")
    assert fitted("ridge", np.asfortranarray(X), n_jobs=2) == wanted("ridge")


def with_gaps(values):
    """The same values in every second place of the memory, columns after each other."""
    there = np.asarray(values)
    twice = np.empty((2 * len(there), *there.shape[1:]), there.dtype, order="F")
    twice[::2], twice[1::2] = there, there[::-1]
    return twice[::2]


@pytest.mark.parametrize("name", IN_PROCESS)
def test_the_layout_of_targets_and_weights_changes_no_bit(name, wanted):
    """As a column of a table is laid out; some BLAS round sums over it differently."""
    assert fitted(name, wrap=with_gaps, n_jobs=1) == wanted(name)


def on_workers(name, count):
    """Of dask collections in so many chunks, by one thread or by two."""
    dask, da = pytest.importorskip("dask"), pytest.importorskip("dask.array")

    def lazy(values):
        return da.from_array(values, chunks=(-(-len(values) // count), *values.shape[1:]))

    threads = {1: ("sync", None), 7: ("threads", 1), 98: ("threads", 2)}[count]
    with dask.config.set(scheduler=threads[0], num_workers=threads[1]):
        return fitted(name, lazy(rows_for(name)), lazy)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("count", CHUNKS)
def test_dask_changes_no_bit(name, count, wanted):
    assert on_workers(name, count) == wanted(name)


@pytest.mark.parametrize("name", MACHINES)
def test_chunks_change_no_bit_of_a_machine_on_workers(name, wanted):
    """Steps are summed in another order than in this process: equal to 1e-10."""
    found = [on_workers(name, count) for count in CHUNKS]
    assert found[0] == found[1] == found[2]
    for key in ("dual_coef_", "intercept_", "lambda_plus_"):
        there, here = (np.frombuffer(values[key]) for values in (found[0], wanted(name)))
        np.testing.assert_allclose(there, here, rtol=0, atol=1e-10 * np.abs(here).max())


@pytest.mark.parametrize(("name", "way"), [("ridge", "predict"), ("front door", "predict_proba")])
def test_predictions_are_those_of_any_part(name, way):
    dask, da = pytest.importorskip("dask"), pytest.importorskip("dask.array")
    model = clone(MODELS[name][0]).set_params(n_jobs=1).fit(X, MODELS[name][1])
    predict = getattr(model, way)
    wanted = predict(X)
    for n_jobs in (2, 4):
        model.set_params(n_jobs=n_jobs)
        assert predict(X).tobytes() == wanted.tobytes()
    assert predict(in_blocks(98)).tobytes() == wanted.tobytes()
    with dask.config.set(scheduler="threads", num_workers=2):
        found = predict(da.from_array(X, chunks=(TILE, 3))).compute()
    assert found.tobytes() == wanted.tobytes()
