"""Kernels as names and parameters, and what they have learned from data."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

from kreinlearn.kernels import (
    Field,
    GivenMatrix,
    Kernel,
    LinearCombination,
    Normalized,
    Precomputed,
    Product,
    SimilarityOf,
    SklearnKernel,
    SklearnMetric,
    resolve,
)  # fmt: skip  # isort: skip
from kreinlearn.kernels.base import REGISTRY, is_known
from kreinlearn.kernels.callables import CallableKernel
from kreinlearn.kernels.combine import Composite
from kreinlearn.kernels.several import Several
from kreinlearn.persist.errors import NotDataError, require

Learned = dict[str, Any]  # what a kernel has learned
MADE = (
    LinearCombination, Product, Several, SimilarityOf, Normalized, Field, SklearnKernel,
    SklearnMetric,
)  # fmt: skip
# Kernels that are not in the registry, because they are made of others or of parameters.
UNNAMED: dict[str, type[Kernel]] = {cls.__name__: cls for cls in (*MADE, GivenMatrix, Precomputed)}
DERIVED = {"parts_", "to_reference_", "processes", "_cells", "_width"}  # not stored
# What kernels of this library learn from data: all of it is stored, and nothing else is read.
LEARNED: dict[str, set[str]] = {
    **{key: {"width_"} for key in ("Gaussian", "DeltaGauss", "Epanechnikov", "Multiquadric")},
    "GaussianCombination": {"unit_", "widths_"},
    "Sigmoid": {"gain_"},
    "TruncatedL1": {"radius_"},
    "SklearnKernel": {"params_"},
    "SklearnMetric": {"params_"},
    "Gower": {"columns_", "dates_", "numeric_", "ranges_"},
    "NGrams": {"idf_", "ngrams_"},
    "Convolutions": {"biases_", "channels_", "dilations_", "mean_", "scale_"},
    "SlicedWL": {"directions_", "mean_", "scale_"},
    "WassersteinSubsequence": {"window_"},
    "WassersteinWL": {"mean_", "scale_"},
    "Precomputed": {"diagonal_"},
    "PrecomputedDissimilarity": {"c_", "diagonal_", "offsets_"},
    "SimilarityOf": {"reference_", "transform_"},
    "Several": {"offsets_", "reference_", "transforms_"},
    "Normalized": {"least_"},
    "Field": {"dates_", "mean_", "numeric_"},
}
REMEDY = (
    "register it with register(name, factory) and pass the name as kernel, or save with "
    "external_kernel=True and pass it again: load(path, kernel=...)"
)


# As given


def kernels_in(given: object) -> list[object]:
    """The kernels that the parameter ``kernel`` names: itself, or those of a list or dict."""
    if isinstance(given, dict):
        given = list(given.values())
    if isinstance(given, list | tuple):
        return [kernel for one in given for kernel in kernels_in(one)]
    return [given]


def parts_of_kernel(kernel: Kernel) -> tuple[str, dict[str, object]]:
    """The name and the parameters of a kernel; NotDataError if it has no name."""
    for name, kind in {**REGISTRY, **UNNAMED}.items():
        if kind is type(kernel):
            return name, kernel.get_params(deep=False)
    what = kernel.func if isinstance(kernel, CallableKernel) else kernel
    raise NotDataError(f"kernel {what!r:.200} has no name that a later process could find")


def kernel_from(name: str, parameters: dict[str, Any]) -> Kernel:
    """The kernel of a name and parameters, which is not fitted."""
    if name in UNNAMED:
        return UNNAMED[name](**parameters)
    require_registered(name)
    return resolve(name, parameters)


def require_registered(name: str) -> None:
    require(
        is_known(name),
        f"its kernel {name!r:.80} is not registered in this process; call register(name, "
        "factory) before load, as it was done before the model was saved",
    )


# As fitted


def learned(kernel: Kernel) -> Learned:
    """What a kernel has learned beside its parameters; equal parts are written once."""
    fresh = type(kernel)(**kernel.get_params(deep=False))
    names = sorted(vars(kernel).keys() - vars(fresh).keys() - DERIVED)
    fitted = {name: vars(kernel)[name] for name in names}
    if not isinstance(kernel, Composite):
        return {"fitted": fitted}
    distinct = list({id(part): part for part in kernel.parts_}.values())
    places = [next(i for i, one in enumerate(distinct) if one is p) for p in kernel.parts_]
    return {"fitted": fitted, "parts": [learned(part) for part in distinct], "places": places}


def teach(kernel: Kernel, known: Any) -> None:
    """Give a fresh kernel what ``learned`` has written, so that it is fitted again."""
    composite = isinstance(kernel, Composite)
    wanted = {"fitted", "parts", "places"} if composite else {"fitted"}
    good = isinstance(known, dict) and known.keys() == wanted and isinstance(known["fitted"], dict)
    require(good, "what its kernel has learned is not there")
    _require_learned(kernel, known["fitted"].keys())
    for name, value in known["fitted"].items():
        setattr(kernel, name, value)
    if isinstance(kernel, Composite):
        kernel.parts_ = _taught_parts(kernel, known["parts"], known["places"])
    if isinstance(kernel, SimilarityOf):
        kernel.use_reference()


def _require_learned(kernel: Kernel, names: Set[str]) -> None:
    """Raise a ModelFormatError unless a fit of this kernel leaves these attributes."""
    kind = type(kernel)
    if kind.__module__.startswith("kreinlearn."):
        more = {"landmark_rows"} if isinstance(kernel, Precomputed) else set()
        good = names - more == LEARNED.get(kind.__name__, set())
    else:  # a class of the user: attributes are named as in scikit-learn
        own = [name.isidentifier() and name.endswith("_") and name[0] != "_" for name in names]
        good = all(own) and not any(hasattr(kind, name) for name in names)
    require(good, f"its kernel has learned {sorted(names)!s:.200}")


def _taught_parts(kernel: Composite, known: list[Learned], places: list[int]) -> list[Kernel]:
    fresh = kernel.fresh_parts()
    good = len(places) == len(fresh) and sorted(set(places)) == list(range(len(known)))
    require(good, "parts of its kernel differ")
    distinct = [fresh[places.index(i)] for i in range(len(known))]
    good = all(type(distinct[i]) is type(own) for own, i in zip(fresh, places, strict=True))
    require(good, "parts of its kernel are not the same that it says are")
    for part, its in zip(distinct, known, strict=True):
        teach(part, its)
    return [distinct[i] for i in places]
