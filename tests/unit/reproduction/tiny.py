"""Parts of a moment's length; as a program it runs them, to be interrupted and killed."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from reproduction.command import reproduce
from reproduction.report import Check, Picture, Section, Table
from reproduction.scale import QUICK, Scale
from reproduction.tasks import Measurements, Row, Task

PICTURE = '<svg xmlns="http://www.w3.org/2000/svg" width="10pt" height="10pt"><g/></svg>'


class Part(NamedTuple):  # as a module of the paper
    tasks: Callable[[Scale], list[Task]]
    section: Callable[[Scale, Measurements], Section]


def noted(folder: Path, i: int, seconds: float = 0.0) -> list[Row]:
    """The square of a number, after a while; says in files that it is and was computed."""
    with open(folder / "begun.txt", "a") as file:
        file.write(f"{i}\n")
    time.sleep(seconds)
    with open(folder / "ran.txt", "a") as file:
        file.write(f"{i}\n")
    return [{"i": i, "square": i * i}]


def begun(folder: Path) -> list[int]:
    return ran(folder, "begun.txt")


def ran(folder: Path, name: str = "ran.txt") -> list[int]:
    path = folder / name
    return sorted(map(int, path.read_text().split())) if path.exists() else []


def squares(folder: Path, seconds: float, numbers: tuple[int, ...], scale: Scale) -> list[Task]:
    return [
        Task(f"squares/{scale.name}/{i}", partial(noted, folder, i, seconds if i else 0.0), 1.0)
        for i in numbers
    ]


def section(title: str, scale: Scale, measurements: Measurements) -> Section:
    rows = sorted(measurements.items())
    cells = [[key, str(found[0]["square"])] for key, found in rows]
    total = sum(found[0]["square"] for _, found in rows)
    picture = Picture(f"{title}-picture", "A picture", "nothing", PICTURE)
    check = Check("the sum is even", str(total), "even", total % 2 == 0)
    table = Table(f"Squares of {title}", ("key", "square"), cells)
    return Section(title, [f"{len(rows)} found.", table, picture], [check], {"total": total})


def registry(folder: Path, seconds: float = 0.0) -> dict[str, Any]:
    """Two parts that share a task."""
    return {
        "low": Part(partial(squares, folder, seconds, (0, 1, 2, 3)), partial(section, "low")),
        "high": Part(partial(squares, folder, seconds, (3, 4, 5, 6)), partial(section, "high")),
    }


if __name__ == "__main__":
    folder, seconds, jobs = Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
    parts = registry(folder, seconds)
    sys.exit(reproduce(("low", "high"), QUICK, folder, jobs, parts=parts))
