"""Problems with fewer rows than features, solved in the span of the rows."""

from __future__ import annotations

import numpy as np

from kreinlearn.solvers import Array


def scaling(penalty: Array) -> tuple[Array, Array]:  # (r,) -> (r,), (r,)
    """Factors of the features that turn every positive penalty into 1, and these penalties."""
    positive = penalty > 0
    scale = 1 / np.sqrt(np.where(positive, penalty, 1.0))
    return scale, positive.astype(np.float64)


def in_span(Phi: Array, penalty: Array) -> tuple[Array, Array, Array]:
    """An equivalent problem with as few features as possible.

    Returns features F (n, p), their penalties, each 1 or 0, and the way back (r, p): coefficients
    v of F are coefficients ``back @ v`` of Phi.
    """
    scale, unit = scaling(penalty)
    F = Phi * scale
    if len(F) >= F.shape[1] or not unit.all():
        return F, unit, np.diag(scale)
    D, U = np.linalg.eigh(F @ F.T)
    first = np.searchsorted(D, len(D) * np.finfo(np.float64).eps * D[-1], "right")
    U, root = U[:, first:], np.sqrt(D[first:])
    return U * root, np.ones(len(root)), scale[:, None] * (F.T @ (U / root))
