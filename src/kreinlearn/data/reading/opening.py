"""A path to what can be read from it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kreinlearn.data.reading.arrays import Variables
from kreinlearn.data.reading.sheets import ArrowSheet, CsvSheet, JsonSheet, Sheet
from kreinlearn.data.sources import table

DELIMITERS = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".txt": "\t"}
JSON = (".jsonl", ".ndjson")
ARROW = (".parquet", ".pq", ".arrow", ".feather")
SHEETS = (".csv", ".tsv", ".jsonl", ".parquet")
ARRAYS = (".npy", ".npz", ".mat")
ALIKE = {
    ".json": "write one object a line and name it .jsonl",
    ".xlsx": "save the table as CSV",
    ".xls": "save the table as CSV",
    ".ods": "save the table as CSV",
    ".pkl": "pickles are not read, as they may run code: save a .npy or .parquet file",
    ".pickle": "pickles are not read, as they may run code: save a .npy or .parquet file",
    ".krein": "it is a model, which `kreinlearn predict` takes first",
    ".h5": "save a .npy or .mat file",
}


def suffix_of(path: Path) -> str:
    """Lower case, that of what is compressed if it is."""
    inner = path.with_suffix("") if path.suffix.lower() == ".gz" else path
    return inner.suffix.lower()


def opened(
    path: Path,
    *,
    encoding: str | None = None,
    delimiter: str | None = None,
    header: bool = True,
    memory: int | str | None = None,
) -> Sheet | Variables:
    """A table of named columns, or arrays by name; by the end of the file's name."""
    if not path.exists():
        raise FileNotFoundError(f"{path}: there is no such file")
    suffix = suffix_of(path)
    if path.is_dir() and not _holds_parquet_only(path):
        raise ValueError(
            f"{path} is a folder; name a file, or a folder that holds nothing but .parquet files"
        )
    if suffix in ARRAYS and path.suffix.lower() == suffix:
        return Variables(path, memory)
    found = sheet(path, encoding=encoding, delimiter=delimiter, header=header)
    if found is not None:
        return found
    if suffix in ALIKE:
        raise ValueError(f"{path} is not read: {ALIKE[suffix]}")
    known = ", ".join((*SHEETS, *ARRAYS))
    raise ValueError(f"{path}: the end of a name tells what is in the file; it must be of {known}")


def _holds_parquet_only(folder: Path) -> bool:
    """Some of them, and nothing else; what begins with a dot or an underscore is not looked at."""
    inside = (path for path in folder.rglob("*") if path.is_file())
    hidden = (".", "_")
    seen = {
        path.suffix.lower() in ARROW[:2]
        for path in inside
        if not any(part.startswith(hidden) for part in path.relative_to(folder).parts)
    }
    return seen == {True}


def sheet(
    path: Path, *, encoding: str | None = None, delimiter: str | None = None, header: bool = True
) -> Sheet | None:
    """None if the name is not that of a table."""
    suffix = suffix_of(path)
    if suffix in ARROW or path.is_dir():
        return ArrowSheet(path, table(path))
    if suffix in JSON:
        return JsonSheet(path, encoding=encoding)
    if suffix in DELIMITERS:
        mark = delimiter or DELIMITERS[suffix]
        options: Any = {"encoding": encoding, "delimiter": mark, "header": header}
        return CsvSheet(path, **options)
    return None
