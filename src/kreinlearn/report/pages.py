"""write_report: what ``inspect`` and ``evaluate`` found, as one page that needs nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

from kreinlearn.data.files import replacing
from kreinlearn.evaluation import Evaluation
from kreinlearn.inspection import Inspection
from kreinlearn.inspection.result import percent
from kreinlearn.plotting import ComparisonDisplay, SpectrumDisplay
from kreinlearn.plotting.style import MISSING, SETTINGS
from kreinlearn.report.html import to_html
from kreinlearn.report.model import (
    Block,
    Document,
    Picture,
    Section,
    Table,
    Verdict,
    literal,
    versions,
)
from kreinlearn.report.svg import drawing

WIDTH = 3.8  # inches, as wide as a phone: there the text of a picture has its own size

MEANINGS = (
    "indefiniteness: the share of the spectrum that is negative, 0 % for a positive definite "
    "kernel; it grows with the number of objects, so it is given for parts of the sample, too",
    "signature: how many eigenvalues are positive, negative and zero",
    "effective rank: how many dimensions hold all but a few percent of the similarities",
    "negative squared distances: pairs of objects with k(x, x) + k(z, z) - 2 k(x, z) below zero",
    "label signal in the negative part: how much of what the labels say lies there",
)
ABOUT = {
    "classification": "The error is the percentage of objects that were given a wrong label",
    "regression": "1 - R^2 is the squared error over the variance of the targets, 1 for a constant",
}


def write_report(
    path: Any,
    *,
    inspection: Inspection | None = None,
    evaluation: Evaluation | None = None,
    title: str | None = None,
    source: str | None = None,
) -> None:
    """One HTML page: a verdict, the numbers, the pictures and the advice.

    The page holds its style and pictures, runs no script and asks for nothing from a network. A
    file of that name is replaced when all is written. Pictures need matplotlib (the extra "plot").

    Parameters
    ----------
    path : the file to write.
    inspection : what ``inspect`` found.
    evaluation : what ``evaluate`` found.
    title : of the page.
    source : where the objects come from, in words; it is shown as it is.
    """
    if inspection is None and evaluation is None:
        raise ValueError("a report is on an inspection, an evaluation or both; pass one of them")
    page = to_html(document_of(inspection, evaluation, title, source))
    with replacing(Path(path)) as temporary:
        temporary.write_text(page, encoding="utf8")


def document_of(
    inspection: Inspection | None,
    evaluation: Evaluation | None,
    title: str | None = None,
    source: str | None = None,
) -> Document:
    lead: list[Block] = [Verdict(literal(" ".join(_verdict(inspection, evaluation))))]
    sections = []
    if evaluation is not None:
        sections.append(_of_evaluation(evaluation))
    if inspection is not None:
        sections.append(_of_inspection(inspection))
        sections.append(Section("What to do", [inspection.advice]))
    sections.append(_how(inspection, evaluation, source))
    return Document(literal(title or _title(source)), lead, sections)


def _title(source: str | None) -> str:
    return f"Learning from similarities: {source}" if source else "Learning from similarities"


def _verdict(inspection: Inspection | None, evaluation: Evaluation | None) -> Iterator[str]:
    if inspection is not None:
        yield in_a_sentence(inspection)
    if evaluation is not None:
        yield evaluation.verdict


def in_a_sentence(found: Inspection) -> str:
    """What kind of similarity it is."""
    what = f"This {found.kind}"
    if found.indistinct:
        return f"{what} tells no two objects apart."
    if found.positive_definite:
        return f"{what} is positive definite on the {found.n_sampled:,} objects looked at."
    share = percent(found.indefiniteness[found.n_sampled])
    return f"{what} is not positive definite: {share} of its spectrum is negative."


# Sections


def _of_evaluation(found: Evaluation) -> Section:
    tried = [row for row, score in zip(found.rows(), found.scores, strict=True) if not score.failed]
    table = Table(
        f"Errors on {found.n_folds} folds of {found.n_objects:,} objects",
        found.header,
        [[literal(cell) for cell in row] for row in tried],
        [
            f"{ABOUT[found.task]}, mean and standard error over the folds, which are the same for "
            "all. Differences from the best are paired fold by fold; p is two-sided, of a t test "
            "corrected for training parts that overlap. Seconds are means of a fold.",
        ],
    )
    blocks: list[Block] = [table] if tried else []
    if tried:
        blocks.append(_comparison(found))
    failed = [literal(f"{score.name}: {score.failed}") for score in found.scores if score.failed]
    for what, items in (("Learners that failed:", failed), ("To be known:", found.notes)):
        if items:
            blocks += [what, _listed(items)]
    return Section("Which learner errs least", blocks)


def _comparison(found: Evaluation) -> Block:
    told = [f"{s.name} {found.shown(s.mean)}" for s in found.scores if not s.failed]
    display = ComparisonDisplay(found)
    beyond = any(score.mean > display.right for score in found.scores)
    return _drawn(
        "errors",
        f"Mean {found.metric} of each learner; bars are one standard error, Krein learners are "
        f"filled.{' A triangle at the edge lies beyond it.' if beyond else ''}",
        f"Dot plot of {found.metric} by learner: {', '.join(told)}.",
        display.plot,
        display.size[1],
    )


def _of_inspection(found: Inspection) -> Section:
    rows = [list(row) for row in found.rows()]
    table = Table(f"What was found about the {found.kind}", ("finding", "value"), rows)
    blocks: list[Block] = [table]
    if not found.indistinct and len(found.eigenvalues):
        blocks.append(_spectrum(found))
    shown = {name for name, _ in found.rows()}
    blocks += ["In other words:", _listed(m for m in MEANINGS if m.partition(":")[0] in shown)]
    return Section(f"What this {found.kind} is like", blocks)


def _listed(items: Iterable[str]) -> str:
    return "\n".join(f"- {' '.join(item.split())}" for item in items)


def _spectrum(found: Inspection) -> Block:
    positive, negative, _ = found.signature
    share = percent(found.indefiniteness[found.n_sampled])
    display = SpectrumDisplay(found.eigenvalues, relative=True)
    return _drawn(
        "spectrum",
        "Eigenvalues of the similarity matrix by decreasing magnitude, those of each sign apart.",
        f"Line plot of {positive} positive and {negative} negative eigenvalues; {share} of the sum "
        "of magnitudes is negative.",
        display.plot,
        2.8,
    )


def _drawn(
    name: str, caption: str, alt: str, plot: Callable[[Any], Any], height: float
) -> Picture | str:
    try:
        import matplotlib
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure
    except ImportError:
        return f"A picture is not here: {MISSING}."
    with matplotlib.rc_context({**matplotlib.rcParamsDefault, **SETTINGS}):
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        FigureCanvasSVG(figure)
        axes = figure.add_subplot()
        plot(axes)
        axes.set_title("")  # the caption says it
        return Picture(name, caption, alt, drawing(figure), fluid=True)


def _how(
    inspection: Inspection | None, evaluation: Evaluation | None, source: str | None
) -> Section:
    own = import_module("kreinlearn").__version__
    named = ", ".join(f"{name} {number}" for name, number in versions(own).items())
    kernels = dict.fromkeys(found.kernel for found in (inspection, evaluation) if found is not None)
    kernel = "; ".join(filter(None, kernels))
    items = {"objects": source, "kernel": kernel, "date": f"{datetime.now(UTC):%Y-%m-%d}"}
    lines = [
        f"{name}: {literal(text)}" for name, text in {**items, "versions": named}.items() if text
    ]
    return Section("How this was made", [_listed(lines)])
