"""The journal survives what befalls it; tasks run once each, and their failures are outcomes."""

from __future__ import annotations

import json
import math
import os
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from reproduction.report import commit
from reproduction.tasks import (
    Journal,
    JournalError,
    Outcome,
    Task,
    outcome,
    outcomes,
)

VERSIONS = {"kreinlearn": "1", "numpy": "2"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "new" / "journal.jsonl"


def filled(path: Path, *keys: str) -> Journal:
    with Journal(path, VERSIONS) as journal:
        for i, key in enumerate(keys):
            journal.add(Outcome(key, [{"i": i}], 1.5, 0.5))
    return journal


def test_what_is_added_is_read_again(path: Path) -> None:
    rows = [{"a": 1, "b": 0.1, "c": None, "d": True, "e": "ü", "f": math.inf, "g": math.nan}]
    with Journal(path, VERSIONS) as journal:
        journal.add(Outcome("key", rows, 2.0, 1.0, "", ["UserWarning: hm"]))
    (found,) = Journal(path, VERSIONS).outcomes.values()
    assert str(found) == str(Outcome("key", rows, 2.0, 1.0, "", ["UserWarning: hm"], commit()))
    assert math.isnan(found.rows[0]["g"])


def test_scalars_of_numpy_become_plain_and_tuples_lists_at_once(path: Path) -> None:
    with Journal(path, VERSIONS) as journal:
        journal.add(Outcome("key", [{"a": np.int64(3), "b": np.float32(0.5), "c": (1, 2)}], 0, 0))
    assert journal.outcomes == Journal(path, VERSIONS).outcomes
    assert journal.measurements(["key", "other"]) == {"key": [{"a": 3, "b": 0.5, "c": [1, 2]}]}


@pytest.mark.parametrize("cut", [1, 10, 30])
def test_a_torn_line_is_measured_again(path: Path, cut: int) -> None:
    filled(path, "a", "b")
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    assert list(Journal(path, VERSIONS).outcomes) == ["a"]
    assert path.read_bytes() == whole[:-cut]  # who only reads changes nothing
    with Journal(path, VERSIONS) as journal:
        journal.add(Outcome("b", [{"i": 1}], 1.5, 0.5))
    assert path.read_bytes() == whole


@pytest.mark.parametrize("start", [b"", b'{"vers'])
def test_a_journal_without_a_first_line_is_begun(path: Path, start: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(start)
    filled(path, "a")
    first, second = map(json.loads, path.read_text().splitlines())
    assert first == {"versions": VERSIONS}
    assert second["key"] == "a"


def test_other_versions_are_not_mixed_in(path: Path) -> None:
    filled(path, "a")
    with pytest.raises(JournalError, match=r"line 1 of .*numpy.*3.*pass --fresh"):
        Journal(path, {**VERSIONS, "numpy": "3"})


@pytest.mark.parametrize("line", ["no json", '"text"', '{"key": "a"}', "[1]"])
def test_a_line_that_is_no_measurement_is_named(path: Path, line: str) -> None:
    filled(path, "a")
    with open(path, "a") as file:
        file.write(line + "\n")
    with pytest.raises(JournalError, match=r"line 3 of .* is no measurement .*pass --fresh"):
        Journal(path, VERSIONS)


# Running


def recorded(file: Path, name: str) -> list[dict[str, object]]:
    with open(file, "a") as out:
        out.write(f"{name} {os.getpid()}\n")
    return [{"name": name}]


def failing() -> list[dict[str, object]]:
    raise ValueError("so it is")


def warning() -> list[dict[str, object]]:
    for _ in range(3):
        warnings.warn("look", UserWarning, stacklevel=1)
    return []


def busy() -> list[dict[str, object]]:
    end = time.process_time() + 0.05
    while time.process_time() < end:
        pass
    return []


def limited() -> list[dict[str, object]]:
    from threadpoolctl import threadpool_info

    return [{"threads": pool["num_threads"]} for pool in threadpool_info()]


def tasks(file: Path) -> list[Task]:
    """Two timings and three tasks that may run side by side, with costs."""
    return [
        Task("t1", partial(recorded, file, "t1"), 9.0, alone=True),
        Task("a", partial(recorded, file, "a"), 1.0),
        Task("b", partial(recorded, file, "b"), 3.0),
        Task("t2", partial(recorded, file, "t2"), 10.0, alone=True),
        Task("c", partial(recorded, file, "c"), 2.0),
    ]


def test_the_longest_come_first_and_timings_last(tmp_path: Path) -> None:
    found = [o.key for o in outcomes(tasks(tmp_path / "ran"), 1)]
    assert found == ["b", "c", "a", "t1", "t2"]


def test_workers_run_what_may_run_beside_the_rest_and_this_process_the_timings(
    tmp_path: Path,
) -> None:
    file = tmp_path / "ran"
    found = {o.key: o.rows for o in outcomes([*tasks(file), Task("l", limited)], 2)}
    threads = found.pop("l")
    assert found == {name: [{"name": name}] for name in ("a", "b", "c", "t1", "t2")}
    assert all(row["threads"] == 1 for row in threads)
    lines = [line.split() for line in file.read_text().splitlines()]
    here = {name for name, process in lines if process == str(os.getpid())}
    assert here == {"t1", "t2"}
    assert [name for name, _ in lines[-2:]] == ["t1", "t2"]


def test_a_failure_is_an_outcome() -> None:
    found = outcome(Task("f", failing))
    assert found.failed.strip().endswith("ValueError: so it is")
    assert found.rows == []


def test_warnings_are_kept_once_each() -> None:
    assert outcome(Task("w", warning)).warned == ["UserWarning: look"]


def test_seconds_are_those_of_the_task() -> None:
    before = time.process_time()
    found = outcome(Task("b", busy))
    assert 0.05 <= found.cpu <= time.process_time() - before
    assert found.wall > 0.04
