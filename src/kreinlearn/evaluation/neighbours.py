"""k nearest neighbours by a similarity or dissimilarity: the baseline that fits nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from kreinlearn.data.tiles import length, row_blocks
from kreinlearn.estimators.transformer import KreinNystroem
from kreinlearn.pairs.evaluate import evaluate
from kreinlearn.sums.parallel import map_blocks, serial_blas, worker_count

Array = NDArray[Any]
NUMBERS = (1, 3, 5, 9, 15)  # of neighbours, to choose from
CLOSER = 1e-6  # by which a vote counts more than that of the next neighbour


class NearestNeighbours:
    """The class most frequent among, or the mean of, the k nearest training objects.

    k is that of the smallest leave-one-out error among the training objects. Similarities are
    ranked by the squared distance k(x, x) + k(z, z) - 2 k(x, z), which may be negative; vectors,
    whose similarity may rise again far away, by the Euclidean distance.
    """

    def __init__(self, model: KreinNystroem, *, classifies: bool) -> None:
        self.model, self.classifies = model, classifies

    def fit(self, X: Any, y: Array) -> Self:
        kernel = self.model._resolved_kernel()
        if kernel.domain.is_vectors and not kernel.is_dissimilarity:
            self.model.set_params(kernel="euclidean", kernel_params=None)
        self.X_, self.kernel_ = self.model._prepared(X, np.random.default_rng(0))
        if self.classifies:
            self.classes_, y = np.unique(y, return_inverse=True)
        self.y_, n = y, length(self.X_)
        self._Z = self.kernel_.select(self.X_, np.arange(n))
        self._own = self._offsets(n)
        known = self._nearest(self.X_, but_itself=True)
        numbers = [k for k in NUMBERS if k <= known.shape[1]] or [1]
        self.k_ = min(numbers, key=lambda k: self._loss(known[:, :k]))
        return self

    def predict(self, X: Any) -> Array:
        X = self.model._validated(X, self.kernel_, reset=False)
        found = self._of(self._nearest(X)[:, : self.k_])
        return np.asarray(self.classes_[found] if self.classifies else found)

    def _offsets(self, n: int) -> Array | None:
        """k(z, z) of the training objects; None: values are dissimilarities."""
        given = self.kernel_.domain.is_matrix
        if self.kernel_.is_dissimilarity or self.kernel_.of_dissimilarities:
            return None
        return np.asarray(self.kernel_.diagonal(np.arange(n) if given else self.X_))

    def _columns(self) -> Callable[[Any], Array]:
        if self.kernel_.domain.is_matrix:
            return np.asarray
        return self.kernel_.columns(self._Z)

    def _nearest(self, X: Any, *, but_itself: bool = False) -> Array:  # (n, up to 15)
        """Training rows by increasing distance, a block of rows at a time."""
        n, m, columns = length(X), length(self.X_), self._columns()
        most = min(max(NUMBERS), m - but_itself)
        nearest = np.empty((n, most), dtype=np.intp)

        def one_block(block: tuple[Array, Any]) -> None:
            numbers, A = block
            K = evaluate(columns, A, numbers, np.arange(m))
            D = K if self._own is None else self._own - 2 * K
            if but_itself:
                D = D.astype(np.float64)
                D[np.arange(len(numbers)), numbers] = np.inf
            nearest[numbers] = np.argsort(D, axis=1, kind="stable")[:, :most]

        workers = worker_count(self.model.n_jobs) if self.kernel_.threads else 1
        try:
            with serial_blas():
                map_blocks(one_block, row_blocks(X, np.empty(0, dtype=np.intp)), workers=workers)
        finally:
            self.model._keep_kernel(self.kernel_)
        return nearest

    def _of(self, nearest: Array) -> Array:  # (n, k) -> (n,) or (n, outputs)
        if not self.classifies:
            return np.asarray(self.y_[nearest].mean(axis=1))
        votes = np.zeros((len(nearest), len(self.classes_)))
        for rank, rows in enumerate(nearest.T):
            votes[np.arange(len(rows)), self.y_[rows]] += 1 - CLOSER * rank
        return votes.argmax(axis=1)

    def _loss(self, nearest: Array) -> float:
        if not nearest.shape[1]:
            return 0.0
        found = self._of(nearest)
        return float(np.mean(found != self.y_ if self.classifies else np.square(found - self.y_)))
