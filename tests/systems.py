"""What not every operating system has, for tests that need it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

POSIX = os.name == "posix"
# Windows has no SIGKILL; there os.kill ends a process at once, whatever signal it is given.
KILL = signal.SIGKILL if POSIX else signal.SIGTERM


def posix_only(what: str) -> pytest.MarkDecorator:
    """A mark of tests that need what Windows does not have."""
    return pytest.mark.skipif(not POSIX, reason=f"only POSIX systems have {what}")


linux_only = pytest.mark.skipif(
    sys.platform != "linux", reason="the memory of a process is read from /proc, which Linux has"
)


# Signals


def press(number: int = signal.SIGINT) -> None:
    """Send this process a signal: without a number, that of Ctrl-C.

    On Windows os.kill would end the process; raise_signal calls the handler there, too.
    """
    if POSIX:
        os.kill(os.getpid(), number)
    else:
        signal.raise_signal(number)


def hearing() -> dict[str, Any]:
    """Options of Popen for a process that hears Ctrl-C also where tests run in the background."""
    if not POSIX:
        return {}
    return {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)}


def kill_session(leader: subprocess.Popen[Any]) -> None:
    """Kill a process that has a session of its own and, on POSIX, all processes in it."""
    if POSIX:
        with suppress(ProcessLookupError):
            os.killpg(leader.pid, signal.SIGKILL)
    else:
        leader.kill()


# Files


@contextmanager
def small_files(size: int) -> Iterator[None]:
    """No file of this process may grow beyond so many bytes; for tests that are ``posix_only``."""
    import resource

    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def link(path: Path, target: str) -> None:
    """Make a link; the test is skipped where a person may make none, as often on Windows."""
    try:
        path.symlink_to(target)
    except OSError:
        if POSIX:
            raise
        pytest.skip("Windows lets only some people make links")


def linked(path: Path, original: Path) -> None:
    """Make a link to a file or folder, or a copy on Windows."""
    if POSIX:
        path.symlink_to(original)
    elif original.is_dir():
        shutil.copytree(original, path)
    else:
        shutil.copy2(original, path)
