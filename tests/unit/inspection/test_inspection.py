"""inspect: every finding recomputed from its definition, and the words that go with it."""

from __future__ import annotations

import itertools
import os
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.utils._param_validation import InvalidParameterError

from kreinlearn import dissimilarity, inspect, pairwise, progress
from kreinlearn.datasets import make_balls3d, make_polygons
from kreinlearn.inspection import measures, prepared
from kreinlearn.kernels import Precomputed
from kreinlearn.kernels.strings import Levenshtein
from tests.cases import with_spectrum

Array = np.ndarray[Any, np.dtype[Any]]
RNG = np.random.default_rng(11)


def metric_breaker(n: int = 30) -> Array:
    """Squared distances on a line: a dissimilarity that is no metric."""
    x = RNG.uniform(size=n)
    return np.abs(x[:, None] - x) ** 2


def test_signature_spectrum_and_indefiniteness_of_a_prescribed_spectrum() -> None:
    values = np.concatenate([np.linspace(1, 9, 20), -np.linspace(0.5, 3, 12), np.zeros(8)])
    K, _ = with_spectrum(values, RNG)
    found = inspect(K, random_state=0)
    assert found.exact
    assert found.signature == (20, 12, 8)
    by_size = values[np.argsort(-np.abs(values))][:32]
    np.testing.assert_allclose(found.eigenvalues, by_size, rtol=1e-10)
    share = np.abs(values[values < 0]).sum() / np.abs(values).sum()
    assert found.indefiniteness[40] == pytest.approx(share, rel=1e-10)
    assert not found.positive_definite
    tails = [np.linalg.norm(by_size[k:]) / np.linalg.norm(by_size) for k in range(33)]
    assert found.effective_rank == next(k for k, tail in enumerate(tails) if tail <= 0.05)


def test_sizes_are_nested_and_labelled() -> None:
    K, _ = with_spectrum(np.linspace(-1, 2, 200), RNG)
    found = inspect(K, n_samples=120, random_state=3)
    assert list(found.indefiniteness) == [30, 60, 120]
    assert not found.exact
    assert (found.n_objects, found.n_sampled) == (200, 120)
    order = np.random.default_rng(3).permutation(200)[:30]
    D = np.linalg.eigvalsh(K[np.ix_(order, order)])
    expected = np.abs(D[D < 0]).sum() / np.abs(D).sum()
    assert found.indefiniteness[30] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("s", "sizes"), [(3, [3]), (25, [25]), (60, [30, 60]), (80, [20, 40, 80])])
def test_small_samples_are_not_cut_further(s: int, sizes: list[int]) -> None:
    assert measures.nested_sizes(s) == sizes


def test_triangles_by_counting_all() -> None:
    D = metric_breaker(12)
    triples = list(itertools.permutations(range(12), 3))
    broken = sum(D[x, z] > D[x, y] + D[y, z] + 1e-12 for x, y, z in triples)
    found = inspect(D, "precomputed_dissimilarity", random_state=1)
    assert found.triangle_violations == pytest.approx(broken / len(triples), abs=0.01)
    assert "triangle inequality" in found.advice
    euclid = inspect(np.sqrt(D), "precomputed_dissimilarity", random_state=1)
    assert euclid.triangle_violations == 0.0


def test_label_signal_is_the_negative_share_of_the_quadratic_form() -> None:
    values = np.concatenate([np.linspace(1, 2, 25), -np.linspace(1, 2, 25)])
    K, _ = with_spectrum(values, RNG)
    y = RNG.standard_normal(50)
    eigenvalues, vectors = np.linalg.eigh(K)
    c = (vectors.T @ (y - y.mean())) ** 2 * np.abs(eigenvalues)
    found = inspect(K, y=y, random_state=0)
    # the rows are drawn in random order: the quadratic form does not see it
    assert found.label_signal == pytest.approx(c[eigenvalues < 0].sum() / c.sum(), rel=1e-9)


def test_labels_in_the_negative_part_are_told_from_those_in_the_positive() -> None:
    n = 60
    labels = np.repeat(["a", "b"], n // 2)
    u = np.where(labels == "a", 1.0, -1.0) / np.sqrt(n)
    noise = RNG.standard_normal((n, 5))
    K = noise @ noise.T / 10 - 40 * np.outer(u, u)
    K = 0.5 * (K + K.T)
    negative, positive = inspect(K, y=labels), inspect(-K, y=labels)
    assert negative.label_signal is not None
    assert positive.label_signal is not None
    assert negative.label_signal > 0.9 > 0.1 > positive.label_signal
    assert "would lose signal" in negative.advice
    assert "looks like noise" in positive.advice


def words(n: int) -> list[str]:
    lengths = RNG.integers(3, 12, n)
    return ["".join(RNG.choice(list("abcd"), size=k)) for k in lengths]


def test_random_labels_do_not_use_the_negative_part() -> None:
    X = words(60)
    D = np.array([[edit_distance(a, b) for b in X] for a in X])
    triggered = 0
    for seed in range(50):
        y = np.random.default_rng(seed).integers(2, size=60)
        found = inspect(D, "precomputed_dissimilarity", y=y, random_state=seed)
        triggered += "would lose signal" in found.advice
        assert "99 shuffles" in dict(found.rows())["label signal in the negative part"]
    assert triggered <= 3  # one in a hundred is expected


def edit_distance(a: str, b: str) -> float:
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (x != y))
    return float(row[-1])


def test_radii_of_balls_are_in_the_negative_part() -> None:
    for seed in range(3):
        D, y = make_balls3d((80, 80), random_state=seed)
        found = inspect(D, "precomputed_dissimilarity", y=y, random_state=seed)
        assert found.label_excess is not None
        assert found.label_excess > 1.1
        assert "more than any of 99 shuffles" in found.advice
        assert "would lose signal" in found.advice


def test_label_excess_is_that_over_the_most_of_shuffled_labels() -> None:
    K, _ = with_spectrum(np.linspace(-2, 1, 30), RNG)
    eigenvalues, U = np.linalg.eigh(K)
    negative = (U * np.minimum(eigenvalues, 0)) @ U.T
    y = RNG.standard_normal(30)
    sizes = [np.linalg.norm(negative @ (RNG.permutation(y) - y.mean())) for _ in range(2000)]
    own = np.linalg.norm(negative @ (y - y.mean()))
    found = inspect(K, y=y, random_state=0)
    assert found.label_excess is not None
    assert np.quantile(sizes, 0.95) < own / found.label_excess <= 1.05 * max(sizes)


def test_labels_that_cannot_be_shuffled() -> None:
    K, _ = with_spectrum(np.linspace(-1, 1, 30), RNG)
    for y in (np.zeros(30, dtype=int), np.arange(30)):  # all alike, all different
        found = inspect(K, y=y, random_state=0)
        assert "looks like noise" in found.advice


def test_the_answer_is_how_well_the_nearest_others_predict() -> None:
    """Recomputed object by object, from the distances themselves."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 2))
    D = np.sqrt(np.square(x[:, None] - x).sum(axis=2))
    labels, numbers = np.where(x[:, 0] + 0.3 * rng.normal(size=60) > 0.5, "a", "b"), x.sum(axis=1)
    nearest = [sorted(set(range(60)) - {i}, key=lambda j, i=i: D[i, j])[:5] for i in range(60)]
    votes = [max("ab", key=[labels[j] for j in five].count) for five in nearest]
    right, guess = np.mean(votes == labels), np.mean(labels == "b")
    assert 0.6 < guess < right < 1
    K = -0.5 * np.square(D)
    for M, kernel in ((D, "precomputed_dissimilarity"), (K, "precomputed")):
        found = inspect(M, kernel, y=labels, random_state=0)
        assert found.neighbours_score == pytest.approx(right)
        assert found.guess_score == pytest.approx(guess)
        assert found.looks_like_dissimilarity is False
        assert str(found).startswith(
            f"Predicted by 5 nearest neighbours (leave-one-out), {right:.0%} of 60 objects get the "
            f"right class; always guessing the most frequent class gets {guess:.0%} right. It is "
        )
    errors = [numbers[i] - numbers[five].mean() for i, five in enumerate(nearest)]
    r2 = 1 - np.mean(np.square(errors)) / np.var(numbers)
    for y, wanted in ((numbers, r2), (np.column_stack([numbers, 9 * numbers + 1]), r2)):
        found = inspect(D, "precomputed_dissimilarity", y=y, random_state=0)
        assert found.neighbours_score == pytest.approx(wanted, rel=1e-5)
        assert found.guess_score is None
        assert f"{r2:.0%} of the variance of the target is explained (R^2 = " in found.answer
    whole = np.round(100 * numbers).astype(int)  # many whole numbers are no classes
    found = inspect(D, "precomputed_dissimilarity", y=whole, random_state=0)
    assert found.neighbours_score == pytest.approx(r2, abs=0.01)


def test_there_is_no_answer_where_none_is_known() -> None:
    D = np.abs(np.subtract.outer(np.arange(20.0), np.arange(20.0)))
    y = np.arange(20) % 2
    assert inspect(D, "precomputed_dissimilarity").answer == ""
    assert inspect(D, y=y).answer == ""  # distances that are taken for similarities
    assert inspect(np.ones((20, 20)), y=y).answer == ""
    assert inspect(np.ones((1, 1)), y=[0]).answer == ""
    worse = inspect(D, "precomputed_dissimilarity", y=y, random_state=0)
    assert worse.answer.endswith("Neighbours tell nothing here; learners may, and evaluate "
                                 "compares them.")  # fmt: skip
    same = inspect(D, "precomputed_dissimilarity", y=np.full(20, 0.5))
    assert same.neighbours_score == 0
    assert "nothing of the variance" in same.answer


def test_asymmetry_drift_and_duplicates() -> None:
    K = RNG.standard_normal((20, 20))
    found = inspect(K)
    assert found.asymmetry == pytest.approx(np.abs(K - K.T).max() / np.abs(K).max())
    assert "not symmetric. The matrix is averaged with its transpose" in found.advice
    calls = itertools.count()
    found = inspect(list("abcdefgh"), pairwise(lambda a, b: float(next(calls))))
    assert found.drift > 0
    assert found.asymmetry is None
    assert dict(found.rows())["symmetric"] == "not known"
    assert "no result will repeat" in found.advice
    X = np.repeat(RNG.standard_normal((10, 2)), 2, axis=0)
    found = inspect(X, dissimilarity("cityblock"))
    assert found.duplicates == 10
    assert "10 pairs of objects cannot be told apart by it. If they are copies, " in found.advice
    assert "if the objects differ, it does not see the difference" in found.advice


def test_what_becomes_of_an_asymmetric_function() -> None:
    X = RNG.uniform(size=12)
    found = inspect(list(X), pairwise(lambda a, b: 2 * a + b))
    assert found.asymmetry is not None
    assert found.asymmetry > 0
    assert "average" not in found.advice
    assert "evaluated in one direction and mirrored" in found.advice
    assert "k(x, z) with z the landmark" in found.advice
    blocks = inspect(X[:, None], lambda A, B: 2 * A + B.T)
    assert "among landmarks are averaged" in blocks.advice
    inside = inspect(list(X), pairwise(lambda a, b: 2 * a + b) + pairwise(lambda a, b: a * b))
    assert "among landmarks are made symmetric" in inside.advice


def test_a_dissimilarity_passed_as_a_similarity() -> None:
    D = metric_breaker()
    found = inspect(D)
    assert found.looks_like_dissimilarity
    assert found.advice.startswith("This looks like a dissimilarity")
    assert 'kernel="precomputed_dissimilarity"' in found.advice
    assert "looks like a dissimilarity" in dict(found.rows())["kind"]
    pairs = inspect(list(range(9)), pairwise(lambda a, b: abs(a - b)))
    assert pairs.advice.startswith("This looks like a dissimilarity")
    assert "kernel=dissimilarity(pairwise(f))" in pairs.advice
    blocks = inspect(np.arange(9.0)[:, None], lambda A, B: np.abs(A - B.T))
    assert "kernel=dissimilarity(f)" in blocks.advice
    for K in (D + np.eye(30), -D):
        assert "dissimilarity" not in str(inspect(K))
    assert not inspect(D, "precomputed_dissimilarity").looks_like_dissimilarity


def test_objects_that_differ_from_themselves() -> None:
    D = metric_breaker(8)
    shifted = D + 0.25 * D.max() * np.eye(8)
    found = inspect(shifted, "precomputed_dissimilarity")
    assert found.self_dissimilarity == pytest.approx(0.25)
    assert "differ from themselves" in found.advice
    clean = inspect(D, "precomputed_dissimilarity")
    assert clean.self_dissimilarity == 0.0
    assert clean.indefiniteness == pytest.approx(found.indefiniteness)
    assert inspect(shifted, Precomputed(is_dissimilarity=True)).signature == found.signature
    slight = D + 1e-11 * D.max() * np.eye(8)  # fit refuses it
    assert inspect(slight, "precomputed_dissimilarity").self_dissimilarity > 0
    apart = dissimilarity(pairwise(lambda a, b: 1.0 + abs(a - b)))
    assert inspect([0.0, 1.0, 3.0], apart).self_dissimilarity == pytest.approx(0.25)


def test_a_function_and_its_matrix_count_no_object_apart_from_itself() -> None:
    x = RNG.uniform(size=30)
    D = np.abs(x[:, None] - x) ** 1.5 + 0.5
    by_matrix = inspect(D, "precomputed_dissimilarity", random_state=0)
    f = dissimilarity(pairwise(lambda a, b: abs(a - b) ** 1.5 + 0.5))
    by_blocks = dissimilarity(lambda A, B: np.abs(A - B.T) ** 1.5 + 0.5)
    for X, kernel in ((list(x), f), (x[:, None], by_blocks)):
        found = inspect(X, kernel, random_state=0)
        np.testing.assert_allclose(found.eigenvalues, by_matrix.eigenvalues, rtol=1e-9)
        assert found.signature == by_matrix.signature == (29, 0, 1)
        assert found.self_dissimilarity == pytest.approx(0.5 / D.max())
        assert "counted as zero" in dict(found.rows())["self-dissimilarity"]
        assert "counts as zero" in found.advice


@pytest.mark.parametrize(
    ("X", "kernel", "said"),
    [
        ([[5.0]], "precomputed", "one object"),
        (["ab"], Levenshtein(), "one object"),
        (np.zeros((6, 6)), "precomputed", "No two"),
        (np.full((6, 6), 3.0), "precomputed", "No two"),
        (np.zeros((6, 6)), "precomputed_dissimilarity", "No two"),
        (["ab"] * 6, Levenshtein(), "No two"),
    ],
)
def test_nothing_to_learn_from(X: Any, kernel: Any, said: str) -> None:
    found = inspect(X, kernel)
    assert said in found.advice
    assert found.advice.endswith("there is nothing to learn from.")
    assert "any kernel method" not in found.advice


def test_a_positive_definite_matrix_is_said_to_be_one() -> None:
    A = RNG.standard_normal((40, 3))
    found = inspect(A @ A.T)
    assert found.positive_definite
    assert found.signature == (3, 0, 37)
    assert found.effective_rank <= 3
    assert "positive semi-definite" in found.advice
    assert "positive definite" in str(found)


def test_objects_columns_and_many_objects() -> None:
    X, y = make_polygons(300, random_state=0)
    found = inspect(X, "modified_hausdorff", y=y, n_samples=80, random_state=0)
    assert (found.kind, found.n_objects, found.n_sampled) == ("dissimilarity", 300, 80)
    texts = pd.Series(["ab", "abc", "b", "cab"] * 5)
    overlap = pairwise(lambda a, b: float(len(set(a) & set(b))))
    assert inspect(texts, overlap).n_objects == 20
    V = RNG.standard_normal((50_000, 2))
    found = inspect(V, "delta_gauss", n_samples=200, random_state=0)
    assert found.indefiniteness[200] == pytest.approx(0.5, abs=1e-9)  # k(x, x) = 0
    assert found.n_landmarks is None or found.n_landmarks <= 100


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match=r"y has 3 labels for 20 objects"):
        inspect(np.eye(20), y=[0, 1, 0])
    with pytest.raises(InvalidParameterError, match="n_samples"):
        inspect(np.eye(20), n_samples=1)
    with pytest.raises(ValueError, match="Negative values"):
        inspect(-np.ones((4, 4)) + np.eye(4), "precomputed_dissimilarity")
    for kernel in (
        dissimilarity(pairwise(lambda a, b: -abs(a - b))),
        dissimilarity(lambda A, B: np.subtract.outer(A, B) - 5),
    ):
        with pytest.raises(ValueError, match="Negative values"):
            inspect([1.0, 2.0, 3.0], kernel)
    with pytest.raises(InvalidParameterError, match="n_jobs"):
        inspect(np.eye(20), n_jobs="two")


# Processes, threads and what is said meanwhile


def test_functions_go_to_other_processes() -> None:
    here = os.getpid()
    away = pairwise(lambda a, b: float(os.getpid() != here))
    found = inspect(list(range(20)), away, n_jobs=2)
    np.testing.assert_allclose(found.eigenvalues, [20.0])  # all evaluated elsewhere
    assert len(inspect(list(range(20)), away).eigenvalues) == 0


def test_the_number_of_jobs_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    workers = []

    def evaluate(*given: Any) -> Any:
        workers.append(given[4].workers)
        return evaluate_square(*given)

    evaluate_square = prepared.evaluate_square
    monkeypatch.setattr(prepared, "evaluate_square", evaluate)
    X = words(70)
    one, two = (inspect(X, Levenshtein(), n_jobs=jobs, random_state=0) for jobs in (1, 2))
    assert workers == [1, 2]
    np.testing.assert_array_equal(one.eigenvalues, two.eigenvalues)
    assert str(one) == str(two)


def test_a_long_run_is_announced(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "LONG_RUN", 0.0)
    calls = itertools.count()

    def common(a: str, b: str) -> float:
        next(calls)
        return float(sum(x == y for x in a for y in b))

    X = words(120)
    inspect(X, pairwise(common), random_state=0)
    evaluated = next(calls)
    assert capfd.readouterr().err == ""
    inspect(X, pairwise(common), random_state=0, verbose=1)
    said = re.fullmatch(r"common: ([0-9,]+) pairs, about .* on 1 core\n", capfd.readouterr().err)
    assert said is not None
    assert int(said[1].replace(",", "")) == evaluated
