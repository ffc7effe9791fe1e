"""kreinlearn inspect: tell what a similarity is like."""

from __future__ import annotations

import argparse

from kreinlearn.cli.arguments import kernel_parameters
from kreinlearn.cli.messages import Talk
from kreinlearn.cli.output import command, require_free, show_json, show_table


def run(options: argparse.Namespace, talk: Talk) -> int:
    require_free(options, {"--html": options.html}, [options.file, options.labels])
    from kreinlearn.cli import data
    from kreinlearn.inspection import inspect

    given = data.load(options, talk, streams=True)
    inspection = inspect(
        given.X,
        given.kernel,
        y=None if given.target is None else given.target.values,
        n_samples=options.samples,
        **kernel_parameters(options, talk.level),
    )
    if options.html is not None:
        data.write_report(options.html, given, options, talk, inspection=inspection)
    if options.json:
        show_json({"file": str(options.file), **vars(inspection)})
    else:
        print(f"{inspection.answer} {inspection.advice}".lstrip())
        show_table(f"{options.file.name}, {given.shown}", inspection.rows())
        end = "--target COLUMN" if given.target is None else "--html report.html"
        talk.note(f"next: {command('evaluate', options, end)}")
    return 0
