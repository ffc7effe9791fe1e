"""Seconds and megabytes of one call, and rows of a table that compare them with a target."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kreinlearn.report.model import Table


@dataclass
class Row:
    """A number beside its target, and whether it reaches it."""

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


def timed(work: Callable[[], object]) -> Timing:
    """The seconds of one call."""
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return Timing(time.process_time() - cpu, time.perf_counter() - wall)


def interleaved(
    works: dict[str, Callable[[], object]], repetitions: int, *, warm: bool = True
) -> dict[str, Timing]:
    """The median timing of each work; every round runs all of them, and a first does not count."""
    if warm:
        for work in works.values():
            work()
    rounds = [{name: timed(work) for name, work in works.items()} for _ in range(repetitions)]
    return {
        name: Timing(*np.median([(r[name].cpu, r[name].wall) for r in rounds], axis=0).tolist())
        for name in works
    }


def timed_command(command: Sequence[str], env: dict[str, str] | None = None) -> Timing:
    """The seconds of a process and of those that it starts; its output is not shown.

    Only POSIX systems know them.
    """
    import resource

    before, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=os.environ | (env or {}))
    wall, after = time.perf_counter() - wall, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Timing(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall)


# Memory, on Linux


def resident_megabytes(which: str) -> float:
    """VmRSS is the memory now, VmHWM its peak (getrusage would include the parent process)."""
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) / 1e3 for line in file if line.startswith(which))


def forget_peak() -> float:
    """Resident megabytes now; the peak VmHWM starts from here."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return resident_megabytes("VmRSS")


def said_by(
    module: str, *words: str, timeout: float | None = None, env: dict[str, str] | None = None
) -> Any:
    """The last line that a module prints in a process of its own, read as JSON.

    ``env`` adds variables to the environment of that process.
    """
    command = [sys.executable, "-m", module, *words]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, check=True, timeout=timeout,
        env=os.environ | (env or {}),
    )  # fmt: skip
    return json.loads(done.stdout.splitlines()[-1])


# Rows


def spent(timing: Timing) -> str:
    """CPU and wall seconds in words."""
    return f"{timing.cpu:.2f} s CPU, {timing.wall:.2f} s wall"


def ratio_row(what: str, timing: Timing, floor: float, target: float, note: str = "") -> Row:
    """CPU seconds divided by a floor, beside the largest ratio that is allowed."""
    ratio = timing.cpu / floor
    shown = f"{ratio:.2f} x ({spent(timing)})"
    return Row(what, shown, f"<= {target}", ratio <= target, note)


def table_of(rows: list[Row], title: str) -> Table:
    """The rows as a table, with the load of the machine below it."""
    verdicts = {None: "", True: "holds", False: "MISSED"}
    cells = [[r.what, r.measured, r.target, verdicts[r.holds], r.note] for r in rows]
    note = f"CPU seconds of the whole process, medians; load average {load_average()}."
    return Table(title, ["what", "measured", "target", "verdict", "note"], cells, [note])


def load_average() -> str:
    """The load of the machine over 1, 5 and 15 minutes; Windows does not know it."""
    if not hasattr(os, "getloadavg"):
        return "unknown"
    return ", ".join(f"{v:.1f}" for v in os.getloadavg())


def load_of_a_minute() -> float | None:
    """The load average of the last minute, where the system tells it."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None
