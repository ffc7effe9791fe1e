"""One fit from files on disk, in a process of its own: seconds, memory, error, passes."""

from __future__ import annotations

import json
import os
import threading
import time
import warnings
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import scale_dask
from benchmarks.bound import bound
from benchmarks.scale_sets import ABOUT, LABELS, NUMBERS, SETS, error, rows_at
from benchmarks.timing import forget_peak, resident_megabytes, timed
from kreinlearn import KreinRidge, KreinRidgeClassifier, KreinSVC, Resources
from kreinlearn.kernels import DeltaGauss
from kreinlearn.kernels.vector_columns import DistanceColumns
from kreinlearn.sums.parallel import worker_count

LEARNERS = {
    "KreinRidge": (KreinRidge, NUMBERS),
    "KreinRidgeClassifier": (KreinRidgeClassifier, LABELS),
    "KreinSVC": (KreinSVC, LABELS),
}
HERE, DASK = "this process", "Dask"  # where a fit is done
BUDGET = "2GB"
REPEATED, REPETITIONS = 1_000_000, 3  # rows up to which a fit is repeated
BOUNDS = 3  # of the bare bound, before every fit and after the last
WARM_ROWS = 3000


class Tally:
    """The number of kernel values that were evaluated by all threads."""

    def __init__(self) -> None:
        self.values, self._lock = 0, threading.Lock()

    def add(self, values: int) -> None:
        with self._lock:
            self.values += values


class CountedColumns(DistanceColumns):
    def __init__(self, tally: Tally, *given: Any) -> None:
        self.tally = tally
        super().__init__(*given)

    def __call__(self, A: Any, out: Any = None) -> Any:
        values = super().__call__(A, out)
        self.tally.add(values.size)
        return values


class CountedDeltaGauss(DeltaGauss):
    """The same kernel at the same speed; all copies of it share one count."""

    tally = Tally()

    def columns(self, Z: Any) -> Any:
        return CountedColumns(self.tally, Z, self._apply())


def measured(folder: Path, name: str, m: int, learner: str, where: str = HERE) -> dict[str, Any]:
    """What a fit with its tuning costs; all parameters except the kernel and m are defaults."""
    about = json.loads((folder / ABOUT).read_text("utf8"))
    n, d = about["n"], about["d"]
    kind, kernel = LEARNERS[learner][1], CountedDeltaGauss(**SETS[name].kernel)
    X_test = rows_at(folder, "test")
    y, y_test = (np.load(folder / f"{part}_{kind}.npy") for part in ("train", "test"))
    resources = Resources(memory_budget=BUDGET)
    model = LEARNERS[learner][0](kernel, landmarks=m, resources=resources, random_state=0)
    warm(model, d, y, X_test)
    floors = list[float]()

    def measure_bound() -> None:
        floors.extend(bound(n, m, d).total for _ in range(BOUNDS))

    fitted = fitted_here if where == HERE else fitted_on_dask
    costs = fitted(folder, model, y, measure_bound)
    measure_bound()
    predicted = timed(partial(model.predict, X_test))
    return {
        "set": name, "n": n, "d": d, "m": m, "learner": learner, "kind": kind, "where": where,
        **costs, "bound": float(np.median(floors)),
        "workers": worker_count(None), "predict_cpu": predicted.cpu,
        "predict_wall": predicted.wall, "n_test": len(y_test),
        "error": error(kind, model.predict(X_test), y_test), **about[kind],
        "passes": getattr(model, "n_iter_", None),
        "classes": len(np.unique(y)) if kind == LABELS else None, "load": os.getloadavg()[0],
        "lambda_plus": float(model.lambda_plus_), "lambda_minus": float(model.lambda_minus_),
    }  # fmt: skip


def fitted_here(
    folder: Path, model: Any, y: np.ndarray, measure_bound: Callable[[], None]
) -> dict[str, Any]:
    """Seconds, megabytes and kernel values of fits in this process, in turns with the bound."""
    X, tally = rows_at(folder, "train"), model.kernel.tally
    before, counted = forget_peak(), tally.values
    repetitions = REPETITIONS if len(y) <= REPEATED else 1
    fits = []
    for _ in range(repetitions):
        measure_bound()
        system = os.times().system
        fit = timed(lambda: model.fit(X, y))
        fits.append((fit.cpu, os.times().system - system, fit.wall))
    peak = resident_megabytes("VmHWM") - before
    cpu, system, wall = np.median(fits, axis=0).tolist()
    values = (tally.values - counted) / repetitions
    evaluated = values / (len(y) * model.landmarks)
    return {"cpu": cpu, "system": system, "wall": wall, "peak": peak, "evaluated": evaluated}


def fitted_on_dask(
    folder: Path, model: Any, y: np.ndarray, measure_bound: Callable[[], None]
) -> dict[str, Any]:
    """Seconds and megabytes of one fit on two workers, together with those of this process."""
    import dask.dataframe as dd

    measure_bound()
    counted = model.kernel  # kernel values are counted in one process only
    model.set_params(kernel=DeltaGauss(**counted.get_params()))
    with scale_dask.cluster() as client:
        X = dd.read_parquet(str(folder / "train"))
        client.run(import_module, "kreinlearn.kernels._fused")
        before = forget_peak() + sum(client.run(forget_peak).values())
        spent = sum(client.run(time.process_time).values())
        fit = timed(lambda: model.fit(X, y))
        cpu = fit.cpu + sum(client.run(time.process_time).values()) - spent
        peaks = client.run(resident_megabytes, "VmHWM").values()
        peak = resident_megabytes("VmHWM") + sum(peaks) - before
    return {"cpu": cpu, "system": None, "wall": fit.wall, "peak": peak, "evaluated": None}


def warm(model: Any, d: int, y: np.ndarray, X_test: Any) -> None:
    """Compile and import what a fit and a prediction need, before anything is measured."""
    rng = np.random.default_rng(0)
    some = rng.choice(len(y), WARM_ROWS)
    least = min(20, model.landmarks)
    small = type(model)(**{**model.get_params(deep=False), "landmarks": least})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # columns without names, rare classes
        small.fit(rng.standard_normal((WARM_ROWS, d)), y[some]).predict(X_test)
