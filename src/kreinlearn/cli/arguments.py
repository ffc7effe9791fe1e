"""What follows a flag, as a value, and as parameters; wrong words are refused before any work."""

from __future__ import annotations

import ast
import codecs
from argparse import ArgumentTypeError, Namespace
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")
FRONT = "krein"  # the estimator that is used unless another one is named
ESTIMATORS = {  # the classifier and the regressor of each name
    FRONT: ("KreinClassifier", "KreinRegressor"),
    "ridge": ("KreinRidgeClassifier", "KreinRidge"),
    "vc-ridge": ("KreinVCRidgeClassifier", "KreinVCRidge"),
    "svc": ("KreinSVC", None),
    "similarity-ridge": ("SimilarityRidgeClassifier", "SimilarityRidge"),
    "spectrum-svc": ("SpectrumSVC", None),
}
WORDS = {"true": True, "false": False, "none": None}


def _read(text: str, convert: Callable[[str], T], allowed: Callable[[T], bool], what: str) -> T:
    """Return ``convert(text)`` if that is allowed; otherwise say what the text is not."""
    with suppress(ValueError):
        value = convert(text)
        if allowed(value):
            return value
    raise ArgumentTypeError(f"{text!r} is not {what}")


def _whole(least: int, what: str) -> Callable[[str], int]:
    return lambda text: _read(text, int, lambda value: value >= least, what)


seed = _whole(0, "a whole number, 0 or more")
folds = _whole(2, "a number of folds, 2 or more")
count = _whole(1, "a whole number, 1 or more")
several = _whole(2, "a number of objects, 2 or more")


def jobs(text: str) -> int:
    return _read(text, int, bool, "a number of workers: 1, 2, ..., or -1 for all")


def _positive(what: str) -> Callable[[str], float]:
    return lambda text: _read(text, float, lambda value: 0 < value < float("inf"), what)


share = _positive("a number above 0")
seconds = _positive("a number of seconds above 0")


def landmarks(text: str) -> int | float | str | None:
    if text in ("auto", "all"):
        return "auto" if text == "auto" else None
    what = "auto, all, a number or a share such as 0.1"
    if "." in text:
        return _read(text, float, lambda value: 0 < value <= 1, what)
    return _read(text, int, lambda value: value >= 1, what)


def rank(text: str) -> int | str:
    return text if text == "auto" else count(text)


def clusters(text: str) -> int | str:
    what = "auto, or a number of groups, 1 or more"
    return text if text == "auto" else _read(text, int, lambda value: value >= 1, what)


def memory(text: str) -> str:
    from kreinlearn.data.memory import budget_bytes

    _read(text, budget_bytes, lambda size: size >= 1, "a size such as 500MB or 4GiB")
    return text


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


def estimator(text: str) -> str:
    known = [*ESTIMATORS, *(name for pair in ESTIMATORS.values() for name in pair if name)]
    if text not in known:
        raise ArgumentTypeError(f"{text!r} is not among {', '.join(known)}")
    return text


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
