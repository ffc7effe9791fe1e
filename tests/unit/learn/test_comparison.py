"""Similarities judged and blended: weights by their formula, penalties of outliers, outer folds."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import PredefinedSplit

from kreinlearn import KreinRidge
from kreinlearn.kernels.dissimilarity import (
    AUTO_TRANSFORMS,
    OF_SEVERAL,
    TRANSFORMS,
    make_transform,
    shares_of,
)
from kreinlearn.kernels.several import Term
from kreinlearn.learn.comparison import (
    LEAST_SHARE,
    MOST,
    OUTER_FOLDS,
    OUTLIER,
    RAISED,
    SHARPEST,
    SHARPNESS,
    Comparison,
)
from kreinlearn.learn.folds import rounds_of_folds
from kreinlearn.learn.search import Unknowns
from tests import oracles

BOTH = Unknowns((None, None))
EPS = float(np.finfo(np.float64).eps)


def problem(n: int = 40, seed: int = 0, q: int = 1) -> tuple[list[Any], Any]:
    """Distances by one coordinate each, the first of which decides; and targets."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    Y = np.stack([np.sin((2 + j) * X[:, 0]) for j in range(q)], axis=1)
    return [np.abs(x[:, None] - x) for x in X.T], Y + 0.1 * rng.normal(size=(n, q))


# The weights of a blend


def shares_by_formula(losses: dict[Any, float], Y: Any, w: Any = None) -> dict[Any, float]:
    """Those of the first lines of the module, and what is small or one too many is dropped.

    Keys are a number of a kernel and the name of a transformation.
    """
    n, w = len(Y), np.ones(len(Y)) if w is None else w
    mean = np.average(Y, axis=0, weights=w)
    e = np.average(np.square(Y - mean).sum(axis=1), weights=w) / n
    least = min(losses.values())
    of_kernel = [number for number, _ in losses]
    shares = {
        key: ((loss + e) / (least + e)) ** -min(n / SHARPNESS, SHARPEST) / of_kernel.count(key[0])
        for key, loss in losses.items()
    }
    largest = sorted(shares, key=shares.__getitem__)[-MOST:]
    most = max(shares.values())
    kept = {key: shares[key] for key in largest if shares[key] >= LEAST_SHARE * most}
    return {key: share / sum(kept.values()) for key, share in kept.items()}


def found_shares(comparison: Comparison, names: Any) -> tuple[dict[Any, float], Any]:
    """Shares of all similarities, as the names of terms and the shares of kernels have them."""
    blended = comparison.blended(names, BOTH)
    found = {}
    for term in blended.judged.terms:
        parts = {None: 1.0} if term.transform is None else shares_of_term(term.transform)
        for name, share in parts.items():
            found[term.number, name] = share * blended.shares[term.number]
    return found, blended


def shares_of_term(name: str) -> dict[str, float]:
    return shares_of(name) if " + " in name else {name: 1.0}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [20, 60])
def test_weights_are_those_of_the_formula(n: int, weighted: bool) -> None:
    values, Y = problem(n, q=2)
    w = np.random.default_rng(1).uniform(0.5, 2, n) if weighted else None
    comparison = Comparison([values[0], values[1], np.exp(-values[2])], Y, w).with_rounds()
    found, blended = found_shares(comparison, [AUTO_TRANSFORMS, AUTO_TRANSFORMS, (None,)])
    losses = {(term.number, term.transform): tuned.loss for term, tuned in blended.alone}
    assert len(losses) == 2 * len(AUTO_TRANSFORMS) + 1
    wanted = shares_by_formula(losses, Y, w)
    assert set(found) == set(wanted)
    assert len(found) <= MOST
    for key, share in wanted.items():  # names have two digits
        assert found[key] == pytest.approx(share, rel=0.06, abs=1e-3)
    by_kernel = [sum(s for (k, _), s in wanted.items() if k == number) for number in range(3)]
    assert_allclose(blended.shares, by_kernel, rtol=1e-12, atol=1e-15)


def test_of_more_objects_the_weights_are_sharper() -> None:
    """A tenth more of loss counts (1.1)^(n / SHARPNESS) times less."""
    Y = np.random.default_rng(0).normal(size=(200, 1))
    few, many = (shares_by_formula({(0, "exp"): 1.0, (0, "rank3"): 1.1}, Y[:n]) for n in (20, 200))
    assert few[0, "rank3"] > 0.4
    assert many[0, "rank3"] < 0.2


def test_above_some_objects_the_weights_stay_as_sharp() -> None:
    """Kernels that are nearly as good as the best one are not dropped, however many objects are."""
    Y = np.random.default_rng(0).normal(size=(2000, 1))
    some, many = (shares_by_formula({(0, None): 1.0, (1, None): 1.1}, Y[:n]) for n in (400, 2000))
    assert many[1, None] == pytest.approx(some[1, None], rel=0.05)


def test_of_many_objects_kernels_that_see_something_else_are_added() -> None:
    """The target is a sum of two functions, of which each kernel sees one; the third sees noise."""
    values, _ = problem(n := 170)
    X = np.stack([D[:, 0] for D in values], axis=1)
    noise = np.random.default_rng(1).normal(size=(n, 1))
    Y = np.sin(X[:, :1]) + 0.6 * np.sin(X[:, 1:2]) + 0.05 * noise
    comparison = Comparison(values, Y).with_rounds()
    names = [AUTO_TRANSFORMS] * 3
    blended = comparison.blended(names, BOTH)
    assert blended.shares.sum() == pytest.approx(1)
    assert min(blended.shares[:2]) > 0.2 > 2 * blended.shares[2]
    alone = min(tuned.loss for _, tuned in blended.alone)
    assert blended.judged.tuned.loss < alone / 2
    unscreened = comparison.blended(names, BOTH, screens=False)
    assert unscreened.shares[1] == 0


def test_a_similarity_that_tells_nothing_is_dropped() -> None:
    values, Y = problem(80)
    comparison = Comparison(values, Y).with_rounds()
    _, blended = found_shares(comparison, [AUTO_TRANSFORMS] * 3)
    assert blended.shares[0] == pytest.approx(1.0)
    assert {term.number for term in blended.judged.terms} == {0}
    assert [term.number for term, _ in blended.alone].count(2) == len(AUTO_TRANSFORMS)


def test_if_kernels_are_not_added_the_best_one_is_blended_alone() -> None:
    values, Y = problem(24, seed=3)
    comparison = Comparison(values, Y + np.random.default_rng(0).normal(size=Y.shape))
    comparison = comparison.with_rounds()
    names = [OF_SEVERAL] * 3
    added, alone = (comparison.blended(names, BOTH, adds=adds) for adds in (True, False))
    assert len(added.judged.terms) > 1
    (term,) = alone.judged.terms
    assert term.number == alone.alone[0][0].number
    assert term.weight == 1
    losses = {
        (t.number, t.transform): tuned.loss for t, tuned in alone.alone if t.number == term.number
    }
    wanted = shares_by_formula(losses, comparison.Y)
    for (_, name), share in wanted.items():
        assert shares_of_term(term.transform)[name] == pytest.approx(share, rel=0.06, abs=1e-3)


def test_a_blend_is_made_anew_of_each_training_part() -> None:
    """Its loss by plain numpy: the transformations of a fold are those of its training part."""
    values, Y = problem(30)
    comparison = Comparison(values, Y).with_rounds()
    judged = comparison.blended([AUTO_TRANSFORMS] * 2, BOTH).judged

    def similarities(train: Any, rows: Any) -> Any:
        total = np.zeros((len(rows), len(train)))
        for number, name, weight in judged.terms:
            D = values[number][np.ix_(train, train)]
            for part, share in shares_of_term(name).items():
                transform = make_transform(part, D)
                a = transform.offsets(D)
                D_rows = values[number][np.ix_(rows, train)]
                size = np.abs(np.diagonal(transform.similarity(D, a, a))).mean() or 1.0
                size = size if " + " in name else 1.0
                S = transform.similarity(D_rows, transform.offsets(D_rows), a)
                total += weight * share / size * S
        return total

    def fold(train: Any, valid: Any) -> Any:
        K = similarities(train, train)
        values = tuple(judged.tuned.values * judged.basis.unit)
        a, b = oracles.exact_ridge(0.5 * (K + K.T), Y[train], values)
        return similarities(train, valid) @ a + b

    wanted = oracles.cross_validated(fold, np.column_stack(comparison.rounds), Y)
    assert judged.tuned.loss == pytest.approx(wanted, rel=1e-6)
    assert judged.loss(judged.tuned.values)[0] == judged.tuned.loss


def test_kernels_are_brought_to_one_scale_by_a_power_of_two() -> None:
    """Distances of other units change no share, and no weight but by the unit."""
    values, Y = problem(24, seed=3)
    Y = Y + np.random.default_rng(0).normal(size=Y.shape)
    names = [("squared",), ("linear",), ("exp",)]
    plain = Comparison(values, Y).with_rounds().blended(names, BOTH)
    scaled = [2.0**power * D for power, D in zip((3, -5, 7), values, strict=True)]
    other = Comparison(scaled, Y).with_rounds().blended(names, BOTH)
    assert_allclose(other.shares, plain.shares, rtol=1e-9)
    units = {"squared": 2.0**-6, "linear": 2.0**5, "exp": 1.0}
    for one, again in zip(plain.judged.terms, other.judged.terms, strict=True):
        assert again.weight == pytest.approx(units[one.transform] * one.weight, rel=1e-9)
        K = plain.judged.terms and Comparison(values, Y).among([one._replace(weight=1.0)])
        size = one.weight / plain.shares[one.number] * np.abs(np.linalg.eigvalsh(K)).mean()
        assert 0.7 <= size <= 1.5  # the root of two either way


# Models that are outliers among those of the folds


def comparison_of(d: Any, part: Any, seed: int = 0) -> tuple[Comparison, Any]:
    """A matrix with these eigenvalues, and targets that have parts of their eigenvectors."""
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.normal(size=(len(d), len(d))))[0]
    K = (Q * d) @ Q.T
    comparison = Comparison([0.5 * (K + K.T)], Q @ np.asarray(part)[:, None], intercept=False)
    return comparison.with_rounds(), Q


def size_of(K: Any, Y: Any, values: Any) -> float:
    """The norm of what multiplies the eigenvectors: g(d) u'y."""
    d, U = np.linalg.eigh(K)
    c = len(K) * np.where(d > 0, *values)
    return float(np.linalg.norm((U.T @ Y)[:, 0] / (np.abs(d) + c)))


def steadied(comparison: Comparison, values: Any, unknowns: Unknowns = BOTH) -> Any:
    basis = comparison.decomposed([Term(0, None, 1.0)])
    loss = comparison.folds([Term(0, None, 1.0)], basis.unit)
    return comparison._steadied(np.array(values), [Term(0, None, 1.0)], basis, loss, unknowns)


def sizes(comparison: Comparison, values: Any) -> tuple[float, float]:
    """That of all objects, and the largest one of the folds."""
    (K,), Y, found = comparison.values, comparison.Y, []
    for folds in comparison.rounds:
        for k in np.unique(folds):
            rest = np.flatnonzero(folds != k)
            found.append(size_of(K[np.ix_(rest, rest)], Y[rest], values))
    return size_of(K, Y, values), max(found)


@pytest.mark.parametrize("sign", [1, -1])
def test_penalties_are_raised_until_the_model_of_all_objects_is_no_outlier(sign: int) -> None:
    """All objects have an eigenvalue of 1e-6, and no part of them has one below 0.05."""
    n = 30
    comparison, _ = comparison_of(np.append(np.ones(n - 1), sign * 1e-6), np.ones(n))
    values = np.full(2, 1e-5)
    assert ratio(comparison, values) > 100
    found = steadied(comparison, values)
    raised = [factor for factor in RAISED if ratio(comparison, factor * values) <= OUTLIER]
    assert_allclose(found, raised[0] * values, rtol=1e-12)
    assert ratio(comparison, found) <= OUTLIER < ratio(comparison, found / 10**0.5)


def ratio(comparison: Comparison, values: Any) -> float:
    of_all, of_folds = sizes(comparison, values)
    return of_all / of_folds


@pytest.mark.parametrize(
    ("d", "part", "values"),
    [
        (np.linspace(0.5, 1, 30), np.ones(30), np.full(2, 1e-9)),  # no eigenvalue is small
        (np.append(np.ones(29), 1e-6), np.ones(30), np.full(2, 1e-2)),  # penalties are not either
        (np.append(np.ones(29), 1e-6), np.append(np.ones(29), 0.0), np.full(2, 1e-8)),  # no use
    ],
    ids=["no small eigenvalue", "large penalties", "the target has no part of it"],
)
def test_penalties_of_a_model_like_those_of_the_folds_stay(d: Any, part: Any, values: Any) -> None:
    comparison, _ = comparison_of(d, part)
    assert ratio(comparison, values) < OUTLIER
    assert_array_equal(steadied(comparison, values), values)


def test_penalties_that_are_given_are_not_raised() -> None:
    comparison, _ = comparison_of(np.append(np.ones(29), 1e-6), np.ones(30))
    values = np.array([1e-5, 1e-5])
    with pytest.warns(UserWarning, match="much larger coefficients than any model that was judged"):
        found = steadied(comparison, values, Unknowns((1e-5, None)))
    assert_array_equal(found, values)  # the eigenvalue is positive: the other does nothing
    comparison, _ = comparison_of(np.append(np.ones(29), -1e-6), np.ones(30))
    found = steadied(comparison, values, Unknowns((1e-5, None)))
    assert found[0] == 1e-5
    assert found[1] > 1e-4


def test_a_warning_says_that_no_factor_is_enough() -> None:
    comparison, _ = comparison_of(np.append(np.ones(29), 1e-6), np.ones(30))
    values = np.full(2, 1e-9)
    assert ratio(comparison, RAISED[-1] * values) > OUTLIER
    with pytest.warns(UserWarning, match="give larger lambda_plus and lambda_minus"):
        found = steadied(comparison, values)
    assert_array_equal(found, values)


def test_a_model_that_predicts_the_mean_alone_is_no_outlier() -> None:
    """A target of rounding errors of another size has coefficients of any size."""
    Y = np.full((30, 1), 3.0)
    Y[0] += 1e-12  # which is in some of the folds alone
    comparison, values = Comparison([np.eye(30)], Y).with_rounds(), np.full(2, 1e6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_array_equal(steadied(comparison, values), values)


def test_the_closed_form_asks_a_fold_if_one_eigenvector_has_most_of_the_coefficients() -> None:
    comparison, _ = comparison_of(np.append(np.ones(29), 1e-6), np.ones(30))
    terms, values = [Term(0, None, 1.0)], np.full(2, 1e-5)
    alone = replace(comparison, rounds=())
    basis = alone.decomposed(terms)
    found = alone._steadied(values, terms, basis, alone.loss(terms, basis), BOTH)
    assert found[0] == found[1] > values[0]
    assert size_of(comparison.values[0], comparison.Y, found) < ratio(comparison, values)
    large = np.full(2, 1e-2)
    assert alone._steadied(large, terms, basis, alone.loss(terms, basis), BOTH) is large


# Everything found anew


@pytest.mark.parametrize("n", [8, 26, 41])
def test_outer_folds_are_fits_of_their_own(n: int) -> None:
    """By ``KreinRidge`` on the distances of each part, with the folds of that part."""
    values, Y = problem(n, seed=n)
    folds = Comparison(values[:1], Y).with_rounds().without_folds([AUTO_TRANSFORMS], BOTH)
    (outer,) = rounds_of_folds(n, None, None, 1, OUTER_FOLDS)
    assert len(folds) == OUTER_FOLDS
    D = values[0]
    for k, found in enumerate(folds):
        train, valid = np.flatnonzero(outer != k), np.flatnonzero(outer == k)
        assert_array_equal(found.train, train)
        assert_array_equal(found.valid, valid)
        (inner,) = rounds_of_folds(len(train), None, None, 1)
        model = KreinRidge(
            "precomputed_dissimilarity", landmarks=None, cv=PredefinedSplit(inner)
        ).fit(D[np.ix_(train, train)], Y[train, 0])
        size = np.abs(Y).max()
        predicted = model.predict(D[np.ix_(valid, train)])
        assert_allclose(found.scores[:, 0], predicted, rtol=0, atol=1e-5 * size)
        own = np.empty(len(train))
        for fold in np.unique(inner):
            rest, test = train[inner != fold], train[inner == fold]
            one = KreinRidge(
                "precomputed_dissimilarity", landmarks=None, similarity=model.similarity_,
                lambda_plus=model.lambda_plus_, lambda_minus=model.lambda_minus_,
            ).fit(D[np.ix_(rest, rest)], Y[rest, 0])  # fmt: skip
            own[inner == fold] = one.predict(D[np.ix_(test, rest)])
        assert_allclose(found.inner[:, 0], own, rtol=0, atol=1e-5 * size)
        assert_array_equal(found.near, D[:, train])


def test_outer_folds_do_not_spread_classes_and_inner_ones_do() -> None:
    """Of labels that are noise the larger class of the sample would be found again."""
    n = 30
    labels = np.arange(n) % 2
    values, _ = problem(n)
    Y = np.where(labels[:, None] == 1, 1.0, -1.0)
    comparison = Comparison(values[:1], Y, labels=labels)
    folds = comparison.with_rounds().without_folds([("exp",)], BOTH)
    (outer,) = rounds_of_folds(n, None, None, 1, OUTER_FOLDS)
    counts = [np.bincount(labels[found.valid], minlength=2).tolist() for found in folds]
    assert counts == [np.bincount(labels[outer == k], minlength=2).tolist() for k in range(3)]
    assert counts != [[5, 5]] * 3
    for one in comparison.with_rounds().rounds:
        assert all(np.bincount(labels[one == k]).tolist() == [3, 3] for k in range(5))


def test_of_fewer_than_eight_objects_nothing_is_found_anew() -> None:
    values, Y = problem(7)
    comparison = Comparison(values, Y).with_rounds()
    assert comparison.without_folds([("exp",)] * 3, BOTH) == []


def test_every_transformation_is_judged_by_folds() -> None:
    values, Y = problem(20)
    comparison = Comparison(values[:1], Y).with_rounds()
    for name in TRANSFORMS:
        judged = comparison.tuned([Term(0, name, 1.0)], BOTH)
        assert np.isfinite(judged.tuned.loss), name
        assert len(judged.loss.scores(judged.tuned.values)) == 20


# The closed form


@pytest.mark.parametrize("name", ["squared", "linear"])
def test_the_closed_form_centres_anew_without_each_object(name: str) -> None:
    """Folds of one object each make everything anew; their penalties are those of n objects."""
    (D, *_), Y = problem(25, q=2)
    comparison, terms = Comparison([D + D.T], Y), [Term(0, name, 1.0)]
    loss = comparison.loss(terms, comparison.decomposed(terms))
    anew = replace(comparison, rounds=(np.arange(25),))
    each = anew.loss(terms, anew.decomposed(terms))
    for share in (1e-4, 1e-2, 1.0):  # the closed form promises four digits
        values = np.array([share, 10 * share])
        wanted = each.scores(values * 25 / 24)
        assert_allclose(loss.scores(values), wanted, atol=1e-4 * np.abs(wanted).max())


def test_equal_weights_are_no_weights() -> None:
    (D, *_), Y = problem(25)
    comparison, terms = Comparison([D + D.T], Y), [Term(0, "squared", 1.0)]
    weighted = replace(comparison, w=np.full(25, 2.0))
    values = np.array([1e-3, 1e-2])
    losses = [one.loss(terms, one.decomposed(terms))(values)[0] for one in (comparison, weighted)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-9)


@pytest.mark.parametrize(("n", "workers"), [(99, 1), (100, 3)])
def test_tiny_matrices_are_one_thread_s(
    n: int, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[int]()

    def noted(function: Any, items: Any, workers: int) -> list[Any]:
        asked.append(workers)
        return list(map(function, items))

    monkeypatch.setattr("kreinlearn.learn.comparison.map_in_threads", noted)
    values, Y = problem(n)
    Comparison(values, Y, workers=3).blended([AUTO_TRANSFORMS[:2]], BOTH)
    assert asked == [workers]
