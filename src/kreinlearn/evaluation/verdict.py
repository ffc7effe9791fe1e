"""The verdict on a comparison of learners, in a sentence or two."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from kreinlearn.evaluation.paired import LEVEL, paired_difference

if TYPE_CHECKING:
    from kreinlearn.evaluation.result import Evaluation, Score

KREIN, BASELINE, TRIVIAL = "Krein learner", "baseline", "trivial"  # the kinds of learners
FIRST = {"classification": "KreinClassifier", "regression": "KreinRegressor"}  # to be tried first
FEWEST_FOLDS = 4  # from which a difference may be called larger than chance


def verdict(result: Evaluation) -> str:
    """What the comparison shows about the best learner."""
    best = result.best
    if best is None:
        return f"No learner has a result; {result.scores[0].name}: {result.scores[0].failed}"
    if best.kind == TRIVIAL:
        return f"Nothing was learned: {_errs(result, best)}, and no learner does better."
    trivial = _other(result, TRIVIAL)
    if trivial is not None and not _learnt(result, best, trivial):
        said = f"{_errs(result, best)}, {_compared(result, trivial)}"
        return f"It is not certain that anything was learned: {said}; the difference may be chance."
    other = _other(result, BASELINE if best.kind == KREIN else KREIN)
    if other is None:
        return f"{_errs(result, best)}."
    said = f"{_errs(result, best)}, {_compared(result, other)}"
    return f"{said}; {_chance(result, best, other)}.{_advantage(best, other)}"


def recommended(result: Evaluation) -> Score | None:
    """The best learner; or the one to try first, if the lead of the best one may be chance."""
    best = result.best
    named = (s for s in result.scores if s.name == FIRST[result.task] and s.failed is None)
    first = next(named, None)
    if best is None or first is None or best.kind == TRIVIAL:
        return best
    gap = paired_difference(first.errors, best.errors, result.ratio)
    sure = result.n_folds >= FEWEST_FOLDS and gap.p_either < LEVEL
    return best if sure else first


def caution(result: Evaluation) -> str:
    """What the choice of the best learner means for its error, and which learner to use."""
    best, use = result.best, recommended(result)
    if best is None or use is None or best.kind == TRIVIAL:
        return ""
    n = sum(score.kind != TRIVIAL and score.failed is None for score in result.scores)
    if use is not best:
        lead = f"This is the best of {n} learners, and its lead may be chance"
        return f"{lead}: {_errs(result, use)}, and is recommended, as the learner to try first."
    return f"As it is the best of {n} learners, its figure is a little too good." if n > 1 else ""


def _advantage(best: Score, other: Score) -> str:
    """A sentence that says if the best learner had several kernels and the other one had not."""
    n = len(best.kernel_weights or ())
    if n < 2 or other.kernel_weights:
        return ""
    return f" {best.name} weighs {n} kernels and {other.name} does not, which may be the reason."


def _other(result: Evaluation, kind: str) -> Score | None:
    """The best learner of a kind."""
    return next((s for s in result.scores if s.kind == kind and s.failed is None), None)


def _errs(result: Evaluation, score: Score) -> str:
    mean, error = result.shown(score.mean), result.shown(score.standard_error)
    beside = f" (s.e. {error})" if error else ""
    if result.task == "classification":
        return f"{score.name} errs on {mean} %{beside}"
    return f"{score.name} has {result.metric} = {mean}{beside}"


def _compared(result: Evaluation, score: Score) -> str:
    mean = result.shown(score.mean)
    return f"{score.name} {f'on {mean} %' if result.task == 'classification' else mean}"


def _learnt(result: Evaluation, best: Score, trivial: Score) -> bool:
    """Whether the best learner is better than a constant, tested object by object.

    The level is divided by the number of learners, of which this is the best one.
    """
    tried = sum(score.kind != TRIVIAL for score in result.scores)
    one, other = (s.losses if len(best.losses) else s.errors for s in (best, trivial))
    return paired_difference(one, other, 0.0).p_better < LEVEL / tried


def _chance(result: Evaluation, best: Score, other: Score) -> str:
    if result.n_folds < FEWEST_FOLDS:
        folds = "one fold is" if result.n_folds == 1 else f"{result.n_folds} folds are"
        return f"{folds} too few to say whether the difference is chance"
    gap = paired_difference(best.errors, other.errors, result.ratio)
    if gap.mean == 0:
        return "there is no difference"
    sure = "is larger than chance" if gap.p_either < LEVEL else "may be chance"
    shown = p_in_words(gap.p_either)
    p = f"p {shown}" if shown.startswith("<") else f"p = {shown}"
    return f"the difference {sure} ({p} on {result.n_folds} folds)"


def p_in_words(p: float) -> str:
    """A probability with as many digits as it deserves; nothing if there is none."""
    if math.isnan(p):
        return ""
    return f"{p:.2f}" if p >= 0.01 else f"{p:.3f}" if p >= 0.001 else "< 0.001"
