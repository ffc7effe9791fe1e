"""Which similarity is meant: the one that is named, or one that suits the file."""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass
from inspect import getdoc
from textwrap import fill
from typing import Any, NamedTuple

import numpy as np

from kreinlearn.cli.arguments import ESTIMATORS, FRONT, OBJECTS, close_to
from kreinlearn.data.validation import looks_like_distances
from kreinlearn.kernels import Kernel, columns, registered, resolve
from kreinlearn.kernels.base import REGISTRY, symmetry_rtol
from kreinlearn.kernels.combine import common_domain
from kreinlearn.kernels.domains import Domain
from kreinlearn.kernels.fields import fields_in
from kreinlearn.kernels.scikit import (
    SklearnKernel,
    SklearnMetric,
    sklearn_kernel_names,
    sklearn_metric_names,
)
from kreinlearn.kernels.strings import TextKernel

AUTO = "auto"
# What the kernels of a module take, and the extra that installs what they need, if only for some
# objects.
KINDS = {
    "strings": ("texts", ""),
    "ngrams": ("texts", ""),
    "positions": ("texts", ""),
    "alignment": ("texts", "bio"),
    "series": ("series", ""),
    "subsequences": ("series", "shapes"),
    "convolutions": ("series", ""),
    "vectors": ("vectors", ""),
    "scikit": ("vectors", ""),
    "tables": ("records", ""),
    "sets": ("sets", ""),
    "objects": ("points", ""),
    "shapes": ("points", ""),
    "graphs": ("graphs", ""),
    "attributed": ("graphs", ""),
    "precomputed": ("matrices", ""),
}
EXTRAS = {"EarthMover": "shapes", "WassersteinWL": "shapes"}  # of single classes
SOURCE = re.compile(r" \([^()]*\d{4}\)")  # "(Leslie et al. 2002)"
END = re.compile(r"(?<![.(])\. ")  # of a sentence
INDENTED: dict[str, Any] = {"initial_indent": "  ", "subsequent_indent": "    "}
CORNER = 300  # the rows and columns of a matrix that decide whether it is symmetric


def names() -> list[str]:
    return sorted({*registered(), *sklearn_kernel_names(), *sklearn_metric_names()})


@dataclass(frozen=True)
class Named:
    """What --kernel says, as estimators take it: a name, a field, or a list of either."""

    spec: Any
    parts: tuple[Kernel, ...]
    shown: str  # as it was written

    @property
    def domain(self) -> Domain:
        """What all kernels take as X."""
        return self.parts[0].domain if len(self.parts) == 1 else common_domain(self.parts)

    @property
    def fields(self) -> list[str]:
        """The columns that are compared one by one, if --kernel names them."""
        fields = [one.name for part in self.parts for one in fields_in(part)]
        return list(dict.fromkeys(map(str, fields)))

    @property
    def takes_texts(self) -> bool:
        return all(isinstance(part, TextKernel) for part in self.parts)

    @property
    def categorical(self) -> set[Any]:
        """Columns of numbers that hold categories, as parameters of "gower" say."""
        return {name for part in self.parts for name in part.get_params().get("categorical", ())}


def is_automatic(options: argparse.Namespace) -> bool:
    """Whether the learner compares kernels itself: "auto", the default of fit and evaluate."""
    is_front = getattr(options, "estimator", None) in (FRONT, *ESTIMATORS[FRONT])
    able = is_front or options.command == "evaluate"
    if options.kernel != [AUTO]:
        return able and options.kernel is None
    if not able:
        options.parser.error(
            "--kernel auto is for fit with --estimator krein, and for evaluate; name a kernel"
        )
    return True


def named(options: argparse.Namespace) -> Named | None:
    """Return the kernels of --kernel, or None without it; a wrong name is a wrong call."""
    given, params = options.kernel, dict(options.kernel_param)
    if given is None or is_automatic(options):
        if params:
            options.parser.error("--kernel-param belongs to a kernel: give --kernel NAME too")
        return None
    if params and len(given) > 1:
        options.parser.error("--kernel-param belongs to one kernel, and --kernel names several")
    of_columns = [one for one in given if "=" in one]
    if of_columns and len(of_columns) < len(given):
        options.parser.error(
            "--kernel: either each names a column, as in name=levenshtein, or none of them does"
        )
    pairs = [one.rpartition("=")[::2] for one in given]
    parts = [_resolved(options, name, params) for _, name in pairs]
    specs: list[Any] = [name for _, name in pairs]
    if of_columns:
        specs = parts = [_field(options, *one) for one in zip(pairs, parts, strict=True)]
    return Named(specs if len(specs) > 1 else specs[0], tuple(parts), ", ".join(given))


def _field(options: argparse.Namespace, pair: tuple[str, str], kernel: Kernel) -> Kernel:
    """Return the kernel of one column."""
    column, name = pair
    if not column:
        options.parser.error(f"--kernel ={name}: there is no column before the mark")
    if options.column:
        options.parser.error("--column: the columns are those that --kernel names; leave it out")
    if column in (options.id, options.target):
        options.parser.error(f"--kernel {column}={name}: {column} is the target or the id of rows")
    try:
        return columns({column: kernel})[0]
    except ValueError as error:  # a given matrix
        options.parser.error(f"--kernel {column}={name}: {error}")
        raise  # never reached: the line above exits


def _resolved(options: argparse.Namespace, name: str, params: dict[str, Any]) -> Kernel:
    """Return the kernel of a name."""
    if name not in names():
        meant = f"{close_to(name, names())} kreinlearn kernels lists all of them".lstrip()
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


# kreinlearn kernels


class Listed(NamedTuple):
    """A kernel as it is listed."""

    name: str
    objects: str  # what it takes
    what: str  # what it is, in a line; nothing for those of scikit-learn
    extra: str  # that installs what it needs


def run(options: argparse.Namespace) -> int:
    every = listing()
    for kind in OBJECTS if options.objects is None else [options.objects]:
        print(f"{kind}:")
        own = [one for one in every if one.objects == kind and one.what]
        for one in own:
            needs = f" [needs the extra {one.extra}]" if one.extra else ""
            print(f"  {one.name:<26}{one.what}{needs}")
        if theirs := [one.name for one in every if one.objects == kind and not one.what]:
            print(fill(f"of scikit-learn: {', '.join(theirs)}", 100, **INDENTED))
    print('--kernel takes a name; pip install "kreinlearn[bio]" installs the extra bio.')
    return 0


def listing() -> list[Listed]:
    """Return each kernel by its name; of several names of the same kernel the first one."""
    made = {name: type(resolve(name)) for name in names()}
    own = {kind: name for name, kind in reversed(made.items()) if name in REGISTRY}
    return [_listed(name, kind) for name, kind in made.items() if own.get(kind, name) == name]


def _listed(name: str, kind: type) -> Listed:
    objects, extra = KINDS.get(kind.__module__.rpartition(".")[2], ("objects", ""))
    theirs = kind in (SklearnKernel, SklearnMetric)
    what = "" if theirs else sentence(kind)
    return Listed(name, objects, what, EXTRAS.get(kind.__name__, extra))


def sentence(kind: type) -> str:
    """Return the first sentence of the documentation of a class, without sources and last mark."""
    paragraph = " ".join((getdoc(kind) or "").split("\n\n")[0].split())
    return END.split(SOURCE.sub("", paragraph))[0].removesuffix(".")
