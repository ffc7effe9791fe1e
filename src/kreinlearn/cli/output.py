"""What a command writes: where it may go, and how results are shown on stdout."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kreinlearn.cli.messages import Talk
from kreinlearn.data.writing import Block, as_json, has_formula

STDOUT = Path("-")


def require_free(
    options: argparse.Namespace, outputs: Mapping[str, Path | None], inputs: Sequence[Path | None]
) -> None:
    """Raise an error before any work if an output, given by its flag, cannot be written."""
    given = {flag: one for flag, one in outputs.items() if one is not None and one != STDOUT}
    for flag, output in given.items():
        if any(one is not None and _same(one, output) for one in inputs):
            options.parser.error(
                f"{flag}: {output} is read, and would be written: give it another name"
            )
        before = [other for other in given if other != flag and _same(given[other], output)]
        if before:
            options.parser.error(f"{flag} and {before[0]} are one file, {output}: name two")
        _require_writable(output, options.force)


def _require_writable(output: Path, force: bool) -> None:
    folder = output.absolute().parent
    if not folder.is_dir():
        raise ValueError(f"{output} cannot be written: there is no folder {folder}")
    if not os.access(folder, os.W_OK):
        raise ValueError(f"{output} cannot be written: the folder is not yours to write to")
    if os.path.lexists(output) and not force:  # a link to a file that is not there, too
        raise ValueError(f"{output} exists; give it another name, or --force to replace it")
    if output.is_dir():
        raise ValueError(f"{output} is a folder; name a file")


def _same(one: Path, other: Path) -> bool:
    there = one.exists() and other.exists()
    return one.samefile(other) if there else one.resolve() == other.resolve()


def say_formulas(block: Block, output: Path, options: argparse.Namespace, talk: Talk) -> None:
    """Say that --spreadsheet exists, if a spreadsheet would run a text that is written."""
    as_text = output == STDOUT or output.suffix in (".csv", ".tsv")
    if as_text and not options.spreadsheet and has_formula(block):
        talk.note(
            "some texts begin as formulas do, and a spreadsheet would run them; --spreadsheet "
            "writes an apostrophe before them"
        )


# What to run next

INSTEAD = (
    "nothing was learned: try other columns (--column) or another similarity (--kernel; kreinlearn "
    "kernels lists them), and look at the data with kreinlearn inspect"
)
SHARED = ("target", "labels", "column", "id", "kernel", "kernel_param", "delimiter", "decimal",
          "encoding")  # fmt: skip


def command(
    name: str, options: argparse.Namespace, end: str, more: Mapping[str, str] | None = None
) -> str:
    """A command on the same file, with the flags of this call that say what is learned."""
    words = ["kreinlearn", name, str(options.file)]
    for dest in SHARED:
        value = getattr(options, dest, None)
        for one in value if isinstance(value, list) else [] if value is None else [value]:
            shown = f"{one[0]}={one[1]}" if isinstance(one, tuple) else str(one)
            words += [f"--{dest.replace('_', '-')}", shown]
    words += ["--no-header"] * (not options.header) + ["--drop-missing"] * options.drop_missing
    words += [word for pair in (more or {}).items() for word in pair]
    return " ".join([*map(shlex.quote, words), end])


# On stdout


def show_table(
    title: str, rows: Sequence[Sequence[Any]], header: Sequence[str] = ("finding", "value")
) -> None:
    from rich.console import Console

    from kreinlearn.report import Table

    Table(title, header, [[str(cell) for cell in row] for row in rows]).show(Console())


def show_findings(findings: Mapping[str, Any], options: argparse.Namespace) -> None:
    """Show what a command has found, as JSON or as a table that its output file is the title of."""
    if options.json:
        show_json(findings)
        return
    rows = [(name.replace("_", " "), _cell(value)) for name, value in findings.items()
            if name != "output" and value is not None]  # fmt: skip
    show_table(str(options.output), rows)


def _cell(value: Any) -> str:
    if isinstance(value, np.ndarray):
        shown = ", ".join(map(str, value[:12].tolist()))
        return f"{len(value)}: {shown}{', ...' * (len(value) > 12)}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_cell(one)}" for name, one in value.items())
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def show_json(findings: Mapping[str, Any]) -> None:
    json.dump(as_json(findings), sys.stdout, allow_nan=False, ensure_ascii=False)
    print()
