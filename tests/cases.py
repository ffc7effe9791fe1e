"""One table of hard symmetric matrices with prescribed spectra; numpy only.

``CASES[name](n, rng)`` gives K (n, n), exactly symmetric, and its true eigenvalues (n,), ascending.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Case = tuple[Array, Array]  # K, eigenvalues
Builder = Callable[[int, np.random.Generator], Case]


def random_orthogonal(n: int, rng: np.random.Generator) -> Array:
    """Uniform over the orthogonal group: QR of a Gaussian matrix, with the signs of R undone."""
    Q, R = np.linalg.qr(rng.standard_normal((n, n)))
    return np.asarray(Q * np.sign(np.diag(R)))


def with_spectrum(D: Array, rng: np.random.Generator) -> Case:
    """A dense matrix with these eigenvalues in a random basis."""
    Q = random_orthogonal(len(D), rng)
    K = (Q * D) @ Q.T
    return 0.5 * (K + K.T), np.sort(D)


def _signs(n: int, rng: np.random.Generator) -> Array:
    return rng.permuted(np.where(np.arange(n) % 2, -1.0, 1.0))


def _zero(n: int, rng: np.random.Generator) -> Case:
    return np.zeros((n, n)), np.zeros(n)


def _rank_one(n: int, rng: np.random.Generator) -> Case:
    D = np.zeros(n)
    D[0] = -3.0
    return with_spectrum(D, rng)


def _clustered(n: int, rng: np.random.Generator) -> Case:
    """Three tight clusters, 1e-14 wide: at 2, -1 and 1e-3."""
    centres = np.array([2.0, -1.0, 1e-3])[np.arange(n) % 3]
    return with_spectrum(centres * (1 + 1e-14 * rng.standard_normal(n)), rng)


def _geometric(n: int, rng: np.random.Generator) -> Case:
    """From 1 down to 1e-15 with random signs."""
    return with_spectrum(_signs(n, rng) * np.geomspace(1.0, 1e-15, n), rng)


def _arithmetic(n: int, rng: np.random.Generator) -> Case:
    return with_spectrum(_signs(n, rng) * np.arange(1.0, n + 1), rng)


def _plus_minus_one(n: int, rng: np.random.Generator) -> Case:
    return with_spectrum(_signs(n, rng), rng)


def _opposite_pairs(n: int, rng: np.random.Generator) -> Case:
    """Each magnitude once positive and once negative."""
    return with_spectrum(np.where(np.arange(n) % 2, -1.0, 1.0) * (1.0 + np.arange(n) // 2), rng)


def _one_huge(n: int, rng: np.random.Generator) -> Case:
    D = _signs(n, rng)
    D[0] = 1e10
    return with_spectrum(D, rng)


def _near_overflow(n: int, rng: np.random.Generator) -> Case:
    K, D = _arithmetic(n, rng)
    return K * 4.0**300, D * 4.0**300


def _near_underflow(n: int, rng: np.random.Generator) -> Case:
    K, D = _arithmetic(n, rng)
    return K * 4.0**-300, D * 4.0**-300


def _zero_diagonal(n: int, rng: np.random.Generator) -> Case:
    """A symmetric circulant with nothing on the diagonal: its eigenvalues are sums of cosines."""
    a = rng.standard_normal(n)
    a[0] = 0.0
    a = 0.5 * (a + a[-np.arange(n)])
    i = np.arange(n)
    D = np.cos(2 * np.pi / n * (np.outer(i, i) % n)) @ a
    return a[np.subtract.outer(i, i)], np.sort(D)


def _diagonal(n: int, rng: np.random.Generator) -> Case:
    D = _signs(n, rng) * np.arange(1.0, n + 1)
    return np.diag(D), np.sort(D)


def _permuted(n: int, rng: np.random.Generator) -> Case:
    """Objects similar to one partner each, in random order: eigenvalues +-s a pair."""
    s = np.repeat(1.0 + np.arange((n + 1) // 2), 2)[:n]
    partner = np.arange(n) ^ 1
    partner[partner >= n] = n - 1  # the odd one out is its own partner
    K = np.zeros((n, n))
    K[np.arange(n), partner] = s
    order = rng.permutation(n)
    return K[np.ix_(order, order)], np.sort(s * np.where(np.arange(n) > partner, -1.0, 1.0))


CASES: dict[str, Builder] = {
    "zero": _zero,
    "rank one": _rank_one,
    "clustered": _clustered,
    "geometric": _geometric,
    "arithmetic": _arithmetic,
    "plus minus one": _plus_minus_one,
    "opposite pairs": _opposite_pairs,
    "one huge": _one_huge,
    "near overflow": _near_overflow,
    "near underflow": _near_underflow,
    "zero diagonal": _zero_diagonal,
    "diagonal": _diagonal,
    "permuted": _permuted,
}
