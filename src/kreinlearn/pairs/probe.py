"""A look at a user's own function: is it symmetric, does it repeat, is it a distance?"""

from __future__ import annotations

import numpy as np

from kreinlearn._warnings import warn
from kreinlearn.data.validation import looks_like_distances
from kreinlearn.kernels.base import Array, Kernel, Objects
from kreinlearn.kernels.callables import CallableKernel, probe

COUNTED = "k(x, z) counts with z the landmark, and of two landmarks one order or the mean"


def warn_of_probe(
    kernel: Kernel, Z: Objects, K_ZZ: Array, rng: np.random.Generator, used: str
) -> None:
    """Warn if a user's function is asymmetric, not deterministic, or looks like a distance."""
    asymmetry, drift = probe(kernel, Z, rng)
    if drift > 0:
        warn(
            f"the kernel is not deterministic: repeated values differ by {drift:.3g} of the "
            "largest; results will not repeat"
        )
    elif asymmetry > 0:
        warn(
            f"the kernel is asymmetric: k(x, z) - k(z, x) is up to {asymmetry:.3g} of the largest "
            f"value; {used}"
        )
    similarity = isinstance(kernel, CallableKernel) and not kernel.is_dissimilarity
    if similarity and looks_like_distances(K_ZZ):
        warn(
            "the kernel is zero on the diagonal and never negative: if it is a dissimilarity "
            "pass kernel=dissimilarity(...)"
        )
