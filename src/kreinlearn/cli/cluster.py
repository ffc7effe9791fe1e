"""kreinlearn cluster: find groups of objects, without labels."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from kreinlearn.cli.messages import Talk
from kreinlearn.cli.output import require_free, say_formulas, show_json, show_table
from kreinlearn.data.tiles import take
from kreinlearn.data.validation import is_condensed, square_from_condensed
from kreinlearn.data.writing import TABLES, table_file

if TYPE_CHECKING:
    from kreinlearn.cli.data import Given

SHOWN = 60  # characters of a medoid


def run(options: argparse.Namespace, talk: Talk) -> int:
    output = options.output
    if output is not None and output.suffix not in TABLES:
        options.parser.error(f"-o {output}: it must end in one of {', '.join(TABLES)}")
    outputs = {"-o": output, "--report": options.report, "--model": options.model}
    require_free(options, outputs, [options.file])
    from kreinlearn.cli import data
    from kreinlearn.cli.fit import fit_parameters
    from kreinlearn.estimators.kmeans import KreinKMeans

    given = data.load(options, talk, streams=True)
    names = _names(options, given, talk)
    more = fit_parameters(options, talk)
    model = KreinKMeans(options.clusters, kernel=given.kernel, spectrum=options.spectrum, **more)
    matrix = model._resolved_kernel().domain.is_matrix
    if matrix and is_condensed(given.X):
        given = replace(given, X=square_from_condensed(given.X, dissimilarities=True))
    model.fit(given.X)
    rows = _rows(model, given, names)
    if output is not None:
        columns = _columns(model, given, names, options.id)
        say_formulas(columns, output, options, talk)
        with table_file(output, spreadsheet=options.spreadsheet) as write:
            write(columns)
        talk.note(f"groups: {output}")
    if options.model is not None:
        data.remember(model, given)
        model.set_params(verbose=0).save(options.model)
        talk.note(f"model: {options.model}")
    if options.report is not None:
        from kreinlearn.report.groups import write_groups

        write_groups(options.report, model, given.X, rows, options.file.name, given.shown)
        talk.note(f"report: {options.report}")
    if options.json:
        show_json(_findings(model, given, rows))
    else:
        show_table(f"{options.file.name}, {given.shown}", rows, HEADER)
    return 0


HEADER = ("group", "objects", "share", "medoid", "its row")


def _names(options: argparse.Namespace, given: Given, talk: Talk) -> list[Any] | None:
    """What --id calls the rows that are not left out."""
    if options.id is None:
        return None
    from kreinlearn.cli.data import file_of

    names = file_of(options, talk, may_be_matrix=False).column(options.id)
    return [names[row] for row in given.rows.tolist()]


def _columns(model: Any, given: Given, names: list[Any] | None, id: str | None) -> dict[str, Any]:
    """The number in the file and the group of each row, and whether it is a medoid."""
    n = len(model.labels_)
    medoid = np.zeros(n, dtype=np.intp)
    medoid[model.medoid_indices_] = 1
    named = {"row": given.rows} if names is None else {str(id): names}
    return named | {"group": model.labels_, "is_medoid": medoid}


def _rows(model: Any, given: Given, names: list[Any] | None) -> list[list[str]]:
    """One line for each group, the largest first."""
    sizes, rows = np.bincount(model.labels_, minlength=model.n_clusters_), []
    for group in np.argsort(-sizes, kind="stable"):
        place = int(model.medoid_indices_[group])
        matrix = model.kernel_.domain.is_matrix  # its row says which object it is
        shown = "" if matrix else _shown(given.X, place)
        shown = shown if names is None else str(names[place])
        share = f"{100 * sizes[group] / len(model.labels_):.1f} %"
        rows.append([str(group), f"{sizes[group]:,}", share, shown, str(given.rows[place])])
    return rows


def _shown(X: Any, place: int) -> str:
    """An object in a few characters; rows of numbers by their first entries."""
    one = take(X, [place])[0]
    if isinstance(one, np.ndarray):
        one = ", ".join(f"{value:.4g}" for value in np.ravel(one)[:4].tolist())
        return f"{one}, ..."
    text = " ".join(str(one).split())
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."


def _findings(model: Any, given: Given, rows: list[list[str]]) -> dict[str, Any]:
    return {
        "kernel": given.shown,
        "n_objects": len(model.labels_),
        "n_groups": model.n_clusters_,
        "spectrum": model.spectrum,
        "inertia": model.inertia_,
        "n_landmarks": model.n_landmarks_,
        "groups": [
            {"group": int(row[0]), "objects": int(row[1].replace(",", "")), "medoid": row[3],
             "medoid_row": int(row[4])}
            for row in rows
        ],
    }  # fmt: skip
