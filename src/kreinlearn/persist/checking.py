"""Values by which a model that was read is known to be the one that was written."""

from __future__ import annotations

from typing import Any

import numpy as np

from kreinlearn.data.tiles import length, take
from kreinlearn.kernels.base import Array, symmetry_rtol
from kreinlearn.persist.errors import GivenError, ModelFormatError, require

OBJECTS = 4  # whose pairs are evaluated
RTOL = 1e-8  # of the sum of magnitudes: what another machine may round otherwise


def kernel_values(kernel: Any, objects: Any) -> Array | None:
    """Of all pairs of a few objects; None if the values are given, not evaluated."""
    if kernel.domain.is_matrix:
        return None
    n = length(objects)
    some = take(objects, np.unique(np.linspace(0, n - 1, OBJECTS).astype(np.intp)))
    return np.asarray(kernel.anew(some, some), dtype=np.float64)


def require_same_kernel(kernel: Any, objects: Any, before: Any) -> None:
    """GivenError if a person's function gives other values now, ModelFormatError otherwise."""
    now = kernel_values(kernel, objects)
    if before is None or now is None:
        require(before is now is None, "values of its kernel are missing")
        return
    good = isinstance(before, np.ndarray) and before.shape == now.shape
    require(good and before.dtype == np.float64, "values of its kernel are missing")
    with np.errstate(all="ignore"):
        gap = np.abs(now - before) > symmetry_rtol(np.float32) * np.abs(before).max()
    if not gap.any() and np.isfinite(before).all():
        return
    i, j = np.unravel_index(int(np.argmax(gap)), gap.shape)
    error = GivenError if kernel.untrusted else ModelFormatError
    raise error(
        f"for two of its objects the kernel gives {now[i, j]:.6g} now and gave {before[i, j]:.6g} "
        "when the model was saved; it is another kernel, or another version of it"
    )


def outputs(estimator: Any) -> Array:  # (2, k)
    """What the model makes of kernel values that are no object's, and the size of its terms.

    They come from a formula, so that no kernel is evaluated.
    """
    columns, weights = estimator._columns, _weights(estimator)
    given = estimator.kernel_.domain.is_matrix
    n = estimator.n_features_in_ if given else length(columns.objects)
    row = 1.0 + np.cos(np.arange(n, dtype=np.float64))[None]
    with np.errstate(all="ignore"):
        C = columns(row) if given else columns.finish(row)
        found = np.concatenate([C @ weights, np.abs(C) @ np.abs(weights)])
    return np.hstack([found, _constants(estimator), _probabilities(estimator)])


def _constants(estimator: Any) -> Array:  # (2, k)
    """What prediction adds or takes away, and its size."""
    held = vars(estimator)
    constants = np.ravel(held.get("_intercept", held.get("_mean", [])))
    return np.array([constants, np.abs(constants)])


def _probabilities(estimator: Any) -> Array:  # (2, k)
    """Of one decision value, by each sigmoid of the calibration."""
    calibration = vars(estimator).get("_calibration")
    sigmoids = [] if calibration is None else calibration.calibrators
    found = [float(sigmoid.predict(np.array([0.5]))[0]) for sigmoid in sigmoids]
    return np.array([found, [1.0] * len(found)])


def _weights(estimator: Any) -> Array:
    """All that kernel values are multiplied by: for predictions, features and pictures."""
    held, m = vars(estimator), estimator.n_landmarks_
    parts = [held["dual_coef_"].reshape(m, -1)] if "dual_coef_" in held else []
    if "_map" in held:
        parts += [estimator._map.W, estimator._map.E]
    return np.hstack(parts)


def require_same_outputs(now: Array, before: Any) -> None:
    good = isinstance(before, np.ndarray) and before.shape == now.shape
    require(good and before.dtype == np.float64, "values to check the model by are missing")
    with np.errstate(all="ignore"):
        same = (np.abs(now - before) <= RTOL * before[1]) | (now == before)
    require(same.all(), "its arrays do not give what the model gave when it was saved")
