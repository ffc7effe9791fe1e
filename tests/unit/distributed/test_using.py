"""Fitted estimators on dask collections: lazy results, and scores of targets beside them."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import kreinlearn as kl
from kreinlearn.distributed.entrance import for_workers
from tests.unit.distributed.lazy import (
    GIVEN,
    LABELS,
    N,
    W,
    X,
    Y,
    array,
    close,
    dask,
)


def test_nothing_is_computed_before_it_is_asked_for():
    model = kl.KreinRidgeClassifier(**GIVEN).fit(X, LABELS)
    features = kl.KreinNystroem(**GIVEN).fit(X)
    lazy = array(X)

    def scheduler(*args, **kwargs):
        raise AssertionError("computed")

    with dask.config.set(scheduler=scheduler):
        found = model.decision_function(lazy), model.predict(lazy), features.transform(lazy)
    assert [one.shape for one in found] == [(N, 3), (N,), (N, 15)]
    assert found[1].dtype == LABELS.dtype
    close(found[0].compute(), model.decision_function(X))
    np.testing.assert_array_equal(found[1].compute(), model.predict(X))
    single = features.transform(lazy.astype(np.float32))
    assert single.dtype == single.compute().dtype == np.float64


def test_the_first_estimators_to_try_fit_on_workers_and_predict_lazily():
    model = kl.KreinClassifier(**GIVEN).fit(array(X), array(LABELS), array(W))
    here = kl.KreinClassifier(**GIVEN).fit(X, LABELS, W)
    assert model.part_weights_ == here.part_weights_
    assert model.expected_error_ == here.expected_error_
    numbers = kl.KreinRegressor(**GIVEN).fit(array(X), array(Y))
    assert numbers.expected_error_ == kl.KreinRegressor(**GIVEN).fit(X, Y).expected_error_
    lazy = array(X)

    def scheduler(*args, **kwargs):
        raise AssertionError("computed")

    names = ("predict", "predict_proba", "decision_function")
    with dask.config.set(scheduler=scheduler):
        found = [getattr(model, name)(lazy) for name in names]
    assert [one.shape for one in found] == [(N,), (N, 3), (N, 3)]
    for name, one in zip(names, found, strict=True):
        np.testing.assert_array_equal(one.compute(), getattr(here, name)(X))
    close(numbers.score(lazy, array(Y)), numbers.score(X, Y))


def test_the_first_estimators_to_try_refuse_with_a_remedy_what_workers_cannot_do():
    for learner in (kl.KreinClassifier, kl.KreinRegressor):
        with pytest.raises(TypeError, match="takes no dask collection; compute it"):
            learner("precomputed").fit(array(X[:3000], (1000, 2000)), Y[:3000])
        with pytest.raises(ValueError, match=r"time_limit=2\.0 decides .*pass time_limit=None, or"):
            learner(time_limit=2.0).fit(array(X), array(Y))
        with_limit = learner(**GIVEN, time_limit=2.0)  # which says nothing if landmarks are given
        y = LABELS if learner is kl.KreinClassifier else Y
        assert with_limit.fit(array(X), array(y)).n_landmarks_ == 15


def test_what_goes_to_workers_does_not_grow():
    sizes = []
    for n in (N, 4 * N):
        model = kl.KreinRidge(**GIVEN).fit(np.tile(X, (4, 1))[:n], np.tile(Y, 4)[:n])
        sizes.append(len(pickle.dumps(for_workers(model))))
        assert model.n_jobs is None
        assert for_workers(model).n_jobs == 1
        assert len(model.folds_) == n  # the model itself is as it was
    assert sizes[1] <= 1.01 * sizes[0]


def test_scores_take_targets_as_fits_do():
    model = kl.KreinRidge(**GIVEN).fit(X, Y)
    wanted = model.score(X, Y, W)
    for y, w in ((array(Y), W), (Y, array(W))):
        with pytest.raises(TypeError, match=r"\.compute\(\)"):
            model.score(X, y, w)
        with pytest.raises(TypeError, match=r"\.compute\(\)"):
            kl.KreinRidge(**GIVEN).fit(X, y, w)
        close(model.score(array(X), y, w), wanted)
    few, chunks = slice(0, 3000), (1000, 2000)
    found = model.score(X[few], array(Y[few], chunks), array(W[few], chunks))
    assert found == model.score(X[few], Y[few], W[few])
    labels = kl.KreinRidgeClassifier(**GIVEN).fit(X[few], LABELS[few])
    found = labels.score(X[few], array(LABELS[few], chunks))
    assert found == labels.score(X[few], LABELS[few])
    with pytest.raises(TypeError, match=r"\.compute\(\)"):
        labels.score(X, array(LABELS))


def test_bad_input_08_columns_that_are_known_to_be_others_are_refused_at_once():
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    model = kl.KreinRidgeClassifier(**GIVEN).fit(X[:500], LABELS[:500])
    features = kl.KreinNystroem(**GIVEN).fit(X[:500])
    for call in (model.predict, model.decision_function, features.transform):
        with pytest.raises(ValueError, match=r"X has 2 features, but \w+ is expecting 3 features"):
            call(array(X)[:, :2])
    frame = pd.DataFrame(X[:500], columns=["a", "b", "c"])
    model.fit(frame, LABELS[:500])
    wanted = model.predict(frame)
    np.testing.assert_array_equal(model.predict(dd.from_pandas(frame, 3)).compute(), wanted)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(dd.from_pandas(frame[["a", "b"]], 3))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(dd.from_pandas(frame[["c", "b", "a"]], 3))


def test_a_part_of_predictions_for_blocks_of_unknown_length():
    """Nothing is counted before it is asked for; ``compute_chunk_sizes`` is how to ask."""
    model = kl.KreinRidge(**GIVEN).fit(X, Y)
    blocks = [dask.delayed(X[:40]), dask.delayed(X[40:])]
    found = model.predict(blocks)
    assert np.isnan(found.shape[0])
    close(found.compute_chunk_sizes()[:5].compute(), model.predict(X[:5]))
    close(model.predict(array(X))[:5].compute(), model.predict(X[:5]))


def test_a_part_of_predictions_for_a_frame():
    """As docs/scale.rst says: after ``persist`` counting predicts nothing again."""
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    evaluated = []

    def product(A, B):
        evaluated.append(len(A))
        return A @ B.T

    frame = pd.DataFrame(X[:60], columns=["a", "b", "c"])
    model = kl.KreinRidge(product, landmarks=5, random_state=0).fit(frame, Y[:60])
    with dask.config.set(scheduler="synchronous"):
        lazy = model.predict(dd.from_pandas(frame, 3))
        evaluated.clear()
        found = lazy.persist().compute_chunk_sizes()
        close(found[:5].compute(), model.predict(frame[:5]))
    assert found.chunks == ((20, 20, 20),)
    assert sum(evaluated) == 60 + 5
