"""Objects validated as estimators validate them, with the kernel that was fitted to them.

This is the only module of ``inspection`` and ``evaluation`` that knows how an estimator prepares
its data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kreinlearn.estimators.access import border_of, receive
from kreinlearn.estimators.transformer import KreinNystroem
from kreinlearn.inspection.arguments import Array, KernelLike, KernelParams, Objects
from kreinlearn.kernels import Kernel
from kreinlearn.kernels.several import Several
from kreinlearn.pairs.evaluate import announce, evaluate_square, pairs_among
from kreinlearn.pairs.rows import Rows, Session
from kreinlearn.progress import Progress, name_of
from kreinlearn.sums.parallel import serial_blas, worker_count


@dataclass(frozen=True)
class Prepared:
    """Validated objects, the kernel fitted to them, and the model that did both."""

    model: KreinNystroem
    rows: Rows
    kernel: Kernel

    @property
    def X(self) -> Objects:
        return self.rows.X

    @property
    def n(self) -> int:
        return len(self.rows)

    @property
    def workers(self) -> int:
        """The number of threads that may evaluate the kernel."""
        return worker_count(self.model.n_jobs) if self.kernel.threads else 1

    def part(self, rows: Array, columns: Array) -> Objects:
        """The objects with these row numbers; of a given matrix these rows and columns."""
        if self.kernel.domain.is_matrix:
            return np.asarray(self.X)[np.ix_(rows, columns)]
        return self.kernel.select(self.X, rows)

    def of_part(self, rows: Array, rng: np.random.Generator) -> Prepared:
        """The same for some of the objects only, as if the others did not exist."""
        return Prepared(self.model, *receive(self.model, self.part(rows, rows), rng))

    def validated(self, X: Objects) -> Objects:
        """New objects, validated as the first ones were."""
        validated: Objects = self.kernel.domain.validate(X, border_of(self.model), reset=False)
        return validated

    def release(self) -> None:
        """Let worker processes of the kernel drop the objects that they were sent."""
        self.kernel.end_fit()

    def all_pairs(
        self, Z: Objects, rows: Array, progress: Progress, step: str, more: int = 0
    ) -> Array:  # (m, m)
        """Evaluate the kernel among objects Z, whose row numbers are ``rows``.

        ``more`` is the number of pairs that will be evaluated besides; it only enters the
        announcement of how long the computation will take.
        """
        m, pairs = len(rows), pairs_among(self.kernel, len(rows))
        session = Session(self.workers, progress=progress)
        announce(progress, self.kernel, Z, Z, pairs + more, self.workers)
        unknown = np.full(m, np.nan)
        try:
            with serial_blas(), progress.step(step, m, pairs):
                return evaluate_square(self.kernel, Z, rows, unknown, session)
        finally:
            self.release()


def prepare(
    X: Objects, kernel: KernelLike, rng: np.random.Generator, **parameters: Any
) -> Prepared:
    """Validate objects and fit the kernel to them; the parameters are those of KreinNystroem."""
    model = KreinNystroem(kernel, **parameters)
    return Prepared(model, *receive(model, X, rng))


def described(kernel: KernelLike | list[Any], params: KernelParams) -> str:
    """A kernel in words, such as "levenshtein, normalized=True"; several one after the other."""
    if isinstance(kernel, list):
        return ", ".join(Several(kernel).labels)
    return ", ".join([name_of(kernel), *(f"{k}={v!r:.40}" for k, v in (params or {}).items())])
