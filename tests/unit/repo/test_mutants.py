"""What ``make mutants`` changes, and that its list of equal mutants is up to date."""

from __future__ import annotations

import ast

from tests import mutants as made

MODULE = '''
"""A docstring with 1 + 2."""
__all__ = ["f"]
if TYPE_CHECKING:
    n = 1

def f(x: 1 = 2) -> 3:
    if not x < 2.5:
        raise ValueError(1)
    assert x == 1
    x += g(zip(x, strict=True), axis=0)
    return f"{x + 1}" or max(x[:n], -n)
'''


def changed(text: str) -> list[str]:
    """Each line of a module as it is in a mutant, in the order of the mutants."""
    found = []
    before = ast.unparse(ast.parse(text)).splitlines()
    for place in range(len(list(made.changes(ast.parse(text))))):
        tree = ast.parse(text)
        node, field, value = list(made.changes(tree))[place]
        setattr(node, field, value)
        after = ast.unparse(ast.fix_missing_locations(tree)).splitlines()
        found += [new.strip() for old, new in zip(before, after, strict=True) if old != new]
    return found


def test_what_is_changed() -> None:
    assert sorted(changed(MODULE)) == sorted([
        "def f(x: 1=4) -> 3:",
        "def f(x: 1=1) -> 3:",
        "if False:",
        "if not not x < 2.5:",
        "if not x <= 2.5:",
        "if not x >= 2.5:",
        "if not x < 5.0:",
        "x -= g(zip(x, strict=True), axis=0)",
        "x += g(zip(x, strict=True))",
        "x += g(zip(x, strict=True), axis=1)",
        "return f'{x + 1}' and max(x[:n], -n)",
        "return f'{x + 1}' or min(x[:n], -n)",
        "return f'{x + 1}' or max(x[:n + 1], -n)",
        "return f'{x + 1}' or max(x[:n], +n)",
    ])  # fmt: skip


def test_every_module_of_the_rooms_has_tests() -> None:
    package = made.SOURCE / "kreinlearn"
    rooms = [
        file for room in ("solvers", "nystrom", "sums") for file in (package / room).glob("*.py")
    ]
    names = {file.relative_to(package).with_suffix("").as_posix() for file in rooms}
    names = {name for name in names if not name.endswith("__init__")}
    assert names <= set(made.TESTS)
    for module in made.TESTS:
        assert all((made.ROOT / file).is_file() for file in made.tests_of(module))


def test_listed_mutants_are_mutants_of_the_source() -> None:
    every = {mutant.key for module in made.TESTS for mutant in made.mutants(module)}
    listed = made.listed()
    assert listed
    assert listed <= every, listed - every


def test_the_source_of_a_mutant() -> None:
    (mutant,) = [
        mutant
        for mutant in made.mutants("sums/parallel")
        if mutant.change == "self.weight += other.weight -> self.weight -= other.weight"
    ]
    assert mutant.line == "self.weight += other.weight"
    before = ast.unparse(ast.parse(made.original("sums/parallel"))).splitlines()
    differ = [
        pair for pair in zip(before, mutant.source().splitlines(), strict=True) if len({*pair}) > 1
    ]
    assert [tuple(line.strip() for line in pair) for pair in differ] == [
        ("self.weight += other.weight", "self.weight -= other.weight")
    ]
