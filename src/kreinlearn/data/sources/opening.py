"""From what a person passes to rows that can be read: paths, arrays of zarr, tables of Arrow."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence, Sized
from pathlib import Path
from typing import Any

import numpy as np

from kreinlearn.data.sources import arrays
from kreinlearn.data.sources.base import library
from kreinlearn.data.sources.iterables import ONCE, Blocks
from kreinlearn.data.sources.stored import ArrowTable, OpenParquet, dataset_of, parquet
from kreinlearn.data.sources.tables import Table
from kreinlearn.data.sources.text import CsvFile
from kreinlearn.data.tiles import Source

SUFFIXES = (".npy", ".zarr", ".parquet", ".pq", ".csv", ".tsv", ".gz", ".arrow", ".feather")
DELIMITERS = {".csv": ",", ".tsv": "\t"}
PATHS = (
    "a path ends in .npy, .zarr, .parquet, .csv, .tsv or .arrow, or is a folder of Parquet files"
)


def table(
    data: Any,
    columns: str | Sequence[str] | None = None,
    *,
    encoding: str = "utf8",
    delimiter: str | None = None,
    header: bool = True,
) -> Table:
    """Columns of a table on disk or of pyarrow, as input of an estimator.

    Parameters
    ----------
    data : path of a Parquet file, of a folder of them, or of a .csv, .tsv or .arrow file; or a
        table, dataset or ParquetFile of pyarrow.
    columns : a name, for kernels on objects: the column that holds them; or a list of names, for
        kernels on vectors. None: all columns of numbers, or the only one of texts.
    encoding, delimiter, header : of a CSV file; ``header=False`` if its first line has no names.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from kreinlearn import KreinRidgeClassifier, table
    >>> words = pa.table({"word": ["hat", "cat", "tiger", "tigger"] * 9, "long": [0, 0, 1, 1] * 9})
    >>> X = table(words, columns="word")
    >>> KreinRidgeClassifier("levenshtein", random_state=0).fit(X, "long").predict(["bat"])
    array([0])
    """
    texts = [columns] if isinstance(columns, str) else []
    found = _table_of(data, columns if columns is None else texts or list(columns), texts,
                      encoding=encoding, delimiter=delimiter, header=header)  # fmt: skip
    if found is None:
        raise TypeError(f"table takes a path, or a table or dataset of pyarrow; got {data!r}")
    if columns is None:
        return found
    return found.pick(texts or list(columns))


def _table_of(data: Any, columns: Any = None, texts: Sequence[str] = (), **csv: Any) -> Any:
    if isinstance(data, Table):
        return data
    if is_path(data):
        return _table_at(Path(data), columns, texts, **csv)
    module = type(data).__module__.partition(".")[0]
    if module != "pyarrow":
        return None
    pa = library("pyarrow")
    if isinstance(data, pa.Table | pa.RecordBatch):
        whole = pa.Table.from_batches([data]) if isinstance(data, pa.RecordBatch) else data
        return Table("the table", ArrowTable(whole))
    if hasattr(data, "get_fragments"):
        return Table("the dataset", dataset_of(data), by_name=True)
    if hasattr(data, "iter_batches"):
        return Table("the Parquet file", OpenParquet(data), by_name=True)
    return None


def _table_at(path: Path, columns: Any, texts: Sequence[str], **csv: Any) -> Table | None:
    _require_there(path)
    suffix = path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix
    if suffix in DELIMITERS:
        csv["delimiter"] = csv.get("delimiter") or DELIMITERS[suffix]
        return Table(str(path), CsvFile(path, columns, texts, **csv), by_name=True)
    if suffix in (".arrow", ".feather"):
        pa = library("pyarrow")
        try:
            whole = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
        except pa.ArrowInvalid as error:
            raise ValueError(f"{path} cannot be read: {error}") from error
        return Table(str(path), ArrowTable(whole), by_name=True)
    if suffix in (".parquet", ".pq") or (path.is_dir() and suffix != ".zarr"):
        return Table(str(path), parquet(path), by_name=True)
    return None


def is_path(X: Any) -> bool:
    """A path, or a text that looks like one: other texts are objects, and one alone is no input."""
    if not isinstance(X, str):
        return isinstance(X, os.PathLike)
    return Path(X).suffix in SUFFIXES or os.sep in X or Path(X).exists()


def as_path(X: Any) -> Any:
    """A text that ends like a path as one, known or not: where no text can be an object."""
    return Path(X) if isinstance(X, str) and Path(X).suffix else X


def _require_there(path: Path) -> None:
    if not path.exists():
        kinds = "" if path.suffix in SUFFIXES else f"; {PATHS}"
        raise FileNotFoundError(
            f"X={str(path)!r} is taken as a path, and there is no such file{kinds}; one text as an "
            "object is passed in a list"
        )


def opened(X: Any, column: str | None = None) -> Source | Table | None:
    """Rows to be read when wanted; None if X is in memory, and no concern of this module.

    ``column`` holds the objects that a model was fitted on.
    """
    if isinstance(X, Source | Table):
        return X
    if is_path(X):
        return _opened_path(Path(X), column)
    if isinstance(X, np.memmap) and X.ndim == 2 and X.dtype.kind in arrays.NUMBERS:
        return arrays.memory_map(X)
    if type(X).__module__.startswith("zarr.") and hasattr(X, "chunks"):
        return arrays.zarr_array(X, f"the zarr array {X.path or ''}".rstrip())
    if hasattr(X, "__next__"):
        raise TypeError(
            f"X must be a sequence of objects, got a {type(X).__name__}: {ONCE}, or a list"
        )
    return Blocks(X) if _gives_blocks(X) else _table_of(X)


def _gives_blocks(X: Any) -> bool:
    """What can be iterated again, and is neither a sequence, an array nor lazy itself."""
    others = hasattr(X, "__array__") or hasattr(X, "__dask_graph__") or hasattr(X, "columns")
    return isinstance(X, Iterable) and not isinstance(X, Sized) and not others


def _opened_path(path: Path, column: str | None) -> Source | Table:
    found = _table_at(path, None, [] if column is None else [column])
    if found is not None:
        return found
    if path.suffix == ".npy":
        return arrays.npy(path)
    if path.suffix == ".zarr":
        return arrays.zarr_path(path)
    raise ValueError(f"X={str(path)!r} is a path to no known kind of file; {PATHS}")


def with_target(X: Any, y: Any) -> tuple[Any, Any]:
    """X and y, where y may be the name of a column of X, or the path of a .npy file."""
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
    known = data.chosen is not None and y not in data.chosen
    return (data if known else data.without(y)), data.target(y)
