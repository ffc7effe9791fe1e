"""The paper's data, from the data folder or by a recipe, and what to download if it is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import KernelCenterer, StandardScaler

from kreinlearn.datasets import list_datasets, load_dataset, make_balls3d, make_polygons
from kreinlearn.kernels import Hausdorff, ModifiedHausdorff
from reproduction.scale import Scale

Array = np.ndarray
VARIABLE = "KREINLEARN_DATA"
SAME, EQUIVALENT, PART, SIBLING = "the paper's", "an equivalent", "a part", "not in the paper"


# Vectors


class Vectorial(NamedTuple):
    """A set of Figures 1, 2 and 8."""

    printed: str  # as the paper names it; "" where it is not in the paper
    n: int


VECTORIAL = {  # by the name of the file in the folder "vectorial"
    "parkinsons": Vectorial("parkinsons", 5875),
    "ailerons": Vectorial("ailerons", 13_750),
    "pole": Vectorial("pole-telecom", 15_000),
    "elevators": Vectorial("elevators", 16_599),
    "cal_housing": Vectorial("cal-housing", 20_640),
    "digits": Vectorial("", 1797),  # comes with scikit-learn, for use without a data folder
}


def vectorial_names(scale: Scale) -> list[str]:
    """The sets of the scale that are there, or the digits if there is none."""
    return [name for name in scale.vectorial if is_there(f"vectorial/{name}")] or ["digits"]


def standardised(X: Array) -> Array:
    """Columns with mean 0 and standard deviation 1; constant columns are left out."""
    X = np.asarray(X, dtype=np.float64)
    return np.asarray(StandardScaler().fit_transform(X[:, np.ptp(X, axis=0) > 0]))


def vectors(name: str, scale: Scale) -> Array:
    """The standardised rows of a set, at most ``scale.rows`` of them."""
    X = load_digits().data if name == "digits" else load_dataset(f"vectorial/{name}").X
    if scale.rows is not None and scale.rows < len(X):
        X = X[np.random.default_rng(scale.seed).choice(len(X), scale.rows, replace=False)]
    return standardised(X)


def is_there(path: str) -> bool:
    """Whether the data folder has a set such as "dissimilarity/protein"."""
    try:
        return path in list_datasets()
    except FileNotFoundError:  # no data folder
        return False


# Dissimilarities


class Split(NamedTuple):
    """A training part and the test objects."""

    M_train: Array  # (t, t), symmetric
    y_train: Array
    M_test: Array  # (s, t): one row per test object
    y_test: Array


@dataclass(frozen=True)
class LearningSet:
    """A symmetric matrix with labels that is cut into folds, or one split that was given."""

    name: str
    dissimilarity: bool
    M: Array  # (n, n)
    y: Array
    given: tuple[Array, Array] | None = None  # rows of the test objects, and their labels
    origin: str = SAME

    def __len__(self) -> int:
        return len(self.y) + (0 if self.given is None else len(self.given[1]))

    @property
    def classes(self) -> list[int]:
        return np.unique(self.y).tolist()

    def n_folds(self, folds: int) -> int:
        return folds if self.given is None else 1

    def splits(self, folds: int, seed: int) -> Iterator[Split]:
        """Stratified folds, which depend on the two numbers only."""
        if self.given is not None:
            yield Split(self.M, self.y, *self.given)
            return
        cut = StratifiedKFold(folds, shuffle=True, random_state=seed)
        for train, test in cut.split(self.M, self.y):
            M_train, M_test = self.M[np.ix_(train, train)], self.M[np.ix_(test, train)]
            yield Split(M_train, self.y[train], M_test, self.y[test])


def averaged(M: Array) -> Array:
    """The mean of a matrix and its transpose."""
    return np.asarray(0.5 * (M + M.T), dtype=np.float64)


def centred_squares(D: Array, D_test: Array) -> tuple[Array, Array]:
    """K = -1/2 J (D o D) J of the training objects, and the rows of the test objects."""
    centerer = KernelCenterer().fit(-0.5 * np.square(D))
    K, K_test = (centerer.transform(-0.5 * np.square(part)) for part in (D, D_test))
    return averaged(K), np.asarray(K_test)


def stored(path: str, origin: str = SAME) -> LearningSet:
    """A set of the data folder; an asymmetric matrix is averaged before it is cut."""
    data, dissimilarity = load_dataset(path), path.startswith("dissimilarity/")
    M = averaged(data.D if dissimilarity else data.K)
    return LearningSet(path.split("/")[1], dissimilarity, M, data.y, origin=origin)


def balls3d(n_per_class: int, seed: int) -> LearningSet:
    """Two classes of balls, drawn by the recipe of the paper's set."""
    D, y = make_balls3d((n_per_class,) * 2, random_state=seed)
    return LearningSet("balls3d", True, D, y, origin=f"{EQUIVALENT}: its recipe, drawn anew")


def polygons(name: str, distance: str, n: int, seed: int) -> LearningSet:
    """Generated polygons under one of the distances of the paper's sets."""
    X, y = make_polygons(n, random_state=seed)
    D = {"hausdorff": Hausdorff(), "modified_hausdorff": ModifiedHausdorff()}[distance](X)
    origin = f"{EQUIVALENT}: {n} polygons of another generator"
    return LearningSet(name, True, D, y, origin=origin)


def coilyork_partial() -> LearningSet:
    """The one split of coilyork that is available."""
    data = load_dataset("dissimilarity/coilyork_partial")
    new = np.asarray(data.D_test_train, dtype=np.float64), data.y_test
    origin = f"{PART}: one half/half split, classes merged to two"
    return LearningSet("coilyork", True, averaged(data.D_train), data.y_train, new, origin)


class Dissimilarity(NamedTuple):
    """A set of Table 1 and of Figures 3 and 7."""

    name: str  # in the folder "dissimilarity", and in our tables
    table: str  # its name in the paper's Table 1; "" where it is not in the paper
    curve: str  # its name in the paper's figures
    iota: float | None  # printed in the paper, in percent
    download: str  # its name in DISDATASETS, where it can be had; "" if it is made by a recipe
    instead: Callable[[Scale], LearningSet] | None = None  # used if the file is not there


DISDATASETS = "the collection 'disdatasets' of R.P.W. Duin and E. Pekalska (PRTools, DisTools)"

# fmt: off
DISSIMILARITY = {s.name: s for s in (
    Dissimilarity("coilyork", "coilyork", "coilyork", 26.0, "CoilYork",
                  lambda s: coilyork_partial()),
    Dissimilarity("balls3d", "balls 3D", "balls3D", 0.07, "", lambda s: balls3d(s.balls, s.seed)),
    Dissimilarity("prodom", "prodom", "prodom", 99.0, "ProDom"),
    Dissimilarity("chickenpieces_10_120", "chicken10", "chicken10-120", 18.0,
                  "ChickenPieces-10-120"),
    Dissimilarity("protein", "protein", "protein", 0.07, "Protein"),
    Dissimilarity("zongker", "zongker", "zongker", 59.0, "Zongker"),
    Dissimilarity("chickenpieces_25_45", "chicken25", "chicken25-45", 32.0, "ChickenPieces-25-45"),
    Dissimilarity("polydish57", "pdish57", "polydish57", 42.0, "",
                  lambda s: polygons("polydish57", "hausdorff", s.polygons, s.seed)),
    Dissimilarity("polydism57", "pdism57", "polydism57", 36.0, "",
                  lambda s: polygons("polydism57", "modified_hausdorff", s.polygons, s.seed)),
    Dissimilarity("woodyplants50", "woody50", "woodyplants50", 23.0, "WoodyPlants50"),
    Dissimilarity("chickenpieces_20_60", "", "", None, "ChickenPieces-20-60"),
)}
# fmt: on


@lru_cache(maxsize=2)
def learning_set(name: str, scale: Scale) -> LearningSet:
    """The paper's matrix if it is in the data folder, else what stands in for it.

    Raises FileNotFoundError if there is neither.
    """
    entry = DISSIMILARITY[name]
    if entry.instead is not None and not is_there(f"dissimilarity/{name}"):
        return entry.instead(scale)
    return stored(f"dissimilarity/{name}", SAME if entry.table else SIBLING)


def source(name: str) -> str:
    """SAME if the paper's matrix is there, else what stands in for it, or "" if nothing does."""
    if is_there(f"dissimilarity/{name}"):
        return SAME
    if name == "coilyork":
        return PART if is_there("dissimilarity/coilyork_partial") else ""
    return EQUIVALENT if DISSIMILARITY[name].instead else ""


def called(name: str) -> str:
    """The name of a set in keys: the paper's matrix and what stands in for it do not mix."""
    kind = source(name)
    return name if kind in (SAME, "") else f"{name} ({kind})"


def there(scale: Scale) -> list[str]:
    """The dissimilarity sets of the scale that can be measured."""
    return [name for name in scale.dissimilarity if source(name)]


def state(name: str, scale: Scale) -> str:
    """Why there is no number for a set."""
    if name not in scale.dissimilarity:
        return "not in this run"
    return "not measured" if name in there(scale) else "not at hand"


def stand_ins(scale: Scale) -> list[str]:
    """One sentence for each set that is measured on something else."""
    return [
        f"{name}: measured on {source(name)}, see the tables; the paper's own would go to "
        f"dissimilarity/{name}.npz, arrays D (n, n) and y (n,)"
        for name in there(scale)
        if source(name) != SAME
    ]


def missing(scale: Scale) -> list[str]:
    """One sentence for each set that cannot be measured: what to download, and where to put it."""
    to = f"in the folder that {VARIABLE} names"
    return [
        f"{name}: {DISSIMILARITY[name].download} of {DISDATASETS}; as dissimilarity/{name}.npz, "
        f"arrays D (n, n) and y (n,), {to}"
        for name in scale.dissimilarity
        if not source(name)
    ] + [
        f"{name}: the regression set of that name (UCI, or the collection of L. Torgo); as "
        f"vectorial/{name}.npz, array X (n, d), {to}"
        for name in scale.vectorial
        if not is_there(f"vectorial/{name}")
    ]
