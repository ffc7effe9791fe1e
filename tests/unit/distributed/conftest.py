"""Two threads evaluate the collections of all tests of this room."""

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    dask = pytest.importorskip("dask")
    with dask.config.set(scheduler="threads", num_workers=2):
        yield
