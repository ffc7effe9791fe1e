"""Sets of the scale benchmark, written to disk: a signal of known noise, covertype, flights3m.

The signal is a sum of 16 functions k(x, c), in pairs c and -c, of the kernel itself with either
sign, so that a linear model finds nothing; noise of half its deviation is added, and the two
classes are its signs. covertype has its 7 classes; of flights3m the delay in minutes is learned
and, as two classes, whether it is 15 or more. Columns are standardised. The sets named after the
formats parquet and npy have the same signal, in 20 and 10 columns; they are made and written in
pieces of 500,000 rows, and their linear model is that of the first piece.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
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
SIGNAL = {"width": 4.0, "ratio": 5.0}  # the kernel that it is made of
PIECE = 500_000  # rows that are made at a time
GROUP = 100_000  # rows of a row group
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
    load: Callable[[int | None], Data] | None  # so many rows, or all; None: it comes in pieces
    kernel: dict[str, Any]
    learners: tuple[str, ...]
    stored: str = ""  # where the rows come from; nothing for those made here
    d: int = D  # columns of a set in pieces


def synthetic(n: int | None) -> Data:
    """Normal columns of falling deviation, so that near rows exist; the signal of 16 centres."""
    assert n is not None
    rng = np.random.default_rng([0, n])
    X = rng.standard_normal((n, D)) * deviations(D)
    f = signal(X)
    f = (f - np.median(f)) / f.std()
    y = f + NOISE * rng.standard_normal(n)
    return Data(X, {NUMBERS: y, LABELS: (y > 0).astype(int)}, {NUMBERS: f, LABELS: f > 0})


def deviations(d: int) -> Array:  # (d,)
    return 1 / (1 + np.arange(d) / 2)


def signal(X: Array) -> Array:  # (n, d) -> (n,)
    """The sum of 16 functions of the kernel, with either sign."""
    d, rng = X.shape[1], np.random.default_rng(5)
    half, signs = rng.standard_normal((8, d)) * deviations(d), np.tile([1.0, -1.0], 8)
    columns = DeltaGauss(**SIGNAL).fit(X, rng).columns(np.vstack([half, -half]))
    return np.concatenate([columns(X[tile]) @ signs for tile in gen_batches(len(X), TILE)])


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
        SIGNAL,
        ("KreinRidge", "KreinRidgeClassifier", "KreinSVC"),
    ),
    "covertype": ScaleSet(covertype, {}, ("KreinRidgeClassifier", "KreinSVC"), "large/covertype"),
    "flights3m": ScaleSet(flights, {}, ("KreinRidge", "KreinSVC"), "large/flights3m"),
    "parquet": ScaleSet(None, SIGNAL, ("KreinRidgeClassifier", "KreinSVC")),
    "npy": ScaleSet(None, {}, ("KreinRidge",), d=10),
}


# Files


def write(name: str, n: int | None, n_test: int, folder: Path) -> None:
    """The training part of ``n`` rows (None: all), the test part, and what is known about a set."""
    folder.mkdir(parents=True, exist_ok=True)
    load = SETS[name].load
    if load is None:
        assert n is not None
        return write_in_pieces(name, n, n_test, folder)
    data = load(None if n is None else n + n_test)
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


def write_in_pieces(name: str, n: int, n_test: int, folder: Path) -> None:
    """The same for a set that is never in memory as a whole; only its targets are."""
    d, sizes = SETS[name].d, [min(PIECE, n - start) for start in range(0, n, PIECE)]
    first, test = piece(0, sizes[0], d), piece(len(sizes), n_test, d, sizes[0])
    names = tuple(f"x{j}" for j in range(d)) if name == "parquet" else ()
    y, rows = np.empty(n), None
    if names:
        (folder / "train").mkdir(exist_ok=True)
    else:
        rows = np.lib.format.open_memmap(folder / "train.npy", "w+", np.float64, (n, d))
    for i, size in enumerate(sizes):
        data, here = piece(i, size, d, sizes[0]), slice(i * PIECE, i * PIECE + size)
        y[here] = data.targets[NUMBERS]
        if rows is None:
            _write_rows(folder / "train" / f"{i:03d}", data.X, names)
        else:
            rows[here] = data.X
    _write_rows(folder / "test", test.X, names)
    for part, numbers in (("train", y), ("test", test.targets[NUMBERS])):
        np.save(folder / f"{part}_{NUMBERS}.npy", numbers)
        np.save(folder / f"{part}_{LABELS}.npy", (numbers > 0).astype(int))
    both, tested = joined(first, test), np.arange(sizes[0] + n_test) >= sizes[0]
    about = {"n": n, "d": d} | {kind: baselines(kind, both, tested) for kind in both.targets}
    (folder / ABOUT).write_text(json.dumps(about), encoding="utf8")


def piece(number: int, size: int, d: int, of_first: int | None = None) -> Data:
    """A piece of the signal; level and deviation are those of the first piece, of so many rows."""
    rng = np.random.default_rng([11, number])
    X = rng.standard_normal((size, d)) * deviations(d)
    f = signal(X)
    whole = f if number == 0 else _first_signal(of_first or size, d)
    f = (f - np.median(whole)) / whole.std()
    y = f + NOISE * rng.standard_normal(size)
    return Data(X, {NUMBERS: y, LABELS: (y > 0).astype(int)}, {NUMBERS: f, LABELS: f > 0})


@cache
def _first_signal(size: int, d: int) -> Array:
    return signal(np.random.default_rng([11, 0]).standard_normal((size, d)) * deviations(d))


def joined(a: Data, b: Data) -> Data:
    def both(one: dict[str, Array], other: dict[str, Array]) -> dict[str, Array]:
        return {kind: np.concatenate([one[kind], other[kind]]) for kind in one}

    return Data(np.vstack([a.X, b.X]), both(a.targets, b.targets), both(a.best, b.best))


def _write_rows(path: Path, X: Array, names: tuple[str, ...]) -> None:
    if not names:
        np.save(path.with_suffix(".npy"), X)
        return
    import pyarrow as pa
    from pyarrow import parquet

    columns = dict(zip(names, X.T, strict=True))
    parquet.write_table(pa.table(columns), path.with_suffix(".parquet"), row_group_size=GROUP)


def rows_at(folder: Path, part: str) -> Any:
    """X as an estimator takes it; what is on disk is not loaded."""
    path, pieces = folder / f"{part}.npy", folder / part
    if pieces.is_dir():
        return table(pieces)
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
