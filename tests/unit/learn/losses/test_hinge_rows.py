"""Features of all rows, kept or evaluated again, against the whole matrix of them."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from kreinlearn.data.source import Checked, Stream
from kreinlearn.data.tiles import TILE
from kreinlearn.kernels import DeltaGauss, SklearnMetric
from kreinlearn.kernels.callables import CallableKernel
from kreinlearn.learn.losses.feature_rows import FeatureRows
from kreinlearn.learn.losses.hinge_values import NEAR, ValuesHere
from kreinlearn.learn.losses.kept_rows import InTiles, KeptRows, ranks
from kreinlearn.learn.task import Task
from kreinlearn.nystrom.core import KreinFeatures
from kreinlearn.nystrom.landmarks import MapSpec
from kreinlearn.pairs.pairs import Pairs
from kreinlearn.pairs.rows import Rows, Session
from kreinlearn.solvers.margins import Chosen, DenseRows
from kreinlearn.solvers.squared_hinge import finite_newton
from kreinlearn.sums.moments import Targets
from tests import oracles

RNG = np.random.default_rng(31)
N, M, R = TILE + 700, 9, 6
X = RNG.normal(size=(N, 3))
Z = np.sort(RNG.choice(N, M, replace=False))
W = RNG.normal(size=(M, R))
FEW, MANY = np.array([3, 700, TILE + 5]), np.sort(RNG.choice(N, TILE + 100, replace=False))
UNITS = {"one": 1.0, "four": 4.0}


def delta_gauss(A, B):
    return oracles.delta_gauss(np.asarray(A), np.asarray(B), 6.0, 4.0)


def centred(A, B):
    def squares(U, V):
        return ((U[:, None] - V[None]) ** 2).sum(2)

    means = squares(B, B).mean(1)
    return -0.5 * (squares(A, B) - squares(A, B).mean(1)[:, None] - means + means.mean())


SOURCES = {  # kernel, objects, similarities of all rows to the landmarks
    "vectors": (DeltaGauss(6.0, 4.0), X, delta_gauss(X, X[Z])),
    "sparse": (DeltaGauss(6.0, 4.0), sp.csr_array(X), delta_gauss(X, X[Z])),
    "callable": (CallableKernel(delta_gauss), list(X), delta_gauss(X, X[Z])),
    "distances": (SklearnMetric("euclidean"), X, centred(X, X[Z])),
}


def evaluator(kernel, objects):
    """What evaluates similarities to the landmarks."""
    pairs = Pairs(kernel.fit(objects, RNG), Rows(objects), Session())
    return pairs.evaluator(pairs.with_reference(pairs.grown(pairs.sample(Z), Z)))


def feature_rows(name="vectors", *, intercept=True, unit=1.0, kept=False, workers=1):
    kernel, objects, C = SOURCES[name]
    return FeatureRows(
        objects,
        evaluator(kernel, objects),
        Z,
        unit,
        W,
        N,
        intercept,
        C / unit if kept else None,
        workers=workers,
    )


def features(name, unit, intercept):
    """The whole matrix (k(x, Z) W / unit, 1)."""
    Phi = SOURCES[name][2] / unit @ W
    return np.column_stack([Phi, np.ones(N)]) if intercept else Phi


def sums(rows, numbers, w, t):
    """A and b of one choice of rows."""
    return rows.terms([Chosen(numbers, w, t)])[0]


def assert_close(found, expected, rtol=1e-12):
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=0, atol=rtol * np.abs(expected).max())


sources = pytest.mark.parametrize("name", SOURCES)
units = pytest.mark.parametrize("unit", UNITS.values(), ids=UNITS)
constants = pytest.mark.parametrize("intercept", [False, True])
both_ways = pytest.mark.parametrize("kept", [False, True], ids=["evaluated", "kept"])


@sources
@units
@constants
@both_ways
def test_decisions_and_terms(name, unit, intercept, kept):
    rows = feature_rows(name, intercept=intercept, unit=unit, kept=kept)
    Phi = features(name, unit, intercept)
    assert rows.n == N
    assert rows.p == Phi.shape[1]
    coef = RNG.normal(size=(rows.p, 2))
    assert_close(rows.decision(coef), Phi @ coef)
    for numbers in (FEW, MANY):
        w, T = RNG.uniform(0.1, 2, len(numbers)), RNG.choice([-1.0, 1.0], (len(numbers), 2))
        (A, b), (one, t) = rows.terms([Chosen(numbers, w, T), Chosen(numbers, w, T[:, 0])])
        F = Phi[numbers]
        assert_close(A, (F.T * w) @ F)
        assert_close(b, (F.T * w) @ T)
        assert_close(one, A)
        assert_close(t, b[:, 0])


@constants
def test_kept_and_evaluated_rows_agree(intercept):
    one = feature_rows(intercept=intercept, unit=4.0)
    two = feature_rows(intercept=intercept, unit=4.0, kept=True)
    coef = RNG.normal(size=(one.p, 3))
    assert_close(one.decision(coef), two.decision(coef), rtol=1e-13)
    w, t = RNG.uniform(0.1, 2, len(MANY)), RNG.choice([-1.0, 1.0], len(MANY))
    for a, b in zip(sums(one, MANY, w, t), sums(two, MANY, w, t), strict=True):
        assert_close(a, b, rtol=1e-13)


def test_few_rows_and_many_rows_give_the_same_sums():
    """Rows are mapped up to 2 p of them, beyond that their sums."""
    rows, Phi = feature_rows(kept=True), features("vectors", 1.0, True)
    for count in (rows.p, 2 * rows.p - 1, 2 * rows.p, 2 * rows.p + 1):
        numbers = MANY[:count]
        w, t = RNG.uniform(0.1, 2, count), RNG.choice([-1.0, 1.0], count)
        A, b = sums(rows, numbers, w, t)
        assert_close(A, (Phi[numbers].T * w) @ Phi[numbers], rtol=1e-11)
        assert_close(b, (Phi[numbers].T * w) @ t, rtol=1e-11)


@both_ways
def test_threads_change_no_bit(kept):
    one, many = (feature_rows(kept=kept, workers=workers) for workers in (1, 3))
    coef = RNG.normal(size=(one.p, 2))
    np.testing.assert_array_equal(one.decision(coef), many.decision(coef))
    w, t = np.ones(len(MANY)), RNG.choice([-1.0, 1.0], len(MANY))
    for a, b in zip(sums(one, MANY, w, t), sums(many, MANY, w, t), strict=True):
        np.testing.assert_array_equal(a, b)


@both_ways
def test_another_map_of_the_same_rows(kept):
    other = RNG.normal(size=(M, 4))
    rows = feature_rows(kept=kept).with_map(other)
    assert rows.p == 5
    coef = RNG.normal(size=(5, 1))
    assert_close(rows.decision(coef), SOURCES["vectors"][2] @ other @ coef[:4] + coef[4])


@pytest.mark.parametrize("kept", [False, True])
def test_a_machine_on_them_is_that_on_dense_features(kept):
    Phi = features("vectors", 1.0, True)
    signs = np.where(X[:, :1] * X[:, 1:2] + 0.3 * RNG.normal(size=(N, 1)) > 0, 1.0, -1.0)
    penalty, w = np.append(np.full(R, 5.0), 0.0), RNG.uniform(0.5, 2, N)
    one = finite_newton(feature_rows(kept=kept), signs, w, penalty)
    two = finite_newton(DenseRows(Phi), signs, w, penalty)
    assert_close(one.coef, two.coef, rtol=1e-9)
    assert one.objective == pytest.approx(two.objective, rel=1e-12)


def columns_of(function):
    """An evaluator of another function than that of the sample."""
    pairs = Pairs(CallableKernel(delta_gauss), Rows(list(X)), Session())
    sample = pairs.grown(pairs.sample(Z), Z)
    pairs.kernel.func = function
    return pairs.evaluator(sample)


def test_a_value_that_is_not_finite_names_its_row():
    bad = TILE + 10

    def broken(A, B):
        K = delta_gauss(A, B)
        K[[np.array_equal(a, X[bad]) for a in A], 2] = np.nan
        return K

    rows = replace(feature_rows("callable"), columns=columns_of(broken))
    message = rf"kernel produced NaN for row {bad} .* landmark row {Z[2]};"
    with pytest.raises(ValueError, match=message):
        rows.decision(np.ones((R + 1, 1)))
    with pytest.raises(ValueError, match=message):
        sums(rows, np.array([5, bad]), np.ones(2), np.ones(2))


def counting(share):
    """Rows that are evaluated anew, and how many have been."""
    evaluated = []

    def counted(A, B):
        evaluated.append(len(A))
        return delta_gauss(A, B)

    columns = columns_of(counted)
    return replace(feature_rows("callable"), columns=columns, kept=KeptRows(N, share)), evaluated


@pytest.mark.parametrize(("share", "again"), [(0.5, 0), (0.0, N)])
def test_rows_that_are_wanted_are_remembered_as_far_as_there_is_room(share, again):
    """Their values are those of the tile they were evaluated in."""
    Phi = features("callable", 1.0, True)
    rows, evaluated = counting(share)
    coef, first = RNG.normal(size=(rows.p, 1)), []

    def wanted(here, values, room):
        first.append((here.start, room))
        return np.arange(room)

    assert rows.near() is None
    assert_close(rows.decision(coef, wanted), Phi @ coef)
    assert sum(evaluated) == N
    numbers = np.concatenate([np.arange(TILE // 2), TILE + np.arange(350)])
    evaluated.clear()
    for part in (numbers, numbers[::50]):
        A, b = sums(rows, part, np.ones(len(part)), np.ones(len(part)))
        assert_close(A, Phi[part].T @ Phi[part])
        assert_close(b, Phi[part].sum(axis=0))
    assert sum(evaluated) == 2 * again
    if share:
        assert first == [(0, TILE // 2), (TILE, 350)]
        kept, near = rows.near()
        np.testing.assert_array_equal(kept, numbers)
        evaluated.clear()
        assert_close(near.decision(coef), rows.decision(coef)[numbers])
        assert sum(evaluated) == N  # of the second of the two
    rows.decision(coef)
    assert rows.near() is None


@pytest.mark.parametrize("count", [40, N // 2], ids=["gathered", "tile by tile"])
def test_several_choices_of_rows_are_evaluated_once(count):
    Phi = features("callable", 1.0, True)
    rows, evaluated = counting(0.0)
    draws = [np.sort(RNG.choice(N, count, replace=False)) for _ in range(3)]
    chosen = [Chosen(rows, RNG.random(count), RNG.normal(size=count)) for rows in draws]
    for one, (A, b) in zip(chosen, rows.terms(chosen), strict=True):
        F = Phi[one.numbers]
        assert_close(A, (F.T * one.weights) @ F)
        assert_close(b, F.T @ (one.weights * one.targets))
    assert sum(evaluated) == N
    assert rows.terms([]) == []


@pytest.mark.parametrize("size", [2**25, 1], ids=["one pass", "one pass per output"])
@both_ways
def test_decisions_and_the_sums_of_rows_picked_by_them(kept, size):
    """Near rows are chosen when the decision values of all outputs are known."""
    rows = replace(feature_rows(kept=kept, workers=2), kept=KeptRows(N, 1 / 8), sum_bytes=size)
    Phi, Y, w = features("vectors", 1.0, True), RNG.choice([-1.0, 1.0], (N, 3)), RNG.random(N)
    coef, seen = RNG.normal(size=(rows.p, 3)), []

    def picked(k, here, decision):
        numbers = here.start + np.flatnonzero(decision > 0.1 * k)
        return Chosen(numbers, w[numbers], Y[numbers, k])

    def wanted(here, values, room):
        seen.append((here.start, values))
        return np.arange(room)

    decision, terms = rows.decision_and_terms(coef, wanted, picked)
    assert_close(decision, Phi @ coef)
    alone = feature_rows(kept=kept, workers=1).decision(coef)
    np.testing.assert_array_equal(decision, alone)  # the same bits for any size
    for k, (A, b) in enumerate(terms):
        inside = w * (decision[:, k] > 0.1 * k)
        assert_close(A, (Phi.T * inside) @ Phi)
        assert_close(b, Phi.T @ (inside * Y[:, k]))
    for start, values in seen:
        np.testing.assert_array_equal(values, decision[start : start + len(values)])
    assert sorted(start for start, _ in seen) == [0, TILE]
    numbers, near = rows.near()
    assert_close(near.decision(coef), decision[numbers])


@both_ways
def test_some_of_the_near_rows_are_seen_as_all_rows_are(kept):
    """Where all values are kept, near rows are not copied."""
    rows = replace(feature_rows(kept=kept, workers=2), kept=KeptRows(N, 1 / 2))
    Phi, coef = features("vectors", 1.0, True), RNG.normal(size=(rows.p, 1))
    rows.decision(coef, lambda here, values, room: np.sort(RNG.permutation(len(values))[:room]))
    numbers, near = rows.near()
    assert rows.kept.values.size == (0 if kept else len(numbers) * M)
    for places in (np.arange(len(numbers)), np.arange(5, len(numbers), 3)):
        some = near.part(places)
        F = Phi[numbers[places]]
        assert_close(some.decision(coef), F @ coef)
        few, many = np.arange(7), np.arange(len(places))
        for part in (few, many):
            A, b = sums(some, part, np.ones(len(part)), np.ones(len(part)))
            assert_close(A, F[part].T @ F[part])
            assert_close(b, F[part].sum(axis=0))


@pytest.mark.parametrize("n", [8 * 300 + 5, TILE + 700])
def test_a_sample_has_one_of_every_eight_rows_and_takes_values_in_any_order(n):
    kept = KeptRows.sample(n, 2, NEAR, n)
    np.testing.assert_array_equal(kept.numbers // 8, np.arange(n // 8))
    assert len(np.unique(kept.numbers % 8)) == 8
    for numbers in np.array_split(RNG.permutation(n), 5):
        kept[numbers] = np.column_stack([numbers, -numbers])
    np.testing.assert_array_equal(kept.values, np.column_stack([kept.numbers, -kept.numbers]))
    assert kept.held >= kept.values.nbytes


def test_a_sample_has_no_more_rows_than_are_enough():
    """Their values are in the room of the rows that are kept after it."""
    kept = KeptRows.sample(8003, 2, NEAR, 40)
    np.testing.assert_array_equal(kept.numbers // 200, np.arange(40))
    every = np.arange(8003)
    kept[every] = np.column_stack([every, -every])
    np.testing.assert_array_equal(kept.values[:40], np.column_stack([kept.numbers, -kept.numbers]))
    assert len(kept.values) == kept.count == 1000
    room = kept.values
    kept.clear(2)
    assert kept.values is room
    assert len(kept.numbers) == kept.count


def test_rows_that_come_in_turn_are_read_once_in_every_pass():
    """Threads that are spans apart do not make a stream begin anew."""
    n, begun = 60 * TILE, []
    many = np.random.default_rng(1).normal(size=(n, X.shape[1]))

    def pieces(begin):
        begun.append(begin)
        return (many[i : i + 5000] for i in range(begin, n, 5000))

    columns = evaluator(DeltaGauss(6.0, 4.0), X)
    source = Checked(Stream(many.shape, float, pieces), "rows")
    rows = FeatureRows(source, columns, Z, 1.0, W, n, True, workers=3)
    coef = RNG.normal(size=(rows.p, 1))
    begun.clear()
    decision = rows.decision(coef)
    assert begun in ([], [0])
    np.testing.assert_array_equal(replace(rows, X=many).decision(coef), decision)
    numbers = np.sort(RNG.choice(n, n // 2, replace=False))
    begun.clear()
    found = sums(rows, numbers, np.ones(n // 2), np.ones(n // 2))
    assert begun == [0]
    there = sums(replace(rows, X=many), numbers, np.ones(n // 2), np.ones(n // 2))
    for one, other in zip(found, there, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_sample_of_no_rows_takes_nothing():
    kept = KeptRows.sample(100, 2, 0.0, 100)
    kept[np.arange(100)] = np.zeros((100, 2))
    assert kept.held == 0
    assert replace(feature_rows(), kept=kept).sample() is None


def test_a_sample_is_at_hand_until_the_first_pass():
    C = SOURCES["vectors"][2]
    kept = KeptRows.sample(N, M, NEAR, N)
    kept[np.arange(N)] = C
    rows = replace(feature_rows(), kept=kept)
    assert rows.near() is None
    numbers, some = rows.sample()
    coef = RNG.normal(size=(rows.p, 1))
    assert_close(some.decision(coef), rows.decision(coef)[numbers])
    assert rows.sample() is None


# Where the values of all rows are


def swept(budget, *, by_fold=True, intercept=True):
    """The pass over all rows, which fills what is kept, and the values it leaves."""
    signs = np.where(X[:, :1] > 0, 1.0, -1.0)
    sampled = np.union1d(Z, np.arange(0, N, 5))
    kernel = DeltaGauss(6.0, 4.0).fit(X, RNG)
    pairs = Pairs(kernel, Rows(X), Session(budget=budget))
    sample = pairs.grown(pairs.sample(sampled), Z)
    folds = np.arange(N) % 3
    task = Task(
        pairs, sample, MapSpec(M, given=Z), KreinFeatures(), RNG, signs, None, folds, 3, intercept,
    )  # fmt: skip
    here = ValuesHere.for_rows(N, M, 8 * N * M, budget).before(task, by_fold=by_fold)
    return (*task.swept(by_fold=by_fold, keep=here), here)


@pytest.mark.parametrize("by_fold", [False, True])
def test_values_are_kept_where_there_is_room_and_the_same_where_there_is_none(by_fold):
    """Rows evaluated again have the bits of those that were kept."""
    found = []
    for budget, kept in ((10**9, True), (8 * N * M - 1, False)):
        task, features, here = swept(budget, by_fold=by_fold)
        assert here.has_all == kept
        rows = here.rows(task, features)
        assert rows.kept.share == NEAR
        numbers, some = rows.sample()
        coef = np.linspace(-1, 1, rows.p)[:, None]
        found.append((numbers.tobytes(), some.decision(coef).tobytes()))
        C = delta_gauss(X, X[Z]) @ features.map.W
        assert_close(rows.decision(coef), C @ coef[:-1] + coef[-1], rtol=1e-10)
        A, b = sums(rows, MANY, np.ones(len(MANY)), np.ones(len(MANY)))
        found.append((rows.decision(coef).tobytes(), A.tobytes(), b.tobytes()))
    assert found[:2] == found[2:]


def test_rows_of_a_tile_are_kept_as_the_first_pass_evaluates_them():
    """By fold, in the order of their numbers, and the sampled rows of the tile after them."""
    sampled, folds = np.arange(0, N, 5), np.arange(N) % 3
    rank = ranks(N, sampled, Targets(np.empty((N, 0)), groups=folds, n_groups=3).by_group)
    for start in range(0, N, TILE):
        tile = range(start, min(start + TILE, N))
        others = sorted((i for i in tile if i % 5), key=lambda i: (i % 3, i))
        expected = others + [i for i in tile if i % 5 == 0]
        np.testing.assert_array_equal(rank[expected], np.arange(len(tile)))
    values = np.empty((N, 1))
    kept, numbers = InTiles(values, rank), np.random.default_rng(0).permutation(N)
    kept[numbers] = numbers[:, None]
    at = TILE * (np.arange(N) // TILE) + rank
    np.testing.assert_array_equal(values[at, 0], np.arange(N))


def test_margins_are_those_of_the_rows_with_a_constant():
    task, features, here = swept(10**9)
    margins = here.margins(task, features, features.map.W, float(N))
    assert margins.p == features.map.W.shape[1] + 1


def test_few_rows_are_mapped_and_not_their_sums(monkeypatch):
    """Once for all choices: to map the sums of each would cost the cube of the landmarks."""
    numbers = np.arange(5, N, 200)
    rows, Phi = feature_rows(kept=True).part(numbers), features("vectors", 1.0, True)[numbers]
    choices = [np.arange(12), np.array([0, 3, 11, 13]), np.arange(2, 14)]
    w, t = RNG.uniform(1, 2, len(numbers)), RNG.choice([-1.0, 1.0], len(numbers))
    monkeypatch.setattr("kreinlearn.learn.losses.feature_rows.sum_over_blocks", None)
    for some in (choices, choices[:1]):
        found = rows.terms([Chosen(one, w[one], t[one]) for one in some])
        for one, (A, b) in zip(some, found, strict=True):
            assert_close(A, (Phi[one].T * w[one]) @ Phi[one])
            assert_close(b, Phi[one].T @ (w[one] * t[one]))


@both_ways
def test_few_of_very_many_rows_are_gathered_in_parts(kept, monkeypatch):
    """A part ends with a tile, so that none is evaluated twice; the sums are the same."""
    rows, Phi = feature_rows(kept=kept), features("vectors", 1.0, True)
    gathered, columns_of = [], FeatureRows._columns_of

    def recorded(self, numbers, workers):
        gathered.append(len(numbers))
        return columns_of(self, numbers, workers)

    monkeypatch.setattr(FeatureRows, "_columns_of", recorded)
    choices = [MANY, FEW, MANY[: TILE // 2], np.empty(0, dtype=np.intp)]
    w, t = RNG.uniform(1, 2, N), RNG.choice([-1.0, 1.0], N)
    chosen = [Chosen(one, w[one], t[one]) for one in choices]
    found = replace(rows, gathered_bytes=0)._sums_of_few(chosen)
    every = len(np.union1d(MANY, FEW))
    before = np.sum(np.union1d(MANY, FEW) < TILE)
    assert gathered == [before, every - before]
    for one, sums in zip(choices, found, strict=True):
        F = Phi[one, :-1]
        assert_close(sums.G, (F.T * w[one]) @ F)
        assert_close(sums.B[:, 0], F.T @ (w[one] * t[one]))
        assert sums.n == pytest.approx(w[one].sum(), rel=1e-13)
    gathered.clear()
    rows._sums_of_few(chosen)
    assert gathered == [every]


def test_gathered_rows_take_the_memory_of_a_part():
    """However many parts there are; of each choice, one matrix of sums is kept."""
    n, m = 40 * TILE, 64
    values = RNG.normal(size=(n, m))
    rows = replace(
        feature_rows(), n=n, values=values, W=np.eye(m), landmarks=np.arange(m), gathered_bytes=0
    )
    choices = [np.arange(n), np.arange(0, n, 2), np.arange(40)]
    chosen = [Chosen(one, np.ones(len(one)), np.ones(len(one))) for one in choices]
    tracemalloc.start()
    try:
        found = rows._sums_of_few(chosen)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert_close(found[1].G, values[::2].T @ values[::2])
    numbers = 4 * 8 * n  # of all rows: their numbers, twice, while they are sorted
    assert peak < numbers + 8 * m * (5 * TILE + 20 * m) < values.nbytes / 3
