"""Results that fits to the same values share, while learners are compared on them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, TypeVar

import numpy as np

Result = TypeVar("Result")


@dataclass
class Shared:
    """What fits have found, by the values that it depends on, and the time that others saved."""

    results: dict[bytes, tuple[Any, float]] = field(default_factory=dict)
    saved: float = 0.0  # seconds


_active: ContextVar[Shared | None] = ContextVar("active", default=None)


@contextmanager
def sharing() -> Iterator[Shared]:
    """A block in which fits of this thread do not repeat what one of them has found already.

    All results are kept until the block ends. They depend on nothing but the values that name them,
    so that a fit finds the same inside and outside of the block.
    """
    before = _active.set(Shared())
    active = _active.get()
    assert active is not None
    try:
        yield active
    finally:
        _active.reset(before)


def shared(make: Callable[[], Result], *values: Any) -> Result:
    """The result of ``make``, which may depend on these values only: arrays, names and numbers.

    Outside of ``sharing()`` this is ``make()``.
    """
    active = _active.get()
    if active is None:
        return make()
    key = _key(values)
    if key in active.results:
        result, seconds = active.results[key]
        active.saved += seconds
    else:
        start = time.perf_counter()
        result = make()
        active.results[key] = result, time.perf_counter() - start
    found: Result = result
    return found


def _key(values: tuple[Any, ...]) -> bytes:
    """A digest of values; arrays count by their content."""
    digest = blake2b(digest_size=20)
    for value in values:
        if isinstance(value, np.ndarray):
            digest.update(f"{value.dtype.str}{value.shape}".encode())
            digest.update(np.ascontiguousarray(value).data)
        else:
            digest.update(repr(value).encode())
        digest.update(b"\0")
    return digest.digest()
