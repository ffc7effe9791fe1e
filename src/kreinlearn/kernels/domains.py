"""What a kernel takes as X: vectors, objects, records, anything, or a given matrix.

Every kernel has a ``domain``, and whoever needs to know what X may be asks that: nobody compares
types of kernels.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import InputTags, check_array

from kreinlearn.data.dates import in_days
from kreinlearn.data.frames import (
    Category,
    column_names,
    is_missing,
    is_sequence,
    named_rows,
    rows_of_frame,
)
from kreinlearn.data.opening import as_path, collected, opened
from kreinlearn.data.records import field_values, records_of, require_known
from kreinlearn.data.source import RowObjects
from kreinlearn.data.table import Table, require_column
from kreinlearn.data.tiles import Part, Source
from kreinlearn.data.validation import (
    REALS,
    Border,
    is_condensed,
    is_table,
    list_of_objects,
    numbers_as_array,
    require_finite_matrix,
    require_numbers,
    require_one_dimension,
    require_unmasked,
    square_from_condensed,
)

if TYPE_CHECKING:
    from kreinlearn.kernels.base import Kernel

A_VECTOR = (
    "this kernel takes a number, or a vector: a list or 1-D array of numbers; for texts there are "
    'kernels such as "jaro_winkler", for categories "gower"'
)


@dataclass(frozen=True)
class Domain:
    """The inputs that a kernel is defined on.

    A subclass says how X is read from files (``_rows_of``) and how it is checked in memory
    (``_checked``).
    """

    # at most one of these holds; none of them holds for a kernel that takes anything
    is_vectors = False
    is_objects = False
    is_records = False
    is_matrix = False
    in_words = ""  # what X is, for messages
    maps_memory = False  # a numpy.memmap is read one block of rows at a time

    def validate(self, X: object, border: Border, *, reset: bool) -> Any:
        """X as the kernel takes it.

        Parameters
        ----------
        X : object
            Whatever was passed to an estimator, except for Dask collections.
        border : Border
            The types that are accepted, and the estimator that remembers names and numbers of
            columns.
        reset : bool
            True in ``fit``, which remembers them. False elsewhere: they are compared.

        Returns
        -------
        array, CSR matrix, list of objects or Source
            A ``Source`` reads its rows when they are wanted. What has been validated before (a
            ``Part``) is returned as it is.
        """
        require_unmasked(X, "X")
        X = self.read(collected(X), border, reset=reset)
        return X if isinstance(X, Source) else self._checked(X, border, reset=reset)

    def read(self, X: object, border: Border, *, reset: bool) -> Any:
        """A ``Source`` for rows that are not in memory; X itself, or what was read, otherwise."""
        if isinstance(X, Part | list) or type(X) is np.ndarray:
            return X
        X = as_path(X) if self.is_vectors else X  # no text can be a vector
        in_place = isinstance(X, np.memmap) and not self.maps_memory
        data = None if in_place else opened(X, None if reset else border.column)
        return X if data is None else self._rows_of(data, border, reset=reset)

    def tags(self, input_tags: InputTags, kernel: Kernel) -> None:
        """Set scikit-learn's tags that say which inputs an estimator with this kernel takes."""
        input_tags.pairwise = self.is_matrix
        input_tags.positive_only = kernel.of_dissimilarities
        input_tags.sparse = kernel.sparse
        input_tags.string = not (self.is_vectors or self.is_matrix)
        input_tags.categorical = input_tags.allow_nan = self.is_records

    def holds(self, objects: Any, n_features: int | None) -> bool:
        """Whether objects read from a model file are what ``validate`` returns.

        They are compared with the number of features that the model remembers. A matrix has no
        objects: its landmarks are numbers of columns.
        """
        return isinstance(objects, list)

    def of_numbers(self, X: Any, border: Border, *, square: bool = False) -> Any:
        """A matrix of finite numbers; ``square`` if its columns may be its rows."""
        raise TypeError(f"{self.in_words} are no matrix")

    def of_values(self, values: list[Any]) -> Any:
        """The values of one field of several records, as the kernel takes objects.

        None of them is missing. An error names value i of n.
        """
        return values

    def intersection(self, other: Domain) -> Domain | None:
        """What both domains contain; None if there is nothing."""
        return self if isinstance(other, Anything) or self == other else None

    def _rows_of(self, data: Source | Table, border: Border, *, reset: bool) -> Any:
        raise NotImplementedError

    def _checked(self, X: object, border: Border, *, reset: bool) -> Any:
        raise NotImplementedError


@dataclass(frozen=True)
class Vectors(Domain):
    """Rows of numbers: an (n, d) array, or a CSR matrix if ``sparse``.

    Parameters
    ----------
    sparse : bool, default=False
        Whether sparse matrices are accepted.
    """

    sparse: bool = False
    is_vectors = True
    in_words = "vectors"
    maps_memory = True

    def _rows_of(self, data: Source | Table, border: Border, *, reset: bool) -> Source:
        data = border.with_known_names(data, reset=reset)
        return border.within(border.numbers(data, reset=reset))

    def _checked(self, X: object, border: Border, *, reset: bool) -> Any:
        require_numbers(X)
        return border.vectors(X, sparse=self.sparse, reset=reset)

    def holds(self, objects: Any, n_features: int | None) -> bool:
        values = objects.data if sp.issparse(objects) else objects
        if not isinstance(values, np.ndarray) or not (self.sparse or values is objects):
            return False
        good = objects.ndim == 2 and values.dtype == np.float64 and bool(np.isfinite(values).all())
        return good and type(n_features) is int and objects.shape[1] == n_features > 0

    def of_values(self, values: list[Any]) -> Any:
        """A column of numbers, (n, 1), or vectors as rows, (n, d)."""
        vectors = [_vector(x, i, len(values)) for i, x in enumerate(values)]
        length = len(vectors[0]) if vectors else 1
        for i, vector in enumerate(vectors):
            if len(vector) != length:
                raise ValueError(
                    f"object {i} (of {len(values)}) is a vector of {len(vector)} numbers, the "
                    f"first has {length}; all must have the same number"
                )
        X = np.array(vectors, dtype=np.float64).reshape(len(vectors), length)
        finite = np.isfinite(X).all(axis=1)
        if not finite.all():
            i = int(np.argmin(finite))
            raise ValueError(
                f"object {i} (of {len(values)}) is {values[i]!r:.40}; numbers must be finite: "
                "correct it or leave the row out"
            )
        return X

    def intersection(self, other: Domain) -> Domain | None:
        if isinstance(other, Vectors | Anything):
            return Vectors(self.sparse and other.sparse)
        return None


def _vector(x: Any, i: int, n: int) -> Any:
    """A number or a vector of numbers as a sequence of floats."""
    if isinstance(x, Real | Decimal | np.bool_):
        return [float(x)]
    try:
        vector = np.asarray(x)
    except ValueError:  # rows of unequal length
        vector = np.empty(0)
    if vector.ndim != 1 or vector.dtype.kind not in "fiub" or not vector.size:
        raise ValueError(f"object {i} (of {n}) is {type(x).__name__} {x!r:.40}; {A_VECTOR}")
    return vector


VECTORS = (Vectors(), Vectors(sparse=True))


@dataclass(frozen=True)
class Objects(Domain):
    """A sequence of objects: texts, series, graphs. Rows of a table of numbers are objects too."""

    is_objects = True
    in_words = "objects"

    def _rows_of(self, data: Source | Table, border: Border, *, reset: bool) -> Source:
        data = border.with_known_names(data, reset=reset)
        if isinstance(data, Table) and data.holds_numbers():
            source = border.numbers(data, reset=reset)
        else:
            source = border.objects(data, reset=reset)
        source = border.within(source)
        return RowObjects(source) if source.ndim == 2 else source

    def _checked(self, X: object, border: Border, *, reset: bool) -> list[Any]:
        require_one_dimension(X)
        border.check_names(X, reset=reset)
        return list_of_objects(numbers_as_array(X))


@dataclass(frozen=True)
class Records(Domain):
    """Rows of a table whose columns may be numbers or categories, and may miss values.

    Parameters
    ----------
    fields : tuple of pairs, default=()
        The fields that must be there: the name of each, or its place, and the domain of the kernel
        that compares its values. The same field may be there twice.
    whole : bool, default=True
        Whether whole rows are compared too. If not, all other fields are left out.
    """

    fields: tuple[tuple[Hashable, Domain], ...] = ()
    whole: bool = True
    is_records = True
    in_words = "records"

    @property
    def names(self) -> list[Hashable]:
        """The names of the fields, each of them once."""
        return list(dict.fromkeys(name for name, _ in self.fields))

    @property
    def objects(self) -> set[Hashable]:
        """The fields whose values are objects, even if those in a text file look like numbers."""
        return {name for name, domain in self.fields if domain.is_objects}

    def of_values(self, values: list[Any]) -> list[Any]:
        """Records as they are; a single value is a record with one field."""
        one = [not (isinstance(x, Mapping | np.void) or is_sequence(x)) for x in values]
        return [(x,) if single else x for x, single in zip(values, one, strict=True)]

    def intersection(self, other: Domain) -> Domain | None:
        if isinstance(other, Records):
            fields = dict.fromkeys((*self.fields, *other.fields))
            return Records(tuple(fields), self.whole or other.whole)
        return Records(self.fields) if isinstance(other, Anything) else None

    def _rows_of(self, data: Source | Table, border: Border, *, reset: bool) -> Any:
        if not isinstance(data, Table):  # all rows are looked at in any case
            return border.within(border.numbers(data, reset=reset) if data.ndim == 2 else data)[:]
        if self.whole:
            return data.load(border.budget)
        return data.pick(self.columns_in(data)).load_fields(border.budget, self.objects)

    def columns_in(self, table: Table) -> list[str]:
        """The columns of a table that hold the fields; an error if there is no such column."""
        names = []
        for name in self.names:
            if not isinstance(name, str):
                raise ValueError(
                    f"there is no field {name!r} in {table.origin}, whose columns go by name; "
                    f"fields are {table.names!r:.200}"
                )
            require_column(name, table.names, table.origin)
            names.append(name)
        return names

    def _checked(self, X: object, border: Border, *, reset: bool) -> list[Any]:
        """Dicts of the fields that are compared; whole rows, if these are compared too."""
        rows = self._whole_rows(X, border, reset) if self.whole else records_of(X, self.names)
        for name, domain in self.fields:
            require_known(rows, name)
            values = in_days(field_values(rows, name)) if domain.is_vectors else []
            known = next((x for x in values if not is_missing(x)), None)
            if known is not None:
                with in_field(name):
                    domain.of_values([known if is_missing(x) else x for x in values])
        return rows

    def _whole_rows(self, X: object, border: Border, reset: bool) -> list[Any]:
        """Rows as tuples or the like; as dicts if they are, or if columns had names in ``fit``."""
        names = column_names(X)
        rows = rows_of_frame(X) if hasattr(X, "columns") else list_of_objects(X)
        by_place = not isinstance(rows[0], Mapping | np.void)
        if by_place and (reset or border.fitted_to_vectors):
            border.check_names(X, reset=reset)
            border.check_count(rows, reset=reset)
            known = border.feature_names
            names = None if known is None else list(known)
        return rows if names is None else named_rows(rows, names)


@contextmanager
def in_field(name: Hashable) -> Iterator[None]:
    """Add a note with the name of a field to any error that is raised inside."""
    try:
        yield
    except Exception as error:
        note = f"in the field {name!r} of the records"
        if note not in getattr(error, "__notes__", ()):
            error.add_note(note)
        raise


@dataclass(frozen=True)
class Anything(Domain):
    """Vectors if X is a table of numbers, else a sequence of objects: for a person's function.

    After ``fit`` X must be of the same kind as it was there.

    Parameters
    ----------
    sparse : bool, default=True
        Whether sparse matrices are accepted.
    """

    sparse: bool = True
    in_words = "any"
    maps_memory = True

    def _rows_of(self, data: Source | Table, border: Border, *, reset: bool) -> Source:
        data = border.with_known_names(data, reset=reset)
        vectors = border.fitted_to_vectors
        if reset:
            vectors = data.holds_numbers() if isinstance(data, Table) else data.ndim == 2
        source = (border.numbers if vectors else border.objects)(data, reset=reset)
        return border.within(source)

    def _checked(self, X: object, border: Border, *, reset: bool) -> Any:
        require_one_dimension(X)
        if is_table(X) if reset else border.fitted_to_vectors:
            return Vectors(self.sparse)._checked(X, border, reset=reset)
        border.check_names(X, reset=reset)
        return list_of_objects(X)

    def holds(self, objects: Any, n_features: int | None) -> bool:
        listed = isinstance(objects, list)
        return listed or Vectors(self.sparse).holds(objects, n_features)

    def of_values(self, values: list[Any]) -> list[Any]:
        return [x.value if isinstance(x, Category) else x for x in values]

    def intersection(self, other: Domain) -> Domain | None:
        if isinstance(other, Vectors | Anything):
            return type(other)(self.sparse and other.sparse)
        return other.intersection(self)


@dataclass(frozen=True)
class Matrix(Domain):
    """Rows of a given matrix, whose columns are the training objects by number.

    Parameters
    ----------
    dissimilarities : bool, default=False
        Whether the matrix holds dissimilarities. Then no entry may be negative, and in ``fit`` a
        condensed vector of distances, as scipy's pdist returns it, is accepted too.
    """

    dissimilarities: bool = False
    is_matrix = True
    in_words = "precomputed"

    def _rows_of(self, data: Source | Table, border: Border, *, reset: bool) -> Any:
        return border.numbers(data, reset=reset).within(border.budget).whole()

    def _checked(self, X: object, border: Border, *, reset: bool) -> Any:
        if reset and is_condensed(X):
            X = square_from_condensed(X, dissimilarities=self.dissimilarities)
        require_numbers(X)
        border.check_names(X, reset=reset)
        K = self.of_numbers(X, border, square=reset)
        try:
            border.check_count(K, reset=reset)
        except ValueError as error:
            message = f"{error} Pass the columns of the training objects, in their order."
            raise ValueError(message) from error
        return K

    def of_numbers(self, X: Any, border: Border, *, square: bool = False) -> Any:
        """A matrix of finite numbers; ``square`` if its columns may be its rows."""
        from kreinlearn.kernels.dissimilarity import check_dissimilarities

        K = check_array(X, dtype=REALS, ensure_all_finite=False, input_name="X")
        require_finite_matrix(K)
        if self.dissimilarities:
            square = square and K.shape[0] == K.shape[1]
            check_dissimilarities(K, np.diagonal(K) if square else None)
        return K
