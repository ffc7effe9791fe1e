"""The attributes of a fitted estimator: what is stored of each, and how they must fit together."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils import get_tags

from kreinlearn.data.tiles import length
from kreinlearn.kernels import Kernel
from kreinlearn.kernels.dissimilarity import Transform
from kreinlearn.nystrom.core import FeatureMap
from kreinlearn.pairs.evaluate import LandmarkColumns
from kreinlearn.persist.errors import require
from kreinlearn.persist.estimators import fitted_names
from kreinlearn.solvers.conformal import METHODS, Conformal, LeftOut

State = dict[str, Any]  # attributes by name
# What a model must have, by the type of its estimator, if its fit leaves it at all.
ALWAYS = {"n_landmarks_", "landmark_indices_", "rank_", "_map"}
MAPPED = ALWAYS | {"signature_", "eigenvalues_"}
GROUPED = {"n_clusters_", "cluster_centers_", "cluster_weights_", "medoids_", "medoid_indices_"}
LEARNED = ALWAYS | {"dual_coef_", "_intercept", "intercept_"}
REQUIRED: dict[str | None, set[str]] = {
    None: MAPPED,
    "clusterer": MAPPED | GROUPED | {"_mean"},
    "regressor": LEARNED | {"_one_output", "_shift"},
    "classifier": LEARNED | {"classes_", "multilabel_", "part_weights_", "_range"},
}
PARTS = ["krein", "neighbours_1", "neighbours_3", "neighbours_10"]  # of a decision
COLUMNS = ("objects", "landmarks", "transform", "offsets")  # of the landmarks, that are stored
OUTPUTS = [{"transform": name} for name in ("default", "pandas", "polars")]  # of set_output
# The attributes that are stored as they are, by the kind of their values and, after the colon, by
# their shapes: m landmarks, r dimensions, k eigenvalues, d features, c classes, q outputs, g
# groups; "|" is "or", and "*" any number. A "trail" is a record of the fit that no prediction uses.
KINDS = {
    "int": "n_features_in_ n_landmarks_ rank_ n_active_landmarks_ n_iter_ n_clusters_ _n_chosen",
    "float": (
        "lambda_plus_ lambda_minus_ lambda_l1_ C_ cv_loss_ expected_error_ "
        "expected_error_std_ inertia_ _target_unit"
    ),
    "bool": "_one_output multilabel_",
    "str": "similarity_ decision_ _column",
    "dict": (
        "kernel_params_ part_weights_ _sklearn_output_config kernel_weights_ "
        "kernel_similarities_ kernel_losses_ kernel_seconds_"
    ),
    "Several": "_sum",
    "dtype": "dtype_",
    "ErrorEstimate": "error_",
    "FeatureMap": "_map",
    "Sums": "_sums",
    "FitSums": "_fit_sums",
    "NeighbourScores LabelNeighbours": "_neighbours",
    "LocalDistances": "_local",
    "labels: c": "classes_",
    "labels: d": "feature_names_in_",
    "labels: m | m q": "_landmark_targets",
    "integers: m": "landmark_indices_",
    "integers: g": "medoid_indices_",
    "integers: *": "support_ labels_",
    "signs: r": "signature_",
    "numbers: k": "eigenvalues_",
    "numbers: | r": "_mean",
    "numbers: g": "cluster_weights_",
    "numbers: g r": "cluster_centers_",
    "objects: g": "medoids_",
    "numbers: q": "radius_ _intercept",
    "numbers: | q": "intercept_ _shift",
    "numbers: r | q r": "coef_",
    "numbers: m | m q": "dual_coef_",
    "numbers: m": "_own_similarities",
    "numbers: *": "_range",
    "trail: r": "explained_abs_ratio_ explained_squared_ratio_",
    "trail: *": "C_grid_ cv_scores_",
    "trail: * *": "cv_trials_ l1_path_ silhouettes_",
}
KIND_OF = {name: kind for kind, names in KINDS.items() for name in names.split()}
# Made again when a model is loaded: the kernel by its name, its parameters and what it has learned;
# the landmarks and their columns from the objects; the calibration from two numbers per sigmoid;
# what was left out of a fit from its scores and the models of the folds.
REBUILT = {"kernel_", "landmarks_", "_columns", "_calibration", "_conformal"}
# Not stored: folds_ has one number per training row; choices_ is a trail, whose outcome is in
# kernel_params_ and similarity_; the others say how scikit-learn passes metadata and callbacks.
LEFT_OUT = {"folds_", "choices_", "_metadata_request", "_skl_callbacks"}
OF_SKLEARN = {"_sklearn_output_config"}  # left by set_output

PLAIN: dict[str, type | tuple[type, ...]] = {
    "int": (int, np.integer), "float": (float, np.floating), "bool": bool, "str": str,
    "dict": dict, "list": list,
}  # fmt: skip
LETTERS = {"labels": "UOibuf", "integers": "iu", "signs": "i", "numbers": "f", "trail": "f"}


def fits(name: str, value: object, sizes: Mapping[str, object]) -> bool:
    """Whether an attribute may have this value, in a model of these sizes."""
    kind, _, shapes = KIND_OF[name].partition(":")
    if kind in PLAIN:
        return isinstance(value, PLAIN[kind]) and isinstance(value, bool) == (kind == "bool")
    if kind == "dtype":
        return value in (np.dtype(np.float32), np.dtype(np.float64))
    if kind == "objects":
        return isinstance(value, list | np.ndarray) or sp.issparse(value)
    if kind not in LETTERS:  # a record
        return type(value).__name__ in kind.split()
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


def stored_attributes(estimator: BaseEstimator) -> State:
    """The attributes of a fit that are stored as they are; TypeError for an unknown one."""
    listed = fitted_names(type(estimator)) & (KIND_OF.keys() | REBUILT)
    known = listed | LEFT_OUT | OF_SKLEARN | estimator.get_params(deep=False).keys()
    for name, value in vars(estimator).items():
        if (name.startswith("_") or name.endswith("_")) and name not in known:
            raise TypeError(f"{name}={value!r:.80} is no attribute that a model file can contain")
    return {name: value for name, value in vars(estimator).items() if name in KIND_OF}


def require_consistent(estimator: BaseEstimator, state: State, columns: LandmarkColumns) -> None:
    """Raise a ModelFormatError unless all parts of a model are there and their shapes agree."""
    allowed, role = fitted_names(type(estimator)), get_tags(estimator).estimator_type
    for name in sorted(REQUIRED[role] & allowed):
        require(name in state, f"its {name} is missing")
    m = state["n_landmarks_"]
    require(type(m) is int and m > 0, f"its number of landmarks is {m!r:.80}")
    sizes = {"m": m, "r": state.get("rank_"), "k": _rows(state, "eigenvalues_")}
    sizes |= {"c": _rows(state, "classes_"), "q": _rows(state, "_intercept")}
    sizes |= {"g": state.get("n_clusters_")}
    sizes |= {"d": state.get("n_features_in_", _rows(state, "feature_names_in_"))}
    for name, value in state.items():
        require(
            name in KIND_OF.keys() & (allowed | OF_SKLEARN), f"it has an attribute {name!r:.80}"
        )
        require(fits(name, value, sizes), f"its {name} does not fit the rest of the model")
    if role == "clusterer":
        _require_groups(state, sizes)
    elif role is not None:
        _require_outputs(role, state, sizes)
    if "_map" in state:
        _require_map_of(state)
    if "_sums" in state:
        _require_sums(state["_sums"], m, sizes["q"])
    if "_fit_sums" in state:
        _require_fit_sums(state["_fit_sums"], state["_map"], state.get("_sums"))
    require(0 < state.get("_target_unit", 1.0) < np.inf, "the unit of its targets is no number")
    if "part_weights_" in state:
        _require_parts(state, m, sizes["c"])
    shown = state.get("_sklearn_output_config", {})
    require(shown in ({}, *OUTPUTS), f"its set_output is {shown!r:.80}")
    places = columns.landmarks
    n_landmarks = length(columns.objects) if places is None else len(places)
    require(n_landmarks == m, f"it has {n_landmarks} landmarks, and says {m}")


def _rows(state: State, name: str) -> int | None:
    value = state.get(name)
    return None if value is None or np.ndim(value) == 0 else len(value)


def _require_outputs(role: str, state: State, sizes: State) -> None:
    """Require as many columns of coefficients as the targets or the classes ask for."""
    q, c = sizes["q"], sizes["c"]
    dual, alone = np.ndim(state["dual_coef_"]), np.ndim(state["intercept_"]) == 0
    good = (dual == 1) == alone and (dual == 2 or q == 1)
    good = good and np.array_equal(np.ravel(state["intercept_"]), state["_intercept"])
    require(good and q, "its coefficients do not fit together")
    if role == "regressor":
        require(state["_one_output"] == alone, "its outputs do not fit its coefficients")
        return
    require(c is not None and c >= 2 and dual == 2, "its classes do not fit its coefficients")
    rising = all(a < b for a, b in pairwise(state["classes_"].tolist()))
    require(rising, "its classes are not in order, or one is there twice")
    of_classes = 1 if c == 2 else c if "multilabel_" in state else c * (c - 1) // 2  # or of pairs
    wanted = c if state.get("multilabel_") else of_classes
    require(q == wanted, f"it has {q} outputs for {c} classes")


def require_conformal(estimator: BaseEstimator, conformal: Conformal) -> None:
    """Raise a ModelFormatError unless there is one model for each object that was left out."""
    models, kept = conformal.models or (estimator,), conformal.left_out
    require(conformal.method in METHODS, f"its intervals are {conformal.method!r:.80}")
    require(isinstance(kept, LeftOut), "its objects left out are damaged")
    k, q = len(kept.weights), 1 if hasattr(estimator, "classes_") else len(estimator._intercept)
    good = kept.scores.shape == (k, q) and kept.novelty.shape == kept.folds.shape == (k,)
    good = good and kept.weights.ndim == 1 and kept.folds.dtype.kind == "i"
    good = good and bool(np.isin(kept.folds, np.arange(len(models))).all())
    good = good and bool(np.isfinite(kept.weights).all() and (kept.weights > 0).all())
    good = good and not np.isnan(kept.scores).any() and not np.isnan(kept.novelty).any()
    require(good, "its objects left out do not fit together")
    for model in models:
        local = vars(model).get("_local")
        known = type(model) is type(estimator) and local is not None
        known = known and local.own.shape == (model.n_landmarks_,)
        require(known, "the models of its folds do not fit together")


def _require_groups(state: State, sizes: State) -> None:
    """Require a medoid and a positive weight of every group, and no label of another group."""
    g, labels = sizes["g"], state.get("labels_", np.empty(0, np.int32))
    good = g > 0 and length(state["medoids_"]) == g and bool((state["cluster_weights_"] > 0).all())
    good = good and labels.min(initial=0) >= 0 and labels.max(initial=0) < g
    require(good, "its groups do not fit together")


def require_columns(kernel: Kernel, parts: State, state: State) -> None:
    """Raise a ModelFormatError unless the kernel takes these objects, transformed as they were."""
    require(parts.keys() == {*COLUMNS}, "its landmarks are missing")
    objects, places = parts["objects"], parts["landmarks"]
    require(_are_objects(kernel, objects, state), "its landmarks are not what they should be")
    n = length(objects)
    require(n > 0, "it has no landmarks")
    require(places is None or _are_places(places, n), "its landmarks are not among its columns")
    transform, offsets = parts["transform"], parts["offsets"]
    if not kernel.is_dissimilarity:
        require(places is transform is offsets is None, "its similarities are transformed")
        return
    good = isinstance(transform, Transform) and _is_sound(transform, transform.n_reference)
    require(good and 0 < transform.n_reference <= n, "the transformation of its distances is lost")
    one_row = transform.offsets(np.zeros((1, transform.n_reference)))
    wanted = (n if places is None else len(places), *one_row.shape[1:])
    require(_is_finite(offsets, wanted), "the transformation of its distances is damaged")


def _is_sound(transform: Transform, n_reference: int) -> bool:
    """Whether all numbers of a transformation, and of its parts, are finite."""
    values = [x for value in vars(transform).values() for x in _each(value)]
    parts = [x for x in values if isinstance(x, Transform)]
    numbers = [x for x in values if not isinstance(x, str | Transform)]
    good = transform.n_reference == n_reference and bool(np.isfinite(numbers).all())
    return good and all(_is_sound(part, n_reference) for part in parts)


def _each(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def _are_objects(kernel: Kernel, objects: Any, state: State) -> bool:
    d = state.get("n_features_in_")
    if kernel.domain.is_matrix:
        known = isinstance(own := vars(kernel)["diagonal_"], np.ndarray) and own.ndim == 1
        return type(d) is int and known and d <= len(own) and _are_places(objects, d)
    return kernel.domain.holds(objects, d, state.get("dtype_"))


def _are_places(x: object, n: int) -> bool:
    if not isinstance(x, np.ndarray) or x.ndim != 1 or x.dtype.kind != "i" or not len(x):
        return False
    return bool((x >= 0).all() and (x < n).all())


def _is_finite(x: Any, shape: tuple[int | None, ...]) -> bool:
    good = isinstance(x, np.ndarray) and x.dtype == np.float64 and x.shape == shape
    return bool(good and np.isfinite(x).all())


def _are_finite(x: object, **shapes: tuple[int | None, ...]) -> bool:
    """Whether the attributes of these names are finite arrays of these shapes."""
    return all(_is_finite(getattr(x, name), shape) for name, shape in shapes.items())


def _require_map(map: FeatureMap, m: int, r: int, k: int) -> None:
    """Require a feature map of m landmarks, r dimensions and k eigenvalues."""
    columns = map.E.shape[1] if isinstance(map.E, np.ndarray) and map.E.ndim == 2 else -1
    good = columns in (0, k) and _are_finite(map, W=(m, r), S=(r,), E=(m, columns), Lambda=(k,))
    require(good, "its feature map does not fit its landmarks")


def _require_map_of(state: State) -> None:
    """Require that the feature map goes with the other attributes."""
    map, spectrum = state["_map"], state.get("eigenvalues_", np.empty(0))  # none with an l1 penalty
    _require_map(map, state["n_landmarks_"], state["rank_"], len(spectrum))
    good = np.array_equal(spectrum, map.Lambda)
    good = good and np.array_equal(state.get("signature_", map.S), map.S)
    require(good, "its spectrum is not that of its map")


def _require_sums(sums: Any, m: int, q: int | None) -> None:
    """Require sums of m landmarks and q outputs, from which ``partial_fit`` can go on."""
    _require_map(sums.map, m, len(sums.map.S), len(sums.map.Lambda))
    good = sums.unit > 0 and len(sums.groups) > 0
    good = good and (_is_finite(sums.values, (2,)) or _is_finite(sums.values, (3,)))
    for group in sums.groups:
        good = good and _are_finite(group, cross=(m, q), y_sums=(q,), y_squares=(q,))
        good = good and _are_finite(group.gram, triangle=(m, m), sums=(m,)) and group.weight >= 0
    require(good, "the sums that its partial_fit goes on from are damaged")


def _require_fit_sums(sums: Any, map: FeatureMap, later: Any) -> None:
    """Require sums over the features of a fit, to which those of later parts can be added."""
    r, q = len(map.S), len(sums.t) if isinstance(sums.t, np.ndarray) and sums.t.ndim == 1 else -1
    good = _are_finite(sums, s=(r,), B=(r, q), t=(q,), yy=(q,))
    good = good and any(_is_finite(sums.gram, (size,)) for size in (r, r * (r + 1) // 2))
    good = good and (_is_finite(sums.values, (2,)) or _is_finite(sums.values, (3,)))
    good = good and 0 < sums.unit < np.inf and 0 <= sums.weight < np.inf
    good = good and (later is None or later.groups[0].y_sums.shape == (q,))
    require(good, "the sums of its fit are damaged")


def _require_parts(state: State, m: int, c: int | None) -> None:
    """Require a weight of every part of a decision, and the neighbours among m landmarks."""
    weights, near, limits = state["part_weights_"], state.get("_neighbours"), state["_range"]
    good = [*weights] == PARTS[: 1 if near is None else None]
    good = good and all(type(w) is float and 0 <= w < np.inf for w in weights.values())
    good = good and len(limits) == 2 and limits[0] <= limits[1]
    require(good, "the parts of its decision do not fit together")
    of_labels = type(near).__name__ == "LabelNeighbours"
    good = near is None or of_labels == state["multilabel_"]
    good = good and (near is None or _are_neighbours(near, m, c, of_labels=of_labels))
    require(good, "its neighbours do not fit its landmarks")


def _are_neighbours(near: Any, m: int, c: int | None, *, of_labels: bool) -> bool:
    """Whether there is a class, or -1 for none, of m landmarks, and distances have a unit.

    Of labels, there are 1 and 0 in the place of a class, for those that landmarks have or not.
    """
    labels = near.labels
    if of_labels:
        good = isinstance(labels, np.ndarray) and labels.dtype.kind == "i"
        good = good and labels.shape == (m, c) and bool(np.isin(labels, (-1, 0, 1)).all())
        return good and _have_unit(near)
    if not all(isinstance(x, np.ndarray) and x.dtype.kind == "i" for x in (labels, near.counts)):
        return False
    if c is None or labels.shape != (m,) or not np.isin(labels, np.arange(-1, c)).all():
        return False
    return _have_unit(near) and np.array_equal(
        near.counts, np.bincount(labels[labels >= 0], minlength=c)
    )


def _have_unit(near: Any) -> bool:
    units = np.array([near.floor, near.default, 1.0 if near.top is None else near.top])
    return bool(np.isfinite(units).all() and (units[:2] > 0).all())
