"""Which similarity is meant: the one that is named, or one that suits the file."""

from __future__ import annotations

import argparse
from difflib import get_close_matches
from typing import Any

import numpy as np

from kreinlearn.data.validation import looks_like_distances
from kreinlearn.kernels import Kernel, registered, resolve
from kreinlearn.kernels.base import symmetry_rtol
from kreinlearn.kernels.scikit import (
    SklearnKernel,
    SklearnMetric,
    sklearn_kernel_names,
    sklearn_metric_names,
)

CORNER = 300  # the rows and columns of a matrix that decide whether it is symmetric


def names() -> list[str]:
    return sorted({*registered(), *sklearn_kernel_names(), *sklearn_metric_names()})


def named(options: argparse.Namespace) -> Kernel | None:
    """Return the kernel of --kernel, or None without it; a wrong name is a wrong call."""
    name, params = options.kernel, dict(options.kernel_param)
    if name is None:
        if params:
            options.parser.error("--kernel-param belongs to a kernel: give --kernel too")
        return None
    if name not in names():
        close = get_close_matches(name.lower(), names(), n=3)
        meant = f"did you mean {' or '.join(close)}?" if close else f"known: {', '.join(names())}"
        options.parser.error(f"--kernel {name}: there is no such kernel; {meant}")
    known = _parameters(resolve(name))
    for one in params:
        if one not in known:
            options.parser.error(
                f"--kernel-param {one}: {name} has no such parameter; there are: "
                f"{', '.join(known.values()) or 'none'}"
            )
    try:
        return resolve(name, params)
    except (TypeError, ValueError) as error:
        options.parser.error(f"--kernel-param: {error.__cause__ or error}")
        raise  # never reached: the line above exits


def _parameters(kernel: Kernel) -> dict[str, str]:
    """Return the parameters by name, as they are shown: with their defaults, if these are known."""
    if kernel.domain.is_matrix:
        return {}
    if isinstance(kernel, SklearnKernel | SklearnMetric):
        return {name: name for name in sorted(kernel.known_params())}
    return {name: f"{name}={value}" for name, value in kernel.get_params(deep=False).items()}


def for_numbers(X: Any) -> str:
    """Return the kernel for numbers: a symmetric matrix holds similarities, or distances."""
    corner = np.asarray(X[:CORNER, :CORNER]) if X.ndim == 2 else None
    if corner is None or not X.shape[0] == X.shape[1] > 2 or not _is_symmetric(corner):
        return "gaussian"
    return "precomputed_dissimilarity" if looks_like_distances(corner) else "precomputed"


def _is_symmetric(corner: Any) -> bool:
    gap, largest = np.abs(corner - corner.T).max(), np.abs(corner).max()
    return bool(gap <= symmetry_rtol(corner.dtype) * largest)
