"""Commands as processes of their own: how soon they start, and pipes that close."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

COMMAND = [sys.executable, "-m", "kreinlearn"]


def seconds(words: list[str]) -> float:
    """The best of two, in CPU seconds: other processes do not count."""
    found = []
    for _ in range(2):
        before = os.times()
        subprocess.run(words, check=True, capture_output=True, timeout=120)
        after = os.times()
        found.append(after.children_user + after.children_system
                     - before.children_user - before.children_system)  # fmt: skip
    return min(found)


def test_help_comes_within_a_second() -> None:
    assert seconds([*COMMAND, "--help"]) < 1.0
    assert seconds([*COMMAND, "fit", "--help"]) < 1.0


def test_importing_it_takes_less_than_twice_scikit_learn() -> None:
    ours, theirs = (
        seconds([sys.executable, "-c", f"import {name}"]) for name in ("kreinlearn", "sklearn")
    )
    assert ours < 2 * theirs


def test_a_wrong_call_is_told_before_anything_is_imported(tmp_path: Path) -> None:
    words = ["fit", "x.csv", "--target", "y", "-o", str(tmp_path / "gone" / "m.krein")]
    code = f"""
import sys
from kreinlearn.cli import main
status = main({words!r})
print(status, *(name for name in ("sklearn", "numba", "pyarrow", "rich") if name in sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "1\n"
    assert "there is no folder" in done.stderr


def test_a_reader_that_goes_away_is_no_error_to_be_told(tmp_path: Path) -> None:
    lines = "".join(f"{'ab'[i % 2] * 3}{i % 97},{'pq'[i % 2]}\n" for i in range(60_000))
    (tmp_path / "w.csv").write_text("text,label\n" + lines)
    (tmp_path / "few.csv").write_text("text,label\n" + "".join(lines.splitlines(True)[:10]))
    fit = ["fit", "few.csv", "--target", "label", "--column", "text", "-o", "m.krein", "--quiet"]
    subprocess.run([*COMMAND, *fit], check=True, cwd=tmp_path, stdout=subprocess.PIPE, timeout=120)
    process = subprocess.Popen(
        [*COMMAND, "predict", "m.krein", "w.csv", "--quiet"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == b"prediction\n"
    process.stdout.close()
    _, error = process.communicate(timeout=120)
    assert error == b""
    assert process.returncode == 1
