"""Progress of long passes: a bar on a terminal when ``verbose`` asks for it, else nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any


def shown(n_rows: int, what: str, verbose: int | bool) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """A wrapper of row blocks (numbers, objects) that shows rows, rate and remaining time."""
    if not verbose or not sys.stderr.isatty():
        return iter

    def with_bar(blocks: Iterable[Any]) -> Iterator[Any]:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            Progress,
            ProgressColumn,
            Task,
            TextColumn,
            TimeRemainingColumn,
        )
        from rich.text import Text

        class Rate(ProgressColumn):
            def render(self, task: Task) -> Text:
                return Text(f"{task.speed or 0:,.0f} rows/s")

        layout = (
            TextColumn(what),
            BarColumn(),
            TextColumn("{task.completed:,}/{task.total:,} rows"),
            Rate(),
            TimeRemainingColumn(),
        )
        with Progress(*layout, console=Console(stderr=True)) as bar:
            task = bar.add_task(what, total=n_rows)
            for numbers, objects in blocks:
                yield numbers, objects
                bar.update(task, completed=int(numbers[-1]) + 1)  # rows known before are skipped
            bar.update(task, completed=n_rows)

    return with_bar
