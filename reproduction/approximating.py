"""Low-rank approximations of the vectorial sets: errors, kernel values and seconds of every fit.

Figures 1 and 2 are made of the same tasks: one per set, kernel and seed, and one per set and
kernel for the optimum.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import pdist

from kreinlearn import KreinNystroem
from kreinlearn.kernels import DeltaGauss, Epanechnikov, Kernel, Sigmoid
from reproduction import matrix_free
from reproduction.matrix_free import Array, Count, Counted, Tiled, fewer_dimensions
from reproduction.scale import KERNELS, Scale
from reproduction.sets import VECTORIAL, vectorial_names, vectors
from reproduction.tasks import Row, Task

DEFAULT, OPTIMUM = "default", "optimum"
PAPER = ("uniform", "leverage", "kmeans++")
Rule = Callable[[int, int], float]  # the number of landmarks for rank k and n objects
RULES: dict[str, Rule] = {
    "k": lambda k, n: k,
    "2k": lambda k, n: 2 * k,
    "k ln n": lambda k, n: k * math.log(n),
}
PAPER_RULES = ("k", "k ln n")
EQUAL = {"2k": "values of 2k", "k ln n": "values of k ln n"}  # as many kernel values as the default
TRUNCATED = EQUAL["k ln n"]  # the rule that is also run with the truncated core
PRINTED_KERNEL = "delta_gauss"
OTHER_SEEDS = 2  # at most, for kernels without numbers of the paper
WIDTH = 8  # of delta-gauss, in units of M: the errors are then those that the paper prints
WIDTHS = (1, 2, 4, 8, 16)  # that are tried on the smallest set
SAMPLE = 2000  # rows whose median squared distance is M
SHORT = 0.25  # CPU seconds below which a fit is timed again


# What is approximated


def kernel_of(name: str, X: Array) -> Kernel:
    """The kernel of a name; M, the median squared distance of some rows, sets its width.

    "delta_gauss" has the width ``WIDTH`` M, and "delta_gauss@4" the width 4 M.
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
    """The kernel matrix of a set."""
    X = vectors(name, scale)
    return Tiled(X, kernel_of(kernel, X))


# One fit


class Setting(NamedTuple):
    """How one approximation is made."""

    k: int  # rank
    rule: str
    l: int  # number of landmarks
    scheme: str
    core: str
    seed: int

    def model(self, kernel: Kernel, landmarks: Array | None = None) -> KreinNystroem:
        """The estimator; with ``landmarks`` (row numbers) it need not choose them."""
        chosen = "auto" if self.scheme == DEFAULT or landmarks is not None else self.scheme
        number_or_rows = self.l if landmarks is None else landmarks
        return matrix_free.nystroem(
            kernel, number_or_rows, self.k, scheme=chosen, core=self.core, seed=self.seed
        )


class Fit(NamedTuple):
    """A fitted approximation and what it cost."""

    setting: Setting
    model: KreinNystroem
    values: int  # kernel values that were evaluated
    cpu: float
    wall: float
    given: float = math.nan  # CPU seconds of a fit that is given the same landmarks

    def row(self) -> Row:
        """Everything but the model, to be written down."""
        seconds = {"cpu": self.cpu, "wall": self.wall, "cpu_given": self.given}
        return {**self.setting._asdict(), "evaluations": self.values, **seconds}


def landmark_count(rule: str, k: int, n: int) -> int:
    """The number of landmarks that a rule gives to rank k and n objects."""
    return min(n, math.ceil(RULES[rule](k, n)))


def by_rule(K: Tiled, k: int, rule: str, scheme: str, seed: int) -> Setting:
    """The setting of a scheme, with our core for the default and the paper's for others."""
    core = "ls" if scheme == DEFAULT else "plain"
    return Setting(k, rule, landmark_count(rule, k, len(K)), scheme, core, seed)


def fitted(K: Tiled, setting: Setting, landmarks: Array | None = None, *, repeats: int = 1) -> Fit:
    """Fit and time it; a short fit is repeated up to ``repeats`` times, and the least counts."""
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
    """The fit, and the seconds of another one that is given the same landmarks."""
    fit = fitted(K, setting, repeats=2)
    return fit._replace(given=fitted(K, setting, fit.model.landmark_indices_, repeats=2).cpu)


def columns_for(values: int, n: int) -> int:
    """The least number of columns, among n objects, with so many values; each pair counts once."""
    m = np.arange(n + 1)
    return min(n, int(np.searchsorted(m * n - m * (m - 1) // 2, values)))


def as_expensive(K: Tiled, setting: Setting, values: int) -> Fit:
    """One of the paper's schemes with the fewest landmarks that cost at least so many values.

    The uniform sketch of a scheme has k columns. They are counted once, although rows that are
    streamed are compared with them more than once.
    """
    n, sketch = len(K), 0 if setting.scheme == "uniform" else setting.k
    l = max(setting.k, columns_for(values, n) - sketch)
    fit = fitted(K, setting._replace(l=l))
    while fit.values < values and fit.setting.l < n:  # landmarks may be rows of the sketch
        l = fit.setting.l + math.ceil((values - fit.values) / n)
        fit = fitted(K, setting._replace(l=min(n, l)))
    return fit


def truncated(K: Tiled, plain: Fit) -> Fit:
    """The same landmarks with only the k largest |eigenvalues| of K_ZZ inverted; not timed."""
    setting = plain.setting._replace(core="truncated")
    fit = fitted(K, setting, plain.model.landmark_indices_)
    return fit._replace(values=plain.values, cpu=math.nan, wall=math.nan)


# Tasks


def fits(K: Tiled, k: int, seed: int, *, shares: bool) -> Iterator[Fit]:
    """The default, and the paper's schemes with as many landmarks or as many kernel values."""
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
    """One row per fit with its exact error; all errors come from one pass over all pairs."""
    rows, factors = [], [(np.empty((len(K), 0)), np.empty(0))]  # the error of this one is |K|
    for fit in fits:
        rows.append({**about, "n": len(K), **fit.row()})
        factors.append((fit.model.transform(K.X), fit.model.signature_))
    norm, *errors = np.sqrt(K.squared_errors(factors)).tolist()
    return [{**row, "error": e, "norm": norm} for row, e in zip(rows, errors, strict=True)]


def approximations(name: str, kernel: str, seed: int, scale: Scale) -> list[Row]:
    """All fits of one set, kernel and seed."""
    K, shares = tiled(name, kernel, scale), kernel == PRINTED_KERNEL and seed == 0
    # This one comes first so that nothing is compiled or loaded while it is timed.
    fitted(K, by_rule(K, scale.ranks[0], "k", DEFAULT, seed))
    every = (fit for k in scale.ranks for fit in fits(K, k, seed, shares=shares))
    return with_errors(K, {"set": name, "kernel": kernel}, every)


def optimum(name: str, kernel: str, scale: Scale) -> list[Row]:
    """The smallest possible error of every rank."""
    K = tiled(name, kernel, scale)
    about = {"set": name, "kernel": kernel, "n": len(K), "scheme": OPTIMUM, "rule": "", "core": ""}
    errors = matrix_free.optimal_errors(K, scale.ranks).tolist()
    return [{**about, "k": k, "error": e} for k, e in zip(scale.ranks, errors, strict=True)]


def widths(name: str, scale: Scale) -> list[Row]:
    """Delta-gauss at several widths: the optimum, and k-means++ with both of its cores."""
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
    """The seeds of the landmarks: fewer for kernels without numbers of the paper."""
    printed = kernel == PRINTED_KERNEL
    return range(scale.repetitions if printed else min(scale.repetitions, OTHER_SEEDS))


def tasks(scale: Scale) -> list[Task]:
    """The tasks of Figures 1 and 2."""
    names = vectorial_names(scale)
    sizes = {s: min(VECTORIAL[s].n, scale.rows or VECTORIAL[s].n) for s in names}
    first, at = min(names, key=lambda s: sizes[s]), f"approximating/{scale.name}"
    cost = 2 * _cost(sizes[first], scale)
    made = [Task(f"{at}/{first}/widths", partial(widths, first, scale), cost)]
    for (name, n), kernel in product(sizes.items(), KERNELS):
        run = partial(optimum, name, kernel, scale)
        made.append(Task(f"{at}/{name}/{kernel}/optimum", run, 6e-8 * n**2))
        for seed in seeds(kernel, scale):
            run = partial(approximations, name, kernel, seed, scale)
            made.append(Task(f"{at}/{name}/{kernel}/seed {seed}", run, _cost(n, scale)))
    return made


def _cost(n: int, scale: Scale) -> float:
    """CPU seconds of the errors of 18 approximations per rank, and of the fits."""
    landmarks = [landmark_count("k ln n", k, n) for k in scale.ranks]
    fits = sum(0.7 + 2e-9 * n * l**2 for l in landmarks)
    return 18 * sum(scale.ranks) * n**2 / 3e10 + fits
