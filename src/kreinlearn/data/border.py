"""The border of an estimator: what is checked, converted and remembered of X when it comes in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_feature_names, _check_n_features, validate_data

from kreinlearn.data.sources import Table
from kreinlearn.data.sources.base import Checked
from kreinlearn.data.tiles import Source


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
    dtypes : sequence of dtypes
        Floating types that are accepted as they are. Numbers of other types are converted to the
        first of them.
    dtype : dtype or None
        The type that numbers read from files are converted to. None keeps float32, and converts
        everything else to float64.
    budget : int
        The memory in bytes that reading X may take.
    """

    estimator: BaseEstimator
    dtypes: Sequence[DTypeLike]
    dtype: DTypeLike | None
    budget: int

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
        _check_feature_names(self.estimator, X, reset=reset)

    def check_count(self, X: Any, *, reset: bool) -> None:
        """Remember or compare the number of the columns of X, as scikit-learn does."""
        _check_n_features(self.estimator, X, reset=reset)

    def vectors(self, X: Any, *, sparse: bool, reset: bool) -> Any:
        """X as an array of floats, or as a CSR matrix where ``sparse`` allows it."""
        accept = "csr" if sparse else False
        return validate_data(
            self.estimator, X, accept_sparse=accept, dtype=list(self.dtypes), reset=reset
        )

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
        """The same rows in the type of the border; MemoryError if the budget is too small."""
        if not isinstance(source, Checked):
            return source
        dtype = None if self.dtype is None else np.dtype(self.dtype)
        return source.within(self.budget, dtype)
