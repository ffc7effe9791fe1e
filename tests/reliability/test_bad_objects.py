"""Bad inputs where rows are objects: one case per line.

The numbers in the names of the cases are rows of the table in docs/bad_inputs.rst.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError

from kreinlearn import KreinRidgeClassifier, KreinSVC, SpectrumSVC, dissimilarity, pairwise
from kreinlearn.kernels import DTW, Gower
from tests.models import CLASSIFIERS, Supervised, nystroem, pca, penalised

N = 20
RNG = np.random.default_rng(0)
WORDS = [f"{i:b}-{'abcdef'[i % 6 :]}" for i in range(N)]
SERIES = [RNG.normal(size=5 + i % 4) for i in range(N)]
SETS = [RNG.normal(size=(3 + i % 3, 2)) for i in range(N)]
GRAPHS = [(["a", "b", "a", "c"], [(0, 1), (1, 2), (2, i % 4)]) for i in range(N)]
BAGS = [{i % 3, i % 7, i % 5} for i in range(N)]
ROWS: list[Any] = [(i % 7, "ab"[i % 2], None if i % 5 == 0 else 0.5 * i) for i in range(N)]
TABLE = pd.DataFrame(ROWS, columns=["size", "kind", "weight"])
WIDE = pd.DataFrame(RNG.normal(size=(N, 6)), columns=[f"t{j}" for j in range(6)])
KINDS = {
    "levenshtein": WORDS,
    "dtw": SERIES,
    "hausdorff": SETS,
    "wl_distance": GRAPHS,
    "jaccard_sets": BAGS,
    "gower": ROWS,
}
Fit = Callable[..., Any]


def ridge(kernel: Any, **params: Any) -> Supervised:
    params = {"similarity": "squared", **params}
    return Supervised(penalised(KreinRidgeClassifier, kernel=kernel, **params))


def svc(kernel: Any, **params: Any) -> Supervised:
    params = {"similarity": "squared", **params}
    return Supervised(penalised(KreinSVC, kernel=kernel, **params))


def spectrum(kernel: Any, **params: Any) -> Supervised:
    return Supervised(SpectrumSVC(kernel, C=1.0, random_state=0, **params))


MODELS = [nystroem, pca, ridge, svc, spectrum]
every = pytest.mark.parametrize("model", MODELS)


def with_one(X: Any, bad: Any, at: int = 7) -> list[Any]:
    return [*X[:at], bad, *X[at + 1 :]]


# A person's own functions


def common(a: Any, b: Any) -> float:
    """Letters in common: a similarity, k(x, x) > 0."""
    return float(sum((Counter([*a]) & Counter([*b])).values()))


def apart(a: Any, b: Any) -> float:
    """Letters not in common: a dissimilarity."""
    return float(len(a) + len(b) - 2 * common(a, b))


def of_blocks(f: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda A, B: np.array([[f(a, b) for b in B] for a in A])


def skew(a: Any, b: Any) -> float:
    return common(a, b) + 0.1 * len(a)


def below_zero(a: Any, b: Any) -> float:
    return apart(a, b) - 3.0 * (a != b)


def below_zero_of_new(a: Any, b: Any) -> float:
    return -1.0 if a != b and "new" in (a, b) else apart(a, b)


def at_itself(a: Any, b: Any) -> float:
    return apart(a, b) + 0.5


def broken(value: Any, word: str = WORDS[7]) -> Callable[[Any, Any], Any]:
    return lambda a, b: value if a != b and word in (a, b) else apart(a, b)


class Noise:
    """A dissimilarity that never repeats itself."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)

    def __call__(self, a: Any, b: Any) -> float:
        return 0.0 if a == b else apart(a, b) + float(self.rng.random())


# What is refused


class Case(NamedTuple):
    """``fit(X)`` is refused; or with ``new``, ``fit(X)`` is not and using ``new`` is."""

    row: int
    what: str
    kernel: Any
    X: Any
    message: str
    new: Any = None
    error: type[Exception] = ValueError


def of_object(i: int, n: int = N) -> str:
    return rf"object {i} \(of {n}\) "


NEGATIVE = "^Negative values in data passed to X"
DIAGONAL = "the diagonal of a dissimilarity must be zero, got a self-dissimilarity of 0.5"
NO_SEQUENCE = "X must be a sequence of objects, got"
NO_SAMPLE = r"Found array with 0 sample\(s\)"
MANY_SERIES = np.stack([x[:5] for x in SERIES])

FUNCTIONS = [
    Case(10, "pairs", dissimilarity(pairwise(below_zero)), WORDS, NEGATIVE),
    Case(10, "blocks", dissimilarity(of_blocks(below_zero)), WORDS, NEGATIVE),
    Case(10, "new", dissimilarity(pairwise(below_zero_of_new)), WORDS, NEGATIVE, ["ab", "new"]),
    Case(11, "pairs", dissimilarity(pairwise(at_itself)), WORDS, DIAGONAL),
    Case(11, "blocks", dissimilarity(of_blocks(at_itself)), WORDS, DIAGONAL),
    Case(27, "one number", apart, WORDS, r"returned shape \(\), .*pass kernel=pairwise\(f\)"),
    Case(27, "a column more", dissimilarity(lambda A, B: np.zeros((len(A), len(B) + 1))), WORDS,
         r"the kernel returned shape \(20, 21\), expected \(20, 20\)"),
    *(
        Case(28, f"{name}, {way}", dissimilarity(make(broken(value))), WORDS,
             rf"kernel produced {name} for row 0 \(block 0\.\.1[59]\) and landmark row 7;")
        for name, value in (("NaN", np.nan), ("inf", np.inf))
        for way, make in (("pairs", pairwise), ("blocks", of_blocks))
    ),
    Case(28, "NaN of new", dissimilarity(pairwise(broken(np.nan, "new"))), WORDS,
         "kernel produced NaN for row 1 ", ["ab", "new"]),
    *(
        Case(29, f"{value!r} of a pair", dissimilarity(pairwise(broken(value))), WORDS,
             "a pairwise kernel must return one real number", None, TypeError)
        for value in (None, "1", 1j)
    ),
    Case(29, "None of a block", dissimilarity(lambda A, B: None), WORDS,
         "the kernel must return real numbers, got dtype object", None, TypeError),
]  # fmt: skip
MISSING = [
    Case(1, f"{name} among objects, {kernel}", kernel, with_one(X, value), of_object(7))
    for kernel, X in KINDS.items()
    for name, value in (("None", None), ("NaN", np.nan))
] + [
    Case(1, f"None among new objects, {kernel}", kernel, X, of_object(1, 3), [X[0], None, X[2]])
    for kernel, X in KINDS.items()
]
MISSING += [
    Case(1, "a gap in a column", "levenshtein", pd.Series(with_one(WORDS, None)), of_object(7)),
    Case(1, "a gap in a column of polars", "levenshtein", pl.Series(with_one(WORDS, None)),
         of_object(7) + "is NoneType"),
    Case(1, "a gap in a wide frame", "dtw", WIDE.mask(WIDE > 1.5), "is nan at time .*fill the gap"),
    Case(1, "None in a series", "dtw", with_one(SERIES, [1.0, None]), of_object(7) + "is list"),
    Case(1, "masked", "dtw", with_one(SERIES, np.ma.masked_equal([1.0, 2.0, 3.0], 2.0)),
         of_object(7) + "has masked values"),
    Case(2, "infinity in a series", "dtw", with_one(SERIES, [1.0, np.inf]),
         of_object(7) + "is inf at time 1"),
    Case(2, "infinity in a point", "hausdorff", with_one(SETS, [[1.0, np.inf]]),
         of_object(7) + "contains NaN or infinity in point 0"),
    Case(2, "infinity in a row", "gower", with_one(ROWS, (np.inf, "a", 1.0)),
         of_object(7) + "has infinity in column 0"),
    Case(37, "series", "dtw", [x * 1e200 for x in SERIES], "kernel produced inf for row 0"),
    Case(37, "new series", "dtw", SERIES, "inf: its square is out of floating range",
         [x * 1e200 for x in SERIES]),
    Case(37, "points", "hausdorff", [x * 1e200 for x in SETS], "kernel produced inf for row 0"),
    Case(37, "rows", "gower", [(1e308 * (-1) ** i,) for i in range(N)],
         "difference is out of floating range; multiply"),
]  # fmt: skip


class Numbered:
    """numpy would make an array of it, as of a graph of networkx with numbers as nodes."""

    def __len__(self) -> int:
        return 3

    def __getitem__(self, i: int) -> int:
        return range(3)[i]

    def __iter__(self) -> Iterator[int]:
        return iter(range(3))


OTHERS: dict[str, Any] = {
    **{kernel: X[:3] for kernel, X in KINDS.items()},
    "numbers": [1, 2, 3],
    "objects": [object()] * 3,
    "numbered objects": [Numbered()] * 3,
    "dicts": [{"a": 1}] * 3,
    "bytes": [b"ab"] * 3,
    "cells of lists": [[["a"]]] * 3,
    "series in three channels": [np.ones((5, 3))] * 3,
}

GO_TOGETHER = {("jaccard_sets", kind) for kind in ("dtw", "gower")}  # lists of elements are sets
OTHER_KINDS = [
    Case(47, f"{kind} after {kernel}", kernel, X, rf"^(X|{of_object(0, 3)})", new)
    for kernel, X in KINDS.items()
    for kind, new in OTHERS.items()
    if kind != kernel and (kernel, kind) not in GO_TOGETHER and (kernel, kind) != ("gower", "dicts")
]  # fmt: skip
MIXED = [
    Case(47, f"{kind} among {kernel}", kernel, with_one(X, new[0]), of_object(7))
    for kernel, X in KINDS.items()
    for kind, new in OTHERS.items()
    if kind != kernel and (kernel, kind) not in GO_TOGETHER
]
NO_LIST = {
    "a text": "a word",
    "bytes": b"abc",
    "a bytearray": bytearray(b"abc"),
    "a text of numpy": np.str_("abc"),
    "a dict": dict.fromkeys(WORDS),
    "its keys": dict.fromkeys(WORDS).keys(),
    "a set": set(WORDS),
    "a number": 3,
    "an array of no dimension": np.array("abc"),
    "None": None,
    "an iterator": iter(WORDS),
    "a generator": (word for word in WORDS),
    "a sparse array": sp.csr_array(np.eye(N)),
}
FORMS = [
    *(
        Case(47, f"{what} to {kernel}", kernel, X, NO_SEQUENCE, None, TypeError)
        for kernel in KINDS
        for what, X in NO_LIST.items()
    ),
    *(Case(54, f"nothing to {kernel}", kernel, [], NO_SAMPLE) for kernel in KINDS),
    *(Case(54, f"none new to {kernel}", kernel, X, NO_SAMPLE, []) for kernel, X in KINDS.items()),
    Case(54, "an empty frame", "gower", TABLE[:0], NO_SAMPLE),
    Case(54, "a frame without columns", "gower", TABLE[[]], r"0 feature\(s\)"),
    Case(54, "an empty wide frame", "dtw", WIDE[:0], NO_SAMPLE),
    Case(41, "complex series", "dtw", MANY_SERIES + 1j, of_object(0) + ".*dtype complex128"),
    Case(40, "dates as series", "dtw", MANY_SERIES.astype("datetime64[D]"),
         of_object(0) + ".*dtype datetime64"),
    Case(40, "spans of time in a frame", "gower", TABLE.assign(size=pd.Timedelta(1)),
         "column 'size' holds Timedelta; .*convert it"),
    Case(46, "texts in a frame", "levenshtein", TABLE[["kind"]], r'pass the column, X\["name"\]'),
    Case(46, "a mixed frame as series", "dtw", TABLE, r"two dimensions, 20 x 3; pass the column"),
    Case(46, "categories as series", "dtw", TABLE[["kind"]].astype("category"), NO_SEQUENCE, None,
         TypeError),
    Case(46, "texts in two dimensions", "levenshtein", np.array(WORDS)[:, None], r"X\.ravel\(\)"),
    Case(53, "one series", "dtw", SERIES[0], of_object(0, 5) + "is float64 .*a time series is an"),
    Case(53, "four dimensions", "dtw", MANY_SERIES[:, None, :, None], of_object(0) + "is an array"),
    Case(53, "vectors as points", "hausdorff", WIDE, of_object(0) + "is an array of shape"),
    Case(8, "columns of a table", "gower", ROWS, "X has 2 features", [row[:2] for row in ROWS]),
    Case(8, "a shorter row", "gower", ROWS, of_object(1, 2), [ROWS[0], ROWS[1][:2]]),
    Case(8, "channels of series", "dtw", SERIES, of_object(0, 3) + "has 2 channels",
         [np.ones((4, 2))] * 3),
    Case(8, "coordinates of points", "hausdorff", SETS, of_object(0, 3) + "has points of 3",
         [np.ones((4, 3))] * 3),
    *(
        Case(48, f"{what} of {kernel}", kernel, frame, "The feature names should match", new)
        for kernel, frame in (("gower", TABLE), ("dtw", WIDE), (Gower(), pl.DataFrame(TABLE)))
        for what, new in (
            ("reordered columns", frame[frame.columns[::-1]]),
            ("fewer columns", frame[frame.columns[:2]]),
        )
    ),
    Case(50, "mixed names", "gower", TABLE.set_axis(["a", 1, "c"], axis=1), "string names", None,
         TypeError),
]  # fmt: skip


@pytest.fixture(scope="module")
def fitted() -> Callable[[Fit, Case], Any]:
    """A model fitted to the objects of a case; cases share it."""
    known: dict[Any, Any] = {}

    def fit(model: Fit, case: Case) -> Any:
        key = model, id(case.kernel), id(case.X)
        if key not in known:
            known[key] = model(case.kernel).fit(case.X)
        return known[key]

    return fit


@pytest.mark.parametrize(
    "case",
    [*FUNCTIONS, *MISSING, *OTHER_KINDS, *MIXED, *FORMS],
    ids=lambda case: f"{case.row:02d}-{case.what}",
)
def test_bad_object(case: Case, fitted: Callable[[Fit, Case], Any]) -> None:
    for model in MODELS:
        new = case.new is not None
        act = fitted(model, case).transform if new else model(case.kernel).fit
        with pytest.raises(case.error, match=case.message):
            act(case.new if new else case.X)


# What is told and done


@every
@pytest.mark.parametrize("make", [pairwise, of_blocks])
def test_bad_object_05_31_asymmetric(model: Fit, make: Any) -> None:
    with pytest.warns(UserWarning, match=r"the kernel is asymmetric: k\(x, z\) - k\(z, x\)"):
        model(make(skew)).fit(WORDS)
    lopsided = dissimilarity(make(lambda a, b: apart(a, b) * (1 + 0.1 * (a < b))))
    with pytest.warns(UserWarning, match="the kernel is asymmetric"):
        model(lopsided).fit(WORDS)


@every
def test_bad_object_06_asymmetry_at_rounding_level(model: Fit) -> None:
    """(a + b) / 3 and a / 3 + b / 3 differ in the last digit: silently."""
    rounded = pairwise(lambda a, b: common(a, b) / 3 + (1e-16 if a < b else 0))
    model(rounded).fit(WORDS)  # no warning


@every
@pytest.mark.parametrize("make", [pairwise, of_blocks])
def test_bad_object_12_dissimilarity_as_similarity(model: Fit, make: Any) -> None:
    with pytest.warns(UserWarning, match=r"pass kernel=dissimilarity\(\.\.\.\)"):
        model(make(apart)).fit(WORDS)
    model(dissimilarity(make(apart))).fit(WORDS)  # no warning
    model(make(common)).fit(WORDS)


@every
@pytest.mark.parametrize("kernel", KINDS)
def test_bad_object_18_duplicates(model: Fit, kernel: str) -> None:
    X = KINDS[kernel][:5] * 4
    fit = model(kernel).fit(X)
    if model is not spectrum:
        assert fit.rank_ <= 4
    f = fit.transform(X)
    assert np.isfinite(f).all()
    assert_allclose(f, np.concatenate([f[:5]] * 4), atol=1e-10)


@every
@pytest.mark.parametrize("kernel", KINDS)
def test_bad_object_20_all_the_same(model: Fit, kernel: str) -> None:
    X = KINDS[kernel][1:2] * N
    with pytest.warns(UserWarning, match=r"rank_ is 0|the corrected matrix is zero"):
        fit = model(kernel).fit(X)
    assert np.isfinite(fit.transform(KINDS[kernel])).all()


@every
def test_bad_object_30_kernel_raises(model: Fit) -> None:
    def breaks(a: Any, b: Any) -> float:
        if WORDS[7] in (a, b):
            raise ZeroDivisionError("no licence")
        return apart(a, b)

    fit = model(dissimilarity(pairwise(breaks)))
    with pytest.raises(ZeroDivisionError, match="no licence") as caught:
        fit.fit(WORDS)
    assert any("while evaluating the kernel on rows" in note for note in caught.value.__notes__)
    with pytest.raises(NotFittedError):
        fit.transform(WORDS)


@every
def test_bad_object_32_not_deterministic(model: Fit) -> None:
    with pytest.warns(UserWarning, match="the kernel is not deterministic"):
        model(dissimilarity(pairwise(Noise()))).fit(WORDS)


@every
def test_bad_object_34_pickle_of_a_lambda(model: Fit) -> None:
    fit = model(dissimilarity(pairwise(lambda a, b: apart(a, b)))).fit(WORDS)
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(fit)


@every
def test_bad_object_44_numbers_as_objects(model: Fit) -> None:
    one, two = (model("dtw").fit(X).transform(X) for X in (MANY_SERIES, MANY_SERIES.astype(object)))
    assert_array_equal(one, two)


@every
def test_bad_object_47_unhashable(model: Fit) -> None:
    """Lists, dicts and sets are objects as good as others."""
    for X in ([[*word] for word in WORDS], [dict.fromkeys(word) for word in WORDS]):
        expected = model(pairwise(common)).fit([*map("".join, X)])
        fit = model(pairwise(common)).fit(X)
        assert_array_equal(fit.transform(X), expected.transform([*map("".join, X)]))


@every
def test_bad_object_47_points_and_channels_exchanged(model: Fit) -> None:
    """(n, channels, length), as aeon has it, where (length, channels) is meant."""
    message = "fewer points than channels, the first 1 and 5; .* pass channels_first=True"
    with pytest.warns(UserWarning, match=message):
        model("dtw").fit(MANY_SERIES[:, None])
    turned = model(DTW(channels_first=True)).fit(MANY_SERIES[:, None])
    expected = model("dtw").fit(MANY_SERIES).transform(MANY_SERIES)
    assert_array_equal(turned.transform(MANY_SERIES[:, None]), expected)
    assert_array_equal(model("dtw").fit(MANY_SERIES[:, :, None]).transform(MANY_SERIES), expected)


@every
@pytest.mark.parametrize(("kernel", "frame"), [("gower", TABLE), ("dtw", WIDE)])
def test_bad_object_49_names_come_or_go(model: Fit, kernel: str, frame: pd.DataFrame) -> None:
    rows = frame.to_numpy()
    named, unnamed = model(kernel).fit(frame), model(kernel).fit(rows)
    expected = named.transform(frame)
    with pytest.warns(UserWarning, match="X does not have valid feature names, but "):
        assert_array_equal(named.transform(rows), expected)
    with pytest.warns(UserWarning, match="X has feature names, but .* fitted without"):
        assert_array_equal(unnamed.transform(frame), expected)
    assert_array_equal(named.fit(rows).transform(rows), expected)  # no warning: forgotten


def test_bad_object_51_missing_values_and_categories() -> None:
    """What Gower's distance is for; see the tests of its kernel for the values."""
    frame = TABLE.assign(kind=TABLE["kind"].astype("category"), flag=TABLE["size"] > 3)
    nullable = frame.convert_dtypes()
    one, two = (nystroem("gower").fit(X).transform(X) for X in (frame, nullable))
    assert np.isfinite(one).all()
    assert_array_equal(one, two)


@every
@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_bad_object_52_matrix(model: Fit) -> None:
    for kernel in ("dtw", "gower", "levenshtein"):
        with pytest.raises(TypeError, match="X must be a sequence of objects, got matrix"):
            model(kernel).fit(np.matrix(MANY_SERIES))


@pytest.mark.parametrize("learner", [*CLASSIFIERS, SpectrumSVC])
@pytest.mark.parametrize("kernel", KINDS)
def test_bad_object_55_lengths_differ(learner: Any, kernel: str) -> None:
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[20, 19\]"):
        penalised(learner, kernel=kernel).fit(KINDS[kernel], np.arange(N - 1) % 2)


@every
@pytest.mark.parametrize("kernel", KINDS)
def test_bad_object_64_a_fit_that_fails_leaves_nothing(model: Fit, kernel: str) -> None:
    fit = model(kernel)
    before = set(vars(getattr(fit, "learner", fit)))
    fit.fit(KINDS[kernel])
    with pytest.raises(ValueError, match=of_object(7)):
        fit.fit(with_one(KINDS[kernel], None))
    left = set(vars(getattr(fit, "learner", fit))) - before
    assert left <= {"n_features_in_"}
    with pytest.raises(NotFittedError):
        fit.transform(KINDS[kernel])
