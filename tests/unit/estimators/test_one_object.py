"""A request for one object: few steps, and the same values whoever asks, and how many at once."""

from __future__ import annotations

import pickle
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from kreinlearn import KreinClassifier, KreinRidge, KreinSVC, Resources, load
from kreinlearn.sums.parallel import _blas

# What takes longer than a kernel value and depends on no object: files of the system, the tags of
# scikit-learn, a look for data frames, lists of all libraries, limits of their threads, and pools.
# Requests of several threads would wait for one another there.
NOT_ASKED = {
    "free_memory", "cpu_count", "get_tags", "is_into_dataframe", "info",
    "validate_parameter_constraints", "check_array", "_limited", "_set_threads", "_pool", "submit",
}  # fmt: skip
CALLS = 300  # in a request for one object; there were once 500 to 700


def words(n):
    rng = np.random.default_rng(0)
    return ["".join(rng.choice(list("abcdef"), rng.integers(3, 9))) for _ in range(n)]


def vectors(n):
    return np.random.default_rng(1).normal(size=(n, 4))


def string_model():
    X = words(120)
    return KreinRidge("levenshtein", landmarks=40, random_state=0).fit(X, list(map(len, X))), X


def vector_model():
    X = vectors(200)
    return KreinSVC("gaussian", landmarks=30, random_state=0).fit(X, X[:, 0] > 0), X


def front_model():
    X = words(80)
    y = [len(x) > 5 for x in X]
    return KreinClassifier("levenshtein", landmarks=30, random_state=0).fit(X, y), X


MODELS = {"strings": string_model, "vectors": vector_model, "front": front_model}


@pytest.fixture(scope="module", params=MODELS)
def fitted(request):
    return MODELS[request.param]()


def as_it_is(model, tmp_path):
    return model


def pickled(model, tmp_path):
    return pickle.loads(pickle.dumps(model))


def from_file(model, tmp_path):
    model.save(tmp_path / "model.krein")
    return load(tmp_path / "model.krein")


def calls_of(request):
    """The functions in Python that a request calls: their names, and the number of calls."""
    names, calls = set(), 0

    def count(frame, event, argument):
        nonlocal calls
        if event == "call":
            names.add(frame.f_code.co_name)
            calls += 1

    sys.setprofile(count)
    try:
        request()
    finally:
        sys.setprofile(None)
    return names, calls


@pytest.mark.parametrize("way", [as_it_is, pickled, from_file])
def test_a_request_asks_for_nothing_that_it_does_not_need(fitted, way, tmp_path):
    model, X = way(fitted[0], tmp_path), fitted[1]
    model.predict(X[:1])
    names, calls = calls_of(lambda: model.predict(X[:1]))
    assert names & NOT_ASKED == set()
    assert 20 < calls <= CALLS


def test_large_requests_ask_for_what_they_need():
    """The counter sees what it looks for."""
    model, X = vector_model()
    many = np.resize(X, (2**17 + 1, X.shape[1]))  # their scores take more than a megabyte
    names, _ = calls_of(lambda: model.predict(many))
    assert {"free_memory", "_limited"} <= names
    names, _ = calls_of(lambda: model.predict(X[:1].tolist()))
    assert "check_array" in names


@pytest.mark.parametrize("way", [as_it_is, pickled, from_file])
@pytest.mark.parametrize("workers", [2, 4])
def test_requests_at_once_get_the_values_of_requests_in_turn(fitted, way, workers, tmp_path):
    model, X = way(fitted[0], tmp_path), fitted[1]
    method = getattr(model, "decision_function", model.predict)
    requests, before = [X[i : i + 1] for i in range(60)] * 3, [lib.num_threads for lib in _blas()]
    alone = [method(x) for x in requests]
    with ThreadPoolExecutor(workers) as pool:
        together = list(pool.map(method, requests))
    np.testing.assert_array_equal(together, alone)
    assert [lib.num_threads for lib in _blas()] == before


def test_a_budget_is_compared_with_any_result():
    model, X = vector_model()
    model.set_params(resources=Resources(memory_budget=100))
    with pytest.raises(MemoryError, match="a result of 13 x 1 numbers needs 104 B"):
        model.predict(X[:13])
    assert model.predict(X[:12]).shape == (12,)


def test_resources_are_checked_after_a_fit():
    model, X = vector_model()
    model.set_params(resources=Resources(memory_budget=-1))
    with pytest.raises(ValueError, match="'memory_budget' parameter of Resources"):
        model.predict(X[:1])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_finite_numbers_are_required_of_one_object(bad):
    model, X = vector_model()
    x = X[:1].copy()
    x[0, 2] = bad
    with pytest.raises(ValueError, match=r"Input X contains (NaN|infinity)"):
        model.predict(x)


def test_numbers_whose_sum_overflows_are_finite():
    """They are passed on; it is the kernel that finds them too large."""
    model, X = vector_model()
    with pytest.raises(ValueError, match="too large for float64"):
        model.predict(np.full_like(X[:1], 1e308))


@pytest.mark.parametrize("shape", [(4,), (0, 4), (1, 3), (1, 4, 1)])
def test_other_shapes_are_refused(shape):
    model, _ = vector_model()
    with pytest.raises(ValueError, match=r"Expected 2D array|0 sample|3 features|dim 3"):
        model.predict(np.zeros(shape))
