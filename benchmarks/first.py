"""The first answer in a new process: python -m benchmarks.first [--repeats N] [--write]

Each program runs in a process of its own, in an environment that has nothing but what "pip install"
of this library installs. It imports KreinClassifier, fits it at every default, and predicts ten
objects. What numba compiles is kept in a folder that is empty, or that an earlier process has
filled. Both take turns with the import of sklearn.svm alone. Figures are medians, and ratios those
of wall seconds. The installed size is that of all packages, without pip.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import venv
from collections.abc import Sequence
from pathlib import Path
from subprocess import CalledProcessError
from typing import Any

from benchmarks import tables
from benchmarks.small import Limit, limits_table
from benchmarks.small_cases import Figure, median, seconds
from benchmarks.timing import Timing, timed_command
from kreinlearn.report.model import Table

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "first.md"
HEADING = "The first answer in a new process"
REPEATS = 5  # with fewer there are no verdicts
PEER = "import sklearn.svm"
EMPTY, FILLED = "empty cache", "filled cache"
SIZE = "installed size"
ANSWER = """
import numpy as np
from kreinlearn import KreinClassifier
rng = np.random.default_rng(0)
y = np.arange({n}) % 2
X = {X}
answer = KreinClassifier(random_state=0).fit(X, y).predict(X[:10])
"""
OBJECTS = {
    "40 series": (40, "[rng.standard_normal(100).cumsum() + 0.1 * c * np.arange(100) for c in y]"),
    "200 strings": (200, '["".join(rng.choice(list("abcdef"[c:]), 9)) for c in y]'),
    "200 x 5 vectors": (200, "rng.standard_normal((len(y), 5)) + y[:, None]"),
    "60 graphs": (  # of twelve nodes: their labels and edges, a ring and random ones
        60, '[(list(rng.choice(list("abc"[c:]), 12)), [(i, (i + 1) % 12) for i in range(12)]'
        " + [(0, int(j)) for j in rng.choice(range(2, 11), 4, replace=False)]) for c in y]",
    ),
}  # fmt: skip
PROGRAMS = {
    "import": "from kreinlearn import KreinClassifier",
    **{what: ANSWER.format(n=n, X=X) for what, (n, X) in OBJECTS.items()},
}
MOST = {  # case: limits and what was measured when they were set, empty and then filled
    "import": (1.15, "1.3 to 1.5 x", 1.15, "1.3 to 1.5 x"),
    "40 series": (3.5, "11 x", 1.8, "2.2 x"),
    "200 strings": (2.0, "4.4 x", 1.5, "2.4 x"),
    "200 x 5 vectors": (1.6, "2 x", 1.6, ""),
    "60 graphs": (2.0, "", 1.5, ""),
}
WITH_AEON = 601.0  # MB, when series needed aeon
LIMITS = (
    *(
        Limit(case, what, most, PEER, "wall", before)
        for case, (empty, then, filled, later) in MOST.items()
        for what, most, before in ((EMPTY, empty, then), (FILLED, filled, later))
    ),
    Limit(SIZE, SIZE, WITH_AEON, measure="size", before=f"{WITH_AEON:.0f} MB for series"),
)


class Environment:
    """A new virtual environment in a folder, with this library and what it needs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        venv.create(folder / "venv", with_pip=True)
        self.python = str(folder / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python")
        before = self._bytes()
        quiet = ("--quiet", "--disable-pip-version-check")
        subprocess.run([self.python, "-I", "-m", "pip", "install", *quiet, str(ROOT)], check=True)
        self.megabytes = (self._bytes() - before) / 1e6

    def _bytes(self) -> int:
        return sum(file.lstat().st_size for file in (self.folder / "venv").rglob("*"))

    def timed(self, program: str, cache: str) -> Timing:
        """The seconds of a program in a new process, which hears of no other environment."""
        command = [self.python, "-I", "-W", "ignore", "-c", program]
        return timed_command(command, {"NUMBA_CACHE_DIR": str(self.folder / cache)})

    def figures(self, case: str, repeats: int) -> list[Figure]:
        """A first process of each program does not count: it reads files and fills the cache."""
        program, found = PROGRAMS[case], list[tuple[Timing, ...]]()
        for k in range(repeats + 1):
            caches = ((PEER, "none"), (program, f"{case} {k}"), (program, "filled"))
            found.append(tuple(self.timed(*one) for one in caches))
        usual = [median(column) for column in zip(*found[1:], strict=True)]
        return [seconds(*one) for one in zip((PEER, EMPTY, FILLED), usual, strict=True)]


def measured(repeats: int) -> dict[str, list[Figure]]:
    """The figures of all cases; a case that fails has one, which says so."""
    found = dict[str, list[Figure]]()
    with tempfile.TemporaryDirectory() as folder:
        environment = Environment(Path(folder))
        for case in PROGRAMS:
            print(f"{case} ...", file=sys.stderr, flush=True)
            try:
                found[case] = environment.figures(case, repeats)
            except CalledProcessError:
                found[case] = [{"what": "the whole case", "absent": "failed"}]
        found[SIZE] = [{"what": SIZE, "size": environment.megabytes}]
    return found


def figures_table(found: dict[str, list[Figure]]) -> Table:
    header = ["case", "what", "CPU s", "wall s", f"over {PEER}"]
    rows = [
        [case, one["what"], f"{one['cpu']:.2f}", f"{one['wall']:.2f}",
         f"{one['wall'] / figures[0]['wall']:.2f}"]
        for case, figures in found.items() for one in figures if "wall" in one
    ]  # fmt: skip
    return Table("Figures", header, rows, [" ".join((__doc__ or "").split("\n\n")[1].split())])


def main(arguments: Sequence[str] | None = None) -> dict[str, list[Figure]]:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.first", description=__doc__, allow_abbrev=False
    )
    parser.add_argument("--repeats", type=int, default=REPEATS, metavar="N")
    parser.add_argument("--write", nargs="?", type=Path, const=RESULTS, metavar="FILE")
    options: Any = parser.parse_args(arguments)
    try:
        found = measured(options.repeats)
    except CalledProcessError:
        sys.exit("pip could not install this library and what it needs; it has said why above.")
    made = [limits_table(found, options.repeats >= REPEATS, LIMITS), figures_table(found)]
    if options.write:
        command = tables.command_line("benchmarks.first", arguments)
        tables.write_markdown(options.write, HEADING, command, made)
    for table in made:
        table.show(tables.console())
    return found


if __name__ == "__main__":
    main()
