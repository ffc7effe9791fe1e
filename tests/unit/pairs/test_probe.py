"""A look at a user's own function: warnings of what is wrong, and silence otherwise."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from kreinlearn.kernels import DeltaGauss, pairwise
from kreinlearn.pairs.pairs import Pairs
from kreinlearn.pairs.rows import Rows, Session
from tests.unit.pairs.numbered import POINTS


def look_at(function_or_kernel, X=tuple(range(30))):
    """What is said of a kernel whose landmarks are ten of the objects."""
    kernel = function_or_kernel
    kernel = pairwise(kernel) if callable(kernel) and not hasattr(kernel, "columns") else kernel
    objects = X if isinstance(X, np.ndarray) else list(X)
    pairs = Pairs(kernel.fit(objects, np.random.default_rng(0)), Rows(objects), Session())
    sample = pairs.grown(pairs.sample(np.arange(30)), np.arange(0, 30, 3))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        pairs.probe(sample)
    return [str(one.message) for one in said]


def test_a_symmetric_function_is_fine():
    assert look_at(lambda a, b: float(np.cos(a * b))) == []


def test_an_asymmetric_function():
    (message,) = look_at(lambda a, b: float(a + 2 * b))
    assert message.startswith("the kernel is asymmetric: k(x, z) - k(z, x) is up to ")
    assert "of two landmarks one order or the mean" in message


def test_a_function_that_does_not_repeat():
    draw = np.random.default_rng(0)
    (message,) = look_at(lambda a, b: draw.random())
    assert "the kernel is not deterministic" in message


def test_a_function_that_looks_like_a_distance():
    (message,) = look_at(lambda a, b: float(abs(a - b)))
    assert "pass kernel=dissimilarity(...)" in message


def test_kernels_of_the_library_are_trusted():
    class Wrong(DeltaGauss):
        def columns(self, Z):
            pytest.fail("evaluated again")

    pairs = Pairs(Wrong(6.0, 4.0), Rows(POINTS), Session())
    assert not pairs.kernel.untrusted
    pairs.probe(pairs.sample(np.arange(30)))
