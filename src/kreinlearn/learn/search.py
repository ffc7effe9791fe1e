"""The search for penalties: a few coarse trials, then gradients in their logarithms.

Values that are tuned are a vector: one penalty per group of features, then further values such as
the factor of a radius. Penalties with odd numbers belong to features of negative signature (see
``solvers.least_squares``). A search works on logarithms, and on those values only that are neither
given nor tied to another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

import numpy as np
from scipy.optimize import minimize

from kreinlearn.solvers import Array
from kreinlearn.solvers.least_squares import FoldLoss
from kreinlearn.sums.parallel import map_in_threads

Objective = Callable[[Array], tuple[float, Array]]  # values -> loss, gradient in their logarithms

LOWEST, HIGHEST = 1e-10, 1e6  # penalties, relative to the largest eigenvalue of the Gram matrix / n
COARSE = (1e-7, 1e-5, 1e-3, 1e-1)  # the first trials, in the same unit
FLAT = 1e-5  # decrease of log loss at which a descent ends
TIE_RTOL = 1e-4  # relative difference of losses that count as equal: the larger penalty is taken
ENOUGH_ROWS = 10_000  # of a single fold, which then leads a search
STRIDE = 5.0  # unit of logarithms, where descents begin near a minimum: nearly that of its width
STEPS = 12  # iterations of one descent
UNTRUSTED = 4.5  # decades above the smallest penalty, up to which a given start is not trusted
APART_ERRORS = 2.0  # standard errors by which several penalties must beat a single one
TIE_STEPS = 4  # larger penalties that are tried
WORSE = 10.0  # times the largest loss so far: the loss of a trial that is lost to rounding
HUGE = float(np.finfo(np.float64).max) / 1e10
TINY = float(np.finfo(np.float64).tiny)
RADIUS = (0.05, 5.0)  # bounds of values that are not penalties: factors of the targets' deviation


@dataclass(frozen=True)
class Tuned:
    """The best values, their cross-validated loss, and all trials with one row of values and loss.

    ``apart`` is False if several penalties were free and turned out to need no values of their own.
    """

    values: Array  # (p,)
    loss: float
    trials: Array  # (t, p + 1)
    apart: bool = True


class FoldLosses(Protocol):
    """An objective that also knows the loss of each fold."""

    def __call__(self, values: Array) -> tuple[float, Array]: ...

    def per_fold(self, values: Array) -> Array:
        """One loss per fold (k,), in a common unit."""


class HeldOutLoss(FoldLosses, Protocol):
    """A loss that also knows what models say of objects that they have not seen."""

    def scores(self, values: Array) -> Array:
        """Predictions (t, q) of the objects that are tested."""


class MeanLoss:
    """The loss of all folds per unit of validated weight, and its gradient.

    The folds are shared by so many threads. What has been found at some values is not found again.
    """

    def __init__(self, folds: Sequence[FoldLoss], workers: int = 1) -> None:
        self.folds, self.workers = folds, max(1, min(workers, len(folds)))
        self.weight = sum(fold.n_valid for fold in folds)
        self._found: dict[bytes, tuple[Array, Array]] = {}

    def __call__(self, values: Array) -> tuple[float, Array]:
        losses, gradient = self._at(values)
        return float(losses.sum() / self.weight), gradient / self.weight

    def per_fold(self, values: Array) -> Array:
        return self._at(values)[0] / [fold.n_valid for fold in self.folds]

    def of_one_fold(self, n: int) -> MeanLoss | None:
        """The loss of the largest fold, if so many of n rows are in it that it tells nearly all."""
        largest = max(self.folds, key=lambda fold: fold.n_valid)
        enough = largest.n_valid * n >= ENOUGH_ROWS * self.weight
        return MeanLoss([largest]) if enough and len(self.folds) > 1 else None

    def _at(self, values: Array) -> tuple[Array, Array]:
        """The loss of each fold, and the sum of their gradients."""
        key = values.tobytes()
        if key not in self._found:
            one = partial(_loss_and_gradient, values=values)
            losses, gradients = zip(*map_in_threads(one, self.folds, self.workers), strict=True)
            self._found[key] = np.array(losses), np.sum(gradients, axis=0)
        return self._found[key]


def _loss_and_gradient(fold: FoldLoss, values: Array) -> tuple[float, Array]:
    return fold.loss_and_gradient(values)


@dataclass(frozen=True)
class Unknowns:
    """Which values are given, and which are to be found.

    The first ``n_penalties`` values are penalties. With ``equal``, all penalties that are not given
    have one common value.
    """

    fixed: tuple[float | None, ...]  # None is to be found
    equal: bool = False
    n_penalties: int = 2

    @property
    def penalties(self) -> list[int]:
        """Numbers of the penalties that are not given."""
        return [j for j in range(self.n_penalties) if self.fixed[j] is None]

    @property
    def free(self) -> list[int]:
        """Numbers of the values that a search moves: of tied penalties, the first."""
        tied = self.penalties[1:] if self.equal else []
        return [j for j, value in enumerate(self.fixed) if value is None and j not in tied]

    @property
    def tied(self) -> Unknowns | None:
        """The same with equal penalties; None if they are equal already, or some are given."""
        if self.equal or len(self.penalties) < self.n_penalties:
            return None
        return replace(self, equal=True)

    def is_penalty(self, j: int) -> bool:
        return j < self.n_penalties

    def values(self, x: Array) -> Array:
        """All values, from the logarithms of those that are free."""
        values = np.array([np.nan if value is None else value for value in self.fixed])
        values[self.free] = np.exp(x)
        if self.equal:
            values[self.penalties] = values[self.penalties[:1]]
        return values

    def gradient(self, full: Array) -> Array:
        """The gradient in the logarithms of what is free, from that in all values."""
        if self.equal and self.penalties:
            full = full.copy()
            full[self.penalties[0]] = full[self.penalties].sum()
        return full[self.free]

    def bounds(self, scale: float) -> Array:  # (2, free)
        """Smallest and largest logarithm of each value that is free."""
        penalties, others = (LOWEST * scale, HIGHEST * scale), RADIUS
        pairs = [penalties if self.is_penalty(j) else others for j in self.free]
        return np.log(np.array(pairs).reshape(-1, 2).T)

    def without_negative(self, values: Array, scale: float) -> Array:
        """The same values, with all penalties of negative signature as large as they may be."""
        values = values.copy()
        values[1 : self.n_penalties : 2] = HIGHEST * scale
        return values


def given(unknowns: Unknowns) -> Tuned:
    """The values that are fixed, where nothing is left to be tried."""
    values = unknowns.values(np.zeros(len(unknowns.free)))
    return Tuned(values, np.nan, np.empty((0, len(values) + 1)))


def one_penalty(values: Array, n_penalties: int = 2) -> Unknowns:
    """What is left to find where penalties need no values of their own.

    Either all penalties are equal; or those of negative signature stay as they are, and the others
    are equal.
    """
    equal = bool((values[:n_penalties] == values[0]).all())
    fixed = tuple(float(values[j]) if j % 2 and not equal else None for j in range(n_penalties))
    return Unknowns(fixed, fixed.count(None) > 1, n_penalties)


class Search:
    """Trials of the values that are free, as logarithms within bounds."""

    def __init__(self, objective: Objective, unknowns: Unknowns, scale: float) -> None:
        self.objective, self.unknowns = objective, unknowns
        self.low, self.high = unknowns.bounds(scale)
        self.trials: list[tuple[Array, float]] = []

    def __call__(self, x: Array) -> tuple[float, Array]:
        """Log loss and its gradient: with them a search does not depend on the targets' unit."""
        loss, gradient = self.objective(self.unknowns.values(x))
        if loss < 0:
            gradient = np.zeros_like(gradient)
        loss = self._noted(x, loss)
        return float(np.log(loss)), self.unknowns.gradient(gradient) / loss

    def try_all(self, points: Sequence[Array]) -> None:
        """Trials without gradients, all at once if the objective can do that."""
        values = [self.unknowns.values(x) for x in points]
        at_once = getattr(self.objective, "losses", None)
        losses = at_once(np.array(values)) if at_once else [self.objective(v)[0] for v in values]
        for x, loss in zip(points, losses, strict=True):
            self._noted(x, loss)

    def _noted(self, x: Array, loss: float) -> float:
        """The loss of a trial, positive, which is kept."""
        if loss < 0:  # rounding errors are all that is left of it, so that nothing is known here
            loss = WORSE * max((loss for _, loss in self.trials), default=HUGE)
        loss = max(float(loss), TINY)
        self.trials.append((x.copy(), loss))
        return loss

    def descend(self, start: Array, flat: float = FLAT, stride: float = 1.0) -> None:
        """Follow the gradient from a start until the log loss falls by less than ``flat``.

        Logarithms are counted in units of ``stride``.
        """
        start = np.clip(start, self.low, self.high)
        bounds = list(zip(self.low / stride, self.high / stride, strict=True))
        reference = self.best[1] if self.trials else float(np.exp(self(start)[0]))

        def fall(u: Array) -> tuple[float, Array]:  # near zero: ``flat`` is an absolute change
            log_loss, gradient = self(np.clip(stride * u, self.low, self.high))
            return log_loss - float(np.log(reference)), stride * gradient

        minimize(
            fall, start / stride, jac=True, method="L-BFGS-B", bounds=bounds,
            options={"maxiter": STEPS, "maxfun": 2 * STEPS, "ftol": flat, "gtol": 1e-7},
        )  # fmt: skip

    @property
    def best(self) -> tuple[Array, float]:
        return min(self.trials, key=lambda trial: trial[1])

    def raise_ties(self, coordinates: Sequence[int]) -> tuple[Array, float]:
        """The best trial, with each coordinate raised as far as the loss stays the same."""
        x, best = self.best
        loss, allowed = best, np.log(best * (1 + TIE_RTOL))
        for j in coordinates:
            for value in np.linspace(x[j], self.high[j], TIE_STEPS + 1)[1:]:
                trial = x.copy()
                trial[j] = value
                log_loss = self(trial)[0]
                if log_loss > allowed:
                    break
                x, loss = trial, float(np.exp(log_loss))
        return x, loss


def tune(
    objective: Objective,
    scale: float,
    unknowns: Unknowns,
    *,
    start: Array | None = None,
    shares: Sequence[float] = COARSE,
    coarse: bool = False,
    flat: float = FLAT,
    ties: bool = True,
    stride: float = 1.0,
) -> Tuned:
    """The values of smallest loss; ``scale`` is the largest eigenvalue of the Gram matrix over n.

    The search begins at the values ``start``, if these are given and not next to the smallest, and
    otherwise with trials at ``shares`` of the scale. With ``coarse`` these are all that is tried.
    With ``ties`` larger penalties of the same loss are looked for at its end. The first step of a
    descent grows with the square of ``stride``.
    """
    search, free = Search(objective, unknowns, scale), unknowns.free
    for x in _starts(search, scale, unknowns, start, shares):
        if not coarse:
            search.descend(x, flat, stride)
    penalties = [i for i, j in enumerate(free) if unknowns.is_penalty(j)]
    x, loss = search.best if coarse or not ties else search.raise_ties(penalties[::-1])
    trials = [np.append(unknowns.values(point), value) for point, value in search.trials]
    return Tuned(unknowns.values(x), loss, np.array(trials))


def _starts(
    search: Search, scale: float, unknowns: Unknowns, start: Array | None, shares: Sequence[float]
) -> list[Array]:
    """The best of equal penalties, and the same with the negative part switched off."""
    free = unknowns.free
    if start is not None:
        x = np.clip(np.log(start[free]), search.low, search.high)
        if np.all(x > search.low + UNTRUSTED * np.log(10)):
            return [x]
        search(x)  # the loss hardly depends on penalties this small, and no gradient leads away
    penalty = np.array([unknowns.is_penalty(j) for j in free])
    search.try_all([np.where(penalty, np.log(share * scale), 0.0) for share in shares])
    best = search.best[0]
    negative = [i for i, j in enumerate(free) if unknowns.is_penalty(j) and j % 2]
    if not negative:
        return [best]
    clipped = best.copy()
    clipped[negative] = search.high[negative]
    search.try_all([clipped])
    return [best, clipped]


def tune_apart(
    objective: FoldLosses,
    scale: float,
    unknowns: Unknowns,
    *,
    first: FoldLosses | None = None,
    shares: Sequence[float] = COARSE,
) -> Tuned:
    """As ``tune``, but penalties are equal unless values of their own pay.

    They pay if the loss falls by more than APART_ERRORS standard errors of its fall over the folds.
    ``first`` is a part of the loss that takes less time, if there is one: it leads on from the
    coarse trials, and the whole loss decides whether that was a gain, and has the end.
    """
    if first is None:
        several, one = _both(objective, scale, unknowns, shares)
    else:
        several, one = _both_led_by(first, objective, scale, unknowns, shares)
    if one is None:
        return several
    fall = objective.per_fold(one.values) - objective.per_fold(several.values)
    error = fall.std(ddof=1) / np.sqrt(len(fall)) if len(fall) > 1 else np.inf
    trials = _together(several.trials, one.trials)
    if fall.mean() > APART_ERRORS * error:
        return replace(several, trials=trials)
    clipped = unknowns.without_negative(one.values, scale)
    loss = objective(clipped)[0]
    trials = _together(trials, np.append(clipped, loss)[None])
    if loss <= one.loss * (1 + TIE_RTOL):  # the negative part is of no use, or there is none
        return Tuned(clipped, loss, trials, apart=False)
    return replace(one, trials=trials, apart=False)


def _both(
    objective: Objective, scale: float, unknowns: Unknowns, shares: Sequence[float]
) -> tuple[Tuned, Tuned | None]:
    """The best penalties, and the best that are equal, unless one of them is given."""
    several = tune(objective, scale, unknowns, shares=shares)
    equal = unknowns.tied
    if equal is None:
        return several, None
    tied = several.trials[: len(shares)]
    return several, tune(objective, scale, equal, start=tied[np.argmin(tied[:, -1]), :-1])


def _both_led_by(
    first: Objective, objective: Objective, scale: float, unknowns: Unknowns,
    shares: Sequence[float],
) -> tuple[Tuned, Tuned | None]:  # fmt: skip
    """The same, where a part of the loss leads on from the coarse trials of the whole loss."""
    coarse = tune(objective, scale, unknowns, shares=shares, coarse=True)
    led = partial(tune, first, scale, stride=STRIDE)
    ended = partial(_ended, objective, scale)
    near, equal = led(unknowns, start=coarse.values), unknowns.tied
    if equal is None:
        return ended(unknowns, coarse, near), None
    *values, loss = min(coarse.trials[: len(shares)], key=lambda trial: trial[-1])
    tied = replace(coarse, values=np.array(values), loss=loss)
    near_one = led(equal, start=tied.values)
    one = ended(equal, tied, near_one)
    if near.loss >= near_one.loss * (1 - TIE_RTOL):
        return one, one  # nothing is gained by values of their own
    return ended(unknowns, coarse, near), one


def _ended(
    objective: Objective, scale: float, unknowns: Unknowns, coarse: Tuned, near: Tuned
) -> Tuned:
    """The end of a search, from where a part of the loss has led, if that is a gain."""
    gains = objective(near.values)[0] <= coarse.loss * (1 + TIE_RTOL)
    start = near.values if gains else coarse.values
    found = tune(objective, scale, unknowns, start=start, ties=not gains, stride=STRIDE)
    return replace(found, trials=_together(coarse.trials, found.trials))


def _together(*trials: Array) -> Array:
    """All trials, each of them once."""
    rows = {row.tobytes(): row for part in trials for row in part}
    return np.array(list(rows.values()))
