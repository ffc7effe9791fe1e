"""Types of arguments: what follows a flag, as a value; wrong words are refused before any work."""

from __future__ import annotations

import ast
import codecs
from argparse import ArgumentTypeError
from collections.abc import Callable
from typing import Any

ESTIMATORS = {  # the classifier and the regressor of each name; the first is the default
    "krein": ("KreinClassifier", "KreinRegressor"),
    "ridge": ("KreinRidgeClassifier", "KreinRidge"),
    "vc-ridge": ("KreinVCRidgeClassifier", "KreinVCRidge"),
    "svc": ("KreinSVC", None),
    "similarity-ridge": ("SimilarityRidgeClassifier", "SimilarityRidge"),
    "spectrum-svc": ("SpectrumSVC", None),
}
WORDS = {"true": True, "false": False, "none": None}


def whole(least: int, what: str) -> Callable[[str], int]:
    def number(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if value < least:
            raise ArgumentTypeError(f"{text!r} is not {what}")
        return value

    return number


seed = whole(0, "a whole number, 0 or more")
folds = whole(2, "a number of folds, 2 or more")
count = whole(1, "a whole number, 1 or more")
several = whole(2, "a number of objects, 2 or more")


def jobs(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = 0
    if not value:
        raise ArgumentTypeError(f"{text!r} is not a number of workers: 1, 2, ..., or -1 for all")
    return value


def share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise ArgumentTypeError(f"{text!r} is not a number above 0")
    return value


def seconds(text: str) -> float:
    try:
        return share(text)
    except ArgumentTypeError:
        raise ArgumentTypeError(f"{text!r} is not a number of seconds above 0") from None


def landmarks(text: str) -> int | float | str | None:
    if text in ("auto", "all"):
        return "auto" if text == "auto" else None
    try:
        value = float(text) if "." in text else int(text)
    except ValueError:
        value = 0
    if not (value >= 1 if isinstance(value, int) else 0 < value <= 1):
        raise ArgumentTypeError(f"{text!r} is not auto, all, a number or a share such as 0.1")
    return value


def rank(text: str) -> int | str:
    return text if text == "auto" else count(text)


def memory(text: str) -> str:
    from kreinlearn.data.memory import budget_bytes

    try:
        enough = budget_bytes(text) >= 1
    except ValueError:
        enough = False
    if not enough:
        raise ArgumentTypeError(f"{text!r} is not a size such as 500MB or 4GiB")
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
