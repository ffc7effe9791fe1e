"""Old names of what domains do, for modules that still use them; deleted when they no longer do."""

from __future__ import annotations

from typing import Any

from kreinlearn.data.validation import in_memory
from kreinlearn.estimators._validation import border_of
from kreinlearn.kernels import Kernel

__all__ = ["in_memory", "rows_for"]


def rows_for(estimator: Any, X: Any, kernel: Kernel, *, reset: bool) -> Any:
    """A validated source of rows; X itself if it is in memory, or what is read into memory."""
    return kernel.domain.read(X, border_of(estimator), reset=reset)
