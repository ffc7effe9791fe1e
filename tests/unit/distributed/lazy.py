"""Rows in dask collections of several kinds of chunks, for all tests of this room."""

from __future__ import annotations

import numpy as np
import pytest

from kreinlearn import Landmarks
from kreinlearn.data.tiles import TILE

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

N = 5 * TILE + 300  # more than a pool
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
Y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 100.0
W = RNG.random(N) + 0.1
LABELS = np.array(["a", "bb", "c"])[np.digitize(X[:, 0] + 0.3 * X[:, 1], [-0.5, 0.7])]
GIVEN = {"kernel": "delta_gauss", "landmarks": 15, "random_state": 3}
CHUNKS = {
    "one": (N,),
    "small": (1000,) * (N // 1000) + (N % 1000,),
    "uneven": (1, TILE, 5000, N - TILE - 5001),
    "empty": (0, 4000, 0, N - 4000),
}


def with_landmarks(*args, **kwargs):
    """The usual parameters with other landmarks."""
    return {**GIVEN, "landmarks": Landmarks(*args, **kwargs)}


def array(values, chunks="small"):
    """A dask array of rows in chunks, of columns too."""
    lengths = CHUNKS[chunks] if isinstance(chunks, str) else chunks
    ends = np.cumsum(lengths)
    width = values.shape[1:]
    parts = [
        da.from_delayed(dask.delayed(values[end - n : end]), (n, *width), values.dtype)
        for n, end in zip(lengths, ends, strict=True)
    ]
    whole = da.concatenate(parts)
    return whole.rechunk({1: 2}) if width and width[0] > 2 else whole


def close(found, wanted, rtol=1e-10):
    np.testing.assert_allclose(found, wanted, rtol=0, atol=rtol * np.abs(wanted).max())
