"""Sums on workers: what comes to the client does not grow with the rows."""

from __future__ import annotations

import numpy as np
import pytest

import kreinlearn as kl
from kreinlearn.data.tiles import TILE
from kreinlearn.distributed.sums import Span
from kreinlearn.nystrom.core import RowWork
from kreinlearn.pairs.evaluate import LandmarkColumns
from tests.unit.distributed.lazy import (
    GIVEN,
    LABELS,
    X,
    array,
)
from tests.unit.receiving import received


def received_by_a_fit(n, monkeypatch):
    """Bytes that come to the client in a fit of n rows."""
    with received(monkeypatch) as sizes:
        A, y = np.tile(X, (5, 1))[:n], np.tile(LABELS, 5)[:n]
        chunks = (2500,) * (n // 2500) + (n % 2500,)
        model = kl.KreinRidgeClassifier(
            **GIVEN, kernel_params={"width": 2.0}, class_weight="balanced"
        )  # a median would be that of further rows
        lazy = array(A, chunks)
        model.fit(lazy, array(y, chunks), array(np.ones(n), chunks))
        model.predict(lazy)
        model.score(lazy, array(y, chunks))
    return sum(sizes)


def test_what_comes_here_does_not_grow(monkeypatch):
    first, second = received_by_a_fit(12_000, monkeypatch), received_by_a_fit(48_000, monkeypatch)
    assert second <= 1.01 * first
    assert first < 12_000 * 3 * 8 * 2  # a sample and sums


@pytest.mark.parametrize("buffered", [True, False])
def test_kernel_values_of_a_span_are_kept_and_summed_in_one_task(buffered):
    rng = np.random.default_rng(0)
    n, left_out = 2 * TILE + 5, np.array([3, TILE + 1])
    A, Y, Z = rng.normal(size=(n, 3)), rng.normal(size=(n, 1)), rng.normal(size=(4, 3))

    def columns(A, out=None):
        return np.matmul(A, Z.T, out=None if out is None else out[: len(A)])

    work = RowWork(LandmarkColumns(columns), np.arange(4), 1.0, 1, 1, 4, buffered=buffered)
    span = Span(work, 0, n, left_out, None, [A[:1000], A[1000:]], [Y])
    tiles, total = span.evaluated_and_summed()
    K = np.delete(A @ Z.T, left_out, axis=0)
    np.testing.assert_allclose(np.concatenate(tiles), K)
    np.testing.assert_allclose(np.concatenate([tile.copy() for tile in span]), K)
    assert [len(tile) for tile in tiles] == [TILE - 1, TILE - 1, 5]
    one_piece = tiles[0].base is not None and tiles[0].base is tiles[2].base
    assert one_piece == buffered
    np.testing.assert_allclose(total.groups[0].gram.matrix, K.T @ K)
    np.testing.assert_allclose(total.groups[0].cross, K.T @ np.delete(Y, left_out, axis=0))
