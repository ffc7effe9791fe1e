"""Kernels by their names and parameters, and what they have learned from data."""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import Any

from kreinlearn.kernels import (
    LinearCombination,
    Normalized,
    Precomputed,
    Product,
    SimilarityOf,
    SklearnKernel,
    SklearnMetric,
)
from kreinlearn.kernels.base import REGISTRY, Kernel, is_known, resolve
from kreinlearn.kernels.callables import CallableKernel
from kreinlearn.kernels.combine import Composite
from kreinlearn.persist.errors import require

Json = Any
Write = Callable[[Any, str], Json]
Read = Callable[[Json], Any]
# Kernels that are no entry of the registry, because they are made of others or of parameters.
UNNAMED: dict[str, type[Kernel]] = {
    "linear_combination": LinearCombination,
    "product": Product,
    "similarity_of": SimilarityOf,
    "normalized": Normalized,
    "sklearn_kernel": SklearnKernel,
    "sklearn_metric": SklearnMetric,
    "given_matrix": Precomputed,
}
DERIVED = {"parts_", "to_reference_", "processes"}  # made again from what is stored
# What kernels of this library learn from data: all of it is stored, and nothing else is taken.
LEARNED: dict[str, set[str]] = {
    **{key: {"width_"} for key in ("Gaussian", "DeltaGauss", "Epanechnikov", "Multiquadric")},
    "GaussianCombination": {"unit_", "widths_"},
    "Sigmoid": {"gain_"},
    "TruncatedL1": {"radius_"},
    "SklearnKernel": {"params_"},
    "SklearnMetric": {"params_"},
    "Gower": {"columns_", "numeric_", "ranges_"},
    "Precomputed": {"diagonal_"},
    "PrecomputedDissimilarity": {"c_", "diagonal_", "offsets_"},
    "SimilarityOf": {"reference_", "transform_"},
    "Normalized": {"least_"},
}
REMEDY = (
    "register it, register(name, factory), and pass the name as kernel; or save with "
    "external_kernel=True and give it again: load(path, kernel=...)"
)


class Unregistered(TypeError):
    """A kernel that no name leads to."""


# As given


def spec_of(kernel: Kernel, write: Write, path: str) -> Json:
    """Name and parameters of a kernel object; ``Unregistered`` if it has no name."""
    known, parameters = _name(kernel), kernel.get_params(deep=False)
    held = {name: write(value, f"{path}.{name}") for name, value in parameters.items()}
    return {"name": known, "parameters": held}


def _name(kernel: Kernel) -> str:
    kind = type(kernel)
    for known in ({**REGISTRY, **UNNAMED}).items():
        if known[1] is kind:
            return known[0]
    what = kernel.func if isinstance(kernel, CallableKernel) else kernel
    raise Unregistered(f"kernel {what!r:.200} has no name that a later process could find")


def kernel_of(node: Json, read: Read) -> Kernel:
    """A kernel that is not fitted."""
    require(node.keys() == {"type", "name", "parameters"}, "it has a kernel of unknown form")
    name, held = node["name"], node["parameters"]
    good = isinstance(name, str) and isinstance(held, dict)
    require(good, "it has a kernel without a name or without parameters")
    parameters = {key: read(value) for key, value in held.items()}
    if name in UNNAMED:
        return UNNAMED[name](**parameters)
    require_registered(name)
    return resolve(name, parameters)


def require_registered(name: str) -> None:
    require(
        is_known(name),
        f"its kernel {name!r:.80} is not registered in this process; register(name, factory) it "
        "before load, as it was when the model was saved",
    )


# As fitted


def learned(kernel: Kernel, write: Write, path: str) -> Json:
    """What a fitted kernel knows beside its parameters; of equal parts, once."""
    fresh = type(kernel)(**kernel.get_params(deep=False))
    names = vars(kernel).keys() - vars(fresh).keys() - DERIVED
    held = {name: write(vars(kernel)[name], f"{path}.{name}") for name in sorted(names)}
    if not isinstance(kernel, Composite):
        return {"fitted": held}
    distinct = list({id(part): part for part in kernel.parts_}.values())
    places = [next(i for i, one in enumerate(distinct) if one is p) for p in kernel.parts_]
    parts = [learned(part, write, f"{path}.part{i}") for i, part in enumerate(distinct)]
    return {"fitted": held, "parts": parts, "places": places}


def teach(kernel: Kernel, node: Json, read: Read) -> None:
    """Gives a fresh kernel what ``learned`` found, so that it is as it was fitted."""
    composite = isinstance(kernel, Composite)
    wanted = {"fitted", "parts", "places"} if composite else {"fitted"}
    good = isinstance(node, dict) and node.keys() == wanted and isinstance(node["fitted"], dict)
    require(good, "what its kernel has learned is not there")
    _require_learned(kernel, node["fitted"].keys())
    for name, value in node["fitted"].items():
        setattr(kernel, name, read(value))
    if isinstance(kernel, Composite):
        kernel.parts_ = _taught_parts(kernel, node["parts"], node["places"], read)
    if isinstance(kernel, SimilarityOf):
        kernel.use_reference()


def _require_learned(kernel: Kernel, names: Set[str]) -> None:
    """ModelFormatError unless a fit of this kernel leaves these attributes."""
    kind = type(kernel)
    if kind.__module__.startswith("kreinlearn."):
        more = {"landmark_rows"} if isinstance(kernel, Precomputed) else set()
        good = names - more == LEARNED.get(kind.__name__, set())
    else:  # of a person: as scikit-learn names them
        own = [name.isidentifier() and name.endswith("_") and name[0] != "_" for name in names]
        good = all(own) and not any(hasattr(kind, name) for name in names)
    require(good, f"its kernel has learned {sorted(names)!s:.200}")


def _taught_parts(kernel: Composite, nodes: Any, places: Any, read: Read) -> list[Kernel]:
    fresh = kernel.fresh_parts()
    good = isinstance(nodes, list) and isinstance(places, list) and len(places) == len(fresh)
    good = good and all(type(i) is int and 0 <= i < len(nodes) for i in places)
    require(good and sorted(set(places)) == list(range(len(nodes))), "parts of its kernel differ")
    distinct = [fresh[places.index(i)] for i in range(len(nodes))]
    require(
        all(type(distinct[i]) is type(own) for own, i in zip(fresh, places, strict=True)),
        "parts of its kernel are not the same that it says are",
    )
    for part, node in zip(distinct, nodes, strict=True):
        teach(part, node, read)
    return [distinct[i] for i in places]


def fresh_kernel(estimator: Any) -> Kernel:
    """The kernel of the fit of an estimator as it was before that."""
    chosen = vars(estimator).get("kernel_params_")
    if chosen is not None:
        return resolve(estimator.kernel, chosen)
    kernel: Kernel = estimator._resolved_kernel()
    return kernel
