"""kreinlearn reproduce: check the arguments, and call ``kreinlearn.paper``."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from kreinlearn.paper.command import reproduce
from kreinlearn.paper.scale import ALL, NAMES, QUICK
from kreinlearn.paper.tasks import JournalError


def run(options: argparse.Namespace) -> int:
    _check(options, options.parser)
    names = list(NAMES) if {"all", "quick"} & set(options.what) else options.what
    small = options.quick or "quick" in options.what
    try:
        return reproduce(
            names,
            QUICK if small else ALL,
            options.output,
            options.jobs,
            fresh=options.fresh,
            report_only=options.report_only,
            command=" ".join(["kreinlearn reproduce", *options.what, *["--quick"] * options.quick]),
        )
    except JournalError as error:
        raise ValueError(str(error)) from error


def _check(options: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """Check what argparse does not check."""
    others = " ".join(name for name in options.what if name != "quick")
    if "quick" in options.what and others:
        parser.error(f"quick means all parts in small; for some: reproduce {others} --quick")
    if options.jobs is not None and options.jobs < 1:
        parser.error(f"--jobs {options.jobs}: it must be 1 or more")
    if options.output.exists() and not options.output.is_dir():
        parser.error(f"--output {options.output}: it is a file; name a folder")
    if options.fresh and options.report_only:
        parser.error("--fresh measures again and --report-only measures nothing: give one of them")
    home = os.environ.get("KREINLEARN_DATA")
    if home and not Path(home).expanduser().is_dir():
        parser.error(f"KREINLEARN_DATA={home}: there is no such folder; correct or unset it")
