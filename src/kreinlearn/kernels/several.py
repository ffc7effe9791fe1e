"""Several kernels of the same objects, and the sum of similarities that a learner makes of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Self

import numpy as np

from kreinlearn.data.tiles import length, take
from kreinlearn.kernels.base import Array, Columns, Kernel, Objects, delivered, symmetrised
from kreinlearn.kernels.callables import CallableKernel
from kreinlearn.kernels.combine import Composite
from kreinlearn.kernels.dissimilarity import OfDistanceAlone, check_dissimilarities, make_transform
from kreinlearn.kernels.fields import Field
from kreinlearn.kernels.keys import Key, keys_of
from kreinlearn.kernels.precomputed import GivenMatrix

HOW = (
    'pass a list of kernels such as ["levenshtein", "jaro_winkler"]: names, functions, pairwise(f) '
    "or objects of kreinlearn.kernels"
)


class Term(NamedTuple):
    """One similarity of a sum: the number of its kernel, its transformation, and its weight."""

    number: int
    transform: str | None  # None if the kernel is a similarity itself
    weight: float


class Several(Composite):
    """What ``kernel=[k1, k2, ...]`` means: kernels of which a learner makes a sum of similarities.

    Similarities and dissimilarities may stand side by side, as a learner makes a similarity of each
    dissimilarity. Before it has done so, there are no values. Afterwards the kernel is

        k(x, z) = sum_t weight_t s_t(x, z),

    where s_t is a kernel itself, or one of the transformations of ``SimilarityOf``. Every distance
    is evaluated once, however many terms are made of it.

    Parameters
    ----------
    kernels : list of kernels, names of kernels or functions
        At least one; all take the same kind of objects.
    terms : list of (int, str or None, float), default=None
        The number of a kernel, the name of a transformation, and a weight, for each term. None
        before they are learned.

    Attributes
    ----------
    reference_ : list or array
        The objects by which the transformations are fixed.
    transforms_ : list
        The transformations as fitted, one per term; None for a kernel that is a similarity.
    offsets_ : list
        What the transformations know of each reference object.

    Examples
    --------
    >>> from kreinlearn.kernels.several import Several
    >>> Several(["levenshtein", "jaro_winkler", "levenshtein"]).labels
    ['levenshtein', 'jaro_winkler', 'levenshtein (3)']
    """

    def __init__(
        self, kernels: Sequence[Any], terms: Sequence[tuple[int, str | None, float]] | None = None
    ) -> None:
        self.kernels = kernels
        self.terms = terms

    def _named(self) -> dict[str, Any]:
        if not isinstance(self.kernels, list | tuple) or not self.kernels:
            raise ValueError(f"kernel={self.kernels!r} holds no kernel; {HOW}")
        return {f"k{i}": spec for i, spec in enumerate(self.kernels, 1)}

    def _makes_dissimilarity(self, parts: Sequence[Kernel]) -> bool:
        return False

    @property
    def labels(self) -> list[str]:
        """What the kernels are called in attributes and reports, each by a name of its own."""
        specs = list(self._named().values())
        fields = [spec.name for spec in specs if isinstance(spec, Field)]
        labels = list[str]()
        for number, spec in enumerate(specs, 1):
            label = label_of(spec, number)
            if isinstance(spec, Field) and fields.count(spec.name) > 1:
                label = f"{label}: {label_of(spec.kernel, number)}"
            labels.append(f"{label} ({number})" if label in labels else label)
        return labels

    def fit(self, X: Objects, rng: np.random.Generator) -> Self:
        parts = list[Kernel]()
        fresh = self.sound().fresh_parts()
        for part, label, own in zip(fresh, self.labels, rng.spawn(len(fresh)), strict=True):
            with named(label):
                parts.append(part.with_processes(1, like=self).fit(X, own))
        self.parts_ = parts
        return self

    def learned(
        self, terms: Sequence[Term], reference: Objects, values: Mapping[int, Array]
    ) -> Several:
        """The sum of these terms, fitted, with those kernels only that it needs.

        ``values`` are what those kernels give for all pairs of reference objects, by number.
        """
        used = sorted({term.number for term in terms})
        own = [(used.index(number), name, weight) for number, name, weight in terms]
        other = Several([self.kernels[i] for i in used], own)
        other.parts_ = [self.parts_[i] for i in used]
        other.transforms_ = [
            None if name is None else make_transform(name, values[number])
            for number, name, _ in terms
        ]
        if any(t is not None and not isinstance(t, OfDistanceAlone) for t in other.transforms_):
            other.reference_ = reference
        else:
            other.reference_ = take(reference, np.empty(0, dtype=np.intp))
        other.offsets_ = other.offsets([values[i] for i in used])
        return other

    # Values

    def columns(self, Z: Objects) -> Columns:
        return SumColumns(self, Z)

    @property
    def reference(self) -> Objects:
        """The reference objects; an error if nothing was learned yet."""
        if self.terms is None:
            raise TypeError(
                f"a list of kernels has no values before its weights are learned; {HOW}"
            )
        return self.reference_

    def to_reference(self, A: Objects) -> list[Array]:
        """What each kernel gives for objects and the reference objects."""
        reference = self.reference
        if not length(reference):
            return [np.empty((length(A), 0)) for _ in self.parts]
        return [part.columns(reference)(A) for part in self.parts]

    def offsets(self, D: Sequence[Array]) -> list[Array | None]:
        """What each transformation knows of every object beside a distance, its a(x).

        ``D`` are the values of each kernel for the objects and the reference objects.
        """
        terms = zip(self.terms or (), self.transforms_, strict=True)
        return [None if t is None else t.offsets(D[number]) for (number, _, _), t in terms]

    def summed(
        self, values: Sequence[Array], of_rows: list[Array | None], of_columns: list[Array | None]
    ) -> Array:
        """The sum of all terms, from what the kernels give and from the offsets of the terms."""
        total = np.zeros(values[0].shape)
        terms = zip(self.terms or (), self.transforms_, of_rows, of_columns, strict=True)
        for (number, _, weight), transform, a, b in terms:
            K = values[number]
            if transform is not None and a is not None and b is not None:
                check_dissimilarities(K)
                K = transform.similarity(K, a, b)
            total += weight * K
        return total

    def symmetric(self, Z: Objects, own: Array | None = None) -> Array:
        a = self.offsets(self.to_reference(Z))
        return symmetrised(self.summed([part.symmetric(Z) for part in self.parts], a, a))

    def diagonal(self, A: Objects) -> Array:
        total, offsets = np.zeros(length(A)), self.offsets(self.to_reference(A))
        terms = zip(self.terms or (), self.transforms_, offsets, strict=True)
        for (number, _, weight), transform, a in terms:
            alone = transform is None or a is None
            own = self.parts[number].diagonal(A) if alone else transform.diagonal(a)
            total += weight * own
        return total


class SumColumns:
    """From rows A to the sum of all terms for columns Z.

    Distances to reference objects that are among the columns are not evaluated again.
    """

    def __init__(self, kernel: Several, Z: Objects) -> None:
        self.kernel, self.raw = kernel, [part.columns(Z) for part in kernel.parts]
        reference, columns = keys_of(kernel.reference), keys_of(Z)
        place = {key: i for i, key in enumerate(columns)}
        found = [place.get(key) for key in reference]
        self.at = None if None in found else np.array(found, dtype=np.intp)
        self.of_columns = self._offsets_of(Z, columns, {key: i for i, key in enumerate(reference)})

    def _offsets_of(self, Z: Objects, keys: list[Key], known: dict[Key, int]) -> list[Array | None]:
        """Offsets of the columns: those of reference objects are known."""
        at = np.array([known.get(key, -1) for key in keys], dtype=np.intp)
        others = np.flatnonzero(at < 0)
        offsets = [None if a is None else a[at] for a in self.kernel.offsets_]
        if len(others):
            new = self.kernel.offsets(self.kernel.to_reference(take(Z, others)))
            for a, its in zip(offsets, new, strict=True):
                if a is not None:
                    a[others] = its
        return offsets

    def __call__(self, A: Objects, out: Array | None = None) -> Array:
        values = [columns(A) for columns in self.raw]
        if self.at is None:
            D = self.kernel.to_reference(A)
        else:
            D = [each[:, self.at] for each in values]
        return delivered(self.kernel.summed(values, self.kernel.offsets(D), self.of_columns), out)


@contextmanager
def named(label: str) -> Iterator[None]:
    """Say in an error which kernel of a list has raised it."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise type(error)(f"{label}: {error}") from error


def label_of(spec: Any, number: int = 0) -> str:
    """What a kernel is called: its name, that of its field, or what it looks like in code."""
    if isinstance(spec, str):
        return spec
    if isinstance(spec, np.ndarray | GivenMatrix):
        return f"matrix {number}"
    if isinstance(spec, Field):
        return str(spec.name)
    function = spec.func if isinstance(spec, CallableKernel) else spec
    if not isinstance(function, Kernel):
        return str(getattr(function, "__name__", function))
    return " ".join(repr(spec).split())
