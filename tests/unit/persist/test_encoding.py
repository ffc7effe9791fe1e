"""Objects of every kind as arrays, and back: the same types and the same content."""

from __future__ import annotations

import datetime
import io
import json
from decimal import Decimal
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from kreinlearn.data.frames import Category
from kreinlearn.datasets import Graph
from kreinlearn.persist.errors import NotDataError
from kreinlearn.persist.files import TEXT
from kreinlearn.persist.values import Reader, Writer

DTYPES = [f"<{letter}{size}" for letter in "iu" for size in (1, 2, 4, 8)]
DTYPES += ["|b1", "<f2", "<f4", "<f8"]


def round_trip(xs: list[Any]) -> list[Any]:
    writer = Writer(None)
    text = json.dumps(writer.value(xs), allow_nan=False, ensure_ascii=False)
    text = text.encode(*TEXT).decode(*TEXT)
    data = b"".join(writer.arrays)
    reader = Reader(io.BufferedReader(io.BytesIO(data)), len(data))  # type: ignore[type-var]
    found: list[Any] = reader.value(json.loads(text))
    assert reader.left == 0
    return found


def alike(a: Any, b: Any) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        if a.dtype == object:
            return a.shape == b.shape and alike(a.ravel().tolist(), b.ravel().tolist())
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(alike, a, b))
    if isinstance(a, dict):
        return alike(list(a), list(b)) and all(alike(a[key], b[key]) for key in a)
    if isinstance(a, float | np.floating):
        return np.array(a).tobytes() == np.array(b).tobytes()
    return bool(a == b)


TEXTS = st.text(st.characters(exclude_categories=()), max_size=5)  # halves of characters too
NUMBERS = arrays.arrays(
    st.sampled_from(DTYPES).map(np.dtype), arrays.array_shapes(min_dims=0, min_side=0)
)
LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), TEXTS, st.binary(max_size=4),
    st.dates(), st.datetimes(), st.times(), st.timedeltas(), st.decimals(allow_nan=False),
    NUMBERS, st.builds(np.float32, st.floats(width=32)), st.builds(np.int16, st.integers(-9, 9)),
    arrays.arrays(np.dtype("<U3"), 2, elements=st.text("ab€", max_size=3)),
    arrays.arrays(np.dtype("<M8[us]"), 2),
)  # fmt: skip
HASHABLE = st.one_of(st.none(), st.booleans(), st.integers(), TEXTS, st.binary(max_size=4))
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=3).map(tuple),
        st.sets(HASHABLE, max_size=4),
        st.frozensets(HASHABLE, max_size=4),
        st.dictionaries(HASHABLE, inner, max_size=3),
    ),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.lists(VALUES, max_size=5))
def test_any_values(xs: list[Any]) -> None:
    assert alike(round_trip(xs), xs)


def test_two_halves_of_a_character_stay_two() -> None:
    assert round_trip(["\ud83d\ude00", "\ud83d" + "\ude00", "😀"]) == ["\ud83d\ude00"] * 2 + ["😀"]
    assert len(round_trip(["\ud83d" + "\ude00"])[0]) == 2


def test_orders_and_byte_orders_of_arrays() -> None:
    big = np.arange(6, dtype=">f8").reshape(2, 3)
    strided = np.arange(12.0).reshape(3, 4)[:, ::2]
    found = round_trip([big, strided, np.asfortranarray(strided)])
    assert [x.tolist() for x in found] == [x.tolist() for x in (big, strided, strided)]
    assert all(x.dtype == np.float64 for x in found)
    assert all(x.flags.writeable for x in found)


def test_an_array_of_fortran_order_stays_one() -> None:
    for order in ("C", "F"):
        x = np.arange(12.0).reshape((3, 4), order=order)  # type: ignore[call-overload]
        (found,) = round_trip([x])
        assert found.tolist() == x.tolist()
        assert found.flags.f_contiguous == x.flags.f_contiguous
        assert found.flags.c_contiguous == x.flags.c_contiguous


def test_an_array_of_objects() -> None:
    x = np.empty((2, 2), object)
    x[0, 0], x[1, 1] = [1, "a"], {2}
    assert alike(round_trip([x, "b"]), [x, "b"])


def test_texts_of_one_width() -> None:
    """They are stored as wide as they are in memory: no file can say more."""
    wide = np.array([["a" * 3000, "é"], *[["", "\U0001f600"]] * 40])
    narrow = np.array(["abc", "de"])
    empty = np.empty((3, 0), "<U9000")
    xs = [wide, narrow, wide[:4], wide.T, wide.astype(">U3000"), empty, narrow.astype("<U900")]
    found = round_trip(xs)
    assert all(alike(a, b.astype(a.dtype)) for a, b in zip(found, xs, strict=True))
    assert [x.dtype.itemsize for x in found] == [x.dtype.itemsize for x in xs]


def test_dicts_of_any_keys() -> None:
    xs = [{"type": 1, "of": 2}, {3: "a", (1, "b"): None}, {"\ud800": {}}, {"a": {"type": "array"}}]
    assert alike(round_trip(xs), xs)


def test_categories_and_missing_values() -> None:
    import pandas as pd

    found = round_trip([Category(3), Category("a"), None, pd.NA, pd.NaT, Decimal("1.10")])
    assert [type(x) for x in found[:2]] == [Category, Category]
    assert [x.value for x in found[:2]] == [3, "a"]
    assert found[2:5] == [None] * 3
    assert str(found[5]) == "1.10"


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csr_matrix])
def test_sparse_rows(kind: Any) -> None:
    x = kind(np.array([[0.0, 2.0, 0.0], [1.0, 0.0, 0.0]]))
    (found, *others) = round_trip([x, x[:1], x[:0]])
    assert type(found) is kind
    assert found.toarray().tolist() == x.toarray().tolist()
    assert [one.shape for one in others] == [(1, 3), (0, 3)]


def test_sparse_rows_of_too_many_columns() -> None:
    rows = sp.csr_array((1, 2**24 + 1))
    with pytest.raises(NotDataError, match="sparse rows of 16777217 columns"):
        Writer(None).value(rows)


def test_graphs() -> None:
    own = Graph(np.array([1, 2]), np.array([[0, 1]]))
    (found,) = round_trip([own])
    assert type(found) is Graph
    assert alike(tuple(found), tuple(own))
    for kind in (nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph):
        graph = kind(about={"a": [1]})
        graph.add_node(3, label="x")
        graph.add_edges_from([("b", 3, {"weight": 0.5}), (3, ("t", 1), {})])
        if graph.is_multigraph():
            graph.add_edge("b", 3, key="again")
        (back,) = round_trip([graph])
        assert type(back) is kind
        assert nx.utils.graphs_equal(back, graph)
        assert list(back) == list(graph)


class Odd:
    pass


RECORD = np.array([(1, 2)], "i4,i4")


@pytest.mark.parametrize(
    "x", [Odd(), lambda: 0, 1j, np.array([1j]), RECORD, [1, [Odd()]], {1: Odd()}]
)
def test_what_is_no_data_is_refused(x: Any) -> None:
    with pytest.raises(NotDataError):
        Writer(None).value(x)


def test_ranges() -> None:
    assert round_trip([range(3), range(9, -1, -2)]) == [range(3), range(9, -1, -2)]


def test_time_zones() -> None:
    zone = datetime.timezone(datetime.timedelta(hours=2))
    x = datetime.datetime(2020, 1, 1, tzinfo=zone)
    assert round_trip([x]) == [x]


def test_a_time_of_pandas_is_one_of_python() -> None:
    (x,) = round_trip([pd.Timestamp("2020-01-01 12:30")])
    assert x == datetime.datetime(2020, 1, 1, 12, 30)
    assert type(x) is datetime.datetime
