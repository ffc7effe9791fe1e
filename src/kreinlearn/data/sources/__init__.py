"""Rows that are not in memory: read a block at a time, checked as they are read."""

from kreinlearn.data.sources.iterables import Blocks
from kreinlearn.data.sources.opening import opened, table, with_target
from kreinlearn.data.sources.tables import Table

__all__ = ["Blocks", "Table", "opened", "table", "with_target"]
