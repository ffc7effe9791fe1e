"""Seconds and megabytes of one call, rows of a table that set them beside a target."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn
from rich.table import Table


@dataclass
class Row:
    what: str
    measured: str
    target: str = ""
    holds: bool | None = None
    note: str = ""


@dataclass
class Timing:
    """CPU and wall seconds of one call."""

    cpu: float
    wall: float


def timed(work: Callable[[], Any]) -> Timing:
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return Timing(time.process_time() - cpu, time.perf_counter() - wall)


def interleaved(
    works: dict[str, Callable[[], Any]], repetitions: int, *, warm: bool = True
) -> dict[str, Timing]:
    """Median timing of each, all of them once a round, after one round that does not count."""
    if warm:
        for work in works.values():
            work()
    rounds = [{name: timed(work) for name, work in works.items()} for _ in range(repetitions)]
    return {
        name: Timing(*np.median([(r[name].cpu, r[name].wall) for r in rounds], axis=0).tolist())
        for name in works
    }


# Memory, on Linux


def resident_megabytes(which: str) -> float:
    """VmRSS now, VmHWM at most (getrusage would count what the parent process had)."""
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) / 1e3 for line in file if line.startswith(which))


def forget_peak() -> float:
    """Resident megabytes now; VmHWM is counted from here on."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return resident_megabytes("VmRSS")


def said_by(module: str, *words: str, timeout: float | None = None) -> Any:
    """What the last line of a command says, in JSON, of a process of its own."""
    command = [sys.executable, "-m", module, *words]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=timeout)
    return json.loads(done.stdout.splitlines()[-1])


# Rows


def spent(timing: Timing) -> str:
    return f"{timing.cpu:.2f} s CPU, {timing.wall:.2f} s wall"


def ratio_row(what: str, timing: Timing, floor: float, target: float, note: str = "") -> Row:
    ratio = timing.cpu / floor
    shown = f"{ratio:.2f} x ({spent(timing)})"
    return Row(what, shown, f"<= {target}", ratio <= target, note)


def table_of(rows: list[Row], title: str) -> Table:
    table = Table("what", "measured", "target", "", "note", title=title)
    for row in rows:
        verdict = "" if row.holds is None else ("holds" if row.holds else "MISSED")
        table.add_row(row.what, row.measured, row.target, verdict, row.note)
    return table


def load_average() -> str:
    return ", ".join(f"{v:.1f}" for v in os.getloadavg())


def markdown_of(rows: list[Row], command: str, title: str) -> str:
    head = (
        f"# {title}\n\nWritten by `{command}` on {date.today()}: "
        f"{platform.machine()}, {os.cpu_count()} cores, load average {load_average()}; Python "
        f"{platform.python_version()}, numpy {np.__version__}, scipy {scipy.__version__}, "
        f"scikit-learn {sklearn.__version__}. CPU seconds of the whole process, medians.\n\n"
        "| what | measured | target | | note |\n|---|---|---|---|---|\n"
    )
    verdict = {None: "", True: "holds", False: "missed"}
    lines = (
        f"| {r.what} | {r.measured} | {r.target} | {verdict[r.holds]} | {r.note} |" for r in rows
    )
    return head + "\n".join(lines) + "\n"
