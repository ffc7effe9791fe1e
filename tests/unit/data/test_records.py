"""Fields of records of every form, and errors that name the field and the rows."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from kreinlearn.data.frames import Category, is_missing
from kreinlearn.data.records import records_of

DICTS: list[Any] = [{"name": "Ann", "age": 31}, {"name": "Bo", "age": 7}, {"name": "Cy", "age": 50}]
TUPLES = [tuple(row.values()) for row in DICTS]
Person = namedtuple("Person", ["name", "age"])
FORMS: dict[str, Any] = {
    "dicts": DICTS,
    "pandas": pd.DataFrame(DICTS),
    "polars": pl.DataFrame(DICTS),
    "pyarrow": pa.Table.from_pylist(DICTS),
    "structured array": np.array(TUPLES, dtype=[("name", "U5"), ("age", "f8")]),
    "named tuples": [Person(*row) for row in TUPLES],
}
PLACES: dict[str, Any] = {
    **{form: X for form, X in FORMS.items() if form != "dicts"},
    "tuples": TUPLES,
    "lists": [list(row) for row in TUPLES],
    "array of objects": np.array(TUPLES, dtype=object),
}


@pytest.mark.parametrize("form", FORMS)
def test_records_by_name(form: str) -> None:
    assert records_of(FORMS[form], ["age", "name"]) == DICTS
    assert records_of(FORMS[form], ["age"]) == [{"age": row["age"]} for row in DICTS]
    assert list(records_of(FORMS[form], ["age", "name"])[0]) == ["age", "name"]


@pytest.mark.parametrize("form", PLACES)
def test_records_by_place(form: str) -> None:
    assert records_of(PLACES[form], [1]) == [{1: row["age"]} for row in DICTS]
    with pytest.raises(ValueError, match="there is no field 2; there are 2, at the places 0 to 1"):
        records_of(PLACES[form], [2])


def test_records_are_records_again() -> None:
    rows = records_of(TUPLES, [1, 0])
    assert records_of(rows, [0, 1]) == rows


def test_columns_without_names_go_by_place() -> None:
    frame = pd.DataFrame(TUPLES)  # columns 0 and 1
    assert records_of(frame, [0]) == [{0: row[0]} for row in TUPLES]
    with pytest.raises(ValueError, match=r"there is no field 'age'; .* Field\(0, ...\), or pass"):
        records_of(frame, ["age"])


def test_numbers_of_categories_stay_categories() -> None:
    frame = pd.DataFrame({"code": pd.Categorical([3, 1, 3])})
    assert [type(row["code"]) for row in records_of(frame, ["code"])] == [Category] * 3


@pytest.mark.parametrize("form", FORMS)
def test_a_field_that_does_not_exist(form: str) -> None:
    expected = r"there is no field 'Agee' \(did you mean 'age'\?\) in .*; fields are name, age$"
    with pytest.raises(ValueError, match=expected):
        records_of(FORMS[form], ["name", "Agee"])


def test_a_key_that_does_not_exist() -> None:
    with pytest.raises(ValueError, match=r"no field 7 in the records; fields are \['name', 'age'"):
        records_of(DICTS, [7])


@pytest.mark.parametrize("bad", [None, np.nan, np.float32("nan"), pd.NA, pd.NaT, "absent"])
def test_a_field_that_is_missing_in_some_rows(bad: Any) -> None:
    rows = [dict(row) for row in DICTS * 4]
    for i in (5, 8):
        rows[i]["age"] = bad
        if isinstance(bad, str):
            del rows[i]["age"]
    for X in (rows, pd.DataFrame(rows)):
        values = [row["age"] for row in records_of(X, ["name", "age"])]
        assert [i for i, value in enumerate(values) if is_missing(value)] == [5, 8]


def test_a_field_that_no_record_has() -> None:
    assert records_of([{"age": None}] * 3, ["age"]) == [{"age": None}] * 3
    with pytest.raises(ValueError, match="there is no field 'agee'"):
        records_of(DICTS, ["agee"])


@pytest.mark.parametrize("bad", ["Bo", 5, {1, 2}, object(), np.eye(2)])
def test_what_is_no_record(bad: Any) -> None:
    with pytest.raises(ValueError, match=r"(?s)row 1 \(of 3\) is \w+ .*; a record is a dict"):
        records_of([DICTS[0], bad, DICTS[2]], ["age"])


def test_tuples_of_other_lengths_and_other_forms() -> None:
    with pytest.raises(
        ValueError, match=r"row 1 \(of 2\) is \('Bo',\): there is no field 1; there"
    ):
        records_of([TUPLES[0], ("Bo",)], [1])
    with pytest.raises(ValueError, match=r"row 1 \(of 2\) is \('Bo', 7\): there is no field 'age'"):
        records_of([DICTS[0], TUPLES[1]], ["age"])
    with pytest.raises(ValueError, match="there is no field True"):
        records_of(TUPLES, [True])


def test_no_rows() -> None:
    for X in ([], FORMS["pandas"][:0], FORMS["polars"][:0]):
        with pytest.raises(ValueError, match="0 sample"):
            records_of(X, ["age"])
    with pytest.raises(TypeError, match="X must be a sequence of objects, got dict"):
        records_of({"age": [1, 2]}, ["age"])
