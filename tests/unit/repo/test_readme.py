"""The README's code runs, in order, and prints what its comments say."""

from __future__ import annotations

import contextlib
import io
import math
import re
import tomllib
from pathlib import Path

README = Path(__file__).parents[3] / "README.md"
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)
EXPECTED = re.compile(r"#\s*->\s*(.*)$", re.MULTILINE)
NUMBER = re.compile(r"-?[\d.]+")


def test_readme_code_prints_what_it_says():
    text = README.read_text(encoding="utf-8")
    code = "\n".join(BLOCK.findall(text))
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, str(README), "exec"), {"__name__": "readme"})
    lines, expected = printed.getvalue().splitlines(), EXPECTED.findall(code)
    assert len(lines) == len(expected) >= 4
    for line, promised in zip(lines, expected, strict=True):
        assert alike(line.split(), promised.split()), f"{line!r} is not the README's {promised!r}"


def alike(words: list[str], promised: list[str]) -> bool:
    """The same words; numbers within 5 %, as another BLAS may choose other landmarks."""
    if len(words) != len(promised):
        return False
    numbers = [re.sub(r"[\[\](),]", "", word) for word in promised]
    return all(
        word == other or (NUMBER.fullmatch(number) and near(word, number))
        for word, other, number in zip(words, promised, numbers, strict=True)
    )


def near(word: str, number: str) -> bool:
    return math.isclose(
        float(re.sub(r"[\[\](),]", "", word)), float(number), rel_tol=0.05, abs_tol=1e-6
    )


def test_readme_has_no_gap():
    text = README.read_text(encoding="utf-8")
    assert "\n?\n" not in text
    assert "-> ?" not in text


def test_it_fits_on_a_screen_and_its_links_lead_somewhere():
    """PyPI shows the README without the repository, so its links are those of the manual."""
    text = README.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 70
    targets = re.findall(r"\]\(([^)]+)\)", text)
    assert len(targets) > 10
    with open(README.parent / "pyproject.toml", "rb") as file:
        base = tomllib.load(file)["project"]["urls"]["Documentation"] + "/en/latest/"
    assert [target for target in targets if not target.startswith(base)] == []
    assert [target for target in targets if not in_manual(target.removeprefix(base))] == []
    assert not in_manual("nowhere.html")
    for command in ("make demo", "make test", "make docs"):
        assert f"`{command}`" in text


def in_manual(page: str) -> bool:
    """Whether the built manual has this page or picture."""
    if page.startswith("_images/"):
        return (README.parent / "benchmarks" / "results" / page.removeprefix("_images/")).exists()
    if page == "auto_examples/index.html":
        return (README.parent / "examples").is_dir()
    return (README.parent / "docs" / page).with_suffix(".rst").exists()


def test_its_coverage_is_that_which_was_counted():
    counted = r"(\d\d\.\d %) of\s+the lines and (\S+ %) of the\s+branches"
    contributing = (README.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    [figures] = re.findall(counted, README.read_text(encoding="utf-8"))
    assert [figures] == re.findall(counted, contributing)


def test_its_evaluation_is_that_of_the_manual():
    commands = re.findall(r"^\$ (kreinlearn .*)$", README.read_text(encoding="utf-8"), re.MULTILINE)
    page = (README.parent / "docs" / "command_line.rst").read_text(encoding="utf-8")
    assert len(commands) == 1
    assert f"   $ {commands[0]}\n" in page


def test_first_example_has_eight_lines():
    first = BLOCK.findall(README.read_text(encoding="utf-8"))[0]
    assert sum(bool(line.strip()) for line in first.splitlines()) == 8
