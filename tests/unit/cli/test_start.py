"""Commands as processes of their own: how soon they start, and pipes that close."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.systems import posix_only
from tests.unit.cli.commands import run

COMMAND = [sys.executable, "-m", "kreinlearn"]
OF_CHILDREN = posix_only("the CPU seconds of processes that a process has started")


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


@pytest.fixture(scope="module")
def of_sklearn() -> float:
    """CPU seconds of importing scikit-learn, with which starts are compared."""
    return seconds([sys.executable, "-c", "import sklearn"])


@OF_CHILDREN
def test_help_comes_before_scikit_learn_would_be_imported(of_sklearn: float) -> None:
    assert seconds([*COMMAND, "--help"]) < of_sklearn / 2
    assert seconds([*COMMAND, "fit", "--help"]) < of_sklearn / 2


@OF_CHILDREN
def test_importing_it_takes_less_than_twice_scikit_learn(of_sklearn: float) -> None:
    assert seconds([sys.executable, "-c", "import kreinlearn"]) < 2 * of_sklearn


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


def test_tables_of_text_need_no_extra(tmp_path: Path) -> None:
    lines = "".join(f"{i % 7},{i % 5},{'pq'[i % 2]}\n" for i in range(30))
    (tmp_path / "n.csv").write_text("a,b,label\n" + lines)
    code = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("pyarrow", "zarr", "pandas", "polars", "matplotlib"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
from kreinlearn.cli import main
assert main("fit n.csv --target label -o m.krein --quiet".split()) == 0
assert main("predict m.krein n.csv -o o.csv --quiet".split()) == 0
assert main("fit n.parquet --target label -o p.krein --quiet".split()) == 1
"""
    (tmp_path / "n.parquet").write_bytes(b"PAR1")
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert "needs pyarrow, which is not installed: install pyarrow, or" in done.stderr
    assert 'pip install "kreinlearn[scale]"' in done.stderr
    assert len((tmp_path / "o.csv").read_text().splitlines()) == 31


def test_a_reader_that_goes_away_is_no_error_to_be_told(tmp_path: Path) -> None:
    labels = ["p" * 40, "q" * 40]  # so that few rows fill the pipe
    lines = "".join(f"{'ab'[i % 2] * 3}{i % 97},{labels[i % 2]}\n" for i in range(6_000))
    (tmp_path / "w.csv").write_text("text,label\n" + lines)
    (tmp_path / "few.csv").write_text("text,label\n" + "".join(lines.splitlines(True)[:10]))
    flags = ["--target", "label", "--column", "text", "-o", tmp_path / "m.krein", "--quiet"]
    run("fit", tmp_path / "few.csv", *flags)
    process = subprocess.Popen(
        [*COMMAND, "predict", "m.krein", "w.csv", "--quiet"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == f"prediction{os.linesep}".encode()
    process.stdout.close()
    _, error = process.communicate(timeout=120)
    assert error == b""
    assert process.returncode == 1
