"""Sets of labels: every column is a problem of two classes, and all are solved together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.metrics import accuracy_score, f1_score
from sklearn.model_selection import (
    KFold,
    PredefinedSplit,
    StratifiedKFold,
    cross_val_score,
    cross_validate,
)
from sklearn.utils import get_tags

import kreinlearn as kl
from kreinlearn.learn.neighbours import NEIGHBOURS
from tests.models import CLASSIFIERS, penalised

N, NEW = 90, 25
RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(N + NEW, 2))
LATENT = np.column_stack([np.sin(2 * POINTS[:, 0]), POINTS[:, 1], POINTS.sum(axis=1) - 0.8])
TRUTH = (LATENT + 0.3 * RNG.normal(size=LATENT.shape) > 0).astype(int)
X, Y, X_NEW = POINTS[:N], TRUTH[:N], POINTS[N:]
NAMES = np.array(["blue", "green", "red"])
SETS = [set(NAMES[row == 1].tolist()) for row in Y]
COUNTS = RNG.integers(1, 4, size=N)
PENALTIES = (0.02, 0.05)
GIVEN = {"lambda_plus": PENALTIES[0], "lambda_minus": PENALTIES[1], "random_state": 0}
EPS = np.finfo(np.float64).eps
FORMS = {f"{one.__name__}-{m}": one("delta_gauss", landmarks=m, random_state=0)
         for one in [*CLASSIFIERS, kl.KreinClassifier] for m in (None, 30)}  # fmt: skip
forms = pytest.mark.parametrize("form", FORMS)


def similarities(A: Any, B: Any) -> Any:
    """A difference of two Gaussians, which is indefinite."""
    d2 = np.square(A[:, None] - B).sum(axis=2)
    return np.exp(-d2 / 2) - 0.7 * np.exp(-d2 / 6)


K, K_NEW = similarities(X, X), similarities(X_NEW, X)


def any_similarities() -> tuple[Any, Any]:
    """Among the objects, with eigenvalues of both signs that are not small, and of new objects."""
    rng = np.random.default_rng(1)
    Q = np.linalg.qr(rng.normal(size=(N, N)))[0]
    D = rng.uniform(0.5, 3.0, size=N) * np.where(np.arange(N) % 3, 1, -1)
    A = (Q * D) @ Q.T
    return (A + A.T) / 2, rng.normal(size=(NEW, N)) / np.sqrt(N)


def by_hand(A: Any, A_new: Any, targets: Any, counts: Any) -> Any:
    """Scores of new objects by least squares in the eigenbasis of all objects, repeated."""
    again = np.repeat(np.arange(N), counts)
    D, U = np.linalg.eigh(A[np.ix_(again, again)])
    D, U = D[np.abs(D) > 1e-9], U[:, np.abs(D) > 1e-9]  # the others are zero up to rounding
    Phi, S, y = U * np.sqrt(np.abs(D)), np.sign(D), targets[again]
    F, penalty = Phi - Phi.mean(axis=0), np.where(S > 0, *PENALTIES)
    gram = F.T @ F + len(again) * np.diag(penalty)
    coef = np.linalg.solve(gram, F.T @ (y - y.mean(axis=0)))
    features = A_new[:, again] @ (U / np.sqrt(np.abs(D)) * S)
    return (features - Phi.mean(axis=0)) @ coef + y.mean(axis=0)


@pytest.mark.parametrize("counts", [np.ones(N, dtype=int), COUNTS], ids=["plain", "weighted"])
def test_each_column_is_the_least_squares_problem_of_its_label(counts: Any) -> None:
    A, A_new = any_similarities()
    model = kl.KreinRidgeClassifier("precomputed", landmarks=None, **GIVEN)
    found = clone(model).fit(A, Y, sample_weight=counts).decision_function(A_new)
    assert found.shape == (NEW, 3)
    condition = 2 * 3.0 / (0.5 * PENALTIES[0])  # of the systems and of the map
    atol = counts.sum() * EPS * condition
    np.testing.assert_allclose(found, by_hand(A, A_new, 2.0 * Y - 1, counts), rtol=0, atol=atol)
    for j in range(3):
        alone = clone(model).fit(A, Y[:, j], sample_weight=counts).decision_function(A_new)
        np.testing.assert_allclose(found[:, j], alone, rtol=0, atol=atol)


@pytest.mark.parametrize("m", [None, 30])
@pytest.mark.parametrize("learner", CLASSIFIERS)
def test_each_column_is_the_problem_of_two_classes(learner: Any, m: int | None) -> None:
    model = penalised(learner, 0.03, kernel="delta_gauss", landmarks=m)
    together = clone(model).fit(X, Y).decision_function(X_NEW)
    alone = [clone(model).fit(X, Y[:, j]).decision_function(X_NEW) for j in range(3)]
    np.testing.assert_allclose(together, np.column_stack(alone), atol=1e-6, rtol=1e-6)


@forms
def test_all_forms_of_targets_give_the_same_model(form: str) -> None:
    models = [clone(FORMS[form]).fit(X, y) for y in (Y, Y == 1, sp.csr_array(Y), Y.tolist(), SETS)]
    scores = models[0].decision_function(X_NEW)
    assert scores.shape == (NEW, 3)
    predicted = models[0].predict(X_NEW)
    assert predicted.dtype == np.int64
    np.testing.assert_array_equal(predicted, scores > 0)
    for model in models:
        assert model.multilabel_
        np.testing.assert_array_equal(model.decision_function(X_NEW), scores)
    np.testing.assert_array_equal(models[0].classes_, [0, 1, 2])
    np.testing.assert_array_equal(models[-1].classes_, NAMES)
    right = np.mean([set(NAMES[row == 1]) == one for row, one in
                     zip(models[-1].predict(X), SETS, strict=True)])  # fmt: skip
    assert models[-1].score(X, SETS) == models[0].score(X, Y) == pytest.approx(right, abs=1e-12)
    assert right > 0.5


@forms
@pytest.mark.parametrize("q", [2, 4])
def test_labels_that_all_or_no_objects_have(form: str, q: int) -> None:
    constant = np.repeat([[0, 1]], N, axis=0)
    model = clone(FORMS[form]).fit(X, np.hstack([Y[:, : q - 2], constant]))
    assert model.decision_function(X_NEW).shape == (NEW, q)
    np.testing.assert_array_equal(model.predict(X_NEW)[:, -2:], constant[:NEW])


@pytest.mark.parametrize("learner", CLASSIFIERS)
def test_probabilities_are_one_sigmoid_per_label(learner: Any) -> None:
    model = penalised(learner, 0.03, kernel="delta_gauss", landmarks=None, probability=True)
    together = clone(model).fit(X, Y)
    P, F = together.predict_proba(X_NEW), together.decision_function(X_NEW)
    assert ((P > 0) & (P < 1)).all()
    for j in range(3):
        a, b = together._calibration.pairs[j]
        np.testing.assert_allclose(P[:, j], 1 / (1 + np.exp(a * F[:, j] + b)), rtol=1e-12)
    if learner is kl.KreinRidgeClassifier:  # in the same folds; those of two classes spread them
        folds = PredefinedSplit(np.arange(N) % 5)
        P, alone = (
            clone(model).set_params(cv=folds).fit(X, y).predict_proba(X_NEW) for y in (Y, Y[:, 1])
        )
        np.testing.assert_allclose(P[:, 1], alone[:, 1], rtol=1e-6)


def test_the_first_estimator_adds_neighbours_to_the_odds_of_each_label() -> None:
    model = kl.KreinClassifier("euclidean", landmarks=None, random_state=0).fit(X, Y)
    weights = model.part_weights_
    assert list(weights) == ["krein", *(f"neighbours_{k}" for k in NEIGHBOURS)]
    assert weights["krein"] > 0
    D = np.sqrt(np.square(X_NEW[:, None] - X).sum(axis=2))
    f = model._columns.transformed(D) @ model.dual_coef_ + model.intercept_
    odds = 2 * weights["krein"] * np.clip(f, *model._range)
    for k in NEIGHBOURS:
        for j in range(3):
            near = [np.sort(D[:, Y[:, j] == has], axis=1)[:, :k].mean(axis=1) for has in (0, 1)]
            difference = np.log(near[0] + model._neighbours.floor)
            difference -= np.log(near[1] + model._neighbours.floor)
            odds[:, j] += weights[f"neighbours_{k}"] * difference
    np.testing.assert_allclose(model.decision_function(X_NEW), odds, atol=1e-9)
    np.testing.assert_allclose(model.predict_proba(X_NEW), 1 / (1 + np.exp(-odds)), atol=1e-9)
    assert 0 < model.expected_error_ < 1


@forms
@pytest.mark.parametrize("q", [2, 3])
def test_one_label_is_explained_at_a_time(form: str, q: int) -> None:
    model = clone(FORMS[form]).fit(X, Y[:, :q])
    scores = model.decision_function(X_NEW)
    for j in range(q):
        found = model.explain(X_NEW, target=j)
        values = [one.value for one in found]
        np.testing.assert_allclose(values, scores[:, j], rtol=1e-10, atol=1e-10)
        for reason in found[0].reasons:
            assert reason.label == Y[reason.landmark, j]
    with pytest.raises(ValueError, match=r"explains one of them; pass target=\.\.\., one of \[0 1"):
        model.explain(X_NEW)


@forms
@pytest.mark.parametrize("q", [2, 3])
def test_a_saved_model(form: str, q: int, tmp_path: Path) -> None:
    model = clone(FORMS[form])
    if "probability" in model.get_params():
        model.set_params(probability=True)
    model.fit(X, [one - set(NAMES[q:].tolist()) for one in SETS])
    model.save(tmp_path / "model.krein")
    loaded = kl.load(tmp_path / "model.krein")
    np.testing.assert_array_equal(loaded.classes_, NAMES[:q])
    for method in ("predict", "decision_function", "predict_proba"):
        np.testing.assert_array_equal(getattr(loaded, method)(X_NEW), getattr(model, method)(X_NEW))
    np.testing.assert_array_equal(
        [one.value for one in loaded.explain(X_NEW, target="green")],
        [one.value for one in model.explain(X_NEW, target="green")],
    )


@pytest.mark.parametrize("first", ["partial_fit", "fit"])
def test_parts_of_the_data_are_those_of_each_label(first: str) -> None:
    model = kl.KreinRidgeClassifier("delta_gauss", landmarks=np.arange(20), **GIVEN)
    parts = getattr(clone(model), first)(X[:40], SETS[:40]).partial_fit(X[40:], SETS[40:])
    assert parts.multilabel_
    np.testing.assert_array_equal(parts.classes_, NAMES)
    for j in range(3):
        alone = getattr(clone(model), first)(X[:40], Y[:40, j]).partial_fit(X[40:], Y[40:, j])
        found = parts.decision_function(X_NEW)[:, j]
        np.testing.assert_allclose(found, alone.decision_function(X_NEW), rtol=0, atol=1e-9)


def test_labels_that_come_later_are_named_at_the_first_part() -> None:
    model = kl.KreinRidgeClassifier("delta_gauss", landmarks=np.arange(20), **GIVEN)
    parts = clone(model).partial_fit(X[:40], [one - {"red"} for one in SETS[:40]], classes=NAMES)
    np.testing.assert_array_equal(parts.classes_, NAMES)
    np.testing.assert_allclose(parts.decision_function(X_NEW)[:, 2], -1, atol=1e-9)
    after = parts.partial_fit(X[40:], SETS[40:]).decision_function(X_NEW)
    assert after[:, 2].max() > -0.5
    with pytest.raises(ValueError, match="row 0 of y has the label 'pink'"):
        parts.partial_fit(X[:1], [["pink"]])
    with pytest.raises(ValueError, match="y is 1 at row 0, and objects may have any number"):
        parts.partial_fit(X[:2], [1, 0])
    with pytest.raises(ValueError, match="fitted to one class per object"):
        clone(model).fit(X, Y[:, 0]).partial_fit(X, Y)


@pytest.mark.parametrize("cv", [3, KFold(3)])
@pytest.mark.parametrize("learner", [kl.KreinRidgeClassifier, kl.KreinClassifier, kl.KreinSVC])
def test_cross_validation_of_a_matrix_slices_its_columns(learner: Any, cv: Any) -> None:
    model = learner("precomputed", random_state=0)
    assert get_tags(model).input_tags.pairwise
    scoring = {"f1": "f1_micro", "jaccard": "jaccard_micro", "accuracy": "accuracy"}
    found = cross_validate(model, K, Y, cv=cv, scoring=scoring, error_score="raise")
    for i, (train, test) in enumerate(KFold(3).split(K)):
        fold = clone(model).fit(K[np.ix_(train, train)], Y[train])
        predicted = fold.predict(K[np.ix_(test, train)])
        assert found["test_f1"][i] == f1_score(Y[test], predicted, average="micro")
        assert found["test_accuracy"][i] == accuracy_score(Y[test], predicted)
        assert found["test_accuracy"][i] == fold.score(K[np.ix_(test, train)], Y[test])
    assert found["test_jaccard"].min() > 0.5
    assert cross_val_score(model, K, Y, scoring="roc_auc", cv=3, error_score="raise").min() > 0.8
    with pytest.raises(ValueError, match="Supported target types are"):
        cross_val_score(model, K, Y, cv=StratifiedKFold(3), error_score="raise")


@pytest.mark.parametrize("n", [200, 9000])  # in memory, and on workers
def test_a_dask_collection(n: int) -> None:
    da = pytest.importorskip("dask.array")
    rng = np.random.default_rng(2)
    points = rng.normal(size=(n, 2))
    truth = (points @ rng.normal(size=(2, 3)) > 0.5).astype(int)
    X_far, Y_far = (da.from_array(one, chunks=(n // 3, -1)) for one in (points, truth))
    model = kl.KreinRidgeClassifier("gaussian", landmarks=20, random_state=0).fit(X_far, Y_far)
    assert model.multilabel_
    predicted = model.predict(X_far)
    np.testing.assert_array_equal(predicted.compute(), model.predict(points))
    right = (model.predict(points) == truth).all(axis=1).mean()
    assert right > 0.7
    assert model.score(X_far, Y_far) == pytest.approx(right, abs=n * EPS)


def test_a_tag_says_which_classifiers_take_labels() -> None:
    for one in [*CLASSIFIERS, kl.KreinClassifier]:
        assert get_tags(one()).classifier_tags.multi_label
    assert not get_tags(kl.SpectrumSVC()).classifier_tags.multi_label


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (kl.SpectrumSVC(), "SpectrumSVC takes one class per object, .*OneVsRestClassifier"),
        (kl.KreinSVC(class_weight="balanced"), "class_weight='balanced' weighs classes"),
        (kl.KreinClassifier(class_weight={0: 2}), "class_weight={0: 2} weighs classes"),
    ],
)
def test_what_makes_no_sense_is_refused(model: Any, said: str) -> None:
    for y in (Y, SETS):
        with pytest.raises(ValueError, match=said):
            clone(model).fit(X, y)


def test_sets_of_classes_are_refused() -> None:
    model = kl.KreinRidgeClassifier(**GIVEN)
    with pytest.raises(ValueError, match="conformal='split' makes sets of classes"):
        clone(model).fit(X, SETS, conformal="split")
    with pytest.raises(ValueError, match="predict_set makes sets of classes"):
        model.fit(X, Y).predict_set(X_NEW)


@pytest.mark.parametrize("y", [Y, SETS, sp.csr_array(Y)])
def test_evaluate_takes_classes_or_numbers(y: Any) -> None:
    with pytest.raises(ValueError, match="several labels per object; take cross_validate"):
        kl.evaluate(X, y)
