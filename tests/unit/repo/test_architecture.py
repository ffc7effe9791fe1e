"""ARCHITECTURE.md is true: its files are there, its names are defined, its commands exist."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "src" / "kreinlearn"
PAGE = re.sub(r"^```.*?^```", "", (ROOT / "ARCHITECTURE.md").read_text("utf8"), flags=re.M | re.S)
QUOTED = re.compile(r"`([^`\n]+)`")
PLACED = re.compile(r"`(\w+)`\s+in\s+`([\w/.]+\.py)`")
# Names of other libraries and of Python, and the word before a dotted name that stands for a value.
FOREIGN = {"kreinlearn", "with", "fit", "predict", "Any"}


def is_path(word: str) -> bool:
    return bool(re.fullmatch(r"[\w./-]+(\.(py|md|rst|toml)|/)", word))


def is_name(word: str) -> bool:
    return bool(re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", word))


def names_in(tree: ast.AST) -> Iterator[str]:
    """Every name that a module defines: functions, classes, arguments, variables, attributes."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.ClassDef(name=name) | ast.arg(arg=name):
                yield name
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name
            case ast.keyword(arg=str(name)):
                yield name


@cache
def defined(path: Path) -> frozenset[str]:
    return frozenset(names_in(ast.parse(path.read_text("utf8"))))


@cache
def all_defined() -> frozenset[str]:
    places = {part for path in PACKAGE.rglob("*.py") for part in (path.stem, path.parent.name)}
    return frozenset().union(places, *(defined(path) for path in PACKAGE.rglob("*.py")))


def exists(path: str) -> bool:
    return any((folder / path).exists() for folder in (ROOT, PACKAGE))


def missing(page: str) -> list[str]:
    """The paths and names of a page that do not exist, and names that are not where it says."""
    words = sorted(set(QUOTED.findall(page)))
    paths = [word for word in words if is_path(word)]
    names = [word for word in words if is_name(word) and not is_path(word)]
    known = all_defined() | FOREIGN | set(dir(builtins))
    placed = [
        f"{name} in {path}"
        for name, path in PLACED.findall(page)
        if (PACKAGE / path).exists() and name not in defined(PACKAGE / path)
    ]
    return [
        *(path for path in paths if not exists(path)),
        *(name for name in names if not known.issuperset(name.split("."))),
        *placed,
    ]


def test_what_it_names_exists() -> None:
    assert len([word for word in QUOTED.findall(PAGE) if is_path(word)]) > 50
    assert len(PLACED.findall(PAGE)) > 20
    assert missing(PAGE) == []


@pytest.mark.parametrize(
    ("page", "wrong"),
    [
        ("`kernels/vectors.py` and `kernels/`", []),
        ("`kernels/nowhere.py`", ["kernels/nowhere.py"]),
        ("`tests/unit/repo/` and `CONTRIBUTING.md`", []),
        ("`nowhere/`", ["nowhere/"]),
        ("`TILE` in `data/tiles.py`", []),
        ("`TILE` in\n`data/memory.py`", ["TILE in data/memory.py"]),
        ("`KreinMagic`, `dual_coef_`, `lambda_plus`", ["KreinMagic"]),
        ("`kreinlearn.sorcery`", ["kreinlearn.sorcery"]),
        ("`python -m nothing`, `a = b`, `--flag`", []),
    ],
)
def test_what_does_not_exist_is_seen(page: str, wrong: list[str]) -> None:
    assert missing(page) == wrong


def test_every_room_is_described() -> None:
    rooms = [path.parent.name for path in PACKAGE.glob("*/__init__.py")]
    assert [room for room in rooms if f"**`{room}/`**" not in PAGE] == []


def test_its_commands_exist() -> None:
    makefile = (ROOT / "Makefile").read_text("utf8")
    for target in re.findall(r"`make (\w+)`", PAGE):
        assert re.search(rf"^{target}:", makefile, re.M), target
    for module in re.findall(r"`python -m ([\w.]+)", PAGE):
        assert (ROOT / module.replace(".", "/")).with_suffix(".py").exists(), module


def test_the_walk_is_quoted() -> None:
    assert len(re.findall(r"<!-- walk -->\n(\|.*\|\n){5,}<!-- /walk -->", PAGE)) == 1
