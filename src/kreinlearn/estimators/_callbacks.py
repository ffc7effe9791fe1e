"""Callbacks of scikit-learn: a fit is a task, each long step one within it, in up to PARTS parts.

The API is experimental. A callback that asks to stop is not heard: no step can be left out.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar

PARTS = 50  # of a step, that are reported

Fit = TypeVar("Fit", bound=Callable[..., Any])


def reported(fit: Fit) -> Fit:
    """A ``_fit`` whose beginning and end callbacks are told of; one within another is part of it.

    scikit-learn's context of ``fit`` takes them down, however it ends; a task that fails has no
    end, as in its own estimators.
    """

    @wraps(fit)
    def with_tasks(self: Any, *data: Any) -> Any:
        if hasattr(self, "_callback_fit_ctx"):
            return fit(self, *data)
        X, y, weights = (*data, None, None)[:3]
        metadata = None if weights is None else {"sample_weight": weights}
        told = {"estimator": self, "X": X, "y": y, "metadata": metadata}
        context = self._init_callback_context(max_subtasks=None)
        context.call_on_fit_task_begin(**told)
        found = fit(self, *data)
        context.call_on_fit_task_end(**told, reconstruction_attributes=dict)
        return found

    return with_tasks  # type: ignore[return-value]


def tasks_of(estimator: Any) -> Tasks | None:
    """What the steps of a fit report to, if anybody listens."""
    context = getattr(estimator, "_callback_fit_ctx", None)
    return Tasks(estimator, context) if context and hasattr(estimator, "_skl_callbacks") else None


class Tasks:
    """Tasks below that of the fit."""

    def __init__(self, estimator: Any, context: Any) -> None:
        self.estimator, self.context = estimator, context

    @contextmanager
    def step(self, what: str, total: int) -> Iterator[Callable[[int], None]]:
        """A task of so many rows or pairs; what is yielded says how many more are done.

        It ends when it is complete: a bar would show one that failed as done.
        """
        parts = min(total, PARTS)
        task, lock = self.context.subcontext(task_name=what, max_subtasks=parts), threading.Lock()
        task.call_on_fit_task_begin(estimator=self.estimator)
        done = ended = 0

        def add(more: int) -> None:
            nonlocal done, ended
            with lock:
                done += more
                while ended < min(parts, done * parts // total):
                    self._end(task.subcontext(task_name="part"))
                    ended += 1

        yield add
        task.call_on_fit_task_end(estimator=self.estimator)

    def _end(self, part: Any) -> None:
        part.call_on_fit_task_begin(estimator=self.estimator)
        part.call_on_fit_task_end(estimator=self.estimator)
