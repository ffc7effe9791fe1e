"""What runs in a process of its own: a fit whose memory is looked at, or one that is stopped."""

from __future__ import annotations

import hashlib
import json
import re
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import kreinlearn as kl
from kreinlearn import Resources, dissimilarity, pairwise, predict_to
from kreinlearn.datasets import make_noisy_strings

ONE = {"random_state": 0, "n_jobs": 1}
ROOM = Resources(memory_budget="60MB")
MAPPED = {**ONE, "kernel": "delta_gauss", "landmarks": 150, "resources": ROOM}
ROWS = {**MAPPED, "lambda_plus": 1e-4, "lambda_minus": 1e-4}
STRINGS = {**ONE, "kernel": "levenshtein"}


def numbers(n: int) -> tuple[Any, Any]:
    X = np.random.default_rng(0).normal(size=(n, 6))
    return X, np.sin(X[:, 0]) + X[:, 1] * X[:, 2]


def strings(n: int) -> tuple[Any, Any]:
    return make_noisy_strings(n, n_classes=3, noise=9, random_state=0)


def signs(n: int) -> tuple[Any, Any]:
    X, y = numbers(n)
    return X, y > 0


def lengths(n: int) -> tuple[Any, Any]:
    return strings(n)[0], np.arange(n) % 7


def ovr(model: Any) -> Any:
    """The same model, one class against the rest, if it may be another way."""
    return model.set_params(multi_class="ovr") if "multi_class" in model.get_params() else model


def fitted(name: str, X: Any, y: Any, params: dict[str, Any]) -> Any:
    return ovr(getattr(kl, name)(**params)).fit(X, y)


def judged(n: int) -> Any:
    return kl.evaluate(*strings(n), kernel="levenshtein", cv=3, n_jobs=1, random_state=0)


def from_file(n: int) -> Any:
    """Rows of a file, learned from and predicted to another one."""
    with tempfile.TemporaryDirectory() as folder:
        X, y = numbers(n)
        np.save(path := Path(folder) / "X.npy", X)
        del X
        return predict_to(fitted("KreinRidge", path, y, ROWS), path, Path(folder) / "found.npy")


# A size to begin with, so that all is imported and compiled, the size that is measured, the work.
PEAKS: dict[str, tuple[int, int, Callable[[int], Any]]] = {
    "KreinRidge": (60, 1200, lambda n: fitted("KreinRidge", *lengths(n), STRINGS)),
    "KreinVCRidge": (60, 1200, lambda n: fitted("KreinVCRidge", *lengths(n), STRINGS)),
    "KreinRidgeClassifier": (
        60,
        1200,
        lambda n: fitted("KreinRidgeClassifier", *strings(n), STRINGS),
    ),
    "KreinSVC": (60, 1200, lambda n: fitted("KreinSVC", *strings(n), STRINGS)),
    "KreinClassifier": (60, 700, lambda n: fitted("KreinClassifier", *strings(n), ONE)),
    "KreinRidge, rows": (9000, 100_000, lambda n: fitted("KreinRidge", *numbers(n), ROWS)),
    "KreinSVC, rows": (9000, 50_000, lambda n: fitted("KreinSVC", *signs(n), ROWS)),
    "KreinNystroem, rows": (9000, 100_000, lambda n: fitted("KreinNystroem", *numbers(n), MAPPED)),
    "predict_to, rows of a file": (9000, 100_000, from_file),
    "evaluate": (60, 500, judged),
}


def resident(which: str) -> float:
    return int(re.search(which + r":\s+(\d+)", Path("/proc/self/status").read_text())[1]) / 1e3


def peak(name: str) -> float:
    """Resident megabytes beyond those that the process had when it began, at the most."""
    few, many, work = PEAKS[name]
    work(few)
    before = resident("VmRSS")
    work(many)
    return resident("VmHWM") - before


# A fit that takes its time, and can be killed or be given too small a disk

LANDMARKS, PAIRS = 10, 100_000
X = np.random.default_rng(0).permutation(PAIRS)[: PAIRS // LANDMARKS].tolist()
STOP = 70_000  # pairs after which a fit that is to be killed waits
MADE = {"similarity": "squared", "lambda_plus": 1.0, "lambda_minus": 1.0, "n_jobs": 1}
calls, pause = [0], [0.0]


def apart(a: int, b: int) -> float:
    calls[0] += 1
    if not calls[0] % 500:
        print(calls[0], flush=True)
        time.sleep(600 if pause[0] and calls[0] == STOP else 500 * pause[0])
    return float(abs(a - b) ** 0.5)


def fit(store: str, seconds: float, largest: int) -> dict[str, Any]:
    """Fit slowly, with files of at most so many bytes; what came out, and the number of pairs."""
    if largest:
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
    pause[0] = seconds
    kernel, y = dissimilarity(pairwise(apart)), np.sin(np.array(X) / 9000)
    resources = Resources(store=store) if store else None
    model = kl.KreinRidge(kernel, landmarks=[*range(LANDMARKS)], **MADE, resources=resources)
    try:
        model.fit(X, y)
    except (OSError, RuntimeError) as error:  # a disk that is full, a store that is in use
        return {"refused": type(error).__name__, "calls": calls[0]}
    bits = hashlib.sha256(np.asarray(model.dual_coef_).tobytes()).hexdigest()
    return {"bits": bits, "calls": calls[0]}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    what, first, *rest = sys.argv[1:]
    done = peak(first) if what == "peak" else fit(first, float(rest[0]), int(rest[1]))
    print(json.dumps(done))
