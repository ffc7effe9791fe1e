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
RULES: dict[str, Callable[[int, int], float]] = {  # landmarks for rank k and n objects
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


class Fit(NamedTuple):
    """A fitted approximation, and how it was made and what it cost."""

    model: KreinNystroem
    row: Row


def by_rule(K: Tiled, k: int, rule: str, scheme: str, seed: int) -> Row:
    """The setting of a scheme, with our core for the default and the paper's for others."""
    l = min(len(K), math.ceil(RULES[rule](k, len(K))))
    core = "ls" if scheme == DEFAULT else "plain"
    return {"k": k, "rule": rule, "l": l, "scheme": scheme, "core": core, "seed": seed}


def fitted(K: Tiled, setting: Row, landmarks: Array | None = None, *, repeats: int = 1) -> Fit:
    """Fit and time it; a short fit is repeated up to ``repeats`` times, and the least counts."""
    count, best = Count(), (math.inf, math.inf)
    scheme = "auto" if setting["scheme"] == DEFAULT or landmarks is not None else setting["scheme"]
    for _ in range(repeats):
        count.values = 0
        model = matrix_free.nystroem(
            Counted(K.kernel, count), setting["l"] if landmarks is None else landmarks,
            setting["k"], scheme=scheme, core=setting["core"], seed=setting["seed"],
        )  # fmt: skip
        wall, cpu = time.perf_counter(), time.process_time()
        with fewer_dimensions():
            model.fit(K.X)
        best = min(best, (time.process_time() - cpu, time.perf_counter() - wall))
        if best[0] > SHORT:
            break
    cost = {"evaluations": count.values, "cpu": best[0], "wall": best[1], "cpu_given": math.nan}
    return Fit(model, {**setting, **cost})


def with_share(K: Tiled, setting: Row) -> Fit:
    """The fit, and the seconds of another one that is given the same landmarks."""
    fit = fitted(K, setting, repeats=2)
    given = fitted(K, setting, fit.model.landmark_indices_, repeats=2)
    return fit._replace(row=fit.row | {"cpu_given": given.row["cpu"]})


def columns_for(values: int, n: int) -> int:
    """The least number of columns, among n objects, with so many values; each pair counts once."""
    m = np.arange(n + 1)
    return min(n, int(np.searchsorted(m * n - m * (m - 1) // 2, values)))


def as_expensive(K: Tiled, setting: Row, values: int) -> Fit:
    """One of the paper's schemes with the fewest landmarks that cost at least so many values.

    The uniform sketch of a scheme has k columns. They are counted once, although rows that are
    streamed are compared with them more than once.
    """
    n, k = len(K), setting["k"]
    l = max(k, columns_for(values, n) - (0 if setting["scheme"] == "uniform" else k))
    while (fit := fitted(K, setting | {"l": l})).row["evaluations"] < values and l < n:
        l = min(n, l + math.ceil((values - fit.row["evaluations"]) / n))  # some are in the sketch
    return fit


def truncated(K: Tiled, plain: Fit) -> Fit:
    """The same landmarks with only the k largest |eigenvalues| of K_ZZ inverted; not timed."""
    row = plain.row | {"core": "truncated", "cpu": math.nan, "wall": math.nan}
    fit = fitted(K, row, plain.model.landmark_indices_)
    return Fit(fit.model, row | {"cpu_given": math.nan})


# Tasks


def fits(K: Tiled, k: int, seed: int, *, shares: bool) -> Iterator[Fit]:
    """The default, and the paper's schemes with as many landmarks or as many kernel values."""
    fit, values = with_share if shares else fitted, {}
    for rule in RULES:
        yield (default := fit(K, by_rule(K, k, rule, DEFAULT, seed)))
        values[rule] = default.row["evaluations"]
    for scheme in PAPER:
        for rule in PAPER_RULES:
            yield fit(K, by_rule(K, k, rule, scheme, seed))
        for rule, name in EQUAL.items():
            setting = by_rule(K, k, "k", scheme, seed) | {"rule": name}
            yield (plain := as_expensive(K, setting, values[rule]))
            if name == TRUNCATED:
                yield truncated(K, plain)


def with_errors(K: Tiled, about: Row, fits: Iterable[Fit]) -> list[Row]:
    """One row per fit with its exact error; all errors come from one pass over all pairs."""
    rows, factors = [], [(np.empty((len(K), 0)), np.empty(0))]  # the error of this one is |K|
    for fit in fits:
        rows.append({**about, "n": len(K), **fit.row})
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
        plain = [
            fitted(K, by_rule(K, k, "k ln n", "kmeans++", seed))
            for k, seed in product(scale.ranks, seeds("", scale))
        ]
        both = (fit for one in plain for fit in (one, truncated(K, one)))
        rows += [
            *optimum(name, kernel, scale),
            *with_errors(K, {"set": name, "kernel": kernel}, both),
        ]
    return rows


def seeds(kernel: str, scale: Scale) -> range:
    """The seeds of the landmarks: fewer for kernels without numbers of the paper."""
    printed = kernel == PRINTED_KERNEL
    return range(scale.repetitions if printed else min(scale.repetitions, OTHER_SEEDS))


def tasks(scale: Scale) -> list[Task]:
    """The tasks of Figures 1 and 2."""
    names, at = vectorial_names(scale), f"approximating/{scale.name}"
    sizes = {name: min(VECTORIAL[name].n, scale.rows or VECTORIAL[name].n) for name in names}
    first = min(names, key=lambda name: sizes[name])
    made = [Task(f"{at}/{first}/widths", partial(widths, first, scale), 4e-7 * sizes[first] ** 2)]
    for (name, n), kernel in product(sizes.items(), KERNELS):
        run = partial(optimum, name, kernel, scale)
        made.append(Task(f"{at}/{name}/{kernel}/optimum", run, 6e-8 * n**2))
        for seed in seeds(kernel, scale):
            run = partial(approximations, name, kernel, seed, scale)
            made.append(Task(f"{at}/{name}/{kernel}/seed {seed}", run, 2e-7 * n**2))
    return made
