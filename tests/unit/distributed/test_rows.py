"""Rows of a dask collection by number: each block is read once, and never all rows."""

from __future__ import annotations

import numpy as np
import pytest

import kreinlearn as kl
from kreinlearn.data.tiles import TILE
from kreinlearn.distributed.rows import DaskRows, rows_of
from tests.unit.distributed.lazy import (
    GIVEN,
    N,
    X,
    array,
    dask,
)


def test_rows_by_number_are_fetched_once():
    reads = []

    def read(block):
        reads.append(len(block))
        return block

    rows = rows_of(array(X, "uneven"), read)
    numbers = np.array([N - 1, 5, 5, TILE])
    np.testing.assert_array_equal(rows.take(numbers), X[numbers])
    assert sorted(reads) == [TILE, N - TILE - 5001]
    np.testing.assert_array_equal(rows[numbers[::-1]], X[numbers[::-1]])
    np.testing.assert_array_equal(rows[3:6], X[3:6])
    np.testing.assert_array_equal(rows.piece(1, 6000).compute(), X[1:6000])
    assert isinstance(rows, DaskRows)
    for gathering in (lambda: rows[:], lambda: np.asarray(rows), lambda: list(rows)):
        with pytest.raises(TypeError, match="all rows of a dask collection"):
            gathering()


def test_blocks_must_be_alike():
    parts = [dask.delayed(X[:6000]), dask.delayed(X[6000:, :2])]
    with pytest.raises(ValueError, match=r"number of columns, \[2, 3\]"):
        kl.KreinNystroem(**GIVEN).fit(parts)
