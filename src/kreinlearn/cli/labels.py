"""Labels in a file of their own: a column, an array, or a line an object."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np

from kreinlearn.data.reading import CsvSheet, Sheet, Target, Variables, gathering, opened, target_of

BARE = "1"  # the first column of a file without names


def labels_in(options: argparse.Namespace, n: int, task: str) -> Target:
    """The target of ``n`` objects, from the file --labels."""
    path = options.labels
    file = opened(path, encoding=options.encoding, delimiter=options.delimiter)
    name = options.target
    if isinstance(file, Variables):
        name = name or _only(file.names, path)
        values: Sequence[Any] = np.asarray(file.get(name)).ravel().tolist()
        places: Sequence[int] = range(len(values))
        where = f"{path}, row {{}}: {name}"
    else:
        file, name = _column(file, name, n)
        values, places = gathering.column(file, name)
        where = gathering.where(file, name)
    if len(values) != n:
        raise ValueError(
            f"{path} has {len(values)} labels for the {n} objects of {options.file}; there must "
            "be one for each"
        )
    return target_of(values, path.name if name == BARE else name, where, places, task)


def _only(names: Sequence[str], path: Any) -> str:
    if len(names) > 1:
        raise ValueError(f"{path}: which is the target? --target names it: {', '.join(names)}")
    return names[0]


def _column(file: Sheet, name: str | None, n: int) -> tuple[Sheet, str]:
    """A single column may have no name: then there are as many lines as objects."""
    if name is not None or not isinstance(file, CsvSheet):
        return file, name or _only(file.names, file.path)
    _only(file.names, file.path)
    bare = file.without_header()
    values, _ = gathering.column(bare, BARE)
    return (bare, BARE) if len(values) == n else (file, file.names[0])
