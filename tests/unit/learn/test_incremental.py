"""Parts of the data, added one after the other, against one dense problem of all of them."""

from __future__ import annotations

import numpy as np
import pytest

from kreinlearn.learn.coding import Regression, read_targets
from kreinlearn.learn.incremental import LEAST_VALIDATED, first_part, next_part
from kreinlearn.learn.search import Unknowns
from tests import oracles
from tests.unit.learn.learning import LAMBDAS, K, N, W, X, Y
from tests.unit.learn.test_fit import GIVEN, TUNED, opened, spec_of
from tests.unit.recorded import Recorded

FIRST = 25
Z = np.arange(0, FIRST, 3)
PARTS = [slice(0, FIRST), slice(FIRST, 40), slice(40, N)]


def read_part(spec, part, weights, shift=None, **session):
    """Pairs and targets of a part, shifted as those of the first one were."""
    pairs = opened(objects=X[part], **session)
    w = None if weights is None else weights[part]
    params = {"intercept": spec.intercept and shift is None}
    encoded = read_targets(Regression(), pairs.rows, Y[part], w, "a test", **params)
    if shift is not None:
        encoded = Regression().shifted_by(pairs.rows, encoded, shift, 1.0)
    return pairs, encoded


def learned(spec, weights=None, **session):
    """The first model, and what follows from each further part."""
    pairs, encoded = read_part(spec, PARTS[0], weights, **session)
    model = first_part(pairs, encoded, spec)
    sums, found, shift = model.sums, [model.solved], encoded.shift
    for part in PARTS[1:]:
        pairs, encoded = read_part(spec, part, weights, shift, **session)
        sums, solved = next_part(pairs, encoded, spec, sums, model.columns)
        found.append(solved)
    return model, found


@pytest.mark.parametrize("weights", [None, W], ids=["plain", "weighted"])
def test_each_part_gives_the_model_of_all_rows_so_far(weights):
    model, found = learned(spec_of(Z, penalties=GIVEN), weights)
    np.testing.assert_array_equal(model.sample.landmarks, Z)
    for part, solved in zip(PARTS, found, strict=True):
        rows = slice(0, part.stop)
        w = None if weights is None else weights[rows]
        a, b = oracles.krein_ridge(K[rows][:, Z], K[np.ix_(Z, Z)], Y[rows], LAMBDAS, w=w)
        expected = K[:, Z] @ a + b
        predictions = K[:, Z] @ solved.dual + solved.intercept
        np.testing.assert_allclose(predictions, expected, rtol=0, atol=1e-7)


def test_a_part_leaves_the_sums_of_before_as_they_were():
    spec = spec_of(Z, penalties=GIVEN)
    pairs, encoded = read_part(spec, PARTS[0], None)
    model = first_part(pairs, encoded, spec)
    before = [group.gram.matrix.copy() for group in model.sums.groups]
    pairs, encoded = read_part(spec, PARTS[1], None, encoded.shift)
    after, _ = next_part(pairs, encoded, spec, model.sums, model.columns)
    for group, matrix in zip(model.sums.groups, before, strict=True):
        np.testing.assert_array_equal(group.gram.matrix, matrix)
    total = sum(group.weight for group in after.groups)
    assert total == pytest.approx(PARTS[1].stop)


def test_penalties_are_tuned_anew_on_the_folds_so_far():
    _, found = learned(spec_of(Z, penalties=TUNED))
    assert all(len(solved.tuned.trials) for solved in found)
    assert found[0].penalties.tolist() != found[-1].penalties.tolist()


def test_too_few_rows_that_can_be_left_out_keep_the_penalties():
    """Every row of the first part is a landmark, and a few rows come after it."""
    assert LEAST_VALIDATED > 3 / (FIRST + 3)
    spec = spec_of(np.arange(FIRST), penalties=Unknowns((None, None)))
    pairs, encoded = read_part(spec, PARTS[0], None)
    model = first_part(pairs, encoded, spec)
    few = slice(FIRST, FIRST + 3)
    pairs, encoded = read_part(spec, few, None, encoded.shift)
    sums, solved = next_part(pairs, encoded, spec, model.sums, model.columns)
    np.testing.assert_array_equal(sums.values, model.sums.values)
    np.testing.assert_allclose(solved.penalties, model.solved.penalties)


def test_progress_of_new_rows():
    seen = Recorded()
    learned(spec_of(Z, penalties=GIVEN), progress=seen)
    new = [step for step in seen.steps if step[0] == "new rows"]
    assert new == [("new rows", 15, 15 * len(Z)), ("new rows", 20, 20 * len(Z))]
