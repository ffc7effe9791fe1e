"""Predictions explained by examples: the landmarks that speak for them and against them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np
from sklearn.utils.validation import check_is_fitted

from kreinlearn.data.tiles import library
from kreinlearn.distributed.entrance import require_in_memory
from kreinlearn.estimators.conformal import blocks
from kreinlearn.kernels.base import Array, Objects

if TYPE_CHECKING:
    from kreinlearn.estimators.learner import Learner

SHOWN = 40  # characters of an object in a table


class Reason(NamedTuple):
    """A landmark, and what it adds to a decision."""

    landmark: int  # the row number of a training object; its place, if landmarks were given
    example: Any  # the landmark itself; its row number, if the kernel is a matrix
    label: Any  # its class or number, or 1 if it has the label that is explained; or None
    similarity: float
    contribution: float


@dataclass(frozen=True)
class Explanation:
    """Why a model decides as it does about one object.

    Attributes
    ----------
    target : object
        What is explained: a class, or the number of an output.
    value : float
        The decision value of this class, or the prediction of this output.
    parts : dict
        What the value is the sum of: "landmarks", the contributions of all landmarks, "constant",
        and for ``KreinClassifier`` also "neighbours", and "clipped", which is what was taken away
        because it is beyond all scores that were seen in training. ``SpectrumSVC`` compares many
        classes in pairs: "votes" is the difference between the decision value, which counts the
        pairs that a class wins, and the sum of the values of its pairs, which landmarks and
        constant explain.
    reasons : list of Reason
        The landmarks that add most to the value, then those that take most from it; the strongest
        ones come first and last.
    """

    target: Any
    value: float
    parts: dict[str, float]
    reasons: list[Reason]


class Explanations(Sequence[Explanation]):
    """One explanation per object; ``to_frame()`` makes a table of them."""

    def __init__(self, explanations: list[Explanation]) -> None:
        self._all = explanations

    def __len__(self) -> int:
        return len(self._all)

    @overload
    def __getitem__(self, i: int) -> Explanation: ...

    @overload
    def __getitem__(self, i: slice) -> list[Explanation]: ...

    def __getitem__(self, i: int | slice) -> Explanation | list[Explanation]:
        return self._all[i]

    def rows(self) -> list[dict[str, Any]]:
        """One dict per line of the table: the landmarks of each object, then the other parts."""
        found = list[dict[str, Any]]()
        for number, one in enumerate(self._all):
            first = {"object": number, "target": one.target, "value": one.value}
            for reason in one.reasons:
                side = "for" if reason.contribution > 0 else "against"
                found.append({**first, "part": side, **reason._asdict()})
            shown = sum(reason.contribution for reason in one.reasons)
            for name, value in one.parts.items():
                rest = name == "landmarks"
                found.append(
                    {
                        **first,
                        "part": "other landmarks" if rest else name,
                        "contribution": value - shown if rest else value,
                    }
                )
        return found

    def to_frame(self) -> Any:
        """A pandas frame of the table, with one line per landmark and part.

        Returns
        -------
        DataFrame
            The columns are "object", the number of the object that is explained; "target" and
            "value", what is explained and its decision value; "part", which is "for", "against",
            "other landmarks", "constant", "neighbours" or "clipped"; "landmark", its row number;
            "example", "label" and "similarity" of the landmark; and "contribution". The
            contributions of an object add up to its value.
        """
        return library("pandas", "test").DataFrame(self.rows())

    def __repr__(self) -> str:
        return f"Explanations of {len(self)} objects; to_frame() makes a table"

    def __str__(self) -> str:
        lines = list[str]()
        for number, one in enumerate(self._all):
            lines.append(f"object {number}: {one.target}, decision value {one.value:.4g}")
            for reason in one.reasons:
                known = "" if reason.label is None else f" ({reason.label})"
                what = f"{reason.example!s:.{SHOWN}}".replace("\n", " ")
                lines.append(f"  {reason.contribution:+10.4g}  {what}{known}")
            shown = sum(reason.contribution for reason in one.reasons)
            lines.append(f"  {one.parts['landmarks'] - shown:+10.4g}  all other landmarks")
            for name, value in one.parts.items():
                if name != "landmarks":
                    lines.append(f"  {value:+10.4g}  {name}")
        return "\n".join(lines)


def explain(model: Any, X: Objects, n: int, target: Any = None) -> Explanations:
    """The landmarks that add most to the decision about each object, and that take most from it."""
    check_is_fitted(model)
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise ValueError(f"n={n!r} must be a positive number of landmarks to show, such as 5")
    require_in_memory(X, "explain takes a few objects in memory, got a dask collection")
    chosen = target_number(model, target)
    coefficients, constants = decision_coefficients(model)
    scale = scale_of_decision(model)
    found = list[Explanation]()
    for _, _, raw, columns in blocks(model, X):
        K = np.asarray(columns.transformed(raw), dtype=np.float64)
        scores = K @ coefficients + constants
        beside = parts_beside(model, raw, columns, scores) | model._beside_explained(K, scores)
        decisions = sum(beside.values(), scale * scores)
        of_class = np.argmax(decisions, axis=1) if chosen is None else np.full(len(K), chosen)
        for i, c in enumerate(of_class):
            terms = scale * K[i] * coefficients[:, c]
            parts = {"landmarks": float(terms.sum()), "constant": float(scale * constants[c])}
            parts |= {name: float(value[i, c]) for name, value in beside.items()}
            shown = strongest(terms, n)
            reasons = [reason(model, j, int(c), float(K[i, j]), float(terms[j])) for j in shown]
            name = named(model, int(c))
            found.append(Explanation(name, sum(parts.values()), parts, reasons))
    return Explanations(found)


def target_number(model: Learner, target: Any) -> int | None:
    """The number of the class or output that is explained; None if it is the predicted class."""
    classes = getattr(model, "classes_", None)
    if has_label_sets(model) and target is None:
        raise ValueError(
            "the model was fitted to several labels per object, and explain explains one of them; "
            f"pass target=..., one of {classes}"
        )
    if classes is not None and target is None:
        return None
    if classes is not None:
        known = np.flatnonzero(classes == target)
        if not len(known):
            raise ValueError(f"target={target!r} is no class of the model; it has {classes}")
        return int(known[0])
    q = len(model._intercept)
    if target is None and q == 1:
        target = 0
    if isinstance(target, bool) or not isinstance(target, int | np.integer) or not 0 <= target < q:
        raise ValueError(
            f"target={target!r} must be the number of one of {q} outputs, 0 to {q - 1}"
        )
    return int(target)


def has_label_sets(model: Any) -> bool:
    """Whether objects have any number of labels, each of which has a score of its own."""
    return bool(getattr(model, "multilabel_", False))


def named(model: Any, number: int) -> Any:
    classes = getattr(model, "classes_", None)
    return number if classes is None else classes[number]


def decision_coefficients(model: Any) -> tuple[Array, Array]:  # (m, c), (c,)
    """Coefficients of the landmarks for the decision value of each class, or for each output.

    Of two classes the value of the first is that of the second with the other sign.
    """
    W, b = model._explained()
    two = len(getattr(model, "classes_", ())) == 2 and not has_label_sets(model)
    signs = np.array([-1.0, 1.0]) if two else 1.0
    return W * signs, b * signs


def scale_of_decision(model: Any) -> float:
    """By what least-squares scores are multiplied before other parts are added to them."""
    weights = getattr(model, "part_weights_", None)
    if weights is None:
        return 1.0
    has_odds = len(model.classes_) == 2 or has_label_sets(model)
    return float(weights["krein"]) * (2.0 if has_odds else 1.0)


def parts_beside(model: Any, raw: Array, columns: Any, scores: Array) -> dict[str, Array]:
    """What is added to the least-squares scores (b, c) of ``KreinClassifier``."""
    weights = getattr(model, "part_weights_", None)
    if weights is None:
        return {}
    clipped = np.clip(scores, *range_of(model)) - scores
    parts = {"clipped": scale_of_decision(model) * clipped}
    if len(weights) > 1:
        values = raw if columns.landmarks is None else raw[:, columns.landmarks]
        near = model._neighbours.of(values)
        total = np.tensordot(list(weights.values())[1:], near, axes=1)
        two = total.shape[1] == 2 and not has_label_sets(model)
        parts["neighbours"] = total - total[:, ::-1] if two else total
    return parts


def range_of(model: Any) -> tuple[Any, Any]:
    """The range of the scores of each class; of two classes they have one score and two signs."""
    low, high = model._range
    if len(model.classes_) > 2 or has_label_sets(model):
        return low, high
    return np.array([-high, low]), np.array([-low, high])


def strongest(terms: Array, n: int) -> Array:
    """Places of the n largest positive terms, and of the n smallest negative ones, in order."""
    order = np.argsort(-terms, kind="stable")
    first = [j for j in order[:n] if terms[j] > 0]
    return np.array(
        first + [j for j in order[-n:] if terms[j] < 0 and j not in first], dtype=np.intp
    )


def reason(
    model: Any, place: int, target: int, similarity: float, contribution: float
) -> Reason:  # fmt: skip
    numbers, labels = model.landmark_indices_, getattr(model, "_landmark_targets", None)
    if labels is not None and has_label_sets(model):
        labels = labels[:, target]
    return Reason(
        int(place if numbers is None else numbers[place]),
        model.landmarks_[place],
        None if labels is None else labels[place],
        similarity,
        contribution,
    )
