"""What follows a flag, as a value, and as parameters; wrong words are refused before any work."""

from __future__ import annotations

import ast
import codecs
from argparse import ArgumentTypeError, Namespace
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from difflib import get_close_matches
from typing import Any

FRONT = "krein"  # the estimator that is used unless another one is named
ESTIMATORS: dict[str, tuple[str, str | None]] = {  # the classifier and the regressor of each name
    FRONT: ("KreinClassifier", "KreinRegressor"),
    "ridge": ("KreinRidgeClassifier", "KreinRidge"),
    "vc-ridge": ("KreinVCRidgeClassifier", "KreinVCRidge"),
    "svc": ("KreinSVC", None),
    "similarity-ridge": ("SimilarityRidgeClassifier", "SimilarityRidge"),
    "spectrum-svc": ("SpectrumSVC", None),
}
_CONSTANTS = ("always the most frequent class", "always the mean")
LEARNERS: dict[
    str, tuple[tuple[str, ...], tuple[str, ...]]
] = {  # what evaluate compares, as it shows them: for classes, and for numbers
    **{name: ((one,), (other,) if other else ()) for name, (one, other) in ESTIMATORS.items()},
    "spectrum-svc": (("SpectrumSVC flip", "SpectrumSVC clip"), ()),
    "neighbours": (("k nearest neighbours",), ("k nearest neighbours",)),
    "constant": (_CONSTANTS[:1], _CONSTANTS[1:]),
}
OBJECTS = ("texts", "series", "vectors", "records", "sets", "points", "graphs", "matrices")
CONFORMAL = ("split", "cv+")
WORDS = {"true": True, "false": False, "none": None}


def _number(
    what: str, convert: type = int, allowed: Callable[[Any], bool] = lambda value: value >= 1,
    words: Sequence[str] = (),
) -> Callable[[str], Any]:  # fmt: skip
    """Return what reads a number, or one of some words; otherwise it says what a text is not."""

    def read(text: str) -> Any:
        with suppress(ValueError):
            value = text if text in words else convert(text)
            if text in words or allowed(value):
                return value
        raise ArgumentTypeError(f"{text!r} is not {what}")

    return read


seed = _number("a whole number, 0 or more", allowed=lambda value: value >= 0)
folds = _number("a number of folds, 2 or more", allowed=lambda value: value >= 2)
count = _number("a whole number, 1 or more")
several = _number("a number of objects, 2 or more", allowed=lambda value: value >= 2)
jobs = _number("a number of workers: 1, 2, ..., or -1 for all", allowed=bool)
rank = _number("auto, or a whole number, 1 or more", words=["auto"])
clusters = _number("auto, or a number of groups, 1 or more", words=["auto"])
share = _number("a number above 0", float, lambda value: 0 < value < float("inf"))
seconds = _number("a number of seconds above 0", float, lambda value: 0 < value < float("inf"))
coverage = _number(
    "a number between 0 and 1, such as 0.9: the share of rows to be covered",
    float, lambda value: 0 < value < 1,
)  # fmt: skip


def landmarks(text: str) -> int | float | str | None:
    what, part = "auto, all, a number or a share such as 0.1", "." in text
    allowed = (lambda value: 0 < value <= 1) if part else (lambda value: value >= 1)
    found = _number(what, float if part else int, allowed, ["auto", "all"])(text)
    return None if found == "all" else found


def memory(text: str) -> str:
    from kreinlearn.data.memory import budget_bytes

    with suppress(ValueError):
        if budget_bytes(text) >= 1:
            return text
    raise ArgumentTypeError(f"{text!r} is not a size such as 500MB or 4GiB")


def encoding(text: str) -> str:
    try:
        return codecs.lookup(text).name
    except LookupError:
        raise ArgumentTypeError(
            f"{text!r} is no known encoding: utf-8, latin-1, cp1252 or utf-16, for example"
        ) from None


def delimiter(text: str) -> str:
    mark = "\t" if text in ("tab", "\\t") else text
    if len(mark) != 1 or mark in '"\r\n':
        raise ArgumentTypeError(f"{text!r} is not one character, or tab")
    return mark


def assignment(text: str) -> tuple[str, Any]:
    """Read "width=2.5", "normalized=true" or "weights=1,1,2"; what is no number is a text."""
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise ArgumentTypeError(f"{text!r} is not of the form name=value")
    return name, _value(value)


def _value(text: str) -> Any:
    if text.lower() in WORDS:
        return WORDS[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return tuple(map(_value, text.split(","))) if "," in text else text


def close_to(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return "did you mean ...?" if a known name is like this one."""
    same = {one.lower(): one for one in known}
    close = [same[one] for one in get_close_matches(name.lower(), same, n=3)]
    return f"did you mean {' or '.join(close)}?" if close else otherwise


def _known(text: str, what: str, known: Iterable[str], listed: str) -> str:
    if text not in known:
        meant = close_to(text, known, f"there are {listed}")
        raise ArgumentTypeError(f"there is no {what} {text!r}; {meant}")
    return text


def estimator(text: str) -> str:
    classes = [name for pair in ESTIMATORS.values() for name in pair if name]
    listed = f"{', '.join(ESTIMATORS)}, and names of classes"
    return _known(text, "estimator", [*ESTIMATORS, *classes], listed)


def objects(text: str) -> str:
    return _known(text, "kind of objects", OBJECTS, ", ".join(OBJECTS))


def learners(text: str) -> list[str]:
    """Read names of learners, with commas in between, each a key of LEARNERS or as it is shown."""
    shown = [one for both in LEARNERS.values() for names in both for one in names]
    known = {name.lower(): name for name in [*LEARNERS, *shown]}
    given = [one.strip() for one in text.split(",")]
    for one in given:
        if one.lower() not in known:
            _known(one, "learner", known.values(), ", ".join(LEARNERS))
    return [known[one.lower()] for one in given]


def kernel_parameters(options: Namespace, verbose: int) -> dict[str, Any]:
    """Return how a kernel is evaluated, by the names that all functions and estimators have.

    The kernel of a column has its parameters already.
    """
    of_column = any("=" in one for one in options.kernel or ())
    return {
        "kernel_params": None if of_column else dict(options.kernel_param) or None,
        "n_jobs": options.jobs,
        "random_state": options.seed,
        "verbose": verbose,
    }
