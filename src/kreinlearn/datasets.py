"""Generators of data whose structure is known, and loaders of the data folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import Bunch

from kreinlearn.data.validation import as_generator

Array = np.ndarray
Random = int | np.random.RandomState | np.random.Generator | None
VARIABLE = "KREINLEARN_DATA"
REDRAWS_PER_BALL = 50


# Generators.


def make_polygons(
    n_samples: int = 400,
    *,
    sides: Sequence[int] = (5, 7),
    radius: tuple[float, float] = (0.5, 1.0),
    random_state: Random = None,
) -> tuple[list[Array], Array]:
    """Generate random polygons whose class is their number of sides.

    Vertex j of a polygon with k sides has the angle 2 pi (j + u_j) / k + phi. Here u_j is uniform
    in [-1/2, 1/2], and phi is uniform and the same for all vertices of a polygon. The distance of
    a vertex from the origin is uniform in ``radius``. Classes have equal sizes, up to one object
    if ``n_samples`` is no multiple of their number. Objects come in random order.

    Parameters
    ----------
    n_samples : int, default=400
        The number of polygons.
    sides : sequence of int, default=(5, 7)
        The numbers of sides, one per class; distinct, and at least 3.
    radius : tuple of two floats, default=(0.5, 1.0)
        The least and the largest distance of a vertex from the origin.
    random_state : int, RandomState, Generator or None, default=None
        The seed or source of random numbers.

    Returns
    -------
    X : list of ndarray of shape (k, 2)
        The vertices of each polygon.
    y : ndarray of shape (n_samples,)
        The number of sides of each polygon.

    Examples
    --------
    >>> from kreinlearn.datasets import make_polygons
    >>> X, y = make_polygons(4, random_state=0)
    >>> [len(x) for x in X] == y.tolist()
    True
    """
    if min(sides, default=0) < 3 or len(set(sides)) < len(sides):
        raise ValueError(f"sides={sides!r}: pass distinct numbers of at least 3, one per class")
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
    random_state: Random = None,
) -> tuple[Array, Array]:
    """Generate dissimilarities of disjoint balls in a cube whose classes differ by the radius.

    The dissimilarity of two balls is the gap between their surfaces,
    d_ij = |x_i - x_j| - r_i - r_j, with d_ii = 0. Centres are uniform in the cube. A centre whose
    ball touches another ball is drawn again, at most 50 times the number of balls.

    Parameters
    ----------
    n_per_class : sequence of int, default=(100, 100)
        The number of balls of each class.
    radii : sequence of float, default=(0.02, 0.04)
        The radius of each class.
    dimension : int, default=3
        The dimension of the space.
    side : float, default=100.0
        The length of the sides of the cube.
    random_state : int, RandomState, Generator or None, default=None
        The seed or source of random numbers.

    Returns
    -------
    D : ndarray of shape (n, n)
        The dissimilarities of all balls.
    y : ndarray of shape (n,)
        The class of each ball, 0, 1, and so on.

    Examples
    --------
    >>> from kreinlearn.datasets import make_balls3d
    >>> D, y = make_balls3d((3, 2), random_state=0)
    >>> D.shape, y.tolist()
    ((5, 5), [0, 0, 0, 1, 1])
    """
    if len(n_per_class) != len(radii):
        raise ValueError(
            f"n_per_class has {len(n_per_class)} classes but radii has {len(radii)}; "
            "pass one number and one radius per class"
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


def make_noisy_strings(
    n_samples: int = 400,
    *,
    n_classes: int = 4,
    length: int = 20,
    noise: int = 6,
    alphabet: str = "ACGT",
    return_prototypes: bool = False,
    random_state: Random = None,
) -> tuple[Any, ...]:
    """Generate strings by random edits of one prototype per class.

    A prototype has ``length`` letters, all equally likely, and no two prototypes are equal. A
    string is its prototype after ``noise`` edits at random places; an edit inserts, deletes or
    changes a letter. So the Levenshtein distance of a string to its prototype is at most
    ``noise``. Objects come in random order.

    Parameters
    ----------
    n_samples : int, default=400
        The number of strings.
    n_classes : int, default=4
        The number of classes.
    length : int, default=20
        The number of letters of a prototype.
    noise : int, default=6
        The number of edits per string.
    alphabet : str, default="ACGT"
        The letters, at least 2 and all distinct.
    return_prototypes : bool, default=False
        Whether to return the prototypes as well.
    random_state : int, RandomState, Generator or None, default=None
        The seed or source of random numbers.

    Returns
    -------
    X : list of str
        The strings.
    y : ndarray of shape (n_samples,)
        The class of each string.
    prototypes : list of str
        One prototype per class; only if ``return_prototypes`` is True.

    Examples
    --------
    >>> from kreinlearn.datasets import make_noisy_strings
    >>> X, y, words = make_noisy_strings(5, noise=0, return_prototypes=True, random_state=0)
    >>> X == [words[c] for c in y]
    True
    """
    letters = sorted(set(alphabet))
    if not 2 <= len(letters) == len(alphabet):
        raise ValueError(f"alphabet={alphabet!r}: pass distinct letters, at least 2")
    if length < 1 or noise < 0:
        raise ValueError(f"length={length}, noise={noise}: pass at least 1 letter and 0 edits")
    if len(letters) ** length < n_classes:
        raise ValueError(
            f"alphabet={alphabet!r} has fewer than n_classes={n_classes} strings of "
            f"length={length}; pass a greater length"
        )
    rng = as_generator(random_state)
    y = _shuffled_classes(n_samples, n_classes, rng)
    distinct: dict[str, None] = {}  # in the order in which they are drawn
    while len(distinct) < n_classes:
        distinct["".join(rng.choice(letters, length))] = None
    prototypes = list(distinct)
    X = [_edited(prototypes[c], noise, letters, rng) for c in y]
    return (X, y, prototypes) if return_prototypes else (X, y)


def _shuffled_classes(n_samples: int, n_classes: int, rng: np.random.Generator) -> Array:
    if not 1 <= n_classes <= n_samples:
        raise ValueError(
            f"n_samples={n_samples}, n_classes={n_classes}: pass at least one class, and at least "
            "one object per class"
        )
    return rng.permutation(np.arange(n_samples, dtype=np.int64) % n_classes)


def _edited(prototype: str, noise: int, letters: list[str], rng: np.random.Generator) -> str:
    text = list(prototype)
    for _ in range(noise):
        kind = rng.choice(["put in", "take out", "change"]) if text else "put in"
        at = int(rng.integers(len(text) + (kind == "put in")))
        if kind == "put in":
            text.insert(at, str(rng.choice(letters)))
        elif kind == "take out":
            del text[at]
        else:
            text[at] = str(rng.choice([letter for letter in letters if letter != text[at]]))
    return "".join(text)


def make_warped_series(
    n_samples: int = 200,
    *,
    n_classes: int = 3,
    length: int | tuple[int, int] = 60,
    warp: float = 0.1,
    noise: float = 0.1,
    return_prototypes: bool = False,
    random_state: Random = None,
) -> tuple[Any, ...]:
    """Generate time series by warping the time of one curve per class.

    The curve f of a class is a sum of four sine waves on [0, 1] with standard deviation 1. A series
    is f(w(t)) at T equal steps t from 0 to 1, plus normal noise. The warping w increases from 0 to
    1, and |w(t) - t| is at most ``warp``. Objects come in random order.

    Parameters
    ----------
    n_samples : int, default=200
        The number of series.
    n_classes : int, default=3
        The number of classes.
    length : int or tuple of two ints, default=60
        The number of steps T, or the least and the largest number, between which T is uniform.
    warp : float, default=0.1
        The largest shift in time, from 0 to 1.
    noise : float, default=0.1
        The standard deviation of the noise.
    return_prototypes : bool, default=False
        Whether to return the curves as well.
    random_state : int, RandomState, Generator or None, default=None
        The seed or source of random numbers.

    Returns
    -------
    X : list of ndarray of shape (T,)
        The series.
    y : ndarray of shape (n_samples,)
        The class of each series.
    prototypes : ndarray of shape (n_classes, largest T)
        One curve per class; only if ``return_prototypes`` is True.

    Examples
    --------
    >>> from kreinlearn.datasets import make_warped_series
    >>> X, y = make_warped_series(10, length=(50, 60), random_state=0)
    >>> all(50 <= len(x) <= 60 for x in X)
    True
    """
    shortest, longest = length if isinstance(length, tuple | list) else (length, length)
    if not 2 <= shortest <= longest:
        raise ValueError(f"length={length!r}: pass a number of at least 2, or a pair in order")
    if not 0 <= warp <= 1 or not 0 <= noise < np.inf:
        raise ValueError(
            f"warp={warp}, noise={noise}: pass a warp from 0 to 1 and a noise of at least 0"
        )
    rng = as_generator(random_state)
    y = _shuffled_classes(n_samples, n_classes, rng)
    waves = [(rng.standard_normal(4), rng.uniform(0, 2 * np.pi, 4)) for _ in range(n_classes)]
    X = []
    for c in y:
        t = np.linspace(0.0, 1.0, int(rng.integers(shortest, longest + 1)))
        x = _curve(_warped(t, warp, rng), *waves[c])
        X.append(x + noise * rng.standard_normal(len(t)))
    if not return_prototypes:
        return X, y
    return X, y, np.array([_curve(np.linspace(0.0, 1.0, longest), *wave) for wave in waves])


def _curve(t: Array, a: Array, phase: Array) -> Array:
    j = np.arange(1, len(a) + 1)
    waves = np.sin(2 * np.pi * j * t[:, None] + phase)
    return waves @ (a / j) / np.sqrt(np.sum((a / j) ** 2) / 2)


def _warped(t: Array, warp: float, rng: np.random.Generator) -> Array:
    """Times t, moved towards a random increasing path with four knots as far as ``warp`` allows."""
    path = np.append(0.0, np.cumsum(rng.dirichlet(np.ones(5))))
    drift = path - np.linspace(0.0, 1.0, 6)
    share = min(1.0, warp / np.abs(drift).max())
    return t + share * np.interp(t, np.linspace(0.0, 1.0, 6), drift)


def make_graphs(
    n_samples: int = 200,
    *,
    n_nodes: tuple[int, int] = (8, 16),
    n_labels: int = 3,
    n_chords: int = 2,
    random_state: Random = None,
) -> tuple[list[Graph], Array]:
    """Generate labelled graphs of two classes: trees, and rings with chords.

    A tree grows node by node; each new node is joined to one of the nodes before it, all equally
    likely. A chord of a ring joins two nodes that are not neighbours. The i-th tree and the i-th
    ring have the same number of nodes and the same labels, so that only the edges tell the classes
    apart. Nodes are numbered at random, and objects come in random order.

    Parameters
    ----------
    n_samples : int, default=200
        The number of graphs.
    n_nodes : tuple of two ints, default=(8, 16)
        The least and the largest number of nodes, between which it is uniform; at least 3.
    n_labels : int, default=3
        The number of different node labels, which are 0, 1, and so on.
    n_chords : int, default=2
        The number of chords of a ring.
    random_state : int, RandomState, Generator or None, default=None
        The seed or source of random numbers.

    Returns
    -------
    X : list of Graph
        The graphs.
    y : ndarray of shape (n_samples,)
        0 for a tree and 1 for a ring.

    Examples
    --------
    >>> from kreinlearn.datasets import make_graphs
    >>> X, y = make_graphs(6, n_chords=2, random_state=0)
    >>> [len(x.edges) - len(x.node_labels) for x in X] == [2 if c else -1 for c in y]
    True
    """
    low, high = n_nodes
    if not 3 <= low <= high or n_labels < 1:
        raise ValueError(f"n_nodes={n_nodes}, n_labels={n_labels}: pass at least 3 nodes, 1 label")
    if not 0 <= n_chords <= low * (low - 3) // 2:
        raise ValueError(
            f"n_chords={n_chords}: a ring of {low} nodes has 0 to {low * (low - 3) // 2} chords"
        )
    rng = as_generator(random_state)
    y = _shuffled_classes(n_samples, 2, rng)
    sizes = rng.integers(low, high + 1, (n_samples + 1) // 2)
    labels = [rng.integers(n_labels, size=n) for n in sizes]
    edges, left = (_tree, partial(_ring, n_chords=n_chords)), (iter(labels), iter(labels))
    return [_graph(next(left[c]), edges[c], rng) for c in y], y


def _graph(labels: Array, edges: Callable[..., Array], rng: np.random.Generator) -> Graph:
    """A graph with these labels and the edges of ``edges(n, rng)``, numbered at random."""
    pairs = np.sort(rng.permutation(len(labels))[edges(len(labels), rng)], axis=1)
    return Graph(rng.permutation(labels), pairs[np.lexsort(pairs.T[::-1])])


def _tree(n: int, rng: np.random.Generator) -> Array:
    return np.column_stack([rng.integers(np.arange(1, n)), np.arange(1, n)])


def _ring(n: int, rng: np.random.Generator, n_chords: int) -> Array:
    i, j = np.triu_indices(n, 2)
    chords = np.column_stack([i, j])[(i > 0) | (j < n - 1)]
    ring = np.column_stack([np.arange(n), np.arange(1, n + 1) % n])
    return np.concatenate([ring, rng.choice(chords, n_chords, replace=False)])


# Loaders.


class Graph(NamedTuple):
    """An undirected graph.

    Parameters
    ----------
    node_labels : ndarray of shape (n_nodes,) or (n_nodes, d)
        The label of each node: integers or texts, or numbers such as coordinates.
    edges : ndarray of shape (n_edges, 2)
        The node numbers (i, j) of each edge, with i < j.

    Examples
    --------
    >>> import numpy as np
    >>> from kreinlearn.datasets import Graph
    >>> path = Graph(np.array([0, 1, 0]), np.array([[0, 1], [1, 2]]))
    >>> len(path.edges)
    2
    """

    node_labels: Array
    edges: Array


def data_home() -> Path:
    """Find the folder that the environment variable KREINLEARN_DATA names.

    Returns
    -------
    folder : Path
        The folder, which exists; FileNotFoundError is raised if it does not.
    """
    layout = "a folder with files such as dissimilarity/woodyplants50.npz or strings/surnames18.npz"
    given = os.environ.get(VARIABLE)
    if not given:
        raise FileNotFoundError(f"{VARIABLE} is not set; let it name {layout}")
    home = Path(given).expanduser()
    if not home.is_dir():
        raise FileNotFoundError(f"{VARIABLE}={given} is no folder; let it name {layout}")
    return home


def list_datasets() -> list[str]:
    """List the data sets of the data folder.

    Returns
    -------
    names : list of str
        Names for ``load_dataset``, such as "dissimilarity/woodyplants50".
    """
    home = data_home()
    return sorted(
        path.relative_to(home).with_suffix("").as_posix() for path in home.glob("*/*.npz")
    )


def load_dataset(name: str) -> Bunch:
    """Load one data set of the data folder.

    The arrays are returned as they are stored: a dissimilarity ``D`` is neither squared nor made
    symmetric. Objects of different sizes, which a file stores end to end, are returned as lists:
    series and graphs as ``X``, and words as ``s``.

    Parameters
    ----------
    name : str
        The folder and the file name without ``.npz``, such as "dissimilarity/woodyplants50".

    Returns
    -------
    data : Bunch
        The arrays by their names in the file, and the name of the set as ``data.name``.
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


def _series(values: Array, offsets: Array) -> dict[str, list[Array]]:
    return {"X": np.split(values, offsets[1:-1])}


def _graphs(
    node_labels: Array, node_offsets: Array, edges: Array, edge_offsets: Array
) -> dict[str, list[Graph]]:
    labels, pairs = np.split(node_labels, node_offsets[1:-1]), np.split(edges, edge_offsets[1:-1])
    return {"X": [Graph(*graph) for graph in zip(labels, pairs, strict=True)]}


def _words(utf8: Array) -> dict[str, list[str]]:
    return {"s": utf8.tobytes().decode("utf-8").split("\n")}


_RAGGED: dict[tuple[str, ...], Callable[..., dict[str, Any]]] = {
    ("values", "offsets"): _series,
    ("node_labels", "node_offsets", "edges", "edge_offsets"): _graphs,
    ("utf8",): _words,
}
