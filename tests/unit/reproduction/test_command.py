"""The command from tasks to files: what it keeps, what it writes, how it ends."""

from __future__ import annotations

import contextlib
import io
import os
import re
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from reproduction import printed
from reproduction.command import PARTS, compared, compared_section, reproduce
from reproduction.printed import Range
from reproduction.report import Section
from reproduction.scale import NAMES, QUICK, Scale
from reproduction.tasks import Journal, JournalError, Task
from tests.systems import hearing, kill_session
from tests.unit.reproduction.tiny import Part, begun, ran, registry, section

ROOT = Path(__file__).parents[3]
BOTH = ("low", "high")


def run(folder: Path, names: tuple[str, ...] = BOTH, **options: Any) -> tuple[int, str]:
    """The status and what was shown."""
    parts = options.pop("registry", registry(folder))
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        status = reproduce(names, QUICK, folder, 1, parts=parts, **options)
    return status, shown.getvalue()


def refuse() -> list[dict[str, object]]:
    raise ValueError("this one cannot")


def with_failure(folder: Path) -> dict[str, Any]:
    def tasks(scale: Scale) -> list[Task]:
        return [*registry(folder)["low"].tasks(scale), Task("squares/quick/9", refuse)]

    return {"low": Part(tasks, partial(section, "low"))}


# What it writes


def test_it_writes_the_report_and_shows_its_tables(tmp_path: Path) -> None:
    status, shown = run(tmp_path, command="python -m reproduction tiny")
    assert status == 0
    assert ran(tmp_path) == [0, 1, 2, 3, 4, 5, 6]  # 3 belongs to both
    text = (tmp_path / "RESULTS.md").read_text(encoding="utf8")
    for words in ("1. low", "2. high", "squares/quick/6", "python -m reproduction tiny"):
        assert words in text
    assert "squares/quick/6" in shown
    assert "| the sum is even | PASS | 14 | even | 1 |" in text
    assert "RL-Sigmoid is undefined" in text
    assert "7 measurements took" in text
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"RESULTS.md", "figures", "measurements.jsonl", "begun.txt", "ran.txt"}
    pictures = re.findall(r"\((figures/.*?)\)", text)
    assert pictures == ["figures/low-picture.svg", "figures/high-picture.svg"]
    assert all((tmp_path / name).read_text("utf8").startswith("<svg") for name in pictures)
    assert shown.endswith(f"report: {tmp_path / 'RESULTS.md'}\n")


def test_the_same_measurements_give_the_same_report(tmp_path: Path) -> None:
    run(tmp_path)
    first = (tmp_path / "RESULTS.md").read_bytes()
    assert run(tmp_path)[0] == 0
    assert first == (tmp_path / "RESULTS.md").read_bytes()


def test_a_part_of_which_some_is_missing_says_so(tmp_path: Path) -> None:
    run(tmp_path, ("low",))
    text = (tmp_path / "RESULTS.md").read_text(encoding="utf8")
    assert "These measurements of high are not there" in text
    assert "- squares/quick/6" in text


def test_missing_sets_are_named_with_what_to_download(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KREINLEARN_DATA", str(tmp_path))
    run(tmp_path)
    text = (tmp_path / "RESULTS.md").read_text(encoding="utf8")
    assert re.search("^- protein: Protein of .*dissimilarity/protein.npz", text, re.MULTILINE)


# What it keeps


def test_what_is_measured_is_not_measured_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(tmp_path, ("low",))
    assert ran(tmp_path) == [0, 1, 2, 3]
    run(tmp_path)
    assert ran(tmp_path) == [0, 1, 2, 3, 4, 5, 6]
    assert "3 measurements to make, 4 are kept" in capsys.readouterr().err


def test_fresh_measures_what_is_asked_for_again_and_nothing_else(tmp_path: Path) -> None:
    run(tmp_path)
    run(tmp_path, ("high",), fresh=True)
    assert ran(tmp_path) == [0, 1, 2, 3, 3, 4, 4, 5, 5, 6, 6]


def test_other_versions_need_fresh(tmp_path: Path) -> None:
    journal = tmp_path / "measurements.jsonl"
    with Journal(journal, {"kreinlearn": "0.0.0"}):
        pass
    before = journal.read_bytes()
    with pytest.raises(JournalError):
        run(tmp_path)
    assert journal.read_bytes() == before
    assert run(tmp_path, fresh=True)[0] == 0
    assert len(ran(tmp_path)) == 7


def test_report_only_measures_nothing(tmp_path: Path) -> None:
    run(tmp_path, ("low",))
    (tmp_path / "RESULTS.md").unlink()
    assert run(tmp_path, report_only=True)[0] == 0
    assert ran(tmp_path) == [0, 1, 2, 3]
    assert "4 measurements took" in (tmp_path / "RESULTS.md").read_text(encoding="utf8")


# What goes wrong


def test_a_failed_task_is_named_and_the_rest_is_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _ = run(tmp_path, ("low",), registry=with_failure(tmp_path))
    assert status == 1
    line = "squares/quick/9: ValueError: this one cannot"
    assert f"failed: {line}" in capsys.readouterr().err
    assert line in (tmp_path / "RESULTS.md").read_text(encoding="utf8")
    assert "in refuse" in (tmp_path / "failures.txt").read_text(encoding="utf8")
    assert ran(tmp_path) == [0, 1, 2, 3]
    assert run(tmp_path, ("low",))[0] == 0
    assert ran(tmp_path) == [0, 1, 2, 3]


def test_a_section_that_fails_does_not_take_the_others_with_it(tmp_path: Path) -> None:
    def broken(scale: Scale, measurements: object) -> Section:
        raise KeyError("nothing")

    parts = registry(tmp_path)
    parts["low"] = parts["low"]._replace(section=broken)
    status, shown = run(tmp_path, registry=parts)
    assert status == 1
    assert "section low: KeyError: 'nothing'" in (tmp_path / "RESULTS.md").read_text("utf8")
    assert "Squares of high" in shown


def test_a_file_that_cannot_be_replaced_stays_whole(tmp_path: Path) -> None:
    (tmp_path / "RESULTS.md").mkdir()
    with pytest.raises(OSError, match=re.escape("RESULTS.md")):
        run(tmp_path)
    assert len(ran(tmp_path)) == 7


@contextmanager
def started(folder: Path, seconds: float, jobs: int) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [
            sys.executable,
            "-m",
            "tests.unit.reproduction.tiny",
            str(folder),
            str(seconds),
            str(jobs),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        start_new_session=os.name == "posix",
        **hearing(),
    ) as process:
        try:
            yield process
        finally:
            kill_session(process)


def until_measured(folder: Path, n: int) -> None:
    """Until so many outcomes are in the journal."""
    journal = folder / "measurements.jsonl"
    until(lambda: journal.exists() and journal.read_bytes().count(b"\n") > n, "so many are kept")


def until(holds: Callable[[], bool], what: str) -> None:
    for _ in range(2400):
        if holds():
            return
        time.sleep(0.1)
    raise AssertionError(f"not within four minutes: {what}")


def living(session: int) -> Iterator[int]:
    """Processes of a session, zombies aside."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if fields[0] not in "ZX" and int(fields[3]) == session:
                yield int(entry.name)


def ended(session: int) -> bool:
    """Whether no process is left, a moment after the first has gone: some only tidy up."""
    for _ in range(200):
        if not list(living(session)):
            return True
        time.sleep(0.1)
    return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
def test_interrupted_it_keeps_what_it_has_and_leaves_no_process(tmp_path: Path) -> None:
    with started(tmp_path, 600.0, 2) as process:
        until_measured(tmp_path, 1)
        until(lambda: len(begun(tmp_path)) == 3, "both workers are at it")  # and not at imports
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does it: the workers get it, too
        out, err = process.communicate(timeout=240)
        assert ended(process.pid)
    assert process.returncode == 130
    assert out == ""
    assert err.splitlines()[0] == "7 measurements to make, 0 are kept"
    assert err.splitlines()[-1].startswith("interrupted: 1 measurements are kept; the same command")
    assert "Traceback" not in err
    assert run(tmp_path)[0] == 0
    assert ran(tmp_path) == [0, 1, 2, 3, 4, 5, 6]


def test_interrupted_as_it_writes_it_counts_what_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    written = iter([None, KeyboardInterrupt])  # the versions, then the first outcome

    def interrupted(file: int) -> None:
        if (error := next(written)) is not None:
            raise error

    monkeypatch.setattr("reproduction.tasks.os.fsync", interrupted)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        parts = registry(tmp_path, 0.5)
        assert reproduce(BOTH, QUICK, tmp_path, 2, parts=parts) == 130
    monkeypatch.undo()
    assert "interrupted: 1 measurements are kept" in capsys.readouterr().err
    assert not [str(w.message) for w in caught if "cancelled" in str(w.message)]
    assert run(tmp_path)[0] == 0


def test_killed_it_goes_on_where_it_was(tmp_path: Path) -> None:
    with started(tmp_path, 0.5, 1):
        until_measured(tmp_path, 3)
    done = ran(tmp_path)
    assert 3 <= len(done) < 7
    assert run(tmp_path)[0] == 0
    again = ran(tmp_path)
    assert sorted(set(again)) == [0, 1, 2, 3, 4, 5, 6]
    assert len(again) - 7 <= 1  # one may have ended and not been written down


# Ranges


def test_numbers_are_compared_with_their_ranges() -> None:
    numbers = {"a": 1.0, "b": 5.0, "c": float("nan"), "free": 9.0, "there": 1.5}
    stored = [
        Range("a", 1, 2), Range("b", 1, 2), Range("c", 1, 2), Range("absent", 1, 2),
        Range("unfound", 1, 2, "x/here"), Range("skipped", 1, 2, "x/gone"),
        Range("there", 1, 2, "x/gone"),
    ]  # fmt: skip
    found = compared(numbers, stored, lambda path: path == "x/here")
    verdicts = {check.what: check.holds for check in found}
    assert verdicts == {
        "a": True, "b": False, "c": False, "absent": False, "unfound": False, "skipped": None,
        "there": None,
    }  # fmt: skip
    table = compared_section(found).blocks[1]
    assert [row[3] for row in table.rows].count("MISS") == 4
    assert [row[:3] for row in table.rows[:2]] == [["a", "1", "1 to 2"], ["b", "5", "1 to 2"]]


def test_stored_ranges_are_ranges() -> None:
    stored = printed.ranges()
    assert len({r.name for r in stored}) == len(stored)
    assert all(r.low <= r.high for r in stored)
    assert all(r.needs == "" or re.fullmatch(r"\w+/\w+", r.needs) for r in stored)


@pytest.mark.parametrize(("high", "status"), [(28.0, 0), (27.0, 1)])
def test_the_quick_run_ends_with_1_where_a_number_is_outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, high: float, status: int
) -> None:
    part = registry(tmp_path)["low"]
    stored = [Range("total", 0, high)]
    monkeypatch.setattr(printed, "ranges", lambda: stored)
    monkeypatch.setattr("reproduction.command.NAMES", {"low": "", "high": ""})
    parts = {"low": part._replace(section=lambda s, m: Section("low")), "high": part}
    parts["high"] = part._replace(section=lambda s, m: Section("high", numbers={"total": 28.0}))
    found, shown = run(tmp_path, registry=parts)
    assert found == status
    assert "The quick run's numbers" in shown
    assert "quick run's" not in run(tmp_path, ("low",), registry=parts)[1]


def test_the_names_are_those_of_the_parts() -> None:
    assert list(PARTS) == list(NAMES)
