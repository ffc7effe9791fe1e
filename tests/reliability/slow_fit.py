"""A fit that takes its time, to be run as a process of its own, and killed."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from kreinlearn import KreinRidge, Resources
from kreinlearn.kernels.base import ObjectKernel
from kreinlearn.pairs.store import blocks, evaluation

X = np.random.default_rng(0).permutation(2000)[:150].astype(float).tolist()
Y = np.sin(np.array(X) / 300)


class Slow(ObjectKernel):
    """sqrt |a - b| of numbers, ``seconds`` for each pair; each pair adds a line to ``met``."""

    is_dissimilarity = True
    met = Path(os.devnull)  # no parameter: it does not change a value
    seconds = 0.0

    def packed(self, X: Any, first: int = 0, n: int = 0, like: Any = None) -> Any:
        return np.array(X, dtype=float)

    def values(self, A: Any, Z: Any) -> Any:
        time.sleep(self.seconds * A.size * Z.size)
        with self.met.open("a") as file:
            file.writelines(f"{min(a, z)} {max(a, z)}\n" for a in A for z in Z if a != z)
        return np.sqrt(np.abs(A[:, None] - Z))


def model(store: Any, **others: Any) -> KreinRidge:
    given = {"landmarks": 12, "random_state": 0, "lambda_plus": 1.0, "lambda_minus": 1.0}
    return KreinRidge(Slow(), **{**given, **others}, resources=Resources(store=store))


def mark(fitted: Any) -> str:
    return hashlib.sha256(fitted.dual_coef_.tobytes()).hexdigest()


def run(store: str, met: str, seconds: float) -> None:
    Slow.met, Slow.seconds = Path(met), seconds
    blocks.WAIT, evaluation.PIECE, evaluation.FIRST_ROWS = (0.05, 0.05), 0.05, 1
    print("ready", os.getpid(), flush=True)
    print(mark(model(store).fit(X, Y)))
