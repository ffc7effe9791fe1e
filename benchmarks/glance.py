"""Draws the pictures of "Benchmarks at a glance": python -m benchmarks.glance --write

Nothing is measured. The figures are those in the tables of objects.md, small.md, peers.md and
scale.md in benchmarks/results, and every picture holds a digest of its figures, by which a
test finds an old one. Without --write, pictures that are not those of the pages are listed.
"""

from __future__ import annotations

import argparse
import io
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.etree import ElementTree

from benchmarks.measure import COLUMNS, GRID_RULE
from benchmarks.peer_methods import PEERS
from benchmarks.summary import OURS, PEER_SECTIONS, geometric_mean
from kreinlearn.plotting.style import COLOURS, SETTINGS, log_ticks, mark, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox

RESULTS = Path(__file__).parent / "results"
SIZE = (3.7, 3.2)  # inches: as wide as a phone, and two or three abreast on a desk
FONT = 9.5
MARK = 6.5  # points
PLACES = (  # of a name beside a mark: an offset in points, and what of the name is there
    ((0, -7), "center", "top"), ((0, 6), "center", "bottom"), ((7, 0), "left", "center"),
    ((-7, 0), "right", "center"), ((5, -5), "left", "top"), ((-5, -5), "right", "top"),
    ((5, 5), "left", "bottom"), ((-5, 5), "right", "bottom"), ((0, -16), "center", "top"),
    ((0, 16), "center", "bottom"), ((7, -14), "left", "top"), ((-7, -14), "right", "top"),
)  # fmt: skip
SHORTEST = 0.05  # seconds: the pages round to tenths or hundredths
KINDS = {"Leven": "strings", "Procr": "shapes", "DTW, ": "series", "Weisf": "graphs"}


class Look(NamedTuple):
    label: str
    mark: str
    colour: str
    filled: bool = False  # ours


class Curve(NamedTuple):
    look: Look
    x: list[float]
    y: list[float]


class Panel(NamedTuple):
    """One picture: points or curves on logarithmic axes, and names beside some points."""

    title: str
    xlabel: str
    ylabel: str
    curves: list[Curve]
    names: list[tuple[str, float, float]] = []
    joined: bool = True  # whether the points of a curve are joined
    xticks: Sequence[tuple[float, str]] = ()

    @property
    def digest(self) -> str:
        """What a picture says of the figures that it was drawn from."""
        values = [(c.look.label, c.x, c.y) for c in self.curves]
        return sha256(repr((self.title, values, self.names)).encode()).hexdigest()


# Reading pages

Row = dict[str, str]


def rows_of(page: str, title: str) -> list[Row]:
    """The rows of the first table below a line that ends with a title, by names of columns."""
    lines = iter((RESULTS / f"{page}.md").read_text(encoding="utf8").splitlines())
    if not any(line.endswith(title) for line in lines):
        raise ValueError(f"{page}.md has no table {title!r}")
    table: list[list[str]] = []
    for line in lines:
        if line.startswith("|"):
            table.append([cell.strip() for cell in line.strip().strip("|").split(" | ")])
        elif table:
            break
    header, _, *rows = table
    return [dict(zip(header, row, strict=True)) for row in rows]


# Errors and seconds

METHODS = {  # columns of objects.md
    "KreinClassifier auto": Look("KreinClassifier, several distances", "o", COLOURS[0], True),
    "KreinClassifier": Look("KreinClassifier, one distance", "^", COLOURS[5], True),
    "1-NN": Look("nearest neighbour", "s", COLOURS[3]),
    "k-NN tuned": Look("k nearest neighbours, tuned", "p", COLOURS[7]),
    "SVC raw": Look("SVC, the similarity as it is", "X", COLOURS[4]),
    "SpectrumSVC flip": Look("SVC, eigenvalues flipped", "v", COLOURS[2]),
    "alternative": Look("no distance (see below)", "D", COLOURS[1]),
}
FROM_OBJECTS = ("KreinClassifier auto", "alternative")  # their seconds include all they evaluate
VECTOR_METHODS = {  # rows of small.md
    "KreinClassifier": Look("KreinClassifier, vectors", "o", COLOURS[2], True),
    "KreinRidgeClassifier": Look("KreinRidgeClassifier, vectors", "<", COLOURS[0], True),
    "KreinSVC": Look("KreinSVC, vectors", ">", COLOURS[5], True),
    "SVC, six values of C": Look("SVC, Gaussian kernel", "P", COLOURS[1]),
    "boosted trees": Look("boosted trees", "*", COLOURS[3]),
}
SECONDS, ERROR = "CPU seconds", "test error, %"


def error_panels() -> dict[str, Panel]:
    """A panel for each kind of objects: every method on every set."""
    errors = rows_of("objects", "Test error, %")
    seconds = {
        row["set"]: row
        for row in rows_of(
            "objects", "CPU seconds of a fit with its search and of predicting the test part"
        )
    }
    made = {}
    for kind in ("strings", "series", "graphs", "shapes"):
        rows = [row for row in errors if KINDS[row["distance"][:5]] == kind]
        points = {
            (row["set"], m): _point(row, seconds[row["set"]], m) for row in rows for m in METHODS
        }
        curves = [
            Curve(look, *_columns([points[row["set"], m] for row in rows]))
            for m, look in METHODS.items()
        ]
        ours = {row["set"]: points[row["set"], "KreinClassifier auto"] for row in rows}
        names = [(name.partition("_")[0], *point) for name, point in ours.items()]
        made[f"errors_{kind}"] = Panel(kind.capitalize(), SECONDS, ERROR, curves, names, False)
    return made | {"errors_vectors": vector_panel()}


def _point(errors: Row, seconds: Row, method: str) -> tuple[float, float]:
    """Seconds with those of the distances where a method is given them, and the error."""
    spent = float(seconds[method])
    if method not in FROM_OBJECTS:
        spent += float(seconds["all distances"])
    return max(SHORTEST, round(spent, 2)), float(errors[method])


def _columns(points: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [x for x, _ in points], [y for _, y in points]


def vector_panel() -> Panel:
    rows = {row["what"]: row for row in rows_of("small", "Figures") if row["case"] == "vectors"}
    curves = [
        Curve(look, [float(rows[name]["CPU s"])], [float(rows[name]["error, %"])])
        for name, look in VECTOR_METHODS.items()
    ]
    return Panel("Vectors", SECONDS, ERROR, curves, joined=False)


# Approximation

APPROXIMATIONS = {
    OURS: Look(OURS, "o", COLOURS[0], True),
    **{
        name: Look(name, shape, COLOURS[i])
        for (name, shape), i in zip(
            zip(PEERS, ("s", "^", "D", "v"), strict=True), (1, 2, 4, 3), strict=True
        )
    },
}
OVER_BEST = "error / smallest of rank k"


def approximation_panels() -> dict[str, Panel]:
    made = {}
    for _, kernels in PEER_SECTIONS.values():
        what = "Indefinite" if "indefinite" in kernels else "Definite"
        rows = rows_of("peers", f"Peers on {kernels}")
        rows = [row for row in rows if row["gets"] in ("", COLUMNS)]
        cases = rows_of("peers", f"Peers on {kernels}, l = {GRID_RULE}: cases")
        short = what.lower()
        made[f"landmarks_{short}"] = _landmark_panel(rows, f"{what}: error against columns")
        made[f"rank_{short}"] = _rank_panel(cases, f"{what}: error against rank k")
    return made


def _landmark_panel(rows: Sequence[Row], title: str) -> Panel:
    """Geometric means over all cases; where a method has fewer, it is left out."""
    curves = []
    for name, look in APPROXIMATIONS.items():
        mine = [row for row in rows if row["method"] == name and _whole(row, name)]
        values = [float(row["geometric mean of medians"]) for row in mine]
        if mine:
            curves.append(Curve(look, [_relative(row) for row in mine], values))
    ticks = [(_relative(r), r["l"].removeprefix("l = ")) for r in rows if r["method"] == OURS]
    return Panel(title, "columns", OVER_BEST, curves, xticks=ticks)


def _relative(row: Row) -> float:
    """Columns for each unit of rank, the median of the cases."""
    return float(row["its l"].removesuffix(" k"))


def _whole(row: Row, name: str) -> bool:
    """Gaussian sketches were measured on some of the cases only where l is k ln n."""
    peer = PEERS.get(name)
    return peer is None or peer.pairs is not None or "ln" not in row["l"]


def _rank_panel(rows: Sequence[Row], title: str) -> Panel:
    """Geometric means over the matrices, of the medians over seeds."""
    ranks = sorted({int(row["k"]) for row in rows})
    curves = []
    for name, look in APPROXIMATIONS.items():
        if name in rows[0]:
            values = [
                geometric_mean([float(r[name].split(" / ")[0]) for r in rows if int(r["k"]) == k])
                for k in ranks
            ]
            curves.append(Curve(look, [float(k) for k in ranks], [round(v, 4) for v in values]))
    ticks = [(float(k), str(k)) for k in ranks]
    return Panel(title, f"rank k, from {GRID_RULE} columns", OVER_BEST, curves, xticks=ticks)


# Scale

LEARNERS = {
    "KreinRidge": Look("KreinRidge", "o", COLOURS[0], True),
    "KreinRidgeClassifier": Look("KreinRidgeClassifier", "^", COLOURS[5], True),
    "KreinSVC": Look("KreinSVC", "v", COLOURS[2], True),
}
BOUND = Look("bare arithmetic", "s", COLOURS[3])


def scale_panels() -> dict[str, Panel]:
    rows = [r for r in rows_of("scale", "Fit with tuning, and prediction of the test rows")
            if r["set"] == "synthetic"]  # fmt: skip
    made = {}
    for m in sorted({int(row["m"]) for row in rows}):
        mine = [row for row in rows if int(row["m"]) == m]
        curves = _by_learner(mine, "fit, CPU s")
        bounds = {_rows(r): float(r["fit, CPU s"]) / float(r["CPU / bound"]) for r in mine}
        bare = Curve(BOUND, list(bounds), [round(v, 2) for v in bounds.values()])
        title = f"Seconds of a fit, {m:,} landmarks"
        made[f"seconds_{m}"] = Panel(title, "training rows", SECONDS, [*curves, bare])
        peaks = _by_learner(mine, "peak, MB")
        title = f"Memory of a fit, {m:,} landmarks"
        made[f"memory_{m}"] = Panel(title, "training rows", "MB above the data", peaks)
    return made


def _rows(row: Row) -> float:
    return float(row["training rows"].replace(",", ""))


def _by_learner(rows: Sequence[Row], column: str) -> list[Curve]:
    return [
        Curve(look, [_rows(r) for r in mine], [float(r[column]) for r in mine])
        for learner, look in LEARNERS.items()
        if (mine := [r for r in rows if r["learner"] == learner])
    ]


# Drawing


def drawn(panel: Panel) -> str:
    return _signed(drawing(SIZE, lambda figure: _draw(figure, panel)), panel.digest)


def _draw(figure: Figure, panel: Panel) -> None:
    axes = figure.add_subplot()
    tidy(axes)
    axes.set_title(panel.title, fontsize=FONT + 1)
    axes.set(xscale="log", yscale="log")
    axes.tick_params(labelsize=FONT)
    for i, (_, x, y) in enumerate(panel.names):  # the methods of a set hang together
        for curve in panel.curves:
            axes.plot([x, curve.x[i]], [y, curve.y[i]], color="#d5d5d5", linewidth=0.7, zorder=1)
    for curve in panel.curves:
        axes.plot(curve.x, curve.y, **_style(curve.look, panel.joined))
    _ticks(axes, panel)
    axes.set_xlabel(panel.xlabel, fontsize=FONT)
    axes.set_ylabel(panel.ylabel, fontsize=FONT)
    figure.draw_without_rendering()  # after which it is known where marks are
    _write_names(axes, panel)


def _write_names(axes: Axes, panel: Panel) -> None:
    """Beside the mark of ours, where a name covers the fewest marks and names."""
    from matplotlib.transforms import Bbox

    point = axes.figure.dpi / 72
    marks = [
        axes.transData.transform(xy) for c in panel.curves for xy in zip(c.x, c.y, strict=True)
    ]
    taken = [Bbox.from_extents(x, y, x, y).padded(MARK * point / 2) for x, y in marks]
    for name, x, y in panel.names:
        made = [
            axes.annotate(
                name, (x, y), offset, textcoords="offset points", ha=ha, va=va,
                fontsize=FONT - 1.5, zorder=1.5,
                bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.5},
            )
            for offset, ha, va in PLACES
        ]  # fmt: skip
        boxes = [one.get_window_extent() for one in made]
        covered = [
            sum(box.overlaps(other) for other in taken) + 3 * (not inside(box, axes.bbox))
            for box in boxes
        ]
        best = covered.index(min(covered))
        taken.append(boxes[best])
        for one in made[:best] + made[best + 1 :]:
            one.remove()


def inside(box: Bbox, other: Bbox) -> bool:
    return other.contains(*box.min) and other.contains(*box.max)


def _style(look: Look, joined: bool) -> dict[str, Any]:
    return {
        "linestyle": "-" if joined else "", "marker": look.mark, "color": look.colour,
        "markerfacecolor": look.colour if look.filled else "white", "markersize": MARK,
        "linewidth": 1.8 if look.filled else 1.2, "label": look.label,
    }  # fmt: skip


def _ticks(axes: Axes, panel: Panel) -> None:
    for axis, values in (
        (axes.xaxis, [x for c in panel.curves for x in c.x]),
        (axes.yaxis, [y for c in panel.curves for y in c.y]),
    ):
        room = 1.25 if axis is axes.xaxis else 1.4 if panel.names else 1.15
        low, high = min(values) / room, max(values) * room
        (axes.set_xlim if axis is axes.xaxis else axes.set_ylim)(low, high)
        mark(axis, log_ticks(low, high))
    if panel.xticks:
        axes.set_xticks([x for x, _ in panel.xticks], [text for _, text in panel.xticks])


def legend(looks: Sequence[Look]) -> str:
    """The meaning of all marks, one line each."""
    from matplotlib.lines import Line2D

    def draw(figure: Figure) -> None:
        lines = [Line2D([], [], **_style(look, joined=False)) for look in looks]
        figure.legend(handles=lines, loc="center left", fontsize=FONT, labelspacing=0.8)

    size = SIZE[0], 0.25 + 0.25 * len(looks)
    return _signed(drawing(size, draw), sha256(repr(list(looks)).encode()).hexdigest())


def _signed(svg: str, digest: str) -> str:
    return f"{svg.rstrip()}\n<!-- figures: {digest} -->\n"


# Drawings as small SVG texts

SVG, XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
FAMILY = "font-family: 'DejaVu Sans', Verdana, sans-serif"  # matplotlib measures with the first

ElementTree.register_namespace("", SVG)
ElementTree.register_namespace("xlink", XLINK)


def drawing(size: tuple[float, float], draw: Callable[[Figure], object]) -> str:
    """What ``draw`` puts on a figure of so many inches, as SVG, which is the same each time."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context({**matplotlib.rcParamsDefault, **SETTINGS}):
        figure, file = Figure(figsize=size, layout="constrained"), io.StringIO()
        draw(figure)
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(file, format="svg", metadata=nothing)
    return _lean(file.getvalue())


def _lean(svg: str) -> str:
    """A drawing with coordinates to a hundredth of a point and without a style sheet."""
    root = ElementTree.fromstring(svg)
    used = set(re.findall(r'(?:url\(|href=")#([^)"]+)', svg))
    for element in root.iter():
        for child in element.findall(f"{{{SVG}}}style"):
            element.remove(child)
        if element.get("id") not in used:
            element.attrib.pop("id", None)
        for name in ("d", "x", "y", "transform", "points"):
            if name in element.attrib:
                numbers = re.sub(r"(\.\d\d)\d+", r"\1", element.attrib[name])
                element.set(name, " ".join(numbers.split()))
        if "style" in element.attrib:
            element.set("style", re.sub(r"font-family:[^;]*", FAMILY, element.attrib["style"]))
        element.text, element.tail = (
            text if text and text.strip() else None for text in (element.text, element.tail)
        )
    root.set("style", "stroke-linejoin: round; stroke-linecap: butt")  # as in the style sheet
    return ElementTree.tostring(root, encoding="unicode") + "\n"


# The command

PANELS: tuple[Callable[[], dict[str, Panel]], ...] = (
    error_panels, approximation_panels, scale_panels,
)  # fmt: skip
LEGENDS = {
    "legend_errors": [*METHODS.values(), *VECTOR_METHODS.values()],
    "legend_approximation": list(APPROXIMATIONS.values()),
    "legend_scale": [*LEARNERS.values(), BOUND],
}


def digests() -> dict[str, str]:
    """The figures of every picture, as the pages have them now."""
    panels = {name: panel.digest for made in PANELS for name, panel in made().items()}
    legends = {name: sha256(repr(looks).encode()).hexdigest() for name, looks in LEGENDS.items()}
    return panels | legends


def pictures() -> Iterator[tuple[str, str]]:
    for made in PANELS:
        yield from ((name, drawn(panel)) for name, panel in made().items())
    yield from ((name, legend(looks)) for name, looks in LEGENDS.items())


def file_of(name: str) -> Path:
    return RESULTS / f"glance_{name}.svg"


def old() -> list[str]:
    """Pictures that are missing or not those of the pages."""
    return [
        name
        for name, digest in digests().items()
        if not file_of(name).exists() or digest not in file_of(name).read_text(encoding="utf8")
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.glance", description=__doc__)
    parser.add_argument("--write", action="store_true", help="draw all pictures")
    if parser.parse_args(arguments).write:
        for name, svg in pictures():
            file_of(name).write_text(svg, encoding="utf8")
            print(f"picture: {file_of(name).name}")
    found = old()
    if found:
        print(f"not those of the pages: {', '.join(found)}")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
