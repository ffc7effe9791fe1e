"""What a command writes: refused beforehand where it must not go, then whole or not at all."""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

STDOUT = Path("-")


def require_free(
    options: argparse.Namespace, outputs: Mapping[str, Path | None], inputs: Sequence[Path | None]
) -> None:
    """An error before any work, if a file, by its flag, cannot be written or would be lost."""
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
    if output.exists() and not force:
        raise ValueError(f"{output} exists; give it another name, or --force to replace it")
    if output.is_dir() and output.suffix != ".zarr":
        raise ValueError(f"{output} is a folder; name a file")


def _same(one: Path, other: Path) -> bool:
    there = one.exists() and other.exists()
    return one.samefile(other) if there else one.resolve() == other.resolve()


@contextmanager
def replacing_folder(path: Path) -> Iterator[Path]:
    """A folder beside the one that it replaces at the end; it goes if anything fails."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    before = path.with_name(f".{path.name}.{os.getpid()}.before")
    try:
        yield temporary
        if path.exists():
            path.replace(before)
        try:
            temporary.replace(path)
        except BaseException:
            before.replace(path)
            raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        shutil.rmtree(before, ignore_errors=True)


# On stdout


def show_table(title: str, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    from rich.console import Console

    from kreinlearn.report import Table

    Table(title, header, [[str(cell) for cell in row] for row in rows]).show(Console())


def show_pairs(title: str, rows: Sequence[tuple[str, Any]]) -> None:
    """Names and values, as a table without a header."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title), title_justify="left", title_style="bold", show_header=False)
    for name, value in rows:
        table.add_row(Text(name), Text(str(value)))
    Console().print(table)


def show_json(found: Mapping[str, Any]) -> None:
    json.dump(plain(found), sys.stdout, allow_nan=False, ensure_ascii=False)
    print()


def plain(value: Any) -> Any:
    """What JSON knows; what is no number is null."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if is_dataclass(value) and not isinstance(value, type):
        value = {one.name: getattr(value, one.name) for one in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)
