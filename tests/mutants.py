"""Whether the tests notice a small error: ``make mutants`` changes one place at a time.

A mutant is a module in which one operator, number, comparison, keyword or statement is another.
Mutants of a random sample are made in a copy of ``src``, and the tests of the module run on each.
If none of them fails, the mutant has survived: a test is missing, or the place has no effect.

    python -m tests.mutants                                         500 mutants of all modules
    python -m tests.mutants --module solvers/exact --number 50 --seed 3
    python -m tests.mutants --again build/mutants/survivors.json    those that survived before

Survivors that cannot be told from the original are listed in ``tests/mutants.md``, each with the
reason, and do not count. The exit status is 1 if the score of the others is 95 % or less.
"""

from __future__ import annotations

import argparse
import ast
import compileall
import hashlib
import importlib
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
LISTED = ROOT / "tests" / "mutants.md"
SURVIVORS = ROOT / "build" / "mutants" / "survivors.json"
LOG = SURVIVORS.with_name("pytest.log")  # of the last mutant
ONE_TEST, ALL_TESTS = 20, 240  # seconds after which a test, and all of them, count as failed

# What the parent imports once for all mutants; only the library itself is imported for each.
IMPORTED = [
    *("numpy", "scipy.linalg", "scipy.optimize", "scipy.sparse", "scipy.special", "scipy.stats"),
    *("sklearn.linear_model", "sklearn.model_selection", "sklearn.metrics", "sklearn.svm"),
    *("numba", "joblib", "pandas", "pytest"),
]

# The tests of a module, those that fail first in front.
TESTS = {
    "solvers/conformal": "solvers/test_conformal estimators/test_conformal",
    "solvers/exact": "solvers/test_exact solvers/test_leave_one_out learn/test_exact",
    "solvers/kernel_hinge": "solvers/test_kernel_hinge learn/losses/test_machines",
    "solvers/kmeans": "solvers/test_kmeans estimators/test_kmeans",
    "solvers/least_squares": "solvers/test_least_squares learn/losses/test_squared",
    "solvers/line_search": "solvers/test_margins solvers/test_squared_hinge solvers/test_sparse",
    "solvers/margins": "solvers/test_margins solvers/test_squared_hinge solvers/test_sparse "
    "learn/losses/test_hinge_rows",
    "solvers/novelty": "solvers/test_novelty estimators/test_conformal",
    "solvers/probabilities": "solvers/test_probabilities estimators/test_probability",
    "solvers/sparse": "solvers/test_sparse learn/losses/test_sparse",
    "solvers/spectrum": "solvers/test_spectrum nystrom/test_core solvers/test_exact",
    "solvers/squared_hinge": "solvers/test_squared_hinge solvers/test_margins "
    "learn/losses/test_hinge",
    "solvers/variance": "solvers/test_variance learn/losses/test_variance",
    "sums/moments": "sums/test_moments learn/test_task",
    "sums/parallel": "sums/test_parallel sums/test_thread_limits sums/test_moments "
    "pairs/test_rows nystrom/test_sweep",
    "nystrom/core": "nystrom/test_core nystrom/test_sweep nystrom/test_fit",
    "nystrom/error": "nystrom/test_error nystrom/test_fit",
    "nystrom/fit": "nystrom/test_fit nystrom/test_sweep estimators/test_transformer",
    "nystrom/landmarks": "nystrom/test_landmarks nystrom/test_fit estimators/test_transformer",
    "nystrom/schemes": "nystrom/test_schemes nystrom/test_own_schemes nystrom/test_landmarks",
    "learn/combination": "learn/test_combination learn/test_comparison",
    "learn/comparison": "learn/test_comparison learn/test_exact learn/test_similarity",
    "learn/decision": "learn/test_decision estimators/test_front",
    "learn/exact": "learn/test_size learn/test_exact learn/losses/test_squared",
}

SWAPPED: dict[type[ast.AST], tuple[type[ast.AST], ...]] = {
    ast.Add: (ast.Sub,), ast.Sub: (ast.Add,), ast.Mult: (ast.Div,), ast.Div: (ast.Mult,),
    ast.FloorDiv: (ast.Mult,), ast.Mod: (ast.Mult,), ast.Pow: (ast.Mult,),
    ast.BitAnd: (ast.BitOr,), ast.BitOr: (ast.BitAnd,), ast.And: (ast.Or,), ast.Or: (ast.And,),
    ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt), ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,), ast.In: (ast.NotIn,), ast.NotIn: (ast.In,),
}  # fmt: skip
PAIRS = "min max,minimum maximum,any all,argmin argmax,floor ceil,zeros ones,zeros_like ones_like"
NAMES = {a: b for pair in PAIRS.split(",") for a, b in (pair.split(), pair.split()[::-1])}
# Keywords without which a correct program computes the same: checks, and the use of memory.
WITHOUT_EFFECT = {"strict", "check_finite", "overwrite_a", "overwrite_b", "order"}


@dataclass(frozen=True)
class Mutant:
    """A module in which a field of one node has another value."""

    module: str
    line: str  # of the original
    change: str
    place: int  # among all changes of the module

    @property
    def key(self) -> tuple[str, str, str]:
        return self.module, self.line, self.change

    def rank(self, seed: int) -> bytes:
        """A random place in the order of all mutants; a change of other lines leaves it alone."""
        return hashlib.sha256(repr((seed, *self.key)).encode()).digest()

    def source(self) -> str:
        """The mutated module."""
        tree = ast.parse(original(self.module))
        node, field, value = list(changes(tree))[self.place]
        setattr(node, field, value)
        return ast.unparse(ast.fix_missing_locations(tree))


def original(module: str) -> str:
    return (SOURCE / "kreinlearn" / f"{module}.py").read_text(encoding="utf-8")


Change = tuple[ast.AST, str, Any]


def changes(node: ast.AST) -> Iterator[Change]:
    """A node, a field of it, and another value of the field, for all that is below ``node``."""
    for below in _children(node):
        yield from _changes_of(below)
        yield from changes(below)


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """What is below a node, apart from what is no part of a computation."""
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "exc", "format_spec"):
            continue
        for child in value if isinstance(value, list) else [value]:
            named = isinstance(child, ast.Assign) and ast.unparse(child.targets[0])
            typing = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
            text = isinstance(child, ast.JoinedStr | ast.Assert | ast.Import | ast.ImportFrom)
            equal = isinstance(child, ast.keyword) and child.arg in WITHOUT_EFFECT
            if isinstance(child, ast.AST) and not (named == "__all__" or typing or text or equal):
                yield child


def _changes_of(node: ast.AST) -> Iterator[Change]:
    match node:
        case ast.BinOp() | ast.BoolOp() | ast.AugAssign():
            yield from ((node, "op", other()) for other in SWAPPED.get(type(node.op), ()))
        case ast.Compare():
            for other in SWAPPED[type(node.ops[0])]:
                yield node, "ops", [other(), *node.ops[1:]]
        case ast.UnaryOp(op=ast.Not() | ast.Invert()):
            yield node, "operand", ast.UnaryOp(node.op, node.operand)
        case ast.UnaryOp(op=ast.USub()):
            yield node, "op", ast.UAdd()
        case ast.Constant(value=bool()):
            yield node, "value", not node.value
        case ast.Constant(value=int() | float()):
            yield node, "value", node.value + 1 if node.value in (0, 1) else 2 * node.value
            if isinstance(node.value, int) and node.value:
                yield node, "value", node.value - 1
        case ast.Name(id=name) if name in NAMES:
            yield node, "id", NAMES[name]
        case ast.Slice():
            for end in ("lower", "upper"):
                if (at := getattr(node, end)) and not isinstance(at, ast.Constant):
                    yield node, end, ast.BinOp(at, ast.Add(), ast.Constant(1))
        case ast.If(body=[*_, ast.Return() | ast.Continue() | ast.Break() | ast.Raise()]):
            yield node, "test", ast.Constant(False)
        case ast.Expr(value=ast.Call()):
            yield node, "value", ast.Constant(None)
    if isinstance(node, ast.Attribute) and node.attr in NAMES:
        yield node, "attr", NAMES[node.attr]
    if isinstance(node, ast.If | ast.IfExp | ast.While) and isinstance(
        node.test, ast.Name | ast.Attribute | ast.Call
    ):
        yield node, "test", ast.UnaryOp(ast.Not(), node.test)
    if isinstance(node, ast.Call):
        for k, keyword in enumerate(node.keywords):
            if keyword.arg and keyword.arg not in WITHOUT_EFFECT:
                yield node, "keywords", node.keywords[:k] + node.keywords[k + 1 :]


def mutants(module: str) -> list[Mutant]:
    """All mutants of a module, in the order of its lines."""
    text, made = original(module), []
    tree, lines = ast.parse(text), text.splitlines()
    above = {below: node for node in ast.walk(tree) for below in ast.iter_child_nodes(node)}
    for place, (node, field, value) in enumerate(changes(tree)):
        line = lines[node.lineno - 1].strip()
        made.append(Mutant(module, line, in_words(node, field, value, above), place))
    return made


def in_words(node: ast.AST, field: str, value: Any, above: dict[ast.AST, ast.AST]) -> str:
    """What is changed to what; a number is printed with the expression around it."""
    if field == "keywords":
        (gone,) = set(node.keywords) - set(value)
        return f"without {ast.unparse(gone)}"
    shown, parts = (
        node,
        (ast.Constant, ast.Name, ast.Slice, ast.UnaryOp, ast.Tuple, ast.keyword, ast.Attribute),
    )
    while isinstance(shown, parts) and not isinstance(above[shown], ast.stmt):
        shown = above[shown]
    if isinstance(above[shown], ast.Assign | ast.AnnAssign) and isinstance(shown, parts):
        shown = above[shown]
    before, kept = ast.unparse(shown), getattr(node, field)
    setattr(node, field, value)
    after = ast.unparse(ast.fix_missing_locations(shown))
    setattr(node, field, kept)
    return " -> ".join(text.partition("\n")[0] for text in (before, after))


def listed() -> set[tuple[str, str, str]]:
    """The mutants of ``tests/mutants.md``: rows of module, line, change and reason."""
    rows = (row.split(" | ") for row in LISTED.read_text(encoding="utf-8").splitlines())
    cells = ([cell.strip("|` ").replace("\\|", "|") for cell in row] for row in rows)
    return {(row[0], row[1], row[2]) for row in cells if row[0] in TESTS}


# Running the tests on a mutant


def tests_of(module: str) -> list[str]:
    return [f"tests/unit/{name}.py" for name in TESTS[module].split()]


def survives(mutant: Mutant, copy: Path) -> bool:
    """Whether all tests pass, in a child that imports the copy in which the mutant is written."""
    file = copy / "kreinlearn" / f"{mutant.module}.py"
    file.write_text(mutant.source(), encoding="utf-8")
    try:
        return _status(tests_of(mutant.module), copy) == 0
    finally:
        shutil.copy2(SOURCE / "kreinlearn" / f"{mutant.module}.py", file)


def _status(tests: list[str], copy: Path, seconds: float = ALL_TESTS) -> int:
    """The exit status of pytest; -1 if it ran out of time."""
    child = os.fork()
    if not child:
        _run(tests, copy)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return -1


def _run(tests: list[str], copy: Path) -> None:
    """Run the tests and end this process; the parent has imported all but the library."""
    os.setsid()
    log = os.open(LOG, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(log, stream)
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(copy))
    os.environ["PYTHONPATH"] = os.pathsep.join([str(copy), os.environ.get("PYTHONPATH", "")])
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # they take longer than most of the tests
    import pytest

    status = 1
    try:
        quick = [
            "-x",
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "pytest_timeout",
            f"--timeout={ONE_TEST}",
        ]
        status = int(pytest.main([*quick, *tests]))
    finally:
        sys.stdout.flush()
        os._exit(status)  # an exception of pytest itself counts as a failure


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--number", type=int, default=500, help="of mutants (default: 500)")
    parser.add_argument("--seed", type=int, default=0, help="of the sample (default: 0)")
    parser.add_argument("--module", nargs="+", default=list(TESTS), choices=TESTS, metavar="MODULE")
    parser.add_argument("--again", type=Path, help="a file of survivors, instead of a sample")
    given = parser.parse_args(argv)
    if not hasattr(os, "fork"):
        parser.error("every mutant is tried in a fork of this process, and this system has no fork")
    drawn = [mutant for module in given.module for mutant in mutants(module)]
    print(f"{len(drawn)} mutants in {len(given.module)} modules", flush=True)
    if given.again:
        keys = {tuple(key) for key in json.loads(given.again.read_text(encoding="utf-8"))}
        drawn = [mutant for mutant in drawn if mutant.key in keys]
    else:
        drawn = sorted(drawn, key=lambda one: one.rank(given.seed))[: given.number]
    SURVIVORS.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        survivors = run(sorted(drawn, key=lambda one: one.module), Path(folder) / "src")
    SURVIVORS.write_text(json.dumps([one.key for one in survivors], indent=1), encoding="utf-8")
    equal = [one for one in survivors if one.key in listed()]
    count, missed = len(drawn), len(survivors) - len(equal)
    print(f"{count} mutants, {count - len(survivors)} killed, {len(equal)} listed as equal")
    score = 100 * (1 - missed / max(count - len(equal), 1))
    raw = 100 * (1 - len(survivors) / max(count, 1))
    print(f"score {score:.1f} % ({raw:.1f} % if those that are listed count)")
    return 0 if count and score > 95 else 1


def run(drawn: list[Mutant], copy: Path) -> list[Mutant]:
    """The mutants that survive, printed as they are found."""
    for name in IMPORTED:
        importlib.import_module(name)
    shutil.copytree(SOURCE, copy)
    compileall.compile_dir(copy, quiet=2)
    files = dict.fromkeys(file for mutant in drawn for file in tests_of(mutant.module))
    if _status(list(files), copy, 60 * len(files)):
        raise SystemExit(f"a test fails or takes too long without any mutant: see {LOG}")
    survivors = []
    for k, mutant in enumerate(drawn):
        begun = time.monotonic()
        if survives(mutant, copy):
            survivors.append(mutant)
            print(f"survived: {mutant.module}: {mutant.line}\n    {mutant.change}")
        print(f"{k + 1} of {len(drawn)}: {time.monotonic() - begun:.1f} s", flush=True)
    return survivors


if __name__ == "__main__":
    sys.exit(main())
