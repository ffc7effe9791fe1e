"""A given matrix as a kernel: rows are objects, columns are the training objects."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from kreinlearn.data.tiles import is_everything
from kreinlearn.kernels.base import (
    Array,
    Columns,
    Kernel,
    Objects,
    delivered,
    register,
    symmetrised,
)
from kreinlearn.kernels.dissimilarity import require_squares
from kreinlearn.kernels.domains import Domain, Matrix
from kreinlearn.kernels.domains import Objects as AnyObjects


class Precomputed(Kernel):
    """A given matrix as a kernel; the columns of landmarks are picked out of it.

    Parameters
    ----------
    is_dissimilarity : bool, default=False
        Whether the matrix holds dissimilarities.

    Examples
    --------
    >>> import numpy as np
    >>> from kreinlearn.kernels import Precomputed
    >>> K = np.array([[1.0, -2.0], [-2.0, 1.0]])
    >>> Precomputed().columns([1])(K)
    array([[-2.],
           [ 1.]])
    """

    landmark_rows: Array | None = None  # row numbers of the columns, if they are not all rows

    def __init__(self, is_dissimilarity: bool = False) -> None:
        self.is_dissimilarity = is_dissimilarity

    @property
    def of_dissimilarities(self) -> bool:  # type: ignore[override]
        """Whether the given matrix holds dissimilarities, whatever is made of them."""
        return self.is_dissimilarity

    @property
    def domain(self) -> Matrix:
        return Matrix(self.of_dissimilarities)

    def columns(self, Z: Objects) -> Columns:  # Z: column numbers
        return PickedColumns(np.asarray(Z))

    def select(self, X: Objects, indices: Array) -> Array:
        if self.landmark_rows is None:
            return np.asarray(indices)
        if not np.isin(indices, self.landmark_rows).all():
            raise ValueError("pairs outside the landmark columns are not in the given matrix")
        order = np.argsort(self.landmark_rows)
        return order[np.searchsorted(self.landmark_rows, indices, sorter=order)]

    def fit(self, X: Array, rng: np.random.Generator) -> Self:
        self.diagonal_ = np.diagonal(X).astype(np.float64)
        return self

    def diagonal(self, A: Objects) -> Array:  # A: row numbers
        return self.diagonal_[A]


class PickedColumns:
    """From rows of a matrix to some of their columns."""

    needs_all_columns = False  # of a matrix, beside those that are picked

    def __init__(self, numbers: Array) -> None:
        self.numbers = numbers

    def __call__(self, A: Array, out: Array | None = None) -> Array:
        if out is None and is_everything(self.numbers, A.shape[1]):
            whole = np.ascontiguousarray(A, dtype=np.float64).view()
            whole.flags.writeable = False  # it may be what the user has given
            return whole
        if out is None:
            return np.ascontiguousarray(A[:, self.numbers], dtype=np.float64)
        return np.take(A, self.numbers, axis=1, out=out[: len(A)])


class PrecomputedDissimilarity(Precomputed, names=["precomputed_dissimilarity"]):
    """-1/2 J (D o D) J of a given square matrix D of dissimilarities, as a similarity.

    J centres on all training objects. The result is positive semi-definite if D holds Euclidean
    distances.

    Examples
    --------
    >>> import numpy as np
    >>> from kreinlearn.kernels import PrecomputedDissimilarity
    >>> D = np.array([[0.0, 2.0], [2.0, 0.0]])
    >>> PrecomputedDissimilarity().fit(D, np.random.default_rng(0)).columns([0, 1])(D)
    array([[ 1., -1.],
           [-1.,  1.]])
    """

    def __init__(self) -> None:
        super().__init__(is_dissimilarity=False)  # what comes out is a similarity

    of_dissimilarities = True

    def fit(self, X: Array, rng: np.random.Generator) -> Self:
        require_squares(X)
        self.offsets_ = np.einsum("ij,ij->j", X, X, dtype=np.float64) / len(X)
        self.c_ = float(self.offsets_.mean())
        self.diagonal_ = self.offsets_ - 0.5 * self.c_
        return self

    def columns(self, Z: Objects) -> Columns:
        return CentredColumns(np.asarray(Z), self.offsets_[Z], self.c_)


class CentredColumns(PickedColumns):
    """From rows of dissimilarities to columns of the centred similarity."""

    needs_all_columns = True

    def __init__(self, numbers: Array, offsets: Array, c: float) -> None:
        super().__init__(numbers)
        self.offsets, self.c = offsets, c

    def __call__(self, A: Array, out: Array | None = None) -> Array:
        a = np.einsum("ij,ij->i", A, A, dtype=np.float64) / A.shape[1]
        D = np.square(super().__call__(A, out), out=out if out is None else out[: len(A)])
        D -= a[:, None]
        D -= self.offsets
        D += self.c
        D *= -0.5
        return D


def double_centre(D: Array) -> Array:
    """The similarity K = -1/2 J (D o D) J of a symmetric matrix D of dissimilarities.

    Parameters
    ----------
    D : array of shape (n, n)
        Dissimilarities.

    Returns
    -------
    array of shape (n, n)
        Its rows and columns sum to zero.

    Examples
    --------
    >>> import numpy as np
    >>> from kreinlearn.kernels import double_centre
    >>> double_centre(np.array([[0.0, 2.0], [2.0, 0.0]]))
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    squares = np.square(D)
    means = squares.mean(axis=1)
    return np.asarray(-0.5 * (squares - means[:, None] - means + means.mean()))


def _no_params(**params: Any) -> Precomputed:
    if params:
        raise TypeError(f"a given matrix has no parameters, got {sorted(params)}")
    return Precomputed()


register("precomputed", _no_params, replace=True)


class GivenMatrix(Kernel):
    """A given matrix as a kernel of row numbers: k(i, j) = matrix[i, j].

    The objects are the row numbers of the matrix. So one X serves several matrices, and X can be
    divided into parts, as cross-validation does. The matrix holds all objects that will ever be
    asked for. In a list ``kernel=[K, D]`` a matrix stands for this kernel.

    Parameters
    ----------
    matrix : array-like of shape (n, n)
        Similarities or dissimilarities of all objects. If it is not symmetric, it is averaged with
        its transpose.
    is_dissimilarity : bool, default=False
        Whether it holds dissimilarities. In a list, a matrix with a zero diagonal and no negative
        entry is taken for one.

    Examples
    --------
    >>> from kreinlearn.kernels import GivenMatrix
    >>> GivenMatrix([[0.0, 2.0], [2.0, 0.0]], is_dissimilarity=True)([0], [0, 1])
    array([[0., 2.]])
    """

    domain: Domain = AnyObjects()
    costly = False

    def __init__(self, matrix: ArrayLike, is_dissimilarity: bool = False) -> None:
        self.matrix = matrix
        self.is_dissimilarity = is_dissimilarity

    def fit(self, X: Objects, rng: np.random.Generator) -> Self:
        K = self.values
        if not np.isfinite(K).all():
            i, j = np.argwhere(~np.isfinite(K))[0]
            raise ValueError(f"the matrix is {K[i, j]} at ({i}, {j}); all values must be finite")
        self._numbers(X)
        return self

    @property
    def values(self) -> Array:
        """The matrix, checked and made symmetric."""
        K = np.asarray(self.matrix, dtype=np.float64)
        if K.ndim != 2 or K.shape[0] != K.shape[1]:
            raise ValueError(
                f"a given matrix must be square, got an array of shape {K.shape}; pass the values "
                "of all pairs of objects, and their row numbers as X"
            )
        return K if np.array_equal(K, K.T) else symmetrised(K)

    def _numbers(self, X: Objects) -> Array:
        """Objects as row numbers, checked."""
        n, given = len(np.asarray(self.matrix)), np.asarray(X)
        if given.dtype.kind not in "iu" or given.ndim != 1:
            raise ValueError(
                f"the objects of a given matrix are its row numbers, 0 to {n - 1}, got "
                f"{X[0]!r:.60} as the first; pass X = np.arange({n}), or a part of it"
            )
        wrong = np.flatnonzero((given < 0) | (given >= n))
        if len(wrong):
            raise ValueError(
                f"object {wrong[0]} is row number {given[wrong[0]]}, and a given matrix has {n} "
                "rows; all matrices must hold all objects"
            )
        return given.astype(np.intp)

    def columns(self, Z: Objects) -> Columns:
        K, numbers = self.values, self._numbers(Z)

        def picked(A: Objects, out: Array | None = None) -> Array:
            return delivered(K[np.ix_(self._numbers(A), numbers)], out)

        return picked

    def diagonal(self, A: Objects) -> Array:
        return np.asarray(np.diagonal(self.values)[self._numbers(A)])
