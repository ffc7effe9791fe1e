"""Sets of at most 1,000 objects whose kernel values are evaluated once and kept in a folder.

The kernels of a set are those that `kernel="auto"` compares, fitted to all of its objects; of a set
that is a matrix there is the matrix alone. Subsets are stratified and drawn once. At most 500
objects are taken of series whose elastic distances are slow, 20 of each of ten classes of contours,
and of CoilYork those 144 objects whose distances among one another are known. Vectors are
standardised.

Six sets are simulated: series with a bump that comes later in one of two classes, before slow waves
that say nothing ("group shift"), vectors of two groups whose means are 1.5 deviations apart, random
strings with random labels, with random targets and with the number of their letters "a", and a
smooth function of vectors.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
FOLDER = Path("build/few")
MOST, SLOW = 1000, 500  # objects of a set; of series that are long
CONTOURS = 10  # classes of contours
LATE = 15  # minutes
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class Kept(NamedTuple):
    """What is kept of a set: its targets, and one matrix of all objects for each kernel."""

    name: str
    kind: str  # series, strings, graphs, shapes, matrices, records, vectors or simulated
    is_regression: bool
    y: Array  # (n,)
    matrices: list[tuple[str, bool, Array]]  # label, whether dissimilarities, (n, n)


def load(name: str, folder: Path | str = FOLDER) -> Kept:
    """A set that is kept in the folder; it needs numpy alone."""
    with np.load(_file(name, folder), allow_pickle=False) as file:
        marks = zip(file["labels"].tolist(), file["is_dissimilarity"].tolist(), strict=True)
        matrices = [(*mark, file[f"matrix_{i}"]) for i, mark in enumerate(marks)]
        return Kept(name, str(file["kind"]), bool(file["is_regression"]), file["y"], matrices)


def fill(names: Sequence[str], folder: Path | str = FOLDER, n_jobs: int = 1) -> dict[str, str]:
    """Evaluate the sets that are not in the folder yet; says why some cannot be."""
    import joblib

    Path(folder).mkdir(parents=True, exist_ok=True)
    missing = [name for name in names if not _file(name, folder).exists()]
    pool = joblib.Parallel(n_jobs=min(n_jobs, max(len(missing), 1)), batch_size=1)
    said = pool(joblib.delayed(_keep)(name, folder) for name in missing)
    return {name: why for name, why in zip(missing, said, strict=True) if why}


def _file(name: str, folder: Path | str) -> Path:
    return Path(folder) / f"{name.replace(' ', '_')}.npz"


def _keep(name: str, folder: Path | str) -> str:
    from threadpoolctl import threadpool_limits

    kind, is_regression, make = SETS[name]
    try:
        with threadpool_limits(1):  # values are the same bits on machines of one kind
            y, matrices = make()
    except FileNotFoundError as error:
        return f"MISSING set {name}: {error}"
    kept: dict[str, Any] = {f"matrix_{i}": M for i, (*_, M) in enumerate(matrices)}
    kept |= {"labels": [m[0] for m in matrices], "is_dissimilarity": [m[1] for m in matrices]}
    path = _file(name, folder)
    torn = path.with_name(f"{os.getpid()}.npz.part")  # a run that is stopped leaves no half a set
    with open(torn, "wb") as file:
        np.savez(file, kind=kind, is_regression=is_regression, y=y, **kept)
    torn.replace(path)
    print(f"{name}: {len(y)} objects, {len(matrices)} kernels", file=sys.stderr, flush=True)
    return ""


# Sets of the data folder

Made = tuple[Array, list[tuple[str, bool, Array]]]


def _evaluated(X: Any, y: Array) -> Made:
    """Targets, and the values of all kernels that are compared on such objects."""
    from kreinlearn.kernels.candidates import candidates_for
    from kreinlearn.kernels.several import Several

    kernels = candidates_for(X)
    fitted = [kernel.fit(X, np.random.default_rng(0)) for kernel in kernels]
    return y, [
        (label, k.is_dissimilarity, np.asarray(k.symmetric(X), dtype=np.float64))
        for label, k in zip(Several(kernels).labels, fitted, strict=True)
    ]


def _loaded(path: str) -> Any:
    from kreinlearn.datasets import load_dataset

    return load_dataset(path)


def _some(y: Array, most: int = MOST, *, stratified: bool = True) -> Array:
    """Sorted numbers of at most so many objects."""
    from sklearn.model_selection import train_test_split

    if len(y) <= most:
        return np.arange(len(y))
    of = y if stratified else None
    drawn = train_test_split(np.arange(len(y)), train_size=most, stratify=of, random_state=0)
    return np.sort(drawn[0])


def _objects(path: str, field: str = "X", most: int = MOST) -> Made:
    data = _loaded(path)
    rows = _some(data.y, most)
    return _evaluated([data[field][i] for i in rows], data.y[rows])


def _surnames() -> Made:
    """Each name of a language once."""
    data = _loaded("strings/surnames18")
    pairs = sorted(set(zip(data.s.tolist(), data.y.tolist(), strict=True)))
    y = np.array([label for _, label in pairs])
    rows = _some(y)
    return _evaluated([pairs[i][0] for i in rows], y[rows])


def _contours() -> Made:
    data = _loaded("shapes/mpeg7_contours")
    classes = np.random.default_rng(0).permutation(np.unique(data.y))[:CONTOURS]
    rows = np.flatnonzero(np.isin(data.y, classes))
    return _evaluated(list(data.X[rows].astype(np.float64)), data.y[rows])


def _vectors(path: str, is_regression: bool = True) -> Made:
    from reproduction.sets import standardised

    data = _loaded(path)
    rows = _some(data.y, stratified=not is_regression)
    return _evaluated(standardised(data.X[rows]), data.y[rows])


def _flights() -> Made:
    """Records of flights, and whether they were late."""
    data = _loaded("large/flights3m")
    late = (data.y > LATE).astype(np.int64)
    rows = _some(late)
    records = [
        {
            "origin": str(data.airport[data.origin[i]]),
            "destination": str(data.airport[data.destination[i]]),
            "distance": float(data.distance[i]),
            "hour": float(data.minute[i] % 1440) / 60,
            "day": DAYS[int(data.minute[i]) // 1440 % 7],  # 2001 began on a Monday
        }
        for i in rows
    ]
    return _evaluated(records, late[rows])


def _matrix(path: str, field: str = "D", target: str = "y") -> Made:
    data = _loaded(path)
    M = np.asarray(data[field], dtype=np.float64)
    return data[target], [("matrix", field != "K", 0.5 * (M + M.T))]


# Simulated sets


def _strings(target: str) -> Made:
    """Distinct strings of 4 to 11 random letters of four."""
    rng = np.random.default_rng(0)
    distinct: dict[str, None] = {}
    while len(distinct) < MOST:
        distinct["".join(rng.choice(list("abcd"), rng.integers(4, 12)))] = None
    targets: dict[str, Any] = {
        "labels": rng.permutation(np.arange(MOST) % 2),
        "targets": rng.standard_normal(MOST),
        "count": [float(x.count("a")) for x in distinct],
    }
    return _evaluated(list(distinct), np.asarray(targets[target]))


def _shifted(length: int = 60, later: float = 0.16) -> Made:
    """A bump at 0.42, or later by 0.16, each time moved by up to 0.05, and slow waves."""
    rng = np.random.default_rng(0)
    y, t, waves = rng.permutation(np.arange(MOST) % 2), np.linspace(0, 1, length), np.arange(1, 4)
    X = []
    for c in y:
        a, at = 0.6 * rng.standard_normal(3) / waves, 0.42 + later * c + rng.uniform(-0.05, 0.05)
        slow = np.sin(2 * np.pi * np.outer(t, waves) + rng.uniform(0, 2 * np.pi, 3)) @ a
        noise = 0.05 * rng.standard_normal(length)
        X.append(np.exp(-np.square((t - at) / 0.06)) + slow + noise)
    return _evaluated(X, y)


def _groups(apart: float = 1.5, d: int = 10) -> Made:
    rng = np.random.default_rng(0)
    y = rng.permutation(np.arange(MOST) % 2)
    X = rng.standard_normal((MOST, d))
    X[:, 0] += apart * y
    return _evaluated(X, y)


def _smooth() -> Made:
    X = np.random.default_rng(0).uniform(-2, 2, (MOST, 3))
    return _evaluated(X, np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] / 2)


def _all(
    kind: str, numbers: bool, make: Callable[..., Made], folder: str, *names: str, **more: Any
) -> Any:
    """Sets that are made in the same way, of files in the same folder."""
    return {name: (kind, numbers, partial(make, f"{folder}/{name}", **more)) for name in names}


# The table: kind, whether targets are numbers, how it is made; the fast ones first

COIL = {"field": "D_train", "target": "y_train"}
SETS: dict[str, tuple[str, bool, Callable[[], Made]]] = {
    **_all("matrices", False, _matrix, "dissimilarity",
           "woodyplants50", "chickenpieces_20_60", "protein", "balls3d"),
    **_all("matrices", False, _matrix, "dissimilarity", "coilyork_partial", **COIL),
    **_all("matrices", False, _matrix, "similarity", "voting", "protein_chen", field="K"),
    "noise labels": ("simulated", False, partial(_strings, "labels")),
    "noise targets": ("simulated", True, partial(_strings, "targets")),
    "letter count": ("simulated", True, partial(_strings, "count")),
    "smooth function": ("simulated", True, _smooth),
    "two groups": ("simulated", False, _groups),
    **_all("vectors", True, _vectors, "vectorial",
           "parkinsons", "pole", "cal_housing", "elevators", "ailerons"),
    **_all("vectors", False, _vectors, "large", "covertype", is_regression=False),
    "flights": ("records", False, _flights),
    "surnames18": ("strings", False, _surnames),
    **_all("strings", False, _objects, "large", "words11", field="s"),
    **_all("strings", False, _objects, "strings", "amp_ampscanner", "chromosomes", field="s"),
    **_all("graphs", False, _objects, "graphs", "MUTAG", "ENZYMES", "PROTEINS", "NCI1"),
    **_all("series", False, _objects, "timeseries", "ItalyPowerDemand", "ArrowHead"),
    "group shift": ("simulated", False, _shifted),
    "mpeg7_contours": ("shapes", False, _contours),
    **_all("series", False, _objects, "timeseries",
           "JapaneseVowels", "OSULeaf", "PLAID", most=SLOW),
}  # fmt: skip
