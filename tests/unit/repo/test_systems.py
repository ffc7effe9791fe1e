"""Tests can be imported on every system that the checks run on, and skip what one does not have."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import systems

ROOT = Path(__file__).parents[3]
FILES = [path for name in ("src", "tests", "benchmarks") for path in (ROOT / name).rglob("*.py")]
POSIX_MODULES = {"fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"}
POSIX_NAMES = {
    "os": {
        "chown", "fork", "getegid", "geteuid", "getgid", "getloadavg", "getuid", "killpg", "mkfifo",
        "nice", "sched_getaffinity", "setegid", "seteuid", "setsid", "statvfs", "sysconf", "uname",
    },
    "signal": {"SIGALRM", "SIGCHLD", "SIGHUP", "SIGKILL", "SIGPIPE", "SIGUSR1", "SIGXFSZ", "alarm"},
}  # fmt: skip
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
IMPORT_ERRORS = ("ImportError", "ModuleNotFoundError")


def at_import(node: ast.AST) -> Iterator[ast.AST]:
    """The parts of a module that every system runs when it imports the module."""
    yield node
    for child in ast.iter_child_nodes(node):
        if isinstance(child, FUNCTIONS):
            parts = [child.args, *getattr(child, "decorator_list", [])]  # and not the body
        elif isinstance(child, ast.If | ast.IfExp) and asks_for_the_system(child.test):
            parts = []
        elif isinstance(child, ast.Try) and any(map(takes_import_errors, child.handlers)):
            parts = [*child.handlers, *child.orelse, *child.finalbody]
        else:
            parts = [child]
        for part in parts:
            yield from at_import(part)


def asks_for_the_system(test: ast.expr) -> bool:
    words = ("os.name", "sys.platform", "POSIX", "TYPE_CHECKING", "hasattr(")
    return any(word in ast.unparse(test) for word in words)


def takes_import_errors(handler: ast.ExceptHandler) -> bool:
    return handler.type is None or any(name in ast.unparse(handler.type) for name in IMPORT_ERRORS)


def only_posix(source: str) -> list[str]:
    """What a module needs when it is imported, and Windows does not have."""
    found = []
    for node in at_import(ast.parse(source)):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names if alias.name in POSIX_MODULES]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [str(node.module)] if node.module in POSIX_MODULES else []
            of_module = POSIX_NAMES.get(str(node.module), set())
            names += [alias.name for alias in node.names if alias.name in of_module]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            names = [node.attr] if node.attr in POSIX_NAMES.get(node.value.id, ()) else []
        found += [f"line {node.lineno}: {name}" for name in names]  # type: ignore[attr-defined]
    return found


def test_nothing_that_only_posix_has_is_needed_for_an_import() -> None:
    assert len(FILES) > 300
    wrong = {
        str(path.relative_to(ROOT)): lines
        for path in FILES
        if (lines := only_posix(path.read_text(encoding="utf8")))
    }
    assert wrong == {}


@pytest.mark.parametrize(
    "source",
    [
        "import resource",
        "import os, fcntl",
        "from resource import getrusage",
        "from os import fork",
        "class A:\n    import pwd",
        "if True:\n    import grp",
        "try:\n    import pty\nexcept OSError:\n    pass",
        "try:\n    pass\nexcept ImportError:\n    import pty",
        "SIGNALS = [signal.SIGINT, signal.SIGKILL]",
        "@mark(signal.SIGXFSZ)\ndef test(): pass",
        "def kill(number=signal.SIGKILL): pass",
    ],
)
def test_what_is_needed_is_found(source: str) -> None:
    assert len(only_posix(source)) == 1


@pytest.mark.parametrize(
    "source",
    [
        "import signal, os",
        "def f():\n    import resource\n    os.fork()",
        "try:\n    import fcntl\nexcept ImportError:\n    fcntl = None",
        "if os.name == 'posix':\n    import resource",
        "KILL = signal.SIGKILL if POSIX else signal.SIGTERM",
        "kill = lambda process: os.killpg(process, signal.SIGKILL)",
        "from .resource import Resource",
        "SIGNALS = [signal.SIGINT, signal.SIGTERM]",
    ],
)
def test_what_is_guarded_or_everywhere_is_not(source: str) -> None:
    assert only_posix(source) == []


def test_no_test_interrupts_its_process_by_itself() -> None:
    """On Windows os.kill(os.getpid(), SIGINT) ends it; systems.press does not."""
    calls = ("os.kill(os.getpid(), signal.", "os.kill(os.getpid(), number", '"/dev/')
    wrong = [
        str(path.relative_to(ROOT))
        for path in (ROOT / "tests").rglob("*.py")
        if path not in (Path(systems.__file__), Path(__file__))
        and any(call in path.read_text(encoding="utf8") for call in calls)
    ]
    assert wrong == []


@pytest.mark.usefixtures("heard")
@pytest.mark.parametrize("posix", [systems.POSIX, False])
def test_ctrl_c_is_pressed_on_either_system(posix: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(systems, "POSIX", posix)
    with pytest.raises(KeyboardInterrupt):
        systems.press()


def test_on_windows_files_are_copied_instead_of_linked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").write_text("text")
    monkeypatch.setattr(systems, "POSIX", False)
    systems.linked(tmp_path / "copy", tmp_path / "folder")
    systems.linked(tmp_path / "file", tmp_path / "folder" / "file")
    assert (tmp_path / "copy" / "file").read_text() == (tmp_path / "file").read_text() == "text"
    assert not os.path.islink(tmp_path / "copy")
