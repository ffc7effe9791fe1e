"""``python -m reproduction quick``: every part of the paper in small, within stored ranges."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from reproduction import printed
from reproduction.__main__ import main
from reproduction.command import PARTS
from reproduction.scale import QUICK
from reproduction.sets import is_there
from tests.bounds import least_cpu_seconds

MOST_WORK = 500  # times the eigenvalues of a matrix of 1,500 rows: all measurements together
MOST_SECONDS = 540  # by the clock, after which something hangs


@threadpool_limits.wrap(limits=1)
def seconds_of_eigenvalues() -> float:
    """CPU seconds of a piece of work that is the same on every machine."""
    A = np.random.default_rng(0).normal(size=(1500, 1500))
    return least_cpu_seconds(lambda: np.linalg.eigvalsh(A + A.T))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the command writes; it fails where a number is outside its range."""
    folder = tmp_path_factory.mktemp("reproduction")
    command = [sys.executable, "-m", "reproduction", "quick", "--output", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=MOST_SECONDS)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return folder


@pytest.mark.timeout(2 * MOST_SECONDS)
def test_every_part_is_measured_and_within_its_ranges(folder: Path) -> None:
    text = (folder / "RESULTS.md").read_text(encoding="utf8")
    said = re.search(r"Of \d+ numbers (\d+) are within their ranges, (\d+) are not", text)
    assert said is not None
    measurable = [r for r in printed.ranges() if not r.needs or is_there(r.needs)]
    assert int(said[1]) == len(measurable) >= 20
    assert int(said[2]) == 0
    headings = re.findall(r"^## \d+\. (.*)$", text, re.M)
    assert len(headings) == len(PARTS) + 1
    lines = (folder / "measurements.jsonl").read_text(encoding="utf8").splitlines()[1:]
    kept = {outcome["key"]: outcome["cpu"] for outcome in map(json.loads, lines)}
    assert {task.key for part in PARTS.values() for task in part.tasks(QUICK)} == set(kept)
    assert sum(kept.values()) < MOST_WORK * seconds_of_eigenvalues()


@pytest.mark.timeout(2 * MOST_SECONDS)
def test_a_second_run_measures_nothing(folder: Path) -> None:
    before = (folder / "measurements.jsonl").read_bytes()
    assert main(["quick", "--output", str(folder)]) == 0
    assert (folder / "measurements.jsonl").read_bytes() == before
