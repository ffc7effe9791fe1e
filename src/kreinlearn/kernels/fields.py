"""Kernels on records whose fields are of different kinds: one similarity per field."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Self

import numpy as np

from kreinlearn.data.dates import date_order, in_days
from kreinlearn.data.frames import is_missing, is_number
from kreinlearn.data.records import field_values
from kreinlearn.data.tiles import length, objects_of, take
from kreinlearn.kernels.base import (
    Array,
    Columns,
    Kernel,
    ObjectKernel,
    Objects,
    delivered,
    resolve,
)
from kreinlearn.kernels.combine import Composite, LinearCombination, common_domain
from kreinlearn.kernels.domains import Domain, Records, in_field

MEAN_OF = 50  # objects of the fit, for the mean that stands for missing values
A_FIELD = "a field is named by a text, or by its place in a tuple, 0 for the first"


class Field(Composite):
    """The kernel of one field of a record: k(x, z) = kernel(x[name], z[name]).

    Records are dicts, tuples, rows of data frames of pandas, polars or pyarrow, rows of structured
    arrays, or rows of files. ``fit`` fits the kernel to the values of the field alone, and other
    fields are ignored. Whether it is a similarity or a dissimilarity, and what a value costs, are
    those of the kernel. Fields can be added and multiplied as all kernels can.

    A kernel on vectors sees numbers as vectors of length one, and a field that holds vectors of one
    length as these vectors. A kernel on objects and a function see the values of the field as they
    are, and "gower" sees each as a row with a single column: it compares categories. Dates are
    numbers of days for kernels on vectors and for "gower".

    A value may be missing: None, NaN, or the absent key of a dict. What the kernel gives for it and
    any other value is the mean of what it gives for two objects of the fit; two missing values are
    at distance 0.

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
    dates_ : str or None
        "day" or "month" if all of them were dates: what comes first in texts such as 1/3/2024.
    mean_ : float
        The mean of the kernel over pairs of at most 50 objects that are known.

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
    def packers(self) -> list[ObjectKernel]:
        return []  # which would take the values of the field, and not its records

    @property
    def untrusted(self) -> list[Kernel]:
        """This kernel, which takes records, in the place of a function of the values."""
        return [self] if super().untrusted else []

    def fit(self, X: Objects, rng: np.random.Generator) -> Self:
        self.sound()
        given = field_values(objects_of(X), self.name)
        vectors = common_domain(self._as_given()).is_vectors
        self.dates_ = date_order(given, self.name) if vectors else None
        values, known = self.column(X)
        if not known.any():
            raise ValueError(
                f"field {self.name!r} is missing in all {len(known)} rows (None, NaN, or a dict "
                "without it); leave the field out, or fill it in"
            )
        with in_field(self.name):
            super().fit(values, rng)
            some = np.unique(np.linspace(0, length(values) - 1, MEAN_OF).astype(np.intp))
            K = self.parts_[0].symmetric(take(values, some))
        self.numeric_ = all(is_number(type(x)) for x in given if not is_missing(x))
        self.mean_ = float(K[~np.eye(len(K), dtype=bool)].mean()) if len(K) > 1 else 0.0
        return self

    def column(self, X: Objects) -> tuple[Objects, Array]:
        """The known values of the field as its kernel takes them, and which rows have them."""
        values = field_values(objects_of(X), self.name)
        if self.dates_ is not None:
            values = in_days(values, self.dates_)
        known = np.array([not is_missing(x) for x in values], dtype=bool)
        with in_field(self.name):
            domain = common_domain(self.parts)
            return domain.of_values([x for x in values if not is_missing(x)]), known

    def with_means(self, K: Array | None, rows: Array, columns: Array) -> Array:
        """The kernel of all rows and columns, from that of those that are known."""
        if K is not None and rows.all() and columns.all():
            return K
        filled = np.full((len(rows), len(columns)), self.mean_)
        if self.is_dissimilarity:
            filled[np.ix_(~rows, ~columns)] = 0.0
        if K is not None:
            filled[np.ix_(rows, columns)] = K
        return filled

    def columns(self, Z: Objects) -> Columns:
        return FieldColumns(self, Z)

    def diagonal(self, A: Objects) -> Array:
        values, known = self.column(A)
        diagonal = np.full(len(known), 0.0 if self.is_dissimilarity else self.mean_)
        if known.any():
            with in_field(self.name):
                diagonal[known] = self.parts[0].diagonal(values)
        return diagonal

    def symmetric(self, Z: Objects, own: Array | None = None) -> Array:
        values, known = self.column(Z)
        with in_field(self.name):
            own = None if own is None else own[known]
            K = self.parts[0].symmetric(values, own) if known.any() else None
        return self.with_means(K, known, known)

    def anew(self, A: Objects, B: Objects) -> Array:
        (a, rows), (b, columns) = self.column(A), self.column(B)
        with in_field(self.name):
            K = self.parts[0].anew(a, b) if rows.any() and columns.any() else None
        return self.with_means(K, rows, columns)


class FieldColumns:
    """From records A to the kernel columns of one field."""

    def __init__(self, field: Field, Z: Objects) -> None:
        values, self.known = field.column(Z)
        self.field = field
        with in_field(field.name):
            self.columns = field.parts[0].columns(values) if self.known.any() else None

    def __call__(self, A: Objects, out: Array | None = None) -> Array:
        values, rows = self.field.column(A)
        with in_field(self.field.name):
            K = self.columns(values) if self.columns is not None and rows.any() else None
        return delivered(self.field.with_means(K, rows, self.known), out)


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


def sum_of_fields(kernels: Mapping[Any, object]) -> Kernel:
    """What a dict means to an estimator that takes one kernel: each field counts once.

    A single field is that field, whose dissimilarity the estimator may transform as it likes.
    """
    fields = columns(kernels)
    if len(fields) == 1:
        return fields[0]
    from kreinlearn.kernels.transformed import SimilarityOf

    alike = [SimilarityOf(field) if field.is_dissimilarity else field for field in fields]
    return LinearCombination(alike).sound()


def _field(name: Hashable, spec: object) -> Field:
    with in_field(name):
        return Field(name, resolve(spec)).sound()
