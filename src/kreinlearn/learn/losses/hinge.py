"""The squared hinge loss of a support vector machine, by a finite Newton method.

Newton's method looks at single rows and not only at sums, so that the kernel values of all rows are
kept, or evaluated again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from sklearn.utils import gen_batches

from kreinlearn.data.tiles import TILE, Part, Scratch, among, in_turn, row_blocks, take
from kreinlearn.kernels.base import Array, Objects
from kreinlearn.learn.left_out import (
    LeftOut,
    joined_by_number,
    left_out_of_splits,
    score_split,
)
from kreinlearn.learn.losses.machines import (
    Machines,
    left_out_of_machines,
    machines_of,
    tune_machines,
)
from kreinlearn.learn.search import (
    FoldLosses,
    MeanLoss,
    Tuned,
    Unknowns,
    one_penalty,
    tune,
    tune_apart,
)
from kreinlearn.learn.task import Features, FoldRows, Linear, Task, some_outputs, weighted
from kreinlearn.nystrom.core import row_keys
from kreinlearn.pairs.evaluate import LandmarkColumns, naming, require_finite, scaled
from kreinlearn.progress import Progress
from kreinlearn.solvers.least_squares import Fold, in_span, ridge, scaling, signed_penalty
from kreinlearn.solvers.margins import (
    NEAR_OF_ONE,
    Chosen,
    DenseRows,
    Gram,
    HingeState,
    Margins,
    Picked,
    RowMargins,
    Wanted,
    cancelled,
    hinge_loss,
)
from kreinlearn.solvers.squared_hinge import finite_newton, hinge_gradient, newton
from kreinlearn.sums.moments import Centred, FeatureMoments, Moments, total_moments
from kreinlearn.sums.parallel import SPARE, depth_of, map_blocks, sum_over_blocks

if TYPE_CHECKING:
    from kreinlearn.learn.coding import Encoded

AnyMoments = FeatureMoments | Moments
TUNED_ROWS = 4096  # rows that the penalties of the hinge loss are tuned on
FLAT = 1e-3  # decrease of its logarithm at which a descent ends: so few rows tell no more
NEAR = 1 / 8  # share of the rows whose kernel values are kept because they are near the margin
MANY_OUTPUTS = 3  # of which rows near the margin are twice as many
ENOUGH_SAMPLED = 100  # rows per coefficient; of a sample with twice as many, half are taken
DENSE = 1 / 64  # share of the rows above which they are summed tile by tile, and not gathered
MAPPED = 2  # times the features: so many rows are mapped in less time than their sums
SUM_BYTES = 2**25  # of Gram matrices that one thread sums at a time
GATHERED_BYTES = 2**25  # of the rows that are gathered at a time
GATHERED_COPIES = 4  # of them: evaluated, put together, mapped, and those of one choice
CHEAP_COLUMNS = 64  # of vectors whose kernel values are evaluated in no more time than stored
CHEAP_BYTES = 2**27  # of such values that are kept nevertheless
COPIED = 16  # rows that are copied at a time, for which the budget has no room of its own
NEAR_BUDGET = 0.5  # share of the budget for them, where not all kernel values are kept
TILE_COPIES, SAMPLE_COPIES = 4, 3  # of the kernel values of a tile, and of those of the sample
ROW_NUMBERS = 6  # numbers per row and output: targets, weights, decisions, margins


@dataclass(frozen=True)
class SquaredHinge:
    """The loss of ``KreinSVC``: mean(max(0, 1 - y f)^2)."""

    max_iter: int = 1000
    needs_pool = True
    iterates = True
    diagonal = True

    def unknowns(self, penalties: Unknowns) -> Unknowns:
        return penalties

    def prepared(self, features: Features, encoded: Encoded, *, intercept: bool) -> Self:
        return self

    def settled(self, values: Array) -> Self:
        return self

    def keeping(self, task: Task, *, by_fold: bool, often: bool) -> Any:
        """Kernel values of all rows are kept where the budget has room for them.

        Many values that cost little are not: new memory takes as long as to evaluate them again.
        """
        n, m, q = task.n, len(task.sample.landmarks), task.Y.shape[1]
        n_bytes, session = 8 * n * (m + ROW_NUMBERS * q), task.pairs.session
        kept = task.rows.value_store(n_bytes, session)
        if kept is None:
            tiles = 8 * m * TILE * task.pairs.workers  # of rows that are gathered
            often = often or q > sums_at_once(m) or not cheap_to_evaluate(task)
            room = session.budget if often else min(CHEAP_BYTES, session.budget)
            kept = ValuesHere.for_rows(n, m, n_bytes + tiles, room)
        return kept.before(task, by_fold=by_fold)

    def objective(self, folds: Sequence[Fold], workers: int = 1) -> MeanLoss:
        """Least squares, by which the search begins: sums do not tell the hinge loss."""
        return MeanLoss(folds, workers)

    def criterion(self, task: Task, features: Features, *, loo: bool) -> FoldLosses:
        return hinge_objective(task, task.splits(features.map, most=TUNED_ROWS))

    def tune(self, task: Task, features: Features, unknowns: Unknowns, *, loo: bool) -> Tuned:
        """Least squares first, as it is cheap; the hinge loss from there, on rows in memory."""
        if features.basis is not None:
            return tune_machines(task, features.basis, unknowns)
        scale = features.scale(intercept=task.intercept)
        of_all = task.tuned_before(unknowns)
        if of_all is None:
            folds = task.folds_of(features)
            of_all = tune_apart(self.objective(folds, task.pairs.workers), scale, unknowns)
        if not of_all.apart:  # what does not pay there is not looked for here
            unknowns = one_penalty(of_all.values)
        few = task.splits(features.map, most=TUNED_ROWS)
        start, growth = of_all.values, np.ones(2)
        if len(task.numbers) > TUNED_ROWS or len(task.numbers) < task.n:
            of_few = tune(
                self.objective(task.terms_of(few), task.pairs.workers), scale, unknowns,
                start=of_all.values,
            )  # fmt: skip
            start = of_few.values
            growth = np.divide(of_all.values, start, out=growth, where=start > 0)
        tuned = tune(hinge_objective(task, few), scale, unknowns, start=start, flat=FLAT)
        return replace(tuned, values=tuned.values * growth)

    def solve(self, task: Task, features: Features, values: Array, kept: Any) -> Linear:
        if features.basis is not None:
            return self._solve_machines(machines_of(task, features.basis), values)
        return self._solve_all(task, features, values, kept, total_moments(features.terms))

    def _solve_machines(self, machines: Machines, values: Array) -> Linear:
        """The model in an eigenbasis, by the solver that suits the penalties."""
        if machines.above_rounding(values):
            return machines.solve(values, self.max_iter)
        rows = machines.Phi, machines.Y, machines.w, machines.penalty(values)
        return self.solve_rows(*rows, machines.intercept)

    def _solve_all(
        self, task: Task, features: Features, values: Array, kept: Any, total: FeatureMoments
    ) -> Linear:
        """The model of all rows whose target is not zero, which have the sums ``total``."""
        scale, unit = scaling(total.n * signed_penalty(features.map.S, *values))
        singular = not unit.all() and self._is_singular(features, unit, intercept=task.intercept)
        margins = kept.margins(task, features, features.map.W * scale, total.n)
        gram = total.rescaled(scale).with_constant(intercept=task.intercept)
        model = self._newton(margins, unit, gram)
        return replace(model, coef=scale[:, None] * model.coef, singular=singular)

    def _is_singular(self, features: Features, penalty: Array, *, intercept: bool) -> bool:
        whole = features.whole(intercept=intercept)
        return ridge(whole.G, whole.B, whole.n * penalty).singular

    def solve_sums(self, whole: Centred, S: Array, values: Array) -> Linear:
        raise TypeError("the squared hinge looks at single rows: sums are not enough")

    def solve_rows(self, Phi: Array, Y: Array, w: Array, penalty: Array, intercept: bool) -> Linear:
        F, unit, back = in_span(Phi, penalty)
        if intercept:
            F = np.column_stack([F, np.ones(len(F))])
        model = self._newton(RowMargins(DenseRows(F), Y, w), unit)
        return replace(model, coef=back @ model.coef)

    def left_out(
        self, task: Task, features: Features, values: Array, kept: Any, solution: Linear
    ) -> LeftOut:
        """By machines of the folds, of all rows if their kernel values are kept in memory."""
        if features.basis is not None:
            return left_out_of_machines(task, partial(self._solve_machines, values=values))
        if kept.has_all and not task.honest and len(features.groups) > 1:
            return self._left_out_of_all(task, features, values, kept)
        solve = partial(self.solve_rows, intercept=task.intercept)
        return left_out_of_splits(task, task.splits(features.map), score_split(solve, values))

    def _left_out_of_all(self, task: Task, features: Features, values: Array, kept: Any) -> LeftOut:
        terms, found = features.terms, list[LeftOut]()
        total = total_moments(terms)
        for k, part in enumerate(terms[:-1]):
            if 0 < part.n < total.n:
                one, without = kept.without_fold(task, k)
                model = self._solve_all(one, features, values, without, total.minus(part))
                found.append(kept.scores_of_fold(task, features, model, k))
        return joined_by_number(found, task.Y.shape[1])

    def _newton(self, margins: Margins, penalty: Array, gram: Any = None) -> Linear:
        r = len(penalty)
        padded = np.append(penalty, np.zeros(margins.p - r))
        solution = newton(margins, padded, gram=gram, max_iter=self.max_iter)
        constant = solution.coef[r] if margins.p > r else np.zeros(solution.coef.shape[1])
        return Linear(solution.coef[:r], constant, solution.n_iter, solution.converged)


def cheap_to_evaluate(task: Task) -> bool:
    """Whether kernel values cost little: those of vectors with few columns that are at hand."""
    X, kernel = task.rows.X, task.pairs.kernel
    return kernel.cheap and not in_turn(X) and X.shape[1] <= CHEAP_COLUMNS


def sums_at_once(m: int, n_bytes: int = SUM_BYTES) -> int:
    """How many Gram matrices one total of a pass has."""
    return max(1, n_bytes // (8 * m**2))


def between(one: Chosen, numbers: Array) -> Chosen:
    """The part of a choice that is not before the first or after the last of sorted numbers."""
    ends = numbers[[0, -1]] + [0, 1] if len(numbers) else np.zeros(2)
    here = slice(*np.searchsorted(one.numbers, ends))
    return Chosen(one.numbers[here], one.weights[here], one.targets[here])


def added(total: AnyMoments, more: AnyMoments) -> AnyMoments:
    """The sum of moments of the same kind; those of kernel values are added in place."""
    if isinstance(total, FeatureMoments):
        assert isinstance(more, FeatureMoments)
        return total.plus(more)
    assert isinstance(more, Moments)
    total += more
    return total


def hinge_objective(task: Task, splits: list[FoldRows]) -> HingeObjective:
    """The hinge loss of splits of the sampled rows, for a few of many outputs."""
    Y, w = task.sampled_targets(splits)
    return HingeObjective(
        splits, Y[:, some_outputs(Y)], w, intercept=task.intercept, workers=task.pairs.workers
    )


MAX_ITER = 200  # passes of one trial; nearly separable rows with hardly any penalty need many


class HingeFold:
    """A ``FoldLoss`` of the squared hinge loss; each trial starts from the solution of the last.

    ``rows`` are those of the training and of the validation part, whose targets are zero in the
    problem that is solved: so that folds by one map share their features. ``gram`` are the sums of
    the training part, if they are known.
    """

    def __init__(
        self, split: FoldRows, rows: DenseRows, Y: Array, w: Array, gram: Gram | None,
        *, intercept: bool,
    ) -> None:  # fmt: skip
        self.rows, self.valid, self.w, self.gram = rows, split.valid, w, gram
        self.Y = np.zeros_like(Y)
        self.Y[split.train] = Y[split.train]
        self.n_train = w[split.train].sum()
        self.Y_valid, self.w_valid = Y[split.valid], w[split.valid]
        self.n_valid = self.w_valid.sum()
        unpenalised = np.full(int(intercept), -1)  # of no group
        self.groups = np.append(split.groups, unpenalised)
        self.state: Sequence[HingeState] | None = None

    def loss_and_gradient(self, values: Array) -> tuple[float, Array]:
        penalty = np.where(self.groups >= 0, self.n_train * values[self.groups], 0.0)
        solution = finite_newton(
            self.rows, self.Y, self.w, penalty, self.state, gram=self.gram, max_iter=MAX_ITER
        )
        self.state, self.gram = solution.state, None  # which is not needed again
        Phi = self.rows.Phi[self.valid]
        loss, slope = hinge_loss(Phi @ solution.coef, self.Y_valid, self.w_valid)
        dF_dz = Phi.T @ slope
        return loss, hinge_gradient(solution.state, penalty, self.groups, len(values), dF_dz)


class HingeObjective(MeanLoss):
    """The squared hinge loss of all folds per unit of validated weight, and its gradient."""

    def __init__(
        self, splits: list[FoldRows], Y: Array, w: Array, *, intercept: bool, workers: int = 1
    ) -> None:
        by_map: dict[int, list[FoldRows]] = {}
        for split in splits:
            by_map.setdefault(id(split.Phi), []).append(split)
        folds = []
        for some in by_map.values():
            Phi = some[0].Phi
            rows = DenseRows(np.column_stack([Phi, np.ones((len(Phi), int(intercept)))]))
            for split, gram in zip(some, training_grams(rows, some, Y, w), strict=True):
                folds.append(HingeFold(split, rows, Y, w, gram, intercept=intercept))
        super().__init__(folds, workers)


def training_grams(
    rows: DenseRows, splits: list[FoldRows], Y: Array, w: Array
) -> Sequence[Gram | None]:
    """The sums of the training part of each split, by which Newton's method starts.

    They are those of all rows minus those of the validation part, so that each row is summed once;
    or not known, where hardly more than rounding errors would be left.
    """
    if len(splits) == 1 or not Y.all():  # outputs with rows of their own have sums of their own
        return [None] * len(splits)
    parts = [split.valid for split in splits]
    parts.append(np.setdiff1d(splits[0].train, np.concatenate(parts)))  # in every training part
    each = rows.terms([Chosen(part, w[part], Y[part]) for part in parts])
    A, b = (sum(sums) for sums in zip(*each, strict=True))
    grams = [(A - A_valid, b - b_valid) for A_valid, b_valid in each[:-1]]
    return [None if cancelled(gram[0], A) else gram for gram in grams]


# Features of all rows


@dataclass
class SumsOfEach:
    """The sums of each choice of rows, at a time."""

    parts: list[Moments]

    def __iadd__(self, other: Self) -> Self:
        for mine, theirs in zip(self.parts, other.parts, strict=True):
            mine += theirs
        return self

    def clear(self) -> None:
        for part in self.parts:
            part.clear()


def unless_ones(weights: Array) -> Array | None:
    """None for weights that are all 1, which change nothing and cost a copy of the rows."""
    return None if (weights == 1).all() else weights


class Sampled(NamedTuple):
    """Rows that the first pass did not evaluate because they were in the sample."""

    numbers: Array  # sorted
    values: Array  # (len(numbers), m): k(x, Z) / unit


def ranks(n: int, sampled: Array, order: Callable[[Array], Array]) -> Array:  # (n,)
    """The place of each row in its tile: as the first pass evaluates them, then sampled ones."""
    rank = np.empty(n, dtype=np.int16)
    for start in range(0, n, TILE):
        numbers = np.arange(start, min(start + TILE, n))
        inside = among(numbers, sampled)
        rank[order(numbers[~inside])] = np.arange(np.count_nonzero(~inside))
        rank[numbers[inside]] = np.arange(np.count_nonzero(~inside), len(numbers))
    return rank


def by_rank(numbers: Array, rank: Array) -> Array:
    """The places of rows among all rows, if those of each tile have the order of their ranks."""
    return np.asarray(numbers - numbers % TILE + rank[numbers])


class InTiles(NamedTuple):
    """Kernel values of all rows, in which the rows of a tile have the order of their ranks."""

    values: Array  # (n, m)
    rank: Array  # (n,)

    def __setitem__(self, numbers: Array, values: Array) -> None:
        self.values[by_rank(numbers, self.rank)] = values


def near_share(q: int) -> float:
    """The share of the rows that are kept, if there is room for them."""
    return NEAR if q < MANY_OUTPUTS else 2 * NEAR


def copied_share(q: int) -> float:
    """The share of the kept rows that are copied for one output, where outputs look at a part."""
    return NEAR_OF_ONE / q if q > NEAR_OF_ONE else 0.0


class KeptRows:
    """k(x, Z) / unit of a share of the rows: of a sample, and then of those asked for next.

    Newton's method begins with a sample. From its first pass on, the rows that each tile keeps are
    those near the margin.
    """

    def __init__(self, n: int = 0, share: float = 0.0) -> None:
        self.room = int(share * TILE)  # rows of a whole tile
        self.count = n // TILE * self.room + int(share * (n % TILE))
        self.share, self.drawn, self.known = share, False, False
        self.numbers, self.values = np.empty(0, dtype=np.intp), np.empty((0, 0))

    @classmethod
    def sample(cls, n: int, m: int, share: float) -> KeptRows:
        """Of every 1 / share neighbouring rows one by chance; values are given by number later.

        With m = 0 these are only numbers of rows whose values are kept elsewhere.
        """
        kept, step = cls(n, share), int(1 / share) if share else 1
        kept.clear(m)
        place = np.arange(kept.count)
        kept.numbers = step * place + (row_keys(place, 0) % np.uint64(step)).astype(np.intp)
        kept.drawn = kept.known = True
        return kept

    @property
    def held(self) -> int:
        """Bytes of the values, and of what is copied on the way to them."""
        return self.values.nbytes * 9 // 8

    def __setitem__(self, numbers: Array, values: Array) -> None:
        """Take the values of those rows that are in the sample; any thread may call this."""
        mine = np.flatnonzero(among(numbers, self.numbers))
        places = np.searchsorted(self.numbers, numbers[mine])
        for start in range(0, len(mine), COPIED):
            part = slice(start, start + COPIED)
            self.values[places[part]] = values[mine[part]]

    def clear(self, m: int) -> None:
        """Forget all rows, and take others, with m values each."""
        self.drawn = self.known = False
        if self.values.shape != (self.count, m):
            self.numbers, self.values = np.empty(self.count, np.intp), np.empty((self.count, m))

    def add(
        self, first: int, C: Array, nearest: Callable[[int], Array], place: Callable[[Array], Array]
    ) -> None:
        """Take rows of the tile that begins with row ``first``; any thread may call this."""
        room, at = int(self.share * len(C)), first // TILE * self.room
        if not room:
            return
        numbers = self.numbers[at : at + room] = nearest(room) + first
        if self.values.shape[1]:
            np.take(C, place(numbers), axis=0, out=self.values[at : at + room], mode="clip")

    def split(self, numbers: Array) -> tuple[Array, Array]:
        """Which of these sorted numbers are known (k,) bool, and where those are that are."""
        if not (self.known and self.count):
            return np.zeros(len(numbers), dtype=bool), np.empty(0, dtype=np.intp)
        known = among(numbers, self.numbers)
        return known, np.searchsorted(self.numbers, numbers[known])


@dataclass(frozen=True)
class ValuesHere:
    """Kernel values in this process: of all rows, if the budget allows, or else of some rows."""

    values: Array | None  # (n, m), which the first pass fills; None: there is no room for it
    sampled: Array | None = None  # numbers of the rows that the first pass does not evaluate
    rank: Array | None = None  # (n,), the places of rows in their tiles
    some: KeptRows | None = None  # a sample, which the first pass fills where not all are kept

    @classmethod
    def for_rows(cls, n: int, m: int, n_bytes: int, budget: int) -> ValuesHere:
        return cls(np.empty((n, m)) if n_bytes <= budget else None)

    def before(self, task: Task, *, by_fold: bool) -> ValuesHere:
        """Remember how the first pass will see the rows, and make room for some of them."""
        some = None
        if self.values is None:
            n, m, groups = task.n, len(task.sample.landmarks), task.n_folds + 1 if by_fold else 1
            sums = 8 * m * m * groups * (depth_of(n) + 1)  # of the first pass
            left, share = max(_left_for_values(task) - sums, 0), near_share(task.Y.shape[1])
            while share * 8 * n * m > NEAR_BUDGET * left:
                share = share / 2 if share * TILE > 1 else 0.0
            some = KeptRows.sample(n, m, share)
        rank = ranks(task.n, task.numbers, task.targets(by_fold=by_fold).by_group)
        return replace(self, sampled=task.numbers, rank=rank, some=some)

    @property
    def target(self) -> Any:
        """The object to which the first pass gives its kernel values."""
        if self.values is None:
            return self.some
        assert self.rank is not None
        return InTiles(self.values, self.rank)

    @property
    def has_all(self) -> bool:
        """Whether the kernel values of all rows are kept."""
        return self.values is not None

    def margins(self, task: Task, features: Features, W: Array, total: float) -> Margins:
        """The rows as Newton's method sees them, with features C W."""
        return RowMargins(self.rows(task, features).with_map(W), *weighted(task.Y, task.weights))

    def outputs(
        self, task: Task, features: Features, W: Array, total: float
    ) -> list[tuple[FeatureRows, Array, Array]]:
        """The same for each output alone: rows with features C W, their targets and weights."""
        Y, w = weighted(task.Y, task.weights)
        rows = self.rows(task, features).with_map(W)
        return [(rows, y, w) for y in Y.T]

    def without_fold(self, task: Task, k: int) -> tuple[Task, ValuesHere]:
        """The problem of all rows but those of a fold, whose targets are zero."""
        here = np.asarray(task.folds) == k
        return replace(task, Y=np.where(here[:, None], 0, np.asarray(task.Y))), self

    def scores_of_fold(self, task: Task, features: Features, model: Linear, k: int) -> LeftOut:
        """What a model says of the rows of a fold."""
        Z = np.vstack([model.coef, model.intercept]) if task.intercept else model.coef
        numbers = np.flatnonzero(np.asarray(task.folds) == k)
        return LeftOut(numbers, self.rows(task, features).decision(Z)[numbers])

    def rows(self, task: Task, features: Features) -> FeatureRows:
        """The features of all rows."""
        sample, session, n, m = task.sample, task.pairs.session, task.n, len(features.map.W)
        sampled, some, workers = None, self.some, task.pairs.workers
        q = task.Y.shape[1]
        if self.values is not None:
            some, each = KeptRows.sample(n, 0, near_share(q)), 8 * m * TILE
            held = self.values.nbytes
        else:
            assert self.sampled is not None
            assert some is not None
            each = 8 * m * TILE_COPIES * TILE  # of a worker: rows of a tile
            held = int(
                8 * m * ((1 + copied_share(q)) * some.count + SAMPLE_COPIES * len(self.sampled))
            )
            left = _left_for_values(task) - held
            workers = max(1, min(workers, int(left // (each + 2 * 8 * m * m))))
            sampled = Sampled(self.sampled, take(sample.scaled, sample.positions(self.sampled)))
        few = min(GATHERED_BYTES, int(8 * m * max(DENSE * n, MAPPED * m)))
        left = _left_for_values(task) - held - workers * each - GATHERED_COPIES * few
        sum_bytes = min(SUM_BYTES, max(int(left // (workers + SPARE + depth_of(n))), 0))
        return FeatureRows(
            task.rows.X, features.columns, sample.landmarks, features.unit, features.map.W, n,
            task.intercept, self.values, sampled, task.pairs.in_place, some, workers,
            session.progress, task.pairs.scratch(), sum_bytes=sum_bytes, rank=self.rank,
        )  # fmt: skip


def _left_for_values(task: Task) -> int:
    """Bytes of the budget beside the numbers that belong to each row."""
    return max(task.pairs.session.budget - 8 * ROW_NUMBERS * task.Y.size, 0)


@dataclass(frozen=True)
class FeatureRows:
    """phi(x) = (k(x, Z) W / unit, 1): what is summed is k(x, Z), and W is applied to the sums.

    A tile is evaluated as in the first pass, so that its values are those of the first pass.
    """

    X: Objects
    columns: LandmarkColumns
    landmarks: Array
    unit: float
    W: Array  # (m, r)
    n: int
    intercept: bool
    values: Array | None = None  # (n, m): k(x, Z) / unit of all rows
    sampled: Sampled | None = None
    by_tile: bool = True  # a row's values depend on the tile that it is evaluated in, by rounding
    kept: KeptRows = field(default_factory=KeptRows)
    workers: int = 1
    progress: Progress = field(default_factory=Progress)
    scratch: Scratch = field(default_factory=partial(Scratch, False))  # of the kernel
    tile: Scratch = field(default_factory=partial(Scratch, True))  # of the rows in their order
    sum_bytes: int = SUM_BYTES  # for the Gram matrices of one total of a pass
    gathered_bytes: int = GATHERED_BYTES  # whatever the budget, which changes no bit of a sum then
    rank: Array | None = None  # (n,): places of rows in their tiles; None: those of their numbers
    at: Array | None = None  # (n,): places of these rows among ``values``, if they are some of them

    @property
    def p(self) -> int:
        return self.W.shape[1] + self.intercept

    def with_map(self, W: Array) -> FeatureRows:
        return replace(self, W=W)

    def decision(self, Z: Array, wanted: Wanted | None = None) -> Array:  # (p, q) -> (n, q)
        """Decision values of all rows; kernel values of rows that are ``wanted`` next are kept."""
        out = np.empty((self.n, Z.shape[1]))
        self._pass(Z, out, wanted)
        return out

    def decision_and_terms(
        self, Z: Array, wanted: Wanted, picked: Picked
    ) -> tuple[Array, list[tuple[Array, Array]]]:
        """The same, and the sums of the rows that are picked by their decision values.

        There is one pass for as many outputs as have room for their sums.
        """
        q = Z.shape[1]
        out, terms = np.empty((self.n, q)), list[tuple[Array, Array]]()
        for part in gen_batches(q, sums_at_once(len(self.W), self.sum_bytes)):
            last, some = part.stop == q, range(part.start, part.stop)
            total = self._pass(Z, out, wanted if last else None, picked, some)
            found = (sums.terms(self.W) for sums in total.parts)
            each = [one.with_constant(intercept=self.intercept) for one in found]
            terms += [(A, b[:, 0]) for A, b in each]
        return out, terms

    def _pass(
        self, Z: Array, out: Array, wanted: Wanted | None, picked: Picked | None = None,
        outputs: Sequence[int] = (),
    ) -> SumsOfEach:  # fmt: skip
        """Fill ``out`` by decision values; returns sums of the rows picked for some outputs.

        All outputs are decided by one product, whose rounding does not depend on the budget then.
        """
        r, m = self.W.shape[1], len(self.W)
        dual, constant = self.W @ Z[:r], Z[r] if self.intercept else 0.0

        def add(total: SumsOfEach, block: tuple[int, slice, Objects | None]) -> None:
            _, here, objects = block
            C = self._tile(here.start, here.stop, objects)
            out[self._in_order(here)] = C @ dual + constant
            if not np.isfinite(out[here]).all():
                require_finite(C, np.arange(here.start, here.stop), self.landmarks)
            for k, sums in zip(outputs, total.parts, strict=True):
                assert picked is not None
                one = picked(k, here, out[here, k])
                sums.add(C[self._place(one.numbers)], one.columns, unless_ones(one.weights))
            if wanted is not None:
                self.kept.add(here.start, C, partial(wanted, here, out[here]), self._place)

        def zero() -> SumsOfEach:
            return SumsOfEach([Moments.zeros(m, 1) for _ in outputs])

        self.kept.clear(m if self.values is None else 0)
        with self._step(self.n):
            total = sum_over_blocks(add, self._tiles(), zero, self.n, workers=self.workers)
        self.kept.known = wanted is not None
        return total

    def _tiles(self) -> Iterator[tuple[int, slice, Objects | None]]:
        """The first row and the rows of each tile, and their objects if these come in turn."""
        for here in gen_batches(self.n, TILE):
            yield here.start, here, self.X[here] if self._reads_in_turn else None

    @property
    def _reads_in_turn(self) -> bool:
        """Whether rows are read from beginning to end: threads that are far apart would not."""
        return self.values is None and in_turn(self.X)

    def sample(self) -> tuple[Array, FeatureRows] | None:
        """Kept rows that were drawn; where they are very many, some of them tell enough."""
        if not (self.kept.drawn and self.p):
            return None
        return self._kept(max(1, self.kept.count // (ENOUGH_SAMPLED * self.p)))

    def near(self) -> tuple[Array, FeatureRows] | None:
        return None if self.kept.drawn else self._kept()

    def _kept(self, step: int = 1) -> tuple[Array, FeatureRows] | None:
        """Every so many of the kept rows."""
        if not (self.kept.known and self.kept.count):
            return None
        numbers = self.kept.numbers[::step]
        if self.values is None:
            return numbers, self._some(self.kept.values[::step])
        return numbers, self._some(self.values, self._at(numbers))

    def part(self, places: Array) -> FeatureRows:
        assert self.values is not None
        if self.at is None:
            return self._some(self.values[places])
        return self._some(self.values, self.at[places])

    def _some(self, values: Array, at: Array | None = None) -> FeatureRows:
        """Some rows: all those of the values, or those at some places among them."""
        n = len(values if at is None else at)
        return replace(self, n=n, values=values, at=at, kept=KeptRows(), rank=None)

    def terms(self, chosen: Sequence[Chosen]) -> list[tuple[Array, Array]]:
        """sum w phi phi' and sum w t phi over each choice of rows; a row is evaluated once.

        Few rows are gathered: they have room beside their sums, and are mapped faster than these.
        """
        few = max(DENSE * self.n, MAPPED * self.p)
        dense = any(len(one.numbers) > few for one in chosen)
        found = self._sums_of_tiles(chosen) if dense else self._sums_of_few(chosen)
        return [self._with_constant(*one) for one in zip(found, chosen, strict=True)]

    def _with_constant(self, terms: FeatureMoments, one: Chosen) -> tuple[Array, Array]:
        A, b = terms.with_constant(intercept=self.intercept)
        return A, b.reshape(self.p, *one.targets.shape[1:])

    def _sums_of_tiles(self, chosen: Sequence[Chosen]) -> list[FeatureMoments]:
        """The sums of many rows, tile by tile, for as many choices at a time as fit in memory."""
        m, size = len(self.W), sums_at_once(len(self.W), self.sum_bytes)

        def add(total: SumsOfEach, here: slice) -> None:
            parts = [slice(*np.searchsorted(one.numbers, [here.start, here.stop])) for one in some]
            numbers = [one.numbers[part] for one, part in zip(some, parts, strict=True)]
            every = numbers[0] if len(numbers) == 1 else np.unique(np.concatenate(numbers))
            C = self._columns_of(every, 1)
            for sums, one, part, mine in zip(total.parts, some, parts, numbers, strict=True):
                rows = C if len(mine) == len(every) else C[np.searchsorted(every, mine)]
                sums.add(rows, one.columns[part], unless_ones(one.weights[part]))

        def zero() -> SumsOfEach:
            return SumsOfEach([Moments.zeros(m, one.columns.shape[1]) for one in some])

        found, workers = [], 1 if self._reads_in_turn else self.workers
        for start in range(0, len(chosen), size):
            some = chosen[start : start + size]
            with self._step(self.n):
                tiles = gen_batches(self.n, TILE)
                total = sum_over_blocks(add, tiles, zero, self.n, workers=workers)
            found += [sums.terms(self.W) for sums in total.parts]
        return found

    def _sums_of_few(self, chosen: Sequence[Chosen]) -> list[FeatureMoments]:
        """The sums of few rows, of which as many are gathered at a time as have room.

        Of choices with hardly more rows than features, rows are mapped, and of others their sums.
        """
        if not chosen:
            return []
        every = np.unique(np.concatenate([one.numbers for one in chosen]))
        mapped = [len(one.numbers) <= MAPPED * self.p for one in chosen]
        once = any(mapped) and sum(len(one.numbers) for one in chosen) > len(every)
        totals: list[AnyMoments] = []
        with self._step(self._evaluated(every)):
            for numbers in self._gathered(every):
                C = self._columns_of(numbers, self.workers)
                Phi = C @ self.W if once else None  # for all choices
                some = [between(one, numbers) for one in chosen]
                sums: list[AnyMoments] = [
                    self._mapped(numbers, C, Phi, one) if few else self._summed(numbers, C, one)
                    for one, few in zip(some, mapped, strict=True)
                ]
                totals = list(map(added, totals, sums)) if totals else sums
        return [one if isinstance(one, FeatureMoments) else one.terms(self.W) for one in totals]

    def _gathered(self, every: Array) -> Iterator[Array]:
        """Sorted row numbers in parts that end where tiles do, so that none is evaluated twice."""
        size, start = max(TILE, self.gathered_bytes // (8 * len(self.W))), 0
        while start < len(every):
            stop = start + size
            if stop < len(every):
                stop = int(np.searchsorted(every, every[stop] - every[stop] % TILE))
            yield every[start:stop]
            start = stop
        if not len(every):
            yield every

    def _mapped(self, numbers: Array, C: Array, Phi: Array | None, one: Chosen) -> FeatureMoments:
        places = np.searchsorted(numbers, one.numbers)
        rows = C[places] @ self.W if Phi is None else Phi[places]
        return FeatureMoments.of_rows(rows, one.columns, one.weights)

    def _summed(self, numbers: Array, C: Array, one: Chosen) -> Moments:
        mine = C if len(one.numbers) == len(C) else C[np.searchsorted(numbers, one.numbers)]
        n, m = len(mine), len(self.W)

        def add(total: Moments, part: slice) -> None:
            total.add(mine[part], one.columns[part], unless_ones(one.weights[part]))

        def zero() -> Moments:
            return Moments.zeros(m, one.columns.shape[1])

        tiles = gen_batches(n, TILE) if n else ()
        return sum_over_blocks(add, tiles, zero, n, workers=self.workers)

    def _columns_of(self, numbers: Array, workers: int) -> Array:
        """k(x, Z) / unit of sorted row numbers."""
        if self.values is not None:
            return np.asarray(self.values[self._at(numbers)])  # without a copy of all
        out, (known, places) = np.empty((len(numbers), len(self.W))), self.kept.split(numbers)
        if known.any():
            out[known] = self.kept.values[places]
        if not known.all():
            out[~known] = self._again(numbers[~known], workers)
        return out

    def _again(self, numbers: Array, workers: int) -> Array:
        if self.by_tile:
            out = np.empty((len(numbers), len(self.W)))

            def one_tile(start: int) -> None:
                here = slice(*np.searchsorted(numbers, [start, start + TILE]))
                C = self._tile(start, min(start + TILE, self.n))
                np.take(C, self._place(numbers[here]), axis=0, out=out[here], mode="clip")

            map_blocks(one_tile, (TILE * np.unique(numbers // TILE)).tolist(), workers=workers)
        else:
            out = self._evaluate(take(self.X, numbers), numbers)
        require_finite(out, numbers, self.landmarks)
        return out

    def _place(self, numbers: Array) -> Array:
        """The places of rows in their tiles."""
        return numbers % TILE if self.rank is None else self.rank[numbers]

    def _at(self, numbers: Array) -> Array:
        """The places of rows among the values."""
        if self.at is not None:
            return np.asarray(self.at[numbers])
        return numbers if self.rank is None else by_rank(numbers, self.rank)

    def _in_order(self, tile: slice) -> Any:
        """The numbers of the rows of a tile, in the order of their places."""
        if self.rank is None:
            return tile
        numbers = np.empty(tile.stop - tile.start, dtype=np.intp)
        numbers[self.rank[tile]] = np.arange(tile.start, tile.stop)
        return numbers

    def _tile(self, start: int, stop: int, objects: Objects | None = None) -> Array:
        """k(x, Z) / unit of the rows of a tile, by their places.

        The next call of the same thread overwrites it. ``objects`` are the rows, if they are read.
        """
        if self.values is not None and self.at is None:
            return np.asarray(self.values[start:stop])
        rows = Part(self.X, start, stop) if objects is None else objects
        if self.values is None and self.sampled is None:
            return self._evaluate(rows[:], np.arange(start, stop))
        buffer = self.tile.get(self.W, len(self.W))
        assert buffer is not None
        C = buffer[: stop - start]
        if self.values is not None:
            assert self.at is not None
            return np.take(self.values, self.at[start:stop], axis=0, out=C, mode="clip")
        assert self.sampled is not None
        here = slice(*np.searchsorted(self.sampled.numbers, [start, stop]))
        inside = self.sampled.numbers[here] - start

        def ordered(places: Array) -> Array:
            return places[np.argsort(self._place(places + start))]

        for places, block in row_blocks(rows, inside, ordered):
            values = self._evaluate(block, places + start, C)
            if not np.may_share_memory(values, C):
                C[: len(places)] = values
        C[len(C) - len(inside) :] = self.sampled.values[here]
        return C

    def _evaluated(self, numbers: Array) -> int:
        """About how many rows have to be evaluated for these."""
        numbers = numbers[~self.kept.split(numbers)[0]]
        return TILE * len(np.unique(numbers // TILE)) if self.by_tile else len(numbers)

    def _step(self, n: int) -> AbstractContextManager[None]:
        """A step of the progress bar for rows that are evaluated again."""
        kept = self.values is not None
        return nullcontext() if kept else self.progress.step("rows again", n, n * len(self.W))

    def _evaluate(self, A: Objects, numbers: Array, out: Array | None = None) -> Array:
        """k(x, Z) / unit of a block of rows, in ``out`` or a buffer of this thread if it can be."""
        buffer = self.scratch.get(A, self.columns.n_evaluated(len(self.W)))
        if buffer is not None and out is not None and buffer.dtype == out.dtype:
            buffer = out if buffer.shape[1] == out.shape[1] else buffer
        with naming(numbers, len(self.landmarks)):
            C = self.columns.of_rows(numbers, A, buffer)
        self.progress.add(len(C), C.size)
        return np.asarray(scaled(C, self.unit), dtype=np.float64)
