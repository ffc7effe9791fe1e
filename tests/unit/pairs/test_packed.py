"""How often the features of each object are evaluated in a fit and in a prediction."""

from __future__ import annotations

import pickle
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from kreinlearn import KreinClassifier, KreinRidgeClassifier, Landmarks, Resources
from kreinlearn.kernels import (
    Convolutions,
    Kernel,
    Levenshtein,
    NGrams,
    WeightedDegree,
    columns,
    remembering,
    similarity_of,
)
from kreinlearn.kernels.features import FeatureKernel, Packed
from kreinlearn.kernels.graphs import WeisfeilerLehman, WLDistance
from kreinlearn.pairs import pairs as pairs_module
from kreinlearn.pairs.packed import BLOCK, PackedRows
from kreinlearn.pairs.rows import Rows

N = 400


def words(n: int, rng: np.random.Generator) -> list[Any]:
    return ["".join(rng.choice(list("abcde"), rng.integers(3, 9))) for _ in range(n)]


def series(n: int, rng: np.random.Generator) -> list[Any]:
    return list(np.cumsum(rng.standard_normal((n, 30)), axis=1))


def graphs(n: int, rng: np.random.Generator) -> list[Any]:
    return [(rng.integers(3, size=6).tolist(), [(0, 1), (1, 2), (3, int(i % 5))]) for i in range(n)]


KINDS: dict[str, tuple[Callable[[], Kernel], Callable[..., list[Any]]]] = {
    "n-grams": (NGrams, words),
    "n-grams, weighted": (lambda: NGrams(idf=True), words),
    "convolutions": (lambda: Convolutions(n_features=840), series),
    "Weisfeiler-Lehman": (WeisfeilerLehman, graphs),
    "a distance": (WLDistance, graphs),
    "a sum": (lambda: NGrams() + 0.5 * NGrams(lengths=(2, 2)), words),
}


@contextmanager
def counting(kernel: Kernel) -> Iterator[Counter[tuple[int, int]]]:
    """How often the features of each object, by its id, are evaluated by each kernel."""
    counts, lock = Counter[tuple[int, int]](), threading.Lock()
    classes = {type(one) for one in kernel.packers}
    with pytest.MonkeyPatch.context() as patch:
        for kind in classes:

            def features(self: Any, X: Any, *more: Any, original: Any = kind.features) -> Any:
                with lock:
                    counts.update((id(x), id(self)) for x in X)
                return original(self, X, *more)

            patch.setattr(kind, "features", features)
        yield counts


@pytest.fixture(params=KINDS)
def case(request: pytest.FixtureRequest) -> tuple[Kernel, list[Any], Any, list[Any]]:
    make, objects = KINDS[request.param]
    rng = np.random.default_rng(0)
    X = objects(N + 100, rng)
    return make(), X[:N], np.arange(N) % 2, X[N:]


@pytest.mark.parametrize("learner", [KreinClassifier, KreinRidgeClassifier])
@pytest.mark.parametrize("m", [40, None])
def test_a_fit_and_a_prediction_pack_each_object_once(case: Any, learner: Any, m: Any) -> None:
    kernel, X, y, new = case
    model = learner(kernel, landmarks=Landmarks(m, pool=300), random_state=0, n_jobs=2, verbose=0)
    parts = len({id(one) for one in kernel.packers})
    with counting(kernel) as counts:
        model.fit(X, y)
    assert set(counts.values()) == {1}
    assert len(counts) == N * parts
    with counting(kernel) as counts:
        model.predict(new)
    assert set(counts.values()) == {1}
    assert len(counts) == len(new) * parts


@pytest.mark.parametrize("share", [0.0, 1e-4])
def test_without_room_each_block_packs_its_objects_and_values_are_the_same(
    case: Any, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel, X, y, new = case
    model = KreinRidgeClassifier(
        kernel, landmarks=Landmarks(40, pool=300), random_state=0,
        resources=Resources(memory_budget="200MB"),
    )  # fmt: skip
    expected = model.fit(X, y).decision_function(new)
    monkeypatch.setattr(pairs_module, "SHARE", share)
    with counting(kernel) as counts:
        np.testing.assert_array_equal(model.fit(X, y).decision_function(new), expected)
    assert max(counts.values()) > 1


def test_values_that_are_remembered_need_no_features() -> None:
    X = words(60, np.random.default_rng(0))
    model = KreinRidgeClassifier(NGrams(), landmarks=20, random_state=0)
    with remembering():
        assert not NGrams().packers
        remembered = model.fit(X, np.arange(60) % 2).decision_function(X)
    other = model.fit(X, np.arange(60) % 2).decision_function(X)
    np.testing.assert_array_equal(remembered, other)


# Packed rows


@pytest.fixture(params=["n-grams", "convolutions"])
def rows(request: pytest.FixtureRequest) -> tuple[Any, PackedRows]:
    make, objects = KINDS[request.param]
    X = objects(2 * BLOCK + 50, np.random.default_rng(0))
    kernel = make().fit(X, np.random.default_rng(0))
    return kernel, PackedRows(kernel.packers, Rows(X), np.inf)


def same(kernel: Any, packed: PackedRows, numbers: Any) -> None:
    """Features that are known are those that the kernel evaluates."""
    numbers = np.asarray(numbers)
    objects = [packed.rows.X[i] for i in numbers]
    known = packed.of(numbers, objects)
    assert isinstance(known, Packed)
    assert all(a is b for a, b in zip(known, objects, strict=True))
    for mine, theirs in zip(kernel.packed(known), kernel.packed(objects), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_features_come_in_the_order_that_is_asked_for(rows: Any) -> None:
    kernel, packed = rows
    packed.add(np.arange(5, 2 * BLOCK + 5), workers=2)
    packed.add(np.array([0, 3, 7, 2 * BLOCK + 20]), workers=1)
    rng = np.random.default_rng(1)
    every = np.concatenate([[0, 3], np.arange(5, 2 * BLOCK + 5), [2 * BLOCK + 20]])
    for numbers in (every, rng.permutation(every), every[:3], every[[9, 1, 400]], [7, 7, 6]):
        same(kernel, packed, numbers)
    packed.keep(np.array([600, 9, 0, 300, 8]))
    same(kernel, packed, [300, 0, 9, 8])
    assert not isinstance(packed.of(np.array([300, 10]), [1, 2]), Packed)
    packed.keep(np.array([11]))
    assert not packed.blocks


def test_rows_for_which_there_is_no_room_are_not_packed(rows: Any) -> None:
    kernel, packed = rows
    packed.add(np.arange(10), workers=1)
    packed.room = 0
    packed.add(np.arange(12), workers=2)
    assert not isinstance(packed.of(np.array([11]), [1]), Packed)
    same(kernel, packed, [9, 4])


def test_only_kernels_on_the_objects_themselves_take_their_features() -> None:
    assert not Levenshtein().packers
    assert not Kernel().packers
    assert not columns({"name": NGrams()})[0].packers
    assert [type(one) for one in (NGrams() + WeightedDegree(pad=True)).packers] == [NGrams]
    both = similarity_of(WLDistance(), "exp").packers
    assert [type(one) for one in both] == [WLDistance]
    assert all(isinstance(one, FeatureKernel) for one in both)


def test_features_do_not_leave_the_process() -> None:
    packed = PackedRows([NGrams()], Rows(["a", "b"]), np.inf)
    packed.add(np.arange(2), workers=1)
    known = packed.of(np.arange(2), ["a", "b"])
    assert type(known) is Packed
    assert type(pickle.loads(pickle.dumps(known))) is list
    assert type(NGrams().columns(known).Z) is list
