"""Kernels on records whose fields are of different kinds: one similarity per field."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Self

import numpy as np

from kreinlearn.data.frames import is_number
from kreinlearn.data.records import field_values
from kreinlearn.data.tiles import objects_of
from kreinlearn.kernels.base import Array, Columns, Kernel, Objects, delivered, resolve
from kreinlearn.kernels.combine import Composite, common_domain
from kreinlearn.kernels.domains import Domain, Records, in_field

A_FIELD = "a field is named by a text, or by its place in a tuple, 0 for the first"


class Field(Composite):
    """The kernel of one field of a record: k(x, z) = kernel(x[name], z[name]).

    Records are dicts, tuples, rows of data frames of pandas, polars or pyarrow, rows of structured
    arrays, or rows of files. ``fit`` fits the kernel to the values of the field alone, and other
    fields are ignored. Whether it is a similarity or a dissimilarity, and what a value costs, are
    those of the kernel. Fields can be added and multiplied as all kernels can.

    A kernel on vectors sees numbers as vectors of length one, and a field that holds vectors of one
    length as these vectors. A kernel on objects and a function see the values of the field as they
    are, and "gower" sees each as a row with a single column: it compares categories. A field must
    not be missing in any record.

    Parameters
    ----------
    name : str or int
        The name of the field. In tuples, lists and arrays it is the place, counted from 0.
    kernel : Kernel, str or callable
        The kernel of its values: a kernel, a name, or a function k(A, B) of two lists of values.

    Attributes
    ----------
    numeric_ : bool
        Whether all values of the field were numbers in ``fit``.

    Examples
    --------
    >>> import numpy as np
    >>> from kreinlearn.kernels import Field
    >>> people = [{"name": "Ann", "age": 31}, {"name": "Anne", "age": 35}]
    >>> Field("name", "levenshtein").fit(people, np.random.default_rng(0))(people)
    array([[0., 1.],
           [1., 0.]])
    >>> Field("age", "manhattan").fit(people, np.random.default_rng(0))(people)
    array([[0., 4.],
           [4., 0.]])
    """

    sparse = False  # rows of a sparse matrix have no fields

    def __init__(self, name: Hashable, kernel: object) -> None:
        self.name = name
        self.kernel = kernel

    def sound(self) -> Self:
        if isinstance(self.name, bool) or not isinstance(self.name, str | int | np.integer):
            raise TypeError(f"name={self.name!r} is not allowed; {A_FIELD}")
        return super().sound()

    def _makes_dissimilarity(self, parts: Sequence[Kernel]) -> bool:
        return parts[0].is_dissimilarity

    @property
    def domain(self) -> Domain:
        return Records(((self.name, common_domain(self.parts)),), whole=False)

    @property
    def splits_squares(self) -> bool:  # type: ignore[override]
        return self.parts[0].splits_squares

    @property
    def untrusted(self) -> list[Kernel]:
        """This kernel, which takes records, in the place of a function of the values."""
        return [self] if super().untrusted else []

    def fit(self, X: Objects, rng: np.random.Generator) -> Self:
        self.sound()
        values = field_values(objects_of(X), self.name)
        with in_field(self.name):
            super().fit(common_domain(self._as_given()).of_values(values), rng)
        self.numeric_ = all(is_number(kind) for kind in set(map(type, values)))
        return self

    def column(self, X: Objects) -> Objects:
        """The values of the field as its kernel takes them: a list, or an array for vectors."""
        return self.parts[0].domain.of_values(field_values(objects_of(X), self.name))

    def columns(self, Z: Objects) -> Columns:
        with in_field(self.name):
            return FieldColumns(self, self.parts[0].columns(self.column(Z)))

    def diagonal(self, A: Objects) -> Array:
        with in_field(self.name):
            return self.parts[0].diagonal(self.column(A))

    def symmetric(self, Z: Objects, own: Array | None = None) -> Array:
        with in_field(self.name):
            return self.parts[0].symmetric(self.column(Z), own)

    def anew(self, A: Objects, B: Objects) -> Array:
        with in_field(self.name):
            return self.parts[0].anew(self.column(A), self.column(B))


class FieldColumns:
    """From records A to the kernel columns of one field."""

    def __init__(self, field: Field, columns: Columns) -> None:
        self.field, self.columns = field, columns

    def __call__(self, A: Objects, out: Array | None = None) -> Array:
        with in_field(self.field.name):
            return delivered(self.columns(self.field.column(A)), out)


def fields_in(kernel: Kernel) -> list[Field]:
    """All fields that a kernel compares, itself included; those inside of fields are left out."""
    if isinstance(kernel, Field):
        return [kernel]
    parts = kernel.parts if isinstance(kernel, Composite) else []
    return [field for part in parts for field in fields_in(part)]


def columns(kernels: Mapping[Any, object]) -> list[Field]:
    """One kernel per field of a record, for records whose fields are of different kinds.

    Parameters
    ----------
    kernels : mapping
        From the name of a field, or its place in tuples, to the kernel of its values: a kernel, a
        name, or a function k(A, B) of two lists of values.

    Returns
    -------
    list of Field
        In the order of the mapping. The list as ``kernel=`` of ``KreinClassifier`` and
        ``KreinRegressor`` leaves it to them how much each field counts; a sum of its kernels, such
        as ``2.0 * a + b``, fixes that.

    Examples
    --------
    >>> from kreinlearn import columns, similarity_of
    >>> name, age = columns({"name": "jaro_winkler", "age": "gaussian"})
    >>> name
    Field(kernel=JaroWinkler(), name='name')
    >>> similarity_of(name) + 0.5 * age
    LinearCombination(kernels=[SimilarityOf(kernel=Field(kernel=JaroWinkler(),
                                                         name='name')),
                               Field(kernel=Gaussian(), name='age')],
                      weights=[1.0, 0.5])
    """
    if not isinstance(kernels, Mapping) or not kernels:
        raise TypeError(
            f"columns takes a dict from names of fields to kernels, got {kernels!r:.80}; "
            'pass {"name": "jaro_winkler", "age": "gaussian"}, for example'
        )
    return [_field(name, spec) for name, spec in kernels.items()]


def _field(name: Hashable, spec: object) -> Field:
    with in_field(name):
        return Field(name, resolve(spec)).sound()
