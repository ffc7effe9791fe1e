"""The page on groups: how large they are, who represents them, and where they lie."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kreinlearn.data.tiles import length, take
from kreinlearn.data.writing import replacing
from kreinlearn.estimators.access import feature_map, new_rows, projected
from kreinlearn.plotting.style import MISSING
from kreinlearn.report import model
from kreinlearn.report.html import to_html
from kreinlearn.report.model import Document, Picture, Section, Table, Verdict, literal
from kreinlearn.report.svg import drawing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from kreinlearn.estimators.kmeans import KreinKMeans

DRAWN = 2000  # objects on the map
NAMED = 10  # groups with a colour of their own
HEADER = ("group", "objects", "share", "medoid", "its row")
COST = {
    "shift": "the given distances, shifted by a constant, which leaves the best groups as they are",
    "flip": "distances whose negative eigenvalues have become positive",
}


def write_groups(
    path: Path, fitted: KreinKMeans, X: Any, rows: list[list[str]], source: str, kernel: str
) -> None:
    """Write one HTML page on the groups of X; ``rows`` are those of its table."""
    sizes = np.bincount(fitted.labels_, minlength=fitted.n_clusters_)
    verdict = (
        f"{len(fitted.labels_):,} objects in {fitted.n_clusters_} groups of {sizes.min():,} to "
        f"{sizes.max():,}."
    )
    note = (
        "The medoid of a group is the object that is nearest to its mean. The groups minimise the "
        f"sum of squared distances to the means, for {COST[fitted.spectrum]}."
    )
    cells = [[literal(cell) for cell in row] for row in rows]
    blocks = [Table("Groups, the largest first", HEADER, cells, [note]), _map(fitted, X)]
    items = {"objects": source, "kernel": kernel, **model.made_by()}
    how = model.bulleted(f"{name}: {literal(text)}" for name, text in items.items() if text)
    sections = [Section("The groups", blocks), Section("How this was made", [how])]
    page = to_html(Document(literal(f"Groups: {source}"), [Verdict(literal(verdict))], sections))
    with replacing(path) as temporary:
        temporary.write_text(page, encoding="utf8")


def _map(fitted: KreinKMeans, X: Any) -> Picture | str:
    """The two features of largest absolute eigenvalue, of all objects or a sample of them."""
    if fitted.rank_ < 2:
        return "There is no map of the groups: the objects differ in fewer than two dimensions."
    n = len(fitted.labels_)
    some = np.arange(n)
    if n > DRAWN and length(X) == n:
        others = np.random.default_rng(0).choice(n, DRAWN, replace=False)
        some = np.union1d(others, fitted.medoid_indices_)
    axes, mean = feature_map(fitted)
    given = X if len(some) == n else take(X, some)
    F = projected(fitted, *new_rows(fitted, given), axes.W[:, :2]) - np.ravel(mean)[:2]
    labels, medoids = fitted.labels_[some], np.searchsorted(some, fitted.medoid_indices_)
    signs = ["positive" if sign > 0 else "negative" for sign in fitted.signature_[:2]]

    def draw(figure: Figure) -> None:
        from kreinlearn.plotting.style import COLOURS, MARKS

        ax = figure.add_subplot()
        for group in range(fitted.n_clusters_):
            here, j = labels == group, group % NAMED
            ax.scatter(F[here, 0], F[here, 1], s=10, alpha=0.6, linewidths=0,
                       color=COLOURS[j % len(COLOURS)], marker=MARKS[j % len(MARKS)])  # fmt: skip
        at = F[medoids]
        ax.scatter(at[:, 0], at[:, 1], s=60, facecolors="none", edgecolors="black")
        for group, place in enumerate(at):
            ax.annotate(str(group), place, xytext=(6, 5), textcoords="offset points")
        ax.set(xlabel=f"axis 1 ({signs[0]})", ylabel=f"axis 2 ({signs[1]})")

    caption = (
        f"A map of {len(some):,} objects on the two axes of largest absolute eigenvalue. Rings are "
        "medoids, with the numbers of their groups. Groups that overlap here may lie apart on "
        "other axes."
    )
    alt = f"Scatter plot of objects in {fitted.n_clusters_} groups, whose medoids are numbered."
    try:
        return Picture("groups", caption, alt, drawing((6.4, 4.4), draw), fluid=True)
    except ImportError:
        return f"A picture is not here: {MISSING}."
