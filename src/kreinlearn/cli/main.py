"""Run a command; exit status 0, 1 if it failed, 2 for a wrong call, 130 after Ctrl-C."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from kreinlearn._system import nobody_reads
from kreinlearn.cli.messages import Talk, one_line
from kreinlearn.cli.parser import parsed

# What a file, a flag or a full disk may lead to; any other error is a mistake of this program.
EXPECTED = (ArithmeticError, ImportError, MemoryError, OSError, TypeError, ValueError)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status."""
    options = None
    try:
        try:
            with terminated():
                options = parsed(sys.argv[1:] if argv is None else list(argv))
                return _run(options)
        finally:
            sys.stdout.flush()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except Exception as error:
        if isinstance(error, OSError) and nobody_reads(error):  # `| head`
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush at exit
            return 1
        if os.environ.get("KREINLEARN_DEBUG"):
            traceback.print_exc()
        message = one_line(error, options)
        if not isinstance(error, EXPECTED):
            kind = type(error).__name__
            message = f"internal error, {kind}: {message}; with KREINLEARN_DEBUG=1 it shows where"
        print(f"kreinlearn: {message}", file=sys.stderr)
        return 1


def _run(options: argparse.Namespace) -> int:
    run: Callable[..., int] = import_module(f"kreinlearn.cli.{options.command}").run
    if not hasattr(options, "quiet"):
        return run(options)
    with Talk(options.quiet).listening() as talk:
        return run(options, talk)


@contextmanager
def terminated() -> Iterator[None]:
    """Let ``kill`` end a command as Ctrl-C does: files that it began to write are removed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: Any) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
