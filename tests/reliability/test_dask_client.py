"""A client of a cluster that is closed while it works; here, no other client is open.

The numbers in the names of the tests are rows of the table in docs/bad_inputs.rst.
"""

from __future__ import annotations

import os
import threading
import time

import numpy as np
import pytest

import kreinlearn as kl
from kreinlearn.data.tiles import TILE

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("forked"),
    # what the cluster itself opens and closes
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def test_bad_input_97_a_client_closed_amidst_a_fit(tmp_path):
    """An error in words, and neither a hang nor a bare FutureCancelledError."""
    begun, closed = tmp_path / "begun", tmp_path / "closed"
    home = os.getpid()

    def kernel(A, B):
        """On a worker it waits until the client is closed, so that the fit cannot end before."""
        if os.getpid() != home and len(A) >= 100:  # the rows, and no trial of a few
            begun.touch()
            give_up = time.monotonic() + 60
            while not closed.exists() and time.monotonic() < give_up:
                time.sleep(0.01)
        return np.tanh(np.asarray(A) @ np.asarray(B).T - 1.0)

    def close():
        while not begun.exists():
            time.sleep(0.01)
        client.close()
        closed.touch()

    X = np.random.default_rng(0).normal(size=(6 * TILE, 3))
    rows, y = da.from_array(X, chunks=(5000, 3)), da.from_array(X[:, 0], chunks=5000)
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50
    ) as cluster:
        client = distributed.Client(cluster)
        closing = threading.Thread(target=close, daemon=True)
        closing.start()
        model = kl.KreinRidge(kernel, landmarks=kl.Landmarks(20, "uniform"), random_state=0)
        with pytest.raises(RuntimeError, match="keep the client open until the call returns"):
            model.fit(rows, y)
        closing.join()
