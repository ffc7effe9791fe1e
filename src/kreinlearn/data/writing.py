"""Files that are written whole or not at all: tables, a block of rows at a time, and arrays."""

from __future__ import annotations

import csv
import json
import math
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from secrets import token_hex
from typing import IO, Any
from zipfile import ZipFile

import numpy as np
from numpy.typing import NDArray

from kreinlearn._system import sync
from kreinlearn.data.fields import is_number
from kreinlearn.data.tiles import library

Array = NDArray[Any]
Block = Mapping[str, Sequence[Any] | Array]  # columns by name, the same names every time
Write = Callable[[Block], object]
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")  # beginnings of what a spreadsheet may run


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a new file beside ``path``, which it replaces at the end unless something fails."""
    temporary = path.with_name(f".{path.name}.{token_hex(4)}.part")
    try:
        yield temporary
        sync(temporary)
        temporary.replace(path)
        sync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def folder_beside(path: Path) -> Iterator[Path]:
    """Give an empty folder beside ``path`` for the time being.

    It is removed at the end, also if a signal comes while it is made.
    """
    folder = path.with_name(f".{path.name}.{token_hex(4)}.tmp")
    try:
        folder.mkdir()
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# Tables


@contextmanager
def table_file(path: Path, *, spreadsheet: bool = False) -> Iterator[Write]:
    """Write a table, a block of rows at a time; the file comes into being when all is written.

    With ``spreadsheet``, texts of CSV and TSV files that a spreadsheet would run begin with an
    apostrophe.
    """
    with replacing(path) as temporary:
        if path.suffix == ".parquet":
            with _parquet_file(temporary) as write:
                yield write
        else:
            with temporary.open("x", newline="", encoding="utf-8") as file:
                write = TEXTS[path.suffix](file)
                yield harmless(write) if spreadsheet and path.suffix != ".jsonl" else write


def comma_separated(file: IO[str], delimiter: str = ",") -> Write:
    """Return a function that writes blocks of rows to a CSV file that is open."""
    writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
    started = False

    def write(block: Block) -> None:
        nonlocal started
        if not started:
            writer.writerow(block)
            started = True
        writer.writerows(zip(*map(_list, block.values()), strict=True))

    return write


def harmless(write: Write) -> Write:
    """Return the same function, with an apostrophe before texts that a spreadsheet would run."""

    def written(block: Block) -> None:
        columns = ([_harmless(cell) for cell in _list(column)] for column in block.values())
        write(dict(zip(map(_harmless, block), columns, strict=True)))

    return written


def _harmless(cell: Any) -> Any:
    return f"'{cell}" if is_formula(cell) else cell


def is_formula(cell: Any) -> bool:
    """Tell whether a spreadsheet may run a cell: a text that begins as a formula does."""
    return isinstance(cell, str) and cell.startswith(FORMULA) and not is_number(cell)


def has_formula(block: Block) -> bool:
    """Tell whether a spreadsheet may run a name or a cell of a block."""
    return any(map(is_formula, chain(block, *map(_list, block.values()))))


def _json_lines(file: IO[str]) -> Write:
    def write(block: Block) -> None:
        for row in zip(*map(_list, block.values()), strict=True):
            record = as_json(dict(zip(block, row, strict=True)))
            file.write(json.dumps(record, ensure_ascii=False) + "\n")

    return write


@contextmanager
def _parquet_file(path: Path) -> Iterator[Write]:
    pa, pq = library("pyarrow"), library("pyarrow.parquet")
    writer = None

    def write(block: Block) -> None:
        nonlocal writer
        batch = pa.record_batch([pa.array(column) for column in block.values()], list(block))
        writer = writer or pq.ParquetWriter(path, batch.schema)
        writer.write_batch(batch)

    try:
        yield write
    finally:
        if writer is not None:
            writer.close()


def _list(values: Sequence[Any] | Array) -> Sequence[Any]:
    return values.tolist() if isinstance(values, np.ndarray) else values


def as_json(value: Any) -> Any:
    """Return a value in terms that JSON knows; numbers that are not finite become null."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if is_dataclass(value) and not isinstance(value, type):
        value = {one.name: getattr(value, one.name) for one in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): as_json(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)


TEXTS: dict[str, Callable[[IO[str]], Write]] = {
    ".csv": comma_separated,
    ".tsv": partial(comma_separated, delimiter="\t"),
    ".jsonl": _json_lines,
}
TABLES = (*TEXTS, ".parquet")


# Arrays


@contextmanager
def npy_file(path: Path) -> Iterator[Callable[[Array], None]]:
    """Write an array of unknown length to a .npy file, a block of rows at a time."""
    n, first = 0, np.empty(0)

    def header() -> None:  # has the same length for any number of rows
        described = {"descr": np.lib.format.dtype_to_descr(first.dtype), "fortran_order": False}
        np.lib.format.write_array_header_2_0(file, {**described, "shape": (n, *first.shape[1:])})

    def write(rows: Array) -> None:
        nonlocal n, first
        if not n:
            _require_plain(rows)
            first = rows
            header()
        n += len(rows)
        file.write(rows.tobytes())

    with replacing(path) as temporary, temporary.open("xb") as file:
        yield write
        file.seek(0)
        header()


def _require_plain(rows: Array) -> None:
    if rows.dtype.hasobject:
        raise TypeError(
            f"predictions are objects ({type(rows[0]).__name__}), which a .npy file does not "
            "hold; write a .csv or .parquet file"
        )


def write_npz(path: Path, arrays: Mapping[str, Array]) -> None:
    """Write arrays by name to a .npz file."""
    with replacing(path) as temporary, ZipFile(temporary, "x") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.asanyarray(array), allow_pickle=False)
