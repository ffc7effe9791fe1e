"""The target: a column of the file itself, or of a file of its own."""

from __future__ import annotations

import argparse
from functools import partial

from kreinlearn.data.arrays import ArrayFile
from kreinlearn.data.opening import open_file
from kreinlearn.data.table import Table
from kreinlearn.data.targets import Target, target_of

BARE = "1"  # the first column of a file without names


def target_for(file: Table | ArrayFile, options: argparse.Namespace, n: int) -> Target | None:
    """Return the target of ``n`` objects: that of --labels, or a column of the file itself."""
    if options.needs_target is None or (options.labels is None and options.target is None):
        return None
    name, source = options.target, options.file
    if options.labels is not None:
        source = options.labels
        file, name = _labels(options, n)
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
        return target_of(values, shown, place, task, typed=file.stored.typed)
    return target_of(values, shown, lambda i: f"row {i} of {name!r} in {source}", task, typed=True)


def _labels(options: argparse.Namespace, n: int) -> tuple[Table | ArrayFile, str]:
    """Open the file of --labels; a single column without a name has one line per object."""

    def opened(header: bool | None) -> Table | ArrayFile:
        return open_file(
            options.labels, encoding=options.encoding, delimiter=options.delimiter, header=header
        )

    if options.target is not None:
        return opened(None), options.target
    bare = opened(False)
    if bare.names == [BARE] and isinstance(bare, Table) and len(bare) == n:
        return bare, BARE
    file = opened(None)
    if len(file.names) > 1:
        raise ValueError(
            f"{options.labels}: which is the target? --target names it: {', '.join(file.names)}"
        )
    return file, file.names[0]
