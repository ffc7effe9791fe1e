"""Data with known truth made on the spot, and loaders from a data folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from kreinlearn.blocks import as_generator

Array = NDArray[Any]
VARIABLE = "KREINLEARN_DATA"
REDRAWS_PER_BALL = 50


# Generators.


def make_polygons(
    n_samples: int = 400,
    *,
    sides: Sequence[int] = (5, 7),
    radius: tuple[float, float] = (0.5, 1.0),
    random_state: Any = None,
) -> tuple[list[NDArray[np.float64]], NDArray[np.int64]]:
    """Random polygons as vertex arrays (k, 2), in random order; y is the number of sides.

    Vertex j of a k-gon stands at the angle 2 pi (j + u_j) / k + phi, with u_j uniform in
    [-1/2, 1/2] and phi uniform once a polygon, at a distance from the origin uniform in ``radius``.
    Classes have equal sizes, up to one object where ``n_samples`` is no multiple of their number.

    >>> from kreinlearn.datasets import make_polygons
    >>> X, y = make_polygons(4, random_state=0)
    >>> [len(x) for x in X] == y.tolist()
    True
    """
    if min(sides, default=0) < 3 or len(set(sides)) < len(sides):
        raise ValueError(f"sides={sides!r}: pass distinct numbers of at least 3, one a class")
    if n_samples < len(sides):
        raise ValueError(f"n_samples={n_samples} is below one polygon for each of sides={sides!r}")
    rng = as_generator(random_state)
    y = rng.permutation(np.array(sides, dtype=np.int64)[np.arange(n_samples) % len(sides)])
    return [_polygon(int(k), radius, rng) for k in y], y


def _polygon(k: int, radius: tuple[float, float], rng: np.random.Generator) -> Array:
    u, phi = rng.uniform(-0.5, 0.5, k), rng.uniform(0.0, 2 * np.pi)
    angle = 2 * np.pi * (np.arange(k) + u) / k + phi
    return np.column_stack([np.cos(angle), np.sin(angle)]) * rng.uniform(*radius, (k, 1))


def make_balls3d(
    n_per_class: Sequence[int] = (100, 100),
    *,
    radii: Sequence[float] = (0.02, 0.04),
    dimension: int = 3,
    side: float = 100.0,
    random_state: Any = None,
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Dissimilarities D (n, n) of disjoint balls in a cube, and the class y of each ball.

    d_ij = |x_i - x_j| - r_i - r_j, the gap between surfaces, with d_ii = 0: classes differ by
    their radius alone. A centre whose ball meets another is drawn again, at most 50 n times.

    >>> from kreinlearn.datasets import make_balls3d
    >>> D, y = make_balls3d((3, 2), random_state=0)
    >>> D.shape, y.tolist()
    ((5, 5), [0, 0, 0, 1, 1])
    """
    if len(n_per_class) != len(radii):
        raise ValueError(
            f"n_per_class has {len(n_per_class)} classes but radii has {len(radii)}; "
            "pass one number and one radius a class"
        )
    rng = as_generator(random_state)
    y = np.repeat(np.arange(len(radii), dtype=np.int64), n_per_class)
    r = np.asarray(radii, dtype=np.float64)[y]
    X = rng.uniform(0.0, side, (len(y), dimension))
    D = np.array([_gaps(X, r, i) for i in range(len(y))]).reshape(len(y), len(y))
    for _ in range(REDRAWS_PER_BALL * len(y)):
        meeting = np.flatnonzero((D[1:] < 0).any(axis=1))
        if len(meeting) == 0:
            return D, y
        i = int(meeting[0]) + 1
        X[i] = rng.uniform(0.0, side, dimension)
        D[i] = D[:, i] = _gaps(X, r, i)
    if (D < 0).any():
        raise ValueError(
            f"{len(y)} balls of radii {tuple(radii)} did not fit apart into a cube of side {side} "
            f"in {REDRAWS_PER_BALL * len(y)} draws; take fewer or smaller balls or a larger side"
        )
    return D, y


def _gaps(X: Array, r: Array, i: int) -> Array:
    gaps: Array = np.sqrt(np.sum((X - X[i]) ** 2, axis=1)) - (r + r[i])
    gaps[i] = 0.0
    return gaps


# Loaders.


class Graph(NamedTuple):
    """An undirected graph with discrete node labels; edges (i, j), i < j, by node number."""

    node_labels: Array  # (n_nodes,)
    edges: Array  # (n_edges, 2)


def data_home() -> Path:
    """The folder that the environment variable KREINLEARN_DATA names."""
    layout = "a folder with files such as dissimilarity/woodyplants50.npz or strings/surnames18.npz"
    given = os.environ.get(VARIABLE)
    if not given:
        raise FileNotFoundError(f"{VARIABLE} is not set; let it name {layout}")
    home = Path(given).expanduser()
    if not home.is_dir():
        raise FileNotFoundError(f"{VARIABLE}={given} is no folder; let it name {layout}")
    return home


def list_datasets() -> list[str]:
    """Names for ``load_dataset``: the folder and file name, without ``.npz``."""
    home = data_home()
    return sorted(
        path.relative_to(home).with_suffix("").as_posix() for path in home.glob("*/*.npz")
    )


def load_dataset(name: str) -> Bunch:
    """One data set of the data folder, ``load_dataset("dissimilarity/woodyplants50")``.

    The arrays are as the file holds them: a dissimilarity ``D`` is neither squared nor symmetrised.
    What is stored end to end comes apart: series and graphs as a list ``X``, words as a list ``s``.
    """
    if name not in list_datasets():
        raise FileNotFoundError(
            f"no data set {name!r} in the folder that {VARIABLE} names; there are {list_datasets()}"
        )
    with np.load(data_home() / f"{name}.npz", allow_pickle=False) as file:
        arrays = {key: file[key] for key in file.files}
    for keys, apart in _RAGGED.items():
        if arrays.keys() >= set(keys):
            arrays |= apart(*(arrays.pop(key) for key in keys))
    return Bunch(name=name, **arrays)


def _series(values: Array, offsets: Array) -> dict[str, Any]:
    return {"X": np.split(values, offsets[1:-1])}


def _graphs(node_labels: Array, node_offsets: Array, edges: Array, edge_offsets: Array) -> Any:
    labels, pairs = np.split(node_labels, node_offsets[1:-1]), np.split(edges, edge_offsets[1:-1])
    return {"X": [Graph(*graph) for graph in zip(labels, pairs, strict=True)]}


def _words(utf8: Array) -> dict[str, Any]:
    return {"s": utf8.tobytes().decode("utf-8").split("\n")}


_RAGGED: dict[tuple[str, ...], Callable[..., dict[str, Any]]] = {
    ("values", "offsets"): _series,
    ("node_labels", "node_offsets", "edges", "edge_offsets"): _graphs,
    ("utf8",): _words,
}
