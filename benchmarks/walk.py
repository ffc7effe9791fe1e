"""How far one has to walk to follow a fit through the library: python -m benchmarks.walk

The table counts what makes the code hard to follow: how many modules a fit enters, how many
different pairs of modules call each other, how deep the first distance lies, and how often a room
looks into another. ARCHITECTURE.md quotes it (``--write``), and ``--check`` fails where a limit
is exceeded.

How it counts
-------------
A fit of 120 words and its prediction, and a fit of ``KreinSVC`` with 100 landmarks on 400 vectors
of three classes, run once so that everything is imported, and then again while every call of a
Python function is noted. They run with ``n_jobs=1``: moving work to another thread makes no walk
shorter. Only functions of ``kreinlearn`` count:

- a module is entered when one of its functions is called;
- a pair of modules is counted when a function of one directly calls a function of the other, in
  that order, and the two are different;
- frames are those of our own functions on the stack at the moment when the first distance is
  computed.

Everything else is read from the source text. An annotated argument counts as ``Any`` if its
annotation is just that. A test for Dask is a line that calls ``is_dask``, asks for an attribute
with "dask" in its name, or asks ``isinstance`` of a class of ``distributed/``.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

import kreinlearn
from benchmarks import tables
from kreinlearn.report.model import Table

PACKAGE = "kreinlearn"
SOURCE = Path(kreinlearn.__file__).parent
PAGE = Path(__file__).parents[1] / "ARCHITECTURE.md"
MARKS = re.compile(r"(?<=<!-- walk -->\n).*?(?=<!-- /walk -->)", re.DOTALL)
HEADER = ["what", "at 8949137", "limit", "aim", "now"]
LONG = 60  # lines of a function without its docstring


# ---------------------------------------------------------------- calls of one fit


def module_of(frame: FrameType) -> str | None:
    """The module of our own that a frame runs in, or None."""
    name = str(frame.f_globals.get("__name__", ""))
    return name if name.split(".")[0] == PACKAGE else None


def own_frames(frame: FrameType | None) -> int:
    """How many of our own functions are on the stack from ``frame`` upwards."""
    count = 0
    while frame is not None:
        count += module_of(frame) is not None
        frame = frame.f_back
    return count


class Call(NamedTuple):
    """A function of ``callee`` was called by ``caller``, a module of ours or None."""

    caller: str | None
    callee: str


@dataclass
class Walk:
    """What was called between ``fit`` and its return; it is given to ``sys.setprofile``."""

    calls: set[Call] = field(default_factory=set)
    frames: int | None = None  # at the first distance

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        callee = module_of(frame)
        if event != "call" or callee is None or frame.f_code.co_name == "<module>":
            return
        self.calls.add(Call(module_of(frame.f_back) if frame.f_back else None, callee))

    def at_distance(self, frame: FrameType) -> None:
        """Note how deep the first distance lies; later ones do not count."""
        if self.frames is None:
            self.frames = own_frames(frame)

    def modules(self) -> set[str]:
        return {call.callee for call in self.calls}

    def pairs(self) -> set[tuple[str, str]]:
        return {
            (call.caller, call.callee)
            for call in self.calls
            if call.caller and call.caller != call.callee
        }


@contextmanager
def distances_noted(walk: Walk) -> Iterator[None]:
    """Inside, the functions by which rapidfuzz computes distances tell ``walk`` of their caller."""
    from rapidfuzz import process

    def telling(function: Callable[..., Any]) -> Callable[..., Any]:
        def told(*args: Any, **kwargs: Any) -> Any:
            walk.at_distance(sys._getframe(1))
            return function(*args, **kwargs)

        return told

    before = {name: getattr(process, name) for name in ("cdist", "cpdist")}
    for name, function in before.items():
        setattr(process, name, telling(function))
    try:
        yield
    finally:
        for name, function in before.items():
            setattr(process, name, function)


def walked(work: Callable[[], object]) -> Walk:
    """The calls that ``work`` makes when it is done a second time."""
    work()
    walk = Walk()
    with distances_noted(walk):
        sys.setprofile(walk)
        try:
            work()
        finally:
            sys.setprofile(None)
    return walk


def two_kinds_of_words(n: int, seed: int = 0) -> tuple[list[str], np.ndarray]:
    """Random words of two alphabets that overlap, and which of the two each is of."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    alphabets = np.array([list("abcde"), list("cdefg")])
    return ["".join(rng.choice(alphabets[k], size=rng.integers(4, 10))) for k in y], y


def three_classes(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Vectors of five numbers whose first number is larger from class to class."""
    y = np.arange(n) % 3
    X = np.random.default_rng(seed).normal(size=(n, 5))
    X[:, 0] += 2 * y
    return X, y


def walks() -> tuple[Walk, Walk, Walk]:
    """A fit of words, its prediction, and a fit of KreinSVC on vectors."""
    words, kinds = two_kinds_of_words(120)
    learner = kreinlearn.KreinRidgeClassifier("levenshtein", n_jobs=1, random_state=0)
    fit = walked(lambda: learner.fit(words, kinds))
    predict = walked(lambda: learner.predict(words[:10]))
    X, y = three_classes(400)
    machine = kreinlearn.KreinSVC(n_jobs=1, random_state=0, landmarks=100)
    return fit, predict, walked(lambda: machine.fit(X, y))


# ---------------------------------------------------------------- the source text

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
NO_CODE = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE),
    *(tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER),
}


class Source(NamedTuple):
    """One module: its path below the package, and its text."""

    path: str  # with slashes: "pairs/square.py"
    text: str

    def is_in(self, room: str) -> bool:
        return self.path.startswith(f"{room}/")


def sources(folder: Path = SOURCE) -> list[Source]:
    return [
        Source(path.relative_to(folder).as_posix(), path.read_text(encoding="utf8"))
        for path in sorted(folder.rglob("*.py"))
    ]


@cache
def parsed(text: str) -> ast.Module:
    return ast.parse(text)


def docstring_lines(tree: ast.AST) -> set[int]:
    lines: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, *FUNCTIONS)) and ast.get_docstring(node):
            first = node.body[0]
            lines.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return lines


def code_lines(text: str) -> int:
    """Lines of code without docstrings, comments and blank lines."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - docstring_lines(parsed(text)))


def annotations(text: str) -> Iterator[str]:
    """The annotations of all arguments of all functions, as they are written."""
    for node in ast.walk(parsed(text)):
        if isinstance(node, FUNCTIONS):
            named = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            for argument in (*named, node.args.vararg, node.args.kwarg):
                if argument is not None and argument.annotation is not None:
                    yield ast.unparse(argument.annotation).strip("'\"")


def share_of_any(modules: Sequence[Source]) -> float:
    """Percent of the annotated arguments that are annotated with ``Any``."""
    written = [text for module in modules for text in annotations(module.text)]
    return 100 * written.count("Any") / max(len(written), 1)


def lines_with_takes(modules: Sequence[Source]) -> int:
    """Lines outside ``kernels/`` that ask a kernel what it takes."""
    texts = (module.text for module in modules if not module.is_in("kernels"))
    return sum(bool(re.search(r"\.takes\b", line)) for text in texts for line in text.splitlines())


def dask_classes(modules: Sequence[Source]) -> set[str]:
    """Classes that stand for Dask collections or parts of them, by the module that defines them."""
    return {
        node.name
        for module in modules
        if module.is_in("distributed") or "dask" in module.path
        for node in ast.walk(parsed(module.text))
        if isinstance(node, ast.ClassDef)
    }


def tests_for_dask(text: str, classes: set[str]) -> set[int]:
    """The lines of a module that ask whether something is on Dask."""
    lines = set()
    for node in ast.walk(parsed(text)):
        match node:
            case ast.Call(func=ast.Name(id="is_dask") | ast.Attribute(attr="is_dask")):
                lines.add(node.lineno)
            case ast.Call(func=ast.Name(id="isinstance"), args=[_, kinds]):
                if set(re.findall(r"\w+", ast.unparse(kinds))) & classes:
                    lines.add(node.lineno)
            case ast.Attribute(attr=name, ctx=ast.Load()) if "dask" in name:
                lines.add(node.lineno)
            case ast.Constant(value=str(name)) if name.startswith("__dask_"):
                lines.add(node.lineno)
    return lines


def lines_with_dask(modules: Sequence[Source]) -> int:
    """Lines outside ``distributed/`` that test for Dask."""
    classes = dask_classes(modules)
    outside = [module.text for module in modules if not module.is_in("distributed")]
    return sum(len(tests_for_dask(text, classes)) for text in outside)


def long_functions(modules: Sequence[Source]) -> int:
    """Functions of more lines than ``LONG``, docstrings apart, where no mathematics asks for it."""
    outside = [one for one in modules if not (one.is_in("solvers") or one.is_in("kernels"))]
    functions = [
        node
        for module in outside
        for node in ast.walk(parsed(module.text))
        if isinstance(node, FUNCTIONS)
    ]
    return sum(lines_of(node) > LONG for node in functions)


def lines_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    first = function.body[0]
    docstring = 0
    if ast.get_docstring(function):
        docstring = (first.end_lineno or first.lineno) - first.lineno + 1
    return (function.end_lineno or function.lineno) - function.lineno + 1 - docstring


def most_parameters() -> int:
    """The largest number of constructor parameters of a public estimator."""
    public = [getattr(kreinlearn, name) for name in kreinlearn.__all__]
    return max(len(c._get_param_names()) for c in public if hasattr(c, "_get_param_names"))


# ---------------------------------------------------------------- the table


class Row(NamedTuple):
    """One line of the table: what was measured, where it stood, and what it may be at most.

    A limit is what has been reached, so that nothing grows again; the aim is where it has to go.
    """

    what: str
    before: tuple[float, ...]
    limit: tuple[float, ...]
    aim: tuple[float, ...]
    now: tuple[float, ...]
    unit: str = ""

    def holds(self) -> bool:
        return all(now <= limit for now, limit in zip(self.now, self.limit, strict=True))

    def cells(self) -> list[str]:
        def words(numbers: tuple[float, ...]) -> str:
            return " / ".join(f"{number:,.0f}{self.unit}" for number in numbers)

        now = words(self.now) + ("" if self.holds() else " (too many)")
        return [self.what, words(self.before), words(self.limit), words(self.aim), now]


def rows_of_calls(fit: Walk, predict: Walk, machine: Walk) -> list[Row]:
    modules = tuple(len(walk.modules()) for walk in (fit, predict, machine))
    pairs = tuple(len(walk.pairs()) for walk in (fit, machine))
    return [
        Row(
            "modules entered: a fit of 120 words / its predict / a fit of KreinSVC",
            *((36, 22, 43), (36, 14, 40), (22, 10, 24), modules),
        ),
        Row(
            "own frames above the first distance: fit / predict",
            *((29, 17), (16, 10), (10, 9), (fit.frames or 0, predict.frames or 0)),
        ),
        Row(
            "pairs of calling modules: that fit / KreinSVC",
            *((103, 123), (80, 118), (65, 80), pairs),
        ),
    ]


def rows_of_text(modules: Sequence[Source]) -> list[Row]:
    estimators = [module for module in modules if module.is_in("estimators")]
    lines = sum(code_lines(module.text) for module in modules)
    top = sum("/" not in module.path for module in modules)
    beside = sum(code_lines(module.text) for module in sources(PAGE.parent / "reproduction"))
    return [
        Row(
            "lines with `.takes` outside `kernels/`",
            (63,),
            (0,),
            (0,),
            (lines_with_takes(modules),),
        ),
        Row(
            "lines that test for Dask outside `distributed/` (one entrance is allowed)",
            *((26,), (1,), (1,), (lines_with_dask(modules),)),
        ),
        Row(
            "`Any` among annotated arguments: `estimators/` / whole package",
            *((60, 21), (14, 8), (14, 8), (share_of_any(estimators), share_of_any(modules)), " %"),
        ),
        Row("modules directly under `src/kreinlearn`", (25,), (8,), (8,), (top,)),
        Row("modules of the package", (213,), (214,), (130,), (len(modules),)),
        Row(
            "lines of code, without docstrings and comments", (23603,), (27500,), (21000,), (lines,)
        ),
        Row(
            "lines of code of `reproduction/`, beside the package",
            (3754,),
            (2650,),
            (2000,),
            (beside,),
        ),
        Row(
            "most constructor parameters of an estimator", (27,), (15,), (15,), (most_parameters(),)
        ),
        Row(
            f"functions of more than {LONG} lines outside `solvers/` and `kernels/`",
            (0,),
            (0,),
            (0,),
            (long_functions(modules),),
        ),
    ]


def table() -> tuple[Table, bool]:
    """The table, and whether every limit holds."""
    rows = [*rows_of_calls(*walks()), *rows_of_text(sources())]
    return Table("Walk", HEADER, [row.cells() for row in rows]), all(row.holds() for row in rows)


def markdown(measured: Table) -> str:
    lines = [measured.header, ["---", *["---:"] * (len(measured.header) - 1)], *measured.rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def quoted(page: str, measured: Table) -> str:
    """The page with the table between its two marks."""
    text, times = MARKS.subn(lambda _: markdown(measured), page)
    if times != 1:
        raise ValueError(f"expected one pair of <!-- walk --> and <!-- /walk -->, found {times}")
    return text


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.walk",
        description="Count how far one has to walk to follow a fit through the library.",
        allow_abbrev=False,
    )
    parser.add_argument("--check", action="store_true", help="exit 1 if a limit is exceeded")
    parser.add_argument("--write", action="store_true", help="update the table of ARCHITECTURE.md")
    options = parser.parse_args(argv)
    measured, holds = table()
    measured.show(tables.console())
    if options.write:
        PAGE.write_text(quoted(PAGE.read_text(encoding="utf8"), measured), encoding="utf8")
    return int(options.check and not holds)


if __name__ == "__main__":
    sys.exit(main())
