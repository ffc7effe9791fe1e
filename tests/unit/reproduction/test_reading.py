"""The words of the report: all are used, and all that are used exist."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import reproduction as paper
from reproduction.reading import at_most, rows_of, say
from reproduction.tasks import Task

FOLDER = Path(paper.__file__).parent
USED = r"""\(\s*f?["']([\w-]+)\.([\w{}]+)["']"""


@pytest.mark.parametrize(
    ("file", "by"), [("prose.toml", "say"), ("tables.toml", "(?:table|by_way)")]
)
def test_words_are_those_that_the_sections_use(file: str, by: str) -> None:
    found = tomllib.loads((FOLDER / file).read_text(encoding="utf8"))
    written = {(part, key) for part, texts in found.items() for key in texts}
    source = "".join(path.read_text(encoding="utf8") for path in FOLDER.glob("*.py"))
    source = re.sub(r'"([\w.-]+)" if [^"]* else "([\w.-]+)"', r'"\1"); say("\2"', source)
    used = set(re.findall(by + USED, source))
    chosen = {part for part, key in used if "{" in key}  # the key is decided at run time
    assert {one for one in used if "{" not in one[1]} <= written
    assert {part for part, _ in written - used} <= chosen


def test_a_paragraph_is_one_line_with_its_values_filled_in() -> None:
    text = say("ranges.summary", total=7, within=4, outside=2, skipped=1)
    assert text.startswith("Of 7 numbers 4 are within their ranges, 2 are not, and 1 could")
    assert "\n" not in text
    with pytest.raises(KeyError):
        say("ranges.summary", total=7)


def test_rows_of_tasks_that_are_measured_come_in_the_order_of_the_tasks() -> None:
    tasks = [Task(key, list) for key in "abc"]
    assert rows_of(tasks, {"c": [{"i": 3}], "d": [], "a": [{"i": 1}, {"i": 2}]}) == [
        {"i": 1},
        {"i": 2},
        {"i": 3},
    ]


@pytest.mark.parametrize(
    ("values", "shown", "holds"),
    [([0.5, 1.0], "1.0", True), ([2.0, 0.1], "2.0", False)],
)
def test_the_largest_value_decides(values: list[float], shown: str, holds: bool) -> None:
    check = at_most("all are small", values, 1.0, ".1f", "1")
    assert (check.what, check.found, check.limit) == ("all are small", shown, "<= 1")
    assert check.holds is holds
