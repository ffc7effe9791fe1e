"""Rows of a fit in memory: objects by number, sums over all of them, targets and weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from kreinlearn.data.memory import Resources
from kreinlearn.data.tiles import TILE, Scratch
from kreinlearn.kernels import Gaussian, pairwise
from kreinlearn.pairs.rows import Rows, Session, joined, open_session
from kreinlearn.progress import Progress
from kreinlearn.sums.moments import Targets
from kreinlearn.sums.parallel import ColumnSums, Tally, spans_of, worker_count
from tests.unit.pairs.numbered import POINTS

RNG = np.random.default_rng(2)
N = 2 * TILE + 300
X = RNG.normal(size=(N, 3))
FORMS = {"list": list, "array": np.asarray, "csr": sp.csr_array}
LABELS = RNG.choice(["b", "a", "c"], N, p=[0.2, 0.5, 0.3])
W = RNG.uniform(0, 2, N) * (RNG.random(N) < 0.9)


def dense(part):
    return part.toarray() if sp.issparse(part) else np.asarray(part)


@pytest.mark.parametrize("form", FORMS)
def test_numbers_below_zero_are_objects_from_outside(form):
    make = FORMS[form]
    rows = Rows(make(POINTS[:50])).with_outside(make(POINTS[50:53]))
    assert len(rows) == 50
    got = dense(rows.take(np.array([-3, -1, 0, 4, 49])))
    np.testing.assert_array_equal(got, POINTS[[50, 52, 0, 4, 49]])
    np.testing.assert_array_equal(dense(rows.take(np.array([7, 3]))), POINTS[[7, 3]])


@pytest.mark.parametrize("form", FORMS)
def test_parts_are_joined_in_their_form(form):
    make = FORMS[form]
    parts = [make(POINTS[:4]), make(POINTS[4:9])]
    whole = joined(parts)
    assert type(whole) is type(parts[0])
    np.testing.assert_array_equal(dense(whole), POINTS[:9])
    assert joined(parts[:1]) is parts[0]


def test_only_dense_arrays_of_two_dimensions_are_vectors():
    assert Rows(POINTS).are_dense_vectors
    for other in (list(POINTS), sp.csr_array(POINTS), POINTS[:, 0]):
        assert not Rows(other).are_dense_vectors


def test_a_kernel_is_fitted_to_all_rows():
    kernel = Rows(POINTS).fit_kernel(Gaussian("median"), 1, np.random.default_rng(0))
    gaps = ((POINTS[:, None] - POINTS[None]) ** 2).sum(2)
    values = kernel.columns(POINTS[:2])(POINTS[:5])
    width = -gaps[3, 1] / np.log(values[3, 1])
    np.testing.assert_allclose(values, np.exp(-gaps[:5, :2] / width), rtol=1e-10)
    assert Rows(list(range(5))).fit_kernel(pairwise(max), 2, RNG).jobs == 2


# Sums


@dataclass
class Total:
    """Row numbers that were seen, and the sum of the rows."""

    seen: list[int]
    rows: np.ndarray

    def __iadd__(self, other):
        self.seen += other.seen
        self.rows = self.rows + other.rows
        return self

    def clear(self):
        self.seen, self.rows = [], np.zeros(3)


class Adding:
    """Work that adds up rows and returns twice their first column."""

    spare, block_rows = 0, TILE

    def zero(self):
        return Total([], np.zeros(3))

    def scratch(self):
        return Scratch(useful=False)

    def add(self, total, numbers, objects, targets, scratch):
        total.seen += numbers.tolist()
        total.rows = total.rows + dense(objects).sum(axis=0)
        return 2 * dense(objects)[:, :1]


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("form", FORMS)
def test_a_sum_takes_every_row_once_but_those_left_out(form, workers):
    left_out = np.sort(RNG.choice(N, 200, replace=False))
    others = np.setdiff1d(np.arange(N), left_out)
    keep, seen = np.full((N, 1), np.nan), []
    total = Rows(FORMS[form](X)).sum(
        Adding(), Targets.none(N), left_out, workers=workers, keep=keep,
        seen=lambda numbers, values: seen.append((numbers, values)),
    )  # fmt: skip
    assert sorted(total.seen) == others.tolist()
    np.testing.assert_allclose(total.rows, X[others].sum(axis=0), rtol=1e-10)
    np.testing.assert_array_equal(keep[others], 2 * X[others, :1])
    assert np.isnan(keep[left_out]).all()
    assert sorted(np.concatenate([numbers for numbers, _ in seen])) == others.tolist()
    for numbers, values in seen:
        np.testing.assert_array_equal(values, 2 * X[numbers, :1])


class ByBlock(Adding):
    """Work on three tiles at once, that remembers the first and the last row of each block."""

    block_rows = 3 * TILE

    def add(self, total, numbers, objects, targets, scratch):
        total.seen.append((numbers.min(), numbers.max()))
        return objects


@pytest.mark.parametrize("workers", [1, 3])
def test_blocks_of_several_tiles_end_where_a_span_ends(workers):
    """As rows elsewhere are divided into spans, too, sums are of the same blocks."""
    n = 40 * TILE + 7
    spans = spans_of(n)
    assert {stop - start for start, stop in spans} == {5 * TILE, 2 * TILE, TILE, 7}
    cuts = [i for start, stop in spans for i in range(start, stop, 3 * TILE)]
    rows, nothing = Rows(np.zeros((n, 1))), np.empty(0, dtype=np.intp)
    total = rows.sum(ByBlock(), Targets.none(n), nothing, workers=workers)
    assert total.seen == list(zip(cuts, [i - 1 for i in [*cuts[1:], n]], strict=True))


# Targets and weights


@pytest.mark.parametrize("weights", [None, W], ids=["plain", "weighted"])
def test_a_tally_counts_labels_and_their_weight(weights):
    tally = Rows(X).tally(LABELS, weights)
    assert tally.labels.tolist() == ["a", "b", "c"]
    w = np.ones(N) if weights is None else weights
    for label, count, weight in zip(tally.labels, tally.counts, tally.weights, strict=True):
        assert count == np.sum(label == LABELS)
        assert weight == pytest.approx(w[label == LABELS].sum(), rel=1e-12)


@pytest.mark.parametrize(
    "labels",
    [
        np.array([3, -2, 3, 0], np.int64),
        np.array([127, -128, 5, 127], np.int8),  # their difference exceeds the type
        np.array([255, 0, 7], np.uint8),
        np.array([2**64 - 1, 2**64 - 3, 2**64 - 1], np.uint64),
        np.array([10**12, -(10**12), 4]),  # too far from one another to be counted
        np.array([True, False, True]),
        np.array([0.5, 2.0, 0.5]),
    ],
)
def test_a_tally_of_numbers_is_that_of_sorted_labels(labels):
    labels = np.tile(labels, 200)
    w = np.random.default_rng(0).random(len(labels))
    tally = Tally.of(labels, w)
    found = sorted(set(labels.tolist()))
    assert tally.labels.tolist() == found
    assert tally.labels.dtype == labels.dtype
    assert tally.counts.tolist() == [labels.tolist().count(label) for label in found]
    wanted = [sum(v for v, y in zip(w, labels.tolist(), strict=True) if y == x) for x in found]
    np.testing.assert_allclose(tally.weights, wanted, rtol=1e-12)
    assert Tally.of(labels).weights.tolist() == tally.counts.tolist()


def test_tallies_of_other_labels_add_up():
    total = Tally.of(np.array(["b", "a", "b"]), np.array([1.0, 2.0, 3.0]))
    total += Tally.of(np.array(["c", "a"]), np.array([5.0, 7.0]))
    assert total.labels.tolist() == ["a", "b", "c"]
    assert total.counts.tolist() == [2, 2, 1]
    assert total.weights.tolist() == [9.0, 4.0, 5.0]


@pytest.mark.parametrize("weights", [None, W], ids=["plain", "weighted"])
def test_sums_of_columns(weights):
    w = np.ones(N) if weights is None else weights
    sums = Rows(X).column_sums(X[:, :2], weights)
    assert isinstance(sums, ColumnSums)
    assert sums.weight == pytest.approx(w.sum(), rel=1e-12)
    np.testing.assert_allclose(sums.targets, w @ X[:, :2], rtol=1e-9, atol=1e-9)


def test_weights_of_classes_multiply_those_of_rows():
    of_classes = np.array([3.0, 0.5, 1.5])
    wanted = of_classes[np.searchsorted(["a", "b", "c"], LABELS)]
    classes = np.array(["a", "b", "c"])
    found = Rows(X).weights_by_class(LABELS, None, classes, of_classes)
    np.testing.assert_array_equal(found, wanted)
    found = Rows(X).weights_by_class(LABELS, W, classes, of_classes)
    np.testing.assert_array_equal(found, wanted * W)


def test_rows_of_positive_weight():
    rows = Rows(X)
    assert rows.weighted_rows(None) is None
    assert rows.weighted_rows(W + 1) is None
    np.testing.assert_array_equal(rows.weighted_rows(W), np.flatnonzero(W > 0))


def test_targets_are_arrays_here():
    doubled = Rows(X).mapped(X[:, 0], lambda y: 2 * y, np.float64, None)
    np.testing.assert_array_equal(doubled, 2 * X[:, 0])
    assert Rows(X).value_store(10**12, Session(budget=0)) is None


def test_a_session_has_a_share_of_the_free_memory():
    assert Session().budget > 10**6
    assert not Session().budget_given
    assert Session().workers == 1


def test_a_session_has_the_threads_that_blas_had_before_it() -> None:
    """Inside, BLAS has one thread; counted there, a fit would never use a second core."""
    with threadpool_limits(2, user_api="blas"):
        before = worker_count(None)
        opened = open_session(
            Gaussian(), Rows(POINTS), Resources(), None, Progress(), np.random.default_rng(0),
        )  # fmt: skip
        with opened as session:
            assert session.workers == before
            assert worker_count(None) == 1
