"""What differs between versions of scikit-learn that this package works with."""

from __future__ import annotations

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
