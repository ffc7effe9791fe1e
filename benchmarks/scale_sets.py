"""Sets of the scale benchmark, written to disk: a signal of known noise, covertype, flights3m.

The signal is a sum of 16 functions k(x, c), in pairs c and -c, of the kernel itself with either
sign, so that a linear model finds nothing; noise of half its deviation is added, and the two
classes are its signs. covertype has its 7 classes; of flights3m the delay in minutes is learned
and, as two classes, whether it is 15 or more. Columns are standardised.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.utils import gen_batches

from kreinlearn import table
from kreinlearn.data.tiles import TILE
from kreinlearn.datasets import load_dataset
from kreinlearn.kernels import DeltaGauss

D = 20
NOISE = 0.5  # deviations of the signal
DELAYED = 15  # minutes
NUMBERS, LABELS = "numbers", "labels"
ABOUT = "about.json"

Array = Any


class Data(NamedTuple):
    X: Array
    targets: dict[str, Array]  # NUMBERS, LABELS
    best: dict[str, Array] = {}  # the targets as they would be without noise
    names: tuple[str, ...] = ()  # of columns, which are then stored as Parquet


class ScaleSet(NamedTuple):
    load: Callable[[int | None], Data]  # so many rows, or all
    kernel: dict[str, Any]
    learners: tuple[str, ...]
    stored: str = ""  # where the rows come from; nothing for those made here


def synthetic(n: int | None) -> Data:
    """Normal columns of falling deviation, so that near rows exist; the signal of 16 centres."""
    assert n is not None
    deviations = 1 / (1 + np.arange(D) / 2)
    of_centres, rng = np.random.default_rng(5), np.random.default_rng([0, n])
    half = of_centres.standard_normal((8, D)) * deviations
    signs = np.tile([1.0, -1.0], 8)
    X = rng.standard_normal((n, D)) * deviations
    columns = DeltaGauss(**SETS["synthetic"].kernel).fit(X, rng).columns(np.vstack([half, -half]))
    f = np.concatenate([columns(X[tile]) @ signs for tile in gen_batches(n, TILE)])
    f = (f - np.median(f)) / f.std()
    y = f + NOISE * rng.standard_normal(n)
    return Data(X, {NUMBERS: y, LABELS: (y > 0).astype(int)}, {NUMBERS: f, LABELS: f > 0})


def covertype(n: int | None) -> Data:
    data = load_dataset("large/covertype")
    return Data(standardised(data.X[:n].astype(float)), {LABELS: data.y[:n].astype(int)})


def flights(n: int | None) -> Data:
    """Time of day and of week on circles, date, distance, and where the airports are."""
    data = load_dataset("large/flights3m")
    minute, place = data.minute[:n], data.airport_lat_lon.astype(float)
    circles = {"day": minute / 1440 % 1, "week": minute / 10080 % 1}
    columns = {"date": minute, "distance": data.distance[:n]}
    for name, turns in circles.items():
        angle = 2 * np.pi * turns
        columns |= {f"{name}_sin": np.sin(angle), f"{name}_cos": np.cos(angle)}
    for end in ("origin", "destination"):
        at = place[getattr(data, end)[:n]]
        columns |= {f"{end}_latitude": at[:, 0], f"{end}_longitude": at[:, 1]}
    y = data.y[:n].astype(float)
    X = standardised(np.column_stack(list(columns.values())).astype(float))
    return Data(X, {NUMBERS: y, LABELS: (y >= DELAYED).astype(int)}, {}, tuple(columns))


def standardised(X: Array) -> Array:
    deviation = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)


SETS = {
    "synthetic": ScaleSet(
        synthetic,
        {"width": 4.0, "ratio": 5.0},
        ("KreinRidge", "KreinRidgeClassifier", "KreinSVC"),
    ),
    "covertype": ScaleSet(covertype, {}, ("KreinRidgeClassifier", "KreinSVC"), "large/covertype"),
    "flights3m": ScaleSet(flights, {}, ("KreinRidge", "KreinSVC"), "large/flights3m"),
}


# Files


def write(name: str, n: int | None, n_test: int, folder: Path) -> None:
    """The training part of ``n`` rows (None: all), the test part, and what is known about a set."""
    data = SETS[name].load(None if n is None else n + n_test)
    folder.mkdir(parents=True)
    rng = np.random.default_rng(1)
    test = np.zeros(len(data.X), dtype=bool)
    test[rng.choice(len(test), n_test, replace=False)] = True
    for part, mask in (("train", ~test), ("test", test)):
        _write_rows(folder / part, data.X[mask], data.names)
        for kind, y in data.targets.items():
            np.save(folder / f"{part}_{kind}.npy", y[mask])
    about = {"n": int(np.sum(~test)), "d": data.X.shape[1]}
    about |= {kind: baselines(kind, data, test) for kind in data.targets}
    (folder / ABOUT).write_text(json.dumps(about), encoding="utf8")


def _write_rows(path: Path, X: Array, names: tuple[str, ...]) -> None:
    if not names:
        np.save(path.with_suffix(".npy"), X)
        return
    import pyarrow as pa
    from pyarrow import parquet

    columns = dict(zip(names, X.T, strict=True))
    parquet.write_table(pa.table(columns), path.with_suffix(".parquet"), row_group_size=100_000)


def rows_at(folder: Path, part: str) -> Any:
    """X as an estimator takes it; what is on disk is not loaded."""
    path = folder / f"{part}.npy"
    return path if path.exists() else table(path.with_suffix(".parquet"))


def error(kind: str, found: Array, y: Array) -> float:
    """The share of wrong classes, or the root of the mean squared error."""
    if kind == LABELS:
        return float(np.mean(found != y))
    return float(np.sqrt(np.mean((found - y) ** 2)))


def baselines(kind: str, data: Data, test: Array) -> dict[str, float]:
    """The test errors of a constant, of a linear model and, if known, of the signal itself."""
    y, y_test = data.targets[kind][~test], data.targets[kind][test]
    constant = np.bincount(y).argmax() if kind == LABELS else y.mean()
    linear = (RidgeClassifier if kind == LABELS else Ridge)().fit(data.X[~test], y)
    found = {"constant": constant, "linear": linear.predict(data.X[test])}
    if kind in data.best:
        found["best"] = data.best[kind][test]
    return {name: error(kind, f, y_test) for name, f in found.items()}
