"""The attributes of fitted estimators: which kind of value each has, and what is stored of it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

# The attributes that are stored as they are, by the kind of their values and, after the colon, by
# their shapes: m landmarks, r dimensions, k eigenvalues, d features, c classes, q outputs; "|" is
# "or", and "*" any number. A "trail" is a record of the fit that no prediction uses.
KINDS = {
    "int": "n_features_in_ n_landmarks_ rank_ n_active_landmarks_ n_iter_ _n_chosen",
    "float": (
        "lambda_plus_ lambda_minus_ lambda_l1_ C_ cv_loss_ cv_score_ expected_error_ "
        "expected_error_std_"
    ),
    "bool": "_one_output",
    "str": "similarity_ multi_class_ decision_ _column",
    "dict": "kernel_params_ multi_class_errors_ part_weights_ _sklearn_output_config",
    "dtype": "dtype_",
    "ErrorEstimate": "error_",
    "FeatureMap": "_map",
    "Sums": "_sums",
    "NeighbourScores": "_neighbours",
    "labels: c": "classes_",
    "labels: d": "feature_names_in_",
    "integers: m": "landmark_indices_",
    "integers: *": "support_",
    "signs: r": "signature_",
    "numbers: k": "eigenvalues_",
    "numbers: | r": "_mean",
    "numbers: q": "radius_ _intercept",
    "numbers: | q": "intercept_ _shift",
    "numbers: r | q r": "coef_",
    "numbers: m | m q": "dual_coef_",
    "numbers: *": "_range",
    "trail: r": "explained_abs_ratio_ explained_squared_ratio_",
    "trail: *": "C_grid_ cv_scores_",
    "trail: * *": "cv_trials_ l1_path_",
}
KIND_OF = {name: kind for kind, names in KINDS.items() for name in names.split()}
# Made again when a model is loaded: the kernel by its name, its parameters and what it has learned;
# the landmarks and their columns from the objects; the calibration from two numbers per sigmoid.
REBUILT = {"kernel_", "landmarks_", "_columns", "_calibration"}
# Not stored: folds_ has one number per training row; choices_ is a trail, whose outcome is in
# kernel_params_ and similarity_; the others say how scikit-learn passes metadata and callbacks.
LEFT_OUT = {"folds_", "choices_", "_metadata_request", "_skl_callbacks"}
OF_SKLEARN = {"_sklearn_output_config"}  # left by set_output

PLAIN: dict[str, type | tuple[type, ...]] = {
    "int": (int, np.integer), "float": (float, np.floating), "bool": bool, "str": str,
    "dict": dict,
}  # fmt: skip
LETTERS = {"labels": "UOibuf", "integers": "iu", "signs": "i", "numbers": "f", "trail": "f"}


def fits(name: str, value: object, sizes: Mapping[str, object]) -> bool:
    """Whether an attribute may have this value, in a model of these sizes."""
    kind, _, shapes = KIND_OF[name].partition(":")
    if kind in PLAIN:
        return isinstance(value, PLAIN[kind]) and isinstance(value, bool) == (kind == "bool")
    if kind == "dtype":
        return value in (np.dtype(np.float32), np.dtype(np.float64))
    if kind not in LETTERS:  # a record
        return type(value).__name__ == kind
    if value is None:
        return name == "landmark_indices_"
    if not isinstance(value, np.ndarray) and not (kind == "numbers" and np.isscalar(value)):
        return False
    array = np.asarray(value)
    good = array.dtype.kind in LETTERS[kind]
    if good and kind == "numbers":
        good = array.dtype == np.float64 and bool(np.isfinite(array).all())
    if good and kind == "signs":
        good = bool(np.isin(array, (-1, 1)).all())
    return good and any(_is_shape(array.shape, one.split(), sizes) for one in shapes.split("|"))


def _is_shape(shape: tuple[int, ...], letters: list[str], sizes: Mapping[str, object]) -> bool:
    same = [one == "*" or n == sizes[one] for n, one in zip(shape, letters, strict=False)]
    return len(shape) == len(letters) and all(same)
