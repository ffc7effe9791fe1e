"""What a prediction is worth, as columns: intervals, sets of classes, novelty and landmarks."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from kreinlearn.estimators.explaining import Explanation, Reason

SEPARATOR = " | "  # between the classes of a set, in a text
SHOWN = 40  # characters of an object
LISTS = (".jsonl", ".parquet")  # files whose cells may be lists
SIDES = ("for", "against")


def check(model: Any, options: Namespace) -> None:
    """Raise ValueError if a model has not kept what the flags ask for."""
    from kreinlearn.estimators.conformal import needs_diagonal

    asked = [flag for flag in ("coverage", "novelty") if getattr(options, flag)]
    for flag in [*asked, *(["explain"] if options.explain else [])]:
        if not hasattr(model, "explain"):
            raise ValueError(f"{options.model} holds a {type(model).__name__}: it has no --{flag}")
    if asked and getattr(model, "_conformal", None) is None:
        raise ValueError(
            f"{options.model} was fitted without --conformal, which --{asked[0]} needs; fit it "
            "again with fit --conformal split, or fit --conformal cv+"
        )
    if options.novelty and needs_diagonal(model):
        raise ValueError(
            f"--novelty: {options.model} was fitted on a matrix of similarities, and the "
            "similarity of a new object with itself is not in such a matrix; leave the flag out, "
            "or use novelty(X, diagonal=...) in Python"
        )
    if options.explain and not hasattr(model, "classes_") and not model._one_output:
        raise ValueError(
            f"--explain: {options.model} predicts several numbers for each row; use "
            "explain(X, target=...) in Python"
        )


def columns(model: Any, X: Any, options: Namespace) -> dict[str, Any]:
    """What the flags ask for, by the name of its column."""
    found: dict[str, Any] = {}
    if options.coverage is not None and hasattr(model, "predict_set"):
        found["set"] = _sets(model, X, options)
    elif options.coverage is not None:
        found |= _ends(model.predict_interval(X, options.coverage))
    if options.novelty:
        found["novelty"] = model.novelty(X)
    if options.explain:
        explanations = model.explain(X, options.explain)
        if options.output.suffix == ".jsonl":
            found["explanation"] = [_in_parts(one) for one in explanations]
        else:
            found |= _in_columns(explanations, options.explain)
    return found


def _sets(model: Any, X: Any, options: Namespace) -> list[Any]:
    sets = [model.classes_[row].tolist() for row in model.predict_set(X, options.coverage)]
    if options.output.suffix in LISTS:
        return sets
    return [SEPARATOR.join(map(str, labels)) for labels in sets]


def _ends(ends: Any) -> dict[str, Any]:  # (n, 2) or (n, q, 2)
    """The ends of intervals; those of several outputs are numbered from 0."""
    if ends.ndim == 2:
        return {"lower": ends[:, 0], "upper": ends[:, 1]}
    return {
        f"{name}_{j}": ends[:, j, side]
        for j in range(ends.shape[1])
        for side, name in enumerate(("lower", "upper"))
    }


# Explanations


def _sides(one: Explanation) -> dict[str, list[Reason]]:
    """The landmarks for a decision and those against it, the strongest first."""
    return {
        "for": [reason for reason in one.reasons if reason.contribution > 0],
        "against": [reason for reason in reversed(one.reasons) if reason.contribution < 0],
    }


def _rest(one: Explanation) -> dict[str, float]:
    """What is added to the landmarks that are shown, so that the sum is the decision value."""
    shown = sum(reason.contribution for reason in one.reasons)
    others = {name: value for name, value in one.parts.items() if name != "landmarks"}
    return {"value": one.value, "other_landmarks": one.parts["landmarks"] - shown, **others}


def _in_parts(one: Explanation) -> dict[str, Any]:
    sides = {side: [r._asdict() for r in reasons] for side, reasons in _sides(one).items()}
    return {**_rest(one), **sides}


def _in_columns(explanations: Sequence[Explanation], n: int) -> dict[str, Any]:
    sides, rests = [_sides(one) for one in explanations], [_rest(one) for one in explanations]
    shown = {
        f"{side}_{i + 1}": [_text(next(islice(one[side], i, None), None)) for one in sides]
        for side in SIDES
        for i in range(n)
    }
    return {**shown, **{name: np.array([rest[name] for rest in rests]) for name in rests[0]}}


def _text(reason: Reason | None) -> str:
    """A landmark in one cell: what it is, its label and its contribution; "" for none."""
    if reason is None:
        return ""
    text = isinstance(reason.example, str)
    what = f"{reason.example:.{SHOWN}}" if text else f"row {reason.landmark}"
    known = "" if reason.label is None else f" ({reason.label})"
    return f"{what}{known} {reason.contribution:+.3g}"
