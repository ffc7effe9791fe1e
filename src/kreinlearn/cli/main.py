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
from kreinlearn.cli.parser import parser, require_known

# What a file, a flag or a full disk may lead to; any other error is a mistake of this program.
EXPECTED = (ArithmeticError, ImportError, MemoryError, OSError, TypeError, ValueError)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status."""
    debug, options = bool(os.environ.get("KREINLEARN_DEBUG")), None
    try:
        try:
            with terminated():
                words, known = sys.argv[1:] if argv is None else list(argv), parser()
                require_known(words, known)
                options, rest = known.parse_known_args(words)
                debug = debug or getattr(options, "debug", False)
                return _run(options, rest, words)
        finally:
            sys.stdout.flush()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except Exception as error:
        if isinstance(error, OSError) and nobody_reads(error):  # `| head`
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush at exit
            return 1
        if debug:
            traceback.print_exc()
        print(f"kreinlearn: {_message(error, options)}", file=sys.stderr)
        return 1


def _message(error: Exception, options: argparse.Namespace | None) -> str:
    message = one_line(error)
    if isinstance(error, OSError) and error.errno and error.filename is None:
        output = getattr(options, "output", None) or "output"  # the disk is full, for example
        return f"{output}: {message}"
    if isinstance(error, EXPECTED):
        return message
    kind = type(error).__name__
    return f"internal error, {kind}: {message}; with KREINLEARN_DEBUG=1 it shows where"


def _run(options: argparse.Namespace, rest: list[str], words: Sequence[str]) -> int:
    if rest:
        before = words[words.index(rest[0]) - 1] if rest[0] in words else ""
        switches = [flag for one in options.parser._actions if one.nargs == 0
                    for flag in one.option_strings]  # fmt: skip
        why = f"; {before} takes no value" if before in switches else ""
        options.parser.error(f"unrecognized arguments: {' '.join(rest)}{why}")
    run: Callable[..., int] = import_module(f"kreinlearn.cli.{options.command}").run
    if not hasattr(options, "quiet"):
        return run(options)
    with Talk(options.quiet, options.verbose).listening() as talk:
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
