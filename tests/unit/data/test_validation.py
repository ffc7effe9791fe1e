"""Generators from whatever scikit-learn takes as ``random_state``."""

from __future__ import annotations

import numpy as np
import pytest

from kreinlearn.data.validation import as_generator, require_numbers


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
