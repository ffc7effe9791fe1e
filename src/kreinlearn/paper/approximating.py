"""Low-rank approximations of the vectorial sets: errors, kernel values and seconds of every fit.

Figures 1 and 2 are made of the same tasks: one a set, kernel and seed, and one for the optimum.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist

from kreinlearn import KreinNystroem
from kreinlearn.kernels import Kernel
from kreinlearn.kernels.vectors import DeltaGauss, Epanechnikov, Sigmoid
from kreinlearn.paper.matrix_free import Count, Counted, Tiled, fewer_dimensions, optimal_errors
from kreinlearn.paper.scale import KERNELS, Scale
from kreinlearn.paper.sets import VECTORIAL, vectorial_names, vectors
from kreinlearn.paper.tasks import Row, Task

Array = NDArray[Any]
DEFAULT, OPTIMUM = "default", "optimum"
PAPER = ("uniform", "leverage", "kmeans++")
RULES: dict[str, Callable[[int, int], float]] = {  # landmarks of rank k among n objects
    "k": lambda k, n: k,
    "2k": lambda k, n: 2 * k,
    "k ln n": lambda k, n: k * math.log(n),
}
PAPER_RULES = ("k", "k ln n")
EQUAL = {"2k": "values of 2k", "k ln n": "values of k ln n"}  # as many as the default evaluates
TRUNCATED = EQUAL[
    "k ln n"
]  # where the truncated core is tried, too: of k landmarks it is the plain
PRINTED_KERNEL = "delta_gauss"
OTHER_SEEDS = 2  # at most, of kernels without a number of the paper's to compare with
WIDTH = 8  # of delta-gauss, in units of M: where the errors that the paper prints are met
WIDTHS = (1, 2, 4, 8, 16)  # that are tried on the smallest set
SAMPLE = 2000  # rows whose median squared distance is the width
SHORT = 0.25  # CPU seconds below which a fit is timed twice, where times are compared


# What is approximated


def kernel_of(name: str, X: Array) -> Kernel:
    """The kernel by its name; "delta_gauss@4" has four times M instead of WIDTH times.

    M is the median squared distance of some rows.
    """
    name, _, factor = name.partition("@")
    rng = np.random.default_rng(0)
    sample = X[rng.choice(len(X), min(SAMPLE, len(X)), replace=False)]
    M = float(np.median(pdist(sample, "sqeuclidean")))
    kernels: dict[str, Kernel] = {
        "delta_gauss": DeltaGauss(width=float(factor or WIDTH) * M, ratio=4.0),
        "sigmoid": Sigmoid(gain=1 / X.shape[1], bias=-1.0),
        "epanechnikov": Epanechnikov(width=M),
    }
    return kernels[name].fit(X, rng)


def tiled(name: str, kernel: str, scale: Scale) -> Tiled:
    X = vectors(name, scale)
    return Tiled(X, kernel_of(kernel, X))


# One fit


class Setting(NamedTuple):
    k: int
    rule: str
    l: int
    scheme: str
    core: str
    seed: int

    def model(self, kernel: Kernel, landmarks: Any = None) -> KreinNystroem:
        """As it stands, or with its landmarks given."""
        if landmarks is None:
            landmarks = "auto" if self.scheme == DEFAULT else self.scheme
        return KreinNystroem(
            kernel, n_landmarks=self.l, rank=self.k, landmarks=landmarks, core=self.core,
            random_state=self.seed, n_jobs=1,
        )  # fmt: skip


class Fit(NamedTuple):
    setting: Setting
    model: KreinNystroem
    values: int  # of the kernel
    cpu: float
    wall: float
    given: float = math.nan  # CPU seconds where the same landmarks are given

    def row(self) -> Row:
        seconds = {"cpu": self.cpu, "wall": self.wall, "cpu_given": self.given}
        return {**self.setting._asdict(), "evaluations": self.values, **seconds}


def landmark_count(rule: str, k: int, n: int) -> int:
    return min(n, math.ceil(RULES[rule](k, n)))


def by_rule(K: Tiled, k: int, rule: str, scheme: str, seed: int) -> Setting:
    core = "ls" if scheme == DEFAULT else "plain"
    return Setting(k, rule, landmark_count(rule, k, len(K)), scheme, core, seed)


def fitted(K: Tiled, setting: Setting, landmarks: Any = None, *, repeats: int = 1) -> Fit:
    """Short fits may be repeated, and the shortest time counts."""
    count, best = Count(), (math.inf, math.inf)
    for _ in range(repeats):
        count.values = 0
        model = setting.model(Counted(K.kernel, count), landmarks)
        wall, cpu = time.perf_counter(), time.process_time()
        with fewer_dimensions():
            model.fit(K.X)
        best = min(best, (time.process_time() - cpu, time.perf_counter() - wall))
        if best[0] > SHORT:
            break
    return Fit(setting, model, count.values, *best)


def with_share(K: Tiled, setting: Setting) -> Fit:
    """The fit, and what is left of its seconds where the landmarks need not be chosen."""
    fit = fitted(K, setting, repeats=2)
    return fit._replace(given=fitted(K, setting, fit.model.landmark_indices_, repeats=2).cpu)


def columns_for(values: int, n: int) -> int:
    """The smallest number of columns with as many values among n objects, each pair once."""
    m = np.arange(n + 1)
    return min(n, int(np.searchsorted(m * n - m * (m - 1) // 2, values)))


def as_expensive(K: Tiled, setting: Setting, values: int) -> Fit:
    """One of the paper's schemes with the fewest landmarks that cost at least so many values.

    Its uniform sketch has k columns, counted once though streamed rows see them more often.
    """
    n, sketch = len(K), 0 if setting.scheme == "uniform" else setting.k
    l = max(setting.k, columns_for(values, n) - sketch)
    fit = fitted(K, setting._replace(l=l))
    while fit.values < values and fit.setting.l < n:  # the sketch's own rows may be drawn again
        l = fit.setting.l + math.ceil((values - fit.values) / n)
        fit = fitted(K, setting._replace(l=min(n, l)))
    return fit


def truncated(K: Tiled, plain: Fit) -> Fit:
    """The same landmarks, but of K_ZZ only the k largest |eigenvalues| inverted; not timed."""
    setting = plain.setting._replace(core="truncated")
    fit = fitted(K, setting, plain.model.landmark_indices_)
    return fit._replace(values=plain.values, cpu=math.nan, wall=math.nan)


# Tasks


def fits(K: Tiled, k: int, seed: int, *, shares: bool) -> Iterator[Fit]:
    """The default, the paper's schemes with as many landmarks, and with as many kernel values."""
    fit, values = with_share if shares else fitted, {}
    for rule in RULES:
        yield (default := fit(K, by_rule(K, k, rule, DEFAULT, seed)))
        values[rule] = default.values
    for scheme in PAPER:
        for rule in PAPER_RULES:
            yield fit(K, by_rule(K, k, rule, scheme, seed))
        for rule, name in EQUAL.items():
            setting = Setting(k, name, k, scheme, "plain", seed)
            yield (plain := as_expensive(K, setting, values[rule]))
            if name == TRUNCATED:
                yield truncated(K, plain)


def with_errors(K: Tiled, about: Row, fits: Iterable[Fit]) -> list[Row]:
    """Rows of the fits with their exact errors, from one pass over all pairs."""
    rows = []
    factors: list[tuple[Array, Array]] = [(np.empty((len(K), 0)), np.empty(0))]  # its error is |K|
    for fit in fits:
        rows.append({**about, "n": len(K), **fit.row()})
        factors.append((fit.model.transform(K.X), fit.model.signature_))
    norm, *errors = np.sqrt(K.squared_errors(factors)).tolist()
    return [{**row, "error": e, "norm": norm} for row, e in zip(rows, errors, strict=True)]


def approximations(name: str, kernel: str, seed: int, scale: Scale) -> list[Row]:
    K, shares = tiled(name, kernel, scale), kernel == PRINTED_KERNEL and seed == 0
    fitted(K, by_rule(K, scale.ranks[0], "k", DEFAULT, seed))  # compiles, loads
    every = (fit for k in scale.ranks for fit in fits(K, k, seed, shares=shares))
    return with_errors(K, {"set": name, "kernel": kernel}, every)


def optimum(name: str, kernel: str, scale: Scale) -> list[Row]:
    K = tiled(name, kernel, scale)
    about = {"set": name, "kernel": kernel, "n": len(K), "scheme": OPTIMUM, "rule": "", "core": ""}
    errors = optimal_errors(K, scale.ranks).tolist()
    return [{**about, "k": k, "error": e} for k, e in zip(scale.ranks, errors, strict=True)]


def widths(name: str, scale: Scale) -> list[Row]:
    """Delta-gauss at several widths: the optimum, and k-means++ with both readings of its core."""
    rows = []
    for kernel in (f"{PRINTED_KERNEL}@{factor}" for factor in WIDTHS):
        K = tiled(name, kernel, scale)
        rows += optimum(name, kernel, scale)
        rows += with_errors(K, {"set": name, "kernel": kernel}, _both_cores(K, scale))
    return rows


def _both_cores(K: Tiled, scale: Scale) -> Iterator[Fit]:
    for k, seed in product(scale.ranks, seeds("", scale)):
        yield (plain := fitted(K, by_rule(K, k, "k ln n", "kmeans++", seed)))
        yield truncated(K, plain)


def seeds(kernel: str, scale: Scale) -> range:
    printed = kernel == PRINTED_KERNEL
    return range(scale.repetitions if printed else min(scale.repetitions, OTHER_SEEDS))


def rows_of(name: str, scale: Scale) -> int:
    return min(VECTORIAL[name].n, scale.rows or VECTORIAL[name].n)


def tasks(scale: Scale) -> list[Task]:
    first = min(vectorial_names(scale), key=lambda name: rows_of(name, scale))
    cost = 2 * _cost(rows_of(first, scale), scale)
    found = [
        Task(f"approximating/{scale.name}/{first}/widths", partial(widths, first, scale), cost)
    ]
    for name in vectorial_names(scale):
        n = rows_of(name, scale)
        for kernel in KERNELS:
            key = f"approximating/{scale.name}/{name}/{kernel}"
            run = partial(optimum, name, kernel, scale)
            found.append(Task(f"{key}/optimum", run, 6e-8 * n**2))
            for seed in seeds(kernel, scale):
                run = partial(approximations, name, kernel, seed, scale)
                found.append(Task(f"{key}/seed {seed}", run, _cost(n, scale)))
    return found


def _cost(n: int, scale: Scale) -> float:
    """CPU seconds: errors of 18 approximations a rank, fits of k ln n landmarks, all others."""
    landmarks = [landmark_count("k ln n", k, n) for k in scale.ranks]
    fits = sum(0.7 + 2e-9 * n * l**2 for l in landmarks)
    return 18 * sum(scale.ranks) * n**2 / 3e10 + fits
