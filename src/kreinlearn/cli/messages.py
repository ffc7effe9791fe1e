"""Notes, warnings and errors: one line each, on stderr, in the terms of the command line."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# Parameters of the Python interface, and the flags of the same meaning.
FLAGS = {
    "landmarks": "--landmarks",
    "memory_budget": "--memory",
    "kernel_params": "--kernel-param",
    "random_state": "--seed",
    "n_jobs": "--jobs",
    "probability": "--probabilities",
    "time_limit": "--time-limit",
    "kernel": "--kernel",
    "store": "--store",
    "rank": "--rank",
    "tol": "--tol",
    "task": "--task",
    "cv": "--cv",
    "encoding": "--encoding",
    "delimiter": "--delimiter",
}
GIVEN = re.compile(rf"\b({'|'.join(FLAGS)})=(?=\S)")
# Values that stand for several parameters: only what is in them has flags.
WHOLE = re.compile(r"\b(?:(?:landmarks|resources)=)?(?:Landmarks|Resources)\((?:\.{3}, )?(.*?)\)")
NAMED = re.compile(rf"(?<![\w-])'?\b({'|'.join(name for name in FLAGS if '_' in name)})\b'?")
SENTENCES = (
    (re.compile(r"^Input y contains NaN\b"), "the target has missing values"),
    (re.compile(r"^Found array with 0 sample\(s\).*required: (.+)"), r"\1 has no rows"),
    (re.compile(r"^Input X contains"), "the file contains"),
    (re.compile(r", table\(path, columns=\[\.\.\.\]\)"), " with --column"),
    (re.compile(r"table\(path, columns=\"name\"\)"), "--column"),
    (re.compile(r"(--encoding|--delimiter) \"(\S+?)\""), r"\1 \2"),
    (re.compile(r"\bheader=False\b"), "--no-header"),
    (re.compile(r": array=.*Reshape your data.*"), ""),
    (re.compile(r"\(n_samples=(\d+)\)"), r"(\1 objects)"),
    (
        re.compile(r"\b(\d+) landmarks exceed n_samples=(\d+); all \2 objects are used"),
        r"--landmarks \1 is more than the \2 objects; all are used",
    ),
    (re.compile(r"\bn_samples=(\d+)( of positive weight)?"), r"a number of \1 objects\2"),
    (re.compile(r"\bn_samples\b"), "the number of objects"),
    (re.compile(r"\by (?=is\b|has\b|are\b|contains\b|must\b)"), "the target "),
    (re.compile(r"\bpass (--[\w-]+)[ =]None\b"), r"leave \1 out"),
    (re.compile(r"\bpass (?=--)"), "give "),
)


def in_flags(text: str) -> str:
    """Return a message of the library in the terms of the command line."""
    text = GIVEN.sub(lambda match: f"{FLAGS[match[1]]} ", WHOLE.sub(r"\1", text))
    text = NAMED.sub(lambda match: FLAGS[match[1]], text)
    for pattern, better in SENTENCES:
        text = pattern.sub(better, text)
    return text


def one_line(error: BaseException) -> str:
    """Return the message of an error, with its notes, in one line."""
    text = str(error)
    if isinstance(error, OSError) and error.strerror:
        name = f"{error.filename}: " if error.filename is not None else ""
        text = f"{name}{error.strerror}"
    if isinstance(error, MemoryError) and not text:
        text = "the memory is full; lower --memory or --landmarks"
    lines = [text or type(error).__name__, *getattr(error, "__notes__", ())]
    return in_flags("; ".join(" ".join(line.split()) for line in lines))


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
