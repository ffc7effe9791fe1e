"""Sums on workers: what comes to the client does not grow with the rows."""

from __future__ import annotations

import numpy as np

import kreinlearn as kl
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
