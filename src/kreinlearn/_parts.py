"""Parts that are done before their whole is: from where they are evaluated to who counts them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeAlias

Count: TypeAlias = Callable[[int, int], None]  # rows, pairs

_count: ContextVar[Count | None] = ContextVar("count", default=None)


@contextmanager
def counting(count: Count) -> Iterator[None]:
    """While inside, in this thread, ``part_done`` calls ``count``."""
    before = _count.set(count)
    try:
        yield
    finally:
        _count.reset(before)


def part_done(rows: int, pairs: int) -> None:
    if (count := _count.get()) is not None:
        count(rows, pairs)
