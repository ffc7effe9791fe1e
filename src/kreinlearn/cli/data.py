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
    fields = [] if kernel is None else kernel.fields
    file = file_of(options, talk, may_be_matrix=kernel is None or kernel.domain.is_matrix)
    if fields and isinstance(file, ArrayFile):
        options.parser.error(
            f"--kernel {options.kernel[0]}: {options.file} holds arrays and no columns; "
            "leave the column out, and name an array with --column"
        )
    inside = options.needs_target is None or options.labels is None
    wanted = [*(options.column or ()), options.target if inside else None, options.id, *fields]
    require_names([name for name in wanted if name is not None], file, options)
    if isinstance(file, ArrayFile):
        given = _from_arrays(file, options, kernel)
    else:
        if options.header and not file.stored.header:
            talk.note(f"{file.origin}: the first line holds numbers, so it is read as a row")
        given = _from_table(file, options, kernel, streams, talk)
    if kernel is None:
        talk.note(f"kernel: {given.kernel} (--kernel names another)")
    if not options.column and given.columns and not fields and given.table is not None:
        kinds = given.table.kinds
        read = [
            f"{name} ({kinds[name].what if name in kinds else 'list'})" for name in given.columns
        ]
        talk.note(f"columns: {listed(read)} (--column names others)")
    target = target_for(file, options, given)
    _say_strange_classes(target, talk)
    return replace(given, target=target, shown=given.kernel if kernel is None else kernel.shown)


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


def file_of(options: argparse.Namespace, talk: Talk, *, may_be_matrix: bool) -> Table | ArrayFile:
    """Open the file; the first line of a matrix may be a row, even without --no-header.

    What separates the columns is said, if it was found and is not what files of this name have.
    """
    header = None if options.header and may_be_matrix else options.header
    file = _opened(options.file, options, header)
    mark = getattr(getattr(file, "stored", None), "delimiter", None)
    if None is not mark != DELIMITERS.get(suffix_of(options.file)) and options.delimiter is None:
        talk.note(f"{options.file}: columns are separated by {MARKS[mark]} (--delimiter)")
    return file


def _opened(path: Path, options: argparse.Namespace, header: bool | None) -> Table | ArrayFile:
    return open_file(
        path,
        encoding=options.encoding,
        delimiter=options.delimiter,
        decimal=options.decimal or ".",
        header=header,
        memory_budget=getattr(options, "memory", None),
    )


def require_names(
    names: Sequence[str], file: Table | ArrayFile, options: argparse.Namespace
) -> None:
    """Look for the columns or arrays that the options name, before any of them is read."""
    for name in names:
        several = [one.strip() for one in name.split(",")]
        if name not in file.names and len(several) > 1 and set(several) <= set(file.names):
            flags = " ".join(f"--column {shlex.quote(one)}" for one in several)
            raise ValueError(
                f"there is no column {name!r}; repeat the flag for each column: {flags}"
            )
        named = hasattr(getattr(file, "stored", None), "delimiter") and options.header
        places = map(str, range(1, len(file.names) + 1))
        if named and name not in file.names and name in places:
            raise ValueError(
                f"there is no column {name!r} in {options.file}; the first line names them: "
                f"{listed(file.names)}; if it is a row, add --no-header"
            )
        what = "array" if isinstance(file, ArrayFile) else "column"
        require_column(name, file.names, options.file, what)


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
    """Take the columns that are named, or all but identifiers, as the kernel takes objects."""
    numbers, others = table.split([options.target, options.id])
    rows, chosen = _Rows(table, options, kernel, streams, talk), options.column
    fields = [] if kernel is None else kernel.fields
    if kernel is None and not chosen and (matrix := _matrix(rows, numbers, others)) is not None:
        return matrix
    if kernel is not None and kernel.domain.is_matrix:
        return rows.take("matrix", chosen or _matrix_columns(table, numbers, others))
    if not chosen and not fields:
        left_out = _identifiers(table, numbers, others, talk)
        numbers, others = (
            [one for one in some if one not in left_out] for some in (numbers, others)
        )
    everything = [name for name in table.names if name in {*numbers, *others}]
    if kernel is None:
        return _guessed(rows, chosen or everything, numbers, others)
    if fields:
        assert isinstance(kernel.domain, Records)
        return rows.take("records", fields, set(numbers) - kernel.domain.objects, lists=True)
    if kernel.domain.is_records:
        numeric = set(numbers) - kernel.categorical
        return rows.take("records", chosen or everything, numeric, gaps=True)
    if kernel.domain.is_objects:
        chosen = chosen or object_columns(table, numbers, others, kernel.takes_texts)
        return rows.take("objects" if len(chosen) == 1 else "numbers", chosen)
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
    return rows.take("numbers", chosen or numbers)


def _guessed(rows: _Rows, chosen: list[str], numbers: list[str], others: list[str]) -> Given:
    """Without --kernel, take one column of texts, columns of numbers, or all columns as records.

    A learner that compares kernels takes a column of any objects.
    """
    chosen = chosen or object_columns(rows.table, numbers, others, text=True)
    auto = rows.automatic
    if len(chosen) == 1 and chosen[0] not in numbers:
        if not auto or rows.large:  # objects that stay in a file cannot be looked at before
            _require_texts(rows.table, chosen[0])
            return replace(rows.take("objects", chosen), kernel="levenshtein")
        given = rows.take("objects", chosen)
        # a list of numbers in a cell is a series, and not a row of a matrix
        given = replace(
            given, X=[np.asarray(x) if isinstance(x, list) and x else x for x in given.X]
        )
    elif set(chosen) <= set(numbers):
        given = rows.take("numbers", chosen)
    else:
        given = rows.take("records", chosen, set(numbers), lists=auto, gaps=not auto)
    name = "gaussian" if set(chosen) <= set(numbers) else "gower"
    return replace(given, kernel=kernels.AUTO if auto else name)


def _identifiers(table: Table, numbers: list[str], others: list[str], talk: Talk) -> list[str]:
    """Return the columns that only name the rows, unless all do, and say which these are."""
    found = [name for name in table.names
             if name in {*numbers, *others} and _is_identifier(table, name)]  # fmt: skip
    if not found or len(found) == len(numbers) + len(others):
        return []
    talk.note(f"left out, because they only name the rows: {listed(found)} (--column takes any)")
    return found


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
        given = rows.take("matrix", numbers)
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
        self.automatic = kernel is None and kernels.is_automatic(options)
        budget = budget_bytes(getattr(options, "memory", None))
        self.large = streams and ROOM * options.file.stat().st_size > budget
        in_memory = self.automatic or isinstance(table.stored, TextTable)
        self.on_disk = self.large or (streams and not in_memory)

    def take(
        self, what: str, names: Sequence[str], numeric: Collection[str] = (), *,
        lists: bool = False, gaps: bool = False,
    ) -> Given:  # fmt: skip
        """Columns as a given matrix, rows of numbers, objects, or records.

        No row of a matrix can be left out without its column. Fields of records may be missing;
        with --drop-missing only if ``gaps``.
        """
        whole = what == "records" and (gaps or not self.options.drop_missing)
        table, left_out = (self.table, None) if what == "matrix" else self._complete(names, whole)
        named = tuple(names) if table.stored.header or what == "records" else None
        chosen, column = table.pick(list(names)), None
        X: Any = chosen
        if what == "records":
            of_lists = chosen.list_columns() if lists else ()
            blocks = (chosen.as_records(one, numeric, of_lists) for one in chosen.blocks())
            X = list(chain.from_iterable(blocks))
        elif what == "objects":
            chosen, column, named = table.pick(names[0]), names[0], None
            X = chosen if self.on_disk else chosen.objects()[:]
        elif what == "matrix" or not self.on_disk:
            X = chosen.numbers()[:]
        return Given(X, self.kernel, column, named, table=table, left_out=left_out)

    def _complete(self, names: Sequence[str], whole: bool) -> tuple[Table, Array | None]:
        """The table without rows in which an object or the target is missing, and these rows.

        Unless --drop-missing is given, they are an error that counts them. With ``whole``, an
        object is missing if all of its columns are empty.
        """
        options, table = self.options, self.table
        found = gaps_in(table, list(dict.fromkeys(names)), whole=whole)
        said = [gaps_in_words(found, table)] if found else []
        labels, name = _target_in(options, table, len(table))
        fits = isinstance(labels, Table) and len(labels) == len(table)
        if isinstance(labels, Table) and fits and (more := gaps_in(labels, [name])):
            shown = more if name != BARE else {str(options.labels): more[name]}
            said.append(gaps_in_words(shown, labels))
            found = {**found, f"target {name}": more[name]}
        if not found:
            return table, None
        rows, why = rows_of(found), ", ".join(said)
        if not options.drop_missing:
            raise ValueError(f"{table.origin}: {why}; fill in, or leave out with --drop-missing")
        self.talk.note(f"left out: {len(rows):,} of {len(table):,} rows; {why}")
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
    dropped = given.left_out
    n = given.n + (0 if dropped is None else len(dropped))
    labels, name = _target_in(options, given.table or file, n)
    if labels is None:
        return None
    source = options.labels if getattr(options, "labels", None) is not None else options.file
    if dropped is not None and isinstance(labels, Table) and len(labels) == n:
        labels = replace(labels, stored=Complete(labels.stored, dropped))
    values = labels.column(name)
    if len(values) != given.n:
        raise ValueError(
            f"{source} has {len(values)} labels for the {given.n} objects of {options.file}; there "
            "must be one for each"
        )
    shown, task = source.name if name == BARE else name, getattr(options, "task", "auto")
    if isinstance(labels, ArrayFile):
        place = "row {} of {!r} in {}".format
        return target_of(values, shown, lambda i: place(i, name, source), task, typed=True)
    stored = labels.stored
    place_of = partial(stored.place_after, 0, name)
    return target_of(values, shown, place_of, task, typed=stored.typed, decimal=stored.decimal)


def _target_in(
    options: argparse.Namespace, file: Table | ArrayFile, n: int
) -> tuple[Table | ArrayFile | None, str]:
    """Return the file, or that of --labels, and the column of it that is the target, if any.

    A single column of --labels without a name has one line for each of n objects.
    """
    if options.needs_target is None or (options.labels is None and options.target is None):
        return None, ""
    if options.labels is None:
        return file, options.target
    if options.target is not None:
        return _opened(options.labels, options, None), options.target
    bare = _opened(options.labels, options, False)
    if bare.names == [BARE] and isinstance(bare, Table) and len(bare) == n:
        return bare, BARE
    labels = _opened(options.labels, options, None)
    if len(labels.names) > 1:
        raise ValueError(
            f"{options.labels}: which is the target? --target names it: {', '.join(labels.names)}"
        )
    return labels, labels.names[0]
