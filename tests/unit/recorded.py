"""A progress that keeps what it is told."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from kreinlearn.progress import Progress


class Recorded(Progress):
    def __init__(self) -> None:
        super().__init__()
        self.steps: list[tuple[str, int, int]] = []
        self.done = (0, 0)  # rows, pairs
        self.open = 0
        self._lock = threading.Lock()

    @contextmanager
    def step(self, what: str, rows: int, pairs: int = 0) -> Iterator[None]:
        self.steps.append((what, rows, pairs))
        self.open += 1
        try:
            yield
        finally:
            self.open -= 1

    def add(self, rows: int, pairs: int = 0) -> None:
        assert self.open, "evaluated outside a step"
        with self._lock:
            self.done = (self.done[0] + rows, self.done[1] + pairs)
