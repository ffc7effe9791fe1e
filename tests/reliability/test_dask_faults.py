"""Workers of a cluster die while it works: the same numbers, or an error; never a hang.

The numbers in the names of the tests are rows of the table in docs/bad_inputs.rst.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import pytest

import kreinlearn as kl
from kreinlearn.data.tiles import TILE
from kreinlearn.distributed.hinge import DaskMargins
from tests.oracles import products
from tests.systems import KILL, kill_session, posix_only

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("forked"),
    # what the cluster itself opens and closes when its processes are killed
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
def client(forked):
    with start() as cluster, distributed.Client(cluster) as client:
        yield client


def kernel_with(log, home, deadly=False):
    """tanh(x z - 1); on a worker, rows take their time and leave a line of process and number."""
    where = {"log": Path(log), "home": home}  # a store takes what can change for no part of it

    def kernel(A, B):
        if os.getpid() != where["home"]:
            if deadly:
                os.kill(os.getpid(), KILL)
            if len(A) > 1:  # not the landmark that shows what comes out
                time.sleep(SECONDS * len(A))
                with where["log"].open("a") as file:
                    file.write(f"{os.getpid()} {len(A)}\n")
        return np.tanh(products(np.asarray(A), np.asarray(B)) - 1.0)

    return kernel


def model_with(kernel, kind=kl.KreinRidge):
    return kind(kernel, landmarks=kl.Landmarks(M, "uniform"), random_state=0)


def evaluated(log):
    """Rows that each process has evaluated."""
    found = Counter()
    for line in (log.read_text() if log.exists() else "").split("\n")[:-1]:
        pid, n = map(int, line.split())
        found[pid] += n
    return found


class Killer(threading.Thread):
    """Kills each process that evaluates rows once it has done so many, ``most`` of them."""

    def __init__(self, log, most, after=2 * TILE):
        super().__init__(daemon=True)
        self.log, self.most, self.after, self.killed, self.ended = log, most, after, [], False

    def run(self):
        while not self.ended and len(self.killed) < self.most:
            for pid, n in evaluated(self.log).items():
                if n > self.after and pid not in self.killed and len(self.killed) < self.most:
                    os.kill(pid, KILL)
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


LABELS = np.where(Y > 0, "up", "down")
MACHINE = {"lambda_plus": 1e-4, "lambda_minus": 1e-4}


def machine_with(kernel):
    return model_with(kernel, kl.KreinSVC).set_params(**MACHINE)


@pytest.fixture(scope="module")
def undisturbed_machine():
    model = machine_with(kernel_with("", os.getpid())).fit(X, LABELS)
    assert model.n_iter_ > 2
    return model.dual_coef_


def labelled():
    return rows()[0], da.from_array(LABELS, chunks=5000)


def test_a_machine_evaluates_nothing_twice_without_a_fault(client, tmp_path, undisturbed_machine):
    log = tmp_path / "log"
    model = machine_with(kernel_with(log, os.getpid())).fit(*labelled())
    np.testing.assert_allclose(model.dual_coef_, undisturbed_machine, rtol=0, atol=1e-10)
    assert evaluated(log).total() == N - M


def test_both_workers_killed_between_steps_of_a_machine(
    client, tmp_path, undisturbed_machine, monkeypatch
):
    """Kernel values and decision values are lost: one worker's at the second step, then those."""
    log, killed, steps, walk = tmp_path / "log", [], [], DaskMargins.walk

    def walk_on(self, states, moves):
        steps.append(len(states))
        if len(steps) > 1 and len(killed) < 2:
            killed.append(next(pid for pid in evaluated(log) if pid not in killed))
            os.kill(killed[-1], KILL)
        return walk(self, states, moves)

    monkeypatch.setattr(DaskMargins, "walk", walk_on)
    model = machine_with(kernel_with(log, os.getpid())).fit(*labelled())
    assert len(killed) == 2
    wanted = undisturbed_machine
    np.testing.assert_allclose(model.dual_coef_, wanted, rtol=0, atol=1e-10 * abs(wanted).max())
    assert evaluated(log).total() > N - M  # what was lost is evaluated again


# Each option of a fit

FEWER = slice(0, 6 * TILE)  # of which three quarters are still more than are fitted in memory
SOME = np.where(np.arange(N) % 5 == 0, 0.0, 1.0)[FEWER]
THREE = np.digitize(Y, [-0.5, 0.6])
SVC, FRONT = kl.KreinSVC, kl.KreinRegressor
OPTIONS = {  # parameters of a fit, its targets, and what else it is given
    "zero weights": (kl.KreinRidge, {}, Y, {"sample_weight": SOME}),
    "leverage": (kl.KreinRidge, {"landmarks": kl.Landmarks(M, "leverage")}, Y, {}),
    "kmeans++": (kl.KreinRidge, {"landmarks": kl.Landmarks(M, "kmeans++")}, Y, {}),
    "probability": (SVC, {**MACHINE, "probability": True}, LABELS, {}),
    "three classes": (SVC, MACHINE, THREE, {}),
    "l1": (SVC, {**MACHINE, "lambda_l1": 1e-2}, LABELS, {}),
    "several kernels": (FRONT, {}, Y, {}),
    "intervals": (kl.KreinRidge, MACHINE, Y, {"conformal": "split"}),
    "store": (kl.KreinRidge, {}, Y, {}),
}


def option(name, kernel, store=None):
    """An estimator with one of the options, its targets, and what else its fit is given."""
    kind, params, y, more = OPTIONS[name]
    model = model_with([kernel, kernel] if kind is FRONT else kernel, kind)
    model.set_params(**params)
    if name == "store" and store is not None:
        pytest.importorskip("zarr")
        model.set_params(resources=kl.Resources(store=store))
    return model, y, more


@pytest.mark.parametrize("name", OPTIONS)
def test_a_worker_killed_amidst_a_fit_with_an_option(client, tmp_path, name):
    log, home = tmp_path / "log", os.getpid()
    model, y, more = option(name, kernel_with("", home))
    model.fit(X[FEWER], y[FEWER], **more)
    wanted = model.dual_coef_, model.predict(X[:500])
    model, y, more = option(name, kernel_with(log, home), tmp_path / "store")
    with Killer(log, 1, TILE // 2) as killer:
        model.fit(rows()[0][FEWER], y[FEWER], **more)
    assert len(killer.killed) == 1
    bound = 1e-8 * abs(wanted[0]).max()  # of Newton's method; least squares is closer
    np.testing.assert_allclose(model.dual_coef_, wanted[0], rtol=0, atol=bound)
    if y.dtype.kind == "f":
        np.testing.assert_allclose(model.predict(X[:500]), wanted[1], rtol=0, atol=1e-8)
    else:
        np.testing.assert_array_equal(model.predict(X[:500]), wanted[1])


WHOLE_RUN = """
import os, sys
sys.path.insert(0, os.getcwd())
if __name__ == "__main__":
    from tests.reliability.test_dask_faults import distributed, kernel_with, option, rows, start
    log, store = sys.argv[1:]
    with start() as cluster, distributed.Client(cluster):
        model, y, _ = option("store", kernel_with(log, os.getpid()), store)
        model.fit(rows()[0], y)
"""


@posix_only("sessions, all processes of which can be killed at once")
def test_a_run_killed_as_a_whole_goes_on_from_its_store(client, tmp_path, undisturbed):
    """The client, its scheduler and its workers die at once; another cluster goes on."""
    log, store, script = tmp_path / "log", tmp_path / "store", tmp_path / "run.py"
    script.write_text(WHOLE_RUN)
    command = [sys.executable, str(script), str(log), str(store)]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    give_up = time.monotonic() + 120
    with subprocess.Popen(command, start_new_session=True, **quiet) as running:
        while len(list(store.glob("rows-*/done.jsonl"))) < 5 and time.monotonic() < give_up:
            assert running.poll() is None
            time.sleep(0.02)
        kill_session(running)
    before = evaluated(log).total()
    assert 0 < before < N - M
    model, y, _ = option("store", kernel_with(log, os.getpid()), store)
    model.fit(rows()[0], y)
    np.testing.assert_array_equal(model.dual_coef_, undisturbed[0])
    again = evaluated(log).total() - N + M  # rows that were evaluated twice
    assert again <= 2 * 2 * TILE  # of the spans that the two workers had in hand


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


@pytest.mark.filterwarnings("ignore:Running on a single-machine scheduler")  # of older Dask
def test_bad_input_33_a_kernel_that_cannot_be_sent(client):
    lock, calls = threading.Lock(), []

    def locked(A, B):
        calls.append(lock)
        return np.tanh(np.asarray(A) @ np.asarray(B).T)

    model = model_with(locked)
    with pytest.raises(
        TypeError, match=r"locked cannot be sent to workers .*scheduler=\"threads\""
    ):
        model.fit(*rows())
    assert not calls
    with dask.config.set(scheduler="threads"):
        assert model.fit(*rows()).predict(X[:5]).shape == (5,)
    assert calls


# Schedulers that are elsewhere

SCHEDULER = """
import asyncio, sys
from distributed import Scheduler
async def main():
    async with Scheduler(port=0, dashboard_address=":0", host="127.0.0.1") as scheduler:
        print(scheduler.address, flush=True)
        await scheduler.finished()
asyncio.run(main())
"""
WORKER = """
import asyncio, sys
from distributed import Worker
async def main():
    async with Worker(sys.argv[1], nthreads=1, dashboard_address=":0") as worker:
        print(worker.address, flush=True)
        await worker.finished()
asyncio.run(main())
"""


@contextmanager
def process(code, *args):
    """A Python process, and the first line that it prints."""
    command = [sys.executable, "-c", code, *args]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, text=True, **pipes) as running:
        try:
            yield running, running.stdout.readline().strip()
        finally:
            running.kill()


@contextmanager
def elsewhere():
    """A scheduler, its two workers, each started by itself, and the client of them."""
    with process(SCHEDULER) as (scheduler, address), ExitStack() as workers:
        for _ in range(2):
            workers.enter_context(process(WORKER, address))
        short = {"distributed.comm.timeouts.connect": "3s", "distributed.comm.retry.count": 0}
        with dask.config.set(short), distributed.Client(address, timeout="20s") as client:
            client.wait_for_workers(2, timeout=30)
            yield scheduler, client


def test_bad_input_69_a_scheduler_elsewhere_works_until_it_dies(tmp_path, undisturbed):
    log, ended = tmp_path / "log", []
    model = model_with(kernel_with(log, os.getpid()))

    def fit_again():
        try:
            model.fit(*rows())
        except BaseException as error:
            ended.append(error)

    with elsewhere() as (scheduler, client):
        assert client.scheduler.address.startswith("tcp://")
        np.testing.assert_array_equal(model.fit(*rows()).dual_coef_, undisturbed[0])
        assert len(evaluated(log)) == 2  # both have worked
        before, give_up = evaluated(log).total(), time.monotonic() + 60
        thread = threading.Thread(target=fit_again, daemon=True)
        thread.start()
        while evaluated(log).total() < before + 2 * TILE and time.monotonic() < give_up:
            time.sleep(0.01)
        scheduler.kill()
        thread.join(60)
    assert not thread.is_alive()
    assert isinstance(ended[0], Exception)
    assert not hasattr(model, "dual_coef_")


def test_a_cluster_of_threads(undisturbed):
    threads = {"n_workers": 2, "threads_per_worker": 1, "processes": False}
    with (
        distributed.LocalCluster(**threads, dashboard_address=":0", silence_logs=50) as cluster,
        distributed.Client(cluster),
    ):
        model = model_with(kernel_with("", os.getpid())).fit(*rows())
        found = model.predict(rows()[0]).compute()
    np.testing.assert_array_equal(model.dual_coef_, undisturbed[0])
    np.testing.assert_allclose(found, undisturbed[1], rtol=0, atol=1e-10)
