"""From targets to columns and back, against loops over classes."""

from __future__ import annotations

import numpy as np
import pytest

from kreinlearn.learn.coding import (
    AT_ONCE,
    Classes,
    Regression,
    numbers_of,
    require_two,
    targets_of,
)
from kreinlearn.learn.losses.squared import SquaredError
from kreinlearn.pairs.rows import Rows
from tests import oracles
from tests.unit.learn.learning import FEW, LAMBDAS, K, N, W, X, Y, of_vectors, one_pass

NAMES = np.array(["b", "a", "d"])[np.digitize(Y[:, 0], np.quantile(Y[:, 0], [0.3, 0.6]))]
NUMBERED = np.searchsorted(["a", "b", "d"], NAMES)
ROWS = Rows(X)
LOSS = SquaredError()


# Regression


def test_targets_of_one_dimension_become_a_column():
    encoded = Regression().encode(ROWS, Y[:, 0])
    assert encoded.one_output
    np.testing.assert_array_equal(encoded.Y, Y[:, :1])
    encoded = Regression().encode(ROWS, Y)
    assert not encoded.one_output
    assert encoded.Y is Y
    assert encoded.classes is None


@pytest.mark.parametrize("w", [None, W], ids=["plain", "weighted"])
def test_targets_are_shifted_by_their_weighted_mean(w):
    """A mean of 10^9 would drown the deviations when they are squared."""
    encoded = Regression().encode(ROWS, Y + 1e9)
    shifted = Regression().shifted(ROWS, encoded, w, intercept=True)
    mean = np.average(Y + 1e9, axis=0, weights=w)
    np.testing.assert_allclose(shifted.shift, mean, rtol=1e-15)
    np.testing.assert_allclose(shifted.Y, Y + 1e9 - mean, rtol=0, atol=1e-6)
    same = Regression().shifted(ROWS, encoded, w, intercept=False)
    np.testing.assert_array_equal(same.Y, Y + 1e9)
    np.testing.assert_array_equal(same.shift, [0.0, 0.0])


def test_targets_that_cannot_be_squared_are_divided_by_a_power_of_two():
    encoded = Regression().encode(ROWS, Y * 2.0**-700)
    shifted = Regression().shifted(ROWS, encoded, None, intercept=True)
    assert np.frexp(shifted.unit)[0] == 0.5
    assert 0.1 < np.abs(shifted.Y).max() < 10
    np.testing.assert_array_equal(shifted.Y, (Y * 2.0**-700 - shifted.shift) / shifted.unit)
    assert Regression().shifted(ROWS, encoded._replace(Y=Y), None, intercept=True).unit == 1


def test_regression_weighs_rows_as_given():
    encoded = Regression().encode(ROWS, Y)
    assert Regression().weights(ROWS, encoded, W)[0] is W


# Classes


def test_labels_become_signs():
    encoded = Classes().encode(ROWS, NAMES)
    assert encoded.classes.tolist() == ["a", "b", "d"]
    np.testing.assert_array_equal(encoded.labels, NUMBERED)
    np.testing.assert_array_equal(encoded.counts, np.bincount(NUMBERED))
    np.testing.assert_array_equal(encoded.Y, np.where(NUMBERED[:, None] == np.arange(3), 1, -1))
    assert encoded.Y.dtype == np.int8
    two = Classes().encode(ROWS, NAMES == "a")
    np.testing.assert_array_equal(two.Y, np.where(NAMES == "a", 1, -1)[:, None])


def test_classes_may_be_known_beforehand():
    encoded = Classes().encode(ROWS, NAMES, ["d", "c", "b", "a"])
    assert encoded.classes.tolist() == ["a", "b", "c", "d"]
    assert encoded.Y.shape == (N, 4)
    assert encoded.counts[2] == 0
    with pytest.raises(ValueError, match=r"y has labels \['d'\] that are not among classes"):
        Classes().encode(ROWS, NAMES, ["a", "b"])


def test_one_class_is_refused():
    with pytest.raises(ValueError, match=r"at least two classes, got one class: \['a'\]"):
        Classes().encode(ROWS, np.full(N, "a"))
    with pytest.raises(ValueError, match="at least two classes of positive weight"):
        require_two(np.array([3]), " of positive weight")
    encoded = Classes().encode(ROWS, NAMES)
    only = np.where(NAMES == "b", 1.0, 0.0)
    with pytest.raises(ValueError, match="two classes of positive weight, got one class"):
        Classes().weights(ROWS, encoded, only)
    assert Classes().weights(ROWS, encoded, only, part=True)[0] is only


@pytest.mark.parametrize("w", [None, W], ids=["plain", "weighted"])
def test_weights_of_classes(w):
    encoded = Classes().encode(ROWS, NAMES)
    plain = np.ones(N) if w is None else w
    given = Classes(class_weight={"a": 2.0, "b": 0.5, "d": 1.0}).weights(ROWS, encoded, w)
    given, factors = given
    np.testing.assert_array_equal(factors, [2.0, 0.5, 1.0])
    np.testing.assert_allclose(given, plain * np.array([2.0, 0.5, 1.0])[NUMBERED])
    balanced, _ = Classes(class_weight="balanced").weights(ROWS, encoded, w)
    totals = np.bincount(NUMBERED, balanced)
    np.testing.assert_allclose(totals, plain.sum() / 3)
    assert Classes().weights(ROWS, encoded, w)[0] is w


def test_weights_of_classes_that_cannot_be_are_refused():
    encoded = Classes().encode(ROWS, NAMES)
    for bad in (-1.0, np.inf):
        with pytest.raises(ValueError, match="must be finite and not negative"):
            Classes(class_weight={"a": bad, "b": 1.0, "d": 1.0}).weights(ROWS, encoded, None)


def test_numbers_and_signs_of_labels():
    classes = np.array(["a", "b", "d"])
    np.testing.assert_array_equal(numbers_of(NAMES, classes), NUMBERED)
    signs = np.where(NUMBERED[:, None] == np.arange(3), 1, -1)
    np.testing.assert_array_equal(targets_of(NAMES, classes), signs)
    np.testing.assert_array_equal(
        targets_of(np.array([3, 7, 7]), np.array([3, 7])), [[-1], [1], [1]]
    )


@pytest.mark.parametrize(
    ("k", "dtype"), [(2, np.int8), (3, np.int8), (128, np.int8), (129, np.int16)]
)
def test_many_labels_are_numbered_in_a_small_type(k, dtype):
    classes = 10 * np.arange(k)
    labels = np.random.default_rng(0).integers(k, size=AT_ONCE + 9)
    labels[-1] = k - 1
    numbers = numbers_of(classes[labels], classes)
    assert numbers.dtype == dtype
    np.testing.assert_array_equal(numbers, labels)
    Y = targets_of(classes[labels[-50:]], classes)
    every = targets_of(classes[labels], classes)
    np.testing.assert_array_equal(every[-50:], Y)
    wanted = np.where(labels[-50:, None] == (np.arange(k) if k > 2 else [1]), 1, -1)
    np.testing.assert_array_equal(Y, wanted)


def test_two_classes_have_one_column():
    targets = np.where(NUMBERED > 0, 1.0, -1.0)[:, None]
    task, features, _ = one_pass(LOSS, of_vectors(FEW, targets=targets), by_fold=False)
    model = LOSS.solve(task, features, np.array(LAMBDAS), None)
    a, b = oracles.krein_ridge(K[:, FEW], K[np.ix_(FEW, FEW)], targets, LAMBDAS)
    found = K[:, FEW] @ features.map.W @ model.coef + model.intercept
    np.testing.assert_allclose(found, K[:, FEW] @ a + b, rtol=0, atol=1e-8)
