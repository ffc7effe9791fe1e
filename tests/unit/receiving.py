"""What comes from workers to the client."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest


@contextmanager
def received(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Bytes of each result that comes to the client; no array may be gathered."""
    import dask
    import dask.array as da

    sizes: list[int] = []
    compute = dask.compute

    def recorded(*args: Any, **kwargs: Any) -> Any:
        results = compute(*args, **kwargs)
        sizes.append(len(pickle.dumps(results)))
        return results

    def refuse(self: Any, *args: Any, **kwargs: Any) -> None:
        raise AssertionError("gathered")

    with monkeypatch.context() as patch:
        patch.setattr(dask, "compute", recorded)
        patch.setattr(da.Array, "__array__", refuse)
        patch.setattr(da.Array, "compute", refuse)
        yield sizes
