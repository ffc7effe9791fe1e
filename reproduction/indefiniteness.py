"""The paper's iota, which tells how the paper made a kernel matrix of each set."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from kreinlearn import indefiniteness
from kreinlearn.datasets import load_dataset
from kreinlearn.kernels import double_centre
from reproduction import sets
from reproduction.reading import at_most, rows_of, say, table
from reproduction.report import Block, Check, Section, Table
from reproduction.scale import Scale
from reproduction.tasks import Measurements, Row, Task

Array = np.ndarray
SAMPLE = 1000  # rows of a vectorial set
HALF = 50.0  # percent; iota is below it if a dissimilarity is zero on the diagonal
ROUNDING = 1e-10  # percent
SYMMETRIC = {
    "mean": sets.averaged,
    "smaller": lambda D: np.minimum(D, D.T),
    "larger": lambda D: np.maximum(D, D.T),
    "upper": lambda D: np.triu(D) + np.triu(D, 1).T,
    "lower": lambda D: np.tril(D) + np.tril(D, -1).T,
}


def tasks(scale: Scale) -> list[Task]:
    """One task per set."""
    runs = {sets.called(name): partial(_dissimilarity, name, scale) for name in sets.there(scale)}
    for name in sets.vectorial_names(scale):
        runs[f"delta_gauss/{name}"] = partial(_vectors, name, scale)
    return [Task(f"indefiniteness/{scale.name}/{name}", run) for name, run in runs.items()]


# Measuring


def percent(D: Array) -> float:
    """iota of -1/2 J (D o D) J, in percent."""
    return 100 * indefiniteness(D, kernel="precomputed_dissimilarity")


def _dissimilarity(name: str, scale: Scale) -> list[Row]:
    data = sets.learning_set(name, scale)
    similarity = 1 - data.M / data.M.max()
    row: Row = {
        "set": name, "n": len(data.M), "origin": data.origin, "iota": percent(data.M),
        "not squared": percent(np.sqrt(data.M)),
        "of similarities": 100 * indefiniteness(double_centre(similarity)),
    }  # fmt: skip
    D = _published(name)
    if D is not None and (D != D.T).any():
        row["asymmetry"] = float(np.abs(D - D.T).max() / np.abs(D).max())
        row |= {how: percent(symmetric(D)) for how, symmetric in SYMMETRIC.items()}
    return [row]


def _published(name: str) -> Array | None:
    """The matrix of a set before it is averaged; None if the set is made by a recipe."""
    if sets.is_there(f"dissimilarity/{name}"):
        return np.asarray(load_dataset(f"dissimilarity/{name}").D, dtype=np.float64)
    if name == "coilyork":
        return np.asarray(load_dataset("dissimilarity/coilyork_partial").D_train, dtype=np.float64)
    return None


def _vectors(name: str, scale: Scale) -> list[Row]:
    X = sets.vectors(name, scale)
    n = min(SAMPLE, len(X))
    iota = indefiniteness(X, kernel="delta_gauss", n_samples=n, random_state=scale.seed)
    return [{"set": name, "n": n, "iota": 100 * iota}]


# Reading


def section(scale: Scale, measurements: Measurements) -> Section:
    """The iota of every set beside the paper's."""
    rows = rows_of(tasks(scale), measurements)
    results = {row["set"]: row for row in rows if "origin" in row}
    vectors = [row for row in rows if "origin" not in row]
    apart = [abs(row["iota"] - HALF) for row in vectors]
    names = ", ".join(f"{row['set']} (n = {row['n']})" for row in vectors)
    blocks: list[Block] = [
        say("indefiniteness.opening"),
        _table(scale, results),
        say("indefiniteness.impossible"),
    ]
    blocks += [say("indefiniteness.symmetrised"), _symmetrised(results)]
    blocks.append(say("indefiniteness.delta_gauss", names=names, apart=max(apart)))
    what, limit = "iota of delta-gauss, off 50 %", f"{ROUNDING:.0e}"
    checks = [*_digits(results), at_most(what, apart, ROUNDING, ".1e", limit)]
    numbers = {f"indefiniteness/{name}/iota %": row["iota"] for name, row in results.items()}
    numbers |= {f"indefiniteness/delta_gauss/{r['set']}/iota %": r["iota"] for r in vectors}
    return Section("Indefiniteness", blocks, checks, numbers)


def in_digits(iota: float, printed: float) -> str:
    """Rounded to as many decimals as were printed."""
    decimals = len(f"{printed:g}".partition(".")[2])
    return f"{iota:.{decimals}f}"


def _table(scale: Scale, results: dict[str, Row]) -> Table:
    rows = []
    for name in scale.dissimilarity:
        iota, row = sets.DISSIMILARITY[name].iota, results.get(name)
        cells = [name, "", sets.state(name, scale), "" if iota is None else f"{iota:g}", "", "", ""]
        if row is not None:
            cells[1:3] = [str(row["n"]), row["origin"].partition(":")[0]]
            cells[4:] = [f"{row[kind]:.3g}" for kind in ("iota", "not squared", "of similarities")]
        rows.append(cells)
    return table("indefiniteness.sets", rows)


def _symmetrised(results: dict[str, Row]) -> Table:
    rows = [row for row in results.values() if "asymmetry" in row]
    cells = [[r["set"], str(r["n"]), *(f"{r[how]:.1f}" for how in SYMMETRIC)] for r in rows]
    return table("indefiniteness.symmetrised", cells, SYMMETRIC)


def _digits(results: dict[str, Row]) -> Iterator[Check]:
    """The printed iota of the paper's own matrices, where nothing had to be guessed."""
    for name, row in results.items():
        printed = sets.DISSIMILARITY[name].iota
        own = row["origin"] == sets.SAME and "asymmetry" not in row
        if own and printed is not None and printed < HALF:
            ours, limit = in_digits(row["iota"], printed), f"{printed:g}"
            what = f"iota of {name} as printed, %"
            yield Check(what, f"{ours} ({row['iota']:.4g})", limit, ours == limit)
