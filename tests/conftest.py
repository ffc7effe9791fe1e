"""Fixtures that several test modules use, and an order of the tests at random."""

import gc
import random
import signal
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

gc.disable()  # until the tests are collected: what is made of them stays

STATES: dict[int, Any] = {}  # of generators that modules of tests have, after their import


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--order-seed",
        type=int,
        metavar="N",
        help="run the files, and the tests of each file, in a random order that N decides",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The same order in every worker of pytest-xdist, as the seed is the same."""
    seed = config.getoption("order_seed")
    if seed is not None:
        items[:] = shuffled(items, seed)


def pytest_collection_finish() -> None:
    """The tests themselves, most of a million objects, are no garbage to look for again."""
    gc.collect()
    gc.freeze()
    gc.enable()


def shuffled(items: list[pytest.Item], seed: int) -> list[pytest.Item]:
    """The files in a random order, and the tests of each file too, so that fixtures are shared."""
    rng = random.Random(seed)
    files: dict[str, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(str(item.path), []).append(item)
    order = list(files)
    rng.shuffle(order)
    return [item for file in order for item in rng.sample(files[file], len(files[file]))]


@pytest.fixture(autouse=True)
def same_draws(request: pytest.FixtureRequest) -> None:
    """A test draws the same numbers in any order: the generator of its module begins anew."""
    rng = getattr(getattr(request.node, "module", None), "RNG", None)
    if isinstance(rng, np.random.Generator):
        rng.bit_generator.state = STATES.setdefault(id(rng), rng.bit_generator.state)


@pytest.fixture
def heard() -> Iterator[None]:
    """SIGINT raises, also where tests run in the background and it is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
