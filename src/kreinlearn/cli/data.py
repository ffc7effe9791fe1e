"""From a file and the options to what an estimator takes."""

from __future__ import annotations

import argparse
import re
import shlex
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from math import isqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kreinlearn.cli import kernels
from kreinlearn.cli.messages import Talk
from kreinlearn.data.arrays import ArrayFile
from kreinlearn.data.fields import is_missing, is_number
from kreinlearn.data.gaps import Complete, gaps_in, gaps_in_words, rows_of
from kreinlearn.data.memory import budget_bytes
from kreinlearn.data.opening import DELIMITERS, open_file, suffix_of
from kreinlearn.data.source import Array
from kreinlearn.data.table import Table, listed, require_column
from kreinlearn.data.targets import Target, target_of
from kreinlearn.data.text import TextTable
from kreinlearn.data.tiles import length
from kreinlearn.kernels import Kernel
from kreinlearn.kernels.domains import Records

if TYPE_CHECKING:
    from kreinlearn.estimators.base import KreinEstimator

ROOM = 4  # a file is read into memory if that many times its size fits the budget
IDENTIFIER = re.compile(  # what a column that names the rows may be called; pandas writes the last
    r"(?i:(^|[_\W])(id|ids|index|idx|key|uuid|guid)$)|[a-z]I[dD]$|^Unnamed: 0$|^$"
)
REPEATED = re.compile(r"(?i:(^|[_\W])ids?$)|[a-z]I[dD]$")  # what names things that rows share
CODE = re.compile(r"(.*\D)(\d{1,18})", re.ASCII)  # C1000, or order-17
FEWEST_CODES = 10  # texts that may be said to count the rows
MARKS = {";": "semicolons", "\t": "tabs", "|": "bars", ",": "commas"}
BARE = "1"  # the first column of a file without names


@dataclass(frozen=True)
class Given:
    """Objects for a kernel, and where in the file they are: a column, or columns of numbers."""

    X: Any
    kernel: Any  # a name, a field, or a list of either
    column: str | None = None
    names: tuple[str, ...] | None = None
    target: Target | None = None
    shown: str = ""  # the kernel as it was written
    table: Table | None = None  # the rows that they are from, some of which may be left out
    left_out: Array | None = None  # the numbers of rows that are left out

    @property
    def n(self) -> int:
        n = length(self.X)
        given = str(self.kernel).startswith("precomputed")
        condensed = given and getattr(self.X, "ndim", 2) == 1
        return (1 + isqrt(1 + 8 * n)) // 2 if condensed else n

    @property
    def rows(self) -> Array:
        """The numbers that the objects have in the file, where some may be left out between."""
        if self.left_out is None:
            return np.arange(self.n)
        return np.delete(np.arange(self.n + len(self.left_out)), self.left_out)

    def line(self, i: int) -> int | None:
        """The line of a text file that holds object i."""
        return None if self.table is None else self.table.stored.line(i)

    @property
    def columns(self) -> list[str]:
        return [self.column] if self.column is not None else list(self.names or ())


def load(options: argparse.Namespace, talk: Talk, *, streams: bool = False) -> Given:
    """Read what the options name; with ``streams``, a large file may be left on disk."""
    if options.needs_target and options.target is None and options.labels is None:
        options.parser.error("--target is needed: what is to be predicted (or --labels FILE)")
    kernel = kernels.named(options)
    file = file_of(options, may_be_matrix=kernel is None or kernel.domain.is_matrix)
    _require_names(file, options, [] if kernel is None else kernel.fields)
    if isinstance(file, ArrayFile):
        given = _from_arrays(file, options, kernel)
    else:
        say_mark(file, options, talk)
        if options.header and not file.stored.header:
            talk.note(f"{file.origin}: the first line holds numbers, so it is read as a row")
        given = _from_table(file, options, kernel, streams, talk)
    if kernel is None:
        talk.note(f"kernel: {given.kernel} (--kernel names another)")
    if not options.column and given.columns and not (kernel is not None and kernel.fields):
        talk.note(f"columns: {listed(given.columns)} (--column names others)")
    shown = given.kernel if kernel is None else kernel.shown
    target = target_for(file, options, given)
    _say_strange_classes(target, talk)
    return replace(given, target=target, shown=shown)


def _say_strange_classes(target: Target | None, talk: Talk) -> None:
    """Say which classes are called like a value that is missing, as "n/a" is."""
    if target is None or target.task != "classification" or target.values.dtype.kind not in "UO":
        return
    for label, count in Counter(filter(is_missing, target.values.tolist())).items():
        rows = "one row" if count == 1 else f"{count:,} rows"
        talk.note(
            f"{target.name}: {label!r} of {rows} is learned as a class like the others; if it "
            "stands for no class, empty these cells and add --drop-missing"
        )


def file_of(options: argparse.Namespace, *, may_be_matrix: bool) -> Table | ArrayFile:
    """Open the file; the first line of a matrix may be a row, even without --no-header."""
    header = None if options.header and may_be_matrix else options.header
    return _opened(options.file, options, header)


def _opened(path: Path, options: argparse.Namespace, header: bool | None) -> Table | ArrayFile:
    return open_file(
        path,
        encoding=options.encoding,
        delimiter=options.delimiter,
        decimal=options.decimal or ".",
        header=header,
        memory_budget=getattr(options, "memory", None),
    )


def say_mark(file: Table | ArrayFile, options: argparse.Namespace, talk: Talk) -> None:
    """Say what separates the columns, if it was found and is not what files of this name have."""
    mark = getattr(getattr(file, "stored", None), "delimiter", None)
    if None is not mark != DELIMITERS.get(suffix_of(options.file)) and options.delimiter is None:
        talk.note(f"{options.file}: columns are separated by {MARKS[mark]} (--delimiter)")


def _require_names(
    file: Table | ArrayFile, options: argparse.Namespace, fields: Sequence[str]
) -> None:
    """Look for the columns or arrays that the options name, before any of them is read."""
    inside = options.needs_target is None or options.labels is None
    what = "array" if isinstance(file, ArrayFile) else "column"
    if fields and isinstance(file, ArrayFile):
        options.parser.error(
            f"--kernel {options.kernel[0]}: {file.path} holds arrays and no columns; "
            "leave the column out, and name an array with --column"
        )
    for name in options.column or ():
        require_one_name(name, file.names)
    wanted = (options.target if inside else None, options.id, *(options.column or ()), *fields)
    for name in wanted:
        if name is not None:
            _require_header(name, file, options)
            require_column(name, file.names, options.file, what)


def require_one_name(name: str, names: Sequence[str]) -> None:
    """Say that a flag is given once for each column, if a text holds names with commas."""
    several = [one.strip() for one in name.split(",")]
    if name not in names and len(several) > 1 and set(several) <= set(names):
        flags = " ".join(f"--column {shlex.quote(one)}" for one in several)
        raise ValueError(f"there is no column {name!r}; repeat the flag for each column: {flags}")


def _require_header(name: str, file: Table | ArrayFile, options: argparse.Namespace) -> None:
    """Name --no-header if a column is called by its place, as those without names are."""
    named = hasattr(getattr(file, "stored", None), "delimiter") and options.header
    places = map(str, range(1, len(file.names) + 1))
    if named and name not in file.names and name in places:
        raise ValueError(
            f"there is no column {name!r} in {options.file}; the first line names them: "
            f"{listed(file.names)}; if it is a row, add --no-header"
        )


def write_report(
    path: Path, given: Given, options: argparse.Namespace, talk: Talk, **findings: Any
) -> None:
    """Write the page of --html or --markdown, which names the file and the columns."""
    from kreinlearn import report

    columns = given.columns or list(options.column or ())
    what = "column" if len(columns) == 1 else "columns"
    source = f"{options.file.name}, {what} {listed(columns)}" if columns else options.file.name
    if given.left_out is not None:
        n = len(given.left_out)
        source += f", without {n:,} of {given.n + n:,} rows, which have empty cells"
    report.write_report(path, source=source, **findings)
    talk.note(f"report: {path}")


# Tables


def _from_table(
    table: Table, options: argparse.Namespace, kernel: kernels.Named | None, streams: bool,
    talk: Talk,
) -> Given:  # fmt: skip
    numbers, others = table.split([options.target, options.id])
    rows = _Rows(table, options, kernel, streams, talk)
    chosen = options.column
    if kernel is None and not chosen and (matrix := _matrix(rows, numbers, others)) is not None:
        return matrix
    if kernel is not None and kernel.domain.is_matrix:
        return rows.matrix(chosen or _matrix_columns(table, numbers, others))
    if not chosen and not (kernel is not None and kernel.fields):
        kept = _without_identifiers(table, numbers, others, talk)
        numbers, others = ([one for one in some if one in kept] for some in (numbers, others))
    if kernel is None:
        automatic = kernels.is_automatic(options)
        return (_automatic if automatic else _guessed)(rows, chosen, numbers, others)
    if isinstance(kernel.domain, Records):
        if kernel.fields:
            lists = table.pick(kernel.fields).list_columns()
            return rows.records(kernel.fields, set(numbers) - kernel.domain.objects, lists)
        numeric = set(numbers) - kernel.categorical
        return rows.records(chosen or [*numbers, *others], numeric, gaps=True)
    if kernel.domain.is_objects:
        chosen = chosen or object_columns(table, numbers, others, kernel.takes_texts)
        return rows.objects(chosen[0]) if len(chosen) == 1 else rows.numbers(chosen)
    if not chosen and not numbers:
        raise ValueError(
            f"{table.origin} has no column of numbers, which this kernel takes; there are: "
            f"{', '.join(others)} (for texts: --kernel levenshtein)"
        )
    if others and not chosen:
        talk.note(f"left out, because this kernel takes numbers: {listed(others)}")
    if texts := [name for name in chosen or () if table.kinds[name].what == "text"]:
        raise ValueError(
            f"column {texts[0]!r} of {table.origin} holds {table.kinds[texts[0]].shown}, and "
            f"--kernel {options.kernel[0]} takes numbers: name columns of numbers with --column, "
            "or a kernel that takes such objects (levenshtein for texts; kreinlearn kernels lists "
            "all of them)"
        )
    return rows.numbers(chosen or numbers)


def _guessed(rows: _Rows, column: list[str] | None, numbers: list[str], others: list[str]) -> Given:
    """Without --kernel, take one column of texts, columns of numbers, or all columns as records."""
    chosen = column or [*numbers, *others]
    if len(chosen) == 1 and chosen[0] not in numbers:
        _require_texts(rows.table, chosen[0])
        return replace(rows.objects(chosen[0]), kernel="levenshtein")
    if not chosen:
        object_columns(rows.table, numbers, others, text=True)
    if set(chosen) <= set(numbers):
        return replace(rows.numbers(chosen), kernel="gaussian")
    given = rows.records(_in_order(rows.table, chosen), set(numbers), gaps=True)
    return replace(given, kernel="gower")


def _in_order(table: Table, names: Sequence[str]) -> list[str]:
    return [name for name in table.names if name in names]


def _automatic(
    rows: _Rows, column: list[str] | None, numbers: list[str], others: list[str]
) -> Given:
    """Take one column of objects, columns of numbers, or all columns as records of any kinds."""
    chosen = column or _in_order(rows.table, [*numbers, *others])
    if len(chosen) == 1 and chosen[0] not in numbers:
        if rows.large:  # objects that stay in a file cannot be looked at before
            return _guessed(rows, chosen, numbers, others)
        given = rows.objects(chosen[0], in_memory=True)
        # a list of numbers in a cell is a series, and not a row of a matrix
        objects = [np.asarray(x) if isinstance(x, list) and x else x for x in given.X]
        given = replace(given, X=objects)
    elif set(chosen) <= set(numbers):
        given = rows.numbers(chosen, in_memory=not rows.large)
    else:
        lists = rows.table.pick(chosen).list_columns()
        given = rows.records(chosen, set(numbers), lists)
    return replace(given, kernel=kernels.AUTO)


def _without_identifiers(
    table: Table, numbers: list[str], others: list[str], talk: Talk
) -> list[str]:
    """Return all columns but those that only name the rows, and say which these are."""
    everything = [name for name in table.names if name in {*numbers, *others}]
    left_out = [name for name in everything if _is_identifier(table, name)]
    if not left_out or len(left_out) == len(everything):
        return everything
    talk.note(f"left out, because they only name the rows: {listed(left_out)} (--column takes any)")
    return [name for name in everything if name not in left_out]


def _is_identifier(table: Table, name: str) -> bool:
    """Whether a column holds distinct texts or whole numbers and is called like an identifier.

    Numbers that are called ids need not be distinct. Texts that count the rows, as C1000, C1001,
    ... do, may be called anything.
    """
    if name not in table.kinds:
        return False
    called, number = IDENTIFIER.search(name) is not None, table.kinds[name].what == "number"
    if not called and table.kinds[name].what != "text":
        return False
    values = table.column(name)
    if not called:
        return _count_rows(values)
    distinct = len(set(map(str, values))) == len(values)
    if number and (distinct or REPEATED.search(name) is not None):
        return all(is_number(value) and float(value).is_integer() for value in values)
    return distinct and all(isinstance(value, str) for value in values)


def _count_rows(values: Sequence[Any]) -> bool:
    """Whether all texts have one beginning and different numbers, with few gaps between these."""
    codes = [CODE.fullmatch(value) if isinstance(value, str) else None for value in values]
    if len(codes) < FEWEST_CODES or None in codes:
        return False
    beginnings = {code[1] for code in codes if code is not None}
    numbers = {int(code[2]) for code in codes if code is not None}
    dense = max(numbers) - min(numbers) < 2 * len(values)
    return len(beginnings) == 1 and len(numbers) == len(values) and dense


def _matrix(rows: _Rows, numbers: list[str], others: list[str]) -> Given | None:
    """Return a symmetric matrix, if there is one; its first column may name the rows."""
    named = set(others) <= {rows.table.names[0]}
    first = next(rows.table.blocks(numbers), None) if named and len(numbers) > 2 else None
    if first is None or len(first.columns[0]) != len(numbers):
        return None
    try:
        given = rows.matrix(numbers)
    except ValueError:  # numbers are missing
        return None
    name = kernels.for_numbers(given.X)
    return replace(given, kernel=name) if name.startswith("precomputed") else None


def _require_texts(table: Table, name: str) -> None:
    first = next(table.blocks([name]), None)
    if first is not None and not isinstance(first.columns[0][0], str):
        raise ValueError(
            f"{table.origin}: {name} holds no texts; name a similarity of such objects with "
            "--kernel (dtw for series, hausdorff for sets of points, ...)"
        )


def object_columns(table: Table, numbers: list[str], others: list[str], text: bool) -> list[str]:
    """Return the one column of texts or other objects, or all columns of numbers (a series)."""
    everything = [*others, *numbers]
    if len(everything) == 1 and text:
        return everything
    if len(others) == 1:
        return others
    if others or text:
        there = ", ".join(others or everything)
        raise ValueError(f"{table.origin}: name the column of objects with --column: {there}")
    return numbers


def _matrix_columns(table: Table, numbers: list[str], others: list[str]) -> list[str]:
    """Return all columns, except for a first one that names the rows."""
    if extra := [name for name in others if name != table.names[0]]:
        raise ValueError(
            f"{table.origin}: column {extra[0]!r} of the matrix does not hold numbers; name it "
            "with --id or --target to leave it out"
        )
    return numbers


class _Rows:
    """Columns of a table as what a kernel takes: in memory, or on disk if they are too large."""

    def __init__(
        self, table: Table, options: argparse.Namespace, kernel: kernels.Named | None,
        streams: bool, talk: Talk,
    ) -> None:  # fmt: skip
        self.table, self.kernel = table, "" if kernel is None else kernel.spec
        self.options, self.talk = options, talk
        budget = budget_bytes(getattr(options, "memory", None))
        self.large = streams and ROOM * options.file.stat().st_size > budget
        self.on_disk = self.large or (streams and not isinstance(table.stored, TextTable))

    def matrix(self, names: Sequence[str]) -> Given:
        """Rows of a given matrix, of which none can be left out without its column."""
        named = tuple(names) if self.table.stored.header else None
        X = self.table.pick(list(names)).numbers()[:]
        return Given(X, self.kernel, names=named, table=self.table)

    def numbers(self, names: Sequence[str], in_memory: bool = False) -> Given:
        table, left_out = self._complete(names)
        chosen, named = table.pick(list(names)), tuple(names) if table.stored.header else None
        X = chosen if self.on_disk and not in_memory else chosen.numbers()[:]
        return Given(X, self.kernel, names=named, table=table, left_out=left_out)

    def objects(self, name: str, in_memory: bool = False) -> Given:
        table, left_out = self._complete([name])
        chosen = table.pick(name)
        X = chosen if self.on_disk and not in_memory else chosen.objects()[:]
        return Given(X, self.kernel, name, table=table, left_out=left_out)

    def records(
        self, names: Sequence[str], numeric: Collection[str], lists: Collection[str] = (), *,
        gaps: bool = False,
    ) -> Given:  # fmt: skip
        """Rows as dicts, in which fields may be missing; with --drop-missing only if ``gaps``."""
        table, left_out = self._complete(names, gaps or not self.options.drop_missing)
        chosen, named = table.pick(list(names)), tuple(names)
        blocks = (chosen.as_records(one, numeric, lists) for one in chosen.blocks())
        X = list(chain.from_iterable(blocks))
        return Given(X, self.kernel, names=named, table=table, left_out=left_out)

    def _complete(self, names: Sequence[str], whole: bool = False) -> tuple[Table, Array | None]:
        """The table without rows in which an object or the target is missing, and these rows.

        Unless --drop-missing is given, they are an error that counts them. With ``whole``, an
        object is missing if all of its columns are empty.
        """
        options, table = self.options, self.table
        target = _in_file(options) or _label_column(options, len(table))
        found = gaps_in(table, list(dict.fromkeys(names)), whole=whole)
        said = gaps_in_words(found, table) if found else ""
        if target is not None:
            labels, name = (table, target) if isinstance(target, str) else target
            more = gaps_in(labels, [name]) if isinstance(labels, Table) else {}
            if more:
                shown = more if name != BARE else {str(options.labels): more[name]}
                said = f"{said}, {gaps_in_words(shown, labels)}".removeprefix(", ")
                found = {**found, f"target {name}": more[name]}
        if not found:
            return table, None
        rows = rows_of(found)
        if not options.drop_missing:
            raise ValueError(f"{table.origin}: {said}; fill in, or leave out with --drop-missing")
        self.talk.note(f"left out: {len(rows):,} of {len(table):,} rows; {said}")
        return replace(table, stored=Complete(table.stored, rows)), rows


# Arrays


def _from_arrays(
    file: ArrayFile, options: argparse.Namespace, kernel: kernels.Named | None
) -> Given:
    X = file.get(variable(file, options, kernel))
    if kernel is not None:
        return Given(X, kernel.spec)
    guessed = "levenshtein" if isinstance(X, list) else kernels.for_numbers(X)
    automatic = kernels.is_automatic(options) and not guessed.startswith("precomputed")
    return Given(X, kernels.AUTO if automatic else guessed)


def variable(
    file: ArrayFile, options: argparse.Namespace, kernel: Kernel | kernels.Named | None
) -> str:
    """Return the array that holds the objects: the one that is named, or the only one that may."""
    if options.column:
        if len(options.column) > 1:
            options.parser.error(f"--column: one array of {file.path} is meant, not several")
        name: str = options.column[0]
        return name
    others = [n for n in file.names if n not in (getattr(options, "target", None), options.id)]
    square = [n for n in others if len(file.shapes[n]) == 2 and len(set(file.shapes[n])) == 1]
    wide = [n for n in others if len(file.shapes[n]) == 2 and min(file.shapes[n]) > 1]
    matrix = kernel is not None and kernel.domain.is_matrix
    for some in (others, square if matrix else [], wide):
        if len(some) == 1:
            return some[0]
    raise ValueError(
        f"{file.path} holds several arrays; name that of the objects with --column (and --target "
        f"for what is to be predicted): {file.described(file.names)}"
    )


def remember(model: KreinEstimator, given: Given) -> None:
    """Let predict find the columns by name, as it does for a table that was left on disk.

    Landmarks get the numbers that their rows have in the file, where some may be left out.
    """
    from kreinlearn.estimators.access import remember_columns

    if given.left_out is not None and model.landmark_indices_ is not None:
        model.landmark_indices_ = given.rows[model.landmark_indices_]

    known = model.kernel_.domain.is_records  # the kernel has the names
    remember_columns(model, given.column, None if known else given.names)


# Targets


def target_for(file: Table | ArrayFile, options: argparse.Namespace, given: Given) -> Target | None:
    """Return the target of the objects: that of --labels, or a column of the file itself."""
    name, source, n = _in_file(options), options.file, given.n
    if name is not None:
        file = given.table or file
    elif options.needs_target is None or options.labels is None:
        return None
    else:
        dropped, source = given.left_out, options.labels
        n_rows = n if dropped is None else n + len(dropped)
        file, name = _labels(options, n_rows)
        if dropped is not None and isinstance(file, Table) and len(file) == n_rows:
            file = replace(file, stored=Complete(file.stored, dropped))
    values = file.column(name)
    if len(values) != n:
        raise ValueError(
            f"{source} has {len(values)} labels for the {n} objects of {options.file}; there must "
            "be one for each"
        )
    shown = source.name if name == BARE else name
    task = getattr(options, "task", "auto")
    if isinstance(file, Table):
        place = partial(file.stored.place_after, 0, name)
        stored = file.stored
        return target_of(values, shown, place, task, typed=stored.typed, decimal=stored.decimal)
    return target_of(values, shown, lambda i: f"row {i} of {name!r} in {source}", task, typed=True)


def _in_file(options: argparse.Namespace) -> str | None:
    """Return the column of the file that is the target, if there is one."""
    inside = options.needs_target is not None and options.labels is None
    name: str | None = options.target if inside else None
    return name


def _label_column(options: argparse.Namespace, n: int) -> tuple[Table, str] | None:
    """Return the table and the column of --labels, if it has one row per object."""
    if options.needs_target is None or options.labels is None:
        return None
    file, name = _labels(options, n)
    return (file, name) if isinstance(file, Table) and len(file) == n else None


def _labels(options: argparse.Namespace, n: int) -> tuple[Table | ArrayFile, str]:
    """Open the file of --labels; a single column without a name has one line per object."""
    if options.target is not None:
        return _opened(options.labels, options, None), options.target
    bare = _opened(options.labels, options, False)
    if bare.names == [BARE] and isinstance(bare, Table) and len(bare) == n:
        return bare, BARE
    file = _opened(options.labels, options, None)
    if len(file.names) > 1:
        raise ValueError(
            f"{options.labels}: which is the target? --target names it: {', '.join(file.names)}"
        )
    return file, file.names[0]
