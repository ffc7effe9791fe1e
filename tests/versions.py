"""Run the tests with the oldest and the newest versions of everything: ``make versions``.

By default these are the ends: the oldest versions with the oldest Python, and the newest with the
newest Python that is found, once with all extras and once "unbound", without the extra ``compare``
whose packages hold numpy, scipy and numba back: what users get. A part of the tests is run there.
In between lies ``make test``, with the locked versions and Python 3.12 where there is one. Others
by option:

    python -m tests.versions --python 3.12 --python 3.13    the newest, and unbound, with these
    python -m tests.versions --setting oldest               the oldest with each Python found
    python -m tests.versions tests/unit/data                words for pytest: a part of the tests

Each setting is a fresh environment in a temporary folder, with packages that have a wheel.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

ROOT = Path(__file__).parents[1]
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
RESOLUTIONS = {"oldest": "lowest-direct", "newest": "highest", "unbound": "highest"}
BOUNDING = ("compare",)  # extras that are left out of "unbound"
UNBOUND = [  # what is run there
    *(f"tests/unit/{room}" for room in ("data", "sums", "solvers", "nystrom", "learn")),
    *(f"tests/unit/kernels/test_{kind}.py" for kind in ("vectors", "strings", "series", "graphs")),
    "tests/unit/kernels/test_shapes.py",
    *(f"tests/unit/estimators/test_{kind}.py" for kind in ("transformer", "svm", "spectrum_svc")),
]
SHOWN = ("scikit-learn", "numpy", "scipy", "numba", "joblib")
HEAD = ("Python", "setting", *SHOWN, "passed", "failed", "skipped")


class Setting(NamedTuple):
    """An interpreter, and which of the versions that the project allows are taken."""

    python: str  # "3.11"
    executable: str
    which: str  # "oldest", "newest" or "unbound"

    def __str__(self) -> str:
        return f"Python {self.python}, {self.which} versions"


class Counts(NamedTuple):
    """How many tests passed, failed (errors outside of tests count) and were left out."""

    passed: int
    failed: int
    skipped: int


def main(words: Sequence[str] | None = None) -> int:
    """Run the tests in every setting, print the table, and return 1 if any of them failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.versions", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--python", choices=PYTHONS, action="append")
    parser.add_argument("--setting", choices=[*RESOLUTIONS], action="append")
    options, rest = parser.parse_known_args(words)
    rows, good = [], True
    with tempfile.TemporaryDirectory(prefix="kreinlearn-versions-") as folder:
        home = Path(folder)
        uv = fresh_uv(home / "uv")
        for setting in settings(options.python, options.setting):
            print(f"\n{setting}", flush=True)
            versions = resolved(uv, setting, extras_with_wheels(uv, setting))
            if versions is None:
                print("These versions do not go together: see the message above.")
                good = False
                continue
            part = UNBOUND if setting.which == "unbound" and not rest else rest
            counts = tested(install(uv, setting, versions, home), part)
            rows.append([setting.python, setting.which, *map(versions.get, SHOWN), *counts])
            good = good and counts.passed > 0 and not counts.failed
    print("\n" + table(rows))
    return 0 if good and rows else 1


def settings(
    pythons: Sequence[str] | None = None, which: Sequence[str] | None = None
) -> Iterator[Setting]:
    """The settings to run: the ends, or others by name; an interpreter not found is named."""
    paths = {python: found(python) for python in pythons or PYTHONS}
    for python in (python for python, path in paths.items() if path is None):
        print(f"Python {python} was not found, so nothing is tested with it.")
    there = {python: path for python, path in paths.items() if path is not None}
    newest = [*there] if pythons else [*there][-1:]
    ends = {"oldest": [PYTHONS[0]], "newest": newest, "unbound": newest}
    for python, executable in there.items():
        for one in which or RESOLUTIONS:
            if which or python in ends[one]:
                yield Setting(python, executable, one)


def found(python: str) -> str | None:
    """The path of an interpreter of this version that can be started, or None."""
    show = "import sys, venv; print(sys.executable, '{}.{}'.format(*sys.version_info), sep='\\n')"
    for name in (f"python{python}", "python"):  # Windows has the second only
        try:
            done = subprocess.run([name, "-c", show], capture_output=True, text=True)
        except OSError:
            continue
        if done.returncode == 0 and done.stdout.split("\n")[1:2] == [python]:
            return done.stdout.split("\n")[0]
    return None


def fresh_uv(folder: Path) -> str:
    """Install uv into an environment of its own, from wherever pip installs."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    scripts = folder / ("Scripts" if os.name == "nt" else "bin")
    pip = [str(scripts / "python"), "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, "--disable-pip-version-check", "uv"], check=True)
    return str(scripts / "uv")


# Which versions


def requirements() -> dict[str, list[str]]:
    """The names of the packages that each extra for users asks for."""
    with open(ROOT / "pyproject.toml", "rb") as file:
        extras = tomllib.load(file)["project"]["optional-dependencies"]
    return {
        extra: [canonical(re.split(r"[^\w.-]", text)[0]) for text in texts]
        for extra, texts in extras.items()
        if extra not in ("all", "docs", "test")
    }


def canonical(name: str) -> str:
    """A name of a package as resolvers write it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def extras_with_wheels(uv: str, setting: Setting) -> list[str]:
    """The extras that can be installed; a sentence says what is left out."""
    kept = []
    for extra, names in requirements().items():
        if setting.which == "unbound" and extra in BOUNDING:
            print(f"The extra {extra} holds others back: tests that need it are skipped here.")
            continue
        versions = resolved(uv, setting, [extra], quiet=True)
        if versions is None:
            print(f"The extra {extra} is left out: not all of its packages have a wheel here.")
            continue
        kept.append(extra)
        for name in names:
            if name not in versions:
                print(f"{name} of the extra {extra} is left out: it is not for this Python.")
    return kept


def resolved(
    uv: str, setting: Setting, extras: Sequence[str], *, quiet: bool = False
) -> dict[str, str] | None:
    """The versions of all packages for the tests with some extras, or None if there are none."""
    wanted = [word for extra in ("test", *extras) for word in ("--extra", extra)]
    done = subprocess.run(
        [
            *(uv, "pip", "compile", "--quiet", "--no-header", "--no-annotate"),
            *("--only-binary", ":all:", "--python", setting.executable),
            *("--resolution", RESOLUTIONS[setting.which]),
            *("-c", "requirements/constraints.in", *wanted, "pyproject.toml"),
        ],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL if quiet else None, text=True,
    )  # fmt: skip
    if done.returncode:
        return None
    return dict(re.findall(r"^([\w.-]+)==([^\s;]+)", done.stdout, re.MULTILINE))


# Installing and running


def install(uv: str, setting: Setting, versions: dict[str, str], home: Path) -> Path:
    """Make an environment with these versions and this package; the path of its interpreter."""
    folder = home / f"{setting.python}-{setting.which}"
    subprocess.run([uv, "venv", "--quiet", "--python", setting.executable, folder], check=True)
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    pins = home / "pins.txt"
    lines = [f"{name}=={version}\n" for name, version in versions.items()]
    pins.write_text("".join(lines), encoding="utf-8")
    pip = [uv, "pip", "install", "--quiet", "--python", python]
    subprocess.run([*pip, "--no-deps", "--only-binary", ":all:", "-r", pins], check=True)
    subprocess.run([*pip, "--no-deps", "-e", ROOT], check=True)
    return python


def tested(python: Path, words: Sequence[str]) -> Counts:
    """Run pytest with an interpreter and count what it found."""
    home = python.parents[1]
    report = home / "report.xml"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"OMP_WAIT_POLICY": "passive", "OPENBLAS_THREAD_TIMEOUT": "4"}
    environment["PYTHONDONTWRITEBYTECODE"] = ""  # some hundred processes import the package
    workers = str((os.cpu_count() or 1) + 1)  # some tests wait, for workers to start or to die
    pytest = [python, "-m", "pytest", "-q", "-n", workers, "--dist", "worksteal"]
    subprocess.run(
        [*pytest, "-p", "no:cacheprovider", f"--junitxml={report}", *words],
        cwd=ROOT, env=environment, check=False,
    )  # fmt: skip
    return counts_of(report.read_text(encoding="utf-8")) if report.exists() else Counts(0, 1, 0)


def counts_of(report: str) -> Counts:
    """Add up what pytest wrote as JUnit XML, where expected failures count as left out."""
    suites = [*ElementTree.fromstring(report).iter("testsuite")]
    total, failures, errors, skipped = (
        sum(int(suite.get(name, "0")) for suite in suites)
        for name in ("tests", "failures", "errors", "skipped")
    )
    return Counts(total - failures - errors - skipped, failures + errors, skipped)


def table(rows: Sequence[Sequence[object]]) -> str:
    """A table in Markdown."""
    rule = ["---"] * 2 + ["---:"] * (len(HEAD) - 2)
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in [HEAD, rule, *rows])


if __name__ == "__main__":
    sys.exit(main())
