"""The paper's five vectorial sets: K by tiles only, its best rank-k errors and ours."""

from __future__ import annotations

import csv
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist
from threadpoolctl import threadpool_limits

from benchmarks.cases import standardised
from benchmarks.measure import DEFAULT, PAPER, Figure, Setting, landmark_count
from benchmarks.summary import grouped, number, select
from benchmarks.tables import Table
from kreinlearn.datasets import load_dataset
from kreinlearn.kernels import Kernel
from kreinlearn.kernels.vectors import DeltaGauss

Array = NDArray[Any]
SETS = ("parkinsons", "ailerons", "pole", "elevators", "cal_housing")
WIDER = tuple(f"parkinsons@{factor}" for factor in (4, 8, 16))  # the optimum only
IN_PAPER = {"pole": "pole-telecom", "cal_housing": "cal-housing"}
RANKS = (5, 10, 25, 50, 100)
RULES = ("k", "k ln n")
TILE = 1024
SAMPLE = 2000  # rows whose median squared distance is the width
OVERSAMPLING = 100  # further columns of the subspace iteration
SETTLED = 1e-4  # relative change of an optimal error at which the iteration ends
MOST_PASSES = 20


class Tiled:
    """The symmetric kernel matrix of X, evaluated tile by tile and never held."""

    def __init__(self, X: Array, kernel: Kernel) -> None:
        self.X, self.kernel = X, kernel
        self.spans = [slice(i, min(i + TILE, len(X))) for i in range(0, len(X), TILE)]

    def __iter__(self) -> Iterator[tuple[slice, slice, Array]]:
        """Tiles on and above the diagonal."""
        for j, columns in enumerate(self.spans):
            evaluate = self.kernel.columns(self.X[columns])
            for rows in self.spans[:j]:
                yield rows, columns, evaluate(self.X[rows])
            yield columns, columns, self.kernel.symmetric(self.X[columns])

    def __matmul__(self, V: Array) -> Array:
        KV = np.zeros((len(self.X), V.shape[1]))
        for rows, columns, K in self:
            KV[rows] += K @ V[columns]
            if rows != columns:
                KV[columns] += K.T @ V[rows]
        return KV

    def squared_errors(self, factors: Sequence[tuple[Array, Array]]) -> Array:
        """|K - Phi diag(S) Phi'|^2 of each (Phi, S), in one pass."""
        total = np.zeros(len(factors))
        for rows, columns, K in self:
            twice = 1 if rows == columns else 2
            for i, (Phi, S) in enumerate(factors):
                E = K - (Phi[rows] * S) @ Phi[columns].T
                total[i] += twice * np.einsum("ij,ij->", E, E)
        return total


def optimal_errors(K: Tiled, ranks: Sequence[int], seed: int = 0) -> Array:
    """Best rank-k errors, from |K|^2 and the largest |eigenvalues| by subspace iteration.

    One block product a pass; Ritz values only approach from below, so the errors fall to the
    optimum, and the iteration ends when none falls by more than SETTLED.
    """
    n, size = len(K.X), min(len(K.X), max(ranks) + OVERSAMPLING)
    whole = K.squared_errors([(np.zeros((n, 1)), np.ones(1))])[0]
    Q = np.linalg.qr(np.random.default_rng(seed).standard_normal((n, size)))[0]
    errors = np.full(len(ranks), np.inf)
    for _ in range(MOST_PASSES):
        KQ = K @ Q
        M = Q.T @ KQ
        ritz = np.sort(np.square(np.linalg.eigvalsh(0.5 * (M + M.T))))[::-1]
        last, errors = errors, np.sqrt(whole - np.array([ritz[:k].sum() for k in ranks]))
        if np.all(last - errors <= SETTLED * errors):
            return errors
        Q = np.linalg.qr(KQ)[0]
    warnings.warn(f"optimal errors not settled after {MOST_PASSES} passes", stacklevel=2)
    return errors


def load(name: str) -> tuple[Array, Kernel]:
    """Rows and kernel of a set; "parkinsons@8" has eight times the width."""
    name, _, factor = name.partition("@")
    X = standardised(load_dataset(f"vectorial/{name}").X)
    rng = np.random.default_rng(0)
    sample = X[rng.choice(len(X), min(SAMPLE, len(X)), replace=False)]
    M = float(np.median(pdist(sample, "sqeuclidean")))
    return X, DeltaGauss(width=float(factor or 1) * M, ratio=4.0).fit(X, rng)


def optimum(name: str) -> list[Figure]:
    with threadpool_limits(1):
        X, kernel = load(name)
        errors = optimal_errors(Tiled(X, kernel), RANKS)
    settings = [(k, "", 0, "optimum", "", 0) for k in RANKS]
    return [_figure(name, len(X), *s, e) for s, e in zip(settings, errors, strict=True)]


def approximations(name: str, seed: int) -> list[Figure]:
    """The default and the paper's schemes with the plain core, cut to rank k; one pass for all."""
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # landmarks that span fewer dimensions
        X, kernel = load(name)
        settings, factors = [], []
        for k, rule, scheme in ((k, r, s) for k in RANKS for r in RULES for s in (DEFAULT, *PAPER)):
            core = "ls" if scheme == DEFAULT else "plain"
            setting = Setting(k, landmark_count(rule, k, len(X)), scheme, core, k)
            model = setting.model(kernel, seed).fit(X)
            settings.append((k, rule, setting.l, scheme, core, seed))
            factors.append((model.transform(X), model.signature_))
        errors = np.sqrt(Tiled(X, kernel).squared_errors(factors))
    return [_figure(name, len(X), *s, e) for s, e in zip(settings, errors, strict=True)]


def _figure(name: str, n: int, *rest: Any) -> Figure:
    """The ratio comes later, with the optimum; pairs of so many rows are not counted."""
    *setting, seed, error = rest
    values = (*setting, True, seed, float(error), math.nan, math.nan, math.nan)
    return Figure._make(("vectorial", name, n, *values))


def paper_errors(path: Path) -> dict[tuple[str, str, str, int], float]:
    """Log errors by (set, scheme, rule, rank) as the paper plots them."""
    rules = {"k": "k", "k*log(n)": "k ln n"}
    with open(path, encoding="utf8", newline="") as file:
        return {
            (row["dataset"], row["landmark_selection"], rules[row["landmarks"]], int(row["rank"])):
            float(row["log_frobenius_error"])
            for row in csv.DictReader(file)
        }  # fmt: skip


def tables(figures: Sequence[Figure], paper: Mapping[Any, float] | None) -> list[Table]:
    """Errors over the optimum; their logarithms and falls from the first rank, with the paper's."""
    here = select(figures, section="vectorial")
    if not here:
        return []
    error = {
        key: float(np.median([f.error for f in group]))
        for key, group in grouped(here, lambda f: (f.case, f.k, f.rule, f.scheme)).items()
    }
    columns = [("", "optimum"), *((r, s) for r in RULES for s in (DEFAULT, *PAPER))]
    names = ["optimum", *(f"{'default' if s == DEFAULT else s}, {r}" for r, s in columns[1:])]
    ratios = Table("Vectorial sets: error over the optimal rank-k error", ["set", "k", *names[1:]])
    logs = Table("Vectorial sets: natural logarithm of the error", ["set", "k", *names])
    falls = Table("Vectorial sets: fall of that logarithm since rank 5", ["set", "k", *names])
    for name in (s for s in SETS if (s, RANKS[0], "", "optimum") in error):
        for k in RANKS:
            found = np.array([error[name, k, *column] for column in columns])
            first = np.array([error[name, RANKS[0], *column] for column in columns])
            given, since = (_in_paper(paper, name, rank, columns) for rank in (k, RANKS[0]))
            ratios.rows.append([name, str(k), *map(number, found[1:] / found[0])])
            logs.rows.append([name, str(k), *map(_beside, np.log(found), given)])
            falls.rows.append([name, str(k), *map(_beside, np.log(first / found), since - given)])
    ratios.notes.append(
        "Delta-gauss with k(x, x) = 0; widths M = median squared distance of standardised rows and "
        "M / 4; all cut to rank k; medians over seeds; paper's schemes with the plain core."
    )
    logs.notes.append(
        "In brackets the paper's. Its widths are not known: compare the fall and the ratio to the "
        "optimum, not the errors. Its logarithms are natural: to base 10 its errors would be a "
        "thousand times |K|."
        if paper else "The paper's figures were not found (--paper-csv)."
    )  # fmt: skip
    return [ratios, logs, falls, _width_table(error, paper)]


def _width_table(error: Mapping[Any, float], paper: Mapping[Any, float] | None) -> Table:
    """How fast the optimum itself falls at several widths, beside the paper's k-means++."""
    title = "Vectorial sets: fall of the optimum since rank 5 with the width, parkinsons"
    table = Table(title, ["width / M", *map(str, RANKS)])
    for name in ("parkinsons", *WIDER):
        if (name, RANKS[0], "", "optimum") in error:
            values = np.log([error[name, k, "", "optimum"] for k in RANKS])
            table.rows.append([name.partition("@")[2] or "1", *map(_two, values[0] - values)])
    columns = [("k ln n", "kmeans++")]
    given = np.array([_in_paper(paper, "parkinsons", k, columns)[0] for k in RANKS])
    if np.isfinite(given).all():
        table.rows.append(["the paper, kmeans++, k ln n", *map(_two, given[0] - given)])
    return table


def _two(value: float) -> str:
    return f"{value:.2f}"


def _in_paper(paper: Mapping[Any, float] | None, name: str, k: int, columns: Any) -> Array:
    printed = IN_PAPER.get(name, name)
    return np.array([(paper or {}).get((printed, s, rule, k), np.nan) for rule, s in columns])


def _beside(ours: float, theirs: float) -> str:
    return f"{ours:.2f}" if np.isnan(theirs) else f"{ours:.2f} ({theirs:.2f})"
