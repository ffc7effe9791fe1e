"""Speed and memory of the core, compared with the bare bound and with peers.

python -m benchmarks.core [--quick]; the page of benchmarks.scale has these tables. Every figure
that counts is a ratio of CPU seconds, from medians of interleaved repetitions; wall seconds are
given beside it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from benchmarks import tables, timing
from benchmarks.bound import bound
from benchmarks.timing import Row, interleaved, ratio_row, resident_megabytes, said_by, spent
from kreinlearn import KreinNystroem, Landmarks
from kreinlearn.data.tiles import TILE
from kreinlearn.kernels import DeltaGauss
from kreinlearn.nystrom.core import Swept, landmark_map, one_shot, sweep
from kreinlearn.nystrom.fit import one_shot_svd, squared_route
from kreinlearn.nystrom.landmarks import MapSpec
from kreinlearn.nystrom.schemes import SCHEMES
from kreinlearn.pairs.evaluate import project
from kreinlearn.pairs.pairs import Pairs, Sample
from kreinlearn.pairs.rows import Rows, Session
from kreinlearn.sums.moments import Targets
from kreinlearn.sums.parallel import serial_blas, worker_count

D = 20
KERNEL = {"width": 50.0, "ratio": 5.0}  # exp(-0.02 d2) - exp(-0.1 d2): two exponentials per value
WORKERS = worker_count(None)
TITLE = "The core against its bound"


def data(n: int) -> np.ndarray:
    """Standard normal rows."""
    return np.random.default_rng(0).standard_normal((n, D))


def given_landmarks(n: int, m: int) -> np.ndarray:
    """The row numbers of m of n rows."""
    return np.sort(np.random.default_rng(0).choice(n, m, replace=False))


def opened(X: np.ndarray, m: int) -> tuple[Pairs, Sample]:
    """The pairs of m given landmarks, as a fit prepares them."""
    session = Session(WORKERS, 2**40)
    pairs = Pairs(DeltaGauss(**KERNEL).fit(X, np.random.default_rng(0)), Rows(X), session)
    Z = given_landmarks(len(X), m)
    return pairs, pairs.grown(pairs.sample(Z), Z)


def one_pass(X: np.ndarray, m: int) -> Swept:
    """The pass over all rows, with the values among the landmarks."""
    pairs, sample = opened(X, m)
    rng, nothing = np.random.default_rng(0), Targets.none(len(X))
    return sweep(pairs, sample, MapSpec(m, given=sample.landmarks), rng, nothing)


def fitted(X: np.ndarray, m: int, **params: Any) -> KreinNystroem:
    Z = Landmarks(given_landmarks(len(X), m), core="plain")
    return KreinNystroem(DeltaGauss(**KERNEL), landmarks=Z, **params).fit(X)


# The rows of the table


def kernel_block(repetitions: int) -> list[Row]:
    m = 1000
    X, Z = data(TILE), data(m)
    columns = DeltaGauss(**KERNEL).fit(X, np.random.default_rng(0)).columns(Z)
    out = np.empty((TILE, m))
    works = {
        "product": lambda: np.matmul(X, Z.T, out=out),
        "ours": lambda: columns(X, out),
        "theirs": lambda: rbf_kernel(X, Z, 0.02) - rbf_kernel(X, Z, 0.1),
    }
    with serial_blas():
        t = interleaved(works, 7 * repetitions)
    base = t["product"].cpu
    return [
        Row(
            f"kernel block {TILE} x {m}, over the bare product",
            f"{t['ours'].cpu / base:.2f} x",
            "<= 3.2",
            t["ours"].cpu <= 3.2 * base,
            f"scikit-learn {t['theirs'].cpu / base:.1f} x",
        )
    ]


def passes(n: int, m: int, repetitions: int) -> list[Row]:
    X = data(n)
    pairs, sample = opened(X, m)
    columns, w, out = pairs.evaluator(sample), np.ones((m, 1)), np.empty((n, 1))
    works = {
        "pass": lambda: one_pass(X, m),
        "fit": lambda: fitted(X, m),
        "predict": lambda: project(X, columns, w, out, WORKERS, buffered=True),
    }
    floors: list[float] = []
    works = {"bound": lambda: floors.append(bound(n, m, D).total), **works}
    one_pass(X[:5000], 50)  # compiled
    t = interleaved(works, repetitions, warm=False)
    floor, size = float(np.median(floors)), f"n = {n:.0e}, m = {m}"
    share = t["predict"].cpu / t["fit"].cpu
    wall = t["pass"].wall / (floor / WORKERS)
    return [
        Row(f"bare bound, {size}", f"{floor:.2f} s CPU"),
        ratio_row(f"Gram pass over the bound, {size}", t["pass"], floor, 1.15,
                  f"wall over bound / cores {wall:.2f}"),
        ratio_row("whole fit, landmarks given, plain core", t["fit"], floor, 1.15,
                  "eigendecompositions included"),
        Row("one-column prediction pass over the fit", f"{share:.2f} x", "<= 0.2", share <= 0.2),
    ]  # fmt: skip


def landmark_rows(n: int, repetitions: int) -> list[Row]:
    m, sketch = 500, 200
    X = data(n)
    kernel = DeltaGauss(**KERNEL).fit(X, np.random.default_rng(0))

    def choose(scheme: str) -> None:
        # The rows of the core are evaluated for the fit and not for the choice: few of them here.
        pool = np.sort(np.random.default_rng(1).choice(n, m, replace=False))
        pairs = Pairs(kernel, Rows(X), Session(WORKERS, 2**40))
        sample = replace(pairs.sample(pool), streams=True)
        with serial_blas():
            SCHEMES[scheme](pairs, sample, m, np.random.default_rng(2), sketch)

    works = {"pass": lambda: one_pass(X, m)} | {
        s: (lambda s=s: choose(s)) for s in ("leverage", "kmeans++")
    }
    t = interleaved(works, repetitions)
    base = t["pass"].cpu
    where = f"over the pass, n = {n:.0e}, m = {m}, sketch {sketch}"
    return [
        ratio_row(f"kmeans++ landmarks {where}", t["kmeans++"], base, 1.5),
        ratio_row(f"leverage landmarks {where}", t["leverage"], base, 0.6),
    ]


def peers(n: int, repetitions: int) -> list[Row]:
    """From X to the eigendecomposition: our way, and those of others."""
    m = 500
    X = data(n)
    pairs, sample = opened(X, m)
    Z, K_ZZ = X[sample.landmarks], sample.K_ZZ
    W, S = landmark_map(K_ZZ)
    C = pairs.evaluator(sample)(X)
    G = one_pass(X, m).gram.matrix

    def pipeline() -> Any:
        """What scikit-learn's Nystroem does with its own kernels: features, then Phi'Phi."""
        Phi = (rbf_kernel(X, Z, 0.02) - rbf_kernel(X, Z, 0.1)) @ W
        return Phi.T @ Phi

    works: dict[str, Callable[[], Any]] = {
        "ours": lambda: fitted(X, m),
        "scikit-learn": pipeline,
        "svd": lambda: fitted(X, m, method="svd"),
        "sgt": lambda: fitted(X, m, method="sgt"),
        "gram only": lambda: one_shot(G, W, S),
        "svd only": lambda: one_shot_svd(C, W, S),
        "sgt only": lambda: squared_route(C, K_ZZ),
    }
    t = interleaved(works, repetitions)
    floor = bound(n, m, D).total
    names = {
        "ours": "KreinNystroem, streamed Gram route",
        "scikit-learn": "scikit-learn kernels, features, Phi'Phi (no eigendecomposition)",
        "svd": 'the paper\'s thin SVD (method="svd")',
        "sgt": 'Gisbrecht-Schleif-Tino (method="sgt")',
    }
    rows = [
        Row(f"{label}, n = {n:.0e}, m = {m}, over the bound",
            f"{t[key].cpu / floor:.1f} x ({spent(t[key])})")
        for key, label in names.items()
    ]  # fmt: skip
    for key in ("gram", "svd", "sgt"):
        rows.append(
            Row(
                f'eigendecomposition alone, method="{key}", kernel values given',
                spent(t[f"{key} only"]),
                note="from G = C'C" if key == "gram" else "from C",
            )
        )
    return rows


def peak_of_fit(n: int, m: int) -> float:
    """The peak memory of one fit in a process of its own, in megabytes above that with X loaded."""
    return float(said_by("benchmarks.core", "--peak", str(n), str(m)))


def print_peak(n: int, m: int) -> None:
    fitted(data(5000), 20)  # compiled and loaded before
    X = data(n)
    before = resident_megabytes("VmRSS")
    fitted(X, m)
    print(resident_megabytes("VmHWM") - before)


def memory_and_growth(n: int, m: int) -> list[Row]:
    small, large = data(n // 10), data(n)
    works = {"small": lambda: one_pass(small, m), "large": lambda: one_pass(large, m)}
    t = interleaved(works, 3, warm=False)
    growth = t["large"].cpu / t["small"].cpu
    peaks = peak_of_fit(n // 10, m), peak_of_fit(n, m)
    return [
        Row(f"memory above X, n = {n:.0e}, m = {m}", f"{peaks[1]:.0f} MB", "<= 350 MB",
            peaks[1] <= 350, f"{peaks[0]:.0f} MB at n = {n // 10:.0e}"),
        Row(f"growth of the pass, n = {n // 10:.0e} to {n:.0e}", f"{growth:.2f} x", "<= 10.5",
            growth <= 10.5),
    ]  # fmt: skip


# The command


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--quick", action="store_true", help="at most 1e5 rows and two repetitions")
    parser.add_argument("--repetitions", type=int, default=None)
    parser.add_argument("--peak", nargs=2, type=int, metavar=("N", "M"), help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.peak:
        return print_peak(*options.peak)
    repetitions = options.repetitions or (2 if options.quick else 7)
    n, m = (10**5, 500) if options.quick else (10**6, 1000)
    rows = kernel_block(repetitions)
    for part in (
        lambda: passes(n, m, repetitions),
        lambda: landmark_rows(10**5, repetitions),
        lambda: peers(10**5, min(repetitions, 3)),
        lambda: memory_and_growth(n, m),
    ):
        rows += part()
    timing.table_of(rows, TITLE).show(tables.console())


if __name__ == "__main__":
    main()
