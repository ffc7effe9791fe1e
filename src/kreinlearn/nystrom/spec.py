"""What a feature map is to be made of, once the parameters of an estimator meet its data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kreinlearn.kernels.base import Array, Objects

POOL_PER_LANDMARK = 10


@dataclass(frozen=True)
class Landmarks:
    """How landmarks are chosen, and what is made of them: for the parameter ``landmarks``.

    Parameters
    ----------
    n : int, float, None or "auto", default="auto"
        How many landmarks: a number, a fraction of the objects, None for all objects (an exact
        model), or "auto" for the default of the estimator.
    scheme : str, default="auto"
        "uniform", "leverage" and "kmeans++" (the schemes of the paper), "greedy_kmeans++",
        "medoids" or "medoids+greedy" (dense vectors only). "auto" is "medoids+greedy" for dense
        vectors and "greedy_kmeans++" for everything else.
    core : {"plain", "truncated", "ls"} or None, default=None
        How the kernel is approximated from the landmarks: by the inverse of their kernel matrix
        ("plain"), by the inverse of its largest part ("truncated"), or by least squares ("ls").
        None is the default of the estimator: "ls" for transformers, "plain" for learners.
    rank : int or None, default=None
        The largest rank that the features of a learner may have; None keeps all. Transformers
        have a parameter ``rank`` or ``n_components`` of their own.
    pool : int, default=8192
        The size of the uniform sample of rows among which landmarks are chosen, and by which a
        similarity is chosen, if there are more rows. Ten times the number of landmarks is used if
        that is larger.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kreinlearn import KreinRidgeClassifier, Landmarks
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KreinRidgeClassifier(landmarks=Landmarks(30, "uniform"), random_state=0)
    >>> model.fit(X, y).n_landmarks_
    30
    """

    n: int | float | str | None = "auto"
    scheme: str = "auto"
    core: str | None = None
    rank: int | None = None
    pool: int = 8192


@dataclass(frozen=True)
class MapSpec:
    """Landmarks, rank and core of a feature map, as numbers."""

    n_landmarks: int
    scheme: str | None = None  # the name of a scheme; None: landmarks are given
    given: Array | Objects | None = None  # row numbers, or objects from outside X
    by_number: bool = True  # whether the given landmarks are row numbers
    rank: int | None = None
    core: str = "plain"
    method: str = "gram"
    tol: float | None = None  # the error at which landmarks stop growing; None: they do not grow
    pool: int = 8192
    eligible: Array | None = None  # rows that may be landmarks; None: all
    wants_pool: bool = False  # rows beside the landmarks are looked at, whatever the scheme

    @property
    def sketch(self) -> int:
        """Columns of the paper's uniform sketch: as many as the rank that is asked for."""
        return min(self.n_landmarks, self.rank or 200)

    def pool_size(self, n: int) -> int:
        """How many of n rows are looked at when landmarks are chosen and the core is fitted."""
        return min(n, max(self.pool, POOL_PER_LANDMARK * self.n_landmarks))

    def pool_rows(self, n: int, rng: np.random.Generator) -> Array:
        """A uniform sample of rows, as large as the scheme and the core need it."""
        eligible = np.arange(n) if self.eligible is None else self.eligible
        size = self.pool_size(len(eligible))
        if size == len(eligible):
            return eligible
        if self.core != "ls" and self.tol is None and not self.wants_pool:
            if self.scheme is None:
                size = 0
            elif self.scheme == "uniform":
                size = self.n_landmarks
        return np.sort(rng.choice(eligible, size, replace=False))
