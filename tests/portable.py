"""The suite as other machines run it: ``make portable`` prints one row per run.

Rounding depends on the processor, because BLAS has its own code for each, and so does numba. The
settings make them use the code of other processors, and run the tests in other orders:

    python -m tests.portable                                  four or five runs that cover them all
    python -m tests.portable Prescott+order-2 Nehalem         two runs, the first with two settings
    python -m tests.portable alone --tests tests/unit/sums    a part of the tests, file by file

What each run printed is kept in ``build/portable``. The exit status is 1 if a test failed.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOGS = ROOT / "build" / "portable"
KINDS = ["passed", "failed", "error", "skipped", "xfailed", "xpassed"]
WORKERS = (os.cpu_count() or 1) + 1  # some tests wait, for workers to start or to die
SHARED = {"OPENBLAS_THREAD_TIMEOUT": "4", "OMP_WAIT_POLICY": "passive"}  # the cores, by processes
KEPT = {"PYTHONDONTWRITEBYTECODE": ""}  # bytecode, as some hundred processes import the package
NOTHING_TO_RUN = 5  # pytest's exit status where no test was collected


@dataclass(frozen=True)
class Setting:
    environment: dict[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()  # features of the processor, each under one of its names in numpy
    file_by_file: bool = False

    def __add__(self, other: Setting) -> Setting:
        return Setting(
            self.environment | other.environment,
            self.arguments + other.arguments,
            self.needs + other.needs,
            self.file_by_file or other.file_by_file,
        )


def coretype(name: str, *needs: str) -> Setting:
    return Setting({"OPENBLAS_CORETYPE": name}, needs=needs)


def in_order(seed: int) -> Setting:
    return Setting(arguments=("--dist", "load", "--order-seed", str(seed)))


SETTINGS = {
    "Prescott": coretype("Prescott", "SSE3"),
    "Nehalem": coretype("Nehalem", "SSE42 X86_V2"),
    "Sandybridge": coretype("Sandybridge", "AVX X86_V3"),
    "Haswell": coretype("Haswell", "AVX2 X86_V3", "FMA3 X86_V3"),
    "SkylakeX": coretype("SkylakeX", "AVX512_SKX X86_V4"),
    "numba-generic": Setting(
        {"NUMBA_CPU_NAME": "generic", "NUMBA_CACHE_DIR": str(LOGS / "numba-generic")}
    ),
    "order-1": in_order(1),
    "order-2": in_order(2),
    "order-3": in_order(3),
    "alone": Setting(file_by_file=True),
}
# Every setting once, in as few runs as there are processors.
BY_DEFAULT = [
    "Prescott+numba-generic+order-1",
    "Nehalem+order-2",
    "Sandybridge+order-3",
    "Haswell+alone",
    "SkylakeX",
]


def named(names: str) -> Setting:
    """Settings joined by ``+``."""
    return sum((SETTINGS[name] for name in names.split("+")), Setting())


@dataclass(frozen=True)
class Outcome:
    counts: Counter[str]
    failing: list[str]  # tests and reasons, as pytest prints them
    completed: bool  # False if pytest ended without counting, as after an illegal instruction
    seconds: float = 0.0

    @property
    def good(self) -> bool:
        return self.completed and not self.counts["failed"] and not self.counts["error"]


def missing(setting: Setting) -> list[str]:
    """The features that the setting needs and this processor does not have."""
    from numpy._core._multiarray_umath import __cpu_features__ as has

    return [need for need in setting.needs if not any(has.get(name) for name in need.split())]


def counted(text: str, status: int) -> Outcome:
    """The counts of pytest's last line, and its lines on failures."""
    last = text.rstrip().rpartition("\n")[2]
    counts: Counter[str] = Counter()
    for number, kind in re.findall(r"(\d+) (\w+)", last.partition(" in ")[0]):
        counts["error" if kind == "errors" else kind] += int(number)
    completed = status == NOTHING_TO_RUN or (status in (0, 1) and bool(counts))
    failing = [line for line in text.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    return Outcome(counts, failing, completed)


def pytest(setting: Setting, arguments: list[str], log: Path) -> Outcome:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    log.parent.mkdir(parents=True, exist_ok=True)
    with open(log, "w", encoding="utf-8") as file:  # grows while the tests run
        process = subprocess.run(
            [*command, *setting.arguments, *arguments],
            cwd=ROOT,
            env=SHARED | os.environ | KEPT | setting.environment,
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    return counted(log.read_text(encoding="utf-8"), process.returncode)


def files_of(tests: list[str]) -> Iterator[str]:
    """The files of tests, and the modules that have examples in their docstrings."""
    for given in tests:
        path = ROOT / given.partition("::")[0]
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            if file.name.startswith("test_") or ">>> " in file.read_text(encoding="utf-8"):
                yield file.relative_to(ROOT).as_posix()


def together(outcomes: list[Outcome]) -> Outcome:
    counts: Counter[str] = sum((one.counts for one in outcomes), Counter())
    failing = [line for one in outcomes for line in one.failing]
    return Outcome(counts, failing, all(one.completed for one in outcomes))


def run(name: str, tests: list[str], workers: int) -> Outcome:
    setting, begun = named(name), time.perf_counter()
    if setting.file_by_file:

        def alone(file: str) -> Outcome:
            return pytest(setting, [file], LOGS / name / f"{file.replace('/', '.')}.log")

        with ThreadPoolExecutor(workers) as pool:
            outcome = together(list(pool.map(alone, files_of(tests))))
    else:
        spread = () if "--dist" in setting.arguments else ("--dist", "worksteal")
        outcome = pytest(setting, ["-n", str(workers), *spread, *tests], LOGS / f"{name}.log")
    seconds = time.perf_counter() - begun
    return Outcome(outcome.counts, outcome.failing, outcome.completed, seconds)


def table(outcomes: dict[str, Outcome | str]) -> str:
    """One row per setting, in Markdown; a string says why a setting was skipped."""
    lines = [f"| setting | {' | '.join(KINDS)} | minutes |", "| --- |" + " ---: |" * 7]
    for name, one in outcomes.items():
        if isinstance(one, str):
            lines.append(f"| {name} | {one} |" + " |" * len(KINDS))
            continue
        numbers = [str(one.counts[kind]) for kind in KINDS]
        minutes = f"{one.seconds / 60:.1f}" + ("" if one.completed else " (not completed)")
        lines.append(f"| {' | '.join([name, *numbers, minutes])} |")
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.portable", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    known = f"{', '.join(SETTINGS)}, or some of them joined by +"
    parser.add_argument("settings", nargs="*", metavar="setting", help=known)
    parser.add_argument("--tests", nargs="+", default=["tests", "src"], help="files or folders")
    parser.add_argument("--workers", type=int, default=WORKERS, help=f"processes ({WORKERS})")
    given = parser.parse_args(argv)
    for name in "+".join(given.settings).split("+") if given.settings else []:
        if name not in SETTINGS:
            parser.error(f"there is no setting {name!r}; there are {known}")
    outcomes: dict[str, Outcome | str] = {}
    for name in given.settings or BY_DEFAULT:
        if lacking := missing(named(name)):
            outcomes[name] = f"skipped: the processor has no {lacking[0].split()[0]}"
            print(f"{name}: {outcomes[name]}", flush=True)
            continue
        print(f"{name} ...", flush=True)
        outcome = outcomes[name] = run(name, given.tests, given.workers)
        print("\n".join(outcome.failing), end="\n" if outcome.failing else "", flush=True)
    print(table(outcomes))
    ran = [one for one in outcomes.values() if isinstance(one, Outcome)]
    return 0 if all(one.good and one.counts["passed"] for one in ran) else 1


if __name__ == "__main__":
    sys.exit(main())
