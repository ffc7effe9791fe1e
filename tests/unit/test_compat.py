"""What older versions of scikit-learn do not have, and what stands in for it."""

from __future__ import annotations

import sys
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from typing import Any

import numpy as np
import pytest

from kreinlearn import KreinRidge, _compat

HAS_CALLBACKS = find_spec("sklearn.callback") is not None


@pytest.fixture
def without_callbacks(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module as scikit-learn before 1.9 lets it be."""
    monkeypatch.setitem(sys.modules, "sklearn.callback", None)
    spec = spec_from_file_location("compat_of_older_versions", _compat.__file__)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_callbacks_that_cannot_be_called_are_refused(without_callbacks: Any) -> None:
    one = without_callbacks.CallbackSupportMixin()
    assert one.set_callbacks() is one
    with pytest.raises(NotImplementedError, match=r"scikit-learn 1\.9 or newer"):
        one.set_callbacks(print)


def test_the_class_of_scikit_learn_is_used_where_it_exists(without_callbacks: Any) -> None:
    ours = _compat.CallbackSupportMixin.__module__ == "kreinlearn._compat"
    assert ours != HAS_CALLBACKS
    assert without_callbacks.CallbackSupportMixin.__module__ == "compat_of_older_versions"


@pytest.mark.skipif(HAS_CALLBACKS, reason="callbacks are called here")
def test_an_estimator_without_callbacks_says_so() -> None:
    X = np.arange(20.0).reshape(10, 2)
    model = KreinRidge().set_callbacks().fit(X, X[:, 0])
    assert "_callback_fit_ctx" not in vars(model)
    with pytest.raises(NotImplementedError, match="callbacks need"):
        model.set_callbacks(print)
