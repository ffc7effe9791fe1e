"""The counting of benchmarks.walk, on made-up modules; the limits themselves are checked there."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from benchmarks import walk
from benchmarks.walk import Row, Source, Walk

CODE = '''"""A module.

With a docstring of three lines."""

import math  # a comment beside code counts as code

# a comment alone does not


def area(r: float, *more: Any, unit: "Any" = None, name: str | None = None, free=1) -> Any:
    """One line."""
    text = """a string
    of two lines"""
    return math.pi * r**2
'''


def test_lines_of_code() -> None:
    assert walk.code_lines(CODE) == 5
    assert walk.code_lines('"""Nothing else."""\n') == 0


def test_arguments_that_are_any() -> None:
    assert sorted(walk.annotations(CODE)) == ["Any", "Any", "float", "str | None"]
    assert walk.share_of_any([Source("a.py", CODE)]) == 50
    assert walk.share_of_any([Source("a.py", "def f(x): ...")]) == 0


def test_lines_that_ask_what_a_kernel_takes() -> None:
    text = "if k.takes == 1 or j.takes == 2:\n    pass\nx.takes_all = k.takes\n"
    assert walk.lines_with_takes([Source("pairs/a.py", text)]) == 2
    assert walk.lines_with_takes([Source("kernels/a.py", text)]) == 0


@pytest.mark.parametrize(
    ("line", "is_test"),
    [
        ("if is_dask(X): ...", True),
        ("ok = distributed.is_dask(X)", True),
        ("ok = isinstance(X, DaskRows)", True),
        ("ok = isinstance(X, (list, DaskRows))", True),
        ("ok = isinstance(X, list | rows.DaskRows)", True),
        ("ok = isinstance(X, list | rows.There)", False),
        ("if estimator._takes_dask: ...", True),
        ('ok = hasattr(X, "__dask_graph__")', True),
        ("ok = isinstance(X, list)", False),
        ("_takes_dask = True", False),
        ("from kreinlearn.distributed import DaskRows, is_dask", False),
        ('raise TypeError("takes no dask collection")', False),
        ("def f(X: DaskRows) -> None: ...", False),
    ],
)
def test_lines_that_test_for_dask(line: str, is_test: bool) -> None:
    there = Source("distributed/rows.py", "class DaskRows: ...\nok = isinstance(1, DaskRows)")
    assert walk.dask_classes([there]) == {"DaskRows"}
    assert walk.lines_with_dask([there, Source("estimators/a.py", line)]) == int(is_test)


def module(name: str, code: str, **names: object) -> ModuleType:
    made = ModuleType(name)
    vars(made).update(names)
    exec(compile(code, f"<{name}>", "exec"), vars(made))  # which coverage leaves out
    return made


@pytest.fixture
def layers() -> tuple[Walk, ModuleType]:
    """Three functions, each in a module of its own; the last one notes the first distance."""
    noted = Walk()

    def distance() -> None:
        noted.at_distance(sys._getframe(1))

    low = module("kreinlearn.low", "def f(): distance()", distance=distance)
    middle = module("kreinlearn.middle", "def f(): inner()\ndef inner(): g()", g=low.f)
    top = module("kreinlearn.top", "def f(): g()\ndef deeper(): f()", g=middle.f)
    return noted, top


def test_calls_of_a_walk(layers: tuple[Walk, ModuleType]) -> None:
    noted, top = layers
    sys.setprofile(noted)
    try:
        top.f()
    finally:
        sys.setprofile(None)
    assert noted.modules() == {"kreinlearn.low", "kreinlearn.middle", "kreinlearn.top"}
    pairs = {("top", "middle"), ("middle", "low")}
    assert noted.pairs() == {(f"kreinlearn.{a}", f"kreinlearn.{b}") for a, b in pairs}
    assert noted.frames == 4


def test_only_the_first_distance_counts(layers: tuple[Walk, ModuleType]) -> None:
    noted, top = layers
    top.f()
    top.deeper()
    assert noted.frames == 4


def test_a_limit_holds_only_if_all_its_numbers_do() -> None:
    assert Row("a / b", (9, 9), (5, 5), (1, 1), (5, 0)).holds()
    assert not Row("a / b", (9, 9), (5, 5), (1, 1), (5, 6)).holds()
    assert not Row("share", (9,), (5,), (5,), (5.2,), " %").holds()
    cells = Row("lines", (23603,), (1,), (0,), (2,)).cells()
    assert cells == ["lines", "23,603", "1", "0", "2 (too many)"]


def test_long_functions_are_counted_without_their_docstrings() -> None:
    def function(lines: int, docstring: str = "") -> str:
        return "def f():\n" + docstring + "    x = 1\n" * lines

    long = function(walk.LONG)
    assert walk.long_functions([Source("learn/a.py", long)]) == 1
    assert walk.long_functions([Source("solvers/a.py", long)]) == 0
    text = '    """Two\n    lines."""\n'
    assert walk.long_functions([Source("learn/a.py", function(walk.LONG - 1, text))]) == 0


def test_the_table_stands_between_its_marks() -> None:
    measured = walk.Table("Walk", ["what", "now"], [["lines", "3"]])
    page = walk.quoted("a\n<!-- walk -->\nold\n<!-- /walk -->\nb\n", measured)
    assert page.startswith("a\n<!-- walk -->\n| what | now |\n")
    assert page.endswith("| lines | 3 |\n<!-- /walk -->\nb\n")
    assert walk.quoted(page, measured) == page
    with pytest.raises(ValueError, match="one pair"):
        walk.quoted("no marks", measured)
