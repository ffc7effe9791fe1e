"""Dask collections that enter a fit: equal models, whatever the chunks, and what is refused."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import KFold

import kreinlearn as kl
from kreinlearn import Landmarks
from tests.unit.distributed.lazy import (
    CHUNKS,
    GIVEN,
    LABELS,
    N,
    W,
    X,
    Y,
    array,
    close,
    da,
    dask,
    with_landmarks,
)

# Equal models

MODELS = {
    "ridge": (kl.KreinRidge(**GIVEN), Y),
    "two outputs": (kl.KreinRidge(**GIVEN), np.column_stack([Y, X[:, 2]])),
    "given penalties": (kl.KreinRidge(**GIVEN, lambda_plus=1e-3, lambda_minus=1e-2), Y),
    "least-squares core": (kl.KreinRidge(**with_landmarks(15, core="ls", rank=9)), Y),
    "widths chosen": (kl.KreinRidge(**with_landmarks(15, "uniform"), kernel_params="auto"), Y),
    "classifier": (kl.KreinRidgeClassifier(**GIVEN), LABELS),
    "balanced": (
        kl.KreinRidgeClassifier(**GIVEN, class_weight="balanced"),
        LABELS,
    ),
    "variance": (kl.KreinVCRidge(**GIVEN), Y),
    "baseline": (kl.SimilarityRidge(**GIVEN), Y),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_model_is_that_of_rows_in_memory(name):
    model, y = MODELS[name]
    w = (W,) if name in ("ridge", "balanced", "least-squares core") else ()
    here = model.fit(X, y, *w)
    wanted = here.dual_coef_, here.intercept_, here.lambda_plus_, here.landmark_indices_
    folds, predicted = here.folds_, here.predict(X)
    there = model.fit(array(X), array(y, "uneven"), *[array(each, "one") for each in w])
    np.testing.assert_array_equal(there.landmark_indices_, wanted[3])
    np.testing.assert_array_equal(np.asarray(there.folds_), folds)
    close(there.dual_coef_, wanted[0])
    close(there.intercept_, wanted[1])
    close(there.lambda_plus_, wanted[2])
    found = there.predict(array(X))
    assert isinstance(found, da.Array)
    if predicted.dtype.kind == "f":
        close(found.compute(), predicted)
    else:
        np.testing.assert_array_equal(found.compute(), predicted)
    assert there.score(array(X, "uneven"), array(y), *w) == pytest.approx(there.score(X, y, *w))


@pytest.mark.parametrize("core", ["ls", "truncated", "plain"])
def test_the_map_is_that_of_rows_in_memory(core):
    model = kl.KreinNystroem(**with_landmarks(15, core=core))
    wanted, values = model.fit(X).transform(X), model.eigenvalues_
    found = model.fit_transform(array(X))
    assert isinstance(found, da.Array)
    close(model.eigenvalues_, values)
    close(found.compute(), wanted, 1e-8)
    close(model.eigenvectors(array(X)).compute(), model.eigenvectors(X))


def test_landmarks_grow_to_a_tolerance_as_in_memory():
    model = kl.KreinNystroem("delta_gauss", tol=0.2, random_state=0)
    wanted = model.fit(X).landmark_indices_
    np.testing.assert_array_equal(model.fit(array(X)).landmark_indices_, wanted)


def test_components_are_those_of_rows_in_memory():
    model = kl.KreinPCA(kernel="delta_gauss", random_state=0)
    wanted = model.fit(X).transform(X)
    close(model.fit(array(X)).transform(array(X)).compute(), wanted)


def test_chunks_and_schedulers_change_no_bit():
    found = []
    for scheduler, chunks in [*(("threads", name) for name in CHUNKS), ("sync", "small")]:
        with dask.config.set(scheduler=scheduler):
            model = kl.KreinRidge(**with_landmarks(15, core="ls"))
            model.fit(array(X, chunks), array(Y, chunks), array(W, "small"))
            found.append((model.dual_coef_.tobytes(), model.intercept_))
    assert len(set(found)) == 1


# Collections


def test_a_frame_has_names_and_unknown_lengths():
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    frame = pd.DataFrame(X, columns=["u", "v", "w"]).assign(y=Y, z=LABELS)
    model = kl.KreinRidge(**GIVEN)
    wanted = model.fit(X, Y).dual_coef_
    lazy = dd.from_pandas(frame, npartitions=4)
    lazy = lazy[lazy["u"] > -1e9]  # lengths are not known any more
    model.fit(lazy[["u", "v", "w"]], lazy["y"])
    close(model.dual_coef_, wanted)
    assert list(model.feature_names_in_) == ["u", "v", "w"]
    found = model.predict(lazy[["u", "v", "w"]])
    close(found.compute(), model.predict(frame[["u", "v", "w"]]))
    assert np.isnan(found.shape[0])
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(lazy[["v", "u", "w"]]).compute()
    labelled = kl.KreinRidgeClassifier(**GIVEN).fit(lazy[["u"]], lazy["z"])
    assert list(labelled.classes_) == ["a", "bb", "c"]
    with pytest.raises(ValueError, match="could not convert string"):
        model.fit(lazy[["u", "z"]], lazy["y"])


def test_delayed_blocks_are_rows_of_numbers():
    parts = [dask.delayed(part) for part in np.array_split(X.astype(np.float32), 7)]
    model = kl.KreinRidge(**GIVEN)
    wanted = model.fit(X.astype(np.float32), Y).dual_coef_
    close(model.fit(parts, Y).dual_coef_, wanted, 1e-6)
    assert model.landmarks_.dtype == np.float64
    assert model.predict(parts).compute().shape == (N,)


@pytest.mark.parametrize("similarity", ["squared", "rank3"])
def test_bags_and_series_hold_objects(similarity):
    db = pytest.importorskip("dask.bag")
    letters = np.random.default_rng(0).integers(97, 101, (N, 8)).astype(np.uint8)
    words = [
        bytes(row).decode() for row in np.unique(letters, axis=0)
    ]  # equal ones are no groups there
    y = np.array([word.count("a") for word in words], dtype=float)
    model = kl.KreinRidge(
        "levenshtein", landmarks=Landmarks(10, "uniform"), similarity=similarity, random_state=0
    )
    wanted = model.fit(words, y).dual_coef_
    lazy = db.from_sequence(words, npartitions=3).map(str)
    close(model.fit(lazy, y).dual_coef_, wanted)
    close(model.predict(lazy).compute(), model.predict(words))


@pytest.mark.parametrize("n", [400, 3000])
@pytest.mark.parametrize("kernel", ["ngrams", "wtk", "convolutions", "sliced_wl"])
def test_what_kernels_on_objects_learn_is_the_same_as_in_memory(kernel, n):
    """Frequencies of n-grams, a window, biases and means: of 2,048 rows, if there are more."""
    db = pytest.importorskip("dask.bag")
    rng = np.random.default_rng(1)
    rows = ["".join(rng.choice(list("abcd"), k)) for k in rng.integers(4, 9, n)]
    if kernel == "wtk":
        pytest.importorskip("ot")
    if kernel != "ngrams":
        rows = [np.array([float(ord(letter)) for letter in row]) for row in rows]
    if kernel == "sliced_wl":
        rows = [(row, [(i, i + 1) for i in range(len(row) - 1)]) for row in rows]
    params = {"ngrams": {"idf": True}, "wtk": {"window": 0.75}}.get(kernel)
    y, landmarks = rng.normal(size=n), Landmarks(10, "uniform")
    model = kl.KreinRidge(kernel, kernel_params=params, landmarks=landmarks, random_state=0)
    model.set_params(similarity="exp", lambda_plus=0.1, lambda_minus=0.1)
    wanted = clone(model).fit(rows, y)
    found = model.fit(db.from_sequence(rows, npartitions=3), y)
    close(found.dual_coef_, wanted.dual_coef_)
    for name in ("idf_", "ngrams_", "window_", "biases_", "mean_", "scale_"):
        np.testing.assert_array_equal(*(getattr(m.kernel_, name, 0) for m in (found, wanted)))


def test_a_callable_takes_rows_of_numbers():
    def kernel(A, B):
        return np.tanh(A @ B.T - 1.0)

    given = {**with_landmarks(15, "uniform"), "kernel": kernel, "n_jobs": 2}
    wanted = kl.KreinRidge(**given | {"n_jobs": 1}).fit(X, Y).dual_coef_
    close(kl.KreinRidge(**given).fit(array(X), array(Y)).dual_coef_, wanted)


def test_few_rows_are_fitted_in_memory():
    few = slice(0, 500)
    model = kl.KreinRidgeClassifier("delta_gauss", random_state=0)
    wanted = model.fit(X[few], LABELS[few]).dual_coef_
    chunks = (200, 300)
    model.fit(array(X[few], chunks), array(LABELS[few], chunks))
    np.testing.assert_array_equal(model.dual_coef_, wanted)
    assert isinstance(model.predict(array(X)), da.Array)


def test_dask_is_not_imported_without_a_collection():
    code = (
        "import sys, numpy as np, kreinlearn\n"
        "X = np.eye(20)\n"
        "kreinlearn.KreinRidge().fit(X, X[0]).predict(X)\n"
        "assert not [name for name in sys.modules if name.split('.')[0] in ('dask', 'distributed')]"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


# Refused


def changed(values, row, value):
    values = values.copy()
    values[row] = value
    return values


RIDGE, CLASSIFIER = kl.KreinRidge, kl.KreinRidgeClassifier
ONES = np.ones(N)
BAD = {
    "NaN in X": (RIDGE, {}, (changed(X, N - 1, np.nan), Y), ValueError, "Input X contains NaN"),
    "inf in X": (RIDGE, {}, (changed(X, N - 1, np.inf), Y), ValueError, "infinity"),
    "NaN in y": (RIDGE, {}, (X, changed(Y, 9000, np.nan)), ValueError, "Input y contains NaN"),
    "large y": (RIDGE, {}, (X, changed(Y, 9000, 1e200)), ValueError, "too large to be squared"),
    "numbers as labels": (CLASSIFIER, {}, (X, Y), ValueError, "Unknown label type"),
    "one class": (CLASSIFIER, {}, (X, ONES), ValueError, "one class"),
    "negative weight": (RIDGE, {}, (X, Y, changed(W, 7, -1.0)), ValueError, "Negative values"),
    "no weight": (RIDGE, {}, (X, Y, 0 * W), ValueError, "all of them are zero"),
    "one class of positive weight": (
        CLASSIFIER, {"class_weight": {"a": 0, "c": 0}}, (X, LABELS), ValueError,
        "of positive weight, got one class",
    ),
    "columns": (RIDGE, {}, (X[:, 0], Y), ValueError, "Expected 2D array, got 1D"),
    "dates": (RIDGE, {}, (X.astype("datetime64[s]"), Y), TypeError, "dates"),
    "splitter": (RIDGE, {"cv": KFold(3)}, (X, Y), ValueError, "pass an int"),
    "loo": (RIDGE, {"cv": "loo"}, (X, Y), ValueError, "pass an int"),
    "precomputed": (RIDGE, {"kernel": "precomputed"}, (X, Y), TypeError, "looks at all rows"),
    "records": (RIDGE, {"kernel": "gower"}, (X, Y), TypeError, "looks at all rows"),
    "scale": (
        RIDGE, {"kernel_params": {"width": "scale"}}, (X, Y), TypeError, "parameters of the kernel",
    ),
    "one row at a time": (kl.SpectrumSVC, {}, (X, LABELS), TypeError, "no dask collection"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_collections_are_refused(name):
    kind, params, data, error, text = BAD[name]
    given = {key: value for key, value in GIVEN.items() if key in kind().get_params()}
    model = kind(**{**given, **params})
    with pytest.raises(error, match=text):
        model.fit(*map(array, data))
    assert not [attribute for attribute in vars(model) if attribute.endswith("_")]


def test_lengths_must_agree():
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        kl.KreinRidge(**GIVEN).fit(array(X), array(Y[:-1], (N - 1,)))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        kl.KreinRidge(**GIVEN).fit(array(X), Y[:-1])


def test_targets_are_where_the_rows_are():
    with pytest.raises(TypeError, match=r"y\.compute\(\)"):
        kl.KreinRidge(**GIVEN).fit(X, array(Y))
    with pytest.raises(TypeError, match="parts in memory"):
        kl.KreinRidge(**GIVEN).partial_fit(array(X), array(Y))
    with pytest.raises(ValueError, match="requires y"):
        kl.KreinRidge(**GIVEN).fit(array(X), None)
    model = kl.KreinNystroem(**GIVEN).fit(X)
    with pytest.raises(TypeError, match="compute it first"):
        model.estimate_error(array(X))
