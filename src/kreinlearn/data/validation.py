"""Checks at the border: tables of numbers, given matrices, sequences of objects, targets, seeds.

What scikit-learn would silently read as something else is refused here, with an error that says
what was given and what to pass instead.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Set
from dataclasses import dataclass
from decimal import Decimal
from numbers import Number, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import squareform
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_feature_names,
    _check_n_features,
    _check_y,
    check_array,
)

from kreinlearn._compat import check_sample_weight
from kreinlearn.data.frames import is_missing
from kreinlearn.data.memory import budget_bytes
from kreinlearn.data.opening import opened
from kreinlearn.data.source import ArrayReader, Checked
from kreinlearn.data.table import Table
from kreinlearn.data.tiles import Source, first_not_finite, length, objects_of

REALS = [np.float64, np.float32]  # types of given numbers that are not copied as a whole
SYMMETRY_TILE = 1024  # rows compared at a time
# how the names of types begin, in numpy, pandas, polars and pyarrow
DATES = ("date", "time", "duration", "period")
CATEGORIES = ("categor", "enum", "dictionary")
TEXTS = ("str", "object", "<u", "|s", "utf8", "large_string")
NO_SEQUENCES = (str, bytes, bytearray, Mapping, Set, np.matrix)  # not read as several objects


TargetLike = ArrayLike | str | None  # targets, or the name of the column that holds them
WeightLike = ArrayLike | None  # one weight per row
MANY_LABELS = 2**16  # that are not sorted only to see that they are labels
LARGEST = 1e150  # of a target, whose square is summed

# Tables of numbers


def is_frame(X: Any) -> bool:
    """Whether X is a data frame or a sparse matrix: iterating over it does not give objects."""
    return bool(sp.issparse(X) or hasattr(X, "columns"))


def is_table(X: Any) -> bool:
    """Whether X holds numbers in two dimensions, so that its rows are vectors."""
    if is_frame(X):
        return True
    if not hasattr(X, "__array__") or hasattr(X, "to_list"):  # a single column holds objects
        return False
    X = np.asarray(X)
    return X.ndim == 2 and (X.dtype.kind in "fiubcmM" or not _holds_texts(X))


def require_numbers(X: Any) -> None:
    """Refuse dates (TypeError) and categories (ValueError), which could be taken as numbers."""
    if type(X) is np.ndarray and X.dtype.kind in "fiub":
        return
    if hasattr(X, "to_list"):
        raise ValueError(
            f"Expected 2D array, got 1D array instead: one column, a {type(X).__name__}; "
            "pass the data frame"
        )
    _require_no_blocks(X)
    _require_no_texts(X)
    names = _names_of_types(X)
    if "object" in names:
        _require_no_missing(np.asarray(X))
    for name in names:
        if name.startswith(DATES):
            raise TypeError(f"X must hold numbers, got dates ({name}); convert them first")
        if name.startswith(CATEGORIES):
            raise ValueError(f"X must hold numbers, got categories ({name}); encode them first")


def _require_no_texts(X: Any) -> None:
    """Refuse a sequence of texts with the name of a kernel that takes them."""
    is_flat = isinstance(X, list | tuple) or (isinstance(X, np.ndarray) and X.ndim == 1)
    if is_flat and len(X) and isinstance(X[0], str):
        raise ValueError(
            f"could not convert string to float: {str(X[0])!r:.60}; X holds texts, and the kernel "
            'takes numbers: pass a kernel on texts, such as kernel="levenshtein"'
        )
    if is_flat and len(X) and _is_of_own_class(X[0]):
        raise TypeError(
            f"float() argument must be a string or a real number, not {type(X[0]).__name__!r}; the "
            "kernel takes numbers, and X holds objects: pass pairwise(f) of a function of two "
            "objects as kernel"
        )


def _is_of_own_class(x: object) -> bool:
    """Whether an object is of a class that neither Python nor a library of numbers has made."""
    known = hasattr(x, "__array__") or hasattr(x, "__float__") or hasattr(x, "__len__")
    return not known and type(x).__module__ != "builtins"


def _require_no_blocks(X: Any) -> None:
    """Refuse a list of tables, which numpy would stack along a new axis."""
    shape = getattr(X[0], "shape", None) if isinstance(X, list | tuple) and len(X) else None
    if isinstance(shape, tuple) and len(shape) == 2:
        raise ValueError(
            f"X is a {type(X).__name__} of {len(X)} blocks, the first of shape {shape}; pass "
            "kreinlearn.Blocks(X), whose rows are those of all blocks"
        )


def _require_no_missing(X: NDArray[Any]) -> None:
    """Refuse pandas.NA among objects, for which float() would raise a TypeError."""
    for place, value in np.ndenumerate(X):
        if is_missing(value):
            raise ValueError(f"Input X contains NaN: a missing value at {place}")


def _holds_texts(X: Any) -> bool:
    """Whether a frame or an array holds anything but numbers, categories and dates."""
    names = [name for name in _names_of_types(X) if name.startswith(TEXTS)]
    if set(names) != {"object"}:
        return bool(names)
    values = np.asarray(X).flat
    return not all(isinstance(value, Number) or is_missing(value) for value in values)


def _names_of_types(X: Any) -> list[str]:
    types = [_type_of(X)]
    if hasattr(X, "columns"):
        types = X.dtypes if hasattr(X, "dtypes") else X.schema.types
    return [str(one).lower() for one in types]


def _type_of(X: Any) -> Any:
    if isinstance(X, list | tuple) and len(X):
        return _type_of(X[0])
    return getattr(X, "dtype", None)


def _holds_finite_rows(X: Any) -> bool:
    """Whether X is an array that scikit-learn would return as it is, without a look at its kind."""
    if type(X) is not np.ndarray or X.ndim != 2 or not X.size or X.dtype not in REALS:
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(X.sum()))


# Sequences of objects


def require_one_dimension(X: Any) -> None:
    """Refuse texts or objects in two dimensions: it is unclear what one object would be."""
    frame = hasattr(X, "columns")
    if (frame or (isinstance(X, np.ndarray) and X.ndim == 2)) and _holds_texts(X):
        remedy = "X.ravel(), or list(X) if rows are objects"
        if frame:
            remedy = 'the column, X["name"], or kernel="gower" if rows are objects'
        raise ValueError(
            f"Expected a sequence of objects, got texts or objects in two dimensions, "
            f"{X.shape[0]} x {X.shape[1]}; pass {remedy}"
        )


def numbers_as_array(X: Any) -> Any:
    """A frame of numbers, or an array of numbers as objects, as a plain array; else X itself."""
    table = np.asarray(X) if hasattr(X, "columns") else X
    if not isinstance(table, np.ndarray) or table.ndim != 2:
        return X
    if table.dtype.kind != "O":
        return table if table.dtype.kind in "fiub" else X
    if not all(isinstance(value, Real | Decimal) or is_missing(value) for value in table.flat):
        return X
    values = [np.nan if is_missing(value) else float(value) for value in table.flat]
    return np.array(values).reshape(table.shape)


def list_of_objects(X: Any) -> list[Any]:
    """A sequence that is not empty as a list, one entry per object."""
    sequence = hasattr(X, "__len__") and getattr(X, "shape", None) != ()
    if not sequence or isinstance(X, NO_SEQUENCES) or is_frame(X):
        raise TypeError(
            f"X must be a sequence of objects, got {type(X).__name__}; pass a list with one entry "
            "per object"
        )
    if not length(X):
        raise ValueError(
            "Found array with 0 sample(s) while a minimum of 1 is required: X is empty"
        )
    return list(objects_of(X))


# Given matrices


def in_memory(X: Any) -> Any:
    """A matrix as a whole: one in a file is mapped into memory or read."""
    data = opened(X)
    if data is None:
        return X
    source: Any = data.numbers() if isinstance(data, Table) else data
    return source.within(budget_bytes(None)).whole() if source.ndim == 2 else X


def column_count(X: Any) -> int | None:
    """The number of columns of a matrix, in memory or in a file; None if X is no matrix."""
    if isinstance(X, list | tuple):
        return len(X[0]) if len(X) and hasattr(X[0], "__len__") else None
    data = X if hasattr(X, "shape") else opened(X)
    if isinstance(data, Table):
        return len(data.names)
    shape = getattr(data, "shape", None)
    return int(shape[1]) if shape is not None and len(shape) == 2 else None


def is_condensed(X: Any) -> bool:
    """Whether X is the upper triangle of a matrix as one vector, as scipy's pdist returns it."""
    if hasattr(X, "ndim"):
        return bool(X.ndim == 1 and len(X))
    return isinstance(X, list | tuple) and len(X) > 0 and bool(np.isscalar(X[0]))


def square_from_condensed(X: object, *, dissimilarities: bool) -> NDArray[Any]:
    """The square matrix of a condensed vector, which must hold dissimilarities."""
    vector = np.asarray(X)
    if not dissimilarities:
        raise ValueError(
            "Expected 2D array, got 1D array instead: a condensed vector has no self-similarities; "
            'pass the square matrix, or kernel="precomputed_dissimilarity" for distances'
        )
    n = round((1 + np.sqrt(1 + 8 * len(vector))) / 2)
    if n * (n - 1) // 2 != len(vector):
        raise ValueError(
            f"Expected 2D array, or n (n - 1) / 2 distances as pdist gives them; {len(vector)} "
            "is no such number"
        )
    return np.asarray(squareform(vector, checks=False))


def require_finite_matrix(X: NDArray[Any]) -> None:
    """Refuse a matrix with an entry that is NaN or infinite; the error names the first one."""
    bad = first_not_finite(X)
    if bad is not None:
        i, j, kind = bad
        what = "NaN" if kind == "NaN" else "infinity"
        raise ValueError(f"Input X contains {what} at row {i}, column {j}")


def require_square(X: NDArray[Any], remedy: str = "") -> None:
    """Refuse a matrix that is not square; ``remedy`` ends the error."""
    n, m = X.shape
    if n != m:
        raise ValueError(
            f"Precomputed matrix must be a square matrix. Input is a {n}x{m} matrix.{remedy}"
        )


def asymmetry_of(X: NDArray[Any]) -> float:
    """max |X - X'| of a square matrix, computed one strip of rows at a time."""
    spans = (slice(i, i + SYMMETRY_TILE) for i in range(0, len(X), SYMMETRY_TILE))
    return max(float(np.abs(X[span] - X[:, span].T).max()) for span in spans)


def looks_like_distances(K: NDArray[Any]) -> bool:
    """Whether a matrix has a zero diagonal, no negative entry, and some that are positive."""
    return bool(len(K) > 1 and K.min() >= 0 and K.max() > 0 and not np.diagonal(K).any())


# Targets and weights


def checked_numbers(y: Any, estimator: str) -> NDArray[Any]:
    """Targets of a regression, in rows without gaps: BLAS rounds a strided column differently."""
    require_unmasked(y, "y")
    if np.asarray(y).dtype.kind in "mM":  # scikit-learn would take them as numbers
        raise TypeError("y must hold numbers, got dates; convert them first")
    y = check_array(y, dtype=np.float64, ensure_2d=False, input_name="y", estimator=estimator)
    size = max(np.max(y, initial=0.0), -np.min(y, initial=0.0))
    if size > LARGEST:
        raise ValueError(f"y is as large as {size:.3g}, too large to be squared; divide it")
    return np.ascontiguousarray(y)


def are_label_sets(y: Any) -> bool:
    """Whether each object has a set of labels: an indicator matrix, or a list of labels per object.

    One column, or one label in each list, is a column of classes.
    """
    shape = getattr(y, "shape", None)
    if shape is not None and len(shape) == 2:
        return bool(sp.issparse(y) or shape[1] > 1)
    if not hasattr(y, "__len__") or isinstance(y, NO_SEQUENCES) or not len(y):
        return False
    if isinstance(y, list | tuple) or str(getattr(y, "dtype", "")) == "object":
        first, several = next(iter(y)), (list, tuple, np.ndarray)
        if isinstance(first, several):
            return any(not isinstance(one, several) or len(one) != 1 for one in y)
        return isinstance(first, Set)
    return False


def checked_labels(y: Any, estimator: str) -> NDArray[Any]:
    """Targets of a classification."""
    require_unmasked(y, "y")
    _require_one_kind(y)
    y = _check_y(y, estimator=estimator)
    if y.dtype.kind not in "biu" or len(y) <= MANY_LABELS or _extent(y) > len(y) // 2:
        check_classification_targets(y)  # sorts all labels, and warns if most of them differ
    return np.asarray(y)


def _extent(y: NDArray[Any]) -> int:
    """The largest of some integers minus the smallest."""
    return int(y.max()) - int(y.min())


def _require_one_kind(y: Any) -> None:
    """Refuse labels of which some are texts and some are not, or which are missing."""
    kind = getattr(getattr(y, "dtype", None), "kind", "")
    if kind != "O" and not isinstance(y, list | tuple):
        return
    labels = np.asarray(y, dtype=object)
    if labels.ndim != 1:
        return
    missing = [i for i, label in enumerate(labels) if is_missing(label)]
    if missing:
        raise ValueError(
            f"Input y contains NaN: label {missing[0]} is {labels[missing[0]]}; every row needs "
            "a class"
        )
    texts = [isinstance(label, str) for label in labels]
    if any(texts) and not all(texts):
        kinds = ", ".join(sorted({type(label).__name__ for label in labels}))
        raise ValueError(
            f"y holds labels of several types ({kinds}), of which some are texts; write all "
            "classes as texts, or all as numbers"
        )


def require_unmasked(values: Any, name: str) -> None:
    """Refuse a masked array of which entries are masked: what is behind a mask is no value."""
    if np.ma.isMaskedArray(values) and np.ma.is_masked(values):
        raise ValueError(
            f"{name} is a masked array, and {int(np.ma.getmaskarray(values).sum())} of its entries "
            f"are masked; leave out these rows, or fill them: {name}.filled(...)"
        )


def labels_of_block(y: Any, estimator: str) -> NDArray[Any]:
    """The same of a few rows, which may well have as many classes as rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return checked_labels(y, estimator)


def checked_weights(
    w: Any, *, n: int | None = None, all_zero: bool = True, block: bool = True
) -> NDArray[Any]:
    """One weight for each of n rows, none of them negative; of a block, all may be zero."""
    require_unmasked(w, "sample_weight")
    rows = np.empty((length(w) if block or n is None else n, 1))
    return np.ascontiguousarray(check_sample_weight(w, rows, all_zero=all_zero or block))


# Random numbers


def as_generator(random_state: Any) -> np.random.Generator:
    """Return one Generator for None, an int, a RandomState or a Generator (used as it is)."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(0, 2**32, size=4, dtype=np.uint32))
    return np.random.default_rng(random_state)


# Estimators


@dataclass(frozen=True)
class Border:
    """What an estimator accepts, and what it remembers of the X that it was fitted to.

    Whenever a method takes ``reset``, True means that X is that of ``fit``: the number and the
    names of its columns are remembered on the estimator. False means that they are compared with
    what is remembered.

    Parameters
    ----------
    estimator : estimator
        Its attributes ``n_features_in_``, ``feature_names_in_`` and ``_column`` are read, and set
        with ``reset=True``.
    memory_budget : int, float, str or None
        The memory that reading X may take, as ``Resources`` has it.
    """

    estimator: BaseEstimator
    memory_budget: int | float | str | None

    @property
    def budget(self) -> int:
        """The memory in bytes that reading X may take."""
        return budget_bytes(self.memory_budget)

    # What is remembered

    @property
    def column(self) -> str | None:
        """The name of the column that held the objects in ``fit``, if they came from a table."""
        name: str | None = getattr(self.estimator, "_column", None)
        return name

    @property
    def feature_names(self) -> NDArray[Any] | None:
        """The names of the columns in ``fit``, if they had names."""
        names: NDArray[Any] | None = getattr(self.estimator, "feature_names_in_", None)
        return names

    @property
    def fitted_to_vectors(self) -> bool:
        """Whether the X of ``fit`` had columns that were counted."""
        return hasattr(self.estimator, "n_features_in_")

    # Checks

    def check_names(self, X: Any, *, reset: bool) -> None:
        """Remember or compare the names of the columns of X, as scikit-learn does."""
        if not reset and self.feature_names is None and type(X) in (np.ndarray, list):
            return  # there are no names on either side
        _check_feature_names(self.estimator, X, reset=reset)

    def check_count(self, X: Any, *, reset: bool) -> None:
        """Remember or compare the number of the columns of X, as scikit-learn does."""
        _check_n_features(self.estimator, X, reset=reset)

    def vectors(self, X: Any, *, sparse: bool, reset: bool) -> Any:
        """X in float64, as an array or, where ``sparse`` allows it, a CSR matrix.

        An array of float32 is converted as it is read.
        """
        self.check_names(X, reset=reset)
        checked = X
        if not _holds_finite_rows(X):
            checked = check_array(
                X, accept_sparse="csr" if sparse else False, dtype=REALS,
                estimator=self.estimator, input_name="X",
            )  # fmt: skip
        self.check_count(X, reset=reset)
        if checked.dtype == np.float64:
            return checked
        if sp.issparse(checked):
            return checked.astype(np.float64)
        return Checked(ArrayReader(checked), "X")

    # Rows that are read when they are wanted

    def with_known_names(self, data: Source | Table, *, reset: bool) -> Source | Table:
        """Of a file, pick the columns that the model was fitted to, wherever they are now."""
        names = self.feature_names if self.column is None else [self.column]
        if reset or names is None or not isinstance(data, Table):
            return data
        if not data.by_name or data.chosen is not None or not set(names) <= set(data.names):
            return data
        return data.pick(list(names))

    def numbers(self, data: Source | Table, *, reset: bool) -> Any:
        """Rows of numbers from a file, whose columns are counted and compared by name."""
        source: Any = data.numbers() if isinstance(data, Table) else data
        if source.ndim != 2:
            raise ValueError(
                f"Expected 2D array, got 1D array instead: {source.origin} holds objects, and this "
                "kernel takes vectors"
            )
        self.check_names(data.empty if isinstance(data, Table) else source, reset=reset)
        self.check_count(source, reset=reset)
        return source

    def objects(self, data: Source | Table, *, reset: bool) -> Any:
        """Objects from a file; the name of the column of a table that holds them is remembered."""
        if not isinstance(data, Table):
            return data
        source = data.objects()
        if reset:
            self.estimator._column = data.object_column()
        return source

    def within(self, source: Source) -> Source:
        """The same rows; MemoryError if the budget is too small to read them."""
        return source.within(self.budget) if isinstance(source, Checked) else source
