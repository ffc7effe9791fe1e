"""Try what is to be released in empty environments: ``make dist smoke``.

The wheel in ``dist`` is installed from wherever pip installs, without and with extras, and does
what the README says; the sdist is installed, and its list of files is looked at.

    python -m tests.smoke                      everything
    python -m tests.smoke nothing plot         a part
    python -m tests.smoke --python python3.13  with another interpreter
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.unit.repo.test_readme import BLOCK, EXPECTED, alike

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
IN_SDIST = (
    "src/kreinlearn/__init__.py", "tests/conftest.py", "benchmarks/__init__.py", "docs/conf.py",
    "reproduction/expected/quick_ranges.csv", "reproduction/prose.toml",
    "examples/data/dna.csv", "requirements/test.txt", "Makefile", "LICENSE", "CHANGELOG.md",
)  # fmt: skip
TOP = {
    "benchmarks", "docs", "examples", "paper", "reproduction", "requirements", "src", "tests",
    ".gitignore", ".gitattributes", ".pre-commit-config.yaml", ".readthedocs.yaml", ".github",
    "Makefile", "LICENSE", "PKG-INFO", "pyproject.toml", "CITATION.cff",
}  # fmt: skip
MADE = ("docs/auto_examples/", "docs/generated/", "paper/measurements.jsonl")  # by our commands
POLYGONS = """
from kreinlearn import KreinClassifier
from kreinlearn.datasets import make_polygons
X, y = make_polygons(60, random_state=0)
print(KreinClassifier("hausdorff", random_state=0).fit(X, y).score(X, y))
"""
PICTURE = """
from kreinlearn.plotting import SpectrumDisplay
SpectrumDisplay([2.0, -1.0]).plot().figure_.savefig("spectrum.png")
"""
NOT_TEXT = 1_000_000  # bytes: no file of the sdist is larger, as data and builds would be


class Environment:
    """A fresh virtual environment in a temporary folder, which is also where commands run."""

    def __init__(self, home: Path, python: str) -> None:
        self.home, folder = home, home / "venv"
        subprocess.run([python, "-m", "venv", str(folder)], check=True)
        self.scripts = folder / ("Scripts" if os.name == "nt" else "bin")
        self.variables = {
            name: value
            for name, value in os.environ.items()
            if name not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "KREINLEARN_DATA")
        }
        self.variables |= {"COLUMNS": "100", "PYTHONIOENCODING": "utf-8"}

    def install(self, what: str) -> None:
        pip = [self.program("python"), "-m", "pip", "install", "--quiet"]
        words = [*pip, "--disable-pip-version-check", "--no-input", what]
        subprocess.run(words, cwd=self.home, env=self.variables, check=True)

    def program(self, name: str) -> str:
        found = shutil.which(name, path=str(self.scripts))
        require(found is not None, f"there is no command {name}")
        return str(found)

    def run(self, name: str, *words: str, status: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [self.program(name), *words], cwd=self.home, env=self.variables,
            capture_output=True, text=True, encoding="utf-8",
        )  # fmt: skip
        said = f"{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        require(done.returncode == status, f"{name} {shlex.join(words)} failed:\n{said}")
        return done


def require(good: bool, otherwise: str) -> None:
    if not good:
        raise SystemExit(otherwise)


def main(words: Sequence[str] | None = None) -> int:
    """Run the parts that are named, each in an environment of its own."""
    parser = argparse.ArgumentParser(prog="make smoke", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], help="all of them by default")
    parser.add_argument("--python", default=sys.executable, help="the interpreter to use")
    options = parser.parse_args(words)
    for part in options.parts or PARTS:
        begun = time.perf_counter()
        with tempfile.TemporaryDirectory(prefix="kreinlearn-smoke-") as folder:
            PARTS[part](Environment(Path(folder).resolve(), options.python))
        print(f"{part}: good, after {time.perf_counter() - begun:.0f} s", flush=True)
    return 0


def only(pattern: str) -> Path:
    found = [*DIST.glob(pattern)]
    require(len(found) == 1, f"dist holds {len(found)} files {pattern}; run make dist first")
    return found[0]


def nothing(fresh: Environment) -> None:
    """Without extras it learns, the first lines of Python in the README print what they say."""
    fresh.install(str(only("*.whl")))
    fresh.run("kreinlearn", "--version")
    done = fresh.run("python", "-c", POLYGONS)
    require(float(done.stdout) > 0.8, f"the score is {done.stdout!r}")
    done = fresh.run("python", "-c", PICTURE, status=1)
    require('pip install "kreinlearn[plot]"' in done.stderr, f"it said {done.stderr!r}")
    code = BLOCK.findall(readme())[0]
    printed = fresh.run("python", "-c", code).stdout.splitlines()
    promised = EXPECTED.findall(code)
    require(
        len(printed) == len(promised) > 0
        and all(alike(a.split(), b.split()) for a, b in zip(printed, promised, strict=True)),
        f"the README promises {promised}, and its lines printed {printed}",
    )


def plot(fresh: Environment) -> None:
    """With the extra it makes its picture."""
    fresh.install(f"{only('*.whl')}[plot]")
    fresh.run("python", "-c", PICTURE)
    require((fresh.home / "spectrum.png").stat().st_size > 5_000, "spectrum.png is too small")


def everything(fresh: Environment) -> None:
    """With all extras the README's evaluation runs."""
    fresh.install(f"{only('*.whl')}[all]")
    shutil.copytree(ROOT / "examples" / "data", fresh.home / "examples" / "data")
    commands = re.findall(r"^\$ kreinlearn (evaluate .*)", readme(), re.MULTILINE)
    require(bool(commands), "the README has no line `$ kreinlearn evaluate ...`")
    table = fresh.run("kreinlearn", *shlex.split(commands[0])).stdout
    require("KreinClassifier" in table, f"the evaluation printed {table[-500:]!r}")
    print(table)


def sdist(fresh: Environment) -> None:
    """The sdist holds what the tests need and neither data nor builds, and can be installed."""
    archive = only("*.tar.gz")
    with tarfile.open(archive) as tar:
        sizes = {m.name.partition("/")[2]: m.size for m in tar.getmembers() if m.isfile()}
    missing = [name for name in IN_SDIST if name not in sizes]
    require(not missing, f"the sdist has no {missing}")
    top = {name.partition("/")[0] for name in sizes}
    odd = {name for name in top - TOP if not name.endswith(".md")}
    require(not odd, f"the sdist holds {sorted(odd)}, which nobody asked for")
    made = [name for name in sizes if name.startswith(MADE) or "__pycache__" in name]
    require(not made, f"the sdist holds what was built: {made[:5]}")
    large = {name: size for name, size in sizes.items() if size > NOT_TEXT}
    require(not large, f"these files are too large for an sdist: {large}")
    fresh.install(str(archive))
    fresh.run("kreinlearn", "kernels")


def readme() -> str:
    return (ROOT / "README.md").read_text(encoding="utf-8")


PARTS: dict[str, Callable[[Environment], None]] = {
    "nothing": nothing,
    "plot": plot,
    "all": everything,
    "sdist": sdist,
}


if __name__ == "__main__":
    sys.exit(main())
