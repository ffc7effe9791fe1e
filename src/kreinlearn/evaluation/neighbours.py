"""k nearest neighbours by a similarity or dissimilarity: the baseline that fits nothing."""

from __future__ import annotations

from typing import Self

import numpy as np

from kreinlearn.data.tiles import length, row_blocks
from kreinlearn.inspection.arguments import Array, KernelLike, KernelParams, Objects
from kreinlearn.inspection.prepared import prepare
from kreinlearn.kernels import resolve
from kreinlearn.pairs.evaluate import evaluate
from kreinlearn.sums.parallel import map_blocks, serial_blas

NUMBERS = (1, 3, 5, 9, 15)  # of neighbours, to choose from
CLOSER = 1e-6  # by which the vote of a neighbour counts more than that of the next one


class NearestNeighbours:
    """Predict the most frequent class, or the mean, of the k nearest training objects.

    The number k is the one with the smallest leave-one-out error among the training objects.
    Similarities are ranked by the squared distance k(x, x) + k(z, z) - 2 k(x, z), which may be
    negative. Vectors are ranked by the Euclidean distance, because their similarity may rise again
    far away.

    Parameters
    ----------
    kernel : str, callable or Kernel
        The similarity or dissimilarity.
    kernel_params : dict or None, default=None
        Parameters of the kernel.
    classifies : bool
        Whether to predict classes; otherwise numbers.
    **parameters : object
        Further parameters of KreinNystroem that say how the kernel is evaluated.
    """

    def __init__(
        self, kernel: KernelLike, kernel_params: KernelParams = None, *, classifies: bool,
        **parameters: object,
    ) -> None:  # fmt: skip
        self.kernel, self.kernel_params, self.classifies = kernel, kernel_params, classifies
        self.parameters = parameters

    def fit(self, X: Objects, y: Array) -> Self:
        """Store the training objects and choose the number of neighbours."""
        spec, params = self.kernel, self.kernel_params
        kernel = resolve(spec, params)
        if kernel.domain.is_vectors and not kernel.is_dissimilarity:
            spec, params = "euclidean", None
        rng = np.random.default_rng(0)
        self.train_ = prepare(X, spec, rng, kernel_params=params, **self.parameters)
        if self.classifies:
            self.classes_, y = np.unique(y, return_inverse=True)
        self.y_ = y
        self.own_ = self._own_similarities()
        nearest = self._nearest(self.train_.X, without_itself=True)
        numbers = [k for k in NUMBERS if k <= nearest.shape[1]] or [1]
        self.k_ = min(numbers, key=lambda k: self._loss(nearest[:, :k]))
        return self

    def predict(self, X: Objects) -> Array:
        """Predict labels or numbers for new objects."""
        predicted = self._mean(self._nearest(self.train_.validated(X))[:, : self.k_])
        return np.asarray(self.classes_[predicted] if self.classifies else predicted)

    def _own_similarities(self) -> Array | None:
        """k(z, z) of the training objects; None if the values are dissimilarities."""
        kernel, X = self.train_.kernel, self.train_.X
        if kernel.is_dissimilarity or kernel.of_dissimilarities:
            return None
        given = kernel.domain.is_matrix
        return np.asarray(kernel.diagonal(np.arange(self.train_.n) if given else X))

    def _nearest(self, X: Objects, *, without_itself: bool = False) -> Array:  # (n, up to 15)
        """Row numbers of training objects by increasing distance, for each row of X."""
        kernel, m = self.train_.kernel, self.train_.n
        Z = kernel.select(self.train_.X, np.arange(m))
        columns = np.asarray if kernel.domain.is_matrix else kernel.columns(Z)
        most = min(max(NUMBERS), m - without_itself)
        nearest = np.empty((length(X), most), dtype=np.intp)

        def one_block(block: tuple[Array, Objects]) -> None:
            rows, A = block
            K = evaluate(columns, A, rows, np.arange(m))
            D = K if self.own_ is None else self.own_ - 2 * K
            if without_itself:
                D = D.astype(np.float64)
                D[np.arange(len(rows)), rows] = np.inf
            nearest[rows] = np.argsort(D, axis=1, kind="stable")[:, :most]

        blocks = row_blocks(X, np.empty(0, dtype=np.intp))
        try:
            with serial_blas():
                map_blocks(one_block, blocks, workers=self.train_.workers)
        finally:
            self.train_.release()
        return nearest

    def _mean(self, nearest: Array) -> Array:  # (n, k) -> (n,) or (n, outputs)
        """The class with most votes, or the mean of the targets."""
        if not self.classifies:
            return np.asarray(self.y_[nearest].mean(axis=1))
        votes = np.zeros((len(nearest), len(self.classes_)))
        for rank, rows in enumerate(nearest.T):
            votes[np.arange(len(rows)), self.y_[rows]] += 1 - CLOSER * rank
        return votes.argmax(axis=1)

    def _loss(self, nearest: Array) -> float:
        if not nearest.shape[1]:
            return 0.0
        predicted = self._mean(nearest)
        wrong = predicted != self.y_ if self.classifies else np.square(predicted - self.y_)
        return float(np.mean(wrong))
