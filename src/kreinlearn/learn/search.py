"""The search for penalties: a few coarse trials, then gradients in the logarithm."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

Array = NDArray[Any]
Objective = Callable[[Array], tuple[float, Array]]  # values -> loss, gradient in their logarithms

LOWEST, HIGHEST = 1e-10, 1e6  # penalties, of the largest eigenvalue of the Gram matrix over n
COARSE = (1e-7, 1e-5, 1e-3, 1e-1)
FLAT = 1e-5  # decrease of log loss at which a search ends
TIE_RTOL = 1e-4  # losses that count as equal: the larger penalty is taken
STEPS = 12  # iterations of one search
UNHEARD = 4.5  # decades above the smallest penalty up to which a start is not trusted
RESTART_DECADES = 3.0  # around the best, that a restart is drawn from
APART_ERRORS = 2.0  # by which two penalties must beat one
TIE_STEPS = 4  # larger penalties tried
PATTERN_STEPS = (1.0, 0.5, 0.25)  # decades, where the criterion has no gradient
TINY = float(np.finfo(np.float64).tiny)
RADIUS = (0.05, 5.0)  # factors of the deviation of the targets


@dataclass(frozen=True)
class Tuned:
    """The values found, their cross-validated loss, and every trial: values and loss a row."""

    values: Array  # (p,)
    loss: float
    trials: Array  # (t, p + 1)
    apart: bool = True  # whether the penalties were free of one another


class FoldLosses(Protocol):
    """An objective that is a sum over folds."""

    def __call__(self, values: Array) -> tuple[float, Array]: ...

    def per_fold(self, values: Array) -> Array:
        """Losses whose mean over folds is the loss, up to a factor: (k,)."""


class Search:
    """Trials of free values within bounds, on a logarithmic scale."""

    def __init__(self, objective: Objective, low: Array, high: Array) -> None:
        self.objective, self.low, self.high = objective, np.log(low), np.log(high)
        self.trials: list[tuple[Array, float]] = []

    def __call__(self, x: Array) -> tuple[float, Array]:
        """log F and its gradient: a search is the same whatever the unit of the targets."""
        loss, gradient = self.objective(x)
        loss = max(float(loss), TINY)
        self.trials.append((x.copy(), loss))
        return float(np.log(loss)), gradient / loss

    def descend(self, start: Array) -> None:
        start = np.clip(start, self.low, self.high)
        bounds = list(zip(self.low, self.high, strict=True))
        reference = self.best[1] if self.trials else float(np.exp(self(start)[0]))

        def fall(x: Array) -> tuple[float, Array]:  # FLAT is of this, whatever the unit of a loss
            log_loss, gradient = self(x)
            return log_loss - float(np.log(reference)), gradient

        minimize(
            fall, start, jac=True, method="L-BFGS-B", bounds=bounds,
            options={"maxiter": STEPS, "maxfun": 2 * STEPS, "ftol": FLAT, "gtol": 1e-7},
        )  # fmt: skip

    @property
    def best(self) -> tuple[Array, float]:
        return min(self.trials, key=lambda trial: trial[1])

    def raise_ties(self, coordinates: Sequence[int]) -> tuple[Array, float]:
        """The best trial with each coordinate as large as leaves its loss what it is."""
        x, best = self.best
        loss, allowed = best, np.log(best * (1 + TIE_RTOL))
        for j in coordinates:
            for value in np.linspace(self.high[j], x[j], TIE_STEPS + 1)[:-1]:
                trial = x.copy()
                trial[j] = value
                log_loss = self(trial)[0]
                if log_loss <= allowed:
                    x, loss = trial, float(np.exp(log_loss))
                    break
        return x, loss


@dataclass(frozen=True)
class Unknowns:
    """lambda_plus, lambda_minus and further values, of which some are fixed, or tied."""

    fixed: tuple[float | None, ...]
    equal: bool = False  # lambda_minus is lambda_plus

    @property
    def free(self) -> list[int]:
        return [
            j
            for j, value in enumerate(self.fixed)
            if value is None and (j, self.equal) != (1, True)
        ]

    def values(self, x: Array) -> Array:
        found = np.array([np.nan if value is None else value for value in self.fixed])
        found[self.free] = np.exp(x)
        if self.equal:
            found[1] = found[0]
        return found

    def gradient(self, full: Array) -> Array:
        if self.equal and self.fixed[0] is None:
            full = full.copy()
            full[0] += full[1]
        return full[self.free]


def given(unknowns: Unknowns) -> Tuned:
    """The values that are fixed; nothing was tried."""
    values = unknowns.values(np.zeros(len(unknowns.free)))
    return Tuned(values, np.nan, np.empty((0, len(values) + 1)))


def tune(
    objective: Objective,
    scale: float,
    unknowns: Unknowns,
    *,
    restarts: int = 0,
    rng: np.random.Generator | None = None,
    start: Array | None = None,
    coarse: bool = False,
) -> Tuned:
    """The values of smallest loss; ``scale`` is the largest eigenvalue of the Gram matrix over n.

    ``start``: values to begin from instead of coarse trials, unless they are next to the smallest.
    With ``coarse`` the coarse trials are all.
    """
    free = unknowns.free

    def reduced(x: Array) -> tuple[float, Array]:
        loss, gradient = objective(unknowns.values(x))
        return loss, unknowns.gradient(gradient)

    search = Search(reduced, *_bounds(free, scale))
    for x in _starts(search, scale, unknowns, start):
        if not coarse:
            search.descend(x)
    for _ in range(restarts):
        assert rng is not None
        wide = RESTART_DECADES * np.log(10)
        search.descend(search.best[0] + rng.uniform(-wide, wide, len(free)))
    penalties = [i for i, j in enumerate(free) if j < 2]
    x, loss = search.best if coarse else search.raise_ties(penalties[::-1])
    trials = [np.append(unknowns.values(point), value) for point, value in search.trials]
    return Tuned(unknowns.values(x), loss, np.array(trials))


def _bounds(free: list[int], scale: float) -> Array:  # (2, free)
    penalties, radii = (LOWEST * scale, HIGHEST * scale), RADIUS
    return np.array([penalties if j < 2 else radii for j in free]).reshape(-1, 2).T


def tune_apart(
    objective: FoldLosses,
    scale: float,
    unknowns: Unknowns,
    *,
    restarts: int = 0,
    rng: np.random.Generator | None = None,
) -> Tuned:
    """As ``tune``; but two penalties are equal unless being apart pays.

    It does if the loss falls by more than APART_ERRORS standard errors of the fall, over folds.
    """
    two = tune(objective, scale, unknowns, restarts=restarts, rng=rng)
    if unknowns.equal or unknowns.fixed[:2] != (None, None):
        return two
    tied = two.trials[: len(COARSE)]
    start = tied[np.argmin(tied[:, -1]), :-1]
    one = tune(objective, scale, replace(unknowns, equal=True), start=start)
    fall = objective.per_fold(one.values) - objective.per_fold(two.values)
    trials = np.vstack([two.trials, one.trials])
    error = fall.std(ddof=1) / np.sqrt(len(fall)) if len(fall) > 1 else np.inf
    if fall.mean() > APART_ERRORS * error:
        return replace(two, trials=trials)
    clipped = np.array([one.values[0], HIGHEST * scale, *one.values[2:]])
    loss = objective(clipped)[0]
    if loss <= one.loss * (1 + TIE_RTOL):  # the negative part is of no use, or there is none
        return Tuned(clipped, loss, trials, apart=False)
    return replace(one, trials=trials, apart=False)


def one_penalty(values: Array) -> Unknowns:
    """What is left to find where penalties need not be apart: equal ones, or lambda_plus."""
    equal = bool(values[0] == values[1])
    return Unknowns((None, None if equal else float(values[1])), equal)


def _starts(search: Search, scale: float, unknowns: Unknowns, start: Array | None) -> list[Array]:
    """The best of equal penalties; and, of two, the same with the negative part switched off."""
    free = unknowns.free
    if start is not None:
        x = np.clip(np.log(start[free]), search.low, search.high)
        if np.all(x > search.low + UNHEARD * np.log(10)):
            return [x]
        search(x)  # there a loss hardly depends on penalties, and no gradient leads away
    for share in COARSE:
        search(np.array([np.log(share * scale) if j < 2 else 0.0 for j in free]))
    best = search.best[0]
    if 1 not in free:
        return [best]
    clipped = best.copy()
    clipped[free.index(1)] = search.high[free.index(1)]
    search(clipped)
    return [best, clipped]


def pattern_search(
    score: Callable[[Array], float], scale: float, unknowns: Unknowns, start: Array
) -> Tuned:
    """Values of the largest score, which has no gradient; ``loss`` and trials hold -score.

    Steps of a decade up and down each coordinate, then of half and a quarter; larger
    penalties are tried first and win ties.
    """
    free = unknowns.free
    low, high = np.log(_bounds(free, scale))
    trials: dict[tuple[float, ...], float] = {}

    def tried(x: Array) -> float:
        key = tuple(np.round(x, 9))
        if key not in trials:
            trials[key] = float(score(unknowns.values(x)))
        return trials[key]

    x = np.clip(np.log(start[free]), low, high)
    best = tried(x)
    for step in np.log(10) * np.array(PATTERN_STEPS):
        moved = True
        while moved:
            moved = False
            for move in step * np.vstack([np.eye(len(free)), -np.eye(len(free))]):
                trial = np.clip(x + move, low, high)
                better = tried(trial)
                if better > best or (better == best and trial.sum() > x.sum()):
                    x, best, moved = trial, better, True
    rows = [np.append(unknowns.values(np.array(key)), -value) for key, value in trials.items()]
    return Tuned(unknowns.values(x), -best, np.array(rows))
