"""The function ``write_report``: results of ``inspect`` and ``evaluate`` as one page."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from kreinlearn.data.writing import replacing
from kreinlearn.evaluation import Evaluation, Score
from kreinlearn.inspection import Inspection
from kreinlearn.inspection.result import percent
from kreinlearn.plotting import KernelWeightsDisplay, SpectrumDisplay
from kreinlearn.plotting.style import MISSING, Display
from kreinlearn.report import model
from kreinlearn.report.html import to_html
from kreinlearn.report.markdown import to_markdown
from kreinlearn.report.mistakes import tables_of
from kreinlearn.report.model import Block, Document, Picture, Section, Table, Verdict, literal
from kreinlearn.report.svg import drawing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH = 3.8  # inches, the width of a phone: there the text of a picture has its own size
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
    path: str | os.PathLike[str], *, inspection: Inspection | None = None,
    evaluation: Evaluation | None = None, title: str | None = None, source: str | None = None,
    next_step: str | None = None,
) -> None:  # fmt: skip
    """Write one page with the answer in plain words, where it errs, the numbers and the advice.

    A page of HTML contains its style and its pictures, runs no script and asks for nothing from a
    network. Pictures need matplotlib (the extra "plot"). A file that ends in .md is Markdown
    without pictures.

    Parameters
    ----------
    path : str or path-like
        The file to write. A file of that name is replaced once everything is written.
    inspection : Inspection or None, default=None
        The result of ``inspect``.
    evaluation : Evaluation or None, default=None
        The result of ``evaluate``.
    title : str or None, default=None
        The title of the page.
    source : str or None, default=None
        Where the objects come from, in words; it is shown as it is.
    next_step : str or None, default=None
        A command to run next; it is shown as it is.
    """
    if inspection is None and evaluation is None:
        raise ValueError("a report is on an inspection, an evaluation or both; pass one of them")
    document = document_of(inspection, evaluation, title, source, next_step)
    is_markdown = Path(path).suffix == ".md"
    page = to_markdown(_without_pictures(document)) if is_markdown else to_html(document)
    with replacing(Path(path)) as temporary:
        temporary.write_text(page, encoding="utf8")


def document_of(
    inspection: Inspection | None, evaluation: Evaluation | None, title: str | None = None,
    source: str | None = None, next_step: str | None = None,
) -> Document:  # fmt: skip
    """The document of a report, with the answer before all sections and what is technical last."""
    verdict, sections = [], []
    if evaluation is not None:
        verdict += [evaluation.answer, evaluation.verdict]
        if evaluation.mistakes is not None:
            name = f"Where {evaluation.mistakes.learner} errs"
            sections.append(Section(literal(name), list(tables_of(evaluation.mistakes))))
    if next_step is not None:
        sections.append(Section("What to run next", [f"`{next_step}`"]))
    if evaluation is not None:
        sections.append(Section("Which learner errs least", list(_of_evaluation(evaluation))))
    if inspection is not None:
        verdict += [inspection.answer, in_a_sentence(inspection)]
        name = f"What this {inspection.kind} is like"
        sections.append(Section(name, list(_of_inspection(inspection))))
        sections.append(Section("What to do", [inspection.advice]))
    kernels = [result.kernel for result in (inspection, evaluation) if result is not None]
    sections.append(Section("How this was made", [_how(kernels, source)]))
    name = "Learning from similarities" + (f": {source}" if source else "")
    return Document(
        literal(title or name), [Verdict(literal(" ".join(filter(None, verdict))))], sections
    )


def _without_pictures(document: Document) -> Document:
    """The same document, whose pictures would be files of their own."""
    for part in document.sections:
        part.blocks = [block for block in part.blocks if not isinstance(block, Picture)]
    return document


def in_a_sentence(result: Inspection) -> str:
    """What kind of similarity it is."""
    what = f"This {result.kind}"
    if result.indistinct:
        return f"{what} tells no two objects apart."
    if result.positive_definite:
        return f"{what} is positive definite on the {result.n_sampled:,} objects looked at."
    share = percent(result.indefiniteness[result.n_sampled])
    return f"{what} is not positive definite: {share} of its spectrum is negative."


def _of_evaluation(result: Evaluation) -> Iterator[Block]:
    """The blocks on an evaluation: errors, a picture of them, failures and notes."""
    rows = zip(result.rows(), result.scores, strict=True)
    tried = [[literal(cell) for cell in row] for row, score in rows if not score.failed]
    if tried:
        note = (
            f"{ABOUT[result.task]}, mean and standard error over the folds, which are the same for "
            "all. Differences from the best, of those fitted to as many objects, are paired fold "
            "by fold; p is two-sided, of a t test corrected for training parts that overlap. "
            "Seconds are means of a fold."
        )
        title = f"Errors on {result.n_folds} folds of {result.n_objects:,} objects"
        yield Table(title, result.header, tried, [note])
    if result.weighted is not None:
        yield _weights(result.weighted)
    failed = [literal(f"{score.name}: {score.failed}") for score in result.scores if score.failed]
    for what, items in (("Learners without a result:", failed), ("Notes:", result.notes)):
        if items:
            yield from (what, model.bulleted(items))


def _weights(score: Score) -> Block:
    weights = score.kernel_weights or {}
    display = KernelWeightsDisplay(weights, score.kernel_losses)
    caption = (
        f"Weights of the kernels in the sum that {score.name} has learned on the first fold, and "
        "the leave-one-out loss of each kernel alone."
    )
    shown = ", ".join(f"{name} {weight:.2g}" for name, weight in weights.items())
    alt = f"Bar plot of the weights of kernels: {shown}."
    return _drawn("weights", caption, alt, display, display.size[1])


def _of_inspection(result: Inspection) -> Iterator[Block]:
    """The blocks on an inspection: findings, the spectrum, and what the findings mean."""
    rows = [list(row) for row in result.rows()]
    yield Table(f"What was found about the {result.kind}", ("finding", "value"), rows)
    if not result.indistinct and len(result.eigenvalues):
        yield _spectrum(result)
    shown = {name for name, _ in rows}
    yield "In other words:"
    yield model.bulleted(text for text in MEANINGS if text.partition(":")[0] in shown)


def _spectrum(result: Inspection) -> Block:
    positive, negative, _ = result.signature
    share = percent(result.indefiniteness[result.n_sampled])
    caption = (
        "Eigenvalues of the similarity matrix by decreasing magnitude, those of each sign apart."
    )
    alt = (
        f"Line plot of {positive} positive and {negative} negative eigenvalues; {share} of the sum "
        "of magnitudes is negative."
    )
    display = SpectrumDisplay(result.eigenvalues, relative=True)
    return _drawn("spectrum", caption, alt, display, 2.8)


def _drawn(name: str, caption: str, alt: str, display: Display, height: float) -> Picture | str:
    """A picture of a display, or a sentence if there is no matplotlib."""

    def draw(figure: Figure) -> None:
        display.plot(figure.add_subplot())
        display.ax_.set_title("")  # the caption says it

    try:
        return Picture(name, caption, alt, drawing((WIDTH, height), draw), fluid=True)
    except ImportError:
        return f"A picture is not here: {MISSING}."


def _how(kernels: list[str], source: str | None) -> str:
    """A list of what the report depends on."""
    kernel = "; ".join(filter(None, dict.fromkeys(kernels)))
    items = {"objects": source, "kernel": kernel, **model.made_by()}
    return model.bulleted(f"{name}: {literal(text)}" for name, text in items.items() if text)
