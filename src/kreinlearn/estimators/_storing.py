"""store=path: kernel values of a fit are kept on disk, where it and later fits find them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import wraps
from typing import Any, TypeVar

from kreinlearn.kernels import Kernel
from kreinlearn.pairs.store.evaluation import Stored
from kreinlearn.pairs.store.opening import stored

Fit = TypeVar("Fit", bound=Callable[..., Any])


def storing(fit: Fit) -> Fit:
    """A fit that may open the store of its estimator; however it ends, what is done is kept."""

    @wraps(fit)
    def with_store(self: Any, *args: Any) -> Any:
        with ExitStack() as self._opened:
            try:
                return fit(self, *args)
            finally:
                del self._opened

    return with_store  # type: ignore[return-value]


def open_store(estimator: Any, kernel: Kernel, X: Any, landmarks: Any) -> Stored | None:
    """The store of an estimator during its fit; ``landmarks`` are objects, if not rows of X."""
    path = estimator.store
    if path is None:
        return None
    if kernel.takes == "precomputed":
        raise ValueError(
            f"store={str(path)!r} keeps values that a kernel evaluates, and a precomputed matrix "
            "holds them already; pass store=None"
        )
    if not isinstance(estimator.kernel_params, dict | None):
        raise ValueError(
            f"store={str(path)!r} keeps the values of one kernel, and kernel_params="
            f"{estimator.kernel_params!r} tries several; pass one dict, or store=None"
        )
    if getattr(estimator, "probability", False):
        raise ValueError(
            f"store={str(path)!r} keeps the values of all rows, and probability=True fits parts "
            "of them again; pass store=None, or probability=False"
        )
    if not hasattr(estimator, "_opened"):
        raise ValueError(
            f"store={str(path)!r} knows rows by their number in X, and partial_fit counts them "
            "anew for every part; pass store=None, or fit all rows at once"
        )
    found: Stored = estimator._opened.enter_context(stored(path, kernel, X, landmarks))
    return found
