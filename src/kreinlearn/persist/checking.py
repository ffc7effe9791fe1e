"""Values by which a loaded model is recognised as the one that was saved."""

from __future__ import annotations

import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator

from kreinlearn.data.tiles import length, take
from kreinlearn.kernels import Kernel
from kreinlearn.kernels.base import Objects, symmetry_rtol
from kreinlearn.persist.encoding import Array
from kreinlearn.persist.errors import GivenError, ModelFormatError, require

OBJECTS = 4  # whose pairs are evaluated
RTOL = 1e-8  # of the sum of magnitudes: another machine may round otherwise


def kernel_values(kernel: Kernel, objects: Objects) -> Array | None:
    """Kernel values among a few objects; None if the values are given and not evaluated."""
    if kernel.domain.is_matrix:
        return None
    n = length(objects)
    some = take(objects, np.unique(np.linspace(0, n - 1, OBJECTS).astype(np.intp)))
    return np.asarray(kernel.anew(some, some), dtype=np.float64)


def require_same_kernel(kernel: Kernel, objects: Objects, before: object) -> None:
    """Raise an error if the kernel gives other values than before.

    It is a GivenError if the values come from a function of the user.
    """
    now = kernel_values(kernel, objects)
    if before is None or now is None:
        require(before is now is None, "values of its kernel are missing")
        return
    before = _required(before, now, "values of its kernel")
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


def outputs(estimator: BaseEstimator) -> Array:  # (2, k)
    """What the model predicts for made-up kernel values, and the magnitude of the terms.

    The values come from a formula, so that no kernel is evaluated.
    """
    fitted = vars(estimator)
    columns = fitted["_columns"]
    given = estimator.kernel_.domain.is_matrix
    n = estimator.n_features_in_ if given else length(columns.objects)
    row = 1.0 + np.cos(np.arange(n, dtype=np.float64))[None]
    weights = _weights(estimator)
    with np.errstate(all="ignore"):
        C = columns(row) if given else columns.transformed(row)
        predicted = np.concatenate([C @ weights, np.abs(C) @ np.abs(weights)])
    constants = np.ravel(fitted.get("_intercept", fitted.get("_mean", [])))
    constants = np.concatenate([constants, np.ravel(fitted.get("cluster_centers_", []))])
    parts = [*fitted.get("part_weights_", {}).values(), *fitted.get("_range", [])]
    constants = np.concatenate([constants, parts])
    calibration = fitted.get("_calibration")
    probabilities = [] if calibration is None else expit(-(calibration.pairs @ [0.5, 1.0]))
    magnitudes = np.abs(constants), np.ones(len(probabilities))
    return np.hstack([predicted, [[*constants, *probabilities], np.hstack(magnitudes)]])


def _weights(estimator: BaseEstimator) -> Array:  # (m, k)
    """Everything that kernel values are multiplied by: for predictions, features and pictures."""
    fitted, m = vars(estimator), estimator.n_landmarks_
    parts = [fitted["dual_coef_"].reshape(m, -1)] if "dual_coef_" in fitted else []
    if "_map" in fitted:
        parts += [fitted["_map"].W, fitted["_map"].E]
    return np.hstack(parts)


def require_same_outputs(now: Array, before: object) -> None:
    """Raise a ModelFormatError if the outputs differ by more than rounding."""
    before = _required(before, now, "values to check the model by")
    with np.errstate(all="ignore"):
        same = (np.abs(now - before) <= RTOL * before[1]) | (now == before)
    require(same.all(), "its arrays do not give what the model gave when it was saved")


def _required(before: object, now: Array, name: str) -> Array:
    """The values from a file, which must be of the same form as those of now."""
    if isinstance(before, np.ndarray) and before.shape == now.shape and before.dtype == np.float64:
        return before
    raise ModelFormatError(f"{name} are missing")
