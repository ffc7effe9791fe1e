"""Kernel values on workers: evaluated once where they are kept, and again where they are not."""

from __future__ import annotations

import numpy as np

import kreinlearn as kl
from kreinlearn import Landmarks
from kreinlearn.distributed.hinge import room
from tests.unit.distributed.test_hinge import FIXED, TWO, M, N, X, array, keeping


def test_kernel_values_are_evaluated_once_where_they_are_kept(monkeypatch):
    rows = []

    def kernel(A, B):
        rows.append(len(A))
        return np.tanh(np.asarray(A) @ np.asarray(B).T - 1.0)

    model = kl.KreinSVC(kernel, landmarks=Landmarks(M, "uniform"), random_state=0, **FIXED)
    counts = []
    for keep in (True, False):
        keeping(monkeypatch, keep)
        rows.clear()
        model.fit(array(X), array(TWO))
        counts.append(sum(rows))
    assert counts[0] <= N + 10 * M
    assert counts[1] > 3 * N


def test_room_is_that_of_this_process_without_a_cluster():
    assert room(1000, given=True) == room(1000, given=False) == 1000
