"""The parts of the reproduction, by the names the command takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kreinlearn.paper import (
    flops,
    indefiniteness,
    propositions,
    rank_classification,
    rank_error,
    size_time,
    table1,
    table2,
    time_error,
)
from kreinlearn.paper.scale import Scale
from kreinlearn.paper.tasks import Measurements, Task
from kreinlearn.report import Section


class Part(NamedTuple):
    """Tasks to be run, and what is to be read in their measurements."""

    what: str
    tasks: Callable[[Scale], list[Task]]
    section: Callable[[Scale, Measurements], Section]


PARTS = {
    "indefiniteness": Part("the paper's iota", indefiniteness.tasks, indefiniteness.section),
    "rank-error": Part("Figure 1", rank_error.tasks, rank_error.section),
    "time-error": Part("Figure 2", time_error.tasks, time_error.section),
    "rank-classification": Part(
        "Figures 3 and 7", rank_classification.tasks, rank_classification.section
    ),
    "table1": Part("Table 1", table1.tasks, table1.section),
    "table2": Part("Table 2", table2.tasks, table2.section),
    "size-time": Part("Figure 8", size_time.tasks, size_time.section),
    "flops": Part("the count of operations", flops.tasks, flops.section),
    "propositions": Part("Propositions 1 and 2", propositions.tasks, propositions.section),
}
