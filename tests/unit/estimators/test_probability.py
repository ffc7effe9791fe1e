"""Probabilities: on the side of the decision function, and of objects that were left out."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar
from scipy.spatial.distance import pdist
from scipy.special import log_softmax
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold

from kreinlearn import (
    KreinRidgeClassifier,
    KreinSVC,
    KreinVCRidgeClassifier,
    Landmarks,
    Resources,
    SimilarityRidgeClassifier,
    SpectrumSVC,
)
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
def test_many_classes(learner):
    model = make(learner).fit(X, LABELS)
    p, f = model.predict_proba(X_NEW), model.decision_function(X_NEW)
    assert p.shape == (60, 3)
    assert (p >= 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_array_equal(model.classes_, ["a", "b", "c"])
    np.testing.assert_array_equal(model.classes_[np.argmax(p, axis=1)], model.predict(X_NEW))
    ratios, gaps = np.log(p[:, :1] / p), f[:, :1] - f  # one temperature for all classes
    (t,) = np.unique(model._calibration.pairs[:, 0])
    assert t > 0
    np.testing.assert_allclose(ratios, t * gaps, rtol=0, atol=1e-12 * (1 + np.abs(t * f).max()))


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


def temperature(F, labels, w):
    """argmin of the log loss of softmax(t F), of labels one of which is taken to be wrong.

    The ridge is the mean square of t F about the mean of each row.
    """
    n, k = w.sum(), F.shape[1]
    T = np.full(F.shape, 1 / (n + 2) / k) + (1 - 1 / (n + 2)) * np.eye(k)[labels]
    size = w @ np.square(F - F.mean(axis=1, keepdims=True)).mean(axis=1) / n
    loss = lambda t: size * t**2 - w @ (T * log_softmax(t * F, axis=1)).sum(axis=1)  # noqa: E731
    return minimize_scalar(loss, bounds=(0, 100), method="bounded", options={"xatol": 1e-9}).x


def by_folds(model, fresh, X, y, w=None):
    """Scores of all rows by fresh models of the other folds: the mean over all rounds."""
    rounds = np.reshape(model.folds_, (len(y), -1)).T
    assert (rounds >= 0).all()
    scores = None
    for folds in rounds:
        for k in range(folds.max() + 1):
            train = folds != k
            part = fresh().fit(X[train], y[train], sample_weight=None if w is None else w[train])
            f = part.decision_function(X[~train])
            scores = np.zeros((len(y), *f.shape[1:])) if scores is None else scores
            scores[~train] += f / len(rounds)
    return scores


W = RNG.uniform(0.3, 2, N)
weights = pytest.mark.parametrize("w", [None, W], ids=["plain", "weighted"])
OPTIONS = [
    (KreinRidgeClassifier, {}),
    (KreinVCRidgeClassifier, {"radius": 0.6}),
    (KreinSVC, {}),
    (KreinSVC, {"lambda_l1": 0.05}),
    (SimilarityRidgeClassifier, {}),
]
options = pytest.mark.parametrize(("learner", "more"), OPTIONS)


@options
@weights
def test_a_sigmoid_of_rows_left_out_by_folds(learner, more, w):
    """Landmarks from outside X are the same in every fold, so that parts can be fitted again."""
    params = {"landmarks": X_NEW[:15], **more}
    model = make(learner, **params).fit(X, BINARY, sample_weight=w)
    plain = make(learner, **params).set_params(probability=False)
    f = by_folds(model, lambda: clone(plain), X, BINARY, w)
    own = np.ones(N) if w is None else w * N / w.sum()
    expected = platt(f, BINARY.astype(int), own)
    np.testing.assert_allclose(model._calibration.pairs[0], expected, rtol=1e-4, atol=1e-5)


@options
def test_a_temperature_of_rows_left_out_by_folds(learner, more):
    params = {"landmarks": X_NEW[:15], **more}
    model = make(learner, **params).fit(X, LABELS)
    plain = make(learner, **params).set_params(probability=False)
    F = by_folds(model, lambda: clone(plain), X, LABELS)
    expected = temperature(F, np.searchsorted(model.classes_, LABELS), np.ones(N))
    np.testing.assert_allclose(model._calibration.pairs[:, 0], expected, rtol=1e-3)
    np.testing.assert_array_equal(model._calibration.pairs[:, 1], 0)


@pytest.mark.parametrize("w", [None, RNG.integers(1, 4, N)], ids=["plain", "weighted"])
@pytest.mark.parametrize("given", [True, False], ids=["given", "tuned"])
def test_one_object_at_a_time_if_all_are_landmarks_and_that_is_asked_for(w, given):
    params = (
        {"cv": "loo"} if given else {"cv": "loo", "lambda_plus": "auto", "lambda_minus": "auto"}
    )
    model = make(landmarks=None, **params).fit(X, BINARY, sample_weight=w)
    plus, minus = model.lambda_plus_, model.lambda_minus_
    weights, f = np.ones(N) if w is None else w, np.empty(N)
    total = weights.sum()
    for i in range(N):
        rest = np.arange(N) != i
        larger = total / (total - weights[i])  # the penalties of all objects
        one = make(landmarks=None, lambda_plus=plus * larger, lambda_minus=minus * larger)
        one.set_params(probability=False).fit(X[rest], BINARY[rest], sample_weight=weights[rest])
        f[i] = one.decision_function(X[[i]])[0]
    expected = platt(f, BINARY.astype(int), weights * N / total)
    np.testing.assert_allclose(model._calibration.pairs[0], expected, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("learner", [KreinRidgeClassifier, KreinSVC])
@pytest.mark.parametrize("y", [BINARY, LABELS], ids=["two", "three"])
def test_models_of_two_rounds_of_folds_if_all_objects_are_landmarks(learner, y):
    params = {"landmarks": None}
    model = make(learner, **params).fit(X, y)
    assert model.folds_.shape == (N, 2)
    plain = make(learner, **params).set_params(probability=False)
    f, labels = by_folds(model, lambda: clone(plain), X, y), np.searchsorted(model.classes_, y)
    if y is BINARY:
        expected = platt(f, labels, np.ones(N))
        np.testing.assert_allclose(model._calibration.pairs[0], expected, rtol=1e-4, atol=1e-5)
    else:
        expected = temperature(f, labels, np.ones(N))
        np.testing.assert_allclose(model._calibration.pairs[:, 0], expected, rtol=1e-3)


def test_weights_of_classes_are_divided_out():
    """Probabilities are those of the data, and not of classes that are equally frequent."""
    rng = np.random.default_rng(5)
    A, y = rng.normal(size=(900, 1)), rng.choice(3, 900, p=[0.7, 0.2, 0.1])
    A += 0.8 * y[:, None]
    for labels in (y, y > 0):
        plain = make(landmarks=30).fit(A, labels)
        balanced = make(landmarks=30, class_weight="balanced").fit(A, labels)
        assert (plain.predict(A) != balanced.predict(A)).mean() > 0.1
        for model in (plain, balanced):
            mean = model.predict_proba(A).mean(axis=0)
            np.testing.assert_allclose(mean, np.bincount(labels) / 900, atol=0.06)


# No pair twice


class Counted:
    """A similarity of two vectors that counts its calls."""

    def __init__(self):
        self.calls = 0

    def __call__(self, a, b):
        self.calls += 1
        d2 = float(((a - b) ** 2).sum())
        return np.exp(-d2 / 6) - 0.7 * np.exp(-d2 / 1.5)


PROBES = 2 * 50 + 8  # pairs that are evaluated to see whether the function is symmetric


@pytest.mark.parametrize(("learner", "more"), [*OPTIONS, (KreinRidgeClassifier, {"cv": "loo"})])
@pytest.mark.parametrize(("m", "tuned"), [(None, False), (20, True), (20, False), (60, True)])
def test_no_pair_is_evaluated_twice(learner, more, m, tuned):
    f, given = Counted(), {"lambda_plus": "auto"} if tuned else {}
    rows = [*X]
    make(learner, pairwise(f), landmarks=m, **given, **more).fit(rows, LABELS)
    pairs = N * (N + 1) // 2 if m is None else m * (m + 1) // 2 + m * (N - m)
    extra = 0 if m is None else N  # k(x, x), by which landmarks are chosen
    assert f.calls <= pairs + extra + PROBES


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
    size = np.abs(other.dual_coef_).max()  # rows are summed in another order, and that is all
    np.testing.assert_allclose(one.dual_coef_, other.dual_coef_, rtol=0, atol=1e-11 * size)
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
    assert "KreinRidgeClassifier(probability=True, ...)" in str(caught.value)
    with pytest.raises(AttributeError, match=r"take KreinSVC\(probability=True, \.\.\.\)"):
        _ = SpectrumSVC().predict_proba
    assert not hasattr(SpectrumSVC(), "predict_proba")
    assert "One probability per class" in (KreinSVC.predict_proba.__doc__ or "")


def test_fit_without_probabilities_forgets_them():
    model = make().fit(X, BINARY).set_params(probability=False).fit(X, BINARY)
    assert not hasattr(model, "_calibration")


# Other inputs


@classifiers
def test_a_matrix_is_cut_both_ways(learner):
    params = {"landmarks": None}
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
@pytest.mark.parametrize("landmarks", [None, 20])
def test_a_class_with_one_member(learner, landmarks):
    y = np.where(np.arange(N) == 3, "one", BINARY.astype(str))
    p = make(learner, landmarks=landmarks).fit(X, y).predict_proba(X_NEW)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert p[:, 2].mean() < 0.3


def test_a_class_with_two_members():
    y = np.where(np.arange(N) < 2, "two", BINARY.astype(str))
    p = make().fit(X, y).predict_proba(X_NEW)
    np.testing.assert_allclose(p.sum(axis=1), 1)


# Rows that are elsewhere, and parts of a matrix


@classifiers
def test_columns_of_landmarks_are_enough(learner):
    Z = np.arange(20)
    columns = make(learner, "precomputed", landmarks=Z).fit(similarity(X, X[Z]), BINARY)
    square = make(learner, "precomputed", landmarks=Z).fit(similarity(X, X), BINARY)
    K = similarity(X_NEW, X)
    p = columns.predict_proba(K[:, Z])
    np.testing.assert_allclose(p, square.predict_proba(K), rtol=0, atol=1e-9)


@classifiers
def test_rows_of_a_file(learner, tmp_path):
    np.save(tmp_path / "X.npy", X)
    p = make(learner).fit(tmp_path / "X.npy", LABELS).predict_proba(X_NEW)
    here = make(learner).fit(X, LABELS)
    np.testing.assert_allclose(p, here.predict_proba(X_NEW), rtol=0, atol=1e-9)


@classifiers
def test_rows_on_dask(learner):
    da = pytest.importorskip("dask.array")
    given = {"landmarks": X_NEW[:15]}
    p = make(learner, **given).fit(da.from_array(X, (30, 3)), LABELS).predict_proba(X_NEW)
    assert p.shape == (60, 3)
    here = make(learner, **given).fit(X, LABELS).predict_proba(X_NEW)
    assert np.abs(p - here).max() < 0.05  # by other folds


CALLS = [0]


def counted(a, b):
    CALLS[0] += 1
    return float(np.exp(-((a - b) ** 2).sum() / 3))


def test_a_store_of_values(tmp_path):
    store, found = Resources(store=tmp_path / "store"), []
    for _ in range(2):
        before = CALLS[0]
        model = make(kernel=pairwise(counted), resources=store).fit([*X], BINARY)
        found.append((CALLS[0] - before, model.predict_proba([*X_NEW])))
    assert found[1][0] <= PROBES < found[0][0]
    np.testing.assert_array_equal(found[0][1], found[1][1])


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
