"""The verdict on a comparison, in a sentence or two."""

from __future__ import annotations

from kreinlearn.evaluation.findings import (
    BASELINE,
    FEWEST_FOLDS,
    KREIN,
    TRIVIAL,
    Evaluation,
    Score,
    beyond_chance,
    in_words,
)
from kreinlearn.evaluation.paired import LEVEL, paired_difference


def verdict(found: Evaluation) -> str:
    best = found.best
    if best is None:
        return f"Every learner failed; {found.scores[0].name}: {found.scores[0].failed}"
    if best.kind == TRIVIAL:
        return f"Nothing was learnt: {_errs(found, best)}, and no learner does better."
    trivial = next((s for s in found.scores if s.kind == TRIVIAL and s.failed is None), None)
    if trivial is not None and not _learnt(found, best, trivial):
        said = f"{_errs(found, best)}, {trivial.name} {_on(found, trivial)}"
        return f"Nothing was learnt that is sure: {said}; the difference may be chance."
    other = _other(found, best)
    if other is None:
        return f"{_errs(found, best)}."
    said = f"{_errs(found, best)}, {other.name} {_on(found, other)}"
    return f"{said}; {_chance(found, best, other)}."


def _other(found: Evaluation, best: Score) -> Score | None:
    """The best of the other kind: a baseline beside a Krein learner, or the other way round."""
    kind = BASELINE if best.kind == KREIN else KREIN
    return next((s for s in found.scores if s.kind == kind and s.failed is None), None)


def _errs(found: Evaluation, score: Score) -> str:
    error = f"(s.e. {found.shown(score.standard_error)})"
    if found.task == "classification":
        return f"{score.name} errs on {found.shown(score.mean)} % {error}"
    return f"{score.name} has {found.metric} = {found.shown(score.mean)} {error}"


def _on(found: Evaluation, score: Score) -> str:
    if found.task == "classification":
        return f"on {found.shown(score.mean)} %"
    return found.shown(score.mean)


def _learnt(found: Evaluation, best: Score, trivial: Score) -> bool:
    """Whether the best errs less than a constant, object by object, as the best of so many."""
    tried = sum(score.kind != TRIVIAL for score in found.scores)
    one, other = (s.losses if len(best.losses) else s.errors for s in (best, trivial))
    return paired_difference(one, other, 0.0).p_better < LEVEL / tried


def _chance(found: Evaluation, best: Score, other: Score) -> str:
    if found.n_folds < FEWEST_FOLDS:
        return f"{found.n_folds} folds are too few to say whether the difference is chance"
    gap = paired_difference(best.errors, other.errors, found.ratio)
    if gap.mean == 0:
        return "there is no difference"
    sure = "is larger than chance" if beyond_chance(gap, found.n_folds) else "may be chance"
    shown = in_words(gap.p_either)
    p = f"p {shown}" if shown.startswith("<") else f"p = {shown}"
    return f"the difference {sure} ({p} on {found.n_folds} folds)"
