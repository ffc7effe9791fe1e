"""Gower's distance against its definition, value by value."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError

from kreinlearn import KreinRidgeClassifier
from kreinlearn.data.frames import Category
from kreinlearn.kernels import similarity_of
from kreinlearn.kernels.base import SQUARE, resolve
from kreinlearn.kernels.domains import Records
from kreinlearn.kernels.tables import Gower
from tests.unit.kernels.object_checks import (
    check_bad_object,
    check_copies,
    check_estimator,
    check_pieces,
    check_symmetry,
    matrix,
)

NAMES = ["age", "weight", "colour", "member"]
GOOD: list[Any] = [(20, 1.5, "red", True), (40, 2.5, "blue", False)]


def people(n: int, seed: int = 0, missing: float = 0.2) -> list[tuple[Any, ...]]:
    rng = np.random.default_rng(seed)
    full = zip(
        rng.integers(18, 90, n).tolist(),
        rng.normal(70, 10, n).tolist(),
        rng.choice(["red", "green", "blue"], n).tolist(),
        (rng.random(n) < 0.5).tolist(),
        strict=True,
    )
    made = [tuple(None if rng.random() < missing else x for x in row) for row in full]
    return [row if any(x is not None for x in row) else (50, None, None, None) for row in made]


def fitted(X: Any, **params: Any) -> Gower:
    return Gower(**params).fit(X, np.random.default_rng(0))


def is_missing(x: Any) -> bool:
    return x is None or x is pd.NA or (isinstance(x, float) and math.isnan(x))


def by_definition(train: Any, x: Any, z: Any, numeric: tuple[int, ...] = (0, 1)) -> float:
    parts = []
    for f, (a, b) in enumerate(zip(x, z, strict=True)):
        if is_missing(a) or is_missing(b):
            continue
        if f in numeric:
            known = [row[f] for row in train if not is_missing(row[f])]
            width = max(known) - min(known)
            parts.append(min(1.0, abs(a - b) / width) if width else 0.0)
        else:
            parts.append(float(a != b))
    return sum(parts) / len(parts) if parts else 1.0


# Values


@pytest.mark.parametrize("missing", [0.0, 0.2, 0.6])
def test_equals_the_definition(missing: float) -> None:
    X, new = people(40, 1, missing), [*people(25, 2, missing), (200, -5.0, "violet", None)]
    kernel = fitted(X)
    for A, Z in [(X, X), (new, X), (X, new)]:
        expected = matrix(lambda a, z: by_definition(X, a, z), A, Z)
        assert_allclose(kernel(A, Z), expected, rtol=1e-14, atol=1e-16)


def test_values_by_hand() -> None:
    X = [(20, "red", 1.5), (40, "blue", None), (30, "red", 2.5)]
    assert_array_equal(fitted(X)(X), [[0, 1, 0.5], [1, 0, 0.75], [0.5, 0.75, 0]])
    kernel = fitted(X)
    assert kernel([(35, "red", None)], X[:1])[0, 0] == (0.75 + 0) / 2
    assert kernel([(90, "red", None)], X[:1])[0, 0] == (1 + 0) / 2  # beyond the range: 1
    assert kernel([(None, None, 1.5)], [(20, "red", None)])[0, 0] == 1  # nothing in common


def test_a_constant_column_says_nothing_and_counts() -> None:
    X = [(1, "a", 7), (2, "b", 7)]
    assert_allclose(fitted(X)(X), [[0, 2 / 3], [2 / 3, 0]])
    assert fitted(X)([(1, "a", 8)], X[:1])[0, 0] == 0


def test_numbers_named_as_categories_are_compared_for_equality() -> None:
    X = [(1, 10.0), (2, 10.0), (9, 30.0)]
    expected = matrix(lambda a, z: by_definition(X, a, z, numeric=(1,)), X, X)
    assert_allclose(fitted(X, categorical=[0])(X), expected)
    rows = [{"code": a, "size": b} for a, b in X]
    assert_allclose(fitted(rows, categorical=("code",))(rows), expected)


def test_every_way_to_say_that_a_value_is_missing() -> None:
    for nothing in (None, np.nan, np.float32("nan"), pd.NA, pd.NaT):
        X = [(1.0, "a", 3), (nothing, "b", 5), (3.0, nothing, nothing), (2.0, "a", 4)]
        plain = [tuple(None if x is nothing else x for x in row) for row in X]
        kernel = fitted(X)
        assert kernel.numeric_ == [True, False, True]
        assert_array_equal(kernel(X), fitted(plain)(plain))


def test_rows_in_any_form() -> None:
    X, new = people(20, 3), people(9, 4)
    D = fitted(X)(new, X)
    frame = pd.DataFrame(X, columns=NAMES)
    forms: list[Any] = [
        [list(row) for row in X],
        [np.array(row, dtype=object) for row in X],
        [dict(zip(NAMES, row, strict=True)) for row in X],
        [{k: v for k, v in zip(NAMES, row, strict=True) if v is not None} for row in X],
        frame.to_dict("records"),
        list(frame.itertuples(index=False)),
        pl.DataFrame(X, schema=NAMES, orient="row").to_dicts(),
        pl.DataFrame(X, schema=NAMES, orient="row").rows(),
    ]
    for form in forms:
        named = isinstance(form[0], dict)
        rows = [dict(zip(NAMES, row, strict=True)) for row in new] if named else new
        assert_allclose(fitted(form)(rows, form), D, rtol=1e-14)


def test_numbers_of_every_type() -> None:
    X = [(1, 0.5), (np.int8(2), np.float32(0.25)), (Decimal(3), Decimal("0.75")), (4.0, 1)]
    plain = [(float(a), float(b)) for a, b in X]
    assert_array_equal(fitted(X)(X), fitted(plain)(plain))
    assert fitted([(True, "a"), (False, "b")]).numeric_ == [False, False]


def test_symmetric_beyond_one_strip() -> None:
    X = people(10 * SQUARE + 30, 5)
    check_symmetry(fitted(X), X)


def test_pieces_threads_and_copies_change_no_bit() -> None:
    A, Z = people(30, 6), people(17, 7)
    check_pieces(fitted(A), A, Z)
    check_copies(fitted(A), A, Z)


def test_ranges_are_those_of_all_training_rows() -> None:
    X: list[Any] = [(float(i % 7), "a") for i in range(5000)]
    X[4500] = (100.0, "b")
    assert_array_equal(fitted(X).ranges_, [100.0])


# Frames


def frame(n: int, seed: int = 0) -> pd.DataFrame:
    rows = pd.DataFrame(people(n, seed), columns=NAMES)
    rows["code"] = pd.Categorical(np.random.default_rng(seed).integers(0, 4, n))
    return rows


def model(**params: Any) -> KreinRidgeClassifier:
    fixed = {"lambda_plus": 0.01, "lambda_minus": 0.01, "random_state": 0}
    return KreinRidgeClassifier("gower", **fixed, **params)


def plain(X: pd.DataFrame) -> list[dict[str, Any]]:
    rows = X.to_dict("records")
    return [{k: None if is_missing(v) else v for k, v in row.items()} for row in rows]


def structured(X: pd.DataFrame) -> Any:
    table = np.empty(len(X), dtype=[(name, object) for name in X])
    table[:] = [tuple(row.values()) for row in plain(X)]
    return table


def arrow(X: pd.DataFrame) -> Any:
    return pytest.importorskip("pyarrow").Table.from_pandas(X)


FORMS: dict[str, Callable[[pd.DataFrame], Any]] = {  # that have the names of columns
    "pandas": lambda X: X,
    "polars": lambda X: pl.DataFrame(plain(X), infer_schema_length=None),
    "pyarrow": arrow,
    "nullable": pd.DataFrame.convert_dtypes,
    "dicts": plain,
    "structured": structured,
}


@pytest.mark.parametrize("form", FORMS)
def test_a_frame_is_its_rows(form: str) -> None:
    """One matrix whatever the container: that of the dicts, with "code" compared for equality."""
    X, new = frame(24, 8), frame(9, 9)
    y = np.arange(24) % 3
    rows, others = plain(X), plain(new)
    D = matrix(
        lambda a, z: by_definition([[*row.values()] for row in rows], [*a.values()], [*z.values()]),
        others,
        rows,
    )
    kernel = fitted(rows, categorical=["code"])
    assert_allclose(kernel(others, rows), D, rtol=1e-14)
    expected = model(kernel_params={"categorical": ["code"]}).fit(rows, y).decision_function(others)
    knows = form in ("pandas", "nullable", "pyarrow")  # that "code" is one of categories
    given = {} if knows else {"kernel_params": {"categorical": ["code"]}}
    fit = model(**given).fit(FORMS[form](X), y)
    assert_array_equal(fit.decision_function(FORMS[form](new)), expected)


@pytest.mark.parametrize("form", FORMS)
def test_other_forms_after_a_frame(form: str) -> None:
    X, new = frame(24, 8), frame(9, 9)
    fit = model().fit(X, np.arange(24) % 2)
    assert fit.kernel_.numeric_ == [True, True, False, False, False]
    assert_array_equal(fit.feature_names_in_, X.columns)
    assert fit.n_features_in_ == 5
    assert_array_equal(fit.decision_function(FORMS[form](new)), fit.decision_function(new))


def test_a_frame_after_dicts() -> None:
    X, new = frame(24, 8), frame(9, 9)
    fit = model().fit(plain(X), np.arange(24) % 2)
    assert not hasattr(fit, "feature_names_in_")
    expected = fit.decision_function(plain(new))
    new["code"] = new["code"].astype(int)
    for table in (new, new[new.columns[::-1]], pl.DataFrame(new)):
        assert_array_equal(fit.decision_function(table), expected)


def test_arrays_go_by_place() -> None:
    X, new = frame(24, 8), frame(9, 9)
    A, B = (table.to_numpy(dtype=object) for table in (X, new))
    expected = model().fit(X, np.arange(24) % 2).decision_function(new)
    fit = model(kernel_params={"categorical": [4]}).fit(A, np.arange(24) % 2)
    assert fit.n_features_in_ == 5
    rows: list[Any] = [B, [*map(tuple, B)], B.tolist(), new.set_axis(range(5), axis=1)]
    for table in rows:
        assert_array_equal(fit.decision_function(table), expected)
    with pytest.warns(UserWarning, match="X has feature names, but KreinRidge"):
        assert_array_equal(fit.decision_function(new), expected)
    named = model().fit(X, np.arange(24) % 2)
    for table in rows[:3]:
        with pytest.warns(UserWarning, match="X does not have valid feature names"):
            assert_array_equal(named.decision_function(table), expected)


def test_rows_that_do_not_fit_the_frame() -> None:
    X = frame(24, 8)
    fit = model().fit(X, np.arange(24) % 2)
    with (
        pytest.raises(ValueError, match=r"object 1 \(of 2\) is tuple \(1, 2\); a row is"),
        pytest.warns(UserWarning, match="valid feature names"),
    ):
        fit.predict([(1, 2.0, "red", True, 0), (1, 2)])
    with pytest.raises(ValueError, match=r"object 0 \(of 1\) is dict .*, but columns are \['age'"):
        fit.predict([{"height": 3}])
    twice = X.set_axis(["age", "age", *NAMES[2:], "code"], axis=1)
    # scikit-learn says so itself from 1.9 on
    with pytest.raises(ValueError, match=r"unique column names|a name of its own"):
        model().fit(twice, np.arange(24) % 2)
    with pytest.raises(ValueError, match="give each a name of its own"):
        model().fit(plain(X), np.arange(24) % 2).predict(twice)


def test_a_category_is_equal_to_its_number_and_none() -> None:
    one, two = Category(1), Category(2)
    assert one == 1 == one
    assert one == Category(1) == pickle.loads(pickle.dumps(one))
    assert one != two
    assert {1: "a"}[one] == {one: "a"}[1] == "a"
    assert repr(one) == "1"
    assert fitted([(one,), (two,)]).numeric_ == [False]


def test_landmarks_may_be_a_frame() -> None:
    X = frame(24, 8)
    one, two = (model(landmarks=Z).fit(X, np.arange(24) % 2) for Z in (X[3:12], plain(X)[3:12]))
    assert_array_equal(one.decision_function(X), two.decision_function(X))
    with pytest.raises(ValueError, match="The feature names should match"):
        model(landmarks=X[["code", *NAMES]]).fit(X, np.arange(24) % 2)


def test_combinations_take_frames() -> None:
    X, y = frame(24, 8), np.arange(24) % 2
    kernel = similarity_of("gower") - 0.5 * similarity_of(Gower(["age"]), "inverse")
    one, two = (KreinRidgeClassifier(kernel, random_state=0).fit(T, y) for T in (X, X[:]))
    assert one.kernel_.domain.is_records
    assert_array_equal(one.decision_function(X), two.decision_function(X))
    assert one.__sklearn_tags__().input_tags.categorical


def test_ranges_out_of_floating_range() -> None:
    for size in (1e308, 1e-320):
        with pytest.raises(ValueError, match="the difference is out of floating range; multiply"):
            fitted([(size, "a"), (-size, "b"), (None, "c")])


def test_an_estimator_takes_rows() -> None:
    X = people(24, 8)
    y = np.array([row[2] == "red" for row in X]).astype(int)
    objects = np.empty(len(X), dtype=object)
    objects[:] = X
    check_estimator(Gower(), X, y, people(9, 9), [objects, tuple(X)])
    rows = [dict(zip(NAMES, row, strict=True)) for row in X]
    f = KreinRidgeClassifier("gower", random_state=0).fit(rows, y).decision_function(rows)
    assert_allclose(f, KreinRidgeClassifier(Gower(), random_state=0).fit(X, y).decision_function(X))


def test_its_name() -> None:
    kernel = resolve("gower", {"categorical": ["code"]})
    assert type(kernel) is Gower
    assert (kernel.domain, kernel.is_dissimilarity, kernel.threads) == (Records(), True, True)


# What is refused


def test_it_must_be_fitted() -> None:
    with pytest.raises(NotFittedError):
        Gower()(GOOD)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (None, r"is NoneType None; a row is a tuple, list or 1-D array.*to_dict\(\"records\"\)"),
        ("row", r"is str 'row'; a row is"),
        ({"age": 3}, r"is dict \{'age': 3\}; a row is"),
        (np.zeros((2, 2)), r"is an array of shape \(2, 2\)"),
        ((1, 2.0), r"is tuple \(1, 2.0\), but columns are \[0, 1, 2, 3\]"),
        ((None, np.nan, None, None), r"is tuple .*, a row of missing values only; leave it out"),
        ((np.inf, 1.0, "red", True), r"has infinity in column 0; numbers must be finite"),
        ((20, 1.0, ["red"], True), r"has in column 2 list \['red'\], which is not hashable"),
    ],
)
def test_what_is_no_row_is_named(bad: Any, message: str) -> None:
    check_bad_object(fitted(GOOD), GOOD, bad, message)


def test_rows_unlike_those_of_the_fit() -> None:
    with pytest.raises(ValueError, match=r"object 0 \(of 1\) has str '20' in column 0, which held"):
        fitted(GOOD).columns([("20", 1.0, "red", True)])
    rows = [dict(zip(NAMES, row, strict=True)) for row in GOOD]
    with pytest.raises(ValueError, match=r"object 1 \(of 2\) is dict .*, but columns are \['age'"):
        fitted(rows)([rows[0], {"height": 3}])
    with pytest.raises(ValueError, match=r"object 0 \(of 2\) is tuple .*; a row is"):
        fitted(rows)(GOOD)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([(1,), ("a",)], r"column 0 holds int, str; .* pass categorical=\[0\]"),
        ([(date(2020, 1, 1),), (1.0,)], r"column 0 holds date, float; .*convert it"),
        ([{"t": timedelta(1)}], r"column 't' holds timedelta"),
        ([(1.0,), (True,)], r"column 0 holds bool, float"),
    ],
)
def test_columns_of_two_kinds_or_of_times(X: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fitted(X)
    assert fitted(X, categorical=[next(iter(X[0])) if isinstance(X[0], dict) else 0])(X).shape


@pytest.mark.parametrize(
    "dates",
    [
        [date(2024, 3, 1), date(2024, 3, 5), None, date(2024, 3, 11)],
        [datetime(2024, 3, 1), datetime(2024, 3, 5), None, datetime(2024, 3, 11)],
        [np.datetime64("2024-03-01"), np.datetime64("2024-03-05"), np.datetime64("NaT"),
         np.datetime64("2024-03-11")],
        [pd.Timestamp("2024-03-01"), pd.Timestamp("2024-03-05"), pd.NaT, pd.Timestamp(2024, 3, 11)],
        ["2024-03-01", "2024-03-05T00:00", None, "2024-03-11 00:00:00"],
        ["01.03.2024", "5.3.2024", "n/a", "11.3.2024"],
        ["1/3/2024", "5/3/2024 0:00", float("nan"), "2024-03-11"],
    ],
)  # fmt: skip
def test_dates_are_numbers_of_days(dates: list[Any]) -> None:
    if "/" in str(dates[0]):  # nothing tells days from months without this one
        dates = [*dates, "31/3/2024"]
    X = [(x, "a") for x in dates]
    days = np.array([0.0, 4.0, np.nan, 10.0, 30.0])[: len(dates)]
    near = np.abs(np.subtract.outer(days, days)) / np.nanmax(days)
    # two columns, the second of which is constant: it counts alone where a date is missing
    expected = np.where(np.isnan(near), 0.0, near / 2)
    kernel = fitted(X)
    assert_allclose(kernel(X), expected, rtol=1e-15)
    assert_allclose(kernel([(dates[0], "b")], X)[0], np.where(np.isnan(days), 1, expected[0] + 0.5))
    codes = fitted(X, categorical=[0])
    assert codes(X[:1], X[1:2])[0, 0] == 0.5


def test_texts_of_which_nothing_tells_days_from_months() -> None:
    X = [("1/3/2024",), ("2/4/2024",), ("5/6/2024",)]
    with pytest.warns(UserWarning, match=r"field 0 holds dates such as '5/6/2024', and nothing"):
        kernel = fitted(X)
    assert_array_equal(kernel(X), 1 - np.eye(3))


def test_a_categorical_column_that_is_not_there() -> None:
    with pytest.raises(ValueError, match=r"there is no column 'code'; columns are \[0, 1, 2, 3\]"):
        fitted(GOOD, categorical=["code"])


def test_a_data_frame_is_no_sequence_of_rows() -> None:
    with pytest.raises(ValueError, match="a row is a tuple"):
        fitted(pd.DataFrame(GOOD, columns=NAMES))
