"""What is remembered: the same results to the bit, each pair evaluated once, nothing left over."""

from __future__ import annotations

import gc
import pickle
import threading
import weakref
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import Pipeline

from kreinlearn import KreinRidgeClassifier, Landmarks
from kreinlearn.datasets import make_graphs, make_noisy_strings, make_warped_series
from kreinlearn.kernels import (
    DTW,
    Gower,
    Levenshtein,
    Tversky,
    WeisfeilerLehman,
    pairwise,
    remembering,
    similarity_of,
)
from kreinlearn.kernels import _memory as memory
from kreinlearn.kernels.base import ObjectKernel, resolve
from kreinlearn.kernels.keys import key_of
from kreinlearn.kernels.strings import StringDistance

MET: Counter[Any] = Counter()  # pairs evaluated, in either order, by the parameter


class Lengths(ObjectKernel):
    """|len(x) - len(z)|^power of strings; counts what it evaluates."""

    is_dissimilarity = True

    def __init__(self, power: float = 1.0) -> None:
        self.power = power

    def packed(self, X: Any, first: int = 0, n: int = 0, like: Any = None) -> Any:
        return list(X)

    def values(self, A: Any, Z: Any) -> Any:
        MET.update((self.power, *sorted((x, z))) for x in A for z in Z)
        return self._of(A, Z)

    def _of(self, A: Any, Z: Any) -> Any:
        a, z = (np.array([len(x) for x in X], dtype=float) for X in (A, Z))
        return np.abs(a[:, None] - z) ** self.power

    def square(self, Z: Any) -> Any:
        MET.update((self.power, *sorted((x, z))) for i, x in enumerate(Z) for z in Z[i:])
        return self._of(Z, Z)


class Shared(Lengths):
    """The letters in common: a similarity, with squares by the base class."""

    is_dissimilarity = False

    def _of(self, A: Any, Z: Any) -> Any:
        return np.array([[float(len(set(x) & set(z))) for z in Z] for x in A]).reshape(
            len(A), len(Z)
        )

    square = ObjectKernel.square


@pytest.fixture(autouse=True)
def _nothing_met() -> Iterator[None]:
    MET.clear()
    yield
    assert memory.active is None


def words(n: int, seed: int = 0) -> list[str]:
    """Distinct strings of many lengths."""
    rng = np.random.default_rng(seed)
    return [f"{i}" + "x" * int(k) for i, k in enumerate(rng.integers(0, 60, n))]


# Through a search


def searched(grid: GridSearchCV, X: Any, y: Any, remember: bool) -> tuple[Any, Any, int]:
    """Scores and decisions, and how many pairs were evaluated."""
    MET.clear()
    grid = clone(grid)
    with remembering() if remember else nullcontext():
        f = grid.fit(X, y).best_estimator_.decision_function(X)
    scores = [v for name, v in grid.cv_results_.items() if name.endswith("test_score")]
    return np.array(scores, dtype=float), f, MET.total()


FIXED = {"lambda_plus": 0.1, "lambda_minus": 0.1, "similarity": "squared", "random_state": 0}


def test_a_grid_evaluates_each_pair_once_for_each_parameter_of_the_kernel() -> None:
    X = words(90)
    y = np.array([len(x) for x in X]) > 30
    grid = GridSearchCV(
        KreinRidgeClassifier(Lengths(), **FIXED),
        {"kernel__power": [0.5, 1.0], "lambda_plus": [0.01, 1.0], "landmarks": [10, 20, None]},
        cv=3,
    )
    scores, f, plain = searched(grid, X, y, remember=False)
    again, g, few = searched(grid, X, y, remember=True)
    assert_array_equal(again, scores)
    assert_array_equal(g, f)
    assert max(MET.values()) == 1
    assert few <= 2 * 90 * 91 // 2 < plain / 4


def test_strings_are_the_same_to_the_bit_and_no_pair_is_evaluated_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, y = make_noisy_strings(80, n_classes=3, noise=8, random_state=0)
    X = list(dict.fromkeys(X))
    n, evaluated = len(X), 0

    def counted(self: Any, A: Any, Z: Any) -> Any:
        nonlocal evaluated
        evaluated += len(A.items) * len(Z.items)
        return values(self, A, Z)

    values = StringDistance.values
    monkeypatch.setattr(StringDistance, "values", counted)
    weights = [(1, 1, 1), (1, 1, 2)]
    landmarks = [Landmarks(m, core=core) for m in (10, 30) for core in ("plain", "ls")]
    search = partial(
        GridSearchCV,
        KreinRidgeClassifier(Levenshtein(), **FIXED),
        {"kernel__weights": weights, "landmarks": landmarks},
        cv=3,
    )
    plain = searched(search(), X, y[:n], remember=False)
    before, evaluated = evaluated, 0
    kept = searched(search(), X, y[:n], remember=True)
    assert_array_equal(kept[0], plain[0])
    assert_array_equal(kept[1], plain[1])
    both_ways = 2 * 30 * 16 * 4  # squares of up to 16 strings, by the base class
    assert evaluated <= len(weights) * n * (n + 1) // 2 + both_ways
    assert evaluated < before / 3


def test_weights_of_a_combination_evaluate_neither_part_again() -> None:
    X = words(60)
    y = np.array([len(x) for x in X]) > 30
    kernel = Shared() - 0.5 * similarity_of(Lengths(power=2.0))
    model = KreinRidgeClassifier(kernel, **FIXED)
    one = GridSearchCV(model, {"kernel__weights": [(1.0, -0.5)]}, cv=3)
    more = {"kernel__weights": [(1.0, -0.5), (1.0, -0.1), (2.0, 0.5), (0.5, 1.0)]}
    _, _, of_one = searched(one, X, y, remember=True)
    scores, f, few = searched(GridSearchCV(model, more, cv=3), X, y, remember=True)
    plain_scores, g, plain = searched(GridSearchCV(model, more, cv=3), X, y, remember=False)
    assert_array_equal(scores, plain_scores)
    assert_array_equal(f, g)
    assert few == of_one
    assert plain > 3 * few


PROBED = 50 + 50 + 8  # pairs of a function at most that each fit evaluates anew


def in_common(a: Any, b: Any, power: float = 1.0) -> float:
    MET[power, *sorted((tuple(a), tuple(b)))] += 1
    return float(len(set(a) & set(b))) ** power


def test_an_own_function_is_evaluated_once_for_each_pair_and_parameter() -> None:
    X = words(60)
    y = np.array([len(x) for x in X]) > 30
    model = KreinRidgeClassifier(pairwise(in_common, power=1.0), **FIXED)
    params = {"kernel__power": [0.5, 1.0], "lambda_plus": [0.1, 1.0], "landmarks": [10, None]}
    search = GridSearchCV(model, params, cv=3)
    scores, f, plain = searched(search, X, y, remember=False)
    again, g, few = searched(search, X, y, remember=True)
    assert_array_equal(again, scores)
    assert_array_equal(g, f)
    assert few <= 2 * 60 * 61 // 2 + 25 * PROBED
    assert few < plain / 3


def test_an_own_function_of_blocks_too() -> None:
    X, calls = words(30), []

    def lengths(A: Any, B: Any) -> Any:
        calls.append(len(A) * len(B))
        return Lengths()._of(A, B)

    kernel = resolve(lengths)
    with remembering():
        for A, Z in ((X[:20], X[20:]), (X[10:15], X[20:25]), (X[20:], X[:20]), (X[5:], X[20:])):
            assert_array_equal(kernel.columns(Z)(A), Lengths()._of(A, Z))
    assert sum(calls) == 20 * 10 + 10 * 10


# Blocks and squares


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("kernel", [Lengths(), Shared(), pairwise(in_common)])
def test_any_blocks_in_any_order_give_the_same_and_each_pair_once(kernel: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = words(40, seed)
    of = Lengths()._of if isinstance(kernel, Lengths) and kernel.is_dissimilarity else Shared()._of

    with remembering():
        for _ in range(12):
            order = rng.permutation(40)
            A, Z = ([X[i] for i in part] for part in (order[:15], order[15 : rng.integers(15, 35)]))
            assert_array_equal(kernel(A, Z), of(A, Z))
            assert_array_equal(clone(kernel).symmetric(Z), of(Z, Z))
            assert_array_equal(kernel.diagonal(A), np.diag(of(A, A)))
    twice = 2 if isinstance(kernel, Shared) else 1  # small squares go both ways
    assert not [pair for pair, times in MET.items() if times > twice and pair[1] != pair[2]]


def test_a_square_of_which_some_pairs_are_known_is_evaluated_in_two_pieces() -> None:
    X, calls = words(50), []

    def rectangle(A: Any, Z: Any) -> Any:
        calls.append((len(A), len(Z)))
        return Lengths()._of(A, Z)

    def square(Z: Any, own: Any) -> Any:
        calls.append(len(Z))
        return Lengths()._of(Z, Z)

    kernel = Lengths()
    with remembering():
        kernel.symmetric(X[:20])
        kernel(X[20:30], X[:10])
        MET.clear()
        K = memory.remembered_square(kernel, X[:40:2], rectangle, square)
        assert_array_equal(K, kernel._of(X[:40:2], X[:40:2]))
        # of 0..18 all is known; 20..28 met 0..8 but not 10..18; 30..38 are new
        assert calls[:2] == [5, 5]
        assert sum(a * z for a, z in calls[2:]) == 5 * 5 + 5 * 5 + 5 * 10
        assert len(calls) <= 6
    assert not MET


def test_given_self_similarities_are_not_evaluated() -> None:
    given = np.array([7.0, np.nan, 9.0])
    seen = []

    def square(Z: Any, own: Any) -> Any:
        seen.append(own.copy())
        return np.where(np.eye(len(Z), dtype=bool), np.where(np.isnan(own), 1.0, own), 0.0)

    kernel = Shared()
    with remembering():
        K = memory.remembered_square(kernel, list("abc"), kernel.anew, square, given)
        assert_array_equal(np.diagonal(K), [7.0, 1.0, 9.0])
        assert_array_equal(seen[0], given)
        assert_array_equal(kernel.diagonal(list("cab")), [9.0, 7.0, 1.0])
        assert_array_equal(
            memory.remembered_square(kernel, list("cb"), kernel.anew, square), K[1:, 1:][::-1, ::-1]
        )
    assert len(seen) == 1
    assert not MET


def test_threads_share_it_and_evaluate_no_pair_twice() -> None:
    X, kernel = words(330), Lengths()
    columns = kernel.columns(X[:30])
    parts = [X[i : i + 10] for i in range(30, 330, 10)]
    with remembering(), ThreadPoolExecutor(8) as pool:
        for _ in range(2):
            K = np.concatenate(list(pool.map(columns, parts)))
            assert_array_equal(K, kernel._of(X[30:], X[:30]))
    assert MET.total() == 300 * 30


def test_the_lock_is_free_while_a_kernel_runs() -> None:
    meet = threading.Barrier(2, timeout=10)

    def f(a: str, b: str) -> float:
        meet.wait()
        return 1.0

    def evaluate(A: Any, Z: Any) -> Any:
        return np.array([[f(a, z) for z in Z] for a in A])

    with remembering(), ThreadPoolExecutor(2) as pool:
        rows = [pool.submit(memory.remembered, Lengths(), [a], ["z"], evaluate) for a in "ab"]
        assert [row.result().tolist() for row in rows] == [[[1.0]], [[1.0]]]


def test_what_is_not_a_number_is_not_remembered() -> None:
    with remembering():
        for value in (np.nan, np.inf, 3.0):
            K = memory.remembered(Lengths(), ["a"], ["b"], lambda A, Z, v=value: np.array([[v]]))
    assert K.item() == np.inf


# Limits, and the end of a block


def test_the_limit_is_kept_and_one_warning_says_so() -> None:
    X, kernel = words(100), Lengths()

    def evaluate_all() -> None:
        for i in range(0, 100, 10):
            assert_array_equal(kernel(X[i : i + 10], X[:20]), kernel._of(X[i : i + 10], X[:20]))

    with remembering("8 kB"):
        with pytest.warns(UserWarning, match=r"\(limit='8 kB'\) is full.*raise limit") as caught:
            evaluate_all()
        evaluate_all()
        assert len(caught) == 1
        tables = memory.active.tables.values()
        assert 4000 < sum(table.values.nbytes for table in tables) <= 8000
        MET.clear()
        kernel(X[:40], X[:20])
        assert not MET


@pytest.mark.parametrize("limit", ["much", [1]])
def test_a_limit_that_is_none(limit: Any) -> None:
    with (
        pytest.raises(ValueError, match=r"limit=.* is not understood; pass bytes"),
        remembering(limit),
    ):
        pass


class Thing:
    def __init__(self, x: float) -> None:
        self.x = x


def test_nothing_is_left_after_the_block_and_a_block_inside_is_part_of_it() -> None:
    things = [Thing(1.0), Thing(2.0)]
    left = [weakref.ref(thing) for thing in things]

    def product(A: Any, Z: Any) -> Any:
        return np.array([[a.x * z.x for z in Z] for a in A])

    with remembering():
        with remembering(0):
            memory.remembered(Lengths(), things, things, product)
        kept = memory.remembered(Lengths(), things, things, lambda A, Z: product(A, Z) + 1)
        assert_array_equal(kept, [[1.0, 2.0], [2.0, 4.0]])
        tables = memory.active.tables
    assert not tables
    del things
    gc.collect()
    assert [thing() for thing in left] == [None, None]


@remembering()
def _fails() -> None:
    raise KeyError


def test_an_error_ends_the_block_too() -> None:
    with pytest.raises(KeyError):
        _fails()
    assert memory.active is None


# What is the same


class Pair(NamedTuple):
    labels: Any
    edges: Any


class Scaled:
    def __init__(self, by: float) -> None:
        self.by = by

    def __call__(self, a: float, b: float) -> float:
        return self.by * a * b

    def method(self, a: float, b: float) -> float:
        return self.by + a * b


def scaled(by: float) -> Any:
    return lambda a, b: by * a * b


nan_array = np.array([0.0, np.nan])
SAME = [
    ("ab" * 2, "abab"), (b"a", b"a"), (1, 1), (float("nan"), float("nan")), (1.5, 1.5), (2j, 2j),
    ([1.0, 2.0], [1.0, 2.0]), ([1, "a", None], [1, "a", None]), ((1, (2.0, "x")), (1, (2.0, "x"))),
    ({1, 2, 300}, {300, 2, 1}), ({"a": [1]}, {"a": [1]}), (np.float32(2), np.float32(2)),
    (nan_array, nan_array.copy()), (np.arange(6)[::2], np.array([0, 2, 4])),
    (np.array([[1, "a"]], dtype=object), np.array([[1, "a"]], dtype=object)),
    (np.array(["2020-01-01"], "M8[D]"), np.array(["2020-01-01"], "M8[D]")),
    (Pair([1], np.eye(2)), Pair([1], np.eye(2))), (range(3), range(0, 3)),
    (Levenshtein((1, 1, 2)), Levenshtein((1, 1, 2))), (partial(scaled, 2.0), partial(scaled, 2.0)),
    (Scaled(2.0), Scaled(2.0)), (Scaled(2.0).method, Scaled(2.0).method),
    (pairwise(scaled, by=[1]), pairwise(scaled, by=[1])),
]  # fmt: skip
OTHER = [
    ("a", b"a"), (1, True), (1, 1.0), (0.0, -0.0), (0j, -0j), (1, "1"), ("a", np.str_("a")),
    ([1, 2], (1, 2)), ([1], [True]), ([0.0], [-0.0]), ([1, 2.0], [1.0, 2]), ([[1], 2], [1, [2]]),
    (["ab"], ["a", "b"]), ([], ()), ([], [None]), ({1}, frozenset({1})), ({"a": 1}, {"a": 2}),
    (np.zeros(2), np.zeros((1, 2))), (np.zeros(2), np.zeros(2, np.int64)),
    (np.zeros(2), -np.zeros(2)), (np.zeros(1), np.float64(0)), (np.zeros(2), [0.0, 0.0]),
    (np.array(["2020-01-01"], "M8[D]"), np.array(["2020-01-01"], "M8[s]")),
    (np.ma.array([1.0]), np.ma.array([1.0])), (Pair([1], [2]), ([1], [2])),
    (Thing(1.0), Thing(1.0)), ([Thing(1.0)], [Thing(1.0)]),
    (scaled(1.0), scaled(2.0)), (scaled(1.0), scaled(1.0)), (Scaled(1.0), Scaled(2.0)),
    (Scaled(1.0).method, Scaled(2.0).method), (Scaled(1.0).method, Scaled(1.0).__call__),
    (partial(scaled, 2.0), partial(scaled, 2)), (partial(scaled, by=1), partial(scaled, by=2)),
    (Levenshtein(), Levenshtein(normalized=True)), (Lengths(), Shared()), (str, int),
    (pairwise(scaled(1.0)), pairwise(scaled(2.0))), (pairwise(max, key=abs), pairwise(max)),
]  # fmt: skip


@pytest.mark.parametrize(("a", "b"), SAME)
def test_what_has_the_same_content_is_the_same(a: Any, b: Any) -> None:
    assert key_of(a) == key_of(b)
    assert hash(key_of(a)) == hash(key_of(b))


@pytest.mark.parametrize(("a", "b"), OTHER)
def test_what_differs_in_type_content_or_identity_is_not(a: Any, b: Any) -> None:
    assert key_of(a) != key_of(b)
    assert key_of(a) == key_of(a)


@pytest.mark.parametrize("func", [scaled(2.0), partial(max, key=abs), Scaled(2.0), len, np.add])
def test_a_copy_of_a_kernel_is_the_same_kernel(func: Any) -> None:
    kernel = pairwise(func)
    assert key_of(kernel) == key_of(clone(kernel)) == key_of(clone(clone(kernel)))


def test_what_a_kernel_was_fitted_to_is_part_of_it() -> None:
    X = [(0.0, "a"), (1.0, "b"), (9.0, "a")]
    rng = np.random.default_rng(0)
    kernels = [Gower().fit(X[:k], rng) for k in (2, 3)]
    plain = [kernel(X[:2]) for kernel in kernels]
    assert (plain[0] != plain[1]).any()
    with remembering():
        for kernel, K in zip(kernels * 2, plain * 2, strict=True):
            assert_array_equal(kernel(X[:2]), K)
            assert_array_equal(kernel(X[:1], X[1:2]), K[:1, 1:])
        assert len(memory.active.tables) == 2
    again = Gower().fit(list(X[:2]), rng)
    assert key_of(again) == key_of(kernels[0]) != key_of(kernels[1])


def test_an_object_changed_in_place_is_another_if_known_by_content() -> None:
    x, kernel = [1.0, 2.0], Lengths()

    def evaluate(A: Any, Z: Any) -> Any:
        return np.array([[sum(a) + z for z in Z] for a in A])

    with remembering():
        assert memory.remembered(kernel, [x], [1.0], evaluate).item() == 4.0
        x.append(3.0)
        assert memory.remembered(kernel, [x], [1.0], evaluate).item() == 7.0


# Grids over the parameters of a kernel, of each kind


def rows_of_table(n: int) -> tuple[list[dict[str, Any]], Any]:
    rng = np.random.default_rng(1)
    y = np.arange(n) % 2
    return [{"a": float(c + rng.normal()), "b": "xy"[c], "c": int(rng.integers(3))} for c in y], y


def sets(n: int) -> tuple[list[set[int]], Any]:
    rng = np.random.default_rng(2)
    y = np.arange(n) % 2
    return [set((rng.integers(0, 8, 6) + 5 * c).tolist()) for c in y], y


STRINGS = make_noisy_strings(24, n_classes=2, random_state=0)
KINDS = {
    "string": (Levenshtein(), {"normalized": [False, True]}, STRINGS),
    "series": (DTW(), {"window": [0.1, None]}, make_warped_series(24, random_state=0)),
    "graph": (WeisfeilerLehman(), {"h": [0, 2]}, make_graphs(24, random_state=0)),
    "set": (Tversky(), {"alpha": [0.5, 1.0]}, sets(24)),
    "table": (Gower(), {"categorical": [(), ("c",)]}, rows_of_table(24)),
    "pairwise": (pairwise(in_common, power=1.0), {"power": [1.0, 2.0]}, sets(24)),
    "combination": (
        similarity_of(Levenshtein()) - 0.5 * similarity_of(Levenshtein(normalized=True)),
        {"weights": [(1.0, -0.5), (1.0, 0.0)], "k1__transform": ["exp", "inverse"]},
        STRINGS,
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_search_validation_pipelines_copies_and_pickles_take_every_kind(kind: str) -> None:
    kernel, grid, (X, y) = KINDS[kind]
    pipe = Pipeline([("model", KreinRidgeClassifier(kernel, **FIXED))])
    params = {f"model__kernel__{name}": values for name, values in grid.items()}
    search = GridSearchCV(pipe, {**params, "model__landmarks": [5, None]}, cv=2)
    results = []
    for context in (nullcontext(), remembering()):
        with context:
            found = clone(search).fit(X, y)
            scores = cross_validate(clone(found.best_estimator_), X, y, cv=2)["test_score"]
            assert_array_equal(pickle.loads(pickle.dumps(found)).predict(X), found.predict(X))
            f = found.decision_function(X)
        assert_array_equal(pickle.loads(pickle.dumps(found)).decision_function(X), f)
        results.append((found.cv_results_["mean_test_score"], scores, f))
    for plain, kept in zip(*results, strict=True):
        assert_array_equal(kept, plain)
    assert results[0][0].max() > 0.7
