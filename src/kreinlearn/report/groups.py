"""The page on groups: how large they are, who represents them, and where they lie."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kreinlearn.data.tiles import length, take
from kreinlearn.estimators.access import feature_map, new_rows, projected
from kreinlearn.plotting import EmbeddingDisplay
from kreinlearn.report.model import Block, Page, Table
from kreinlearn.report.pages import drawn, made_of, write_page

if TYPE_CHECKING:
    from kreinlearn.estimators.kmeans import KreinKMeans

DRAWN = 2000  # objects on the map
HEADER = ("group", "objects", "share", "medoid", "its row")
COST = {
    "shift": "the given distances, shifted by a constant, which leaves the best groups as they are",
    "flip": "distances whose negative eigenvalues have become positive",
}


def write_groups(
    path: Path, fitted: KreinKMeans, X: Any, rows: list[list[str]], source: str, kernel: str
) -> None:
    """Write one page on the groups of X; ``rows`` are those of its table."""
    sizes = np.bincount(fitted.labels_, minlength=fitted.n_clusters_)
    verdict = (
        f"{len(fitted.labels_):,} objects in {fitted.n_clusters_} groups of {sizes.min():,} to "
        f"{sizes.max():,}."
    )
    note = (
        "The medoid of a group is the object that is nearest to its mean. The groups minimise the "
        f"sum of squared distances to the means, for {COST[fitted.spectrum]}."
    )
    sections: dict[str, list[Block]] = {
        "The groups": [Table("Groups, the largest first", HEADER, rows, [note]), _map(fitted, X)],
        "How this was made": [made_of(kernel, source)],
    }
    write_page(path, Page(f"Groups: {source}", verdict, sections))


def _map(fitted: KreinKMeans, X: Any) -> Block:
    """The two axes of largest absolute eigenvalue, with all objects or a sample of them."""
    if fitted.rank_ < 2:
        return "There is no map of the groups: the objects differ in fewer than two dimensions."
    n = len(fitted.labels_)
    some = np.arange(n)
    if n > DRAWN and length(X) == n:
        some = np.sort(np.random.default_rng(0).choice(n, DRAWN, replace=False))
    axes, mean = feature_map(fitted)
    given = X if len(some) == n else take(X, some)
    F = projected(fitted, *new_rows(fitted, given), axes.W[:, :2]) - np.ravel(mean)[:2]
    caption = (
        f"A map of {len(some):,} objects on the two axes of largest absolute eigenvalue. Groups "
        "that overlap here may lie apart on other axes."
    )
    alt = f"Scatter plot of objects in {fitted.n_clusters_} groups."
    return drawn(caption, alt, EmbeddingDisplay(F, axes.Lambda[:2], fitted.labels_[some]))
