"""Landmarks that a function of the user chooses."""

from __future__ import annotations

import numpy as np
import pytest

from kreinlearn import KreinNystroem, KreinRidgeClassifier, KreinSVC, Landmarks, load, save
from kreinlearn.kernels import dissimilarity, pairwise

RNG = np.random.default_rng(2)
X = RNG.normal(size=(50, 2))
Y = X[:, 0] > 0
WORDS = ["".join(RNG.choice(list("ab"), size=RNG.integers(1, 9))) for _ in range(50)]


def longest(rows, m, rng):
    return np.argsort([-len(row) for row in rows], kind="stable")[:m]


def farthest(rows, m, rng, columns):
    """Each landmark is the object that is farthest from all before."""
    chosen = [int(rng.integers(len(rows)))]
    gaps = columns(chosen)[:, 0]
    while len(chosen) < m:
        chosen.append(int(np.argmax(np.where(np.isin(np.arange(len(rows)), chosen), -1, gaps))))
        gaps = np.minimum(gaps, columns(chosen[-1:])[:, 0])
    return chosen


@pytest.mark.parametrize(
    ("given", "m"), [(longest, 50), (Landmarks(None, longest), 50), (Landmarks(7, longest), 7)]
)
def test_rows_are_enough(given, m):
    if given is longest:
        with pytest.warns(UserWarning, match=r"all 50 objects are landmarks, .* not called"):
            model = KreinNystroem("levenshtein", landmarks=given, rank=3).fit(WORDS)
    else:
        model = KreinRidgeClassifier("levenshtein", landmarks=given).fit(WORDS, np.arange(50) % 2)
    assert {*model.landmark_indices_} == {*longest(WORDS, m, None)}
    assert model.n_landmarks_ == m


def test_kernel_values_are_evaluated_once():
    calls = []

    def d(a, b):
        calls.append((a, b))
        return float(abs(a - b).sum())

    rows = [*X]
    kernel = dissimilarity(pairwise(d))
    model = KreinRidgeClassifier(
        kernel, landmarks=Landmarks(8, farthest), similarity="exp", lambda_plus=0.1,
        lambda_minus=0.1, random_state=0,
    ).fit(rows, Y)  # fmt: skip
    assert len(calls) <= 8 * 9 // 2 + 8 * 42 + 108  # the last are those of the probe
    D = np.abs(X[:, None] - X).sum(2)
    chosen = model.landmark_indices_
    among = D[np.ix_(chosen, chosen)] + 9 * np.eye(8)
    others = np.setdiff1d(np.arange(50), chosen)
    assert among.min() >= D[np.ix_(others, chosen)].min(axis=1).max()  # it is a cover
    calls.clear()
    model.predict(rows[:1])
    assert len(calls) == 8


def test_objects_whose_values_were_only_looked_at_are_no_landmarks():
    def looks_around(rows, m, rng, columns):
        assert columns(range(20)).shape == (len(rows), 20)
        return range(18, 18 + m)  # two of those, and others

    chosen = np.arange(18, 24)
    found, given = (
        KreinNystroem(landmarks=Landmarks(n, scheme, core="plain"), rank=4).fit(X)
        for n, scheme in ((6, looks_around), (chosen, "auto"))
    )
    assert found.landmark_indices_.tolist() == chosen.tolist()
    np.testing.assert_allclose(found.approximate(X), given.approximate(X), rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    "wrong", [[0, 1], [0, 0, 1], [0, 1, 50], [0.0, 1.0, 2.0], None, [-1, 0, 1]]
)
def test_what_a_function_returns_is_checked(wrong):
    model = KreinSVC(landmarks=Landmarks(3, lambda rows, m, rng: wrong))
    with pytest.raises(ValueError, match=r"must return 3 distinct row numbers in 0\.\.49"):
        model.fit(X, Y)


def test_a_model_is_saved_without_the_function(tmp_path):
    model = KreinRidgeClassifier(landmarks=Landmarks(5, longest), random_state=0).fit(X, Y)
    with pytest.warns(UserWarning, match="is not data and is not stored"):
        save(model, tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict(X), model.predict(X))


def test_an_l1_penalty_evaluates_the_landmarks_that_are_left():
    calls = [0]

    def d(a, b):
        calls[0] += 1
        return float(abs(a - b).sum())

    rows, kernel = [*X], dissimilarity(pairwise(d))
    given = {"landmarks": 20, "lambda_l1": 0.05, "random_state": 0}
    for similarity, extra in (("exp", 0), ("gauss", 0), ("linear", 1)):
        model = KreinSVC(kernel, similarity=similarity, **given).fit(rows, Y)
        assert model.n_landmarks_ < 20
        calls[0] = 0
        f = model.decision_function(rows)
        assert (calls[0] == 50 * model.n_landmarks_) == (not extra)
        again = KreinSVC(
            "precomputed_dissimilarity", similarity=similarity, **given
        ).fit(np.abs(X[:, None] - X).sum(2), Y)  # fmt: skip
        np.testing.assert_allclose(f, again.decision_function(np.abs(X[:, None] - X).sum(2)),
                                   rtol=0, atol=1e-8)  # fmt: skip


def test_a_function_with_other_parameters_is_told_how_it_is_called():
    with pytest.raises(TypeError, match=r"called as f\(rows, m, rng\)"):
        KreinNystroem("levenshtein", landmarks=Landmarks(5, lambda rows, m: range(m))).fit(WORDS)
