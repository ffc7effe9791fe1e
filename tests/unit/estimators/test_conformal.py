"""Intervals, sets of classes and novelty of fitted estimators."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import kreinlearn as kl
from kreinlearn.datasets import make_noisy_strings

RNG = np.random.default_rng(0)
X = RNG.normal(size=(160, 2))
Y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * RNG.normal(size=160)
LABELS = np.array(["low", "middle", "high"])[np.digitize(Y, [-0.7, 0.7])]
NEW = RNG.normal(size=(40, 2))
GIVEN = {"lambda_plus": 0.01, "lambda_minus": 0.01, "random_state": 0}
WORDS, KINDS = make_noisy_strings(80, random_state=0)[:2]


def numbers_left_out(n, rows=None):
    """The objects that random_state=0 sets aside."""
    rows = np.arange(n) if rows is None else rows
    return np.sort(np.random.default_rng(0).permutation(rows)[: len(rows) // 4])


def test_split_is_a_fit_without_a_quarter_and_a_quantile_of_its_residuals():
    model = kl.KreinRidge("gaussian", **GIVEN).fit(X, Y, conformal="split")
    out = numbers_left_out(160)
    others = np.delete(np.arange(160), out)
    plain = kl.KreinRidge("gaussian", **GIVEN).fit(X[others], Y[others])
    np.testing.assert_array_equal(model.predict(NEW), plain.predict(NEW))
    residuals = np.sort(np.abs(Y[out] - plain.predict(X[out])))
    width = residuals[int(np.ceil(0.8 * 41)) - 1]
    found = model.predict_interval(NEW, 0.8)
    np.testing.assert_array_equal(found[:, 0], plain.predict(NEW) - width)
    np.testing.assert_array_equal(found[:, 1], plain.predict(NEW) + width)


def test_folds_are_fits_of_the_whole_procedure():
    model = kl.KreinRidge("gaussian", random_state=0).fit(X, Y, conformal="cv+")
    order = np.random.default_rng(0).permutation(160)
    upper = []
    for k in range(5):
        out = np.sort(order[k::5])
        others = np.delete(np.arange(160), out)
        fold = kl.KreinRidge("gaussian", random_state=0).fit(X[others], Y[others])
        residuals = np.abs(Y[out] - fold.predict(X[out]))
        upper.append(fold.predict(NEW)[:, None] + residuals)
    wanted = np.sort(np.hstack(upper), axis=1)[:, int(np.ceil(0.9 * 161)) - 1]
    np.testing.assert_array_equal(model.predict_interval(NEW)[:, 1], wanted)
    plain = kl.KreinRidge("gaussian", random_state=0).fit(X, Y)
    np.testing.assert_array_equal(model.predict(NEW), plain.predict(NEW))


CLASSIFIERS = [
    kl.KreinClassifier("gaussian", random_state=0),
    kl.KreinRidgeClassifier("gaussian", **GIVEN),
    kl.KreinRidgeClassifier("gaussian", landmarks=30, **GIVEN),
    kl.KreinVCRidgeClassifier("gaussian", landmarks=30, random_state=0),
    kl.KreinSVC("gaussian", **GIVEN),
    kl.SimilarityRidgeClassifier("gaussian", lambda_plus=0.01, random_state=0),
    kl.SpectrumSVC("gaussian", C=1.0, random_state=0),
]


@pytest.mark.parametrize("model", CLASSIFIERS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("two", [False, True])
def test_sets_of_split(model, two):
    y = np.where(LABELS == "low", "low", "high") if two else LABELS
    model = model.fit(X, y, conformal="split")
    out = numbers_left_out(160)
    found = model.predict_set(NEW, 0.8)
    assert found.shape == (40, len(model.classes_))
    scores = model.decision_function(np.vstack([X[out], NEW]))
    scores = np.stack([-scores, scores], axis=1) if scores.ndim == 1 else scores
    margins = np.array(
        [[np.max(np.delete(row, c)) - row[c] for c in range(len(row))] for row in scores]
    )
    own = margins[np.arange(len(out)), np.searchsorted(model.classes_, y[out])]
    limit = np.sort(own)[int(np.ceil(0.8 * 41)) - 1]
    wanted = margins[len(out) :] <= limit
    wanted[np.arange(40), np.argmin(margins[len(out) :], axis=1)] = True
    np.testing.assert_array_equal(found, wanted)
    predicted = np.searchsorted(model.classes_, model.predict(NEW))
    assert found[np.arange(40), predicted].all()


def test_larger_coverage_gives_larger_sets_and_intervals():
    model = kl.KreinClassifier("gaussian", random_state=0).fit(X, LABELS, conformal="cv+")
    small, large = model.predict_set(NEW, 0.6), model.predict_set(NEW, 0.95)
    assert (small <= large).all()
    assert small.sum() < large.sum()
    ridge = kl.KreinRidge("gaussian", **GIVEN).fit(X, Y, conformal="cv+")
    inner, outer = ridge.predict_interval(NEW, 0.6), ridge.predict_interval(NEW, 0.95)
    assert (outer[:, 0] < inner[:, 0]).all()
    assert (outer[:, 1] > inner[:, 1]).all()


@pytest.mark.parametrize("method", ["split", "cv+"])
def test_a_matrix_gives_what_its_objects_give(method):
    """Objects without weight are as good as absent."""
    from scipy.spatial.distance import cdist

    params = {"similarity": "exp", "landmarks": None, **GIVEN}
    D, D_new = cdist(X, X), cdist(NEW, X)
    by_matrix = kl.KreinRidge("precomputed_dissimilarity", **params)
    by_matrix.fit(D, Y, conformal=method)
    by_objects = kl.KreinRidge(kl.dissimilarity(cdist), **params).fit(X, Y, conformal=method)
    np.testing.assert_allclose(
        by_matrix.predict_interval(D_new), by_objects.predict_interval(NEW), rtol=1e-9
    )
    np.testing.assert_array_equal(by_matrix.novelty(D_new), by_objects.novelty(NEW))


def test_rows_of_a_file(tmp_path):
    np.save(tmp_path / "x.npy", X)
    given = {**GIVEN, "landmarks": 30, "kernel": kl.kernels.Gaussian(width=1.0)}
    model = kl.KreinRidge(**given).fit(tmp_path / "x.npy", Y, conformal="split")
    out = numbers_left_out(160)
    residuals = np.sort(np.abs(Y[out] - model.predict(X[out])))
    width = residuals[int(np.ceil(0.9 * 41)) - 1]
    np.save(tmp_path / "new.npy", NEW)
    found = model.predict_interval(tmp_path / "new.npy")
    np.testing.assert_allclose(found[:, 1], model.predict(NEW) + width, rtol=1e-12)


@pytest.mark.parametrize("method", ["split", "cv+"])
def test_a_store_is_one_for_all_models(method, tmp_path):
    given = {**GIVEN, "landmarks": None, "kernel": kl.kernels.Gaussian(width=1.0)}
    plain = kl.KreinRidge(**given).fit(X, Y, conformal=method)
    stored = kl.KreinRidge(**given, resources=kl.Resources(store=tmp_path / "values"))
    stored.fit(X, Y, conformal=method)
    np.testing.assert_allclose(stored.predict_interval(NEW), plain.predict_interval(NEW), rtol=1e-9)


@pytest.mark.parametrize("model", [CLASSIFIERS[0], CLASSIFIERS[2], CLASSIFIERS[-1]])
def test_landmarks_have_the_numbers_of_the_rows_that_were_given(model):
    model = model.fit(X, LABELS, conformal="split")
    np.testing.assert_array_equal(X[model.landmark_indices_], model.landmarks_)
    assert not np.isin(model.landmark_indices_, numbers_left_out(160)).any()
    if hasattr(model, "support_"):
        assert np.isin(model.support_, model.landmark_indices_).all()
    for reason in model.explain(NEW[:1])[0].reasons:
        np.testing.assert_array_equal(reason.example, X[reason.landmark])
        assert reason.label in (None, LABELS[reason.landmark])


def test_landmarks_by_number_are_never_left_out():
    model = kl.KreinRidge("gaussian", landmarks=np.arange(30), **GIVEN)
    model.fit(X, Y, conformal="split")
    np.testing.assert_array_equal(np.sort(model.landmark_indices_), np.arange(30))
    assert len(model._conformal.left_out.weights) == 130 // 4


def test_several_outputs_are_covered_one_by_one():
    both = np.column_stack([Y, 3 * Y - 1])
    model = kl.KreinRidge("gaussian", **GIVEN).fit(X, both, conformal="split")
    one = kl.KreinRidge("gaussian", **GIVEN).fit(X, Y, conformal="split")
    found = model.predict_interval(NEW)
    assert found.shape == (40, 2, 2)
    np.testing.assert_allclose(found[:, 0], one.predict_interval(NEW), rtol=1e-9)
    np.testing.assert_allclose(found[:, 1], 3 * found[:, 0] - 1, rtol=1e-9, atol=1e-9)


def test_a_class_that_is_left_out_as_a_whole_is_never_in_a_set():
    out = numbers_left_out(160)
    y = np.where(np.arange(160) == out[0], "rare", LABELS)
    model = kl.KreinRidgeClassifier("gaussian", **GIVEN).fit(X, y, conformal="split")
    assert "rare" not in model.classes_
    assert np.isinf(model._conformal.left_out.scores).sum() == 1


@pytest.mark.parametrize("method", ["split", "cv+"])
def test_objects_unlike_all_others_are_novel(method):
    model = kl.KreinRidge("gaussian", **GIVEN).fit(X, Y, conformal=method)
    least = 1 / (1 + (40 if method == "split" else 160))
    np.testing.assert_allclose(model.novelty(NEW + 50), least, rtol=1e-12)
    assert np.median(model.novelty(NEW)) > 0.2
    strings = kl.KreinClassifier("levenshtein", random_state=0).fit(WORDS, KINDS, conformal=method)
    assert strings.novelty(["zzzzzzzzzzzzzzzzzzzzzzzzzzzzzz"]) <= 1 / 21 + 1e-12


def test_a_matrix_of_similarities_needs_its_diagonal():
    kernel = kl.kernels.Gaussian(width=1.0)
    fitted = kl.kernels.Gaussian(width=1.0).fit(X, RNG)
    K, K_new = fitted(X, X), fitted(NEW, X)
    model = kl.KreinRidge("precomputed", **GIVEN).fit(K, Y, conformal="split")
    with pytest.raises(ValueError, match=r"needs diagonal=.*np\.ones"):
        model.novelty(K_new)
    with pytest.raises(ValueError, match=r"one finite number for each of 40 objects"):
        model.novelty(K_new, diagonal=np.ones(3))
    same = kl.KreinRidge(kernel, landmarks=None, **GIVEN).fit(X, Y, conformal="split")
    np.testing.assert_allclose(
        model.novelty(K_new, diagonal=np.ones(40)), same.novelty(NEW), atol=1.5 / 41
    )
    with pytest.raises(ValueError, match="leave it out"):
        same.novelty(NEW, diagonal=np.ones(40))


@pytest.mark.parametrize("coverage", [0, 1, 1.5, -0.1, "0.9", None, True, float("nan")])
def test_bad_input_107_a_coverage_outside_its_range(coverage):
    model = kl.KreinRidge("gaussian", **GIVEN).fit(X, Y, conformal="split")
    with pytest.raises(ValueError, match="must be a number between 0 and 1"):
        model.predict_interval(NEW, coverage)


def test_bad_input_108_a_model_that_has_kept_nothing():
    ridge = kl.KreinRidge("gaussian", **GIVEN).fit(X, Y)
    for call in (ridge.predict_interval, ridge.novelty):
        with pytest.raises(ValueError, match=r'fit it with fit\(X, y, conformal="split"\)'):
            call(NEW)
    classes = kl.KreinClassifier("gaussian", random_state=0).fit(X, LABELS)
    with pytest.raises(ValueError, match="predict_set needs objects that had no part"):
        classes.predict_set(NEW)
    part = kl.KreinRidge("gaussian", **GIVEN).fit(X, Y, conformal="split").partial_fit(X, Y)
    with pytest.raises(ValueError, match="this one has kept none"):
        part.predict_interval(NEW)


def test_bad_input_109_too_few_objects():
    with pytest.raises(ValueError, match="at least 8 objects that may be left out, got 5"):
        kl.KreinRidge("gaussian", **GIVEN).fit(X[:5], Y[:5], conformal="split")
    model = kl.KreinRidge("gaussian", **GIVEN).fit(X[:20], Y[:20], conformal="split")
    with pytest.warns(UserWarning, match="needs at least 9 objects .* there are 5: all intervals"):
        assert np.isinf(model.predict_interval(NEW)).all()
    assert np.isfinite(model.predict_interval(NEW, 0.8)).all()


def test_bad_input_110_an_unknown_method():
    with pytest.raises(ValueError, match=r"conformal='jackknife' is not among 'split', 'cv\+'"):
        kl.KreinRidge("gaussian", **GIVEN).fit(X, Y, conformal="jackknife")


@pytest.mark.parametrize("method", ["split", "cv+"])
def test_a_loaded_model_gives_the_same(method, tmp_path):
    model = kl.KreinClassifier("levenshtein", random_state=0).fit(WORDS, KINDS, conformal=method)
    model.save(tmp_path / "m.krein")
    found = kl.load(tmp_path / "m.krein")
    np.testing.assert_array_equal(found.predict_set(WORDS), model.predict_set(WORDS))
    np.testing.assert_array_equal(found.novelty(WORDS), model.novelty(WORDS))


def test_coverage_of_many_training_sets():
    """The mean over sets of a promise that holds for each on average, within four of its errors."""
    hits = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        A = rng.normal(size=(260, 2))
        y = A[:, 0] + rng.standard_t(3, size=260)
        model = kl.KreinRidge("gaussian", **GIVEN).fit(A[:60], y[:60], conformal="split")
        ends = model.predict_interval(A[60:], 0.8)
        hits.append(np.mean((ends[:, 0] <= y[60:]) & (y[60:] <= ends[:, 1])))
    error = np.std(hits) / np.sqrt(len(hits))
    assert np.mean(hits) > 0.8 - 4 * error
    assert np.mean(hits) < 0.8 + 1 / 16 + 4 * error  # at most 1 / (15 + 1) above


# Nothing is learned from what was left out


@pytest.mark.parametrize("given", ["matrix", "numbers", "file"])
@pytest.mark.parametrize("kind", [kl.KreinRidgeClassifier, kl.KreinClassifier])
def test_labels_of_objects_that_were_left_out_do_not_matter(kind, given, tmp_path):
    """Also where these are there with weight zero: neither classes nor folds know them."""
    from scipy.spatial.distance import cdist

    out = numbers_left_out(160, np.arange(30, 160) if given == "numbers" else None)
    kernel, rows, landmarks = "gaussian", X, 15
    if given == "matrix":
        kernel, rows = "precomputed_dissimilarity", cdist(X, X)
    elif given == "numbers":
        landmarks = np.arange(30)
    else:
        np.save(tmp_path / "x.npy", X)
        rows = tmp_path / "x.npy"
    other = LABELS.copy().astype("U9")
    other[out] = "elsewhere"
    found = []
    for y in (LABELS, other):
        model = kind(kernel, landmarks=landmarks, random_state=0)
        model.fit(rows, y, conformal="split")
        assert "elsewhere" not in model.classes_
        found.append(model.dual_coef_)
    np.testing.assert_array_equal(*found)


def test_landmarks_that_are_given_as_objects_are_not_left_out():
    """An object that is a landmark is at no distance from it, as no new object is."""
    model = kl.KreinRidge("gaussian", landmarks=X[:100], **GIVEN).fit(X, Y, conformal="split")
    assert len(model._conformal.left_out.weights) == 60 // 4
    frame = pd.DataFrame(X, columns=["a", "b"])
    by_name = kl.KreinRidge("gaussian", landmarks=frame[:100], **GIVEN)
    by_name.fit(frame, Y, conformal="split")
    assert len(by_name._conformal.left_out.weights) == 60 // 4
    sparse = kl.KreinRidge("gaussian", landmarks=sp.csr_array(X[:100]), **GIVEN)
    sparse.fit(sp.csr_array(X), Y, conformal="split")
    assert len(sparse._conformal.left_out.weights) == 60 // 4
    words = kl.KreinRidgeClassifier("levenshtein", landmarks=WORDS[:40], **GIVEN)
    words.fit(WORDS, KINDS, conformal="split")
    assert len(words._conformal.left_out.weights) == len(set(WORDS) - set(WORDS[:40])) // 4


def test_a_class_that_would_not_remain_is_named():
    y = np.where(np.arange(160) == 7, "rare", "often")
    with pytest.raises(ValueError, match=r"'rare'.* has 1 object.*only one class remains"):
        kl.KreinRidgeClassifier("gaussian", **GIVEN).fit(X, y, conformal="cv+")


def test_options_that_name_rows_are_refused():
    halves = [(np.arange(80), np.arange(80, 160)), (np.arange(80, 160), np.arange(80))]
    with pytest.raises(ValueError, match="cv is a list of row numbers"):
        kl.KreinRidge("gaussian", cv=halves).fit(X, Y, conformal="split")
    numbers = np.arange(0, 160, 8)
    K = (X @ X.T)[:, numbers]
    with pytest.raises(ValueError, match="X has the columns of landmarks alone"):
        kl.KreinRidge("precomputed", landmarks=numbers, **GIVEN).fit(K, Y, conformal="split")


def test_folds_are_those_of_all_rows():
    model = kl.KreinRidge("gaussian", landmarks=20, random_state=0).fit(X, Y, conformal="split")
    assert model.folds_.shape == (160,)
    assert (model.folds_[numbers_left_out(160)] == -1).all()
