"""The report of the scale benchmark: tables, checks, and a drawing of seconds and memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks import scale, scale_sets, tables
from benchmarks.scale_fit import BUDGET, HERE, LEARNERS
from benchmarks.scale_sets import LABELS
from benchmarks.timing import Row
from kreinlearn.data.memory import budget_bytes
from reproduction.figures import Line, Panel, drawn
from reproduction.report import Check, Document, Section, Table, provenance, to_markdown
from reproduction.tasks import Outcome

HEADING = "Scale"
GROWTH = 10.5  # seconds of a fit, ten times the rows
BESIDE = 1.0  # load of other work that is worth a word
FLAT = 100.0  # bytes more for a row more: targets, folds and what scikit-learn copies of them
FAST_SUMS = (
    "where the processor has AVX-512 the bare sums take two thirds of the time that they take "
    "elsewhere, and all else as long as there."
)
REASONS = {  # of what is missed, by a part of the claim
    "growth of the fit, 1e+05 to 1e+06 rows: KreinSVC": "memory for rows near the margin that is "
    "used for the first time, and perhaps a Newton pass more.",
    "KreinSVC on": "every Newton pass evaluates all kernel values again; with seven classes, sums "
    "of the rows that change sides come on top.",
    "penalties given, n =": "the choice of landmarks and the eigendecompositions have one thread "
    "most of the time.",
    ", tuned, n =": "landmarks and eigendecompositions have one thread most of the time; KreinSVC "
    "is also tuned on a sample, evaluates all kernel values again in every Newton pass, and sums "
    "rows that change sides.",
    "memory above X, 1e+06 rows": "kernel values of ten rows per landmark are held, beside the "
    "sums of all folds in several levels of the tree.",
    "m = 30": "what Python does for each tile, where 30 landmarks leave little else to do.",
    "requests a second": "Python runs one thread at a time, and threads wait for one another.",
    "Dask (2 processes": "round trips, the sums that are sent, and memory that workers give back "
    "and map again.",
    "over the bound, 1e+06 rows: KreinRidge": "where the processor has AVX-512 the bare sums take "
    "two thirds of the time that they take elsewhere, and the rest of a fit as long as there; the "
    "bound is measured on 8,192 rows, and varies with the machine.",
    "whole fit": FAST_SUMS,
    "prediction pass": FAST_SUMS,
    "leverage landmarks": FAST_SUMS,
    "Gram pass": FAST_SUMS,
}
LONGEST = 120.0  # wall seconds of the fit from Parquet
FROM_PARQUET = ("parquet", 10**7, 500, "KreinRidgeClassifier")
OVER_BOUND = {  # the most that CPU seconds of a tuned fit may be over the bare bound
    ("synthetic", 10**6, 1000, "KreinRidge"): 1.2,
    ("synthetic", 10**6, 1000, "KreinRidgeClassifier"): 1.2,
    ("synthetic", 10**6, 500, "KreinSVC"): 3.0,
    ("synthetic", 10**6, 1000, "KreinSVC"): 3.5,
    ("covertype", 531_012, 500, "KreinSVC"): 6.0,
    ("npy", 25_000_000, 30, "KreinRidge"): 2.0,
}
MEMORY = {  # megabytes
    ("synthetic", 10**6, 1000, "KreinRidge"): 350.0,
    FROM_PARQUET: 500.0,
    ("parquet", 10**7, 500, "KreinSVC"): budget_bytes(BUDGET) / 1e6,
}
FALKON = Row(
    "Falkon (CPU, Gaussian kernel) at n = 1e5, m = 500", "not measured", ">= 9 x faster", None,
    "it cannot be installed from PyPI",
)  # fmt: skip

Found = dict[str, Any]  # of one fit


def document(
    found: Sequence[Outcome],
    command: str,
    missing: list[str],
    *,
    whole: bool,
    first: Outcome | None,
) -> Document:
    """The report; ``whole`` tells that the sizes are those of the targets, not the quick ones.

    ``first`` is what was measured first.
    """
    fits = [one.rows[0] for one in found if one.key.startswith("fit/")]
    rows = [Row(**row) for one in found if one.key.startswith("part/") for row in one.rows]
    minutes = sum(one.cpu for one in found) / 60
    about = f"The measurements took {minutes:.0f} minutes of CPU time in all."
    # fmt: off
    lead = [provenance(command, sorted({one.commit for one in found})),
            f"{load_before(first)} {about}",
            " ".join((scale.__doc__ or "").splitlines()[2:]),
            " ".join((scale_sets.__doc__ or "").splitlines()[2:]), *disturbed(fits), *missing]
    # fmt: on
    first = Section("Fits", [fit_table(fits), *drawings(fits)], list(checks(fits, whole)))
    second = Section("Targets and peers", checks=[check(row, whole) for row in rows if row.target])
    if rows:
        second.checks.append(check(FALKON, whole))
        second.blocks.append(peer_table([row for row in rows if not row.target]))
    for section in (first, second):
        section.blocks += list(reasons(section.checks))
    return Document(HEADING, list(lead), [first, second])


def load_before(first: Outcome | None) -> str:
    """How busy the machine was before the first measurement; later ones follow our own work."""
    if first is None or first.load is None:
        return "How busy the machine was before the first measurement is not known."
    return f"Load average of the minute before the first measurement: {first.load:.2f}."


def disturbed(fits: Sequence[Found]) -> Iterator[str]:
    """A warning if other work ran at the same time as the measurements."""
    loads = [one["load"] - one["workers"] for one in fits]
    if max(loads, default=0.0) > BESIDE:
        low, high = (pick(one["load"] for one in fits) for pick in (min, max))
        yield (
            f"The machine was not quiet: load averages from {low:.1f} to {high:.1f} beside the "
            "fits. Threads of one process then share a core with that work, so wall seconds are "
            "too long, by up to the number of cores. CPU seconds and their ratios are less "
            "disturbed, but a fit below its own bound, or Dask far below this process, is such a "
            "disturbance and no gain: both are to be measured again where nothing else runs."
        )


def reasons(found: Sequence[Check]) -> Iterator[str]:
    for part, reason in REASONS.items():
        missed = [check.what for check in found if check.holds is False and part in check.what]
        if missed:
            yield f"Missed: {'; '.join(missed)}. Why: {reason}"


# Fits


def fit_table(fits: Sequence[Found]) -> Table:
    header = (
        "set", "training rows", "columns", "m", "learner", "where", "fit, CPU s",
        "of these in the system", "fit, wall s",
        "CPU / bound", "wall / (bound / cores)", "kernel values / (n m)", "Newton passes",
        "peak, MB", "predict, CPU s", "predict, wall s", "test error", "linear", "constant",
        "best possible", "load",
    )  # fmt: skip
    return Table(
        "Fit with tuning, and prediction of the test rows",
        header,
        [cells(one) for one in fits],
        [
            f'memory_budget="{BUDGET}". Test errors are shares of wrong classes in per cent, of '
            "KreinRidge the root of the mean square; beside them those of a linear model (ridge "
            "regression, or a classifier by it), of a constant, and of the signal without noise.",
            "Kernel values above 1 (n m) are rows evaluated again: KreinSVC keeps 128 MB of those "
            "of vectors with few columns, and evaluates the others in every Newton pass.",
            "Seconds in the system are mostly those of memory that is used for the first time: a "
            "virtual machine may have to ask its host for every page of it.",
            "On Dask two workers of one thread each read the Parquet files; CPU seconds and memory "
            "are those of all three processes together, and kernel values are not counted.",
            "Seconds up to 1,000,000 rows are medians of three fits, others of one; load is the "
            "average over the minute before the end of the case.",
        ],
    )


def cells(one: Found) -> list[str]:
    def shown(value: float | None) -> str:
        if value is None:
            return ""
        return f"{100 * value:.2f} %" if one["kind"] == LABELS else f"{value:.4g}"

    errors = [shown(one.get(k)) for k in ("error", "linear", "constant", "best")]
    passes = "" if one["passes"] is None else str(one["passes"])
    evaluated = "" if one["evaluated"] is None else f"{one['evaluated']:.2f}"
    system = "" if one.get("system") is None else f"{one['system']:.2f}"
    wall = one["wall"] * one["workers"] / one["bound"]
    return [
        one["set"], f"{one['n']:,}", str(one["d"]), str(one["m"]), one["learner"], place_of(one),
        f"{one['cpu']:.2f}", system, f"{one['wall']:.2f}", f"{one['cpu'] / one['bound']:.2f}",
        f"{wall:.2f}", evaluated, passes, f"{one['peak']:.0f}",
        f"{one['predict_cpu']:.2f}", f"{one['predict_wall']:.2f}", *errors, f"{one['load']:.1f}",
    ]  # fmt: skip


def checks(fits: Sequence[Found], whole: bool) -> Iterator[Check]:
    here = [one for one in fits if place_of(one) == HERE]
    for name in ("synthetic", "npy"):
        for learner in LEARNERS:
            for m in dict.fromkeys(one["m"] for one in here):
                case = name, m, learner
                mine = {one["n"]: one for one in here if size_of(one, "set", "m") == case}
                if len(mine) > 1:
                    which = f"{learner}, m = {m}" + ", from .npy" * (name == "npy")
                    yield growth_of(mine, which, whole)
                    yield memory_of(mine, which, whole)
    for one in here:
        yield from checks_of_one(one)
    worse = [one for one in fits if one["error"] >= min(one["linear"], one["constant"])]
    named = "; not " + ", ".join(case_of(one) for one in worse) if worse else ""
    yield Check(
        "fewer errors than a linear model and a constant",
        f"{len(fits) - len(worse)} of {len(fits)} fits{named}",
        "all",
        not worse if fits else None,
    )


def place_of(one: Found) -> str:
    return str(one.get("where", HERE))


def size_of(one: Found, *names: str) -> tuple[Any, ...]:
    return tuple(one[name] for name in (*names, "learner"))


def checks_of_one(one: Found) -> Iterator[Check]:
    """The limits that single fits have."""
    size, what = size_of(one, "set", "n", "m"), f"{one['n']:.2g} rows: {case_of(one)}"
    if size in MEMORY:
        most, peak = MEMORY[size], one["peak"]
        yield Check(f"memory above X, {what}", f"{peak:.0f} MB", f"<= {most:g} MB", peak <= most)
    if size == FROM_PARQUET:
        wall, good = one["wall"], one["wall"] <= LONGEST
        yield Check(f"wall seconds, {what}", f"{wall:.0f} s", f"<= {LONGEST:g} s", good)
    if size in OVER_BOUND:
        ratio, most = one["cpu"] / one["bound"], OVER_BOUND[size]
        limit, good = f"<= {most:g}", ratio <= most
        yield Check(f"CPU seconds over the bound, {what}", f"{ratio:.2f} x", limit, good)


def case_of(one: Found) -> str:
    return f"{one['learner']} on {one['set']}, m = {one['m']}"


def growth_of(mine: dict[int, Found], which: str, whole: bool) -> Check:
    """How CPU seconds grow with ten times the rows: from 1e5 to 1e6 if both were measured."""
    few = min(mine)
    many = 10 * few if 10 * few in mine else max(mine)
    growth = mine[many]["cpu"] / mine[few]["cpu"]
    what = f"growth of the fit, {few:.2g} to {many:.2g} rows: {which}"
    judged = whole and many == 10 * few
    return Check(what, f"{growth:.2f} x", f"<= {GROWTH}", growth <= GROWTH if judged else None)


def memory_of(mine: dict[int, Found], which: str, whole: bool) -> Check:
    """Memory per row: least squares store no row, KreinSVC stores rows up to the budget."""
    few, many = min(mine), max(mine)
    peaks = mine[few]["peak"], mine[many]["peak"]
    if which.startswith("KreinSVC"):
        most = max(one["peak"] for one in mine.values())
        limit = budget_bytes(BUDGET) / 1e6
        return Check(f"peak of memory: {which}", f"{most:.0f} MB", f"<= {BUDGET}", most <= limit)
    grown = 1e6 * (peaks[1] - peaks[0]) / (many - few)
    shown = f"{grown:.0f} bytes a row more ({peaks[0]:.0f} to {peaks[1]:.0f} MB)"
    what = f"flat memory, {few:.2g} to {many:.2g} rows: {which}"
    return Check(what, shown, f"<= {FLAT:g} bytes", grown <= FLAT if whole else None)


# Targets and peers


def check(row: Row, whole: bool) -> Check:
    found = f"{row.measured}; {row.note}" if row.note else row.measured
    return Check(row.what, found, row.target, row.holds if whole else None)


def peer_table(rows: Sequence[Row]) -> Table:
    cells = [[row.what, row.measured, row.note] for row in rows]
    return Table("What stands beside", ("what", "measured", "note"), cells)


# The drawing


def drawings(fits: Sequence[Found]) -> list[Any]:
    made = [one for one in fits if one["set"] == "synthetic"]
    if not made:
        return []
    landmarks = list(dict.fromkeys(one["m"] for one in made))
    panels = [seconds_panel(made, m) for m in landmarks] + [
        memory_panel(made, m) for m in landmarks
    ]
    return [
        drawn(
            "scale", panels, columns=len(panels), xlabel="training rows", ylabel="", xlog=True,
            ylog=True, caption="Seconds of CPU time of a fit with its tuning, and peak of memory "
            "above that before the fit, against the number of rows (synthetic set).",
            alt="Seconds of every learner and of the bare bound, and megabytes, over rows; the "
            "table of fits has the numbers.",
        )
    ]  # fmt: skip


def seconds_panel(made: Sequence[Found], m: int) -> Panel:
    bounds = {one["n"]: one["bound"] for one in made if one["m"] == m}
    bare = Line("bare bound", list(bounds), list(bounds.values()), dashed=True)
    return Panel(f"fit, s of CPU, m = {m}", [*lines(made, m, "cpu"), bare])


def memory_panel(made: Sequence[Found], m: int) -> Panel:
    rows = sorted({one["n"] for one in made if one["m"] == m})
    budget = [budget_bytes(BUDGET) / 1e6] * len(rows)
    return Panel(
        f"memory, MB, m = {m}",
        [*lines(made, m, "peak"), Line("memory budget", rows, budget, dashed=True)],
    )


def lines(made: Sequence[Found], m: int, what: str) -> list[Line]:
    return [
        Line(learner, [one["n"] for one in mine], [one[what] for one in mine])
        for learner in LEARNERS
        if (mine := [one for one in made if (one["m"], one["learner"]) == (m, learner)])
    ]


# Output


def show(document: Document) -> None:
    document.show(tables.console())


def write(document: Document, path: Path) -> None:
    """Write the page, and the drawing beside it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(to_markdown(document, "."), encoding="utf8")
    for picture in document.pictures:
        path.with_suffix(".svg").write_text(picture.svg, encoding="utf8")
