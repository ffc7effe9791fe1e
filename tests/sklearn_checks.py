"""scikit-learn's checks of estimators, which are not the same in all of its versions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import estimator_checks_generator

IN_ALL = ["check_estimator_sparse_tag"]  # from 1.7 on
IN_LEARNERS = ["check_all_zero_sample_weights_error"]  # from 1.9 on


def checks(
    forms: Mapping[str, Any], failing: Callable[[Any], Mapping[str, str]], *, strict: bool = True
) -> list[Any]:
    """All checks of all estimators; ``failing`` names those that are expected to fail, and why."""
    return [
        pytest.param(model, check, id=f"{form}-{number}-{name}", marks=marks)
        for form, model in forms.items()
        for number, (_, check) in enumerate(estimator_checks_generator(model))
        for name in [check.func.__name__]
        for reason in [failing(model).get(name)]
        for marks in [() if reason is None else pytest.mark.xfail(reason=reason, strict=strict)]
    ]


def n_later_checks(*, learner: bool) -> int:
    """How many checks of scikit-learn 1.9 the version at hand does not have."""
    names = IN_ALL + IN_LEARNERS * learner
    return sum(not hasattr(estimator_checks, name) for name in names)
