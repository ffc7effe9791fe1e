"""Probabilities: on the side of the decision function, and of objects that were left out."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.spatial.distance import pdist
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold

from kreinlearn import (
    KreinRidgeClassifier,
    KreinSVC,
    KreinVCRidgeClassifier,
    Landmarks,
    SimilarityRidgeClassifier,
)
from kreinlearn.estimators.calibration import calibration_of, fixed, folds_of
from kreinlearn.kernels import GaussianCombination, pairwise

RNG = np.random.default_rng(81)
N = 90
X, X_NEW = RNG.normal(size=(N, 3)), RNG.normal(size=(60, 3))
KERNEL = GaussianCombination(weights=(1.0, -0.7), widths=(6.0, 1.5), unit=1.0)
CLASSIFIERS = [KreinRidgeClassifier, KreinVCRidgeClassifier, KreinSVC, SimilarityRidgeClassifier]
classifiers = pytest.mark.parametrize("learner", CLASSIFIERS)


def truth(X):
    return np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]


BINARY = truth(X) + 0.5 * RNG.normal(size=N) > 0.3
LABELS = np.array(["b", "c", "a"])[np.digitize(truth(X), [-0.5, 0.5])]


def make(learner=KreinRidgeClassifier, kernel=KERNEL, **params):
    names = {"lambda_plus", "lambda_minus"} & {*learner().get_params()}
    given = {"landmarks": 20, "random_state": 0, **dict.fromkeys(names, 0.02)}
    return learner(kernel, probability=True, **given | params)


def similarity(A, B):
    d2 = ((A[:, None] - B[None]) ** 2).sum(2)
    return np.exp(-d2 / 6) - 0.7 * np.exp(-d2 / 1.5)


# Consistent with the decision function


@classifiers
@pytest.mark.parametrize("tuned", [False, True])
def test_two_classes_are_ranked_alike(learner, tuned):
    params = {"lambda_plus": "auto"} if tuned else {}
    model = make(learner, **params).fit(X, BINARY)
    p, f = model.predict_proba(X_NEW), model.decision_function(X_NEW)
    assert p.shape == (60, 2)
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-12)
    assert (np.diff(p[np.argsort(f), 1]) > 0).all()
    y_new = truth(X_NEW) > 0.3
    assert roc_auc_score(y_new, p[:, 1]) == roc_auc_score(y_new, f)
    assert np.ptp(p[:, 1]) > 0.1


@classifiers
@pytest.mark.parametrize("way", ["ovr", "ovo"])
def test_many_classes(learner, way):
    model = make(learner, multi_class=way).fit(X, LABELS)
    p, f = model.predict_proba(X_NEW), model.decision_function(X_NEW)
    assert p.shape == (60, 3)
    assert (p >= 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_array_equal(model.classes_, ["a", "b", "c"])
    sigmoids = model._calibration.calibrators
    each = np.column_stack([sigmoid.predict(f[:, j]) for j, sigmoid in enumerate(sigmoids)])
    np.testing.assert_allclose(p, each / each.sum(axis=1, keepdims=True), rtol=1e-12)
    for rising, scores in zip(each.T, f.T, strict=True):
        assert (np.diff(rising[np.argsort(scores)]) >= 0).all()


def sides(learner, seed):
    """AUC of decisions and of probabilities for new objects, labels being noise."""
    rng = np.random.default_rng(seed)
    A, B = rng.normal(size=(40, 3)), rng.normal(size=(40, 3))
    y, y_new = rng.permutation(np.arange(40) % 2), np.arange(40) % 2
    model = make(learner, landmarks=A[:10]).fit(A, y)
    p = model.predict_proba(B)[:, 1]
    return roc_auc_score(y_new, model.decision_function(B)), roc_auc_score(y_new, p), p


@pytest.mark.parametrize("learner", [KreinRidgeClassifier, KreinSVC])
def test_labels_that_are_noise_never_turn_the_ranking_round(learner):
    constant = 0
    for seed in range(20):
        of_decisions, of_probabilities, p = sides(learner, seed)
        if np.ptp(p) == 0:
            constant += 1
            assert p[0] == pytest.approx(0.5, abs=1e-9)  # the prior
            assert of_probabilities == 0.5
        else:
            assert of_probabilities == of_decisions
    assert 2 <= constant <= 18  # both happen


def test_the_prior_is_that_of_the_weights():
    """Left-out decisions that are worse than none: every fifth seed or so."""
    found = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        A, y, w = rng.normal(size=(40, 3)), rng.permutation(np.arange(40) % 4 == 0), rng.random(40)
        model = make(landmarks=A[:10]).fit(A, y, sample_weight=w)
        p = model.predict_proba(A)[:, 1]
        if np.ptp(p) == 0:
            assert p[0] == pytest.approx(w[y].sum() / w.sum(), rel=1e-9)
            found.append(seed)
    assert found


# Of objects that were left out


def test_memorised_labels_are_no_evidence():
    """All labels are learned by heart; they are noise, and the probabilities say so."""
    rng = np.random.default_rng(1)
    y = rng.permutation(np.arange(N) % 2)
    model = make(landmarks=None, lambda_plus=1e-7, lambda_minus=1e-7).fit(X, y)
    assert (np.sign(model.decision_function(X)) == 2 * y - 1).all()
    assert np.abs(model.predict_proba(X)[:, 1] - 0.5).max() < 0.25


def platt(f, y, w):
    """argmin of the log loss of 1 / (1 + exp(a f + b)) with Platt's targets."""
    positive, negative = w[y == 1].sum(), w[y == 0].sum()
    t = np.where(y == 1, (positive + 1) / (positive + 2), 1 / (negative + 2))

    def loss(ab):
        margin = ab[0] * f + ab[1]
        return w @ (t * margin + np.logaddexp(0, -margin))

    return minimize(loss, [-1.0, 0.0], method="BFGS", options={"gtol": 1e-9}).x


class Recorder(KreinRidgeClassifier):
    """Remembers which rows it was fitted on and which it decided."""

    calls: list = []

    def fit(self, X, y, sample_weight=None):
        Recorder.calls.append({tuple(x) for x in X})
        return super().fit(X, y, sample_weight=sample_weight)

    def decision_function(self, X):
        assert not {tuple(x) for x in X} & Recorder.calls[-1]
        return super().decision_function(X)


@pytest.mark.parametrize("w", [None, RNG.uniform(0.3, 2, N)], ids=["plain", "weighted"])
def test_a_sigmoid_is_fitted_to_decisions_of_rows_left_out(w):
    decided = {}

    class Kept(Recorder):
        def decision_function(self, X):
            f = super().decision_function(X)
            decided.update({tuple(x): value for x, value in zip(X, f, strict=True)})
            return f

    Recorder.calls = []
    plain = Kept(KERNEL, landmarks=X[:15], lambda_plus=0.02, lambda_minus=0.02)
    y = BINARY.astype(int)
    (sigmoid,) = calibration_of(plain, X, y, w).calibrators
    f = np.array([decided[tuple(x)] for x in X])
    assert len(Recorder.calls) == 6  # five parts, and the model of all
    a, b = platt(f, y, np.ones(N) if w is None else w)
    assert (sigmoid.a_, sigmoid.b_) == pytest.approx((a, b), rel=1e-3, abs=1e-4)


def test_what_was_found_is_given_to_the_models_of_the_parts():
    params = {"lambda_plus": "auto", "lambda_minus": "auto", "multi_class": "auto"}
    model = make(kernel="manhattan", **params).fit(X, LABELS)
    part = fixed(model)
    for name in ("lambda_plus", "lambda_minus", "multi_class", "similarity"):
        assert getattr(part, name) == getattr(model, f"{name}_")
    assert not part.probability
    assert round(part.landmarks.n * N) == 20
    grid = [{"width": 2.0}, {"width": 8.0}]
    model = make(kernel="gaussian", kernel_params=grid).fit(X, BINARY)
    assert fixed(model).kernel_params == model.kernel_params_
    sparse = make(KreinSVC, lambda_l1="auto", lambda_plus=0, lambda_minus=0).fit(X, BINARY)
    assert fixed(sparse).lambda_l1 == sparse.lambda_l1_


# Who has probabilities


@classifiers
def test_no_probabilities_unless_they_are_asked_for(learner):
    assert not hasattr(learner(), "predict_proba")
    assert hasattr(learner(probability=True), "predict_proba")
    with pytest.raises(AttributeError, match="predict_proba"):
        make(learner).set_params(probability=False).fit(X, BINARY).predict_proba(X)
    with pytest.raises(NotFittedError):
        make(learner).predict_proba(X)


@classifiers
def test_probabilities_change_nothing_else(learner):
    one, other = (make(learner).set_params(probability=p).fit(X, LABELS) for p in (True, False))
    np.testing.assert_array_equal(one.dual_coef_, other.dual_coef_)
    np.testing.assert_array_equal(one.predict(X_NEW), other.predict(X_NEW))


def test_weights_of_classes_go_by_their_labels():
    """The same classes by letters or by numbers: the folds see numbers of their own."""
    numbers = np.searchsorted(["a", "b", "c"], LABELS) + 1
    by_letter = make(class_weight={"a": 5.0, "b": 1.0, "c": 0.2}).fit(X, LABELS)
    by_number = make(class_weight={1: 5.0, 2: 1.0, 3: 0.2}).fit(X, numbers)
    found = by_letter.predict_proba(X_NEW)
    np.testing.assert_array_equal(found, by_number.predict_proba(X_NEW))
    plain = make().fit(X, LABELS).predict_proba(X_NEW)
    assert np.abs(found - plain).max() > 0.01
    np.testing.assert_array_equal(by_letter.classes_, ["a", "b", "c"])


def test_a_seed_repeats():
    one, again, other = (
        make(lambda_plus="auto", random_state=seed).fit(X, BINARY).predict_proba(X_NEW)
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(one, again)
    assert not np.array_equal(one, other)


@classifiers
def test_pickled_and_cloned(learner):
    model = make(learner).fit(X, LABELS)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X_NEW), model.predict_proba(X_NEW))
    with pytest.raises(NotFittedError):
        clone(model).predict_proba(X_NEW)


def test_the_error_says_how_to_get_probabilities():
    model = KreinRidgeClassifier().fit(X, LABELS)
    with pytest.raises(AttributeError) as caught:
        model.predict_proba(X)
    assert "KreinRidgeClassifier(probability=True, ...)" in str(caught.value.__cause__)


def test_fit_without_probabilities_forgets_them():
    model = make().fit(X, BINARY).set_params(probability=False).fit(X, BINARY)
    assert not hasattr(model, "_calibration")


# Other inputs


@classifiers
def test_a_matrix_is_cut_both_ways(learner):
    params = {"landmarks": None, "multi_class": "ovr"}
    vectors = make(learner, **params).fit(X, LABELS)
    matrix = make(learner, "precomputed", **params).fit(similarity(X, X), LABELS)
    p = matrix.predict_proba(similarity(X_NEW, X))
    np.testing.assert_allclose(p, vectors.predict_proba(X_NEW), rtol=0, atol=1e-5)


def test_objects_and_distances():
    def k(a, b):
        return float(similarity(np.array([a]), np.array([b]))[0, 0])

    objects = [tuple(x) for x in X]
    params = {"landmarks": objects[:10]}
    model = make(kernel=pairwise(k), **params).fit(objects, BINARY)
    vectors = make(landmarks=X[:10]).fit(X, BINARY)
    p = model.predict_proba([tuple(x) for x in X_NEW])
    np.testing.assert_allclose(p, vectors.predict_proba(X_NEW), rtol=0, atol=1e-9)
    D = np.abs(X[:, None] - X[None]).sum(2)
    for given in ("exp", "auto"):
        model = make(kernel="precomputed_dissimilarity", similarity=given).fit(D, BINARY)
        assert model.predict_proba(D).shape == (N, 2)


@pytest.mark.parametrize("norms", [{"lambda_plus": 0, "lambda_minus": 0}, {}], ids=["l1", "both"])
def test_a_sparse_machine(norms):
    model = make(KreinSVC, lambda_l1=0.05, **norms).fit(X, BINARY)
    p, f = model.predict_proba(X_NEW)[:, 1], model.decision_function(X_NEW)
    assert (np.diff(p[np.argsort(f)]) >= 0).all()
    assert np.ptp(p) > 0.1


@classifiers
def test_a_class_with_one_member(learner):
    y = np.where(np.arange(N) == 3, "one", BINARY.astype(str))
    message = "probability=True needs at least two members of every class, got a class with one"
    model = make(learner, multi_class="ovr")
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    with pytest.raises(NotFittedError):
        model.predict(X)
    model.set_params(probability=False).fit(X, y)


def test_a_class_with_two_members():
    y = np.where(np.arange(N) < 2, "two", BINARY.astype(str))
    p = make(multi_class="ovr").fit(X, y).predict_proba(X_NEW)
    np.testing.assert_allclose(p.sum(axis=1), 1)


# Parameters that name rows, or their number: parts of the rows have fewer


def test_landmarks_by_row_number():
    model = make(landmarks=np.arange(N - 20, N)).fit(X, BINARY)
    objects = make(landmarks=X[N - 20 :]).fit(X, BINARY)
    f, f_objects = model.decision_function(X_NEW), objects.decision_function(X_NEW)
    np.testing.assert_allclose(f, f_objects, rtol=0, atol=1e-9)
    p = model.predict_proba(X_NEW)
    np.testing.assert_allclose(p, objects.predict_proba(X_NEW), rtol=0, atol=1e-7)


def test_columns_of_landmarks_are_not_enough():
    Z = np.arange(20)
    params = {"landmarks": Z}
    with pytest.raises(ValueError, match="landmark columns are not enough for; pass all"):
        make(kernel="precomputed", **params).fit(similarity(X, X[Z]), BINARY)


def test_folds_of_ones_own():
    model = make(lambda_plus="auto", cv=list(KFold(3).split(X))).fit(X, BINARY)
    assert model.predict_proba(X_NEW).shape == (60, 2)


def test_nearly_all_objects_as_landmarks():
    assert make(landmarks=N - 1).fit(X, BINARY).predict_proba(X_NEW).shape == (60, 2)


def test_a_rank_of_nearly_all_objects():
    model = make(landmarks=Landmarks(None, rank=N - 1)).fit(X, BINARY)
    assert model.predict_proba(X_NEW).shape == (60, 2)


def test_condensed_distances():
    model = make(kernel="precomputed_dissimilarity", similarity="exp").fit(pdist(X), BINARY)
    D = np.sqrt(((X[:, None] - X[None]) ** 2).sum(2))
    square = make(kernel="precomputed_dissimilarity", similarity="exp").fit(D, BINARY)
    p = model.predict_proba(D)
    np.testing.assert_allclose(p, square.predict_proba(D), rtol=0, atol=1e-9)


def test_a_rare_class_keeps_five_folds_of_calibration():
    labels = np.repeat([0, 1, 2], [30, 2, 28])
    splits = folds_of(labels)
    assert len(splits) == 5
    assert all(set(labels[train]) == {0, 1, 2} for train, _ in splits)
    assert sorted(np.concatenate([test for _, test in splits])) == list(range(60))
    assert len(folds_of(np.repeat([0, 1, 2], 2))) == 2
