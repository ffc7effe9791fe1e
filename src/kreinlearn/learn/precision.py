"""Whether float32 is enough: the rows that are held, evaluated and used in both precisions."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from kreinlearn._warnings import warn
from kreinlearn.data.tiles import length, tiles
from kreinlearn.kernels.base import Array
from kreinlearn.learn.learning import Problem
from kreinlearn.nystrom.approximation import ERROR_ROWS, fit_core, rows_of_core
from kreinlearn.nystrom.sweep import Plan
from kreinlearn.pairs.evaluate import Rows, over
from kreinlearn.pairs.panel import Panel
from kreinlearn.solvers.least_squares import ridge
from kreinlearn.solvers.result import signed_penalty
from kreinlearn.sums.gram import Gram
from kreinlearn.sums.moments import Moments

TOLERANCE = 1e-3  # of the spread of predictions, or of the size of the approximate kernel

Fit = TypeVar("Fit", bound=Callable[..., Any])


class TooCoarse(Exception):
    """float32 would change what is learned by more than the tolerance."""

    def __init__(self, error: float) -> None:
        super().__init__(f"float32 changes results by {error:.2g}")
        self.error = error


def guarded(fit: Fit) -> Fit:
    """A fit that is done again in float64 if it finds that float32 is not enough."""

    @wraps(fit)
    def once_or_twice(self: Any, *args: Any) -> Any:
        vars(self).pop("_double", None)  # of an earlier fit
        try:
            with _unless_given_up(self.dtype == "float32"):
                return fit(self, *args)
        except TooCoarse as found:
            what = (
                f'dtype="float32" changes results by {found.error:.2g} of their spread on a '
                f"sample, more than {TOLERANCE:g}"
            )
            if self.store is not None:
                raise ValueError(
                    f'{what}, and the store holds its values; pass dtype="float64" and another '
                    "store"
                ) from None
        warn(f'{what}: float64 is used; pass dtype="float64", or raise the penalties')
        self._double = True
        try:
            return fit(self, *args)
        except BaseException:
            del self._double
            raise

    return once_or_twice  # type: ignore[return-value]


@contextmanager
def _unless_given_up(single: bool) -> Iterator[None]:
    """Warnings of a fit in float32 are held back, and not heard if float64 takes its place."""
    if not single:
        yield
        return
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            yield
        except TooCoarse:
            said.clear()
            raise
        finally:
            heard = list(said)
    for one in heard:
        warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)


def require_learned(problem: Problem, penalties: Array) -> None:
    """TooCoarse if least squares with these penalties predict otherwise in float64."""
    if problem.plan.single:
        _require(learning_error(problem, penalties))


def require_approximated(panel: Panel, plan: Plan) -> None:
    """TooCoarse if the approximate kernel is another one in float64."""
    if plan.single:
        _require(approximation_error(panel, plan))


def _require(error: float) -> None:
    if not error <= TOLERANCE:
        raise TooCoarse(error)


def learning_error(problem: Problem, penalties: Array) -> float:
    """How far predictions of the rows held differ, of their spread in float64."""
    panel, unit = problem.panel, problem.panel.unit
    Y, w = problem.held()
    sums_too = len(problem.inside) < length(panel.X.X)  # of rows that are streamed

    def predicted(one: Panel, *, single: bool) -> Array:
        C = over(one.C[problem.inside], unit)
        W, S = problem.cut(C, *problem.map_of(one.K_ZZ / unit, one.eps))
        C = C.astype(np.float32) if single else C
        total = Moments.zeros(C.shape[1], Y.shape[1], single=single and sums_too)
        for span in tiles(len(C)):
            here = slice(*span)
            total.add(C[here], Y[here], None if w is None else w[here])
        terms = total.terms(W).centred(intercept=problem.intercept)
        coef = ridge(terms.G, terms.B, terms.n * signed_penalty(S, *penalties[:2])).coef
        return np.asarray(C @ (W @ coef).astype(C.dtype) + terms.intercept(coef))

    exact = predicted(doubled(panel, problem.transform), single=False)
    return _relative(predicted(panel, single=True) - exact, exact - exact.mean(axis=0))


def approximation_error(panel: Panel, plan: Plan) -> float:
    """||K~ - K~'|| / ||K~|| between both precisions, on a sample of the rows held."""
    double, unit, n = doubled(panel), panel.unit, len(panel.rows)
    streamed = bool(np.count_nonzero(panel.rows >= 0) < length(panel.X.X))
    some = np.unique(np.linspace(0, n - 1, min(n, ERROR_ROWS)).astype(np.intp))

    def gram(one: Panel, *, single: bool) -> Gram:
        C = over(one.C, unit)
        total = Gram.zeros(C.shape[1], single=single)
        for span in tiles(n):
            total.add(C[slice(*span)].astype(np.float32 if single else np.float64))
        return total

    def approximate(one: Panel, total: Gram, R: Array) -> Array:
        found = fit_core(one, total, unit, n, plan, np.random.default_rng(0), R=R).cut(plan.rank)
        Phi = over(one.C[some], unit) @ found.W
        return np.asarray((Phi * found.S) @ Phi.T)

    G, R = gram(double, single=False), np.empty(0, dtype=np.intp)
    if plan.core == "ls" and len(panel.landmarks) < n:
        R = rows_of_core(double, G.matrix, unit, n, np.random.default_rng(0))
    exact = approximate(double, G, R)
    coarse = approximate(panel, gram(panel, single=streamed), panel.rows[R])
    return _relative(coarse - exact, exact)


def _relative(difference: Array, whole: Array) -> float:
    size, gap = float(np.linalg.norm(whole)), float(np.linalg.norm(difference))
    return gap / size if size else gap


def doubled(panel: Panel, transform: str = "squared") -> Panel:
    """The rows held, under new numbers, with the same columns evaluated in float64."""
    X = panel.X.take(panel.rows).astype(np.float64)
    pool = panel.positions(panel.pool)
    double = Panel(panel.kernel, Rows(X), np.arange(len(panel.rows)), pool=pool,
                   workers=panel.workers)  # fmt: skip
    columns = panel.positions(panel.columns)
    reference = len(columns) if panel.transform is None else panel.transform.n_reference
    double.grow(columns[:reference])
    double.freeze()
    double.grow(columns[reference:])
    if double.transform is not None:
        double.use(transform)
    double.keep(panel.positions(panel.landmarks))
    return double
