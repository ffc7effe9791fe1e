"""What the sections of the report share: their text, their rows and their checks."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from functools import cache
from importlib.resources import files

from kreinlearn.report.model import Check
from reproduction.tasks import Measurements, Row, Task


@cache
def _prose() -> dict[str, dict[str, str]]:
    return tomllib.loads((files("reproduction") / "prose.toml").read_text("utf8"))


def say(name: str, **values: object) -> str:
    """A paragraph of ``prose.toml``, such as "flops.opening", with its values filled in."""
    part, _, key = name.partition(".")
    return " ".join(_prose()[part][key].split()).format(**values)


def rows_of(tasks: Iterable[Task], measurements: Measurements) -> list[Row]:
    """The rows of those tasks that have been measured, in the order of the tasks."""
    return [row for task in tasks for row in measurements.get(task.key, [])]


def at_most(what: str, values: Iterable[float], limit: float, style: str, shown: str) -> Check:
    """The claim that no value exceeds the limit; without values it could not be measured.

    The largest value is written in the format ``style``, and the limit as the text ``shown``.
    """
    largest = max(values, default=None)
    if largest is None:
        return Check(what, "", f"<= {shown}", None)
    return Check(what, f"{largest:{style}}", f"<= {shown}", largest <= limit)
