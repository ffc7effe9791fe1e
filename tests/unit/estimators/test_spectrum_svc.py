"""SpectrumSVC against SVC on matrices corrected by other routes; its C, its weights, its inputs."""

from __future__ import annotations

import pickle
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC
from sklearn.utils import estimator_checks
from sklearn.utils._param_validation import InvalidParameterError

from kreinlearn import Resources, SpectrumSVC, dissimilarity, pairwise
from kreinlearn._warnings import RareClasses
from kreinlearn.estimators import spectrum_svc
from kreinlearn.kernels import Gaussian, Sigmoid
from tests import oracles

Array = NDArray[Any]

SPECTRA = ["flip", "clip", "shift", "square"]
CORRECTED = {
    "flip": oracles.flipped,
    "clip": oracles.clipped,
    "shift": oracles.shifted,
    "square": oracles.squared,
}
GRID = np.array([1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3, 1e4])


# Another route: numpy for the matrices, scikit-learn for the machine


def distances(A: Array, B: Array) -> Array:
    return np.sqrt(np.square(A[:, None, :] - B[None, :, :]).sum(axis=2))


def rough(A: Array, B: Array) -> Array:
    """A difference of exponentials: indefinite, far from singular, the negative part matters."""
    d = distances(A, B)
    return np.exp(-4 * d) - 0.8 * np.exp(-d)


def mapped(K: Array, H: Array, K_x: Array, how: str) -> Array:
    return K_x if how == "shift" else oracles.carried_to_new_rows(K, H, K_x)


def by_hand(K: Array, K_x: Array, y: Array, how: str, **params: Any) -> tuple[SVC, Array]:
    """SVC on the corrected matrix, and its decisions on new rows."""
    weight = params.pop("sample_weight", None)
    H = CORRECTED[how](K)
    svc = SVC(kernel="precomputed", tol=1e-8, **params).fit(H, y, sample_weight=weight)
    return svc, svc.decision_function(mapped(K, H, K_x, how))


def voted(scores: Array, classes: Array) -> Array:
    return classes[(scores > 0).astype(int) if scores.ndim == 1 else np.argmax(scores, axis=1)]


@pytest.fixture
def exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """The optimum itself: the problems here are small and well-conditioned."""
    monkeypatch.setattr(spectrum_svc, "TOL", 1e-8)


@pytest.fixture(scope="module")
def data() -> tuple[Array, Array]:
    rng = np.random.default_rng(7)
    return rng.normal(size=(70, 2)), rng.normal(size=(40, 2))


def target(X: Array, n_classes: int) -> Array:
    """Classes by angle: no line separates them."""
    names = np.array(["ant", "bee", "cow", "dog", "eel"])
    turn = np.arctan2(X[:, 1], X[:, 0]) / np.pi + 1
    return names[(turn * n_classes * 0.999).astype(int) % n_classes]


def same_scores(actual: Array, expected: Array, rtol: float = 2e-5) -> None:
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual, expected, rtol=0, atol=rtol * np.abs(expected).max())


def test_the_kernel_of_these_tests(data: Any) -> None:
    K = rough(data[0], data[0])
    D = np.linalg.eigvalsh(K)
    assert D[0] < -1 < 0.1 < D[-1]
    assert np.linalg.cond(K) < 1e4


# The machine


@pytest.mark.usefixtures("exact")
@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("how", SPECTRA)
def test_decisions_are_those_of_svc_on_the_corrected_matrix(
    data: Any, how: str, n_classes: int
) -> None:
    X, X_new = data
    y = target(X, n_classes)
    svc, expected = by_hand(rough(X, X), rough(X_new, X), y, how, C=2.0)
    model = SpectrumSVC(rough, spectrum=how, C=2.0).fit(X, y)
    same_scores(model.decision_function(X_new), expected)
    np.testing.assert_array_equal(model.predict(X_new), voted(expected, svc.classes_))
    np.testing.assert_array_equal(model.classes_, svc.classes_)
    np.testing.assert_array_equal(model.support_, np.sort(svc.support_))
    assert model.C_ == 2.0
    assert model.dual_coef_.shape == (70, n_classes * (n_classes - 1) // 2)


@pytest.mark.usefixtures("exact")
def test_proposition_2(data: Any) -> None:
    """Loosli's Krein SVM: the machine with H = |K|, and k_x' P, P = U sign(D) U', on new rows."""
    X, X_new = data
    y = target(X, 2)
    K = rough(X, X)
    D, U = np.linalg.eigh(K)
    H, P = (U * np.abs(D)) @ U.T, (U * np.sign(D)) @ U.T
    np.testing.assert_allclose(P, oracles.matrix_sign(K), atol=1e-11)
    svc = SVC(C=5.0, kernel="precomputed", tol=1e-8).fit(H, y)
    model = SpectrumSVC("precomputed", spectrum="flip", C=5.0).fit(K, y)
    K_x = rough(X_new, X)
    same_scores(model.decision_function(K_x), svc.decision_function(K_x @ P))


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_unpacked_coefficients_are_those_of_libsvm(data: Any, n_classes: int) -> None:
    X, X_new = data
    H = oracles.flipped(rough(X, X))
    H_x = mapped(rough(X, X), H, rough(X_new, X), "flip")
    svc = SVC(kernel="precomputed").fit(H, target(X, n_classes))
    coef, intercept = spectrum_svc.unpacked(svc)
    scores = spectrum_svc.votes_of_pairs(H_x[:, svc.support_] @ coef + intercept, n_classes)
    np.testing.assert_allclose(scores, svc.decision_function(H_x), rtol=0, atol=1e-9)


@pytest.mark.parametrize("how", ["flip", "square"])
def test_raw_rows_would_be_something_else(data: Any, how: str) -> None:
    """The machine of the corrected matrix on raw new rows: what must not happen."""
    X, X_new = data
    y, y_new = target(X, 2), target(X_new, 2)
    svc, _ = by_hand(rough(X, X), rough(X_new, X), y, how, C=100.0)
    model = SpectrumSVC(rough, spectrum=how, C=100.0).fit(X, y)
    raw = svc.decision_function(rough(X_new, X))
    assert np.abs(model.decision_function(X_new) - raw).max() > np.abs(raw).max() / 2
    assert model.score(X_new, y_new) > 0.9
    assert np.mean(voted(raw, svc.classes_) == y_new) < 0.25


@pytest.mark.usefixtures("exact")
@pytest.mark.parametrize("how", ["flip", "clip", "shift"])
def test_a_positive_definite_kernel_is_left_as_it_is(data: Any, how: str) -> None:
    X, X_new = data
    y = target(X, 5)
    weight = np.linspace(0.5, 2.0, 70)
    svc = SVC(C=3.0, gamma=2.0, tol=1e-8).fit(X, y, sample_weight=weight)
    model = SpectrumSVC(Gaussian(0.5), spectrum=how, C=3.0).fit(X, y, sample_weight=weight)
    same_scores(model.decision_function(X_new), svc.decision_function(X_new))


@pytest.mark.usefixtures("exact")
@pytest.mark.parametrize("class_weight", ["balanced", {"ant": 3.0, "bee": 0.5}])
def test_class_weights_are_weights_of_errors_alone(data: Any, class_weight: Any) -> None:
    X, X_new = data
    y = target(X, 5)
    K, K_x = rough(X, X), rough(X_new, X)
    _, expected = by_hand(K, K_x, y, "flip", C=5.0, class_weight=class_weight)
    model = SpectrumSVC("precomputed", C=5.0, class_weight=class_weight).fit(K, y)
    same_scores(model.decision_function(K_x), expected)


# Weights


@pytest.mark.usefixtures("exact")
@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("how", SPECTRA)
def test_weights_are_repetitions(data: Any, how: str, n_classes: int) -> None:
    """Also of the spectrum: f(K) of repeated objects is not a repetition of f(K)."""
    X, X_new = data
    y = target(X, n_classes)
    times = np.arange(70) % 4
    again = np.repeat(np.arange(70), times)
    weighted = SpectrumSVC(rough, spectrum=how, C=2.0).fit(X, y, sample_weight=times)
    repeated = SpectrumSVC(rough, spectrum=how, C=2.0).fit(X[again], y[again])
    once = SpectrumSVC(rough, spectrum=how, C=2.0).fit(X[times > 0], y[times > 0])
    expected = repeated.decision_function(X_new)
    same_scores(weighted.decision_function(X_new), expected, rtol=1e-4)
    assert np.abs(once.decision_function(X_new) - expected).max() > 0.05 * np.abs(expected).max()


@pytest.mark.usefixtures("exact")
@pytest.mark.parametrize("name", ["dense", "sparse"])
@pytest.mark.parametrize(
    ("kernel", "how"),
    [(Gaussian(2.0), "flip"), *((Sigmoid(0.15, -1.0), how) for how in ("flip", "clip", "shift"))],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_scikit_learns_check_of_weights_holds_where_libsvm_goes_on(
    kernel: Any, how: str, name: str
) -> None:
    """It is expected to fail in tests/reliability/test_sklearn_checks.py, and only for this.

    Squares of an indefinite kernel differ by more than the check allows, as libsvm keeps kernel
    values in single precision: ``test_weights_are_repetitions`` has them.
    """
    check = getattr(estimator_checks, f"check_sample_weight_equivalence_on_{name}_data")
    check("SpectrumSVC", SpectrumSVC(kernel, spectrum=how, C=1.0))


@pytest.mark.parametrize("kernel", ["gaussian", "euclidean", rough])
def test_rows_of_no_weight_are_not_there(data: Any, kernel: Any) -> None:
    X, X_new = data
    y = target(X, 2)
    there = np.arange(70) % 7 != 3
    X_far, y_far = np.where(there[:, None], X, 50 * X), np.where(there, y, "ant")
    model = SpectrumSVC(kernel, random_state=3)  # C and a median width from the data
    without = clone(model).fit(X[there], y[there])
    model.fit(X_far, y_far, sample_weight=there.astype(float))
    np.testing.assert_array_equal(model.landmark_indices_, np.flatnonzero(there))
    np.testing.assert_array_equal(model.folds_, without.folds_)
    np.testing.assert_array_equal(model.cv_scores_, without.cv_scores_)
    np.testing.assert_array_equal(model.decision_function(X_new), without.decision_function(X_new))


def test_rows_of_no_weight_in_a_matrix(data: Any) -> None:
    X, X_new = data
    y, there = target(X, 5), np.arange(70) % 7 != 3
    K, K_x = rough(X, X), rough(X_new, X)
    model = SpectrumSVC("precomputed", random_state=0).fit(K, y, sample_weight=there)
    without = clone(model).fit(K[np.ix_(there, there)], y[there])
    np.testing.assert_allclose(
        model.decision_function(K_x), without.decision_function(K_x[:, there]), rtol=1e-12
    )


def test_a_class_of_no_weight_is_never_predicted(data: Any) -> None:
    X, X_new = data
    y = target(X, 5)
    there = y != "cow"
    model = SpectrumSVC(rough, C=1.0).fit(X, y, sample_weight=there)
    without = SpectrumSVC(rough, C=1.0).fit(X[there], y[there])
    assert model.decision_function(X_new).shape == (40, 5)
    np.testing.assert_array_equal(model.predict(X_new), without.predict(X_new))
    by_class = SpectrumSVC(rough, C=1.0, class_weight={"cow": 0.0}).fit(X, y)
    np.testing.assert_array_equal(by_class.decision_function(X_new), model.decision_function(X_new))


# C


@pytest.mark.parametrize(
    ("how", "c"), [*product(SPECTRA, [1e6, 1e-6]), ("flip", 1e280), ("square", 1e-280)]
)
def test_the_scale_of_the_kernel_does_not_matter(data: Any, how: str, c: float) -> None:
    X, X_new = data
    y, K, K_x = target(X, 5), rough(X, X), rough(X_new, X)
    model = SpectrumSVC("precomputed", spectrum=how, random_state=0).fit(K, y)
    scaled = clone(model).fit(c * K, y)
    np.testing.assert_array_equal(scaled.cv_scores_, model.cv_scores_)
    same_scores(scaled.decision_function(c * K_x), model.decision_function(K_x), 1e-5)
    if how != "square":
        assert pytest.approx(model.C_ / c, rel=1e-12) == scaled.C_
        fixed = clone(model).set_params(C=scaled.C_).fit(c * K, y)
        same_scores(fixed.decision_function(c * K_x), model.decision_function(K_x), 1e-5)


def folds_by_hand(
    K: Array, y: Array, folds: Array, how: str, *, honest: bool = True, transform: Any = None
) -> Array:
    """Accuracy for every C; dishonest folds are parts of the matrix corrected as a whole.

    A candidate is the same C in each fold, however large the diagonal of its own matrix is.
    """
    H = CORRECTED[how](K if transform is None else transform(K, K)[0])
    right, candidates = np.zeros(len(GRID)), GRID / np.abs(np.diag(H)).mean()
    for k in range(folds.max() + 1):
        train, test = folds != k, folds == k
        A = K[np.ix_(train, train)], K[np.ix_(test, train)]
        if transform is not None:
            A = transform(*A)
        if honest:
            H = CORRECTED[how](A[0])
            H_x = mapped(A[0], H, A[1], how)
        else:
            H, H_x = (CORRECTED[how](K)[np.ix_(part, train)] for part in (train, test))
        for g, C in enumerate(candidates):
            svc = SVC(C=C, kernel="precomputed").fit(H, y[train])
            right[g] += np.sum(voted(svc.decision_function(H_x), svc.classes_) == y[test])
    return right / len(y)


@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("how", SPECTRA)
def test_c_is_chosen_on_honest_folds(
    data: Any, how: str, n_classes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spectrum_svc, "FOLD_STEPS", 10**7)  # as many as each needs
    X, _ = data
    y, K = target(X, n_classes), rough(X, X)
    model = SpectrumSVC("precomputed", spectrum=how, random_state=0).fit(K, y)
    scores = folds_by_hand(K, y, model.folds_, how)
    np.testing.assert_allclose(model.cv_scores_, scores, rtol=0, atol=1e-12)
    if how != "shift":  # which leaves all but the diagonal alone
        leaky = folds_by_hand(K, y, model.folds_, how, honest=False)
        assert np.abs(leaky - scores).max() > 0.05
    unit = np.abs(np.diag(CORRECTED[how](K))).mean()
    np.testing.assert_allclose(model.C_grid_, GRID / unit, rtol=1e-10)
    assert model.C_grid_[np.argmax(scores)] == model.C_  # the first, the smallest, of the best


def test_a_candidate_is_the_same_c_in_each_fold(data: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """By scikit-learn's own search: the objects of one fold are ten times as long."""
    monkeypatch.setattr(spectrum_svc, "FOLD_STEPS", 10**7)
    X, y = data[0].copy(), target(data[0], 2)
    X[::2] *= 10
    long, short = np.arange(0, 70, 2), np.arange(1, 70, 2)
    cv = [(short, long), (long, short)]
    model = SpectrumSVC("linear", cv=cv).fit(X + 1, y)
    K = (X + 1) @ (X + 1).T
    np.testing.assert_allclose(model.C_grid_, GRID / np.diag(K).mean(), rtol=1e-10)
    search = GridSearchCV(SVC(kernel="precomputed"), {"C": model.C_grid_}, cv=cv).fit(K, y)
    np.testing.assert_allclose(model.cv_scores_, search.cv_results_["mean_test_score"])
    assert search.best_params_["C"] == model.C_


@pytest.mark.parametrize("how", ["flip", "clip", "square"])
def test_candidates_and_their_scores_are_those_of_repeated_objects(data: Any, how: str) -> None:
    """A shift adds to each copy, and so to the mean diagonal, which is the unit of C, more."""
    X, y = data[0], target(data[0], 2)
    size = np.exp(X[:, 0])
    K = rough(X, X) * size[:, None] * size
    times = np.arange(70) // 10 % 4 + 1
    again = np.repeat(np.arange(70), times)

    def split(numbers: Array) -> list[tuple[Array, Array]]:
        parts = [numbers % 3 == k for k in range(3)]
        return [(np.flatnonzero(~part), np.flatnonzero(part)) for part in parts]

    model = SpectrumSVC("precomputed", spectrum=how, cv=split(np.arange(70)))
    weighted = clone(model).fit(K, y, sample_weight=times)
    repeated = model.set_params(cv=split(again)).fit(K[np.ix_(again, again)], y[again])
    np.testing.assert_allclose(weighted.C_grid_, repeated.C_grid_, rtol=1e-9)
    np.testing.assert_allclose(weighted.cv_scores_, repeated.cv_scores_, rtol=0, atol=1e-12)


def test_folds_are_stratified_and_seeded(data: Any) -> None:
    X, _ = data
    y = target(X, 5)
    model = SpectrumSVC(rough, random_state=1).fit(X, y)
    counts = [np.bincount(model.folds_[y == name], minlength=5) for name in model.classes_]
    assert all(np.ptp(count) <= 1 for count in counts)
    again = clone(model).fit(X, y)
    other = clone(model).set_params(random_state=2).fit(X, y)
    np.testing.assert_array_equal(again.folds_, model.folds_)
    np.testing.assert_array_equal(again.dual_coef_, model.dual_coef_)
    assert np.any(other.folds_ != model.folds_)
    few = np.where(np.arange(70) < 3, "few", "many")
    with pytest.warns(RareClasses, match=r"few \(3\)"):
        rare = SpectrumSVC(rough).fit(X, few)
    assert rare.folds_.max() == 4
    assert len(set(rare.folds_[:3])) == 3  # spread over the folds


@pytest.mark.filterwarnings("ignore::kreinlearn._warnings.RareClasses")
def test_a_class_of_one_object(data: Any) -> None:
    X, X_new = data
    y = np.where(np.arange(70) == 5, "one", target(X, 2))
    model = SpectrumSVC(rough, random_state=0).fit(X, y)
    assert model.folds_.max() == 4
    assert model.cv_scores_.max() <= 69 / 70
    assert model.decision_function(X_new).shape == (40, 3)
    alone = SpectrumSVC(rough).fit(X, y == "one")  # a fold trains on one class
    np.testing.assert_array_equal(alone.cv_scores_, 69 / 70)
    assert alone.C_grid_[0] == alone.C_


def test_given_folds(data: Any) -> None:
    X, _ = data
    y, K = target(X, 2), rough(X, X)
    cv = StratifiedKFold(3, shuffle=True, random_state=4)
    model = SpectrumSVC(rough, cv=cv).fit(X, y)
    for k, (_, test) in enumerate(cv.split(X, y)):
        np.testing.assert_array_equal(np.flatnonzero(model.folds_ == k), test)
    np.testing.assert_allclose(model.cv_scores_, folds_by_hand(K, y, model.folds_, "flip"))
    there = np.arange(70) % 5 > 0
    weighted = clone(model).fit(X, y, sample_weight=there)
    np.testing.assert_array_equal(weighted.folds_, model.folds_[there])


# Inputs


def centred_squares(D: Array, D_x: Array) -> tuple[Array, Array]:
    """-1/2 (d^2 - a(x) - a(z) + c), and the training part of it by J."""
    squares = D**2
    a = squares.mean(axis=1)
    K_x = -0.5 * (D_x**2 - (D_x**2).mean(axis=1)[:, None] - a + squares.mean())
    return oracles.double_centred(D), K_x


def exponentials(D: Array, D_x: Array) -> tuple[Array, Array]:
    s = np.median(D[np.triu_indices(len(D), 1)])
    return np.exp(-D / s), np.exp(-D_x / s)


def bent(A: Array, B: Array) -> Array:
    """A dissimilarity that is no distance between vectors."""
    return np.abs(A[:, None, :] - B).max(axis=2) ** 1.5


@pytest.mark.parametrize(
    ("similarity", "by_definition"), [("squared", centred_squares), ("exp", exponentials)]
)
def test_dissimilarities(data: Any, similarity: str, by_definition: Any) -> None:
    X, X_new = data
    y = target(X, 5)
    D, D_x = bent(X, X), bent(X_new, X)
    given = SpectrumSVC("precomputed_dissimilarity", similarity=similarity, random_state=0)
    model = given.fit(D, y)
    K, K_x = by_definition(D, D_x)
    expected = SpectrumSVC("precomputed", C=model.C_).fit(K, y).decision_function(K_x)
    same_scores(model.decision_function(D_x), expected)
    called = SpectrumSVC(dissimilarity(bent), similarity=similarity, random_state=0).fit(X, y)
    same_scores(called.decision_function(X_new), expected)
    condensed = clone(given).fit(D[np.triu_indices(70, 1)], y)
    np.testing.assert_array_equal(condensed.dual_coef_, model.dual_coef_)


def test_folds_transform_dissimilarities_by_their_own_part(data: Any) -> None:
    X, _ = data
    y, D = target(X, 2), bent(X, X)
    model = SpectrumSVC(
        "precomputed_dissimilarity", spectrum="clip", similarity="exp", random_state=0
    ).fit(D, y)
    scores = folds_by_hand(D, y, model.folds_, "clip", transform=exponentials)
    np.testing.assert_allclose(model.cv_scores_, scores, rtol=0, atol=1e-12)


def shared(a: str, b: str) -> float:
    return float(len(set(a) & set(b))) - 0.3 * abs(len(a) - len(b))


def test_lists_of_strings() -> None:
    rng = np.random.default_rng(3)
    words = ["".join(rng.choice(list("abcdefgh"), rng.integers(2, 7))) for _ in range(60)]
    words = list(dict.fromkeys(words))[:50]  # equal ones are left out together, unlike in a matrix
    y = np.array(["a" in word for word in words])
    K = np.array([[shared(a, b) for b in words] for a in words])
    calls = []

    def counted(a: str, b: str) -> float:
        calls.append((a, b))
        return shared(a, b)

    model = SpectrumSVC(pairwise(counted), random_state=0).fit(words[:40], y[:40])
    assert len(calls) <= 40 * 41 // 2 + 108  # every pair once, and the probe for symmetry
    by_matrix = SpectrumSVC("precomputed", random_state=0).fit(K[:40, :40], y[:40])
    same_scores(model.decision_function(words[40:]), by_matrix.decision_function(K[40:, :40]))
    np.testing.assert_array_equal(model.cv_scores_, by_matrix.cv_scores_)
    assert model.landmarks_ == words[:40]


def test_sparse_rows_frames_and_float32(data: Any) -> None:
    X, X_new = data
    y = target(X, 2)
    model = SpectrumSVC(Gaussian(0.5), C=2.0).fit(X, y)
    expected = model.decision_function(X_new)
    sparse = clone(model).fit(sp.csr_array(X), y)
    same_scores(sparse.decision_function(sp.csr_array(X_new)), expected, 1e-3)
    frame, new = pd.DataFrame(X, columns=["u", "v"]), pd.DataFrame(X_new, columns=["u", "v"])
    framed = clone(model).fit(frame, y)
    np.testing.assert_array_equal(framed.decision_function(new), expected)
    with pytest.raises(ValueError, match="feature names should match"):
        framed.predict(new[["v", "u"]])
    single = clone(model).fit(X.astype(np.float32), y).decision_function(X_new.astype(np.float32))
    assert single.dtype == np.float64
    same_scores(single, expected, 1e-3)


def test_many_new_rows_are_streamed(data: Any) -> None:
    X, _ = data
    rows = np.random.default_rng(0).normal(size=(5000, 2))
    model = SpectrumSVC("delta_gauss", C=1.0).fit(X, target(X, 5))
    np.testing.assert_allclose(
        model.decision_function(rows)[4000:], model.decision_function(rows[4000:]), rtol=1e-9
    )


def test_search_and_pickle(data: Any) -> None:
    X, X_new = data
    grid = {"spectrum": SPECTRA, "C": [1.0, 100.0]}
    search = GridSearchCV(SpectrumSVC("precomputed"), grid, cv=3, error_score="raise")
    search.fit(rough(X, X), target(X, 2))
    assert search.best_params_["spectrum"] in ("flip", "square")  # the negative part is signal
    copy = pickle.loads(pickle.dumps(search.best_estimator_))
    K_x = rough(X_new, X)
    np.testing.assert_array_equal(copy.predict(K_x), search.predict(K_x))


# Bad inputs


def test_one_class(data: Any) -> None:
    X, _ = data
    with pytest.raises(ValueError, match="got one class"):
        SpectrumSVC().fit(X, np.zeros(70))
    y = target(X, 2)
    with pytest.raises(ValueError, match="two classes of positive weight"):
        SpectrumSVC().fit(X, y, sample_weight=y == "ant")
    with pytest.raises(ValueError, match="two classes of positive weight"):
        SpectrumSVC(class_weight={"ant": 0.0}).fit(X, y)


@pytest.mark.parametrize(
    "params",
    [
        {"C": 0.0},
        {"C": "best"},
        {"spectrum": "flop"},
        {"kernel_params": "auto"},
    ],
)
def test_parameters_out_of_range(data: Any, params: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameterError):
        SpectrumSVC(**params).fit(data[0], target(data[0], 2))


def test_folds_of_no_rows(data: Any) -> None:
    X, _ = data
    with pytest.raises(ValueError, match="n_samples=70 leaves no fold to choose C on"):
        SpectrumSVC(cv=[]).fit(X, target(X, 2))


def test_memory_is_asked_for_before_pairs_are_evaluated(data: Any) -> None:
    def never(A: Any, B: Any) -> Any:
        raise AssertionError

    with pytest.raises(MemoryError, match=r"all 70 x 70 pairs needs 353 kB .* 300 kB; .*KreinSVC"):
        SpectrumSVC(never, resources=Resources(memory_budget="300kB")).fit(
            data[0], target(data[0], 2)
        )


def test_a_failed_fit_leaves_nothing(data: Any) -> None:
    X, _ = data
    model = SpectrumSVC(C=1.0).fit(X, target(X, 2))
    with pytest.raises(ValueError, match="class"):
        model.fit(X, np.ones(70))
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_an_asymmetric_kernel(data: Any) -> None:
    def slanted(A: Any, B: Any) -> Any:
        return rough(A, B) + 0.1 * A[:, :1]

    X, _ = data
    with pytest.warns(UserWarning, match="the kernel is asymmetric"):
        SpectrumSVC(slanted, C=1.0).fit(X, target(X, 2))


def test_a_machine_that_does_not_end(data: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line for classes that no line separates, at a very large C: libsvm would go on for long."""
    monkeypatch.setattr(spectrum_svc, "STEPS", 10**5)
    X, X_new = data
    with pytest.warns(ConvergenceWarning, match=r"not converged in 100000 steps; lower C=1e\+06"):
        model = SpectrumSVC("linear", C=1e6).fit(X[:40], target(X[:40], 5))
    assert model.n_iter_ == 10**5
    assert np.isfinite(model.decision_function(X_new)).all()


def test_a_tuned_machine_that_does_not_end_names_a_C_to_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One step is too few for any machine; the folds have as many as they need."""
    monkeypatch.setattr(spectrum_svc, "STEPS", 1)
    X = np.linspace(-3, 3, 40)[:, None]
    inner = np.abs(X[:, 0]) < 1.5  # no small C tells these from the others
    with pytest.warns(ConvergenceWarning, match="cross-validation chose C=") as caught:
        model = SpectrumSVC("gaussian", cv=4, random_state=0).fit(X, inner)
    assert len(caught) == 1
    scores, at = model.cv_scores_, int(np.argmax(model.cv_scores_))
    assert at > 0
    assert str(caught[0].message) == (
        "the machine has not converged in 1 steps; cross-validation chose "
        f"C={model.C_grid_[at]:.3g} with an accuracy of {scores[at]:.1%}. Pass "
        f"C={model.C_grid_[at - 1]:.3g}, which is solved more easily and had {scores[at - 1]:.1%}"
    )
    with pytest.warns(ConvergenceWarning, match=r"C=0.01, the smallest that it tried: pass a sm"):
        SpectrumSVC("gaussian", random_state=0).fit(10 * np.sign(X), X[:, 0] > 0)


@pytest.mark.parametrize("how", SPECTRA)
@pytest.mark.filterwarnings("ignore::kreinlearn._warnings.RareClasses")
def test_a_kernel_of_zeros(how: str) -> None:
    y = np.repeat([3, 1, 2], [4, 7, 5])
    with pytest.warns(UserWarning, match="the corrected matrix is zero"):
        model = SpectrumSVC("precomputed", spectrum=how).fit(np.zeros((16, 16)), y)
    assert set(model.predict(np.zeros((3, 16)))) == {1}
