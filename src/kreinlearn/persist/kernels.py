"""Kernels as names and parameters, and what they have learned from data."""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import Any

from kreinlearn.kernels import (
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
from kreinlearn.persist.errors import ModelFormatError, NotDataError, require

Node = dict[str, Any]  # of the JSON header
Write = Callable[[object, str], Any]
Read = Callable[[object], Any]
MADE = (LinearCombination, Product, SimilarityOf, Normalized, SklearnKernel, SklearnMetric)
# Kernels that are not in the registry, because they are made of others or of parameters.
UNNAMED: dict[str, type[Kernel]] = {cls.__name__: cls for cls in (*MADE, Precomputed)}
DERIVED = {"parts_", "to_reference_", "processes"}  # made again from what is stored
# What kernels of this library learn from data: all of it is stored, and nothing else is read.
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
    "register it with register(name, factory) and pass the name as kernel, or save with "
    "external_kernel=True and pass it again: load(path, kernel=...)"
)


# As given


def spec_of(kernel: Kernel, write: Write, path: str) -> Node:
    """The name and the parameters of a kernel; NotDataError if it has no name."""
    name, parameters = _name(kernel), kernel.get_params(deep=False)
    return {"name": name, "parameters": _written(parameters, write, path)}


def _written(values: dict[str, object], write: Write, path: str) -> Node:
    return {name: write(value, f"{path}.{name}") for name, value in values.items()}


def _name(kernel: Kernel) -> str:
    for name, kind in {**REGISTRY, **UNNAMED}.items():
        if kind is type(kernel):
            return name
    what = kernel.func if isinstance(kernel, CallableKernel) else kernel
    raise NotDataError(f"kernel {what!r:.200} has no name that a later process could find")


def kernel_of(node: Node, read: Read) -> Kernel:
    """The kernel of a name and parameters, which is not fitted."""
    require(node.keys() == {"type", "name", "parameters"}, "it has a kernel of unknown form")
    name, nodes = node["name"], node["parameters"]
    good = isinstance(name, str) and isinstance(nodes, dict)
    require(good, "it has a kernel without a name or without parameters")
    parameters = {key: read(value) for key, value in nodes.items()}
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


def learned(kernel: Kernel, write: Write, path: str) -> Node:
    """What a kernel has learned beside its parameters; equal parts are written once."""
    fresh = type(kernel)(**kernel.get_params(deep=False))
    names = sorted(vars(kernel).keys() - vars(fresh).keys() - DERIVED)
    fitted = _written({name: vars(kernel)[name] for name in names}, write, path)
    if not isinstance(kernel, Composite):
        return {"fitted": fitted}
    distinct = list({id(part): part for part in kernel.parts_}.values())
    places = [next(i for i, one in enumerate(distinct) if one is p) for p in kernel.parts_]
    parts = [learned(part, write, f"{path}.part{i}") for i, part in enumerate(distinct)]
    return {"fitted": fitted, "parts": parts, "places": places}


def has_few_columns(node: object) -> bool:
    """Whether ``learned`` has written a kernel of the columns of landmarks."""
    fitted = node.get("fitted") if isinstance(node, dict) else None
    return isinstance(fitted, dict) and "landmark_rows" in fitted


def teach(kernel: Kernel, node: object, read: Read) -> None:
    """Give a fresh kernel what ``learned`` has written, so that it is fitted again."""
    composite = isinstance(kernel, Composite)
    wanted = {"fitted", "parts", "places"} if composite else {"fitted"}
    good = isinstance(node, dict) and node.keys() == wanted and isinstance(node["fitted"], dict)
    if not isinstance(node, dict) or not good:
        raise ModelFormatError("what its kernel has learned is not there")
    _require_learned(kernel, node["fitted"].keys())
    for name, value in node["fitted"].items():
        setattr(kernel, name, read(value))
    if isinstance(kernel, Composite):
        kernel.parts_ = _taught_parts(kernel, node["parts"], node["places"], read)
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


def _taught_parts(kernel: Composite, nodes: object, places: object, read: Read) -> list[Kernel]:
    fresh = kernel.fresh_parts()
    differ = "parts of its kernel differ"
    if not isinstance(nodes, list) or not isinstance(places, list):
        raise ModelFormatError(differ)
    require(len(places) == len(fresh) and all(type(i) is int for i in places), differ)
    require(sorted(set(places)) == list(range(len(nodes))), differ)
    distinct = [fresh[places.index(i)] for i in range(len(nodes))]
    require(
        all(type(distinct[i]) is type(own) for own, i in zip(fresh, places, strict=True)),
        "parts of its kernel are not the same that it says are",
    )
    for part, node in zip(distinct, nodes, strict=True):
        teach(part, node, read)
    return [distinct[i] for i in places]
