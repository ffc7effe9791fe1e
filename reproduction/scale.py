"""How much is measured, and the names of the parts and of the files; importing this is cheap."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

RANKS = (5, 10, 25, 50, 100)
KERNELS = ("delta_gauss", "sigmoid", "epanechnikov")
NAMES = {
    "indefiniteness": "the paper's iota",
    "rank-error": "Figure 1",
    "time-error": "Figure 2",
    "rank-classification": "Figures 3 and 7",
    "table1": "Table 1",
    "table2": "Table 2",
    "size-time": "Figure 8",
    "flops": "the count of operations",
    "propositions": "Propositions 1 and 2",
}
FOLDER = Path("kreinlearn-paper")
RESULTS = "RESULTS.md"


@dataclass(frozen=True)
class Scale:
    """The sizes of all experiments; its name is part of every key, so that runs do not mix."""

    name: str
    rows: int | None  # of each vectorial set, drawn uniformly; None: all of them
    vectorial: tuple[str, ...]
    ranks: tuple[int, ...]
    repetitions: int  # how many seeds landmarks are drawn with
    dissimilarity: tuple[str, ...]  # names of sets.DISSIMILARITY
    folds: int
    polygons: int  # in both classes together
    exact_polygons: int  # for the methods that approximate nothing
    balls: int  # in each class, where the matrix of the paper is not there
    flop_sizes: tuple[tuple[int, int], ...]  # (n, m)
    timed_rows: tuple[int, ...]  # numbers of generated vectors that are timed beside the sets
    repeats: int  # how often work is timed; the shortest time counts
    seed: int = 0


ALL = Scale(
    name="all", rows=None, ranks=RANKS, repetitions=3, folds=10, repeats=5,
    vectorial=("parkinsons", "ailerons", "pole", "elevators", "cal_housing"),
    dissimilarity=(
        "balls3d", "protein", "woodyplants50", "coilyork", "chickenpieces_10_120", "zongker",
        "chickenpieces_25_45", "polydish57", "polydism57", "prodom", "chickenpieces_20_60",
    ),
    polygons=4000, exact_polygons=1000, balls=100, timed_rows=(40_000, 80_000),
    flop_sizes=((20_000, 100), (20_000, 250), (20_000, 500), (100_000, 100), (100_000, 250)),
)  # fmt: skip

QUICK = Scale(
    name="quick", rows=1200, ranks=(5, 25), repetitions=2, folds=3, repeats=3,
    vectorial=("parkinsons", "cal_housing"),
    dissimilarity=("balls3d", "protein", "coilyork", "polydism57"),
    polygons=240, exact_polygons=160, balls=60, timed_rows=(5_000, 10_000, 20_000),
    flop_sizes=((8_000, 50), (8_000, 150)),
)  # fmt: skip
