"""Clusters whose workers start soon."""

import multiprocessing
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session")
def forked() -> Iterator[None]:
    """Workers of clusters are forks of a process that has imported what they need.

    A worker that is killed has a successor, and most of the time of these tests would go into its
    imports. Where there is no such process, as on Windows, workers start as they do by default.
    """
    dask = pytest.importorskip("dask")
    utils = pytest.importorskip("distributed.utils")
    if "forkserver" not in multiprocessing.get_all_start_methods():
        yield
        return
    with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
        modules = ["distributed", "kreinlearn.distributed.worker_rows"]
        utils.get_mp_context().set_forkserver_preload(modules)
        yield
