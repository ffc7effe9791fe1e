"""The cross-validated loss that a fit minimises, as a function of its two penalties."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from kreinlearn.learn.coding import Encoded
from kreinlearn.learn.fit import LearnSpec, make_features, make_task
from kreinlearn.learn.search import Unknowns, given
from kreinlearn.learn.similarity import choose_similarity
from kreinlearn.pairs.pairs import Pairs

Criterion = Callable[[float, float], float]  # of lambda_plus and lambda_minus as the user has them


def criterion_of(pairs: Pairs, encoded: Encoded, spec: LearnSpec) -> Criterion:
    """The steps of ``fit_model`` up to the search for penalties, and then its loss instead."""
    chosen = choose_similarity(make_task(pairs, encoded, spec), spec.similarity)
    by_fold = not chosen.task.honest and not spec.loo
    task, features = make_features(chosen.task, spec, by_fold=by_fold)
    loss = spec.loss.prepared(features, encoded, intercept=spec.intercept)
    objective = loss.criterion(task, features, loo=spec.loo)

    def loss_at(lambda_plus: float, lambda_minus: float) -> float:
        fixed = replace(spec, penalties=Unknowns((lambda_plus, lambda_minus)))
        loss = objective(given(fixed.unknowns(features.unit)).values)[0]
        return float(loss * encoded.unit * encoded.unit)

    return loss_at
