"""Dask collections as rows: the only part that imports dask, and only when one arrives."""

from kreinlearn.distributed.blocks import is_dask, require_sendable
from kreinlearn.distributed.hinge import DaskMargins
from kreinlearn.distributed.rows import DaskRows, like, rows_of
from kreinlearn.distributed.targets import (
    Tally,
    class_totals,
    column_of,
    sums,
    tally,
    weighted_by_class,
)
from kreinlearn.distributed.using import accuracy, lazily, parts, r_squared
from kreinlearn.distributed.values import KernelRuns, room

__all__ = [
    "DaskMargins",
    "DaskRows",
    "KernelRuns",
    "Tally",
    "accuracy",
    "class_totals",
    "column_of",
    "is_dask",
    "lazily",
    "like",
    "parts",
    "r_squared",
    "require_sendable",
    "room",
    "rows_of",
    "sums",
    "tally",
    "weighted_by_class",
]
