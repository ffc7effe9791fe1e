"""partial_fit: in whatever parts the rows come, the model is that of all of them."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import KFold

from kreinlearn import (
    KreinRidge,
    KreinRidgeClassifier,
    KreinSVC,
    KreinVCRidge,
    KreinVCRidgeClassifier,
    Landmarks,
    Resources,
    SimilarityRidge,
    SimilarityRidgeClassifier,
)
from kreinlearn.kernels import GaussianCombination, pairwise
from tests import oracles

RNG = np.random.default_rng(61)
N = 120
X, X_NEW = RNG.normal(size=(N, 3)), RNG.normal(size=(25, 3))
Y = np.column_stack([np.sin(2 * X[:, 0]), X[:, 1] * X[:, 2]]) + 0.1 * RNG.normal(size=(N, 2)) + 1
LABELS = np.digitize(Y[:, 0], np.quantile(Y[:, 0], [0.3, 0.6]))
W = RNG.uniform(0.2, 2, N) * (RNG.random(N) < 0.9)
Z = X[RNG.permutation(N)[:15]]
KERNEL = GaussianCombination(weights=(1.0, -0.7), widths=(6.0, 1.5), unit=1.0)


def similarity(A, B):
    d2 = ((np.asarray(A)[:, None] - np.asarray(B)[None]) ** 2).sum(2)
    return np.exp(-d2 / 6) - 0.7 * np.exp(-d2 / 1.5)


C, K_ZZ, C_NEW = similarity(X, Z), similarity(Z, Z), similarity(X_NEW, Z)
TWO = {"lambda_plus": 2e-3, "lambda_minus": 3e-2}
CHUNKS = {"one": [N], "two": [50, 70], "uneven": [1, 90, 2, 27], "many": [10] * 12}
REGRESSORS = [KreinRidge, KreinVCRidge, SimilarityRidge]
CLASSIFIERS = [KreinRidgeClassifier, KreinVCRidgeClassifier, SimilarityRidgeClassifier]


def make(learner, **params):
    """A learner whose landmarks, widths and penalties are given."""
    penalties = {name: TWO[name] for name in TWO if name in learner().get_params()}
    return learner(KERNEL, **{"landmarks": Z, **penalties, **params})


def parts(sizes):
    ends = np.cumsum(sizes)
    return [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]


def in_parts(model, sizes, X=X, y=Y, w=None, **more):
    for part in parts(sizes):
        weights = None if w is None else w[part]
        model.partial_fit(X[part], y[part], sample_weight=weights, **more)
        more = {}
    return model


def scores(model, X=X_NEW):
    return getattr(model, "decision_function", model.predict)(X)


def assert_same(one, other, rtol=1e-9):
    np.testing.assert_allclose(other, one, rtol=0, atol=rtol * np.abs(one).max())


# Any parts

chunks = pytest.mark.parametrize("sizes", CHUNKS.values(), ids=CHUNKS)
weights = pytest.mark.parametrize("w", [None, W], ids=["plain", "weighted"])


@chunks
@weights
@pytest.mark.parametrize("learner", REGRESSORS)
@pytest.mark.parametrize("outputs", [1, 2])
def test_regressors_in_parts(learner, sizes, w, outputs):
    y = Y[:, 0] if outputs == 1 else Y
    if learner is KreinVCRidge and sizes[0] == 1:
        sizes = [3, *sizes[1:-1], sizes[-1] - 2]  # one row has no variance
    whole = make(learner).fit(X, y, sample_weight=w)
    model = in_parts(make(learner), sizes, y=y, w=w)
    assert_same(scores(whole), scores(model))
    assert_same(whole.coef_, model.coef_, rtol=1e-7)
    assert_same(whole.dual_coef_, model.dual_coef_, rtol=1e-6)
    assert np.shape(model.intercept_) == np.shape(whole.intercept_)


@chunks
@weights
@pytest.mark.parametrize("learner", CLASSIFIERS)
def test_classifiers_in_parts(learner, sizes, w):
    if learner is KreinVCRidgeClassifier and sizes[0] == 1:
        sizes = [10, *sizes[1:-1], sizes[-1] - 9]
    whole = make(learner).fit(X, LABELS, sample_weight=w)
    model = in_parts(make(learner), sizes, y=LABELS, w=w, classes=[0, 1, 2])
    assert_same(scores(whole), scores(model))
    np.testing.assert_array_equal(whole.predict(X_NEW), model.predict(X_NEW))


def test_ridge_in_parts_is_least_squares_on_all_rows():
    """Not only the same as fit: the definition."""
    model = in_parts(make(KreinRidge), CHUNKS["uneven"], w=W)
    a, b = oracles.krein_ridge(C, K_ZZ, Y, (2e-3, 3e-2), w=W)
    assert_same(C_NEW @ a + b, model.predict(X_NEW), rtol=1e-8)


@pytest.mark.parametrize("learner", [*REGRESSORS, *CLASSIFIERS])
def test_without_a_constant(learner):
    y = LABELS if learner in CLASSIFIERS else Y
    whole = make(learner, fit_intercept=False).fit(X, y)
    model = in_parts(make(learner, fit_intercept=False), [40, 80], y=y)
    assert_same(scores(whole), scores(model))
    assert not np.any(model.intercept_)


@pytest.mark.parametrize("labels", [LABELS == 1, np.array(["no", "yes"])[(LABELS == 1) * 1]])
def test_two_classes_in_parts(labels):
    whole = make(KreinRidgeClassifier).fit(X, labels)
    model = in_parts(make(KreinRidgeClassifier), [40, 80], y=labels)
    assert_same(scores(whole), scores(model))
    np.testing.assert_array_equal(whole.classes_, model.classes_)


@pytest.mark.parametrize("learner", CLASSIFIERS)
def test_a_class_that_appears_late(learner):
    order = np.argsort(LABELS == 2, kind="stable")
    X_late, late = X[order], LABELS[order]
    first = np.flatnonzero(late == 2)[0]
    whole = make(learner).fit(X_late, late)
    model = make(learner)
    if learner is KreinVCRidgeClassifier:
        with pytest.raises(ValueError, match="the target is constant"):
            model.partial_fit(X_late[:first], late[:first], classes=[0, 1, 2])
        first += 1
        model = make(learner)
    model.partial_fit(X_late[:first], late[:first], classes=[0, 1, 2])
    np.testing.assert_array_equal(model.classes_, [0, 1, 2])
    assert (model.predict(X_NEW) != 2).all()
    model.partial_fit(X_late[first:], late[first:])
    assert_same(scores(whole), scores(model))


def test_precomputed_rows_in_parts():
    """Columns of landmarks: rows of a later part need no other."""
    rows = np.arange(15)
    K = similarity(X, X[rows])
    params = {"landmarks": rows, **TWO}
    whole = KreinRidge("precomputed", **params).fit(K, Y)
    model = KreinRidge("precomputed", **params)
    in_parts(model, [40, 50, 30], X=K)
    K_new = similarity(X_NEW, X[rows])
    assert_same(whole.predict(K_new), model.predict(K_new))


def test_rows_of_a_square_first_part():
    """Similarities of later rows are to the objects of the first part."""
    n = 40
    K = similarity(X, X[:n])
    model = KreinRidge("precomputed", landmarks=None, **TWO).partial_fit(K[:n], Y[:n])
    model.partial_fit(K[n:], Y[n:])
    a, b = oracles.krein_ridge(K, K[:n], Y, (2e-3, 3e-2))
    assert_same(K @ a + b, model.predict(K), rtol=1e-6)


def test_objects_in_parts():
    def k(a, b):
        return float(np.exp(-np.sum((a - b) ** 2) / 6) - 0.5 * np.exp(-np.sum((a - b) ** 2)))

    objects = list(X)
    params = {"landmarks": list(Z), **TWO}
    whole = KreinRidge(pairwise(k), **params).fit(objects, Y)
    model = in_parts(KreinRidge(pairwise(k), **params), [30, 90], X=objects)
    assert_same(whole.predict(X_NEW), model.predict(X_NEW))


def test_a_dissimilarity_in_parts():
    params = {"landmarks": Z, "similarity": "squared", **TWO}
    whole = KreinRidge("manhattan", **params).fit(X, Y)
    model = in_parts(KreinRidge("manhattan", **params), [30, 90])
    assert_same(whole.predict(X_NEW), model.predict(X_NEW))


def test_a_kernel_of_any_size_in_parts():
    for power in (-320, 320):
        unit = 2.0**power

        def k(A, B, unit=unit):
            return similarity(A, B) * unit

        params = {"landmarks": Z, "lambda_plus": 2e-3 * unit, "lambda_minus": 3e-2 * unit}
        model = in_parts(KreinRidge(k, **params), [30, 90])
        a, b = oracles.krein_ridge(C, K_ZZ, Y, (2e-3, 3e-2))
        assert_same(C_NEW @ a + b, model.predict(X_NEW), rtol=1e-8)


def test_rows_of_zero_weight_are_no_rows():
    model = make(KreinRidge).partial_fit(X[:60], Y[:60])
    before = model.predict(X_NEW)
    model.partial_fit(X[60:], Y[60:], sample_weight=np.zeros(60))
    assert_same(before, model.predict(X_NEW), rtol=1e-12)


def test_landmarks_are_those_of_the_first_part():
    model = KreinRidge(KERNEL, landmarks=12, random_state=0, **TWO).partial_fit(X[:50], Y[:50])
    landmarks = model.landmarks_.copy()
    assert {tuple(z) for z in landmarks} <= {tuple(x) for x in X[:50]}
    model.partial_fit(X[50:], Y[50:])
    np.testing.assert_array_equal(model.landmarks_, landmarks)
    given = KreinRidge(KERNEL, landmarks=landmarks, **TWO).fit(X, Y)
    assert_same(given.predict(X_NEW), model.predict(X_NEW), rtol=1e-8)


def test_a_part_may_be_smaller_than_the_number_of_landmarks():
    """What is said of landmarks concerns the first part alone: no error, and no warning."""
    for landmarks in (12, np.arange(12) * 4, Landmarks(12, rank=5)):
        model = KreinRidge(KERNEL, landmarks=landmarks, random_state=0, **TWO)
        whole = in_parts(clone(model), [50, 70])
        in_parts(model, [50, 3, 67])
        np.testing.assert_array_equal(model.landmark_indices_, whole.landmark_indices_)
        assert_same(whole.predict(X_NEW), model.predict(X_NEW))


def test_objects_given_as_landmarks_are_those_of_the_model():
    given = X_NEW[:7]
    for model in (make(KreinRidge, landmarks=given), make(SimilarityRidge, landmarks=given)):
        np.testing.assert_array_equal(model.partial_fit(X[:50], Y[:50]).landmarks_, given)
        np.testing.assert_array_equal(clone(model).fit(X, Y).landmarks_, given)


def test_a_width_from_the_data_is_that_of_the_first_part():
    model = KreinRidge(landmarks=Z, **TWO).partial_fit(X[:50], Y[:50])
    first = model.kernel_
    model.partial_fit(3 * X[50:], Y[50:])
    assert model.kernel_ is first


def test_pickled_between_parts():
    model = make(KreinRidge).partial_fit(X[:60], Y[:60])
    again = pickle.loads(pickle.dumps(model))
    for one in (model, again):
        one.partial_fit(X[60:], Y[60:])
    np.testing.assert_array_equal(model.predict(X_NEW), again.predict(X_NEW))


def test_fit_starts_anew():
    model = in_parts(make(KreinRidge), [40, 80])
    model.fit(X[:30], Y[:30])
    fresh = make(KreinRidge).fit(X[:30], Y[:30])
    np.testing.assert_array_equal(model.predict(X_NEW), fresh.predict(X_NEW))


# After a fit


@weights
@pytest.mark.parametrize("learner", [*REGRESSORS, *CLASSIFIERS])
def test_partial_fit_goes_on_from_a_fit(learner, w):
    y, first, rest = LABELS if learner in CLASSIFIERS else Y, slice(0, 60), slice(60, N)
    w_first, w_rest = (None, None) if w is None else (w[first], w[rest])
    whole = make(learner).fit(X, y, sample_weight=w)
    model = make(learner).fit(X[first], y[first], sample_weight=w_first)
    model.partial_fit(X[rest], y[rest], sample_weight=w_rest)
    assert_same(scores(whole), scores(model))
    again = pickle.loads(pickle.dumps(make(learner).fit(X[first], y[first], w_first)))
    again.partial_fit(X[60:100], y[60:100], sample_weight=None if w is None else w[60:100])
    again.partial_fit(X[100:], y[100:], sample_weight=None if w is None else w[100:])
    assert_same(scores(whole), scores(again))


@weights
@pytest.mark.parametrize("unit", [1.0, 2.0**-300])
def test_it_goes_on_from_a_fit_with_all_objects_as_landmarks(w, unit):
    """The definition, with the objects of the fit as landmarks, for kernels of any size."""

    def k(A, B):
        return similarity(A, B) * unit

    n, kept = 40, np.arange(40) if w is None else np.flatnonzero(W[:40])
    K = similarity(X, X[kept])
    first, rest = (None, None) if w is None else (w[:n], w[n:])
    penalties = {"lambda_plus": 2e-3 * unit, "lambda_minus": 3e-2 * unit}
    model = KreinRidge(k, landmarks=None, **penalties).fit(X[:n], Y[:n], sample_weight=first)
    assert model.n_landmarks_ == len(kept)
    model.partial_fit(X[n:], Y[n:], sample_weight=rest)
    root = np.ones(len(kept)) if w is None else np.sqrt(w[kept])
    D, U = np.linalg.eigh(root[:, None] * K[kept] * root)  # weights are repetitions
    Phi = K @ (root[:, None] * U * np.sign(D) / np.sqrt(np.abs(D)))
    weight = np.ones(N) if w is None else w
    A = np.column_stack([Phi, np.ones(N)])
    penalty = np.append(np.where(D > 0, 2e-3, 3e-2), 0.0) * weight.sum()
    wA = weight[:, None] * A
    coef = np.linalg.solve(A.T @ wA + np.diag(penalty), wA.T @ Y)
    assert_same(A @ coef, model.predict(X), rtol=1e-6)


@weights
def test_a_baseline_goes_on_from_a_fit_with_all_objects(w):
    n, kept = 40, np.arange(40) if w is None else np.flatnonzero(W[:40])
    first, rest = (None, None) if w is None else (w[:n], w[n:])
    model = SimilarityRidge(KERNEL, landmarks=None, lambda_plus=1e-2)
    model.fit(X[:n], Y[:n], sample_weight=first).partial_fit(X[n:], Y[n:], sample_weight=rest)
    given = SimilarityRidge(KERNEL, landmarks=X[kept], lambda_plus=1e-2).fit(X, Y, sample_weight=w)
    assert_same(given.predict(X_NEW), model.predict(X_NEW), rtol=1e-7)


def test_a_tuned_fit_goes_on_with_its_landmarks_similarity_and_penalties():
    words = [f"{'ab' * (i % 7)}{'c' * (i % 5)}" for i in range(60)]
    lengths = np.array([len(word) + word.count("c") for word in words], dtype=float)
    model = KreinRidge("levenshtein", random_state=0).fit(words[:50], lengths[:50])
    before = model.similarity_, model.lambda_plus_, model.landmarks_
    model.partial_fit(words[50:53], lengths[50:53])
    assert (model.similarity_, model.landmarks_) == (before[0], before[2])
    assert model.lambda_plus_ == pytest.approx(before[1], rel=1e-12)
    np.testing.assert_allclose(model.predict(words), lengths, atol=0.5)
    model.partial_fit(words * 2, np.concatenate([lengths, lengths]))
    assert model.lambda_plus_ != pytest.approx(before[1], rel=1e-3)


def test_a_precomputed_fit_goes_on():
    n = 40
    K = similarity(X, X[:n])
    model = KreinRidge("precomputed", landmarks=None, **TWO).fit(K[:n], Y[:n])
    model.partial_fit(K[n:], Y[n:])
    a, b = oracles.krein_ridge(K, K[:n], Y, (2e-3, 3e-2))
    assert_same(K @ a + b, model.predict(K), rtol=1e-6)


def test_targets_of_any_size_in_parts():
    """Targets whose squares underflow are summed in a unit of their own."""
    whole = make(KreinRidge).fit(X, Y)
    for unit in (2.0**-700, 2.0**400):
        model = in_parts(make(KreinRidge), [50, 70], y=Y * unit)
        assert_same(scores(whole), scores(model) / unit)
        model = make(KreinRidge).fit(X[:50], Y[:50] * unit).partial_fit(X[50:], Y[50:] * unit)
        assert_same(scores(whole), scores(model) / unit)
    model = make(KreinRidge).fit(X[:50], Y[:50] * 2.0**-700)
    with pytest.raises(ValueError, match=r"y is as large as .*, and the targets before were about"):
        model.partial_fit(X[50:], Y[50:])


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"cv": "loo"}, "partial_fit draws its folds"),
        ({"cv": KFold(3)}, "partial_fit draws its folds"),
    ],
)
def test_a_fit_that_cannot_be_continued_is_not_forgotten(params, message):
    model = KreinRidge(KERNEL, landmarks=Z, random_state=0, **params).fit(X, Y)
    before = model.predict(X_NEW)
    with pytest.raises(ValueError, match=message):
        model.partial_fit(X, Y)
    np.testing.assert_array_equal(model.predict(X_NEW), before)


def test_a_fit_without_sums_is_not_forgotten():
    model = make(KreinRidge).fit(X, Y)
    del model._fit_sums
    with pytest.raises(ValueError, match="kept no sums of a fit"):
        model.partial_fit(X, Y)


def test_adding_to_very_many_landmarks_keeps_to_the_memory_budget():
    model = make(KreinRidge, landmarks=None).fit(X, Y)
    model.set_params(resources=Resources(memory_budget=10**5))
    with pytest.raises(MemoryError, match="adding rows to a fit of 120 landmarks needs"):
        model.partial_fit(X, Y)


# Tuned


def test_tuned_on_more_rows_it_gets_better():
    def noisy(n, seed):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, 3))
        truth = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]
        return X, truth + 0.5 * rng.normal(size=n), truth

    X_test, _, truth = noisy(500, 99)
    model, errors, penalties = KreinRidge(KERNEL, landmarks=60, random_state=0), [], []
    for seed, n in enumerate([100, 400, 1600]):
        X, y, _ = noisy(n, seed)
        model.partial_fit(X, y)
        errors.append(np.mean((model.predict(X_test) - truth) ** 2))
        penalties.append(model.lambda_plus_)
    assert errors[2] < errors[1] < 0.7 * errors[0]
    assert len(set(penalties)) == 3


def test_tuned_penalties_are_as_good_as_any_equal_ones_tried():
    model = KreinRidge(KERNEL, landmarks=Z, random_state=0).partial_fit(X[:60], Y[:60])
    model.partial_fit(X[60:], Y[60:])
    trials = model.cv_trials_
    equal = trials[trials[:, 0] == trials[:, 1]]
    assert len(equal) >= 4
    assert model.cv_loss_ <= (1 + 2e-4) * equal[:, -1].min()
    a, b = oracles.krein_ridge(C, K_ZZ, Y, (model.lambda_plus_, model.lambda_minus_))
    assert_same(C_NEW @ a + b, model.predict(X_NEW), rtol=1e-7)


@pytest.mark.parametrize("learner", REGRESSORS)
@pytest.mark.parametrize("given", [{"landmarks": 25}, {"landmarks": None}])
def test_tuned_regressors_in_parts(learner, given):
    model = in_parts(learner(KERNEL, random_state=0, **given), [50, 40, 30])
    assert model.n_landmarks_ == (given["landmarks"] or 50)
    if learner is KreinVCRidge:
        np.testing.assert_allclose(model.predict(X).std(axis=0), Y.std(axis=0), rtol=1e-7)
    else:
        assert model.cv_loss_ < Y.var(axis=0).sum()


def test_a_few_more_rows_keep_the_penalties():
    """All first rows are landmarks: the few that are none are no basis for a choice."""
    model = KreinRidge(KERNEL, landmarks=None, random_state=0).partial_fit(X[:100], Y[:100])
    before = model.lambda_plus_, model.lambda_minus_
    model.partial_fit(X[100:110], Y[100:110])
    assert (model.lambda_plus_, model.lambda_minus_) == pytest.approx(before, rel=1e-12)
    model.partial_fit(RNG.normal(size=(400, 3)), RNG.normal(size=(400, 2)))
    assert model.lambda_plus_ != pytest.approx(before[0], rel=1e-3)


def test_a_seed_repeats_bit_for_bit():
    one, again, other = (
        in_parts(KreinRidge(KERNEL, landmarks=10, random_state=seed), [50, 70])
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(one.dual_coef_, again.dual_coef_)
    np.testing.assert_array_equal(one.cv_trials_, again.cv_trials_)
    assert not np.array_equal(one.dual_coef_, other.dual_coef_)


# What is refused


def test_labels_that_are_not_among_the_classes():
    model = make(KreinRidgeClassifier).partial_fit(X[:60], LABELS[:60])
    before = scores(model)
    with pytest.raises(ValueError, match=r"y has labels \[7\] that are not among classes"):
        model.partial_fit(X[60:], np.where(LABELS[60:] == 2, 7, LABELS[60:]))
    np.testing.assert_array_equal(scores(model), before)
    with pytest.raises(ValueError, match=r"y has labels \[2\] that are not among classes"):
        make(KreinRidgeClassifier).partial_fit(X, LABELS, classes=[0, 1])


def test_other_classes_than_at_first():
    model = make(KreinRidgeClassifier).partial_fit(X[:60], LABELS[:60], classes=[2, 1, 0])
    model.partial_fit(X[60:70], LABELS[60:70], classes=[0, 1, 2])
    with pytest.raises(ValueError, match=r"classes=\[0, 1\] differ from those of the first part"):
        model.partial_fit(X[60:], LABELS[60:], classes=[0, 1])


def test_balanced_classes_need_all_labels():
    model = make(KreinRidgeClassifier, class_weight="balanced")
    with pytest.raises(ValueError, match='class_weight="balanced" needs all labels at once'):
        model.partial_fit(X, LABELS)


def test_given_weights_of_classes():
    given = {0: 3.0, 1: 0.5, 2: 1.5}
    whole = make(KreinRidgeClassifier, class_weight=given).fit(X, LABELS)
    model = in_parts(make(KreinRidgeClassifier, class_weight=given), [50, 70], y=LABELS)
    assert_same(scores(whole), scores(model))


@pytest.mark.parametrize("cv", ["loo", [(np.arange(60), np.arange(60, N))]])
def test_folds_are_drawn(cv):
    with pytest.raises(ValueError, match="partial_fit draws its folds"):
        KreinRidge(KERNEL, cv=cv).partial_fit(X, Y)


def test_the_machine_has_no_parts():
    assert not hasattr(KreinSVC(), "partial_fit")


def test_other_columns_than_at_first():
    model = make(KreinRidge).partial_fit(X[:60], Y[:60])
    before = model.predict(X_NEW)
    with pytest.raises(ValueError, match="X has 2 features, but KreinRidge is expecting 3"):
        model.partial_fit(X[60:, :2], Y[60:])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.partial_fit(X[60:], Y[60:70])
    np.testing.assert_array_equal(model.predict(X_NEW), before)
    model.partial_fit(X[60:], Y[60:])
    assert_same(make(KreinRidge).fit(X, Y).predict(X_NEW), model.predict(X_NEW))


def test_a_kernel_that_fails_leaves_the_sums_as_they_were():
    def k(A, B):
        if fails:
            raise ZeroDivisionError
        return similarity(A, B)

    fails = []
    model = KreinRidge(k, landmarks=Z, **TWO).partial_fit(X[:60], Y[:60])
    fails.append(True)
    with pytest.raises(ZeroDivisionError):
        model.partial_fit(X[60:], Y[60:])
    fails.clear()
    model.partial_fit(X[60:], Y[60:])
    assert_same(make(KreinRidge).fit(X, Y).predict(X_NEW), model.predict(X_NEW))


def test_widths_are_chosen_by_the_first_part():
    grid = [{"width": 1.0}, {"width": 20.0}]
    model = KreinRidge("gaussian", kernel_params=grid, landmarks=Z, random_state=0, **TWO)
    model.partial_fit(X[:60], Y[:60])
    chosen = model.kernel_params_
    model.partial_fit(X[60:], Y[60:])
    assert model.kernel_params_ == chosen
    given = KreinRidge("gaussian", kernel_params=chosen, landmarks=Z, **TWO).fit(X, Y)
    assert_same(given.predict(X_NEW), model.predict(X_NEW))


# Parts of a classifier with all defaults, of many outputs, of a tuned radius


def test_probabilities_are_refused():
    with pytest.raises(ValueError, match="probability"):
        make(KreinRidgeClassifier, probability=True).partial_fit(X, LABELS)


def test_another_number_of_outputs_changes_nothing():
    model = make(KreinRidge).partial_fit(X[:60], Y[:60, 0])
    before = model.predict(X_NEW)
    with pytest.raises(ValueError, match="output"):
        model.partial_fit(X[60:], Y[60:])
    np.testing.assert_array_equal(model.predict(X_NEW), before)
    model.partial_fit(X[60:], Y[60:, 0])
    assert_same(make(KreinRidge).fit(X, Y[:, 0]).predict(X_NEW), model.predict(X_NEW))


def test_a_few_more_rows_keep_the_tuned_radius():
    model = KreinVCRidge(KERNEL, landmarks=None, radius="tuned", random_state=0)
    model.partial_fit(X[:100], Y[:100])
    factor = model.radius_ / Y[:100].std(axis=0)
    assert (factor < 0.95).all()
    model.partial_fit(X[100:102], Y[100:102])
    np.testing.assert_allclose(model.radius_ / Y[:102].std(axis=0), factor, rtol=1e-9)
