"""kreinlearn evaluate: compare learners and baselines by cross-validation."""

from __future__ import annotations

import argparse

from kreinlearn.cli.arguments import kernel_parameters
from kreinlearn.cli.messages import Talk, in_flags
from kreinlearn.cli.output import require_free, show_json, show_table


def run(options: argparse.Namespace, talk: Talk) -> int:
    outputs = {"--html": options.html, "--csv": options.csv}
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
        cv=options.cv,
        landmarks=options.landmarks,
        task=target.task,
        resources=Resources(memory_budget=options.memory),
        time_limit=options.time_limit,
        **kernel_parameters(options, talk.level),
    )
    if options.csv is not None:
        evaluation.to_csv(options.csv)
        talk.note(f"table: {options.csv}")
    if options.html is not None:
        data.write_report(given, options, talk, evaluation=evaluation)
    if options.json:
        show_json({"file": str(options.file), **evaluation.to_dict()})
    else:
        title = f"{options.file.name}, {evaluation.kernel}, {evaluation.n_folds} folds"
        show_table(title, evaluation.rows(), evaluation.header)
        for line in (evaluation.verdict, *evaluation.notes):
            print(in_flags(line))
    return 0 if evaluation.best is not None else 1
