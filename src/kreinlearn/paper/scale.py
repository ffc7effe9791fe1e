"""How much is run: everything, or every part in small."""

from __future__ import annotations

from dataclasses import dataclass

RANKS = (5, 10, 25, 50, 100)
KERNELS = ("delta_gauss", "sigmoid", "epanechnikov")


@dataclass(frozen=True)
class Scale:
    """Sizes of all experiments; part of the name of every task, so that they do not mix."""

    name: str
    rows: int | None  # of a vectorial set, drawn uniformly; None: all
    vectorial: tuple[str, ...]
    ranks: tuple[int, ...]
    repetitions: int  # seeds of landmarks
    dissimilarity: tuple[str, ...]  # names of sets.DISSIMILARITY
    folds: int
    polygons: int  # both classes together
    exact_polygons: int  # where nothing is approximated
    balls: int  # a class, where the matrix is not at hand
    flop_sizes: tuple[tuple[int, int], ...]  # (n, m)
    timed_rows: tuple[int, ...]  # n of generated vectors, beside the sets
    repeats: int  # timings, of which the smallest counts
    seed: int = 0


ALL = Scale(
    name="all",
    rows=None,
    vectorial=("parkinsons", "ailerons", "pole", "elevators", "cal_housing"),
    ranks=RANKS,
    repetitions=3,
    dissimilarity=(
        "balls3d", "protein", "woodyplants50", "coilyork", "chickenpieces_10_120", "zongker",
        "chickenpieces_25_45", "polydish57", "polydism57", "prodom", "chickenpieces_20_60",
    ),
    folds=10,
    polygons=4000,
    exact_polygons=1000,
    balls=100,
    flop_sizes=((20_000, 100), (20_000, 250), (20_000, 500), (100_000, 100), (100_000, 250)),
    timed_rows=(40_000, 80_000),
    repeats=5,
)  # fmt: skip

QUICK = Scale(
    name="quick",
    rows=1200,
    vectorial=("parkinsons", "cal_housing"),
    ranks=(5, 25),
    repetitions=2,
    dissimilarity=("balls3d", "protein", "coilyork", "polydism57"),
    folds=3,
    polygons=240,
    exact_polygons=160,
    balls=60,
    flop_sizes=((8_000, 50), (8_000, 150)),
    timed_rows=(5_000, 10_000, 20_000),
    repeats=3,
)
