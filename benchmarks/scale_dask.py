"""The same fit on a Dask cluster of this machine and in this process, in turns."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from benchmarks.learning_speed import kernel, labels
from benchmarks.timing import Row, interleaved
from kreinlearn import KreinRidgeClassifier, KreinSVC

D = 20
CHUNK = 50_000
TARGET = 1.1
RECEIVED_AT = 128  # of tcpi_bytes_received in Linux's struct tcp_info
LEARNERS = {"KreinRidgeClassifier": KreinRidgeClassifier, "KreinSVC": KreinSVC}


def block(i: int, n: int) -> Any:  # (n, D)
    return np.random.default_rng([7, i]).standard_normal((n, D))


def sizes(n: int, chunk: int) -> list[int]:
    return [min(chunk, n - start) for start in range(0, n, chunk)]


@contextmanager
def cluster() -> Iterator[Any]:
    """A cluster of two processes with one thread each."""
    import distributed

    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", memory_limit=0
        ) as local,
        distributed.Client(local) as client,
    ):
        yield client


def on_workers(client: Any, n: int, chunk: int) -> tuple[Any, Any]:
    """X and y, generated on the workers that keep them."""
    import dask
    import dask.array as da
    import distributed

    blocks = [dask.delayed(block)(i, k) for i, k in enumerate(sizes(n, chunk))]
    parts = zip(blocks, sizes(n, chunk), strict=True)
    X = da.concatenate([da.from_delayed(b, (k, D), float) for b, k in parts])
    y = X.map_blocks(two_classes, dtype=int, drop_axis=1)
    X, y = client.persist([X, y])
    distributed.wait([X, y])
    return X, y


def two_classes(X: Any) -> Any:
    return labels(X, 2) if len(X) else np.empty(0, int)


def here(n: int, chunk: int) -> tuple[Any, Any]:
    blocks = [block(i, k) for i, k in enumerate(sizes(n, chunk))]
    return np.concatenate(blocks), np.concatenate([two_classes(b) for b in blocks])


def received(client: Any) -> int:
    """The number of bytes that this process received from the scheduler."""
    import psutil

    port = int(client.scheduler.address.rpartition(":")[2])
    total = 0
    for connection in psutil.Process().net_connections("tcp"):
        if connection.raddr and connection.raddr.port == port:
            with socket.socket(fileno=os.dup(connection.fd)) as copy:
                info = copy.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
            total += struct.unpack_from("Q", info, RECEIVED_AT)[0]
    return total


def compared(n: int, m: int, chunk: int, repetitions: int) -> list[Row]:
    rows = []
    with cluster() as client:
        there, beside = on_workers(client, n, chunk), here(n, chunk)
        few = on_workers(client, n // 10, max(chunk // 10, 2048))
        for name, learner in LEARNERS.items():
            model = learner(kernel(), landmarks=m, random_state=0)
            try:
                rows += _compared(client, name, model, (there, beside, few), repetitions)
            except TypeError as error:
                what = f"Dask over in-process, {name}, n = {n:.0e}, m = {m}"
                rows.append(Row(what, "not measured", f"<= {TARGET}", None, str(error)))
    return rows


def _compared(client: Any, name: str, model: Any, data: Any, repetitions: int) -> list[Row]:
    there, beside, few = data
    n, m = len(beside[0]), model.landmarks
    bytes_of = []
    for X, y in (few, there):  # compiled on the workers, too
        before = received(client)
        coef = model.fit(X, y).dual_coef_
        bytes_of.append((received(client) - before) / 1e6)
    works = {"Dask": lambda: model.fit(*there), "here": lambda: model.fit(*beside)}
    t = interleaved(works, repetitions)
    gap = float(np.abs(model.dual_coef_ - coef).max() / np.abs(coef).max())
    ratio, size = t["Dask"].wall / t["here"].wall, f"n = {n:.0e}, m = {m}"
    shown = f"{ratio:.2f} x ({t['Dask'].wall:.2f} s against {t['here'].wall:.2f} s wall)"
    grown = bytes_of[1] / bytes_of[0]
    return [
        Row(f"Dask (2 processes x 1 thread) over in-process, {name}, {size}", shown,
            f"<= {TARGET}", ratio <= TARGET, f"coefficients differ by {gap:.0e}, relatively"),
        Row(f"bytes the client receives, {name}, {size}", f"{bytes_of[1]:.1f} MB",
            "<= 1.2 x those of a tenth of the rows", grown <= 1.2,
            f"{bytes_of[0]:.1f} MB at n = {n // 10:.0e}"),
    ]  # fmt: skip
