"""The manual's four commands, run as they stand there, give what the Python interface gives."""

from __future__ import annotations

import contextlib
import csv
import io
import re
import shlex
from pathlib import Path

import pytest

from kreinlearn import KreinClassifier, cli, load
from kreinlearn.datasets import make_noisy_strings
from tests.systems import linked

ROOT = Path(__file__).parents[3]
DATA = ROOT / "examples" / "data"
SECTION = re.compile(r"^From a table to predictions\n-+\n(.*?)^-+$", re.DOTALL | re.MULTILINE)
TRAINING = 90


def tables() -> dict[str, str]:
    """The files in examples/data: strings of three prototypes after twelve edits each."""
    dna, y = make_noisy_strings(120, n_classes=3, noise=12, random_state=0)
    rows = [
        {"name": f"read{i}", "dna": text, "species": ("ape", "bee", "cod")[c]}
        for i, (text, c) in enumerate(zip(dna, y, strict=True))
    ]
    parts = {"dna.csv": rows[:TRAINING], "new.csv": rows[TRAINING:]}
    return {name: as_csv(part, known=name == "dna.csv") for name, part in parts.items()}


def as_csv(rows: list[dict[str, str]], known: bool) -> str:
    names = ["name", "dna", "species"] if known else ["name", "dna"]
    text = io.StringIO()
    writer = csv.DictWriter(text, names, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def columns(path: Path) -> dict[str, list[str]]:
    with path.open(newline="", encoding="utf8") as file:
        rows = list(csv.DictReader(file))
    return {name: [row[name] for row in rows] for name in rows[0]}


def section() -> str:
    found = SECTION.search((ROOT / "docs" / "command_line.rst").read_text(encoding="utf8"))
    assert found is not None
    return found[1]


def commands() -> list[list[str]]:
    lines = re.findall(r"^   \$ (kreinlearn .*)", section(), re.MULTILINE)
    return [shlex.split(line) for line in lines]


def test_the_tables_are_made_by_our_generator() -> None:
    for name, text in tables().items():
        assert (DATA / name).read_text(encoding="utf8") == text


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A folder in which the four commands were run, and what each printed."""
    home = tmp_path_factory.mktemp("commands")
    linked(home / "examples", ROOT / "examples")
    printed = {}
    for program, *words in commands():
        assert program == "kreinlearn"
        out = io.StringIO()
        with contextlib.chdir(home), contextlib.redirect_stdout(out):
            assert cli.main(words) == 0
        printed[words[0]] = out.getvalue()
    return home, printed


def test_there_are_four_commands(folder: tuple[Path, dict[str, str]]) -> None:
    home, printed = folder
    assert list(printed) == ["evaluate", "fit", "predict", "inspect"]
    made = sorted(path.name for path in home.iterdir())
    assert made == ["examples", "model.krein", "predicted.csv", "report.html"]


def test_the_errors_are_those_that_the_manual_says(folder: tuple[Path, dict[str, str]]) -> None:
    """Within two objects of ninety, as another BLAS may choose other penalties."""
    table = folder[1]["evaluate"]
    promised = re.search(r"errs on ([\d.]+) % here, a constant on ([\d.]+) %", section())
    assert promised is not None
    for name, error in (("KreinClassifier", promised[1]), ("always the most", promised[2])):
        found = re.search(rf"{name}[^│]*│ +(\d+\.\d)", table)
        assert found is not None
        assert abs(float(found[1]) - float(error)) < 2.5


def test_predictions_are_those_of_the_python_interface(
    folder: tuple[Path, dict[str, str]],
) -> None:
    home, _ = folder
    given, new = columns(DATA / "dna.csv"), columns(DATA / "new.csv")
    model = KreinClassifier("levenshtein", random_state=0).fit(given["dna"], given["species"])
    predicted = columns(home / "predicted.csv")
    assert predicted["prediction"] == model.predict(new["dna"]).tolist()
    assert predicted["name"] == new["name"]
    loaded = load(home / "model.krein")
    assert (loaded.decision_function(new["dna"]) == model.decision_function(new["dna"])).all()


def test_the_report_is_a_page_of_its_own(folder: tuple[Path, dict[str, str]]) -> None:
    home, printed = folder
    page = (home / "report.html").read_text(encoding="utf8")
    assert page.lstrip().lower().startswith("<!doctype html")
    assert "dna.csv" in page
    assert "positive definite" in printed["inspect"]
