"""The two transformers with the same call, for tests that hold for both."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kreinlearn import KreinNystroem, KreinPCA


def nystroem(kernel: Any = "gaussian", **params: Any) -> KreinNystroem:
    return KreinNystroem(kernel, random_state=0, **params)


def pca(kernel: Any = "gaussian", **params: Any) -> KreinPCA:
    return KreinPCA(kernel=kernel, random_state=0, **params)


both = pytest.mark.parametrize("model", [nystroem, pca])


def products(A: Any, B: Any) -> Any:
    return np.asarray(A) @ np.asarray(B).T
