"""Imports go one way, optional packages are imported where they are needed, dask in one module."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[3]
SRC = ROOT / "src"

# What each room of the package may import; rooms must also not form a cycle. A private module at
# the top ("_warnings") may be imported by all and imports only its like.
LEAVES = {"data", "kernels", "sums"}
PAIRS = LEAVES | {"progress"}
NYSTROM = PAIRS | {"pairs", "solvers"}
LEARN = NYSTROM | {"nystrom"}
ESTIMATORS = LEARN | {"distributed", "learn", "persist"}
REPORTING = ESTIMATORS | {
    "datasets",
    "estimators",
    "evaluation",
    "inspection",
    "plotting",
    "report",
}

MAY_IMPORT: dict[str, set[str]] = {
    "progress": set(),
    "solvers": set(),
    "data": set(),
    "sums": {"data"},
    "kernels": {"data", "progress", "solvers", "sums"},
    "pairs": PAIRS,
    "nystrom": NYSTROM,
    "learn": LEARN,
    "distributed": ESTIMATORS - {"distributed", "persist"},
    "persist": LEARN,
    "estimators": ESTIMATORS,
    "datasets": {"data", "kernels"},
    "inspection": ESTIMATORS | {"datasets", "estimators"},
    "evaluation": ESTIMATORS | {"datasets", "estimators", "inspection"},
    "plotting": ESTIMATORS | {"estimators", "evaluation", "inspection"},
    "report": REPORTING - {"report"},
    "cli": REPORTING | {""},
    "__main__": {"cli"},
    "": REPORTING,  # kreinlearn/__init__.py: the public names
}

CORE = {"joblib", "numba", "numpy", "rapidfuzz", "rich", "scipy", "sklearn", "threadpoolctl"}
CORE |= {"cloudpickle", "llvmlite"}  # come with joblib and numba
DASK = {"dask", "distributed"}
EXTRAS = DASK | {
    *("aeon", "dtaidistance", "grakel", "matplotlib", "networkx", "numcodecs", "ot", "pandas"),
    *("parasail", "polars", "pyarrow", "shtab", "zarr"),
}


class Import(NamedTuple):
    name: str  # dotted, absolute
    lazy: bool  # inside a function, or for type checkers only
    line: int


def statements(node: ast.AST, lazy: bool = False) -> Iterator[tuple[ast.stmt, bool]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, lazy
        function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        typing_only = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
        yield from statements(child, lazy or function or typing_only)


def imports(source: str, package: str) -> Iterator[Import]:
    """Every import of a module that lives in `package`, relative ones made absolute."""
    for node, lazy in statements(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, lazy, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")
            above = parents[: len(parents) + 1 - node.level] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            if base == "kreinlearn":  # from kreinlearn import spectrum, KreinPCA
                for alias in node.names:
                    part = alias.name if is_part(alias.name) else ""
                    yield Import(f"{base}.{part}".rstrip("."), lazy, node.lineno)
            else:
                yield Import(base, lazy, node.lineno)


def is_part(name: str) -> bool:
    here = SRC / "kreinlearn" / name
    return name in MAY_IMPORT or here.is_dir() or here.with_suffix(".py").exists()


def part(module: str) -> str:
    """kreinlearn.kernels.vectors -> kernels; kreinlearn -> ''."""
    return [*module.split("."), ""][1]


def private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def complaints(module: str, source: str, package: str | None = None) -> list[str]:
    """What is wrong with the imports of one module, given by its dotted name and text."""
    own = part(module)
    found = list(imports(source, package or module.rpartition(".")[0]))
    inner = [item for item in found if item.name.split(".")[0] == "kreinlearn"]
    outer = [item for item in found if item not in inner]
    if own not in MAY_IMPORT and not private(own):
        return [f"{module}: place '{own}' in MAY_IMPORT"]
    allowed = MAY_IMPORT.get(own, set())
    wrong = [
        f"{module}:{item.line} imports {item.name}"
        for item in inner
        if part(item.name) not in allowed | {own} and not private(part(item.name))
    ]
    return wrong + [f"{module}:{item.line} {why}" for item in outer if (why := outside(item, own))]


def outside(item: Import, own: str) -> str | None:
    """Why a module of the part `own` may not import this package that is not ours."""
    name = item.name.split(".")[0]
    if name in CORE or name in sys.stdlib_module_names:
        return None
    if name not in EXTRAS:
        return f"imports {name}, which pyproject.toml does not declare"
    if name in DASK:
        return None if own == "distributed" else f"imports {name} outside distributed"
    return None if item.lazy else f"imports {name} at the top: do it in a function"


def modules() -> Iterator[tuple[str, str, str]]:
    """Name, text and package of every module of the library."""
    for path in sorted(SRC.rglob("*.py")):
        parts = path.relative_to(SRC).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if is_package else parts)
        package = name if is_package else ".".join(parts[:-1])
        yield name, path.read_text(encoding="utf8"), package


def graph(texts: Iterator[tuple[str, str, str]]) -> dict[str, set[str]]:
    """The parts that each part imports."""
    edges: dict[str, set[str]] = {}
    for name, source, package in texts:
        found = {part(i.name) for i in imports(source, package) if i.name.startswith("kreinlearn")}
        edges.setdefault(part(name), set()).update(found - {part(name)})
    return edges


def test_the_direction_holds() -> None:
    found = list(modules())
    assert found, f"no module under {SRC}"
    assert [text for module in found for text in complaints(*module)] == []


def test_no_cycle_between_parts() -> None:
    edges = graph(modules())
    TopologicalSorter(edges).prepare()  # a CycleError names the parts


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("kreinlearn.solvers.sparse", "from kreinlearn.kernels import resolve"),
        ("kreinlearn.solvers.sparse", "from kreinlearn import data"),
        ("kreinlearn.solvers.sparse", "from ..data import rows"),
        ("kreinlearn.solvers.sparse", "from .. import data"),
        ("kreinlearn.solvers.sparse", "def f():\n    import kreinlearn.data.tiles"),
        ("kreinlearn.kernels.vectors", "from kreinlearn.nystrom.core import one_shot"),
        ("kreinlearn.kernels.vectors", "from kreinlearn import KreinPCA"),
        ("kreinlearn.solvers.spectrum", "if True:\n    from kreinlearn.estimators import ridge"),
        ("kreinlearn.nystrom.landmarks", "from kreinlearn.learn import tune"),
        ("kreinlearn.nystrom.core", "from kreinlearn.learn.search import tune"),
        ("kreinlearn.estimators.ridge", "from ..inspection import inspect"),
        ("kreinlearn.estimators.ridge", "from kreinlearn.cli import main"),
        ("kreinlearn.datasets", "from kreinlearn.nystrom.core import one_shot"),
        ("kreinlearn._tolerances", "from kreinlearn.solvers.spectrum import signed_eigh"),
        ("kreinlearn.sums.parallel", "def f():\n    import dask.array"),
        ("kreinlearn.sums.parallel", "from distributed import Client"),
        ("kreinlearn.plotting", "import matplotlib.pyplot as plt"),
        ("kreinlearn.plotting", "try:\n    import matplotlib\nexcept ImportError:\n    pass"),
        ("kreinlearn.data.tiles", "class A:\n    import pandas"),
        ("kreinlearn.kernels.objects", "import parasail"),
        ("kreinlearn.kernels.objects", "def f():\n    import undeclared_package"),
        ("kreinlearn.unplaced", "import numpy"),
    ],
)
def test_a_bad_import_is_found(module: str, source: str) -> None:
    assert len(complaints(module, source)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("kreinlearn.estimators.ridge", "from ._base import A\nfrom ..learn import tune"),
        ("kreinlearn.nystrom.core", "import math, numpy as np\nfrom kreinlearn import solvers"),
        ("kreinlearn.kernels.objects", "def f():\n    from parasail import matrix_create"),
        ("kreinlearn.data.tiles", "if TYPE_CHECKING:\n    import pandas"),
        (
            "kreinlearn.distributed",
            "import dask\nfrom kreinlearn.sums.parallel import sum_over_blocks",
        ),
        ("kreinlearn.solvers.sparse", "from .._tolerances import EPS\nfrom .result import R"),
        ("kreinlearn.cli", "import kreinlearn\nfrom kreinlearn import KreinPCA, datasets"),
    ],
)
def test_a_good_import_passes(module: str, source: str) -> None:
    assert complaints(module, source) == []


def test_a_cycle_is_found() -> None:
    texts = [
        ("kreinlearn.kernels.a", "from kreinlearn.solvers.spectrum import s", "kreinlearn.kernels"),
        ("kreinlearn.solvers.spectrum", "def f():\n    from .kernels import a", "kreinlearn"),
    ]
    with pytest.raises(CycleError):
        TopologicalSorter(graph(iter(texts))).prepare()


def test_oracles_use_numpy_only() -> None:
    path = ROOT / "tests" / "oracles.py"
    names = {i.name.split(".")[0] for i in imports(path.read_text(encoding="utf8"), "tests")}
    assert names - sys.stdlib_module_names <= {"numpy"}


def test_kreinlearn_imports_without_any_extra() -> None:
    code = f"""
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {sorted(EXTRAS)}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
import kreinlearn
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
