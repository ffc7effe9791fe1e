"""The former place of callbacks, which are in ``kreinlearn.progress``."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from kreinlearn.progress import fit_task, tasks_of

__all__ = ["reported", "tasks_of"]

Fit = TypeVar("Fit", bound=Callable[..., Any])


def reported(fit: Fit) -> Fit:
    """Report a ``_fit`` to callbacks; to be replaced by a visible ``with fit_task(...)``."""

    @wraps(fit)
    def with_task(self: Any, *data: Any) -> Any:
        with fit_task(self, *data[:3]):
            return fit(self, *data)

    return with_task  # type: ignore[return-value]
