"""Rows of a dask collection by number: each block is read once, and never all rows."""

from __future__ import annotations

import pickle
from collections import Counter

import numpy as np
import pytest
from distributed.utils import key_split
from sklearn.base import clone

import kreinlearn as kl
from kreinlearn import Resources
from kreinlearn.data.tiles import TILE
from kreinlearn.distributed import delayed, hinge, selecting, worker_rows
from kreinlearn.distributed.rows import DaskRows, rows_of
from kreinlearn.distributed.worker_rows import column_on_workers
from tests.unit.distributed.lazy import (
    GIVEN,
    LABELS,
    N,
    W,
    X,
    Y,
    array,
    close,
    da,
    dask,
    with_landmarks,
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


class Reads:
    """Rows in blocks that are read anew whenever they are asked for, and how often that was."""

    def __init__(self, values, size=3000):
        self.blocks = [values[start : start + size] for start in range(0, len(values), size)]
        self.count = Counter()

    def read(self, i):
        self.count[i] += 1
        return self.blocks[i]

    @property
    def delayed(self):
        return [dask.delayed(self.read, pure=False)(i) for i in range(len(self.blocks))]

    @property
    def array(self):
        each = zip(self.delayed, self.blocks, strict=True)
        return da.concatenate([da.from_delayed(one, b.shape, b.dtype) for one, b in each])


TWO = np.where(Y > 100.5, "up", "down")
READERS = {
    "ridge": (kl.KreinRidge(**GIVEN), Y),
    "leverage": (kl.KreinRidge(**with_landmarks(15, "leverage")), Y),
    "classifier": (kl.KreinRidgeClassifier(**GIVEN), LABELS),
    "machine": (kl.KreinSVC(**GIVEN, lambda_plus=1e-3, lambda_minus=1e-3), TWO),
}


@pytest.mark.parametrize("name", READERS)
def test_rows_are_read_once_and_those_of_unknown_number_twice(name):
    model, targets = READERS[name]
    for kind, most in (("array", 1), ("delayed", 2)):
        rows, y = Reads(X), Reads(targets)
        model.fit(getattr(rows, kind), y.array)
        assert set(rows.count.values()) == {most}
        assert set(y.count.values()) == {1}


def test_a_fit_waits_for_the_workers_a_few_times(monkeypatch):
    """Targets and weights of the sample come at once, and not one fold after the other."""
    counts, compute = Counter(), delayed.compute

    def counted(result):
        counts[key_split(result.key)] += 1
        return compute(result)

    monkeypatch.setattr(delayed, "compute", counted)
    data = (array(X), array(TWO), array(W))
    kl.KreinRidgeClassifier("delta_gauss", landmarks=15, random_state=3, cv=7).fit(*data)
    assert counts["joined"] == 4  # rows for the width, the sample, its targets and its weights
    assert counts["added"] == 3  # the classes, their weights, and the sums
    assert counts.total() == 8  # and which rows have a weight of zero


@pytest.mark.parametrize("method", ["split", "cv+"])
def test_intervals_read_rows_no_more_often_than_a_fit(method):
    for kind, most in (("array", 1), ("delayed", 2)):
        rows, y, w = Reads(X), Reads(Y), Reads(W)
        kl.KreinRidge(**GIVEN, lambda_plus=1e-3, lambda_minus=1e-3).fit(
            *(getattr(each, kind) for each in (rows, y, w)), conformal=method
        )
        assert set(rows.count.values()) == {most}
        assert set(y.count.values()) == set(w.count.values()) == {1}


@pytest.mark.parametrize("name", ["y", "sample_weight"])
def test_targets_and_weights_that_intervals_collect_are_within_the_budget(name):
    given = {"y": Reads(Y), "sample_weight": Reads(W)}
    data = {"y": Y, "sample_weight": W, name: given[name].array}
    model = kl.KreinRidge(**GIVEN, resources=Resources(memory_budget=8 * N - 1))
    with pytest.raises(MemoryError, match=rf"{name} of {N} rows.* or pass conformal=None"):
        model.fit(array(X), **data, conformal="split")
    assert not given[name].count


def test_targets_and_weights_of_unknown_number_are_read_once():
    rows, y, w = Reads(X), Reads(Y), Reads(W)
    kl.KreinRidge(**GIVEN).fit(rows.delayed, y.delayed, w.delayed)
    assert set(y.count.values()) == set(w.count.values()) == {1}


def test_rows_targets_and_weights_of_one_file_are_counted_in_one_pass():
    """A file that has all of them is read once to count them, and once for the rows."""
    file = Reads(np.column_stack([X, Y, W]))
    blocks = file.delayed
    parts = (slice(3), 3, 4)
    data = [[dask.delayed(block)[:, part] for block in blocks] for part in parts]
    model = kl.KreinRidge(**GIVEN).fit(*data)
    assert set(file.count.values()) == {2}
    close(model.dual_coef_, kl.KreinRidge(**GIVEN).fit(X, Y, W).dual_coef_)


def test_targets_in_memory_are_sent_to_the_workers_once():
    """Later graphs name them, and do not have them."""
    distributed = pytest.importorskip("distributed")
    one = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": ":0"}
    with distributed.Client(**one), dask.config.set(scheduler=None):
        rows = rows_of(array(X), np.asarray)
        column = column_on_workers(Y, rows, np.asarray, "y")
        for block in column.blocks:
            assert len(pickle.dumps(dict(block.dask))) < 1000  # bytes, and a block has 8000
        np.testing.assert_array_equal(column.take(np.arange(len(Y))), Y)


@pytest.mark.parametrize("name", ["ridge", "classifier"])
def test_rows_that_do_not_fit_the_workers_are_read_twice(name, monkeypatch):
    """Once for the sample in which landmarks are chosen, once for the sums; a width is given."""
    monkeypatch.setattr(hinge, "room", lambda *args, **kwargs: 0)
    model, targets = READERS[name]
    rows, y = Reads(X), Reads(targets)
    clone(model).set_params(kernel_params={"width": 1.0}).fit(rows.array, y.array)
    assert set(rows.count.values()) == {2}
    assert set(y.count.values()) == {1}


TWO_KERNELS = [kl.kernels.DeltaGauss(), kl.kernels.Gaussian()]
DOCUMENTED = {  # in docs/scale.rst
    "a width is found": (READERS["ridge"][0], {}, 3),
    "leverage": (clone(READERS["leverage"][0]).set_params(kernel_params={"width": 1.0}), {}, 4),
    "cv+": (kl.KreinRidge(**GIVEN, kernel_params={"width": 1.0}), {"conformal": "cv+"}, 6 * 2 + 5),
    "kernels": (kl.KreinRegressor(TWO_KERNELS, landmarks=15, random_state=3), {}, 2 + 1 + 2),
}


@pytest.mark.parametrize("name", DOCUMENTED)
def test_rows_that_do_not_fit_the_workers_are_read_as_often_as_is_said(name, monkeypatch):
    for module in (hinge, selecting):
        monkeypatch.setattr(module, "room", lambda *args, **kwargs: 0)
    model, more, times = DOCUMENTED[name]
    rows = Reads(X)
    clone(model).fit(rows.array, Y, **more)
    assert set(rows.count.values()) == {times}


def test_a_machine_without_room_reads_rows_as_often_as_is_said(monkeypatch):
    """Every step reads the rows once, to decide them and to sum those that change sides."""
    for module in (hinge, worker_rows):
        monkeypatch.setattr(module, "room", lambda *args, **kwargs: 0)
    rows, model = Reads(X), clone(READERS["machine"][0]).set_params(kernel_params={"width": 1.0})
    model.fit(rows.array, TWO)
    assert set(rows.count.values()) == {2 + model.n_iter_}


def test_blocks_must_be_alike():
    parts = [dask.delayed(X[:6000]), dask.delayed(X[6000:, :2])]
    with pytest.raises(ValueError, match=r"number of columns, \[2, 3\]"):
        kl.KreinNystroem(**GIVEN).fit(parts)
