"""Errors as the quick benchmarks and the quick reproduction print them, without what is timed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SMALL = ["words 500", "words 1000", "words 2000", "words 5000", "chromosomes", "mpeg7", "vectors"]
BENCHMARKS = {
    "objects": ["--quick", "--journal", "FOLDER/journal.jsonl", "--write", "FOLDER/RESULTS.md"],
    "learning": ["--quick", "--write", "FOLDER/RESULTS.md"],
    "approximation": ["--quick", "--jobs", "1", "--markdown", "FOLDER/RESULTS.md"],
    "small": ["--quick", "--only", *SMALL, "--write", "FOLDER/RESULTS.md"],
}
PAPER = ["quick", "--output", "FOLDER", "--jobs", "1"]
# What is timed, or rounding alone, or not a figure, by the titles of tables, columns and rows.
NOT_TABLES = re.compile(r"second|CPU|Limits|operations|time|chose|eigenvalues|Proposition", re.I)
NOT_COLUMNS = re.compile(r"\bs\b|second|time|peak|over SVC|found|chosen|share|^range$", re.I)
NOT_ROWS = re.compile(r"exponent|SGT|seconds|not measured|^\| ---", re.I)


def printed(module: str, words: list[str]) -> Any:
    """The tables that a module writes into a folder, of the data that it makes itself."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    env = {**os.environ, **threads, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    env.pop("KREINLEARN_DATA", None)
    with tempfile.TemporaryDirectory() as folder:
        given = [word.replace("FOLDER", folder) for word in words]
        command = [sys.executable, "-m", module, *given]
        done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
        results = Path(folder) / "RESULTS.md"
        if not results.exists():
            return f"failed: {(done.stderr.splitlines() or ['nothing was said'])[-1]}"
        return kept(results.read_text(encoding="utf8"))


def kept(text: str) -> dict[str, list[str]]:
    """Rows by the title of their table, without the columns that say how long something took."""
    found: dict[str, list[str]] = {}
    title, columns = "", list[int]()
    for line, following in pairwise([*text.splitlines(), ""]):
        if not line.startswith("|"):
            caption = re.match(r"(?:#+ (?:\d+\. )?|\*\*Table \d+\.\*\* |\*\*)(.*?)\**$", line)
            title = caption[1] if caption else title
            continue
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if following.startswith("| ---"):
            columns = [i for i, name in enumerate(cells) if not NOT_COLUMNS.search(name)]
        if not (NOT_TABLES.search(title) or NOT_ROWS.search(line)):
            found.setdefault(title, []).append(" | ".join(cells[i] for i in columns))
    return found


def benchmarks() -> dict[str, Any]:
    return {name: printed(f"benchmarks.{name}", words) for name, words in BENCHMARKS.items()}


def reproduction() -> dict[str, Any]:
    """By the command that there is: a package beside the library, or a part of the library."""
    beside = (ROOT / "reproduction").is_dir()
    module, words = ("reproduction", PAPER) if beside else ("kreinlearn", ["reproduce", *PAPER])
    found = printed(module, words)
    return found if isinstance(found, dict) else {"quick": found}
