"""Fewer rows than features: the same problem in the span of the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def scaling(penalty: Array) -> tuple[Array, Array]:
    """Factors of the features that make every positive penalty 1, and the penalties then."""
    positive = penalty > 0
    scale = 1 / np.sqrt(np.where(positive, penalty, 1.0))
    return scale, positive.astype(np.float64)


def spanned(Phi: Array) -> tuple[Array, Array]:
    """Features (n, <= n) with the same products, and the way back: Phi z is F v if z = back v."""
    D, U = np.linalg.eigh(Phi @ Phi.T)
    first = np.searchsorted(D, len(D) * np.finfo(np.float64).eps * D[-1], "right")
    U, root = U[:, first:], np.sqrt(D[first:])
    return U * root, Phi.T @ (U / root)


def in_span(Phi: Array, penalty: Array) -> tuple[Array, Array, Array]:
    """Features, penalties of 1 or 0, and the way back (r, p), small where there are few rows."""
    scale, unit = scaling(penalty)
    F = Phi * scale
    if len(F) >= F.shape[1] or not unit.all():
        return F, unit, np.diag(scale)
    F, back = spanned(F)
    return F, np.ones(F.shape[1]), scale[:, None] * back
