"""Generators from whatever scikit-learn takes as ``random_state``."""

from __future__ import annotations

import numpy as np
import pytest

from kreinlearn.data import validation
from kreinlearn.data.validation import (
    MANY_LABELS,
    as_generator,
    checked_labels,
    require_numbers,
)


def test_one_generator_from_anything():
    generator = np.random.default_rng(3)
    assert as_generator(generator) is generator
    assert as_generator(5).integers(2**60) == np.random.default_rng(5).integers(2**60)
    assert as_generator(np.int64(5)).integers(2**60) == as_generator(5).integers(2**60)
    assert as_generator(None).integers(2**60) != as_generator(None).integers(2**60)


def test_a_random_state_gives_a_repeatable_stream_and_moves_on():
    def draws(count):
        state = np.random.RandomState(1)
        return [int(as_generator(state).integers(2**60)) for _ in range(count)]

    assert draws(3) == draws(3)
    assert len(set(draws(3))) == 3
    assert draws(1)[0] != as_generator(np.random.RandomState(2)).integers(2**60)


def test_objects_of_a_class_of_the_user_get_the_name_of_what_takes_them() -> None:
    class Read:
        pass

    with pytest.raises(TypeError, match=r"pass pairwise\(f\) of a function of two objects"):
        require_numbers([Read(), Read()])


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, bool])
def test_many_integers_are_labels_without_being_sorted(monkeypatch, dtype):
    def refuse(y):
        raise AssertionError

    y = np.zeros(MANY_LABELS + 1, dtype)
    y[7] = 1
    monkeypatch.setattr(validation, "check_classification_targets", refuse)
    np.testing.assert_array_equal(checked_labels(y, "a learner"), y)
    for judged in (y[:MANY_LABELS], y.astype(float), np.arange(len(y))):
        with pytest.raises(AssertionError):
            checked_labels(judged, "a learner")


def test_many_numbers_are_no_labels():
    with pytest.raises(ValueError, match="continuous"):
        checked_labels(np.linspace(0, 1, MANY_LABELS + 1), "a learner")
