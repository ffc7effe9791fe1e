"""A person's own functions as kernels: what is evaluated, how often, and what is refused."""

from __future__ import annotations

import itertools
import threading
import warnings
from collections import Counter
from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from kreinlearn import (
    KreinNystroem,
    KreinRidgeClassifier,
    Landmarks,
    SpectrumSVC,
    dissimilarity,
    pairwise,
)
from kreinlearn.kernels import Gaussian, remembering, resolve
from kreinlearn.kernels.callables import (
    ASYMMETRY_PAIRS,
    REPEATED_PAIRS,
    CallableKernel,
    as_block,
    as_number,
    probe,
)
from kreinlearn.kernels.transformed import normalized, similarity_of

N = 90
SCHEMES = ["uniform", "leverage", "kmeans++", "greedy_kmeans++"]


def words(n: int = N) -> list[str]:
    rng = np.random.default_rng(4)
    return [f"{i:03d}" + "".join(rng.choice(list("abcd"), rng.integers(3, 9))) for i in range(n)]


def common(a: str, b: str) -> float:
    """Letters in common less a length: indefinite."""
    shared = sum((Counter(a[3:]) & Counter(b[3:])).values())
    return shared - 0.5 * abs(len(a) - len(b)) - len(a) * len(b) / 16


def edits(a: str, b: str) -> float:
    return float(sum((Counter(a[3:]) - Counter(b[3:])).values())) + float(
        sum((Counter(b[3:]) - Counter(a[3:])).values())
    )


class Counting:
    """A function of two objects that counts the unordered pairs it is called with."""

    def __init__(self, f: Any) -> None:
        self.f, self.calls = f, Counter[tuple[str, str]]()

    def __call__(self, a: str, b: str) -> float:
        self.calls[min(a, b), max(a, b)] += 1
        return float(self.f(a, b))


# Counting evaluations


@pytest.fixture
def without_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kreinlearn.pairs.probe.probe", lambda *args: (0.0, 0.0))


@pytest.mark.parametrize("core", ["ls", "truncated", "plain"])
@pytest.mark.parametrize("landmarks", [*SCHEMES, [3, 1, 80, 44]])
@pytest.mark.parametrize("kind", ["similarity", "dissimilarity"])
@pytest.mark.usefixtures("without_probe")
def test_a_fit_evaluates_no_pair_twice(kind: str, landmarks: Any, core: str) -> None:
    f = Counting(common if kind == "similarity" else edits)
    kernel = pairwise(f) if kind == "similarity" else dissimilarity(pairwise(f))
    given = Landmarks(12, landmarks, core=core)
    if not isinstance(landmarks, str):
        given = Landmarks(landmarks, core=core)
    model = KreinNystroem(kernel, landmarks=given, random_state=0)
    model.kernel.func = f  # clone copies functions that are objects: count in this one
    X = words()
    fit_in_place(model, X)
    assert f.calls
    assert max(f.calls.values()) == 1
    assert len(f.calls) < N * (N + 1) / 2


def fit_in_place(model: KreinNystroem, X: Any) -> KreinNystroem:
    """fit with the kernel object itself instead of a clone of it."""
    kernel = model.kernel
    model._resolved_kernel = lambda: kernel  # type: ignore[method-assign]
    return model.fit(X)


@pytest.mark.usefixtures("without_probe")
def test_how_many_pairs_each_core_needs() -> None:
    """plain: n m pairs less the mirrored ones; least squares: those among 2 m more rows as well."""
    counts = {}
    for core in ("plain", "ls"):
        f = Counting(common)
        model = KreinNystroem(pairwise(f), landmarks=Landmarks(10, "uniform", core=core))
        model.kernel.func = f
        fit_in_place(model, words())
        counts[core] = len(f.calls)
    assert counts["plain"] == N * 10 - 10 * 9 // 2
    assert counts["ls"] == counts["plain"] + 20 * 21 // 2


@pytest.mark.usefixtures("without_probe")
def test_fit_transform_evaluates_nothing_that_fit_did() -> None:
    X, calls = words(), []
    for method in ("fit", "fit_transform"):
        f = Counting(common)
        model = KreinNystroem(pairwise(f), landmarks=10, random_state=0)
        model.kernel.func = f
        kernel = model.kernel
        model._resolved_kernel = lambda kernel=kernel: kernel  # type: ignore[method-assign]
        Phi = getattr(model, method)(X)
        calls.append(f.calls)
    assert calls[0] == calls[1]
    np.testing.assert_allclose(Phi, model.transform(X), atol=1e-12)


def test_the_probe_is_all_that_is_evaluated_again() -> None:
    f = Counting(common)
    model = KreinNystroem(pairwise(f), landmarks=30, random_state=0)
    model.kernel.func = f
    fit_in_place(model, words())
    again = {pair: count - 1 for pair, count in f.calls.items() if count > 1}
    assert 0 < len(again) <= ASYMMETRY_PAIRS
    assert sum(again.values()) <= 2 * ASYMMETRY_PAIRS + REPEATED_PAIRS


def test_a_known_diagonal_is_not_evaluated() -> None:
    f = Counting(common)
    Z = words(6)
    own = np.array([common(z, z) for z in Z])
    own[[1, 4]] = np.nan
    K = pairwise(f).set_params(func=f).symmetric(Z, own)
    np.testing.assert_array_equal(K, [[common(a, b) for b in Z] for a in Z])
    assert {a for a, b in f.calls if a == b} == {Z[1], Z[4]}


# Values


def test_pairwise_is_the_function_on_every_pair() -> None:
    X, Z = words(20), words(30)[20:]
    kernel = pairwise(common)
    np.testing.assert_array_equal(kernel(X, Z), [[common(x, z) for z in Z] for x in X])
    np.testing.assert_array_equal(kernel(X), [[common(x, z) for z in X] for x in X])
    np.testing.assert_array_equal(kernel.diagonal(X), [common(x, x) for x in X])
    np.testing.assert_array_equal(dissimilarity(pairwise(edits)).diagonal(X), np.zeros(20))


def weighted(a: str, b: str, *, w: float) -> float:
    return w * common(a, b)


def test_parameters_reach_the_function() -> None:
    X = words(10)
    np.testing.assert_array_equal(pairwise(weighted, w=3.0)(X), 3 * pairwise(common)(X))
    block = resolve(scaled_products, {"c": 2.0})
    A = np.arange(6.0).reshape(3, 2)
    np.testing.assert_array_equal(block(A, A), 2 * A @ A.T)
    model = KreinNystroem(
        scaled_products, kernel_params={"c": 2.0}, landmarks=Landmarks(core="plain")
    ).fit(A)
    np.testing.assert_allclose(model.approximate(A), 2 * A @ A.T, atol=1e-12)


def scaled_products(A: Any, B: Any, c: float = 1.0) -> Any:
    return c * A @ B.T


def test_parameters_of_the_function_are_those_of_the_kernel() -> None:
    kernel = pairwise(weighted, w=3.0)
    assert kernel.get_params() == {
        "func": weighted, "params": {"w": 3.0}, "is_dissimilarity": False, "w": 3.0
    }  # fmt: skip
    other = clone(kernel).set_params(w=2.0)
    assert (other.params, kernel.params) == ({"w": 2.0}, {"w": 3.0})
    assert pairwise(weighted).set_params(w=4.0, is_dissimilarity=True).params == {"w": 4.0}
    assert kernel.set_params(func=common, params=None).get_params() == {
        "func": common, "params": None, "is_dissimilarity": False
    }  # fmt: skip
    anything = pairwise(lambda a, b, **rest: float(len(rest))).set_params(x=1, y=2)
    assert anything(["a"], ["b"])[0, 0] == 2
    assert dissimilarity(pairwise(far, p=1.0), p=2.0).params == {"p": 2.0}
    assert pairwise(Nameless()).set_params(z=1).params == {"z": 1}


class Nameless:
    """A function that does not say what it takes, as those of some compiled libraries."""

    __signature__ = "hidden"

    def __call__(self, a: Any, b: Any) -> float:
        return 0.0


@pytest.mark.parametrize("name", ["v", "a", "b"])
def test_a_parameter_that_the_function_has_not(name: str) -> None:
    with pytest.raises(ValueError, match=rf"takes no parameter '{name}' .* it takes \['w'\]"):
        pairwise(weighted).set_params(**{name: 1.0})
    with pytest.raises(ValueError, match="it takes none"):
        KreinNystroem(pairwise(common)).set_params(kernel__w=1.0)


def far(a: str, b: str, p: float = 1.0) -> float:
    return edits(a, b) ** p


def test_a_search_over_a_parameter_of_the_function() -> None:
    X = words(45)
    y = np.array([x.count("a") > 1 for x in X])
    model = KreinRidgeClassifier(dissimilarity(pairwise(far)), similarity="exp", random_state=0)
    search = GridSearchCV(model, {"kernel__p": [0.01, 1.0]}, cv=3).fit(X, y)
    assert search.best_estimator_.kernel_.params == {"p": search.best_params_["kernel__p"]}
    chosen = KreinRidgeClassifier(
        dissimilarity(pairwise(far)), kernel_params=[{"p": 0.01}, {"p": 1.0}], random_state=0
    ).fit(X, y)
    assert chosen.kernel_params_ in ({"p": 0.01}, {"p": 1.0})
    assert chosen.kernel_.params == chosen.kernel_params_


def test_processes_give_what_one_gives(tmp_path: Any) -> None:
    """In line, in two processes, by blocks: the same numbers, each pair once in all."""
    X = words(40)
    plain = KreinNystroem(pairwise(common), landmarks=8, random_state=0).fit(X)
    logged = pairwise(partial(logging, path=str(tmp_path / "calls")))
    spread = KreinNystroem(logged, landmarks=8, random_state=0, n_jobs=2).fit(X)
    np.testing.assert_array_equal(plain.landmark_indices_, spread.landmark_indices_)
    np.testing.assert_array_equal(plain.transform(X), spread.transform(X))
    calls = (tmp_path / "calls").read_text(encoding="ascii").splitlines()
    assert len({line.split()[0] for line in calls}) > 1


def logging(a: str, b: str, path: str) -> float:
    import os

    with open(path, "a", encoding="ascii") as file:
        file.write(f"{os.getpid()} {a} {b}\n")
    return common(a, b)


def test_a_lambda_goes_to_processes() -> None:
    X = words(12)
    kernel = lambda A, B: np.array([[common(a, b) for b in B] for a in A])  # noqa: E731
    spread, plain = (
        KreinNystroem(kernel, landmarks=4, random_state=0, n_jobs=jobs).fit(X).transform(X)
        for jobs in (2, 1)
    )
    np.testing.assert_array_equal(spread, plain)


def test_float32_and_sparse_results_are_taken() -> None:
    K = np.arange(6.0).reshape(2, 3)
    assert as_block(K.astype(np.float32), 2, 3).dtype == np.float64
    np.testing.assert_array_equal(as_block(sp.csr_array(K), 2, 3), K)
    assert as_block(K.astype(int), 2, 3).dtype == np.float64
    np.testing.assert_array_equal(as_block(K.tolist(), 2, 3), K)


# Refusals


@pytest.mark.parametrize("bad", [None, "0.5", b"1", 1j, np.complex64(1), [1.0], np.ones((1, 1))])
def test_what_is_no_number(bad: Any) -> None:
    with pytest.raises(TypeError, match="must return one real number"):
        as_number(bad)


@pytest.mark.parametrize("good", [1, True, 2.5, np.float32(2), np.int8(3), np.array(4.0)])
def test_what_is_a_number(good: Any) -> None:
    assert as_number(good) == float(good)


def longest(a: str, b: str) -> float:
    return float(len(a.strip()) == len(b.strip()))


def test_a_function_of_two_objects_is_told_of_pairwise() -> None:
    words, y = ["a", "bb", "cc", "d"], [0, 1, 1, 0]
    given = {"lambda_plus": 1, "lambda_minus": 1}
    for kernel in (longest, dissimilarity(longest)):
        with pytest.raises(TypeError, match=r"takes two single objects, .* pass kernel=pairwise"):
            KreinRidgeClassifier(kernel, **given).fit(words, y)
    assert KreinRidgeClassifier(pairwise(longest), **given).fit(words, y).score(words, y) == 1

    def broken(A: object, B: object) -> float:
        raise AttributeError("mine")

    with pytest.raises(AttributeError, match="mine"):
        KreinRidgeClassifier(broken, **given).fit(words, y)


def test_pairwise_takes_a_function() -> None:
    with pytest.raises(TypeError, match="pairwise takes a function"):
        pairwise("levenshtein")  # type: ignore[arg-type]


def test_what_cannot_be_sent_is_refused_before_any_work() -> None:
    lock, calls = threading.Lock(), []

    def locked(A: Any, B: Any) -> Any:
        calls.append(lock)
        return A @ B.T

    with pytest.raises(TypeError, match=r"cannot be sent to other processes.*n_jobs=1"):
        KreinNystroem(locked, n_jobs=2).fit(np.eye(5))
    assert not calls


# The probe


def as_kernel(f: Any) -> CallableKernel:
    return CallableKernel(f)


def test_probe_measures_asymmetry_and_drift() -> None:
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(30, 2))
    assert probe(as_kernel(lambda A, B: A @ B.T), Z, rng) == (0.0, 0.0)
    skew = np.array([[1.0, 0.5], [0.0, 1.0]])
    asymmetry, drift = probe(as_kernel(lambda A, B: A @ skew @ B.T), Z, rng)
    assert 0.1 < asymmetry < 2
    assert drift == 0
    _, drift = probe(as_kernel(lambda A, B: A @ B.T + rng.normal(size=(len(A), len(B)))), Z, rng)
    assert drift > 0.01


def test_probe_does_not_mind_rounding() -> None:
    """float32 products in two orders differ by rounding: nothing to warn of."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(40, 300))
    mixed = np.float32(rng.permutation(300) + 1.0)

    def f(A: Any, B: Any) -> Any:
        return (np.float32(A) * mixed) @ np.float32(B).T

    there, back = f(Z[:1], Z[1:2]), f(Z[1:2], Z[:1])
    assert there != back
    assert probe(as_kernel(f), Z, rng) == (0.0, 0.0)


def test_probe_of_one_object() -> None:
    assert probe(as_kernel(scaled_products), np.ones((1, 2)), np.random.default_rng(0)) == (0, 0)


def skewed(a: str, b: str) -> float:
    return common(a, b) + 0.1 * len(a)


def transposed(a: str, b: str) -> float:
    return skewed(b, a)


@pytest.mark.parametrize(
    ("kernel", "asymmetric"),
    [
        (pairwise(common) - 0.5 * pairwise(skewed), True),
        (pairwise(common) * pairwise(skewed), True),
        (pairwise(skewed) * pairwise(common) + pairwise(edits), True),
        (normalized(pairwise(skewed)), True),
        (pairwise(common) + normalized(pairwise(skewed)), True),
        (similarity_of(dissimilarity(pairwise(lambda a, b: edits(a, b) * len(a))), "exp"), True),
        (pairwise(skewed) + pairwise(transposed), False),
        (pairwise(skewed) * pairwise(transposed) - pairwise(common), False),
        (normalized(pairwise(common) - 0.5 * pairwise(edits)), False),
    ],
)
@pytest.mark.parametrize("make", [KreinNystroem, KreinRidgeClassifier, SpectrumSVC])
def test_functions_inside_other_kernels_are_probed(
    kernel: Any, asymmetric: bool, make: Any
) -> None:
    X = words(24)
    model = make(kernel, random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, np.arange(24) % 2)
    told = ["the kernel is asymmetric" in str(one.message) for one in caught]
    assert any(told) == asymmetric


def test_what_is_probed() -> None:
    f, g = pairwise(common), pairwise(edits)
    assert Gaussian().untrusted == (2.0 * resolve("levenshtein")).untrusted == []
    both = f - g
    assert both.untrusted == [both]
    nested = f * g + g
    assert nested.untrusted == [nested]
    assert normalized(f).untrusted[0].func is common
    mixed = (f + normalized(g)).fit(words(5), np.random.default_rng(0))
    assert [k.func for k in mixed.untrusted] == [common, edits]


def test_what_is_remembered_is_not_what_a_probe_sees() -> None:
    calls = itertools.count()
    X = words(20)

    def drifting(a: str, b: str) -> float:
        return common(a, b) + 1e-3 * next(calls)

    for kernel in (pairwise(drifting), pairwise(common) - pairwise(drifting)):
        with remembering(), pytest.warns(UserWarning, match="not deterministic"):
            KreinNystroem(kernel, random_state=0).fit(X)


@pytest.mark.parametrize("n", [0, 1, 8, 30])
def test_the_diagonal_of_a_block_function_in_few_calls(n: int) -> None:
    shapes = []

    def k(A: Any, B: Any) -> Any:
        shapes.append((len(A), len(B)))
        return np.array([[a * b - a - b for b in B] for a in A], dtype=float)

    values = list(np.linspace(1, 2, n))
    expected = [v * v - 2 * v for v in values]
    np.testing.assert_allclose(CallableKernel(k).diagonal(values), expected, rtol=1e-15)
    assert len(shapes) == -(-n // 8)
    assert sum(a * b for a, b in shapes) <= 8 * n
