"""Columns of predictions to a file or stdout, a block of rows at a time."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from kreinlearn.cli.output import STDOUT, plain
from kreinlearn.data.files import replacing
from kreinlearn.data.sources.base import library

Write = Callable[[dict[str, Any]], None]  # columns by name, the same ones every time


@contextmanager
def written(path: Path) -> Iterator[Write]:
    """A file comes into being when all is written; stdout gets a block when it is there."""
    if path == STDOUT:
        text = io.TextIOWrapper(sys.stdout.buffer, "utf-8", newline="", write_through=True)
        try:
            yield _rows_to(text, ",")
        finally:
            text.detach()
        return
    with replacing(path) as temporary:
        if path.suffix == ".parquet":
            with _parquet(temporary) as write:
                yield write
            return
        with temporary.open("x", newline="", encoding="utf-8") as file:
            yield _json_to(file) if path.suffix == ".jsonl" else _rows_to(file, MARKS[path.suffix])


def _rows_to(file: IO[str], delimiter: str) -> Write:
    writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
    started = False

    def write(columns: dict[str, Any]) -> None:
        nonlocal started
        if not started:
            writer.writerow(columns)
            started = True
        writer.writerows(zip(*map(_list, columns.values()), strict=True))

    return write


def _json_to(file: IO[str]) -> Write:
    def write(columns: dict[str, Any]) -> None:
        for row in zip(*map(_list, columns.values()), strict=True):
            found = plain(dict(zip(columns, row, strict=True)))
            file.write(json.dumps(found, ensure_ascii=False) + "\n")

    return write


@contextmanager
def _parquet(path: Path) -> Iterator[Write]:
    pa, pq = library("pyarrow"), library("pyarrow.parquet")
    writer = None

    def write(columns: dict[str, Any]) -> None:
        nonlocal writer
        batch = pa.record_batch([pa.array(_list(one)) for one in columns.values()], list(columns))
        writer = writer or pq.ParquetWriter(path, batch.schema)
        writer.write_batch(batch)

    try:
        yield write
    finally:
        if writer is not None:
            writer.close()


def _list(values: Any) -> list[Any]:
    return values.tolist() if isinstance(values, np.ndarray) else list(values)


MARKS = {".csv": ",", ".tsv": "\t"}
SUFFIXES = (*MARKS, ".jsonl", ".parquet")
