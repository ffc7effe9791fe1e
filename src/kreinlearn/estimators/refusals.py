"""Options that cannot be combined, in one table."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any, NamedTuple


class Refusal(NamedTuple):
    """If ``applies(estimator, **more)``, fitting is refused with this error."""

    applies: Callable[..., bool]
    error: type[Exception]
    message: str  # with {names} of parameters of the estimator, and of what else is given


def _searches_kernels(estimator: Any, **_: Any) -> bool:
    return not isinstance(estimator.kernel_params, dict | None)


def _has_probability(estimator: Any, **_: Any) -> bool:
    return bool(getattr(estimator, "probability", False))


def _has_store(estimator: Any, **_: Any) -> bool:
    return estimator._resources.store is not None


def _has_splitter(estimator: Any, **_: Any) -> bool:
    cv = getattr(estimator, "cv", None)
    return not (cv is None or isinstance(cv, Integral))


def _is_given(name: str) -> Callable[..., bool]:
    return lambda estimator, **_: getattr(estimator, name, None) is not None


REFUSALS: dict[str, list[Refusal]] = {
    "landmark columns": [
        Refusal(
            lambda estimator, **_: (
                (estimator._landmarks.core or estimator._core) == "ls"
                or estimator._tolerance is not None
            ),
            ValueError,
            'core="ls", tol and rank="auto" need pairs outside the landmark columns; '
            'pass landmarks=Landmarks(<row numbers>, core="plain") and a number as rank, or all '
            "columns",
        ),
    ],
    "a method": [
        Refusal(
            lambda estimator, **_: (
                estimator.method != "gram"
                and (estimator._landmarks.core or estimator._core) == "ls"
            ),
            ValueError,
            'method="{method}" is a route of the cores "plain" and "truncated"; '
            'pass landmarks=Landmarks(..., core="plain"), or method="gram"',
        ),
    ],
    "a store": [
        Refusal(
            lambda estimator, kernel, **_: kernel.domain.is_matrix,
            ValueError,
            "store={store!r} keeps values that a kernel evaluates, and a precomputed matrix holds "
            "them already; pass Resources(store=None)",
        ),
        Refusal(
            _searches_kernels,
            ValueError,
            "store={store!r} keeps the values of one kernel, and kernel_params={kernel_params!r} "
            "tries several; pass one dict, or Resources(store=None)",
        ),
    ],
    "partial_fit": [
        Refusal(
            _has_store,
            ValueError,
            "store={store!r} knows rows by their number in X, and partial_fit counts them anew "
            "for every part; pass Resources(store=None), or fit all rows at once",
        ),
        Refusal(
            _has_splitter,
            ValueError,
            "partial_fit draws its folds: cv={cv!r} must be an int or None",
        ),
        Refusal(
            lambda estimator, **_: getattr(estimator, "class_weight", None) == "balanced",
            ValueError,
            'class_weight="balanced" needs all labels at once; pass a dict, or sample_weight',
        ),
        Refusal(
            _has_probability,
            ValueError,
            "partial_fit keeps no rows to calibrate on; pass probability=False",
        ),
    ],
    "several labels": [
        Refusal(
            lambda estimator, **_: not estimator._takes_label_sets,
            ValueError,
            "{name} takes one class per object, and y has several labels per object; take "
            "KreinSVC, or fit one {name} per label with sklearn.multiclass.OneVsRestClassifier",
        ),
        Refusal(
            _is_given("class_weight"),
            ValueError,
            "class_weight={class_weight!r} weighs classes, and y has several labels per object; "
            "pass class_weight=None, and weights of the objects as sample_weight",
        ),
    ],
    "rows on workers": [
        Refusal(
            lambda estimator, **_: (
                _is_given("time_limit")(estimator) and isinstance(estimator._landmarks.n, str)
            ),
            ValueError,
            "time_limit={time_limit!r} decides how many objects in memory are landmarks, and rows "
            "of a dask collection stay on workers; pass time_limit=None, or a number as landmarks",
        ),
        Refusal(
            _has_splitter,
            ValueError,
            "folds of a dask collection are drawn, got cv={cv!r}; pass an int",
        ),
    ],
    "a dask collection": [
        Refusal(
            lambda estimator, **_: not estimator._works_elsewhere,
            TypeError,
            "{name} looks at single rows, and takes no dask collection; compute it",
        ),
        Refusal(
            lambda estimator, kernel, **_: kernel.domain.is_matrix or kernel.domain.is_records,
            TypeError,
            "kernel={kernel_name!r} looks at all rows at once, and takes no dask collection; "
            "compute it, or choose another kernel",
        ),
    ],
}


def refuse(estimator: Any, what: str, **more: Any) -> None:
    """Raise the error of the first entry of the table that applies to ``what``."""
    for refusal in REFUSALS[what]:
        if refusal.applies(estimator, **more):
            store = estimator._resources.store
            words = vars(estimator) | {
                "name": type(estimator).__name__,
                "store": None if store is None else str(store),
                "scheme": estimator._landmarks.scheme,
                "kernel_name": estimator.kernel,
            }
            raise refusal.error(refusal.message.format(**words))
