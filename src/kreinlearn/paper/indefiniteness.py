"""The paper's iota: the first thing to agree on, as it tells which matrix was made of a set."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kreinlearn import indefiniteness
from kreinlearn.datasets import load_dataset
from kreinlearn.kernels import double_centre
from kreinlearn.paper import sets
from kreinlearn.paper.scale import Scale
from kreinlearn.paper.tasks import Measurements, Row, Task
from kreinlearn.report import Check, Section, Table

Array = NDArray[Any]
SAMPLE = 1000  # rows of a vectorial set
HALF = 50.0  # percent; below it, always, if a dissimilarity is zero on the diagonal
ROUNDING = 1e-10  # percent
SYMMETRIC = {
    "mean": sets.averaged,
    "smaller": lambda D: np.minimum(D, D.T),
    "larger": lambda D: np.maximum(D, D.T),
    "upper": lambda D: np.triu(D) + np.triu(D, 1).T,
    "lower": lambda D: np.tril(D) + np.tril(D, -1).T,
}


def tasks(scale: Scale) -> list[Task]:
    return [
        Task(
            _key(sets.called(name), scale),
            partial(_dissimilarity, name, scale),
            _cost(name, scale),
            first=True,
        )
        for name in sets.there(scale)
    ] + [
        Task(_key(f"delta_gauss/{name}", scale), partial(_vectors, name, scale), 0.5, first=True)
        for name in sets.vectorial_names(scale)
    ]


def _key(name: str, scale: Scale) -> str:
    return f"indefiniteness/{scale.name}/{name}"


def _cost(name: str, scale: Scale) -> float:
    return 0.5 * (scale.polygons / 1000) ** 3 if name.startswith("polydis") else 1.0


# Measuring


def percent(D: Array) -> float:
    """iota of -1/2 J (D o D) J."""
    return 100 * indefiniteness(D, kernel="precomputed_dissimilarity")


def _dissimilarity(name: str, scale: Scale) -> list[Row]:
    data = sets.learning_set(name, scale)
    similarity = 1 - data.M / data.M.max()
    row: Row = {
        "set": name,
        "n": len(data.M),
        "origin": data.origin,
        "iota": percent(data.M),
        "not squared": percent(np.sqrt(data.M)),
        "of similarities": 100 * indefiniteness(double_centre(similarity)),
    }
    D = _published(name)
    if D is not None and (D != D.T).any():
        row["asymmetry"] = float(np.abs(D - D.T).max() / np.abs(D).max())
        row |= {how: percent(symmetric(D)) for how, symmetric in SYMMETRIC.items()}
    return [row]


def _published(name: str) -> Array | None:
    """The matrix of a set before it is averaged; None where it is made by a recipe."""
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
    def rows(names: Iterable[str]) -> list[Row]:
        return [row for name in names for row in measurements.get(_key(name, scale), [])]

    found = {row["set"]: row for row in rows(map(sets.called, scale.dissimilarity))}
    vectors = rows(f"delta_gauss/{name}" for name in sets.VECTORIAL)
    what = Section("Indefiniteness")
    what.blocks += [_opening(), _table(scale, found), _compared(found), _impossible(found)]
    if asymmetric := [row for row in found.values() if "asymmetry" in row]:
        what.blocks += [*_symmetrised(asymmetric)]
    if vectors:
        what.blocks.append(_delta_gauss(vectors))
    what.checks += [*_digits(found), _exactly_half(vectors)]
    what.numbers |= {f"indefiniteness/{name}/iota %": row["iota"] for name, row in found.items()}
    what.numbers |= {f"indefiniteness/delta_gauss/{r['set']}/iota %": r["iota"] for r in vectors}
    return what


def _asked(scale: Scale) -> list[sets.Dissimilarity]:
    return [sets.DISSIMILARITY[name] for name in scale.dissimilarity]


def in_digits(iota: float, printed: float) -> str:
    """Rounded to as many decimals as were printed."""
    decimals = len(f"{printed:g}".partition(".")[2])
    return f"{iota:.{decimals}f}"


def _opening() -> str:
    return (
        "The paper gives for every set its indefiniteness iota, the sum of the negative "
        "eigenvalues of the kernel matrix over the sum of all, in magnitude. It tells how a "
        "matrix of dissimilarities D was made a kernel matrix: here K = -1/2 J (D o D) J, "
        "J = I - 11'/n, that is squared entry by entry, then centred. The table has the same "
        "without squaring, -1/2 J D J, and a third matrix that is explained below."
    )


def _table(scale: Scale, found: dict[str, Row]) -> Table:
    header = ["set", "n", "matrix", "paper, %", "squared, %", "not squared, %", "similarity, %"]
    table = Table("iota of dissimilarities", header)
    for s in _asked(scale):
        printed = "" if s.iota is None else f"{s.iota:g}"
        row = found.get(s.name)
        if row is None:
            table.rows.append([s.name, "", sets.state(s.name, scale), printed, "", "", ""])
            continue
        kinds = ("iota", "not squared", "of similarities")
        origin = row["origin"].partition(":")[0]
        ours = [f"{row[kind]:.3g}" for kind in kinds]
        table.rows.append([s.name, str(row["n"]), origin, printed, *ours])
    table.notes = [
        "matrix: whether it is the paper's own. Asymmetric ones are averaged, D <- (D + D') / 2. "
        "similarity: 1 - d / max d in place of d."
    ]
    return table


def _own(found: dict[str, Row]) -> dict[str, float]:
    """The printed iota of the paper's own matrices, where nothing had to be guessed."""
    return {
        name: printed
        for name, row in found.items()
        if row["origin"] == sets.SAME and "asymmetry" not in row
        and (printed := sets.DISSIMILARITY[name].iota) is not None and printed < HALF
    }  # fmt: skip


def _compared(found: dict[str, Row]) -> str:
    own = _own(found)
    if not own:
        return "None of the paper's own symmetric matrices was measured: nothing can be compared."
    same = [name for name, p in own.items() if in_digits(found[name]["iota"], p) == f"{p:g}"]
    plain = [
        name for name, p in own.items() if in_digits(found[name]["not squared"], p) == f"{p:g}"
    ]
    without = "on none" if not plain else f"on {', '.join(plain)}"
    return (
        f"Of the paper's own symmetric matrices that are at hand ({', '.join(own)}) every printed "
        f"digit is found on {len(same)} of {len(own)}; without squaring {without}. The "
        "other matrices cannot decide it: iota grows with the number of objects, so that a part "
        "of a set has less than the whole, and equivalents are other draws."
    )


def _impossible(found: dict[str, Row]) -> str:
    printed = [(s.iota, s.name) for s in sets.DISSIMILARITY.values() if s.iota is not None]
    names = " and ".join(f"{iota:g} % for {name}" for iota, name in printed if iota > HALF)
    text = (
        f"The paper has {names}. No dissimilarity with zeros on the diagonal can have that: "
        "trace(K) = sum of d_ij^2 / 2n > 0, so the positive eigenvalues outweigh the negative and "
        "iota is below 50 %. Similarities s, taken for dissimilarities, can: where no "
        "|s_ij| exceeds s_ii the trace has the other sign, and iota is at least 50 %."
    )
    if found:
        most = max(row["iota"] for row in found.values())
        values = [row["of similarities"] for row in found.values()]
        text += (
            f" On the sets here the largest iota is {most:.1f} %, while 1 - d / max d in place of "
            f"d gives {min(values):.1f} to {max(values):.1f} %."
        )
    return text + " That the paper did so is an inference; its two matrices are not at hand."


def _symmetrised(rows: list[Row]) -> tuple[str, Table]:
    text = (
        "Some matrices are asymmetric as published, and how the paper made them symmetric is not "
        "known. It matters. Everywhere in this report the mean of the two directions is used, "
        "taken before the data are split (of new objects of coilyork one direction is known)."
    )
    table = Table("iota by the way a matrix is made symmetric, %", ["set", "n", *SYMMETRIC])
    table.rows = [
        [row["set"], str(row["n"]), *(f"{row[how]:.1f}" for how in SYMMETRIC)] for row in rows
    ]
    table.notes = ["upper, lower: one triangle is kept and mirrored."]
    return text, table


def _delta_gauss(vectors: list[Row]) -> str:
    apart = max(abs(row["iota"] - HALF) for row in vectors)
    names = ", ".join(f"{row['set']} (n = {row['n']})" for row in vectors)
    return (
        "The paper prints 50 % for all vectorial sets with the kernel delta-gauss. That is no "
        "property of the sets: k(x, x) = 0, so the trace is 0 and the negative eigenvalues "
        f"weigh as much as the positive. On uniform samples of {names} iota is 50 % up to "
        f"{apart:.0e}."
    )


def _digits(found: dict[str, Row]) -> list[Check]:
    own = _own(found)
    checks = [
        Check(
            f"iota of {name} as printed, %",
            f"{in_digits(found[name]['iota'], printed)} ({found[name]['iota']:.4g})",
            f"{printed:g}",
            in_digits(found[name]["iota"], printed) == f"{printed:g}",
        )
        for name, printed in own.items()
    ]
    none = Check("iota as printed", "none of the paper's matrices", "every digit", None)
    return checks or [none]


def _exactly_half(vectors: list[Row]) -> Check:
    what, limit = "iota of delta-gauss, off 50 %", f"<= {ROUNDING:.0e}"
    if not vectors:
        return Check(what, "", limit, None)
    apart = max(abs(row["iota"] - HALF) for row in vectors)
    return Check(what, f"{apart:.1e}", limit, apart <= ROUNDING)
