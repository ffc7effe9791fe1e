"""How similarities are judged and blended: by models that have not seen what they predict.

A similarity is a sum of terms, each of which is made of the values of one kernel. Whatever it takes
from the objects (centring, scales, ranks) is made anew of those that are not left out. Up to some
hundreds of objects a fifth is left out at a time; of more objects each one is left out by itself,
in closed form. A closed form can centre anew, but make no scales and ranks anew, and it never sees
an eigenvalue near zero that is there by accident if no object is left out: folds do.

Of many similarities none is chosen. All are averaged, with smooth weights: with e, the loss of
predicting the mean target over the number n of objects, the weight of a similarity of loss l is

    ((l + e) / (l_min + e)) ** -min(n / SHARPNESS, SHARPEST)

over the number of similarities that are made of the same kernel. Of so many objects that the closed
form looks at all similarities first, kernels that lower the loss of this blend are added to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from kreinlearn._warnings import warn
from kreinlearn.kernels.base import Array
from kreinlearn.kernels.dissimilarity import CENTRED, blend_name
from kreinlearn.kernels.several import Term
from kreinlearn.learn.folds import TRAINING, closed_form_screens, rounds_of_folds
from kreinlearn.learn.groups import LEAST_GROUPS
from kreinlearn.learn.search import TINY, HeldOutLoss, MeanLoss, Tuned, Unknowns, tune, tune_apart
from kreinlearn.nystrom.core import CORE_RTOL
from kreinlearn.pairs.pairs import over_unit, similarities_among, similarities_of_parts
from kreinlearn.solvers.exact import ACCURACY, Eigenbasis, ExactFold, LeaveOneOutLoss, Projected
from kreinlearn.sums.parallel import map_in_threads, threaded_blas

SHARES = tuple(10.0 ** np.arange(-9, 0.5, 1.5))  # of the scale: penalties that are tried first
SCREENED_ACCURACY = 1e-5  # of the integrals behind the closed form, where similarities are screened
SKETCHED = 8  # sums of targets by which penalties are tuned, if there are more targets
LARGE = 1500  # objects from which on several threads decompose their matrix
TINY_MATRIX = 100  # objects below which threads wait for one another, and gain nothing
COMPARED = 400  # objects on which similarities are compared, and so many times more:
ALMOST_ALL = 1.2  # all objects are looked at, and not a part, if there are not more
FINALISTS = 4  # similarities that folds judge if the closed form has screened all
SHARPNESS, SHARPEST = 10.0, 20.0  # objects by which the power of a loss grows by one; at most
MOST, LEAST_SHARE = 10, 0.02  # similarities in a blend; of the largest weight, less is dropped
FOUND_ANEW = 200  # objects for which everything is found anew, or so many times more, as above
ADDED, STEPS = 0.5, 8  # of the weight of a blend, that of a kernel which is added; how often
OUTER_FOLDS = 3  # in each of which everything is found anew, to see what may be expected of it
LEAST_OUTER = 8  # objects for that
OUTLIER = 3.0  # times the largest coefficients of the folds: more are an accident
ROUNDING = 1e-8  # of the targets: predictions that are smaller
RAISED = 10.0 ** np.arange(0.5, 4.1, 0.5)  # factors of penalties that are tried then


class Judged(NamedTuple):
    """A similarity, the penalties of its smallest loss, and what they were found from."""

    terms: tuple[Term, ...]
    tuned: Tuned
    loss: HeldOutLoss
    basis: Eigenbasis  # of all objects


class Blended(NamedTuple):
    """The blend of several similarities, and the loss of each of them alone."""

    judged: Judged
    alone: list[tuple[Term, Tuned]]  # the best one first
    shares: Array  # of the kernels


class OuterFold(NamedTuple):
    """What was found without some of the objects, and what it says of them."""

    train: Array  # places
    valid: Array
    inner: Array  # (t, q) scores of the training part, by models that have not seen the object
    scores: Array  # (v, q) of the others
    near: Array  # (n, t): distances or similarities of all objects to the training part


@dataclass(frozen=True)
class Comparison:
    """What kernels give for all pairs of some objects, with the targets, and how both are split.

    Each of the ``rounds`` has the fold number of every object; an object of a negative number is
    never tested. Without any round each object is left out by itself.
    """

    values: Sequence[Array]  # (n, n) of each kernel
    Y: Array  # (n, q)
    w: Array | None = None  # (n,)
    rounds: tuple[Array, ...] = ()  # (n,) each
    labels: Array | None = None  # (n,) numbers of classes, which are spread over folds
    groups: Array | None = None  # (n,) numbers of groups, which are left out together
    equal: Array | None = None  # (n,) numbers of distinct objects, if some are equal
    signed: bool = True
    intercept: bool = True
    workers: int = 1

    @property
    def n(self) -> int:
        return len(self.Y)

    def at(self, places: Array) -> Comparison:
        """The same of some of the objects."""

        def of(array: Array | None) -> Array | None:
            return None if array is None else array[places]

        return replace(
            self,
            values=[D[np.ix_(places, places)] for D in self.values],
            Y=self.Y[places],
            w=of(self.w),
            rounds=tuple(folds[places] for folds in self.rounds),
            labels=of(self.labels),
            groups=of(self.groups),
            equal=of(self.equal),
        )

    def with_rounds(self, count: int | None = None) -> Comparison:
        """The same with folds that are drawn for it."""
        rounds = rounds_of_folds(self.n, self.labels, self.groups, count)
        return replace(self, rounds=tuple(rounds))

    def sketched(self) -> Comparison:
        """Many targets replaced by a few sums of them with the same squared error on average."""
        q = self.Y.shape[1]
        return replace(self, Y=self.Y @ random_signs(q)) if q > SKETCHED else self

    # Similarities

    def among(self, terms: Sequence[Term]) -> Array:
        """A similarity among all objects."""
        return summed([(similarities_among(self.values[i], name), w) for i, name, w in terms])

    def split(self, terms: Sequence[Term], train: Array, valid: Array) -> tuple[Array, Array]:
        """The similarity made of a training part: among its objects, and of others to them."""
        parts, weights = [], [term.weight for term in terms]
        for i, name, _ in terms:
            D, D_valid = (self.values[i][np.ix_(rows, train)] for rows in (train, valid))
            parts.append(similarities_of_parts(D, D_valid, name))
        K, K_valid = (zip(each, weights, strict=True) for each in zip(*parts, strict=True))
        return summed(K), summed(K_valid)

    def basis(self, K: Array, w: Array | None, unit: float) -> Eigenbasis:
        """Decompose similarities over their unit; their memory is used for something else."""
        with threaded_blas(self.workers if len(K) >= LARGE else 1):
            return Eigenbasis.of(
                K, w, signed=self.signed, rtol=CORE_RTOL, unit=unit, overwrite=True
            )

    def decomposed(self, terms: Sequence[Term]) -> Eigenbasis:
        K, unit = over_unit(self.among(terms))
        return self.basis(K, self.w, unit)

    # Judging

    def folds(self, terms: Sequence[Term], unit: float) -> RoundsLoss:
        """The loss of the folds, each with a similarity and an eigenbasis of its own."""
        w = np.ones(self.n) if self.w is None else self.w
        found, tested = list[ExactFold](), list[Array]()
        for folds in self.rounds:
            for k in range(int(folds.max(initial=-1)) + 1):
                train, valid = np.flatnonzero(folds != k), np.flatnonzero(folds == k)
                if not len(train) or not len(valid):
                    continue
                K, K_valid = self.split(terms, train, valid)
                basis = self.basis(over_unit(K, unit)[0], w[train], unit)
                parts = self.Y[train], over_unit(K_valid, unit)[0], self.Y[valid], w[valid]
                found.append(ExactFold(basis, *parts, intercept=self.intercept))
                tested.append(valid)
        return RoundsLoss(found, tested)

    def loss(
        self, terms: Sequence[Term], basis: Eigenbasis, accuracy: float = ACCURACY
    ) -> RoundsLoss | LeaveOneOutLoss:
        """The loss of a similarity whose eigenbasis is known."""
        if self.rounds:
            return self.folds(terms, basis.unit)
        pure = all(term.transform in CENTRED for term in terms)  # blends have scales as well
        alike = self.w is None or bool(np.ptp(self.w) == 0)
        centred = pure and alike and self.intercept
        return LeaveOneOutLoss(
            basis, self.Y, intercept=self.intercept, accuracy=accuracy, centred=centred
        )

    def screened(self, terms: Sequence[Term], unknowns: Unknowns) -> Tuned:
        """Coarse penalties of a similarity."""
        basis = self.decomposed(terms)
        loss = self.loss(terms, basis, SCREENED_ACCURACY)
        return tune(loss, basis.scale, unknowns, shares=SHARES, coarse=True)

    def tuned(
        self, terms: Sequence[Term], unknowns: Unknowns, basis: Eigenbasis | None = None,
        *, sketched: bool = False,
    ) -> Judged:  # fmt: skip
        """The penalties of smallest loss; ``sketched``: of a few sums of many targets alone."""
        basis = self.decomposed(terms) if basis is None else basis
        few = self.sketched()
        loss = (few if sketched else self).loss(terms, basis)
        searched = loss if few is self or sketched else loss.combined(random_signs(len(self.Y.T)))
        tuned = tune_apart(searched, basis.scale, unknowns, shares=SHARES)
        values = few._steadied(tuned.values, terms, basis, searched, unknowns)
        if loss is not searched or values is not tuned.values:
            tuned = replace(tuned, values=values, loss=loss(values)[0])
        return Judged(tuple(terms), tuned, loss, basis)

    def _steadied(
        self, values: Array, terms: Sequence[Term], basis: Eigenbasis, loss: HeldOutLoss,
        unknowns: Unknowns,
    ) -> Array:  # fmt: skip
        """Larger penalties, if the model of all objects is an outlier among models of parts.

        An eigenvalue near zero, which all objects have and the parts do not, makes coefficients
        large that nothing has judged. There is one at most that every part is without, so that one
        eigenvector has most of the coefficients then; the closed form is asked only in this case.
        """
        whole = Projected(basis, self.Y, intercept=self.intercept)
        if isinstance(loss, RoundsLoss):
            folds = loss.folds
        elif whole.largest_share(values) > 1 - OUTLIER**-2:
            (drawn, *_) = rounds_of_folds(self.n, self.labels, self.groups, 1)
            first = replace(self, rounds=(np.where(drawn == 0, 0, TRAINING),))
            folds = first.folds(terms, basis.unit).folds
        else:
            return values
        D = basis.spectrum.D[:, None]

        def is_outlier(values: Array) -> bool:
            coefficients = whole.solve(values)[0]
            if np.linalg.norm(D * coefficients) <= ROUNDING * np.linalg.norm(whole.T):
                return False  # nothing is predicted but the mean
            largest = max(np.linalg.norm(fold.solve(values)[0]) for fold in folds)
            return bool(np.linalg.norm(coefficients) > OUTLIER * largest > 0)

        if not is_outlier(values):
            return values
        for factor in RAISED:
            raised = values.copy()
            raised[unknowns.penalties] *= factor
            if not is_outlier(raised):
                return raised
        warn(
            "the model of all objects has much larger coefficients than any model that was "
            "judged: predictions of new objects may be far off; give larger lambda_plus and "
            "lambda_minus"
        )
        return values

    # Blending

    def blended(
        self, names: Sequence[Sequence[str | None]], unknowns: Unknowns,
        *, adds: bool = True, sketched: bool = False, screens: bool | None = None,
    ) -> Blended:  # fmt: skip
        """A weighted mean of the similarities that can be made of each kernel, and of the kernels.

        ``names`` are those of the transformations of each kernel; None is the kernel itself. Unless
        the kernels are to be added, it is that of the best kernel alone. ``screens`` says whether
        the closed form looks at them first; by default the number of objects decides.
        """
        alone = [Term(i, name, 1.0) for i, each in enumerate(names) for name in each]
        if len(alone) == 1:
            judged = self.tuned(alone, unknowns, sketched=sketched)
            return Blended(judged, [(alone[0], judged.tuned)], np.ones(1))
        few, trials = self.sketched(), list[tuple[Term, Tuned]]()
        screens = closed_form_screens(self.n, self.groups) if screens is None else screens
        if self.rounds and screens:
            trials = replace(few, rounds=())._tried(alone, unknowns)
            alone, trials = [term for term, _ in trials[:FINALISTS]], trials[FINALISTS:]
        judged_alone = few._tried(alone, unknowns)
        trials = judged_alone + trials
        if not adds:
            best = judged_alone[0][0].number
            judged_alone = [trial for trial in judged_alone if trial[0].number == best]
        terms = self._blend(judged_alone)
        if adds and screens:
            terms = replace(few, rounds=())._grown(terms, trials, unknowns)
        shares = np.zeros(len(names))
        for term in terms:
            shares[term.number] = term.weight
        terms = [self._on_one_scale(term) for term in terms] if len(terms) > 1 else terms
        return Blended(self.tuned(terms, unknowns, sketched=sketched), trials, shares)

    def _tried(self, terms: Sequence[Term], unknowns: Unknowns) -> list[tuple[Term, Tuned]]:
        """Each similarity with coarse penalties, the best one first."""
        workers = self.workers if self.n >= TINY_MATRIX else 1
        tuned = map_in_threads(lambda term: self.screened([term], unknowns), terms, workers)
        return sorted(zip(terms, tuned, strict=True), key=lambda trial: trial[1].loss)

    def _blend(self, trials: Sequence[tuple[Term, Tuned]]) -> list[Term]:
        """One term for each kernel; the weights of all similarities add up to one."""
        of_kernel = dict[int, dict[str | None, float]]()
        numbers = [term.number for term, _ in trials]
        w = np.ones(self.n) if self.w is None else self.w
        spread = np.square(self.Y - w @ self.Y / w.sum()).sum(axis=1)
        e = max(float(w @ spread / w.sum()) / self.n, TINY)
        losses = np.array([tuned.loss for _, tuned in trials]) + e
        shares = (losses / losses.min()) ** -min(self.n / SHARPNESS, SHARPEST)
        shares /= [numbers.count(number) for number in numbers]
        shares[shares < max(LEAST_SHARE * shares.max(), np.sort(shares)[-MOST:][0])] = 0.0
        for (term, _), share in zip(trials, shares / shares.sum(), strict=True):
            if share:
                of_kernel.setdefault(term.number, {})[term.transform] = float(share)
        terms = []
        for number, each in of_kernel.items():
            total = sum(each.values())
            parts = {name: share / total for name, share in each.items() if name is not None}
            terms.append(Term(number, blend_name(parts) if parts else None, total))
        return terms if len(terms) > 1 else [terms[0]._replace(weight=1.0)]

    def _grown(
        self, terms: Sequence[Term], trials: Sequence[tuple[Term, Tuned]], unknowns: Unknowns
    ) -> list[Term]:
        """The same terms and others, each added a share at a time while the loss falls.

        Kernels that see different things err less together than those that are best alone.
        """
        own = {term.number: term._replace(weight=1.0) for term in terms}
        for number in {term.number for term, _ in trials} - own.keys():
            (own[number],) = self._blend([each for each in trials if each[0].number == number])
        scaled = {number: self._on_one_scale(term) for number, term in own.items()}
        shares = dict.fromkeys(own, 0.0) | {term.number: term.weight for term in terms}

        def loss(shares: dict[int, float]) -> float:
            used = [scaled[i]._replace(weight=a * scaled[i].weight) for i, a in shares.items() if a]
            return self.screened(used, unknowns).loss

        least, pool = loss(shares), sorted(own)
        for _ in range(STEPS):
            larger = [{**shares, number: shares[number] + ADDED} for number in pool]
            losses = map_in_threads(loss, larger, self.workers)
            helpful = [number for number, at in zip(pool, losses, strict=True) if at < least]
            if not helpful:
                break
            least, shares, pool = min(losses), larger[int(np.argmin(losses))], helpful
        total = sum(shares.values())
        return [own[i]._replace(weight=shares[i] / total) for i in sorted(own) if shares[i]]

    def _on_one_scale(self, term: Term) -> Term:
        """The weight over a power of two near the mean |eigenvalue| of the similarity."""
        basis = self.decomposed([term._replace(weight=1.0)])
        mean = float(np.abs(basis.spectrum.D).sum()) / self.n
        size = 2.0 ** round(np.log2(mean)) if mean > 0 else 1.0
        return term._replace(weight=term.weight / size / basis.unit)

    # What may be expected of all this

    def without_folds(
        self, names: Sequence[Sequence[str | None]], unknowns: Unknowns, *, adds: bool = True
    ) -> list[OuterFold]:
        """Everything found anew without a third of the objects, three times.

        Classes are not spread over these folds: of labels that are noise the larger class of the
        sample would then be found again in what is left out, as if it had been predicted.
        """
        found = list[OuterFold]()
        n_groups = self.n if self.groups is None else len(np.unique(self.groups))
        if self.n < LEAST_OUTER or n_groups < LEAST_GROUPS:
            return found
        (outer,) = rounds_of_folds(self.n, None, self.groups, 1, OUTER_FOLDS)
        screens = closed_form_screens(self.n, self.groups)  # as where all objects are compared
        for k in range(int(outer.max()) + 1):
            train, valid = np.flatnonzero(outer != k), np.flatnonzero(outer == k)
            part = self.at(train).with_rounds(1)
            judged, *_ = part.blended(names, unknowns, adds=adds, screens=screens)
            terms, tuned, loss, basis = judged
            K, K_valid = self.split(terms, train, valid)
            model = Projected(basis, part.Y, intercept=self.intercept)
            coefficients, constant = model.solve(tuned.values)
            rows = over_unit(K_valid, basis.unit)[0] * basis.root
            scores = rows @ (basis.spectrum.U @ coefficients) + constant
            if len(terms) == 1:
                near = self.values[terms[0].number][:, train]
            else:
                near = np.empty((self.n, len(train)))
                near[train], near[valid] = K, K_valid
            found.append(OuterFold(train, valid, loss.scores(tuned.values), scores, near))
        return found


class RoundsLoss(MeanLoss):
    """The squared error of all folds, each of them with a model that has not seen it."""

    folds: Sequence[ExactFold]

    def __init__(self, folds: Sequence[ExactFold], tested: Sequence[Array]) -> None:
        super().__init__(folds)
        self.tested = tested  # places of the objects of each fold

    def combined(self, M: Array) -> RoundsLoss:  # (q, k)
        """The same loss of k linear combinations of the targets, at little cost."""
        return RoundsLoss([fold.combined(M) for fold in self.folds], self.tested)

    def losses(self, trials: Array) -> Array:  # (t, p) -> (t,)
        """The losses of several penalties, from products with all of them at once."""
        return np.asarray(sum(fold.losses(trials) for fold in self.folds) / self.weight)

    @property
    def numbers(self) -> Array:
        """Places of the objects that are tested."""
        return np.unique(np.concatenate([np.empty(0, dtype=np.intp), *self.tested]))

    def scores(self, values: Array) -> Array:  # (t, q)
        """Predictions of the objects that are tested; the mean over the rounds."""

        def of_fold(fold: ExactFold) -> Array:
            coefficients, constant = fold.solve(values)
            return np.asarray(fold.rows @ coefficients + constant)

        return self.means(of_fold)

    def means(self, scores: Callable[[ExactFold], Array]) -> Array:  # (t, q)
        """What each fold says of its objects, as the mean over the rounds."""
        numbers = self.numbers
        total = np.zeros((len(numbers), self.folds[0].Y.shape[1] if self.folds else 0))
        count = np.zeros(len(numbers))
        for fold, tested in zip(self.folds, self.tested, strict=True):
            at = np.searchsorted(numbers, tested)
            total[at] += scores(fold)
            count[at] += 1
        return np.asarray(total / count[:, None])


def summed(parts: Iterable[tuple[Array, float]]) -> Array:
    """A weighted sum of arrays, whose memory is used for something else."""
    total: Array | None = None
    for K, weight in parts:
        if weight != 1:
            K *= weight
        if total is None:
            total = K
        else:
            total += K
    assert total is not None
    return total


def random_signs(q: int) -> Array:  # (q, SKETCHED)
    """Sums of q targets whose squared errors are those of all targets on average."""
    return np.random.default_rng(0).choice([-1.0, 1.0], (q, SKETCHED)) / np.sqrt(SKETCHED)
