"""Rows of the table of targets and peers, which other benchmarks measure."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, NamedTuple

from benchmarks import core, learning_speed, requests, scale_dask, scale_near
from benchmarks.timing import Row


class Sizes(NamedTuple):
    n: int
    m: int
    n_small: int  # of the comparisons with peers
    repetitions: int
    chunk: int


FULL = Sizes(10**6, 1000, 10**5, 3, scale_dask.CHUNK)
QUICK = Sizes(20_000, 50, 20_000, 1, 4096)
DASK_LANDMARKS = 500  # at most

PARTS: dict[str, Callable[[Sizes], list[Row]]] = {
    "kernel block": lambda s: core.kernel_block(s.repetitions),
    "passes": lambda s: core.passes(s.n, s.m, s.repetitions),
    "landmarks": lambda s: core.landmark_rows(s.n_small, s.repetitions),
    "near the bound": lambda s: scale_near.near_the_bound(2 * s.n_small, s.m // 2, s.repetitions),
    "sharing": lambda s: scale_near.sharing(s.n_small // 2, s.m // 5, s.repetitions),
    "one object": lambda s: requests.one_object(s.repetitions, min(s.m, 600), s.m),
    "growth": lambda s: core.memory_and_growth(s.n, s.m),
    "tuning": lambda s: learning_speed.least_squares(s.n_small, s.repetitions),
    "svm": lambda s: learning_speed.machine(s.n_small, s.repetitions),
    "pipeline": lambda s: learning_speed.pipeline(s.n_small, s.repetitions),
    "peers": lambda s: core.peers(s.n_small, 1),  # the slowest of all, and far from ours
    "dask": lambda s: scale_dask.compared(s.n, min(s.m, DASK_LANDMARKS), s.chunk, s.repetitions),
}


def measured(part: str, sizes: Sizes) -> list[dict[str, Any]]:
    """Rows with the load of the machine beside every figure that has a target."""
    rows = PARTS[part](sizes)
    for row in rows:
        if row.target:
            row.note = "; ".join(filter(None, (row.note, f"load {os.getloadavg()[0]:.1f}")))
    return [asdict(row) for row in rows]
