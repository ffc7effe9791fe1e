"""Workers of a cluster die while it works: the same numbers, or an error; never a hang."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import kreinlearn as kl
from kreinlearn.blocks import TILE

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

# what the cluster itself opens and closes when its processes are killed
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

N = 12 * TILE
M = 20
X = np.random.default_rng(0).normal(size=(N, 3))
Y = np.sin(2 * X[:, 0]) + X[:, 1]
SECONDS = 5e-5  # a row, so that a worker dies amidst its work


def start(failures=3):
    """Two processes of one thread each."""
    with dask.config.set({"distributed.scheduler.allowed-failures": failures}):
        return distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50
        )


@pytest.fixture(scope="module")
def client():
    with start() as cluster, distributed.Client(cluster) as client:
        yield client


def kernel_with(log, home, deadly=False):
    """tanh(x z - 1); on a worker, rows take their time and leave a line of process and number."""

    def kernel(A, B):
        if os.getpid() != home:
            if deadly:
                os.kill(os.getpid(), signal.SIGKILL)
            if len(A) > 1:  # not the landmark that shows what comes out
                time.sleep(SECONDS * len(A))
                with Path(log).open("a") as file:
                    file.write(f"{os.getpid()} {len(A)}\n")
        return np.tanh(np.asarray(A) @ np.asarray(B).T - 1.0)

    return kernel


def model_with(kernel, kind=kl.KreinRidge):
    return kind(kernel, n_landmarks=M, landmarks="uniform", random_state=0)


def evaluated(log):
    """Rows that each process has evaluated."""
    found = Counter()
    for line in (log.read_text() if log.exists() else "").split("\n")[:-1]:
        pid, n = map(int, line.split())
        found[pid] += n
    return found


class Killer(threading.Thread):
    """Kills each process that evaluates rows once it has done two tiles, ``most`` of them."""

    def __init__(self, log, most):
        super().__init__(daemon=True)
        self.log, self.most, self.killed, self.ended = log, most, [], False

    def run(self):
        while not self.ended and len(self.killed) < self.most:
            for pid, n in evaluated(self.log).items():
                if n > 2 * TILE and pid not in self.killed and len(self.killed) < self.most:
                    os.kill(pid, signal.SIGKILL)
                    self.killed.append(pid)
                    time.sleep(0.5)  # one after the other
            time.sleep(0.01)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *error):
        self.ended = True
        self.join()


def rows():
    return da.from_array(X, chunks=(5000, 3)), da.from_array(Y, chunks=5000)


@pytest.fixture(scope="module")
def undisturbed():
    model = model_with(kernel_with("", os.getpid())).fit(X, Y)
    return model.dual_coef_, model.predict(X)


def test_nothing_is_evaluated_twice_without_a_fault(client, tmp_path, undisturbed):
    log = tmp_path / "log"
    model = model_with(kernel_with(log, os.getpid())).fit(*rows())
    np.testing.assert_allclose(model.dual_coef_, undisturbed[0], rtol=0, atol=1e-10)
    assert evaluated(log).total() == N - M


@pytest.mark.parametrize("most", [1, 2])
def test_bad_input_67_a_worker_killed_amidst_a_fit(client, tmp_path, undisturbed, most):
    log = tmp_path / "log"
    with Killer(log, most) as killer:
        model = model_with(kernel_with(log, os.getpid())).fit(*rows())
    assert len(killer.killed) == most
    wanted = undisturbed[0]
    np.testing.assert_allclose(model.dual_coef_, wanted, rtol=0, atol=1e-10 * abs(wanted).max())
    assert evaluated(log).total() > N - M  # what was lost is evaluated again


def test_a_worker_killed_amidst_a_prediction(client, tmp_path, undisturbed):
    log = tmp_path / "log"
    model = model_with(kernel_with(log, os.getpid())).fit(X, Y)
    with Killer(log, 1) as killer:
        found = model.predict(rows()[0].rechunk((TILE, 3))).compute()
    assert killer.killed
    np.testing.assert_allclose(found, undisturbed[1], rtol=0, atol=1e-10)
    assert evaluated(log).total() > N


def test_bad_input_68_a_task_that_always_dies_is_an_error(tmp_path):
    model = model_with(kernel_with(tmp_path / "log", os.getpid(), deadly=True))
    with (
        start(failures=0) as cluster,
        distributed.Client(cluster),
        pytest.raises(distributed.KilledWorker),
    ):
        model.fit(*rows())
    assert not hasattr(model, "dual_coef_")
