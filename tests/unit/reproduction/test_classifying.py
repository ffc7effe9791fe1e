"""Fits on folds: recomputed from their definitions on small generated sets."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

from kreinlearn import KreinClassifier
from reproduction import classifying
from reproduction.classifying import (
    DEFAULTS,
    EXACT,
    FEW,
    FLIP,
    LEARNERS,
    NEAREST,
    OURS,
    PAPER,
    at_most,
    chosen,
    place,
)
from reproduction.matrix_free import nystroem
from reproduction.paired import ALL, ONE_VS_REST, Cell, errors_by_cell
from reproduction.scale import QUICK
from reproduction.sets import LearningSet, centred_squares

SMALL = replace(
    QUICK, dissimilarity=("polydism57",), polygons=60, exact_polygons=40, ranks=(3, 8), folds=2
)
RNG = np.random.default_rng(3)


@pytest.fixture
def three(monkeypatch):
    """A place whose set has three classes of 12 points in the plane, told apart by distances."""
    y = np.repeat([1, 2, 3], 12)
    X = RNG.normal(size=(36, 2)) + 4 * np.eye(3)[y - 1][:, :2]
    D = np.abs(X[:, None] - X[None]).sum(axis=2)  # city block: centred squares are indefinite
    data = LearningSet("three", True, D, y)
    monkeypatch.setattr(classifying.sets, "learning_set", lambda name, scale: data)
    return place("three", SMALL)


def distances(A, B):
    return np.sqrt(((A[:, None] - B[None]) ** 2).sum(axis=2))


def test_centred_squares_are_inner_products_about_the_training_mean():
    X, A = RNG.normal(size=(14, 3)), RNG.normal(size=(5, 3))
    K, K_test = centred_squares(distances(X, X), distances(A, X))
    mean = X.mean(axis=0)
    np.testing.assert_allclose(K, (X - mean) @ (X - mean).T, atol=1e-12)
    np.testing.assert_allclose(K_test, (A - mean) @ (X - mean).T, atol=1e-12)
    assert np.array_equal(K, K.T)


def test_the_scheme_gives_all_methods_one_set_of_landmarks_a_rank(three, monkeypatch):
    fits, measured = [], classifying.Fold.measured

    def spy(self, cell, model, target, matrices=None):
        fits.append((cell, model.landmarks, matrices[0]))
        return measured(self, cell, model, target, matrices)

    monkeypatch.setattr(classifying.Fold, "measured", spy)
    rows = classifying.scheme(three, 1, (3, 8, 18), apart=False)
    assert {cell for cell, _, _ in fits} == {Cell(m, PAPER, k) for m in LEARNERS for k in (3, 8)}
    for cell, Z, K in fits:
        assert len(Z) == cell.rank  # none of rank 18, as there are 18 training objects
        assert np.array_equal(Z, next(own for other, own, _ in fits if other.rank == cell.rank))
        assert np.linalg.eigvalsh(K)[0] < -0.1  # the negative part is not lost on the way
    assert all((row["fold"], row["n_train"], row["n_test"]) == (1, 18, 18) for row in rows)


def test_errors_are_those_of_the_same_model_fitted_by_hand(three):
    split = next(three.fold(0).data.splits(2, 0))
    J = np.eye(18) - 1 / 18
    K = -0.5 * J @ split.M_train**2 @ J
    squares = split.M_test**2
    K_test = -0.5 * (squares - squares.mean(axis=1, keepdims=True)) @ J
    K_test += 0.5 * ((split.M_train**2).mean(axis=0) @ J)
    rows = classifying.scheme(three, 0, (8,), apart=True)
    sketch = nystroem("precomputed_dissimilarity", 8, scheme="kmeans++", core="plain", seed=0)
    Z = sketch.fit(split.M_train).landmark_indices_
    for row in (row for row in rows if row["method"] == "sf-lsm"):
        penalty = float(row["chosen"].split("lambda_plus=")[1].split()[0])
        F, F_test = K[:, Z] - K[:, Z].mean(axis=0), K_test[:, Z] - K[:, Z].mean(axis=0)
        t = np.where(split.y_train == int(row["target"]), 1.0, -1.0)
        a = np.linalg.solve(F.T @ F + 18 * penalty * np.eye(8), F.T @ (t - t.mean()))
        f = F_test @ a + t.mean()
        wrong = np.flatnonzero((f > 0) != (split.y_test == int(row["target"])))
        near = np.flatnonzero(np.abs(f) < 0.02)  # the penalty is known to three digits
        assert set(map(int, row["wrong"].split())) ^ set(wrong) <= set(near)
        assert row["missed"] == len(row["wrong"].split())
        assert row["base"] == pytest.approx(1 / 3)
    assert [row["target"] for row in rows[::4]] == ["1", "2", "3"]


def test_neighbours_are_the_nearest(three):
    split = list(three.fold(0).data.splits(2, 0))[1]
    rows = classifying.few(three, 1, apart=False)
    assert [(row["method"], row["variant"], row["rank"]) for row in rows] == [
        *((method, FEW, 8) for method in OURS),
        (NEAREST, NEAREST, None),
    ]
    nearest = [split.y_train[min(range(len(d)), key=d.__getitem__)] for d in split.M_test]
    assert rows[-1]["wrong"] == " ".join(map(str, np.flatnonzero(nearest != split.y_test)))


def test_defaults_and_exact_methods_say_what_they_chose(three):
    (row,) = classifying.defaults(three, 0, "krein lsm")
    assert (row["variant"], row["rank"], row["target"]) == (DEFAULTS, None, ALL)
    assert "similarity=" in row["chosen"]
    assert "lambda_minus=" in row["chosen"]
    (row,) = classifying.exact(three, 0, FLIP)
    assert (row["variant"], row["method"]) == (EXACT, FLIP)
    assert "C=" in row["chosen"]


def test_fewer_objects_keep_the_classes_in_proportion():
    y = np.repeat([0, 1], [40, 20])
    M = RNG.uniform(size=(60, 60))
    data = LearningSet("s", True, M, y)
    assert at_most(data, 60, 0) is data
    part = at_most(data, 30, 0)
    assert np.bincount(part.y).tolist() == [20, 10]
    kept = [np.flatnonzero((row[0] == M).any(axis=1))[0] for row in part.M]
    assert np.array_equal(part.M, M[np.ix_(kept, kept)])
    assert np.array_equal(part.y, y[kept])


def test_a_place_is_looked_up_without_its_polygons(monkeypatch):
    made = []
    real = classifying.sets.learning_set
    monkeypatch.setattr(
        classifying.sets, "learning_set", lambda n, s: made.append(s.polygons) or real(n, s)
    )
    where = place("polydism57", replace(SMALL, polygons=10**9))
    assert made == [classifying.PROBE]
    assert (where.n, where.n_classes, where.folds) == (10**9, 2, 2)
    assert place("polydism57", replace(SMALL, polygons=10**9), most=500).n == 500


def test_tasks_travel_and_give_rows_of_every_fold():
    where = place("polydism57", SMALL)
    tasks = [pickle.loads(pickle.dumps(task)) for task in classifying.scheme_tasks(where)]
    rows = [row for task in tasks for row in task.run()]
    assert [task.key for task in tasks] == [
        f"classifying/quick/polydism57 (an equivalent) of 60/scheme/fold {i}/seed 0"
        for i in range(2)
    ]
    cells = errors_by_cell(rows)["polydism57", ALL]
    assert set(cells) == {Cell(m, PAPER, k) for m in LEARNERS for k in (3, 8)}
    for cell, errors in cells.items():
        mine = [r for r in rows if (r["method"], r["rank"]) == (cell.method, cell.rank)]
        assert errors.values.tolist() == pytest.approx([100 * r["missed"] / 30 for r in mine])
    assert list(classifying.rest_tasks(where)) == []  # two classes


def row(method="krein lsm", fold=0, missed=0, target=ALL, folds=2, **others):
    wrong = " ".join(map(str, range(missed)))
    values = {
        "set": "s", "n": 40, "target": target, "method": method, "folds": folds, "seed": 0,
        "fold": fold, "n_train": 20, "n_test": 20, "missed": missed, "wall": 1.0, "cpu": 1.0,
        "wrong": wrong, "chosen": "", "failed": "", "variant": PAPER, "rank": 3, "origin": "",
        "base": None,
    }  # fmt: skip
    return values | others


def test_one_against_the_rest_is_the_mean_over_classes():
    missed = {("1", 0): 2, ("1", 1): 4, ("2", 0): 6, ("2", 1): 0}
    result = errors_by_cell([row(fold=f, missed=m, target=t) for (t, f), m in missed.items()])
    cell = Cell("krein lsm", PAPER, 3)
    assert result["s", ONE_VS_REST][cell].values.tolist() == [20.0, 10.0]
    assert result["s", "1"][cell].values.tolist() == [10.0, 20.0]


@pytest.mark.parametrize(("folds", "median"), [(3, 20.0), (1, 40.0)])
def test_medians_are_over_folds_and_one_split_has_its_error(folds, median):
    rows = [
        row(fold=f, missed=m, folds=folds) for f, m in zip(range(folds), (8, 4, 2), strict=False)
    ]
    (errors,) = errors_by_cell(rows)["s", ALL].values()
    assert errors.median == median
    assert ("±" in str(errors)) == (folds > 1)


def test_every_choice_is_one_word() -> None:
    x = np.random.default_rng(0).normal(size=(60, 2))
    D = np.abs(x[:, None] - x).sum(axis=2)
    model = KreinClassifier("precomputed_dissimilarity", random_state=0).fit(D, x[:, 0] > 0)
    words = dict(word.split("=", 1) for word in chosen(model).split())
    assert words["similarity"] == model.similarity_.replace(" ", "")
    assert float(words["lambda_plus"]) > 0
