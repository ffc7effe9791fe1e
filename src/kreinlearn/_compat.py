"""What differs between versions of scikit-learn that this package works with."""

from __future__ import annotations

from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _check_sample_weight

try:
    from sklearn.callback import CallbackSupportMixin
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """An estimator without callbacks: no fit has a task, and there is nothing to set."""

        _callback_fit_ctx = None

        def set_callbacks(self, *callbacks: object) -> CallbackSupportMixin:
            if callbacks:
                raise NotImplementedError(
                    "callbacks need scikit-learn 1.9 or newer; update scikit-learn, or pass "
                    "verbose=1 to see a progress bar"
                )
            return self


JUDGES_ZEROS = "allow_all_zero_weights" in signature(_check_sample_weight).parameters  # from 1.9 on


def check_sample_weight(w: Any, X: NDArray[Any], *, all_zero: bool) -> NDArray[Any]:
    """One weight for each row of X, none of them negative; ``all_zero`` says if all may be zero."""
    more = {"allow_all_zero_weights": all_zero} if JUDGES_ZEROS else {}
    checked = _check_sample_weight(w, X, dtype=np.float64, ensure_non_negative=True, **more)
    require_some_weight(all_zero or bool(np.any(checked)))
    return np.asarray(checked)


def require_some_weight(any_is_positive: bool) -> None:
    """Raise ValueError if all weights are zero."""
    if not any_is_positive:
        raise ValueError(
            "Sample weights must contain at least one non-zero number, and all of them are zero; "
            "pass sample_weight=None for equal weights"
        )
