"""From a file and the options to what an estimator takes."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from math import isqrt
from typing import Any

import numpy as np

from kreinlearn.cli import kernels
from kreinlearn.cli.labels import labels_in
from kreinlearn.cli.messages import Talk
from kreinlearn.data.memory import budget_bytes
from kreinlearn.data.reading import (
    ArrowSheet,
    CsvSheet,
    Sheet,
    Target,
    Variables,
    gathering,
    opened,
    target_of,
)
from kreinlearn.data.reading.columns import listed, require_column
from kreinlearn.data.sources import Blocks, table
from kreinlearn.data.tiles import length
from kreinlearn.kernels import Kernel
from kreinlearn.kernels.strings import TextKernel

ROOM = 4  # a file is read into memory where that many times its size fits the budget


@dataclass(frozen=True)
class Given:
    """Objects for a kernel, and where in the file they are: a column, or columns of numbers."""

    X: Any
    kernel: str
    column: str | None = None
    names: tuple[str, ...] | None = None
    target: Target | None = None

    @property
    def n(self) -> int:
        n = length(self.X)
        condensed = self.kernel.startswith("precomputed") and getattr(self.X, "ndim", 2) == 1
        return (1 + isqrt(1 + 8 * n)) // 2 if condensed else n


def load(options: argparse.Namespace, talk: Talk, *, streams: bool = False) -> Given:
    """Reads what the options name; ``streams``: a large file may be left on disk."""
    if options.needs_target and options.target is None and options.labels is None:
        options.parser.error("--target is needed: what is to be predicted (or --labels FILE)")
    kernel = kernels.named(options)
    file = open_file(options)
    if not isinstance(file, Variables):
        file = _with_names(file, kernel, talk)
    _require_names(file, options)
    if isinstance(file, Variables):
        given = _from_variables(file, options, kernel)
    else:
        given = _from_sheet(file, options, kernel, streams)
    _say_what_was_chosen(given, options, talk)
    talk.detail(f"{given.n:,} objects in {options.file}")
    return replace(given, target=_target(file, options, given))


def _require_names(file: Sheet | Variables, options: argparse.Namespace) -> None:
    """Columns or arrays that the options name, before any is read."""
    inside = options.needs_target is None or options.labels is None
    for name in (options.target if inside else None, options.id, *(options.column or ())):
        if name is not None:
            what = "array" if isinstance(file, Variables) else "column"
            require_column(name, file.names, file.path, what)


def _say_what_was_chosen(given: Given, options: argparse.Namespace, talk: Talk) -> None:
    if options.kernel is None:
        talk.note(f"kernel: {given.kernel} (--kernel names another)")
    names = [given.column] if given.column is not None else given.names
    if not options.column and names:
        talk.note(f"columns: {listed(names)} (--column names others)")


def named(given: Given, options: argparse.Namespace) -> str:
    """The file, and what of it the objects are, for a report."""
    columns = [given.column] if given.column is not None else list(given.names or ())
    columns = columns or list(options.column or ())
    what = "column" if len(columns) == 1 else "columns"
    return f"{options.file.name}, {what} {listed(columns)}" if columns else options.file.name


def open_file(options: argparse.Namespace) -> Sheet | Variables:
    return opened(
        options.file,
        encoding=options.encoding,
        delimiter=options.delimiter,
        header=options.header,
        memory=getattr(options, "memory", None),
    )


def _target(file: Sheet | Variables, options: argparse.Namespace, given: Given) -> Target | None:
    name, task = options.target, getattr(options, "task", "auto")
    if options.needs_target is None:
        return None
    if options.labels is not None:
        return labels_in(options, given.n, task)
    if name is None:
        return None
    if isinstance(file, Variables):
        values = np.asarray(file.get(name)).ravel().tolist()
        places = list(range(len(values)))
        where = f"{file.path}, row {{}}: {name}"
    else:
        values, places = gathering.column(file, name)
        where = gathering.where(file, name)
    if len(values) != given.n:
        raise ValueError(f"{name} has {len(values)} values for {given.n} objects")
    return target_of(values, name, where, places, task)


# Tables


def _with_names(sheet: Sheet, kernel: Kernel | None, talk: Talk) -> Sheet:
    """A table whose first line holds numbers is a matrix without names, or a mistake."""
    if not isinstance(sheet, CsvSheet) or not (sheet.header and sheet.numbered):
        return sheet
    if kernel is not None and not kernel.domain.is_matrix:
        raise ValueError(
            f"the first line of {sheet.path} holds numbers, not names of columns; if there are no "
            "names give --no-header"
        )
    talk.note(f"{sheet.path}: the first line holds numbers, so it is taken as a row, not as names")
    return sheet.without_header()


def _from_sheet(
    sheet: Sheet, options: argparse.Namespace, kernel: Kernel | None, streams: bool
) -> Given:
    besides = [options.target, options.id]
    kinds = gathering.kinds_of(sheet, besides)
    if kernel is None:
        return _guessed(sheet, options, kinds, streams)
    rows = _Rows(sheet, options, streams)
    if kernel.domain.is_matrix:
        return rows.numbers(options.column or _matrix_columns(sheet, kinds), in_memory=True)
    if kernel.domain.is_records:
        chosen = options.column or [*kinds.numbers, *kinds.others]
        return rows.records(chosen, set(kinds.numbers) - set(kernel.get_params()["categorical"]))
    if kernel.domain.is_objects:
        chosen = options.column or _object_columns(sheet, kinds, isinstance(kernel, TextKernel))
        return rows.objects(chosen[0]) if len(chosen) == 1 else rows.numbers(chosen)
    return rows.numbers(options.column or _number_columns(sheet, kinds))


def _guessed(
    sheet: Sheet, options: argparse.Namespace, kinds: gathering.Kinds, streams: bool
) -> Given:
    """Without --kernel: a matrix if it is one, texts where one column holds them, or numbers."""
    rows = _Rows(sheet, options, streams)
    if not options.column and (matrix := _matrix(sheet, kinds, rows)) is not None:
        return matrix
    chosen = options.column or (kinds.others if len(kinds.others) == 1 else kinds.numbers)
    if len(chosen) == 1 and chosen[0] not in kinds.numbers:
        _require_texts(sheet, chosen[0])
        return replace(rows.objects(chosen[0]), kernel="levenshtein")
    if not chosen:
        _object_columns(sheet, kinds, text=True)
    return replace(rows.numbers(chosen), kernel="gaussian")


def _matrix(sheet: Sheet, kinds: gathering.Kinds, rows: _Rows) -> Given | None:
    """As many rows as columns of numbers, and symmetric; the first column may name the rows."""
    named = set(kinds.others) <= {sheet.names[0]}
    first = next(sheet.blocks(kinds.numbers), None) if named and len(kinds.numbers) > 2 else None
    if first is None or len(first.places) != len(kinds.numbers):
        return None
    try:
        given = rows.numbers(kinds.numbers, in_memory=True)
    except ValueError:  # numbers are missing
        return None
    name = kernels.for_numbers(given.X)
    return replace(given, kernel=name) if name.startswith("precomputed") else None


def _require_texts(sheet: Sheet, name: str) -> None:
    first = next(sheet.blocks([name]), None)
    if first is not None and not isinstance(first.columns[0][0], str):
        raise ValueError(
            f"{sheet.path}: {name} holds no texts; name a similarity of such objects with --kernel "
            "(dtw for series, hausdorff for sets of points, ...)"
        )


def _number_columns(sheet: Sheet, kinds: gathering.Kinds) -> list[str]:
    if not kinds.numbers:
        raise ValueError(
            f"{sheet.path} has no column of numbers, which this kernel takes; there are: "
            f"{', '.join(kinds.others)} (texts: --kernel levenshtein)"
        )
    return kinds.numbers


def _object_columns(sheet: Sheet, kinds: gathering.Kinds, text: bool) -> list[str]:
    """The one column of texts, or of other objects; of a table of numbers all (series, say)."""
    everything = [*kinds.others, *kinds.numbers]
    if len(everything) == 1 and text:
        return everything
    if len(kinds.others) == 1:
        return kinds.others
    if kinds.others or text:
        there = ", ".join(kinds.others or everything)
        raise ValueError(f"{sheet.path}: name the column of objects with --column: {there}")
    return kinds.numbers


def _matrix_columns(sheet: Sheet, kinds: gathering.Kinds) -> list[str]:
    """All columns, less a first one that names the rows."""
    if extra := [name for name in kinds.others if name != sheet.names[0]]:
        raise ValueError(
            f"{sheet.path}: column {extra[0]!r} of the matrix does not hold numbers; name it with "
            "--id or --target to leave it out"
        )
    return kinds.numbers


class _Rows:
    """Columns of a table as rows of a kind, in memory, or left on disk where they are too many."""

    def __init__(self, sheet: Sheet, options: argparse.Namespace, streams: bool) -> None:
        self.sheet, self.kernel = sheet, options.kernel or ""
        budget = budget_bytes(getattr(options, "memory", None))
        size = sheet.path.stat().st_size
        self.on_disk = streams and (isinstance(sheet, ArrowSheet) or ROOM * size > budget)

    def _read(self, names: Sequence[str], convert: Any, in_memory: bool = False) -> Any:
        parts = gathering.parts(self.sheet, names, convert)
        if not self.on_disk or in_memory:
            return gathering.whole(parts, self.sheet)
        rows = Blocks(parts)
        rows.origin = str(self.sheet.path)
        return rows

    def numbers(self, names: Sequence[str], in_memory: bool = False) -> Given:
        if self.on_disk and isinstance(self.sheet, ArrowSheet) and not in_memory:
            return Given(table(self.sheet.path, list(names)), self.kernel, names=tuple(names))
        convert = gathering.number_rows(self.sheet, names)
        known = None if _is_numbered(self.sheet) else tuple(names)
        return Given(self._read(names, convert, in_memory), self.kernel, names=known)

    def objects(self, name: str) -> Given:
        if self.on_disk and isinstance(self.sheet, ArrowSheet):
            return Given(table(self.sheet.path, name), self.kernel, name)
        return Given(self._read([name], gathering.objects(self.sheet, name)), self.kernel, name)

    def records(self, names: Sequence[str], numeric: Collection[str]) -> Given:
        convert = gathering.records(self.sheet, names, numeric)
        return Given(self._read(names, convert, True), self.kernel, names=tuple(names))


def _is_numbered(sheet: Sheet) -> bool:
    return isinstance(sheet, CsvSheet) and not sheet.header


# Arrays


def _from_variables(file: Variables, options: argparse.Namespace, kernel: Kernel | None) -> Given:
    X = file.get(variable(file, options, kernel))
    if kernel is not None:
        return Given(X, options.kernel)
    return Given(X, "levenshtein" if isinstance(X, list) else kernels.for_numbers(X))


def variable(file: Variables, options: argparse.Namespace, kernel: Kernel | None) -> str:
    """The array that holds the objects: named, or the only one that may."""
    if options.column:
        if len(options.column) > 1:
            options.parser.error(f"--column: one array of {file.path} is meant, not several")
        name: str = options.column[0]
        return name
    besides = (getattr(options, "target", None), options.id)
    others = [name for name in file.names if name not in besides]
    square = [n for n in others if len(file.shapes[n]) == 2 and len(set(file.shapes[n])) == 1]
    matrix = kernel is not None and kernel.domain.is_matrix
    for some in (others, square if matrix else [], [n for n in others if _is_wide(file, n)]):
        if len(some) == 1:
            return some[0]
    raise ValueError(
        f"{file.path} holds several arrays; name that of the objects with --column (and --target "
        f"for what is to be predicted): {file.described(file.names)}"
    )


def _is_wide(file: Variables, name: str) -> bool:
    return len(file.shapes[name]) == 2 and min(file.shapes[name]) > 1


def remember_columns(model: Any, given: Given) -> None:
    """So that predict finds them by name; a table that was left on disk has said so itself."""
    if given.column is not None:
        model._column = given.column
    if given.names is not None and not model.kernel_.domain.is_records:  # which knows them
        model.feature_names_in_ = np.array(given.names, dtype=object)
        model.n_features_in_ = len(given.names)
