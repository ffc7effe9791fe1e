"""Notes, warnings and errors: one line each, on stderr, in the terms of the command line."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kreinlearn.data.errors import EmptyError, OptionError

# The words of the Python interface, and the flags of the same meaning.
FLAGS = {
    **{name: f"--{name}" for name in ("landmarks", "kernel", "store", "rank", "tol", "task", "cv")},
    "memory_budget": "--memory",
    "kernel_params": "--kernel-param",
    "random_state": "--seed",
    "n_jobs": "--jobs",
    "probability": "--probabilities",
    "time_limit": "--time-limit",
    "conformal": "--conformal",
    "coverage": "--coverage",
    "decimal": "--decimal",
}
# "no --store" stands for store=None; of landmarks None is a value of its own.
ABSENT = re.compile(
    rf"\b({'|'.join(name for name in FLAGS if name != 'landmarks')})=(None|False)\b"
)
PRESENT = re.compile(rf"\b({'|'.join(FLAGS)})=True\b")
GIVEN = re.compile(rf"\b({'|'.join(FLAGS)})=(\.{{3}}|(?=\S))")
# Values that stand for several parameters: only what is in them has flags.
WHOLE = re.compile(r"\b(?:(?:landmarks|resources)=)?(?:Landmarks|Resources)\((?:\.{3}, )?(.*?)\)")
NAMED = re.compile(rf"(?<![\w-])'?\b({'|'.join(name for name in FLAGS if '_' in name)})\b'?")
# The options of ``table``, as flags.
OPTIONS = {
    "columns": "--column NAME",
    "encoding": "--encoding {}",
    "delimiter": "--delimiter {!r}",
    "decimal": "--decimal {!r}",
    "header": "--no-header",
}


def in_flags(text: str) -> str:
    """Return a text of the library with the names of flags in the place of parameters."""
    text = WHOLE.sub(r"\1", text)
    text = ABSENT.sub(lambda match: f"no {FLAGS[match[1]]}", text)
    text = PRESENT.sub(lambda match: FLAGS[match[1]], text)
    text = GIVEN.sub(lambda match: FLAGS[match[1]] + ("" if match[2] else " "), text)
    return NAMED.sub(lambda match: FLAGS[match[1]], text)


def one_line(error: BaseException) -> str:
    """Return the message of an error, with its notes, in one line."""
    text = in_flags(str(error))
    if isinstance(error, OptionError):
        flag = OPTIONS[error.option].format(error.value)
        text = f"{error.problem}; {error.remedy}: {flag}"
    elif isinstance(error, EmptyError):
        text = f"{error.origin} has no {'columns' if error.shape[0] else 'rows'}"
    elif isinstance(error, OSError) and error.strerror:
        name = f"{error.filename}: " if error.filename is not None else ""
        text = f"{name}{error.strerror}"
    elif isinstance(error, MemoryError) and not text:
        text = "the memory is full; lower --memory or --landmarks"
    lines = [text or type(error).__name__, *map(in_flags, getattr(error, "__notes__", ()))]
    return "; ".join(" ".join(line.split()) for line in lines)


class Talk:
    """Prints notes and warnings, each of them once; with --quiet none at all."""

    def __init__(self, quiet: bool = False, verbose: bool = False) -> None:
        self.quiet, self.verbose = quiet, verbose
        self._said: set[str] = set()

    @property
    def level(self) -> int:
        """The parameter ``verbose`` of estimators, which shows a progress bar on a terminal."""
        return 0 if self.quiet else 1

    def note(self, text: str) -> None:
        if not self.quiet and text not in self._said:
            self._said.add(text)
            print(text, file=sys.stderr, flush=True)

    def detail(self, text: str) -> None:
        if self.verbose:
            self.note(text)

    @contextmanager
    def listening(self) -> Iterator[Talk]:
        """Print warnings of the library as notes; those about its code need --verbose."""

        def show(message: Any, category: type[Warning], *_: Any, **__: Any) -> None:
            if self.verbose or issubclass(category, UserWarning):
                self.note(f"warning: {in_flags(' '.join(str(message).split()))}")

        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = show
            yield self
