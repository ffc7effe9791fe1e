"""kreinlearn evaluate: compare learners and baselines by cross-validation."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING

from kreinlearn.cli.arguments import FRONT, LEARNERS, kernel_parameters
from kreinlearn.cli.messages import Talk
from kreinlearn.cli.output import INSTEAD, command, require_free, show_json, show_table

if TYPE_CHECKING:
    from kreinlearn.evaluation import Evaluation


def next_command(options: argparse.Namespace, evaluation: Evaluation) -> str | None:
    """The command that fits the recommended learner, as far as fit knows it and it has learned."""
    if not _learned(evaluation):
        return None
    wanted = None if evaluation.recommended is None else evaluation.recommended.name
    for name, both in LEARNERS.items():
        if any(wanted in names for names in both):
            more = {} if name in (FRONT, "neighbours", "constant") else {"--estimator": name}
            return command("fit", options, "-o model.krein", more)
    return None


def _learned(evaluation: Evaluation) -> bool:
    """Whether the best learner is better than a guess, or it is not known."""
    return evaluation.mistakes is None or evaluation.mistakes.learned


def show(evaluation: Evaluation, source: str) -> None:
    """Print the answer, where the best learner errs, and the comparison of all learners."""
    if evaluation.mistakes is not None:
        from rich.console import Console

        from kreinlearn.report.mistakes import tables_of

        print(evaluation.answer)
        for table in tables_of(evaluation.mistakes):
            table.show(Console())
    title = f"{source}, {evaluation.n_folds} folds"
    show_table(title, evaluation.rows(), evaluation.header)
    for line in (evaluation.verdict, *evaluation.notes):
        print(line)


def run(options: argparse.Namespace, talk: Talk) -> int:
    outputs = {"--html": options.html, "--markdown": options.markdown, "--csv": options.csv}
    if options.markdown is not None and options.markdown.suffix != ".md":
        options.parser.error(f"--markdown {options.markdown}: it must end in .md")
    require_free(options, outputs, [options.file, options.labels])
    from kreinlearn.cli import data
    from kreinlearn.data.memory import Resources
    from kreinlearn.evaluation import evaluate

    given = data.load(options, talk)
    target = given.target
    assert target is not None
    talk.note(f"{target.name}: {target.why} -> {target.task}")
    evaluation = evaluate(
        given.X,
        target.values,
        given.kernel,
        learners=list(dict.fromkeys(options.learners)) if options.learners else "auto",
        cv=options.cv,
        landmarks=options.landmarks,
        task=target.task,
        resources=Resources(memory_budget=options.memory),
        time_limit=options.time_limit,
        **kernel_parameters(options, talk.level),
    )
    if evaluation.mistakes is not None:  # rows and lines as in the file
        mistakes = evaluation.mistakes.renumbered(given.rows, given.line)
        evaluation = replace(evaluation, mistakes=mistakes)
    if options.csv is not None:
        evaluation.to_csv(options.csv)
        talk.note(f"table: {options.csv}")
    step = next_command(options, evaluation)
    for path in (options.html, options.markdown):
        if path is not None:
            data.write_report(path, given, options, talk, evaluation=evaluation, next_step=step)
    if options.json:
        show_json({"file": str(options.file), **evaluation.to_dict()})
    else:
        show(evaluation, f"{options.file.name}, {evaluation.kernel}")
        if step is not None:
            talk.note(f"next: {step}")
        elif not _learned(evaluation):
            talk.note(INSTEAD)
    return 0 if evaluation.best is not None else 1
