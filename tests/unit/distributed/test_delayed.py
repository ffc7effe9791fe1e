"""Tasks: delayed objects anywhere among the arguments, and keys that tell what a task does."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import dask
import numpy as np
import pytest
from distributed.utils import key_split

from kreinlearn.distributed.delayed import SMALL, compute, constant, merged, shared, task


class Two(NamedTuple):
    first: Any
    second: Any


@dataclass(frozen=True)
class Held:
    inside: Any
    number: int = 0


def same(*arguments, **named):
    return arguments, named


@pytest.mark.parametrize("put", [
    lambda one: one,
    lambda one: [1, one],
    lambda one: (one, (one, 2)),
    lambda one: Two(one, [one]),
    lambda one: Held([Two(3, one)], 4),
])  # fmt: skip
def test_a_delayed_argument_may_be_anywhere(put):
    one = task(sum)([constant(2), 3])
    with dask.config.set(scheduler="sync"):
        assert compute(task(same)(put(one), 6, by=7)) == ((put(5), 6), {"by": 7})


def test_arguments_are_not_changed_and_keys_name_the_function():
    held = Held([constant(1)])
    first, second = task(same)(held), task(same)(held)
    assert first.key != second.key
    assert key_split(first.key) == "same"
    assert len(first.dask) == 2  # the constant and the call
    assert held.inside[0].key in first.dask


def test_neighbours_are_merged_in_a_fixed_tree():
    numbers = [constant([i]) for i in range(20)]
    joined = merged(numbers, lambda parts: [tuple(one for part in parts for one in part)])
    with dask.config.set(scheduler="sync"):
        (found,) = compute(joined)
    assert found == (tuple(range(8)), tuple(range(8, 16)), tuple(range(16, 20)))


@pytest.mark.parametrize(("n", "tasks"), [(SMALL // 16, 1), (SMALL // 8 + 1, 2)])
def test_a_small_value_goes_along_with_a_task(n, tasks):
    values = np.arange(float(n))
    total = task(np.sum)(shared(values))
    assert len(total.dask) == tasks
    assert compute(total) == n * (n - 1) / 2
