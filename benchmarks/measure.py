"""What a worker does: errors of low-rank approximations, divided by the smallest possible."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.cases import RANKS, Array, Problem, problem
from benchmarks.counting import Tally
from benchmarks.peer_methods import PEERS, Approximation, Peer, column_pairs
from benchmarks.peer_methods import affordable as affordable_columns
from kreinlearn import KreinNystroem, Landmarks

DEFAULT = "medoids+greedy"
OBJECT_DEFAULT = "greedy_kmeans++"
PAPER = ("uniform", "leverage", "kmeans++")
SCHEMES = (*PAPER, "greedy_kmeans++", "medoids", DEFAULT)
CORES = ("ls", "truncated", "plain")
RULES: dict[str, Callable[[int, int], float]] = {
    "k": lambda k, n: k,
    "1.5k": lambda k, n: 1.5 * k,
    "2k": lambda k, n: 2 * k,
    "k ln n": lambda k, n: k * math.log(n),
}
GRID_RULE = "2k"
EQUAL_MOST = 200  # landmarks of the default up to which it is compared at equal evaluations
COLUMNS, PAIRS = "equal columns", "equal pairs"  # what peers get as much of as the default


class Figure(NamedTuple):
    """One fit: its error divided by the optimal one, and the share of pairs it evaluated."""

    section: str
    case: str
    n: int
    k: int
    rule: str  # for the number of landmarks of the default
    l: int
    scheme: str  # or the name of a peer
    core: str  # of a peer: what it gets as much of as the default
    cut: bool  # whether the rank is cut to k
    seed: int
    error: float  # Frobenius
    ratio: float
    best: float  # the optimal error divided by |K|
    share: float  # counted in a separate run with the first seed


class Setting(NamedTuple):
    """All parameters of a fit except its seed."""

    k: int
    l: int
    scheme: Any  # a name or row numbers
    core: str
    rank: int | None

    def model(self, kernel: Any, seed: int) -> KreinNystroem:
        if isinstance(self.scheme, str):
            landmarks = Landmarks(self.l, self.scheme, self.core)
        else:
            landmarks = Landmarks(self.scheme, core=self.core)
        return KreinNystroem(
            kernel, landmarks=landmarks, rank=self.rank, random_state=seed, n_jobs=1
        )

    def fit(self, case: Problem, seed: int) -> KreinNystroem:
        return self._fitted(case.kernel, case.X, seed)

    def tally(self, case: Problem, seed: int) -> Tally:
        """The pairs that a fit evaluates."""
        X, kernel, tally = case.counted()
        self._fitted(kernel, X, seed)
        return tally

    def _fitted(self, kernel: Any, X: Any, seed: int) -> KreinNystroem:
        with warnings.catch_warnings():  # landmarks of fewer than k dimensions, zero diagonals
            warnings.simplefilter("ignore", UserWarning)
            return self.model(kernel, seed).fit(X)


def landmark_count(rule: str, k: int, n: int) -> int:
    return min(n, round(RULES[rule](k, n)))


def errors(case: Problem, model: KreinNystroem, k: int) -> tuple[float, float, float]:
    error, best = case.error(model), case.optimal(k)
    return error, error / best, best / case.optimal(0)


def run(section: str, name: str, k: int, seeds: Sequence[int]) -> list[Figure]:
    """All figures of one section for one case and rank, with one BLAS thread."""
    with threadpool_limits(1):
        case = problem(name)
        figures = SECTIONS[section](case, k, seeds)
        return [Figure(section, name, len(case), *figure) for figure in figures]


def ranks(name: str) -> list[int]:
    """Ranks that leave room for twice as many landmarks."""
    return [k for k in RANKS if not (name.startswith("wine/") and 2 * k >= 178)]


Rows = Iterator[tuple[Any, ...]]


def by_rule(case: Problem, k: int, seeds: Sequence[int], *, scheme: str) -> Rows:
    for rule in RULES:
        l = landmark_count(rule, k, len(case))
        setting = Setting(k, l, scheme, "ls", k)
        share = setting.tally(case, seeds[0]).share
        for seed in seeds:
            values = errors(case, setting.fit(case, seed), k)
            yield k, rule, l, scheme, "ls", True, seed, *values, share


def grid(case: Problem, k: int, seeds: Sequence[int]) -> Rows:
    """Every scheme with every core; the cores of one seed share its landmarks."""
    l = landmark_count(GRID_RULE, k, len(case))
    for scheme in SCHEMES:
        settings = [Setting(k, l, scheme, core, k) for core in CORES]
        shares = [setting.tally(case, seeds[0]).share for setting in settings]
        for seed in seeds:
            first = settings[0].fit(case, seed)
            for setting, share in zip(settings, shares, strict=True):
                given = setting._replace(scheme=first.landmark_indices_)
                model = first if setting is settings[0] else given.fit(case, seed)
                values = errors(case, model, k)
                yield k, GRID_RULE, l, scheme, setting.core, True, seed, *values, share


def equal_evaluations(case: Problem, k: int, seeds: Sequence[int]) -> Rows:
    """The default against the paper's schemes with as many landmarks as its pairs allow."""
    for rule in RULES:
        default = Setting(k, landmark_count(rule, k, len(case)), DEFAULT, "ls", k)
        if default.l > EQUAL_MOST:
            continue
        pairs = default.tally(case, seeds[0]).pairs
        settings = [default, *(affordable(case, k, s, pairs, seeds[0]) for s in PAPER)]
        for setting in settings:
            share = setting.tally(case, seeds[0]).share
            for seed in seeds:
                model = setting.fit(case, seed)
                whole = setting._replace(scheme=model.landmark_indices_, rank=None)
                rest = (setting.l, setting.scheme, setting.core)
                yield k, rule, *rest, True, seed, *errors(case, model, k), share
                values = errors(case, whole.fit(case, seed), k)
                yield k, rule, *rest, False, seed, *values, share


def affordable(case: Problem, k: int, scheme: str, pairs: int, seed: int) -> Setting:
    """The paper's scheme with the plain core and as many landmarks as ``pairs`` pairs allow.

    Its uniform sketch has min(k, landmarks) columns. Where the sketch and the landmarks overlap,
    the pairs that are saved allow further landmarks.
    """
    n = len(case)
    columns = np.arange(1, n + 1)
    most = int(np.searchsorted(columns * n - columns * (columns - 1) // 2, pairs, side="right"))
    l = most
    if scheme != "uniform" and most < n:
        l = most - k if most >= 2 * k else most // 2
    setting = Setting(k, max(l, 1), scheme, "plain", min(k, max(l, 1)))
    for _ in range(3):
        each = n if scheme == "uniform" or setting.l >= k else 2 * n
        left = (pairs - setting.tally(case, seed).pairs) // each
        if left <= 0 or setting.l == n:
            break
        l = min(n, setting.l + left)
        setting = setting._replace(l=l, rank=min(k, l))
    return setting


def peers(case: Problem, k: int, seeds: Sequence[int]) -> Rows:
    """Other methods with as many columns as the default, and with those that its pairs pay for.

    Gaussian sketches look at all pairs, so they are compared at equal sizes only.
    """
    definite = case.name.endswith("gaussian")
    wanted = {name: peer for name, peer in PEERS.items() if definite or not peer.definite}
    for rule in RULES:
        l = landmark_count(rule, k, len(case))
        for name, peer in wanted.items():
            if peer.pairs is not None or l <= EQUAL_MOST:
                yield from peer_rows(case, k, seeds, (rule, l, name, COLUMNS), peer)
        if l <= EQUAL_MOST:
            pairs = Setting(k, l, DEFAULT, "ls", k).tally(case, seeds[0]).pairs
            for name, peer in wanted.items():
                if peer.pairs is not None:
                    paid = affordable_columns(peer, len(case), pairs)
                    yield from peer_rows(case, k, seeds, (rule, paid, name, PAIRS), peer)


def peer_rows(
    case: Problem, k: int, seeds: Sequence[int], what: tuple[str, int, str, str], peer: Peer
) -> Rows:
    n, best = len(case), case.optimal(k)
    for seed in seeds:
        found = peer.approximate(case.K, what[1], k, np.random.default_rng(seed))
        error = distance(case.K, found)
        share = found.pairs / column_pairs(n, n)
        yield k, *what, True, seed, error, error / best, best / case.optimal(0), share


def distance(K: Array, found: Approximation) -> float:
    return float(np.linalg.norm(K - found.matrix()))


def definite(case: Problem, k: int, seeds: Sequence[int]) -> Rows:
    """The default and all peers on a positive definite kernel."""
    yield from by_rule(case, k, seeds, scheme=DEFAULT)
    yield from peers(case, k, seeds)


SECTIONS: dict[str, Callable[[Problem, int, Sequence[int]], Rows]] = {
    "default": partial(by_rule, scheme=DEFAULT),
    "objects": partial(by_rule, scheme=OBJECT_DEFAULT),
    "unseen": partial(by_rule, scheme=DEFAULT),
    "grid": grid,
    "equal": equal_evaluations,
    "peers": peers,
    "definite": definite,
}
