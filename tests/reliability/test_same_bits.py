"""Same seed, same machine: the same coefficients, bit for bit, however the rows come and go."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

import kreinlearn as kl
from kreinlearn import Blocks
from kreinlearn.blocks import TILE
from kreinlearn.runs import runs_of

N = 17 * TILE + 77  # more than are held, and no whole number of tiles
M = 25
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
Y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 100.0
W = RNG.random(N) + 0.1
LABELS = np.array(["a", "bb", "c"])[np.digitize(X[:, 0] + 0.3 * X[:, 1], [-0.5, 0.7])]
GIVEN = {"kernel": "delta_gauss", "n_landmarks": M, "random_state": 3}
CHUNKS = [1, 7, 98]
BUDGETS = ["5MB", "7MB", "12MB", "30MB", 10**9]  # all kernel values are 7 MB

MODELS = {
    "ridge": (kl.KreinRidge(**GIVEN), Y, None),
    "weights": (kl.KreinRidge(**GIVEN, core="ls"), Y, W),
    "ill-conditioned": (
        kl.KreinRidge(**GIVEN, kernel_params={"width": 100.0}, lambda_plus=1e-8, lambda_minus=1e-8),
        np.column_stack([Y, X[:, 2]]),
        None,
    ),
    "classifier": (
        kl.KreinRidgeClassifier(**GIVEN, multi_class="ovr", class_weight="balanced"),
        LABELS,
        W,
    ),
    "variance": (kl.KreinVCRidge(**GIVEN), Y, None),
    "map": (kl.KreinNystroem(**GIVEN), None, None),
    "least-squares map": (kl.KreinNystroem(**GIVEN, core="ls"), None, None),
}
FOUND = ("dual_coef_", "intercept_", "coef_", "lambda_plus_", "lambda_minus_", "eigenvalues_")
FOUND += ("landmark_indices_", "landmarks_", "normalization_")


def fitted(name, rows=X, wrap=None, **params):
    """What a fit finds, as bytes; ``wrap`` says how targets and weights come."""
    model, y, w = MODELS[name]
    wrap = wrap or (lambda values: values)
    data = [wrap(values) for values in (y, w) if values is not None]
    model = clone(model).set_params(**params).fit(rows, *data)
    found = {key: np.asarray(getattr(model, key)) for key in FOUND if hasattr(model, key)}
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


def in_blocks(count):
    parts = np.array_split(X, count)
    return Blocks(lambda: iter(parts))


def test_runs_are_of_several_tiles_and_of_one():
    sizes = {-(-(stop - start) // TILE) for start, stop in runs_of(N)}
    assert sizes == {1, 2}
    assert N % TILE


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("n_jobs", [2, 4])
def test_threads_change_no_bit(name, n_jobs, wanted):
    assert fitted(name, n_jobs=n_jobs) == wanted(name)


@pytest.mark.parametrize("name", MODELS)
def test_memory_changes_no_bit(name, wanted):
    for i, budget in enumerate(BUDGETS):
        assert fitted(name, n_jobs=2 - i % 2, memory_budget=budget) == wanted(name)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("count", CHUNKS)
def test_blocks_of_a_source_change_no_bit(name, count, wanted):
    n_jobs = 1 if count == 7 else 3
    assert fitted(name, in_blocks(count), n_jobs=n_jobs, memory_budget="30MB") == wanted(name)


def test_files_change_no_bit(tmp_path, wanted):
    np.save(tmp_path / "X.npy", X)
    for rows in (str(tmp_path / "X.npy"), np.load(tmp_path / "X.npy", mmap_mode="r")):
        assert fitted("ridge", rows, n_jobs=2, memory_budget="30MB") == wanted("ridge")
    assert fitted("ridge", np.asfortranarray(X), n_jobs=2) == wanted("ridge")


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("count", CHUNKS)
def test_dask_changes_no_bit(name, count, wanted):
    dask, da = pytest.importorskip("dask"), pytest.importorskip("dask.array")

    def lazy(values):
        return da.from_array(values, chunks=(-(-N // count), *values.shape[1:]))

    threads = {1: ("sync", None), 7: ("threads", 1), 98: ("threads", 2)}[count]
    with dask.config.set(scheduler=threads[0], num_workers=threads[1]):
        assert fitted(name, lazy(X), lazy) == wanted(name)


def test_predictions_are_those_of_any_part():
    dask, da = pytest.importorskip("dask"), pytest.importorskip("dask.array")
    model = clone(MODELS["ridge"][0]).set_params(n_jobs=1).fit(X, Y)
    wanted = model.predict(X)
    for n_jobs in (2, 4):
        assert model.set_params(n_jobs=n_jobs).predict(X).tobytes() == wanted.tobytes()
    assert model.predict(in_blocks(98)).tobytes() == wanted.tobytes()
    with dask.config.set(scheduler="threads", num_workers=2):
        found = model.predict(da.from_array(X, chunks=(TILE, 3))).compute()
    assert found.tobytes() == wanted.tobytes()
