"""Whether float32 is enough: the rows of the sample, evaluated and used in both precisions."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from sklearn.utils import gen_batches

from kreinlearn._warnings import warn
from kreinlearn.data.tiles import TILE
from kreinlearn.kernels.base import Array
from kreinlearn.nystrom.core import fit_core, rows_of_core
from kreinlearn.nystrom.error import ERROR_ROWS
from kreinlearn.nystrom.landmarks import MapSpec
from kreinlearn.pairs.evaluate import scaled
from kreinlearn.pairs.pairs import Pairs, Sample
from kreinlearn.pairs.rows import Rows
from kreinlearn.solvers.least_squares import ridge, signed_penalty
from kreinlearn.sums.moments import Gram, Moments, Targets

if TYPE_CHECKING:
    from kreinlearn.learn.task import Task

TOLERANCE = 1e-3  # of the spread of predictions, or of the size of the approximate kernel
T = TypeVar("T")


class TooCoarse(Exception):
    """float32 would change what is learned by more than the tolerance."""

    def __init__(self, error: float) -> None:
        super().__init__(f"float32 changes results by {error:.2g}")
        self.error = error


def in_enough_precision(fit: Callable[[str], T], *, stored: bool) -> T:
    """``fit("float32")``, or ``fit("float64")`` if that finds that float32 is not enough."""
    try:
        with _warnings_at_the_end():
            return fit("float32")
    except TooCoarse as refused:
        what = (
            f'dtype="float32" changes results by {refused.error:.2g} of their spread on a '
            f"sample, more than {TOLERANCE:g}"
        )
        if stored:
            raise ValueError(
                f"{what}, and the store holds its values; pass Resources with "
                'dtype="float64" and another store'
            ) from None
    warn(f'{what}: float64 is used; pass Resources(dtype="float64"), or raise the penalties')
    return fit("float64")


@contextmanager
def _warnings_at_the_end() -> Iterator[None]:
    """Warnings of a fit in float32 come at its end, and not at all if float64 takes its place."""
    with warnings.catch_warnings(record=True) as recorded:
        warnings.simplefilter("always")
        try:
            yield
        except TooCoarse:
            recorded.clear()
            raise
        finally:
            shown = list(recorded)
    for one in shown:
        warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)


def require_learned(task: Task, penalties: Array) -> None:
    """Raise TooCoarse if least squares with these penalties predict otherwise in float64."""
    _require(learning_error(task, penalties))


def require_approximated(pairs: Pairs, sample: Sample, spec: MapSpec) -> None:
    """Raise TooCoarse if the approximate kernel is another one in float64."""
    if pairs.session.single:
        _require(approximation_error(pairs, sample, spec))


def _require(error: float) -> None:
    if not error <= TOLERANCE:
        raise TooCoarse(error)


def learning_error(task: Task, penalties: Array) -> float:
    """How far predictions of the sampled rows differ, as a share of their spread in float64."""
    unit, inside = task.sample.unit, task.sample.inside
    Y, w = Targets(task.Y, task.weights).of(task.numbers)
    sums_too = len(inside) < task.n  # rows that are streamed are summed in float32

    def predicted(sample: Sample, *, single: bool) -> Array:
        C = scaled(sample.C[inside], unit)
        W, S = task.cut(C, *task.kind.map_of(sample.K_ZZ / unit, sample.eps, task.spec))
        C = C.astype(np.float32) if single else C
        total = Moments.zeros(C.shape[1], Y.shape[1], single=single and sums_too)
        for here in gen_batches(len(C), TILE):
            total.add(C[here], Y[here], None if w is None else w[here])
        terms = total.terms(W).centred(intercept=task.intercept)
        coef = ridge(terms.G, terms.B, terms.n * signed_penalty(S, *penalties[:2])).coef
        return np.asarray(C @ (W @ coef).astype(C.dtype) + terms.intercept(coef))

    _, double = doubled(task.pairs, task.sample, task.similarity)
    exact = predicted(double, single=False)
    return _relative(predicted(task.sample, single=True) - exact, exact - exact.mean(axis=0))


def approximation_error(pairs: Pairs, sample: Sample, spec: MapSpec) -> float:
    """||K~ - K~'|| / ||K~|| between both precisions, on some of the rows of the sample."""
    double_pairs, double = doubled(pairs, sample)
    n = len(sample.rows)
    streamed = len(sample.inside) < pairs.n
    some = np.unique(np.linspace(0, n - 1, min(n, ERROR_ROWS)).astype(np.intp))
    unit = sample.unit

    def gram(one: Sample, *, single: bool) -> Gram:
        C = scaled(one.C, unit)
        total = Gram.zeros(C.shape[1], single=single)
        for here in gen_batches(n, TILE):
            total.add(C[here].astype(np.float32 if single else np.float64))
        return total

    def approximate(of: Pairs, one: Sample, total: Gram, R: Array) -> Array:
        rng = np.random.default_rng(0)
        feature_map = fit_core(of, one, total, n, spec, rng, R=R).cut(spec.rank)
        Phi = scaled(one.C[some], unit) @ feature_map.W
        return np.asarray((Phi * feature_map.S) @ Phi.T)

    G, R = gram(double, single=False), np.empty(0, dtype=np.intp)
    if spec.core == "ls" and len(sample.landmarks) < n:
        R = rows_of_core(double, G.matrix, n, np.random.default_rng(0))
    exact = approximate(double_pairs, double, G, R)
    coarse = approximate(pairs, sample, gram(sample, single=streamed), sample.rows[R])
    return _relative(coarse - exact, exact)


def _relative(difference: Array, whole: Array) -> float:
    size, gap = float(np.linalg.norm(whole)), float(np.linalg.norm(difference))
    return gap / size if size else gap


def doubled(pairs: Pairs, sample: Sample, similarity: str = "squared") -> tuple[Pairs, Sample]:
    """The rows of a sample, under new numbers, with the same columns evaluated in float64."""
    X = pairs.rows.take(sample.rows).astype(np.float64)
    double_pairs = Pairs(pairs.kernel, Rows(X), replace(pairs.session, store=None))
    columns = sample.positions(sample.columns[sample.used])
    n_reference = len(columns)
    if sample.transform is not None:
        n_reference = sample.transform.n_reference
    double = double_pairs.sample(np.arange(len(sample.rows)), sample.positions(sample.pool))
    double = double_pairs.with_reference(double_pairs.grown(double, columns[:n_reference]))
    double = double_pairs.grown(double, columns[n_reference:])
    if double.transform is not None:
        double = double.using(similarity)
    return double_pairs, double.with_landmarks(sample.positions(sample.landmarks))
