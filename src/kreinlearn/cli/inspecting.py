"""kreinlearn inspect: what a similarity is like."""

from __future__ import annotations

import argparse

from kreinlearn.cli.messages import Talk
from kreinlearn.cli.output import require_free, show_json, show_pairs


def run(options: argparse.Namespace, talk: Talk) -> int:
    require_free(options, {"--html": options.html}, [options.file, options.labels])
    from kreinlearn.cli import data, kernels
    from kreinlearn.inspection import inspect

    given = data.load(options, talk, streams=True)
    found = inspect(
        given.X,
        given.kernel,
        y=None if given.target is None else given.target.values,
        kernel_params=kernels.params_of(options) or None,
        n_samples=options.samples,
        n_jobs=options.jobs,
        random_state=options.seed,
        verbose=talk.level,
    )
    if options.html is not None:
        from kreinlearn.report import write_report

        write_report(options.html, inspection=found, source=data.named(given, options))
        talk.note(f"report: {options.html}")
    if options.json:
        show_json({"file": str(options.file), **vars(found)})
        return 0
    show_pairs(f"{options.file.name}, {given.kernel}", found.rows())
    print(found.advice)
    return 0
