"""What of a fitted estimator is stored, and how its parts must fit together.

Every attribute of a fit is in one of the tables here: a test compares them with what fits leave.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from kreinlearn.data.tiles import length
from kreinlearn.kernels.base import Kernel
from kreinlearn.nystrom.core import FeatureMap
from kreinlearn.persist.errors import ModelFormatError, require

TRANSFORMERS = {"KreinNystroem": "transformer", "KreinPCA": "transformer"}
REGRESSORS = {"KreinRidge": "ridge", "KreinVCRidge": "variance", "SimilarityRidge": "baselines"}
CLASSIFIERS = {
    "KreinRidgeClassifier": "ridge", "KreinVCRidgeClassifier": "variance",
    "SimilarityRidgeClassifier": "baselines", "KreinSVC": "svm", "SpectrumSVC": "spectrum_svc",
}  # fmt: skip
ESTIMATORS = TRANSFORMERS | REGRESSORS | CLASSIFIERS  # by name: their modules

# Stored as they are: a type, and shapes by letters: m landmarks, r dimensions, k eigenvalues,
# d features, c classes, q outputs; "|" is "or", "*" any.
STORED: dict[str, tuple[str, str]] = {
    "n_features_in_": ("int", ""),
    "feature_names_in_": ("labels", "d"),
    "n_landmarks_": ("int", ""),
    "landmark_indices_": ("integers", "m"),
    "rank_": ("int", ""),
    "dtype_": ("dtype", ""),
    "signature_": ("signs", "r"),
    "eigenvalues_": ("numbers", "k"),
    "explained_abs_ratio_": ("trail", "r"),
    "explained_squared_ratio_": ("trail", "r"),
    "error_": ("ErrorEstimate", ""),
    "coef_": ("numbers", "r|q r"),
    "dual_coef_": ("numbers", "m|m q"),
    "intercept_": ("numbers", "|q"),
    "lambda_plus_": ("float", ""),
    "lambda_minus_": ("float", ""),
    "lambda_l1_": ("float", ""),
    "radius_": ("numbers", "q"),
    "similarity_": ("str", ""),
    "kernel_params_": ("dict", ""),
    "classes_": ("labels", "c"),
    "multi_class_": ("str", ""),
    "multi_class_errors_": ("dict", ""),
    "n_active_landmarks_": ("int", ""),
    "n_iter_": ("int", ""),
    "support_": ("integers", "*"),
    "C_": ("float", ""),
    "C_grid_": ("trail", "*"),
    "cv_loss_": ("float", ""),
    "cv_score_": ("float", ""),
    "cv_scores_": ("trail", "*"),
    "cv_trials_": ("trail", "* *"),
    "l1_path_": ("trail", "* *"),
    "_column": ("str", ""),
    "_double": ("bool", ""),
    "_intercept": ("numbers", "q"),
    "_mean": ("numbers", "r"),
    "_n_chosen": ("int", ""),
    "_one_output": ("bool", ""),
    "_shift": ("numbers", "|q"),
    "_sums": ("Sums", ""),
    "_sklearn_output_config": ("dict", ""),
}
# Made again from what is stored, by ``loading``.
REBUILT = {
    "kernel_": "by its name and parameters, and what it has learned",
    "landmarks_": "the objects of the columns, or some of them",
    "_columns": "the kernel, the objects of its columns, and their transformation",
    "_calibration": "two numbers a sigmoid",
    "_map": "four arrays, of all but SpectrumSVC",
}
LEFT_OUT = {
    "folds_": "a number for every training row: a file would grow with them",
    "choices_": "a trail; what was chosen is in kernel_params_ and similarity_",
    "_metadata_request": "how scikit-learn passes metadata to a fit",
    "_skl_callbacks": "who is told of a fit",
}
# Parameters that only a fit uses, and what stands for them where they are not data.
FIT_ONLY: dict[str, Any] = {"cv": None, "scoring": None, "random_state": None}
ELSEWHERE = {"store"}  # a folder of the machine of the fit: never stored

ALWAYS = {"n_landmarks_", "landmark_indices_"}
LEARNED = ALWAYS | {"dual_coef_", "_intercept", "intercept_"}
REQUIRED = {
    **{name: ALWAYS | {"rank_", "signature_", "eigenvalues_"} for name in TRANSFORMERS},
    **{name: LEARNED | {"rank_", "_one_output", "_shift"} for name in REGRESSORS},
    **{name: LEARNED | {"rank_", "classes_", "multi_class_"} for name in CLASSIFIERS},
    "SpectrumSVC": LEARNED | {"classes_"},
}
OUTPUTS = [{"transform": name} for name in ("default", "pandas", "polars")]  # of set_output
PLAIN = {"int": int, "float": float, "bool": bool, "str": str, "dict": dict}


def stored_attributes(estimator: Any) -> dict[str, Any]:
    """Attributes of a fit that are stored as they are; TypeError for one in no table."""
    parameters, found = estimator.get_params(deep=False), {}
    for name, value in vars(estimator).items():
        if name in STORED:
            found[name] = value
        elif name.startswith("_") or name.endswith("_"):
            known = name in parameters or name in REBUILT or name in LEFT_OUT
            if not known:
                raise TypeError(f"{name}={value!r:.80} is no attribute that a model file can hold")
    return found


def require_consistent(name: str, state: dict[str, Any], columns: Any) -> None:
    """ModelFormatError unless all parts of a model are there, and of shapes that agree."""
    for wanted in sorted(REQUIRED[name]):
        require(wanted in state, f"its {wanted} is missing")
    sizes: dict[str, Any] = {"m": _size(state["n_landmarks_"]), "c": _rows(state, "classes_")}
    sizes |= {"d": state.get("n_features_in_", _rows(state, "feature_names_in_"))}
    sizes |= {"q": _rows(state, "_intercept")}
    sizes |= {"r": state.get("rank_"), "k": _rows(state, "eigenvalues_")}
    for attribute, value in state.items():
        require(attribute in STORED, f"it has an attribute {attribute!r:.80}")
        kind, shapes = STORED[attribute]
        if not _fits(value, kind, shapes, sizes, attribute):
            raise ModelFormatError(f"its {attribute} does not fit the rest of the model")
    _require_outputs(name, state, sizes)
    shown = state.get("_sklearn_output_config", {})
    require(shown in ({}, *OUTPUTS), f"its set_output is {shown!r:.80}")
    if "_sums" in state:
        require_sums(state["_sums"], sizes["m"], sizes["q"])
    places = columns.landmarks
    n_landmarks = length(columns.objects) if places is None else len(places)
    require(n_landmarks == sizes["m"], f"it has {n_landmarks} landmarks, and says {sizes['m']}")


def _size(value: Any) -> int:
    require(type(value) is int and value > 0, f"its number of landmarks is {value!r:.80}")
    return int(value)


def _rows(state: dict[str, Any], name: str) -> int | None:
    value = state.get(name)
    return None if value is None or np.ndim(value) == 0 else len(value)


def _fits(value: Any, kind: str, shapes: str, sizes: dict[str, Any], name: str) -> bool:
    if kind in PLAIN:
        return type(value) is PLAIN[kind] or (kind in ("int", "float") and _number(value, kind))
    if kind in ("Sums", "ErrorEstimate"):
        return type(value).__name__ == kind
    if kind == "dtype":
        return value in (np.dtype(np.float32), np.dtype(np.float64))
    if value is None:
        return name == "landmark_indices_"
    number = isinstance(value, float | np.floating) or np.isscalar(value)
    if not isinstance(value, np.ndarray) and not (kind == "numbers" and number):
        return False
    letters = {"labels": "UOibuf", "integers": "iu", "signs": "i"}.get(kind, "f")
    array = np.asarray(value)
    if array.dtype.kind not in letters:
        return False
    if kind == "numbers" and not (array.dtype == np.float64 and np.isfinite(array).all()):
        return False
    if kind == "signs" and not np.isin(array, (-1, 1)).all():
        return False
    return any(_is_shape(array.shape, shape.split(), sizes) for shape in shapes.split("|"))


def _number(value: Any, kind: str) -> bool:
    return isinstance(value, np.integer if kind == "int" else np.floating)


def _is_shape(shape: tuple[int, ...], letters: list[str], sizes: dict[str, Any]) -> bool:
    if len(shape) != len(letters):
        return False
    return all(one == "*" or n == sizes[one] for n, one in zip(shape, letters, strict=True))


def _require_outputs(name: str, state: dict[str, Any], sizes: dict[str, Any]) -> None:
    """As many columns of coefficients as the targets or the classes ask for."""
    if name in TRANSFORMERS:
        return
    q, c = sizes["q"], sizes["c"]
    dual, alone = np.ndim(state["dual_coef_"]), np.ndim(state["intercept_"]) == 0
    good = (dual == 1) == alone and (dual == 2 or q == 1)
    good = good and np.array_equal(np.ravel(state["intercept_"]), state["_intercept"])
    require(good and q, "its coefficients do not fit together")
    if name in REGRESSORS:
        require(state["_one_output"] == alone, "its outputs do not fit its coefficients")
        return
    require(c is not None and c >= 2 and dual == 2, "its classes do not fit its coefficients")
    labels = state["classes_"].tolist()
    rising = all(a < b for a, b in pairwise(labels))
    require(rising, "its classes are not in order, or one is there twice")
    way = "ovo" if name == "SpectrumSVC" else state["multi_class_"]
    wanted = {"ovr": c, "ovo": c * (c - 1) // 2}.get(way)
    require(q == (1 if c == 2 and wanted else wanted), f"it has {q} outputs for {c} classes")


def require_columns(kernel: Kernel, parts: dict[str, Any], state: dict[str, Any]) -> None:
    """ModelFormatError unless these are objects that the kernel takes, transformed as they were."""
    objects, places = parts["objects"], parts["landmarks"]
    require(_are_objects(kernel, objects, state), "its landmarks are not what they should be")
    n = length(objects)
    require(n > 0, "it has no landmarks")
    require(places is None or _are_places(places, n), "its landmarks are not among its columns")
    transform, offsets = parts["transform"], parts["offsets"]
    if not kernel.is_dissimilarity:
        require(places is transform is offsets is None, "its similarities are transformed")
        return
    known = type(transform).__module__ == "kreinlearn.kernels.dissimilarity"
    good = known and all(isinstance(x, str) or np.isfinite(x) for x in vars(transform).values())
    require(good and 0 < transform.n_reference <= n, "the transformation of its distances is lost")
    wanted = (n if places is None else len(places),)
    require(_is_finite(offsets, wanted), "the transformation of its distances is damaged")


def _are_objects(kernel: Kernel, objects: Any, state: dict[str, Any]) -> bool:
    d = state.get("n_features_in_")
    if kernel.domain.is_matrix:
        known = isinstance(own := vars(kernel)["diagonal_"], np.ndarray) and own.ndim == 1
        return type(d) is int and known and d <= len(own) and _are_places(objects, d)
    return kernel.domain.holds(objects, d, state.get("dtype_"))


def _are_places(x: Any, n: int) -> bool:
    good = isinstance(x, np.ndarray) and x.ndim == 1 and x.dtype.kind == "i" and len(x) > 0
    return good and bool((x >= 0).all() and (x < n).all())


def _is_finite(x: Any, shape: tuple[Any, ...]) -> bool:
    good = isinstance(x, np.ndarray) and x.dtype == np.float64 and x.shape == shape
    return good and bool(np.isfinite(x).all())


def require_map(found: FeatureMap, m: int, r: int, k: int) -> None:
    """ModelFormatError unless it is of m landmarks, r dimensions and k eigenvalues."""
    shapes = {"W": (m, r), "S": (r,), "E": (m, k), "Lambda": (k,)}
    good = all(_is_finite(getattr(found, name), shape) for name, shape in shapes.items())
    require(good, "its feature map does not fit its landmarks")


def require_map_of(state: dict[str, Any], found: Any) -> None:
    """ModelFormatError unless it is the map of an estimator with these attributes."""
    require(isinstance(found, FeatureMap), "its feature map is missing")
    spectrum = state.get("eigenvalues_", np.empty(0))  # an l1 penalty keeps none
    require_map(found, state["n_landmarks_"], state["rank_"], len(spectrum))
    good = np.array_equal(spectrum, found.Lambda)
    good = good and np.array_equal(state.get("signature_", found.S), found.S)
    require(good, "its spectrum is not that of its map")


def require_sums(sums: Any, m: int, q: int) -> None:
    """ModelFormatError unless ``partial_fit`` can go on: sums of m landmarks and q outputs."""
    require_map(sums.map, m, len(sums.map.S), len(sums.map.Lambda))
    damaged = "the sums that its partial_fit goes on from are damaged"
    require(sums.unit > 0 and len(sums.groups) > 0, damaged)
    require(_is_finite(sums.values, (2,)) or _is_finite(sums.values, (3,)), damaged)
    for group in sums.groups:
        shapes = {"cross": (m, q), "y_sums": (q,), "y_squares": (q,)}
        good = all(_is_finite(getattr(group, name), shape) for name, shape in shapes.items())
        gram = _is_finite(group.gram.triangle, (m, m)) and _is_finite(group.gram.sums, (m,))
        require(good and gram and group.weight >= 0, damaged)
