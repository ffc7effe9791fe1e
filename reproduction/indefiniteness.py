"""The paper's iota, which tells how the paper made a kernel matrix of each set."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import numpy as np

from kreinlearn import indefiniteness
from kreinlearn.datasets import load_dataset
from kreinlearn.kernels import double_centre
from kreinlearn.report.model import Block, Check, Section, Table
from reproduction import sets
from reproduction.reading import at_most, say
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
    """One task per set; they run before all others."""
    made = []
    for name in sets.there(scale):
        run, cost = partial(_dissimilarity, name, scale), _cost(name, scale)
        made.append(Task(_key(sets.called(name), scale), run, cost, first=True))
    for name in sets.vectorial_names(scale):
        run = partial(_vectors, name, scale)
        made.append(Task(_key(f"delta_gauss/{name}", scale), run, 0.5, first=True))
    return made


def _key(name: str, scale: Scale) -> str:
    return f"indefiniteness/{scale.name}/{name}"


def _cost(name: str, scale: Scale) -> float:
    return 0.5 * (scale.polygons / 1000) ** 3 if name.startswith("polydis") else 1.0


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

    def rows(names: Iterable[str]) -> list[Row]:
        return [row for name in names for row in measurements.get(_key(name, scale), [])]

    results = {row["set"]: row for row in rows(map(sets.called, scale.dissimilarity))}
    vectors = rows(f"delta_gauss/{name}" for name in sets.VECTORIAL)
    apart = max((abs(row["iota"] - HALF) for row in vectors), default=0.0)
    blocks: list[Block] = [say("indefiniteness.opening"), _table(scale, results)]
    blocks += [_compared(results), _impossible(results)]
    if asymmetric := [row for row in results.values() if "asymmetry" in row]:
        blocks += [say("indefiniteness.symmetrised"), _symmetrised(asymmetric)]
    if vectors:
        names = ", ".join(f"{row['set']} (n = {row['n']})" for row in vectors)
        blocks.append(say("indefiniteness.delta_gauss", names=names, apart=apart))
    half = [apart] if vectors else []
    what, limit = "iota of delta-gauss, off 50 %", f"{ROUNDING:.0e}"
    checks = [*_digits(results), at_most(what, half, ROUNDING, ".1e", limit)]
    numbers = {f"indefiniteness/{name}/iota %": row["iota"] for name, row in results.items()}
    numbers |= {f"indefiniteness/delta_gauss/{r['set']}/iota %": r["iota"] for r in vectors}
    return Section("Indefiniteness", blocks, checks, numbers)


def in_digits(iota: float, printed: float) -> str:
    """Rounded to as many decimals as were printed."""
    decimals = len(f"{printed:g}".partition(".")[2])
    return f"{iota:.{decimals}f}"


def _table(scale: Scale, results: dict[str, Row]) -> Table:
    header = ["set", "n", "matrix", "paper, %", "squared, %", "not squared, %", "similarity, %"]
    table = Table("iota of dissimilarities", header, notes=[say("indefiniteness.matrix")])
    for name in scale.dissimilarity:
        iota = sets.DISSIMILARITY[name].iota
        cells = [name, "", sets.state(name, scale), "" if iota is None else f"{iota:g}", "", "", ""]
        if row := results.get(name):
            cells[1:3] = [str(row["n"]), row["origin"].partition(":")[0]]
            cells[4:] = [f"{row[kind]:.3g}" for kind in ("iota", "not squared", "of similarities")]
        table.rows.append(cells)
    return table


def _own(results: dict[str, Row]) -> dict[str, float]:
    """The printed iota of the paper's own matrices, where nothing had to be guessed."""
    return {
        name: printed
        for name, row in results.items()
        if row["origin"] == sets.SAME and "asymmetry" not in row
        and (printed := sets.DISSIMILARITY[name].iota) is not None and printed < HALF
    }  # fmt: skip


def _compared(results: dict[str, Row]) -> str:
    def as_printed(kind: str) -> list[str]:
        return [name for name, p in own.items() if in_digits(results[name][kind], p) == f"{p:g}"]

    own = _own(results)
    if not own:
        return "None of the paper's own symmetric matrices was measured: nothing can be compared."
    same, plain = as_printed("iota"), ", ".join(as_printed("not squared")) or "none"
    names = ", ".join(own)
    return say("indefiniteness.compared", names=names, same=len(same), total=len(own), plain=plain)


def _impossible(results: dict[str, Row]) -> str:
    printed = [(s.iota, s.name) for s in sets.DISSIMILARITY.values() if s.iota is not None]
    names = " and ".join(f"{iota:g} % for {name}" for iota, name in printed if iota > HALF)
    texts = [say("indefiniteness.impossible", names=names)]
    if results:
        most = max(row["iota"] for row in results.values())
        others = [row["of similarities"] for row in results.values()]
        texts.append(say("indefiniteness.largest", most=most, low=min(others), high=max(others)))
    return " ".join([*texts, say("indefiniteness.inference")])


def _symmetrised(rows: list[Row]) -> Table:
    title = "iota by the way a matrix is made symmetric, %"
    cells = [[r["set"], str(r["n"]), *(f"{r[how]:.1f}" for how in SYMMETRIC)] for r in rows]
    note = "upper, lower: this triangle is taken and mirrored."
    return Table(title, ["set", "n", *SYMMETRIC], cells, [note])


def _digits(results: dict[str, Row]) -> list[Check]:
    checks = []
    for name, printed in _own(results).items():
        iota, limit = results[name]["iota"], f"{printed:g}"
        ours = in_digits(iota, printed)
        what = f"iota of {name} as printed, %"
        checks.append(Check(what, f"{ours} ({iota:.4g})", limit, ours == limit))
    none = Check("iota as printed", "none of the paper's matrices", "every digit", None)
    return checks or [none]
