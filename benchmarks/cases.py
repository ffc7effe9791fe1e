"""The kernel matrices of the approximation benchmark, written out from their definitions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist, squareform
from sklearn.datasets import load_breast_cancer, load_digits, load_wine

from benchmarks.counting import CountedObjects, CountedVectors, Tally
from kreinlearn.datasets import load_dataset
from kreinlearn.kernels import DeltaGauss, Epanechnikov, Gaussian, Kernel, Sigmoid
from reproduction.sets import standardised

Array = NDArray[Any]
RANKS = (25, 50, 100)
COVERTYPE_ROWS = 2000


@dataclass(frozen=True)
class Problem:
    """What an estimator is given, the whole matrix K, and the smallest error of every rank."""

    name: str
    X: Any
    kernel: Any
    K: Array
    tails: Array  # (n + 1,): sums of all but the k largest squared eigenvalues

    def __len__(self) -> int:
        return len(self.K)

    def optimal(self, k: int) -> float:
        return float(np.sqrt(self.tails[k]))

    def error(self, model: Any) -> float:
        Phi = model.transform(self.X)
        return float(np.linalg.norm(self.K - (Phi * model.signature_) @ Phi.T))

    def counted(self) -> tuple[Any, Kernel, Tally]:
        """The same objects with a kernel that counts the pairs it evaluates."""
        tally = Tally(len(self))
        if isinstance(self.kernel, Kernel):
            return self.X, CountedVectors(self.kernel, tally), tally
        return list(range(len(self))), CountedObjects(self.K, tally), tally


def problem_of(name: str, X: Any, kernel: Any, K: Array) -> Problem:
    squared = np.sort(np.square(np.linalg.eigvalsh(K)))
    tails = np.concatenate([[0.0], np.cumsum(squared)])[::-1]
    return Problem(name, X, kernel, K, tails)


# Data


def _gaussian(d: int) -> Array:
    return np.random.default_rng(d).standard_normal((1200, d))


def _blobs() -> Array:
    """25 clusters of very different weights and widths, and 15 far outliers."""
    rng = np.random.default_rng(0)
    weights = rng.dirichlet(np.full(25, 0.4))
    centres, widths = 4 * rng.standard_normal((25, 8)), rng.uniform(0.05, 1, 25)
    of = rng.choice(25, 1185, p=weights)
    inside = centres[of] + widths[of, None] * rng.standard_normal((1185, 8))
    return np.concatenate([inside, 12 * rng.standard_normal((15, 8))])


def _covertype() -> Array:
    X = load_dataset("large/covertype").X
    return X[np.sort(np.random.default_rng(0).choice(len(X), COVERTYPE_ROWS, replace=False))]


DATA: dict[str, Callable[[], Array]] = {
    "digits": lambda: load_digits().data,
    "breast_cancer": lambda: load_breast_cancer().data,
    "gaussian3": lambda: _gaussian(3),
    "gaussian10": lambda: _gaussian(10),
    "blobs": _blobs,
    "wine": lambda: load_wine().data,
    "covertype": _covertype,
}


# Kernels: (the library's, by its parameters; the definition). M is the median squared distance,
# and the factor multiplies it, or the gain 1 / d.

KERNELS: dict[str, tuple[Callable[..., Kernel], Callable[..., Array]]] = {
    "delta_gauss": (
        lambda M, d, factor: DeltaGauss(width=factor * M, ratio=4.0),
        lambda X, D2, M, factor: np.exp(-D2 / (factor * M)) - np.exp(-4 * D2 / (factor * M)),
    ),
    "sigmoid": (
        lambda M, d, factor: Sigmoid(gain=factor / d, bias=-1.0),
        lambda X, D2, M, factor: np.tanh(factor / X.shape[1] * (X @ X.T) - 1),
    ),
    "epanechnikov": (
        lambda M, d, factor: Epanechnikov(width=factor * M),
        lambda X, D2, M, factor: np.maximum(0, 1 - D2 / (factor * M)),
    ),
    "gaussian": (
        lambda M, d, factor: Gaussian(width=factor * M),
        lambda X, D2, M, factor: np.exp(-D2 / (factor * M)),
    ),
}
INDEFINITE = ("delta_gauss", "sigmoid", "epanechnikov")


def _vectors(name: str) -> Problem:
    data, kernel_name, *rest = name.replace("@", "/").split("/")
    factor = float(rest[0]) if rest else 1.0
    X = standardised(DATA[data]())
    distances = pdist(X, "sqeuclidean")
    M = float(np.median(distances))
    make, formula = KERNELS[kernel_name]
    K = formula(X, squareform(distances), M, factor)
    return problem_of(name, X, make(M, X.shape[1], factor), 0.5 * (K + K.T))


def _dissimilarities(name: str) -> Problem:
    D = load_dataset(name).D
    D = 0.5 * (D + D.T)  # chickenpieces is asymmetric as published
    J = np.eye(len(D)) - 1 / len(D)
    K = -0.5 * J @ np.square(D) @ J
    return problem_of(name, D, "precomputed_dissimilarity", 0.5 * (K + K.T))


@lru_cache(maxsize=2)
def problem(name: str) -> Problem:
    """The problem of a name, such as "digits/sigmoid@0.25" or "dissimilarity/woodyplants50"."""
    return _dissimilarities(name) if name.startswith("dissimilarity/") else _vectors(name)


KNOWN = [f"{data}/{kernel}" for data in list(DATA)[:5] for kernel in INDEFINITE]
DEFINITE = [f"{data}/gaussian" for data in list(DATA)[:5]]
OBJECTS = ["dissimilarity/woodyplants50", "dissimilarity/chickenpieces_20_60"]
UNSEEN = [
    *(f"{data}/{kernel}" for data in ("wine", "covertype") for kernel in INDEFINITE),
    *(f"digits/{kernel}@{factor}" for kernel in INDEFINITE for factor in (0.25, 4)),
    *(f"blobs/{kernel}@{factor}" for kernel in INDEFINITE for factor in (0.25, 4)),
]
