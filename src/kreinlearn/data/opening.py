"""Which reader reads what was given: the end of a path decides, or the type of an object."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence, Sized
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from kreinlearn.data.arrays import ArrayFile, array_in, memory_map
from kreinlearn.data.arrow import arrow_at, columns_of, dataset_of, parquet_at
from kreinlearn.data.blocks import ONCE, Blocks
from kreinlearn.data.source import NUMBERS
from kreinlearn.data.table import MARKS, Table
from kreinlearn.data.tiles import Source, library

T = TypeVar("T")
DELIMITERS = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".txt": "\t"}
JSON = (".jsonl", ".ndjson")
PARQUET = (".parquet", ".pq")
ARROW = (".arrow", ".feather")
ARRAYS = (".npy", ".npz")
KNOWN = (*ARRAYS, *PARQUET, *ARROW, *DELIMITERS, *JSON)
PATHS = (
    "a path ends in .npy, .npz, .parquet, .arrow, .csv, .tsv or .jsonl, or is a "
    "folder of Parquet files"
)
OTHERS = {
    ".json": "write one object per line and name it .jsonl",
    **dict.fromkeys((".xlsx", ".xls", ".ods"), "save the table as CSV"),
    ".pkl": "pickles are not read, as they may run code: save a .npy or .parquet file",
    ".krein": "it is a model, which `kreinlearn predict` takes first",
    ".h5": "save a .npy or .npz file",
    ".zarr": "pass Blocks(f) where f() reads its rows a part at a time",
    ".mat": "save its arrays by scipy.io.loadmat and numpy.savez, as .npz",
}


def suffix_of(path: Path) -> str:
    """Return the end of a name in lower case; of a compressed file, what stands before .gz."""
    inner = path.with_suffix("") if path.suffix.lower() == ".gz" else path
    return inner.suffix.lower()


def open_file(
    path: Path, *, encoding: str | None = None, delimiter: str | None = None, decimal: str = ".",
    header: bool | None = True, memory_budget: int | str | None = None,
) -> Table | ArrayFile:  # fmt: skip
    """Open a file: a table of named columns, or arrays by name, as the end of its name says.

    Parameters are those of ``table``. With ``header=None`` the first line of a text file holds
    names unless it holds nothing but numbers. No array larger than the budget is read into memory.
    """
    if decimal not in MARKS:
        raise ValueError(f"decimal={decimal!r} is no decimal mark; pass '.' or ','")
    if not path.exists():
        raise FileNotFoundError(f"{path}: there is no such file{near_name(path)}")
    suffix = suffix_of(path)
    if suffix in OTHERS:
        raise ValueError(f"{path} is not read: {OTHERS[suffix]}")
    if path.is_dir():
        _require_parquet_only(path)
    if suffix in PARQUET or path.is_dir():
        return Table(parquet_at(path), by_name=True)
    if suffix in ARROW:
        return Table(arrow_at(path), by_name=True)
    if suffix in DELIMITERS:
        from kreinlearn.data.text import Delimited, separator_of

        usual = ";" if suffix == ".csv" and decimal == "," else DELIMITERS[suffix]
        mark = delimiter or separator_of(path, usual, encoding)
        file = Delimited(path, encoding=encoding, delimiter=mark, decimal=decimal, header=header)
        return Table(file, by_name=True)
    if suffix in JSON:
        from kreinlearn.data.text import JsonLines

        return Table(JsonLines(path, encoding=encoding), by_name=True)
    if path.suffix.lower() in ARRAYS:
        return ArrayFile(path, memory_budget)
    raise ValueError(f"{path} is of no known kind; {PATHS}")


def _require_parquet_only(folder: Path) -> None:
    """Refuse a folder that has files of other kinds, or none; hidden files do not count."""
    places = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    shown = [one for one in places if not any(part.startswith((".", "_")) for part in one.parts)]
    if {one.suffix.lower() in PARQUET for one in shown} != {True}:
        raise ValueError(
            f"{folder} is a folder; name a file, or a folder that holds nothing but .parquet files"
        )


def table(
    data: Any, columns: str | Sequence[str] | None = None, *, encoding: str | None = None,
    delimiter: str | None = None, decimal: str = ".", header: bool = True,
) -> Table:  # fmt: skip
    """Columns of a table in a file or of pyarrow, as the input of an estimator.

    Parameters
    ----------
    data : path, or table or dataset of pyarrow
        A path names a .csv, .tsv, .jsonl, .parquet or .arrow file, or a folder of Parquet files.
        Text files may be compressed (.csv.gz).
    columns : str or list of str, default=None
        For kernels on objects, the name of the column that holds them; for kernels on vectors, a
        list of names of columns of numbers. None stands for all columns or, with a kernel on
        objects, for the only one of texts.
    encoding : str, default=None
        The encoding of a text file. None stands for UTF-8, unless the file has the byte order
        mark of another encoding.
    delimiter : str, default=None
        The character between the columns of a text file. None stands for a comma in a .csv file,
        and for a tab in others; if the first line has none, for a comma, a semicolon, a tab or a
        bar that divides the first rows into equally many columns.
    decimal : {".", ","}, default="."
        The mark before the fraction of a number in a .csv or .tsv file.
    header : bool, default=True
        Whether the first line of a .csv or .tsv file holds the names of the columns. Columns
        without names are called "1", "2", and so on.

    Returns
    -------
    table : Table
        The columns, whose rows are read when an estimator asks for them.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from kreinlearn import KreinRidgeClassifier, table
    >>> words = pa.table({"word": ["hat", "cat", "tiger", "tigger"] * 9, "long": [0, 0, 1, 1] * 9})
    >>> X = table(words, columns="word")
    >>> KreinRidgeClassifier("levenshtein", random_state=0).fit(X, "long").predict(["bat"])
    array([0])
    """
    if is_path(data):
        path = _there(data)
        opened: Any = open_file(
            path, encoding=encoding, delimiter=delimiter, decimal=decimal, header=header
        )
    else:
        opened = data if isinstance(data, Table) else _of_pyarrow(data)
    if not isinstance(opened, Table):
        raise TypeError(f"table takes a path, or a table or dataset of pyarrow; got {data!r}")
    return opened if columns is None else opened.pick(columns)


def _of_pyarrow(data: Any) -> Table | None:
    """Return a table of pyarrow, or what is like one, as a Table; None if it is none."""
    if type(data).__module__.partition(".")[0] != "pyarrow":
        return None
    pa = library("pyarrow")
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if isinstance(data, pa.Table):
        return Table(columns_of(data, "the table"))
    if hasattr(data, "get_fragments"):
        return Table(dataset_of(data, "the dataset"), by_name=True)
    return None


def collected(X: Any) -> Any:
    """A frame of polars whose rows have not been read yet, read; X itself otherwise."""
    return X.collect() if type(X).__name__ == "LazyFrame" else X


def is_path(X: Any) -> bool:
    """Tell a path from objects: a text is a path if it looks like one."""
    if not isinstance(X, str):
        return isinstance(X, os.PathLike)
    return suffix_of(Path(X)) in KNOWN or os.sep in X or Path(X).exists()


def as_path(X: T) -> T | Path:
    """Return a text that ends like a path as a path, for kernels that do not take texts."""
    return Path(X) if isinstance(X, str) and Path(X).suffix else X


def _there(X: str | os.PathLike[str]) -> Path:
    path = Path(X)
    if not path.exists():
        kinds = "" if suffix_of(path) in KNOWN else f"; {PATHS}"
        raise FileNotFoundError(
            f"X={str(path)!r} is taken as a path, and there is no such file"
            f"{near_name(path)}{kinds}; one text as an object is passed in a list"
        )
    return path


def near_name(path: Path) -> str:
    """Return a question that names a file with nearly this name, or else the folder of a path."""
    folder = path.absolute().parent
    if not folder.is_dir():
        return f", nor a folder {folder}"
    with suppress(OSError):
        names = [one.name for one in folder.iterdir() if one.is_file()]
        for close in get_close_matches(path.name, names, n=1):
            return f" (did you mean {str(path.with_name(close))!r}?)"
    return f" in {folder}"


def opened(X: Any, column: str | None = None) -> Source | Table | None:
    """Return rows that are read when they are wanted; None if X is in memory already.

    Parameters
    ----------
    X : path, memory map, table or dataset of pyarrow, Blocks, or an iterable of blocks
        Anything else is taken to be in memory.
    column : str, default=None
        The column that holds the objects that a model was fitted on.
    """
    if isinstance(X, Source | Table):
        return X
    if is_path(X):
        path = _there(X)
        file = open_file(path)
        if isinstance(file, ArrayFile):
            return array_in(file)
        return Table(file.stored, by_name=True, text=column)
    if isinstance(X, np.memmap) and X.ndim == 2 and X.dtype.kind in NUMBERS:
        return memory_map(X)
    if hasattr(X, "__next__"):
        raise TypeError(
            f"X must be a sequence of objects, got a {type(X).__name__}: {ONCE}, or a list"
        )
    return Blocks(X) if _gives_blocks(X) else _of_pyarrow(X)


def _gives_blocks(X: Any) -> bool:
    """Tell whether X can be iterated again, and is neither a sequence, an array nor lazy itself."""
    others = any(hasattr(X, name) for name in ("__array__", "to_delayed", "columns"))
    return isinstance(X, Iterable) and not isinstance(X, Sized) and not others


def with_target(X: Any, y: Any) -> tuple[Any, Any]:
    """Return X and y, where y may be the name of a column of X, or the path of a .npy file."""
    if not isinstance(y, str):
        return X, y
    if y.endswith(".npy"):
        return X, np.load(y, mmap_mode=None)
    data = opened(X)
    if not isinstance(data, Table):
        raise ValueError(
            f"y={y!r} is taken as the name of a column of X, and X, a {type(X).__name__}, is no "
            "table on disk or of pyarrow; pass the targets themselves"
        )
    elsewhere = data.chosen is not None and y not in data.chosen
    return (data if elsewhere else data.without(y)), data.target(y)
