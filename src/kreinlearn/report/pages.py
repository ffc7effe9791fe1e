"""The function ``write_report``: results of ``inspect`` and ``evaluate`` as one page."""

from __future__ import annotations

import io
import os
import platform
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from kreinlearn.data.writing import replacing
from kreinlearn.evaluation import Evaluation, Score
from kreinlearn.inspection import Inspection
from kreinlearn.inspection.result import percent
from kreinlearn.plotting import KernelWeightsDisplay, SpectrumDisplay
from kreinlearn.plotting.style import MISSING, SETTINGS, Display
from kreinlearn.report.mistakes import tables_of
from kreinlearn.report.model import Block, Page, Picture, Table
from kreinlearn.report.template import to_html, to_markdown

WIDTH = 3.8  # inches, the width of a phone: there the text of a picture has its own size
PACKAGES = ("kreinlearn", "numpy", "scipy", "scikit-learn", "numba")
MEANINGS = {
    "indefiniteness": "the share of the spectrum that is negative, 0 % for a positive definite "
    "kernel; it grows with the number of objects, so it is given for parts of the sample, too",
    "signature": "how many eigenvalues are positive, negative and zero",
    "effective rank": "how many dimensions hold all but a few percent of the similarities",
    "negative squared distances": "pairs of objects with k(x, x) + k(z, z) - 2 k(x, z) below zero",
    "label signal in the negative part": "how much of what the labels say lies there",
}
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
    verdict: list[str] = []
    sections: dict[str, list[Block]] = {}
    if evaluation is not None:
        verdict += [evaluation.answer, evaluation.verdict]
        if evaluation.mistakes is not None:
            name = f"Where {evaluation.mistakes.learner} errs"
            sections[name] = list(tables_of(evaluation.mistakes))
    if next_step is not None:
        sections["What to run next"] = [next_step]
    if evaluation is not None:
        sections["Which learner errs least"] = list(_of_evaluation(evaluation))
    if inspection is not None:
        verdict += [inspection.answer, in_a_sentence(inspection)]
        sections[f"What this {inspection.kind} is like"] = list(_of_inspection(inspection))
        sections["What to do"] = [inspection.advice]
    kernels = [result.kernel for result in (inspection, evaluation) if result is not None]
    sections["How this was made"] = [made_of("; ".join(dict.fromkeys(kernels)), source)]
    name = "Learning from similarities" + (f": {source}" if source else "")
    write_page(Path(path), Page(title or name, " ".join(filter(None, verdict)), sections))


def write_page(path: Path, page: Page) -> None:
    """Write a page, as Markdown if the name says so; the file is whole or as it was before."""
    text = to_markdown(page) if path.suffix == ".md" else to_html(page)
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf8")


def made_of(kernel: str, source: str | None) -> list[str]:
    """A list of what results depend on."""
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    return [
        *([f"objects: {source}"] if source else []), *([f"kernel: {kernel}"] if kernel else []),
        f"date: {datetime.now(UTC):%Y-%m-%d}",
        f"versions: Python {platform.python_version()}, {versions}",
    ]  # fmt: skip


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
    """The blocks on an evaluation: errors, weights of kernels, failures and notes."""
    rows = zip(result.rows(), result.scores, strict=True)
    tried = [list(row) for row, score in rows if not score.failed]
    if tried:
        note = (
            f"{ABOUT[result.task]}, mean and standard error over the folds, which are the same for "
            "all. Differences from the best are paired fold by fold; p is two-sided, of a t test "
            "corrected for training parts that overlap. Seconds are means of a fold."
        )
        title = f"Errors on {result.n_folds} folds of {result.n_objects:,} objects"
        yield Table(title, result.header, tried, [note])
    if result.weighted is not None:
        yield _weights(result.weighted)
    failed = [f"{score.name}: {score.failed}" for score in result.scores if score.failed]
    for what, items in (("Learners without a result:", failed), ("Notes:", list(result.notes))):
        if items:
            yield from (what, items)


def _weights(score: Score) -> Block:
    weights = score.kernel_weights or {}
    caption = (
        f"Weights of the kernels in the sum that {score.name} has learned on the first fold, and "
        "the cross-validated loss of each kernel alone."
    )
    shown = ", ".join(f"{name} {weight:.2g}" for name, weight in weights.items())
    alt = f"Bar plot of the weights of kernels: {shown}."
    return drawn(caption, alt, KernelWeightsDisplay(weights, score.kernel_losses))


def _of_inspection(result: Inspection) -> Iterator[Block]:
    """The blocks on an inspection: findings, the spectrum, and what the findings mean."""
    rows = [list(row) for row in result.rows()]
    yield Table(f"What was found about the {result.kind}", ("finding", "value"), rows)
    if not result.indistinct and len(result.eigenvalues):
        positive, negative, _ = result.signature
        share = percent(result.indefiniteness[result.n_sampled])
        caption = (
            "Eigenvalues of the similarity matrix by decreasing magnitude, those of each sign "
            "apart."
        )
        alt = (
            f"Line plot of {positive} positive and {negative} negative eigenvalues; {share} of the "
            "sum of magnitudes is negative."
        )
        yield drawn(caption, alt, SpectrumDisplay(result.eigenvalues, relative=True), 2.8)
    yield "In other words:"
    shown = {name for name, _ in rows}
    yield [f"{name}: {meaning}" for name, meaning in MEANINGS.items() if name in shown]


def drawn(caption: str, alt: str, display: Display, height: float | None = None) -> Picture | str:
    """A picture of a display, the same each time, or a sentence if there is no matplotlib."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError:
        return f"A picture is not here: {MISSING}."
    with matplotlib.rc_context({**matplotlib.rcParamsDefault, **SETTINGS}):
        size = (WIDTH, height or display.size[1])
        figure, file = Figure(figsize=size, layout="constrained"), io.StringIO()
        display.plot(figure.add_subplot())
        display.ax_.set_title("")  # the caption says it
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(file, format="svg", metadata=nothing)
    return Picture(caption, alt, file.getvalue())
