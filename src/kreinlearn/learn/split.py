"""How rows are split into folds."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.model_selection import check_cv

from kreinlearn.learn.coding import Encoded
from kreinlearn.learn.folds import TileFolds, fold_count, given_folds, random_folds
from kreinlearn.pairs.rows import Rows


@dataclass(frozen=True)
class FoldSpec:
    """The parameter ``cv``: a number of folds, a splitter, "loo", or None for the default."""

    cv: Any = None

    @property
    def loo(self) -> bool:
        return isinstance(self.cv, str)

    @property
    def drawn(self) -> bool:
        """Whether folds are drawn at random."""
        return self.cv is None or isinstance(self.cv, Integral)

    def draw(
        self, rows: Rows, encoded: Encoded, rng: np.random.Generator, pool: int
    ) -> tuple[Any, int]:
        """One fold number for each row, and how many folds there are."""
        n = len(rows)
        if self.drawn:
            k = fold_count(n, encoded.counts) if self.cv is None else int(self.cv)
            k = min(k, n)
            if n <= pool:
                return random_folds(n, k, rng, encoded.labels), k
            return rows.fold_numbers(TileFolds(n, k, int(rng.integers(2**63)))), k
        if self.loo:
            return np.arange(n), n
        splitter = check_cv(self.cv, encoded.y, classifier=encoded.classes is not None)
        splits = list(splitter.split(rows.X, encoded.y))
        return given_folds(n, splits), len(splits)
