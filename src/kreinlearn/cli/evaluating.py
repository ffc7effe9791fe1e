"""kreinlearn evaluate: learners and baselines side by side, cross-validated."""

from __future__ import annotations

import argparse

from kreinlearn.cli.messages import Talk, in_flags
from kreinlearn.cli.output import require_free, show_json, show_table


def run(options: argparse.Namespace, talk: Talk) -> int:
    outputs = {"--html": options.html, "--csv": options.csv}
    require_free(options, outputs, [options.file, options.labels])
    from kreinlearn.cli import data, kernels
    from kreinlearn.evaluation import evaluate

    given = data.load(options, talk)
    target = given.target
    assert target is not None
    talk.note(f"{target.name}: {target.why} -> {target.task}")
    found = evaluate(
        given.X,
        target.values,
        given.kernel,
        kernel_params=kernels.params_of(options) or None,
        cv=options.cv,
        n_landmarks=options.landmarks,
        task=target.task,
        n_jobs=options.jobs,
        memory_budget=options.memory,
        random_state=options.seed,
        verbose=talk.level,
    )
    if options.csv is not None:
        found.to_csv(options.csv)
        talk.note(f"table: {options.csv}")
    if options.html is not None:
        from kreinlearn.report import write_report

        write_report(options.html, evaluation=found, source=data.named(given, options))
        talk.note(f"report: {options.html}")
    if options.json:
        show_json({"file": str(options.file), **found.to_dict()})
    else:
        title = f"{options.file.name}, {found.kernel}, {found.n_folds} folds"
        show_table(title, found.header, found.rows())
        for line in (found.verdict, *found.notes):
            print(in_flags(line))
    return 0 if found.best is not None else 1
