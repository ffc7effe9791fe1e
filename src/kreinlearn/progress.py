"""Progress of long passes: a bar on a terminal when ``verbose`` asks for it, else nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any


def shown(n_rows: int, what: str, verbose: int | bool) -> Callable[[Iterable[Any]], Iterable[Any]]:
    """A wrapper of row blocks (numbers, objects) that shows rows, rate and remaining time."""
    if not verbose or not sys.stderr.isatty():
        return iter

    def with_bar(blocks: Iterable[Any]) -> Iterator[Any]:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        layout = (
            TextColumn(what),
            BarColumn(),
            TextColumn("{task.completed:,}/{task.total:,} rows"),
            TextColumn("{task.speed:,.0f} rows/s"),
            TimeRemainingColumn(),
        )
        with Progress(*layout, console=Console(stderr=True)) as bar:
            task = bar.add_task(what, total=n_rows)
            for numbers, objects in blocks:
                yield numbers, objects
                bar.advance(task, len(numbers))

    return with_bar
