"""``kreinlearn reproduce quick``: every part of the paper in small, within stored ranges."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kreinlearn.paper import ranges
from kreinlearn.paper.command import all_parts
from kreinlearn.paper.scale import QUICK
from kreinlearn.paper.sets import is_there

MOST_CPU = 180  # seconds of all measurements: three minutes on one core
MOST_SECONDS = 3 * MOST_CPU  # by the clock; the machine that runs the tests may be busy


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the command writes; it fails where a number is outside its range."""
    folder = tmp_path_factory.mktemp("reproduction")
    command = [sys.executable, "-m", "kreinlearn", "reproduce", "quick", "--output", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=MOST_SECONDS)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return folder


@pytest.mark.timeout(2 * MOST_SECONDS)
def test_every_part_is_measured_and_within_its_ranges(folder: Path) -> None:
    text = (folder / "RESULTS.md").read_text(encoding="utf8")
    said = re.search(r"Of \d+ numbers (\d+) are within their ranges, (\d+) are not", text)
    assert said is not None
    measurable = [r for r in ranges.stored() if not r.needs or is_there(r.needs)]
    assert int(said[1]) == len(measurable) >= 20
    assert int(said[2]) == 0
    headings = re.findall(r"^## \d+\. (.*)$", text, re.M)
    assert len(headings) == len(all_parts()) + 1
    lines = (folder / "measurements.jsonl").read_text(encoding="utf8").splitlines()[1:]
    kept = {outcome["key"]: outcome["cpu"] for outcome in map(json.loads, lines)}
    assert {task.key for part in all_parts().values() for task in part.tasks(QUICK)} == set(kept)
    assert sum(kept.values()) < MOST_CPU


@pytest.mark.timeout(2 * MOST_SECONDS)
def test_a_second_run_measures_nothing(folder: Path) -> None:
    before = (folder / "measurements.jsonl").read_bytes()
    command = [sys.executable, "-m", "kreinlearn", "reproduce", "quick", "--output", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=MOST_SECONDS)
    assert done.returncode == 0, done.stderr[-2000:]
    assert (folder / "measurements.jsonl").read_bytes() == before
