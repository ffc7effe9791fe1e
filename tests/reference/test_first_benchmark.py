"""benchmarks.first without pip: its programs give answers, and limits name what is measured."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import first
from benchmarks.timing import Timing
from tests.systems import posix_only


class Here(first.Environment):
    """This interpreter in place of an environment of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.python, self.megabytes = folder, sys.executable, 500.0

    def timed(self, program: str, cache: str) -> Timing:
        return Timing(1.0, 2.0 if program == first.PEER else 3.0 + len(cache))


@pytest.mark.parametrize("what", first.OBJECTS)
def test_a_program_predicts_ten_objects(what: str) -> None:
    made: dict[str, Any] = {}
    n, X = first.OBJECTS[what]
    exec(first.ANSWER.format(n=n, X=X), made)
    assert (len(made["X"]), len(made["answer"])) == (n, 10)
    assert set(made["answer"]) <= {0, 1}


@posix_only("the CPU seconds of processes that a process has started")
def test_a_process_has_a_cache_of_its_own(tmp_path: Path) -> None:
    program = "import os, pathlib; pathlib.Path(os.environ['NUMBA_CACHE_DIR']).mkdir()"
    timing = first.Environment.timed(Here(tmp_path), program, "cache")
    assert timing.wall > 0
    assert (tmp_path / "cache").is_dir()


def test_the_page_judges_medians_of_five(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first, "Environment", Here)
    page = tmp_path / "first.md"
    found = first.main(["--write", str(page)])
    assert {limit.case for limit in first.LIMITS} == set(found)
    text = page.read_text("utf8")
    assert "| import: filled cache over import sklearn.svm | MISS | 4.5 x | 1.15 x |" in text
    assert "| installed size: installed size | PASS | 500 MB |" in text
    first.main(["--repeats", "1", "--write", str(page)])
    assert "| too small to judge | 4.5 x |" in page.read_text("utf8")


def test_a_failed_installation_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(folder: Path) -> Any:
        raise subprocess.CalledProcessError(1, "pip")

    monkeypatch.setattr(first, "Environment", fails)
    with pytest.raises(SystemExit, match="pip could not install"):
        first.main([])
