"""Draws the test errors of benchmarks/results/objects.md: the picture of the README.

python -m benchmarks.picture writes objects.svg beside the page. Nothing is measured: the figures
are those of the page, and the picture holds a digest of them, by which a test finds an old one.
"""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import Path

from kreinlearn.plotting.style import COLOURS, SETTINGS

PAGE = Path(__file__).parent / "results" / "objects.md"
PICTURE = PAGE.with_suffix(".svg")
METHODS = {  # column of the page -> what a reader is told, mark, colour, whether it is filled
    "1-NN": ("nearest neighbour, one distance", "s", COLOURS[3], False),
    "alternative": ("no distance: tf-idf, ROCKET, ...", "D", COLOURS[1], False),
    "KreinClassifier": ("KreinClassifier, the same distance", "^", COLOURS[5], True),
    "KreinClassifier auto": ("KreinClassifier, several distances", "o", COLOURS[0], True),
}
SIZE, FONT = (4.6, 4.6), 9.5  # inches and points, so that it can be read on a phone
KINDS = {"Leven": "strings", "Procr": "contours", "DTW, ": "series", "Weisf": "graphs"}


def errors_of(page: str) -> list[dict[str, str]]:
    """The rows of the table of test errors, by the names of its columns."""
    [table] = re.findall(r"^## Test error, %\n\n(.*?)\n\n", page, re.DOTALL | re.MULTILINE)
    header, _, *rows = (
        [cell.strip() for cell in line.strip("| ").split(" | ")] for line in table.splitlines()
    )
    return [dict(zip(header, row, strict=True)) for row in rows]


def digest(rows: list[dict[str, str]]) -> str:
    """What the picture says of the figures that it was drawn from."""
    return sha256(
        repr([[row[name] for name in ("set", *METHODS)] for row in rows]).encode()
    ).hexdigest()


def draw(rows: list[dict[str, str]], output: Path) -> None:
    """One line per set, one mark per method."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with rc_context(SETTINGS):
        figure = Figure(figsize=SIZE, layout="constrained")
        figure.get_layout_engine().set(w_pad=0.12)  # other fonts are wider
        FigureCanvasSVG(figure)
        axes = figure.add_subplot()
        for name, (label, mark, colour, filled) in METHODS.items():
            axes.plot(
                [float(row[name]) for row in rows], range(len(rows)), mark, label=label,
                color=colour, markerfacecolor=colour if filled else "white", markersize=6,
            )  # fmt: skip
        names = [f"{row['set'].partition('_')[0]} ({KINDS[row['distance'][:5]]})" for row in rows]
        axes.set_yticks(range(len(rows)), names, fontsize=FONT)
        axes.tick_params(axis="x", labelsize=FONT)
        axes.invert_yaxis()
        axes.set_xlim(0, None)
        axes.set_xlabel("test error, %", fontsize=FONT)
        figure.legend(loc="outside upper center", ncols=1, fontsize=FONT)
        about = {"Date": None, "Description": digest(rows)}
        figure.savefig(output, format="svg", metadata=about)


if __name__ == "__main__":
    draw(errors_of(PAGE.read_text(encoding="utf8")), PICTURE)
    print(f"picture: {PICTURE}")
