"""kreinlearn predict: a model on a file of any length, a block of rows at a time."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from kreinlearn.cli.messages import Talk
from kreinlearn.cli.output import STDOUT, require_free
from kreinlearn.cli.writing import SUFFIXES, written
from kreinlearn.data.reading import CsvSheet, Sheet, Variables, gathering
from kreinlearn.data.reading.sheets import ROWS


class Rows(NamedTuple):
    """Objects of a block, as the model takes them, and their ids if asked for."""

    X: Any
    ids: Sequence[Any] | None


def run(options: argparse.Namespace, talk: Talk) -> int:
    output = options.output
    if output != STDOUT and output.suffix not in SUFFIXES:
        options.parser.error(f"-o {output}: it must end in one of {', '.join(SUFFIXES)}, or be -")
    if options.file.suffix == ".krein" != options.model.suffix:
        options.parser.error(f"the model comes first: predict {options.file} {options.model}")
    if options.id == "prediction":
        options.parser.error(
            "--id prediction: what is written has a column of that name; rename it"
        )
    require_free(options, {"-o": output}, [options.file, options.model])
    import kreinlearn
    from kreinlearn.cli.data import open_file

    if not options.model.exists():
        raise FileNotFoundError(f"{options.model}: there is no such file; fit writes one")
    model = kreinlearn.load(options.model)
    model.set_params(memory_budget=options.memory, n_jobs=options.jobs)
    _check(model, options)
    blocks = rows_of(model, open_file(options), options)
    # Columns are found by name here, and rows are passed without.
    warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
    n = 0
    with written(output) as write:
        for rows in blocks:
            write(_columns(model, rows, options))
            n += len(rows.X)
            talk.detail(f"{n:,} rows")
        if not n:
            raise ValueError(f"{options.file} {gathering.NO_ROW}")
    talk.note(f"{n:,} predictions: {'stdout' if output == STDOUT else output}")
    return 0


def _check(model: Any, options: argparse.Namespace) -> None:
    if not hasattr(model, "predict"):
        raise ValueError(f"{options.model} holds a {type(model).__name__}, which predicts nothing")
    classifies = hasattr(model, "classes_")
    if (options.scores or options.probabilities) and not classifies:
        raise ValueError(f"{options.model} predicts numbers: it has no scores or probabilities")
    if options.probabilities and not hasattr(model, "predict_proba"):
        raise ValueError(
            f"{options.model} was fitted without --probabilities; fit it again with that flag"
        )


def _columns(model: Any, rows: Rows, options: argparse.Namespace) -> dict[str, Any]:
    """What is written, by the name of its column; scores are evaluated once."""
    found: dict[str, Any] = {} if rows.ids is None else {options.id: rows.ids}
    if not options.scores:
        found["prediction"] = model.predict(rows.X)
    else:
        scores = model.decision_function(rows.X)
        several = scores.ndim > 1
        best = np.argmax(scores, axis=1) if several else (scores > 0).astype(np.intp)
        found["prediction"] = model.classes_[best]
        columns = scores.T if several else [scores]
        found |= dict(zip(_named("score", model.classes_[-len(columns) :]), columns, strict=True))
    if options.probabilities:
        P = model.predict_proba(rows.X)
        found |= dict(zip(_named("probability", model.classes_), P.T, strict=True))
    return found


def _named(what: str, classes: Any) -> list[str]:
    return [f"{what}_{label}" for label in classes]


# Rows


def rows_of(model: Any, file: Sheet | Variables, options: argparse.Namespace) -> Iterator[Rows]:
    """Blocks of rows of the columns that the model was fitted on."""
    if isinstance(file, Variables):
        return _array_rows(file, options, model)
    return _sheet_rows(model, file, options)


def _array_rows(file: Variables, options: argparse.Namespace, model: Any) -> Iterator[Rows]:
    from kreinlearn.cli.data import variable

    X = file.get(variable(file, options, model.kernel_))
    ids = None if options.id is None else np.asarray(file.get(options.id)).ravel().tolist()
    if ids is not None and len(ids) != len(X):
        raise ValueError(f"--id {options.id}: {len(ids)} values for {len(X)} objects")
    for start in range(0, len(X), ROWS):
        stop = start + ROWS
        yield Rows(X[start:stop], None if ids is None else ids[start:stop])


def _sheet_rows(model: Any, sheet: Sheet, options: argparse.Namespace) -> Iterator[Rows]:
    if isinstance(sheet, CsvSheet) and sheet.header and sheet.numbered:
        sheet = sheet.without_header()
    names, convert = _wanted(model, sheet, options)
    ids = [] if options.id is None else [options.id]
    for block in sheet.blocks([*names, *ids]):
        yield Rows(convert(block), block.columns[-1] if ids else None)


def _wanted(
    model: Any, sheet: Sheet, options: argparse.Namespace
) -> tuple[Sequence[str], gathering.Convert]:
    """Columns by the names they had in fit, or as --column says."""
    kernel, chosen = model.kernel_, options.column
    if kernel.domain.is_records:
        names, is_number = list(kernel.columns_), kernel.numeric_
        numeric = {name for name, one in zip(names, is_number, strict=True) if one}
        return names, gathering.records(sheet, names, numeric)
    column = getattr(model, "_column", None)
    known = getattr(model, "feature_names_in_", None)
    if known is None and kernel.domain.is_objects:
        name = chosen[0] if chosen else column or _only_objects(sheet, options)
        return [name], gathering.objects(sheet, name)
    names = chosen or (list(known) if known is not None else _numbers(sheet, options))
    return names, gathering.number_rows(sheet, names)


def _only_objects(sheet: Sheet, options: argparse.Namespace) -> str:
    kinds = gathering.kinds_of(sheet, [options.id])
    found = kinds.others or kinds.numbers
    if len(found) != 1:
        raise ValueError(f"{sheet.path}: name the column of objects, --column: {', '.join(found)}")
    return found[0]


def _numbers(sheet: Sheet, options: argparse.Namespace) -> list[str]:
    return gathering.kinds_of(sheet, [options.id]).numbers
