"""What an estimator accepts: tables of numbers, given matrices, sequences of objects, landmarks."""

from __future__ import annotations

from collections.abc import Mapping, Set
from decimal import Decimal
from numbers import Integral, Number, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import squareform
from sklearn.utils.validation import _check_feature_names, _check_n_features

from kreinlearn._warnings import warn
from kreinlearn.data.tiles import first_not_finite, length, objects_of
from kreinlearn.kernels import Kernel
from kreinlearn.kernels._frames import column_names, named_rows, rows_of_frame
from kreinlearn.kernels.precomputed import Precomputed
from kreinlearn.nystrom.landmarks import VECTORS_ONLY

SYMMETRY_TILE = 1024  # rows compared at a time
DATES = (
    "date",
    "time",
    "duration",
    "period",
)  # how types of numpy, pandas, polars and pyarrow begin
CATEGORIES = ("categor", "enum", "dictionary")
NO_SEQUENCES = (str, bytes, bytearray, Mapping, Set, np.matrix)  # of objects, one an entry
TEXTS = ("str", "object", "<u", "|s", "utf8", "large_string")


def is_frame(X: Any) -> bool:
    """A data frame or a sparse matrix: what iterates over it is not an object."""
    return bool(sp.issparse(X) or hasattr(X, "columns"))


def is_table(X: Any) -> bool:
    """Numbers in two dimensions: rows are vectors."""
    if is_frame(X):
        return True
    if not hasattr(X, "__array__") or hasattr(X, "to_list"):  # a column holds objects
        return False
    X = np.asarray(X)
    return X.ndim == 2 and (X.dtype.kind in "fiubcmM" or not _holds_texts(X))


def require_numbers(X: Any) -> None:
    """TypeError for dates, ValueError for categories: scikit-learn would take both as numbers."""
    if hasattr(X, "to_list"):
        raise ValueError(
            f"Expected 2D array, got 1D array instead: one column, a {type(X).__name__}; "
            "pass the data frame"
        )
    _require_no_blocks(X)
    names = _names_of_types(X)
    if "object" in names:
        _require_no_missing(np.asarray(X))
    for name in names:
        if name.startswith(DATES):
            raise TypeError(f"X must hold numbers, got dates ({name}); convert them first")
        if name.startswith(CATEGORIES):
            raise ValueError(f"X must hold numbers, got categories ({name}); encode them first")


def _require_no_blocks(X: Any) -> None:
    """ValueError for a list of tables, which numpy would put one over the other, or refuse."""
    shape = getattr(X[0], "shape", None) if isinstance(X, list | tuple) and len(X) else None
    if isinstance(shape, tuple) and len(shape) == 2:
        raise ValueError(
            f"X is a {type(X).__name__} of {len(X)} blocks, the first of shape {shape}; pass "
            "kreinlearn.Blocks(X), whose rows are those of all blocks"
        )


def _require_no_missing(X: Any) -> None:
    """ValueError for pandas.NA among objects, which float() refuses with a TypeError."""
    for place, value in np.ndenumerate(X):
        if _is_missing(value):
            raise ValueError(f"Input X contains NaN: a missing value at {place}")


def _is_missing(value: Any) -> bool:
    return value is None or type(value).__name__ == "NAType"


def require_apart(X: Any, kernel: Kernel) -> None:
    """ValueError for texts or objects in two dimensions, unless the kernel takes rows."""
    if kernel.takes in ("vectors", "records"):
        return
    frame = hasattr(X, "columns")
    if (frame or (isinstance(X, np.ndarray) and X.ndim == 2)) and _holds_texts(X):
        remedy = "X.ravel(), or list(X) if rows are objects"
        if frame:
            remedy = 'the column, X["name"], or kernel="gower" if rows are objects'
        raise ValueError(
            f"Expected a sequence of objects, got texts or objects in two dimensions, "
            f"{X.shape[0]} x {X.shape[1]}; pass {remedy}"
        )


def _holds_texts(X: Any) -> bool:
    """Whether a frame or array holds anything but numbers, categories and dates."""
    names = [name for name in _names_of_types(X) if name.startswith(TEXTS)]
    if set(names) != {"object"}:
        return bool(names)
    values = np.asarray(X).flat
    return not all(isinstance(value, Number) or _is_missing(value) for value in values)


def _names_of_types(X: Any) -> list[str]:
    types = [_type_of(X)]
    if hasattr(X, "columns"):
        types = X.dtypes if hasattr(X, "dtypes") else X.schema.types
    return [str(one).lower() for one in types]


def _type_of(X: Any) -> Any:
    if isinstance(X, list | tuple) and len(X):
        return _type_of(X[0])
    return getattr(X, "dtype", None)


def precision(X: Any) -> np.dtype[Any]:
    """What is computed from X has the type of X if that is float32, else float64."""
    return np.dtype(np.float32 if getattr(X, "dtype", None) == np.float32 else np.float64)


def as_objects(estimator: Any, X: Any, kernel: Kernel, *, reset: bool) -> list[Any]:
    """A non-empty sequence of objects as a list; rows of a table where the kernel takes them.

    Names of columns are kept and compared as scikit-learn does, so that none change places.
    """
    if kernel.takes == "records":
        return _as_records(estimator, X, reset=reset)
    _check_feature_names(estimator, X, reset=reset)
    return _as_list(_as_array(X) if kernel.takes == "objects" else X)


def _as_array(X: Any) -> Any:
    """A frame of numbers, or numbers as objects, as the array they are; the rest as it is."""
    table = np.asarray(X) if hasattr(X, "columns") else X
    if not isinstance(table, np.ndarray) or table.ndim != 2:
        return X
    if table.dtype.kind != "O":
        return table if table.dtype.kind in "fiub" else X
    if not all(isinstance(value, Real | Decimal) or _is_missing(value) for value in table.flat):
        return X
    values = [np.nan if _is_missing(value) else float(value) for value in table.flat]
    return np.array(values).reshape(table.shape)


def _as_records(estimator: Any, X: Any, *, reset: bool) -> list[Any]:
    """Rows as tuples or the like; as dicts if they are, or if columns had names in ``fit``."""
    own = column_names(X)
    rows = rows_of_frame(X) if hasattr(X, "columns") else _as_list(X)
    places = not isinstance(rows[0], Mapping | np.void)
    if places and (reset or hasattr(estimator, "n_features_in_")):
        _check_feature_names(estimator, X, reset=reset)
        _check_n_features(estimator, rows, reset=reset)
        own = getattr(estimator, "feature_names_in_", None)
    return rows if own is None else named_rows(rows, own)


def _as_list(X: Any) -> list[Any]:
    sequence = hasattr(X, "__len__") and getattr(X, "shape", None) != ()
    if not sequence or isinstance(X, NO_SEQUENCES) or is_frame(X):
        raise TypeError(
            f"X must be a sequence of objects, got {type(X).__name__}; pass a list, one entry "
            "an object"
        )
    if not length(X):
        raise ValueError(
            "Found array with 0 sample(s) while a minimum of 1 is required: X is empty"
        )
    return list(objects_of(X))


def is_condensed(X: Any) -> bool:
    """The upper triangle of a matrix as one vector, as pdist gives it."""
    if hasattr(X, "ndim"):
        return bool(X.ndim == 1 and len(X))
    return isinstance(X, list | tuple) and len(X) > 0 and bool(np.isscalar(X[0]))


def square_of_condensed(X: Any, kernel: Precomputed) -> Any:
    vector = np.asarray(X)
    if not kernel.of_dissimilarities:
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
    return squareform(vector, checks=False)


def require_finite_matrix(X: Any) -> None:
    """ValueError that names the first entry of a given matrix that is NaN or infinite."""
    bad = first_not_finite(X)
    if bad is not None:
        i, j, kind = bad
        what = "NaN" if kind == "NaN" else "infinity"
        raise ValueError(f"Input X contains {what} at row {i}, column {j}")


def require_square(X: Any, remedy: str = "") -> None:
    n, m = X.shape
    if n != m:
        raise ValueError(
            f"Precomputed matrix must be a square matrix. Input is a {n}x{m} matrix.{remedy}"
        )


def asymmetry_of(X: Any) -> float:
    """max |X - X'|, a strip at a time."""
    spans = (slice(i, i + SYMMETRY_TILE) for i in range(0, len(X), SYMMETRY_TILE))
    return max(float(np.abs(X[span] - X[:, span].T).max()) for span in spans)


def looks_like_distances(K: Any) -> bool:
    return bool(len(K) > 1 and K.min() >= 0 and K.max() > 0 and not np.diagonal(K).any())


def are_row_numbers(landmarks: Any) -> bool:
    """Integers in one dimension; anything else is a sequence of objects."""
    if isinstance(landmarks, str) or is_frame(landmarks):
        return False
    if isinstance(landmarks, np.ndarray):
        return landmarks.ndim == 1 and landmarks.dtype.kind in "iu"
    return all(_is_integer(i) for i in landmarks)


def _is_integer(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def checked_row_numbers(landmarks: Any, n: int) -> Any:
    numbers = np.asarray(landmarks, dtype=np.intp)
    repeats = len(numbers) - len(np.unique(numbers))
    if not len(numbers) or numbers.min() < 0 or numbers.max() >= n or repeats:
        given = f"{numbers.min()}..{numbers.max()}" if len(numbers) else "none"
        raise ValueError(
            f"landmarks must be distinct row numbers in 0..{n - 1}, got {given} with "
            f"{repeats} repeats"
        )
    return numbers


def landmark_count(n_landmarks: Any, n: int, auto: int) -> int:
    """How many landmarks a number, a fraction, "auto" or None (all) comes to."""
    if n_landmarks is None:
        return n
    if isinstance(n_landmarks, str):
        return min(n, auto)
    if isinstance(n_landmarks, float | np.floating):
        return max(1, round(float(n_landmarks) * n))
    if n_landmarks > n:
        warn(f"n_landmarks={n_landmarks} exceeds n_samples={n}; all {n} are used")
    return min(n, int(n_landmarks))


def require_same_count(n_landmarks: Any, n: int, given: int) -> None:
    """ValueError if landmarks are given and another number of them is asked for."""
    if isinstance(n_landmarks, str):  # "auto"
        return
    wanted = n_landmarks
    if not isinstance(n_landmarks, Integral):
        wanted = landmark_count(n_landmarks, n, given)
    if wanted != given:
        raise ValueError(
            f"n_landmarks={n_landmarks} but {given} landmarks are given (n_samples={n}); leave "
            "n_landmarks out, or let a scheme choose the landmarks"
        )


def scheme_for(landmarks: str, vectors: bool) -> str:
    if landmarks in VECTORS_ONLY and not vectors:
        raise ValueError(
            f"landmarks={landmarks!r} needs dense vectors; "
            'pass "greedy_kmeans++" for objects, matrices or sparse data'
        )
    default = "medoids+greedy" if vectors else "greedy_kmeans++"
    return default if landmarks == "auto" else landmarks
