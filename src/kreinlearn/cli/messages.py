"""Notes, warnings and errors: one line each, on stderr."""

from __future__ import annotations

import sys
import warnings
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kreinlearn.data.errors import EmptyError, OptionError

# The options of ``table``, as flags.
OPTIONS = {
    "columns": "--column NAME",
    "encoding": "--encoding {}",
    "delimiter": "--delimiter {!r}",
    "decimal": "--decimal {!r}",
    "header": "--no-header",
}


def one_line(error: BaseException, options: Namespace | None = None) -> str:
    """Return the message of an error, with its notes, in one line; ``options`` had its flags."""
    text = str(error)
    if isinstance(error, OptionError):
        flag = OPTIONS[error.option].format(error.value)
        text = f"{error.problem}; {error.remedy}: {flag}"
    elif isinstance(error, EmptyError):
        text = f"{error.origin} has no {'columns' if error.shape[0] else 'rows'}"
    elif isinstance(error, OSError) and error.strerror:
        output = getattr(options, "output", None) or "output"  # the disk is full, for example
        name = error.filename or (output if error.errno and options else None)
        text = f"{name}: {error.strerror}" if name else error.strerror
    elif isinstance(error, MemoryError):
        flags = [f"--{one}" for one in ("memory", "landmarks") if hasattr(options, one)]
        text = f"{text or 'the memory is full'} ({' and '.join(flags) or 'fewer objects'} decide)"
    lines = [text or type(error).__name__, *getattr(error, "__notes__", ())]
    return "; ".join(" ".join(line.split()) for line in lines)


class Talk:
    """Prints notes and warnings, each of them once; with --quiet none at all."""

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet
        self._said: set[str] = set()

    @property
    def level(self) -> int:
        """The parameter ``verbose`` of estimators, which shows a progress bar on a terminal."""
        return 0 if self.quiet else 1

    def note(self, text: str) -> None:
        if not self.quiet and text not in self._said:
            self._said.add(text)
            print(text, file=sys.stderr, flush=True)

    @contextmanager
    def listening(self) -> Iterator[Talk]:
        """Print warnings of the library as notes, but for those about its code."""

        def show(message: Any, category: type[Warning], *_: Any, **__: Any) -> None:
            if issubclass(category, UserWarning):
                self.note(f"warning: {' '.join(str(message).split())}")

        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = show
            yield self
