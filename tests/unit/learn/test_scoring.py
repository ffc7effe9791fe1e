"""Tuning for a score: fold models as scorers want them, and scores of folds by hand."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import log_loss, make_scorer, mean_absolute_error

from kreinlearn.learn.losses.squared import SquaredError
from kreinlearn.learn.scoring import FoldClassifier, FoldRegressor, cross_validated_score
from tests.unit.learn.learning import FEW, LAMBDAS, W, Y, of_vectors

RNG = np.random.default_rng(9)
PHI, COEF = RNG.normal(size=(20, 3)), RNG.normal(size=(3, 3))


def test_a_linear_model_predicts_as_many_outputs_as_the_targets_have():
    one = FoldRegressor(COEF[:, :1], np.array([2.0]), one_output=True)
    np.testing.assert_allclose(one.predict(PHI), PHI @ COEF[:, 0] + 2)
    two = FoldRegressor(COEF[:, :2], np.array([2.0, 1.0]), one_output=False)
    np.testing.assert_allclose(two.predict(PHI), PHI @ COEF[:, :2] + [2, 1])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes_and_probabilities_go_with_the_scores(n_classes):
    q = 1 if n_classes == 2 else 3
    classes = np.array(["a", "b", "c"])[:n_classes]
    model = FoldClassifier(COEF[:, :q], np.zeros(q), classes)
    scores, found = PHI @ COEF[:, :q], model.predict_proba(PHI)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert ((found > 0) & (found < 1)).all()
    if n_classes == 2:
        assert model.decision_function(PHI).shape == (20,)
        np.testing.assert_array_equal(model.predict(PHI), classes[(scores[:, 0] > 0).astype(int)])
        inside = np.abs(scores[:, 0]) < 0.9
        np.testing.assert_allclose(found[inside, 1], (1 + scores[inside, 0]) / 2)
    else:
        np.testing.assert_array_equal(model.predict(PHI), classes[np.argmax(scores, axis=1)])
    assert np.isfinite(log_loss(model.predict(PHI), found, labels=classes))


@pytest.mark.parametrize("scoring", ["neg_mean_absolute_error", "callable", "scorer"])
def test_the_score_of_the_folds_is_weighted_by_their_sizes(scoring):
    task = of_vectors(FEW, w=W)
    splits, loss, values = task.splits(), SquaredError(), np.array(LAMBDAS)

    def solve(Phi, Y, w, penalty):
        return loss.solve_rows(Phi, Y, w, penalty, True)

    def fold_model(model):
        return FoldRegressor(model.coef[:, :1], model.intercept[:1], one_output=True)

    scorers = {
        "callable": lambda model, A, y: -np.abs(model.predict(A) - y).mean(),
        "scorer": make_scorer(mean_absolute_error, greater_is_better=False),
    }
    score = cross_validated_score(task, splits, scorers.get(scoring, scoring), solve, fold_model)
    total = weight = 0.0
    for split in splits:
        train, valid = split.train, split.valid
        penalty = W[train].sum() * np.where(split.S > 0, *LAMBDAS)
        model = solve(split.Phi[train], Y[train], W[train], penalty)
        gaps = np.abs(Y[valid, 0] - split.Phi[valid] @ model.coef[:, 0] - model.intercept[0])
        total, weight = total + W[valid].sum() * gaps.mean(), weight + W[valid].sum()
    assert score(values) == pytest.approx(-total / weight, rel=1e-10)
