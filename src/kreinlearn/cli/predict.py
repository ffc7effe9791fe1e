"""kreinlearn predict: apply a model to a file of any length, a block of rows at a time."""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kreinlearn.cli import worth
from kreinlearn.cli.messages import Talk
from kreinlearn.cli.output import STDOUT, require_free, say_formulas
from kreinlearn.data.arrays import ArrayFile
from kreinlearn.data.gaps import gaps_in_words, gaps_of_block, rows_of
from kreinlearn.data.source import BATCH
from kreinlearn.data.table import Block, Table, listed
from kreinlearn.data.writing import TABLES, Write, comma_separated, harmless, table_file

ROW = "row"  # the column of row numbers, which is written if rows may be left out


class Rows(NamedTuple):
    """The objects of a block, as the model takes them, and what names them in the output.

    These are the ids that are asked for, or else the numbers of rows, if some may be left out.
    """

    X: Any
    ids: Sequence[Any] | None


def run(options: argparse.Namespace, talk: Talk) -> int:
    output = options.output
    if output != STDOUT and output.suffix not in TABLES:
        options.parser.error(f"-o {output}: it must end in one of {', '.join(TABLES)}, or be -")
    if options.file.suffix == ".krein" != options.model.suffix:
        options.parser.error(f"the model comes first: predict {options.file} {options.model}")
    if options.id in _always_written(options):
        options.parser.error(
            f"--id {options.id}: what is written has a column of that name; rename it"
        )
    require_free(options, {"-o": output}, [options.file, options.model])
    from kreinlearn.data.memory import Resources
    from kreinlearn.estimators.conformal import models_in

    model = _loaded(options.model)
    resources = replace(model.resources or Resources(), memory_budget=options.memory)
    _check(model, options)
    worth.check(model, options)
    # Columns are found by name here, and rows are passed without names.
    known = getattr(model, "feature_names_in_", None)
    for one in models_in(model):
        one.set_params(resources=resources, n_jobs=options.jobs)
        vars(one).pop("feature_names_in_", None)
    n = 0
    with _written(output, options.spreadsheet) as write:
        for rows in blocks_of(model, known, options, talk):
            columns = _columns(model, rows, options)
            say_formulas(columns, output, options, talk)
            write(columns)
            n += len(rows.X)
        if not n:
            raise ValueError(f"{options.file} has no rows")
    talk.note(f"{n:,} predictions: {'stdout' if output == STDOUT else output}")
    return 0


def _loaded(path: Path) -> Any:
    """Return the model of a file; if it holds none, say where models come from."""
    from kreinlearn.persist import ModelFormatError, load
    from kreinlearn.persist.files import is_model

    try:
        return load(path)
    except FileNotFoundError as error:
        error.add_note("kreinlearn fit writes a model")
        raise
    except ModelFormatError as error:
        if not is_model(path):
            error.add_note(
                "the model comes first, as in kreinlearn predict MODEL FILE: are the two swapped? "
                "kreinlearn fit writes a model"
            )
        raise


@contextmanager
def _written(output: Path, spreadsheet: bool) -> Iterator[Write]:
    """Write blocks of rows to a file, or to stdout as soon as they are there."""
    if output != STDOUT:
        with table_file(output, spreadsheet=spreadsheet) as write:
            yield write
        return
    text = io.TextIOWrapper(sys.stdout.buffer, "utf-8", newline="", write_through=True)
    try:
        write = comma_separated(text)
        yield harmless(write) if spreadsheet else write
    finally:
        text.detach()


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
    """Return what is written, by the name of its column; scores are evaluated once."""
    columns: dict[str, Any] = {} if rows.ids is None else {options.id or ROW: rows.ids}
    if getattr(model, "multilabel_", False):
        columns |= _label_columns(model, rows, options)
    elif not options.scores:
        columns["prediction"] = model.predict(rows.X)
    else:
        scores = model.decision_function(rows.X)
        several = scores.ndim > 1
        best = np.argmax(scores, axis=1) if several else (scores > 0).astype(np.intp)
        columns["prediction"] = model.classes_[best]
        each = scores.T if several else [scores]
        columns |= dict(zip(_named("score", model.classes_[-len(each) :]), each, strict=True))
    if options.probabilities:
        P = model.predict_proba(rows.X)
        columns |= dict(zip(_named("probability", model.classes_), P.T, strict=True))
    return columns | worth.columns(model, rows.X, options)


def _label_columns(model: Any, rows: Rows, options: argparse.Namespace) -> dict[str, Any]:
    """Return the labels of each row as a text, and the scores of all labels if they are wanted."""
    scores, names = model.decision_function(rows.X), [str(label) for label in model.classes_]
    sets = [[name for name, value in zip(names, row, strict=True) if value > 0] for row in scores]
    columns: dict[str, Any] = {
        "prediction": np.array([worth.SEPARATOR.join(one) for one in sets], object)
    }
    if options.scores:
        columns |= dict(zip(_named("score", names), scores.T, strict=True))
    return columns


def _always_written(options: argparse.Namespace) -> list[str]:
    """Columns of what is written, as far as they are known before the model is."""
    names = ["prediction"]
    names += [] if options.coverage is None else ["lower", "upper", "set"]
    names += ["novelty"] if options.novelty else []
    return names + (["explanation", "value"] if options.explain else [])


def _named(what: str, classes: Any) -> list[str]:
    return [f"{what}_{label}" for label in classes]


# Rows


def blocks_of(
    model: Any, known: Sequence[str] | None, options: argparse.Namespace, talk: Talk
) -> Iterator[Rows]:
    """Read blocks of rows of the columns that the model was fitted on, by their known names."""
    from kreinlearn.cli.data import file_of, require_names

    file = file_of(options, talk, may_be_matrix=True)
    require_names(options.column or (), file, options)
    if isinstance(file, ArrayFile):
        yield from _array_rows(file, model, options)
        return
    _compare_columns(model, known, options, talk)
    names, convert = _wanted(model, known, file, options)
    ids = [] if options.id is None else [options.id]
    for block in file.blocks([*names, *ids]):
        found = _gaps(model.kernel_, file, names, block, options)
        if found and not options.drop_missing:
            said = gaps_in_words(found, file)
            raise ValueError(f"{options.file}: {said}; fill in, or leave out with --drop-missing")
        numbers = np.arange(block.first, block.first + len(block.columns[0]))
        if found:
            left_out = rows_of(found)
            numbers = np.setdiff1d(numbers, left_out)
            talk.note(f"left out: {gaps_in_words(found, file)}")
            block = block.without(left_out - block.first)
        if block.columns[0]:
            unnamed = numbers.tolist() if options.drop_missing else None
            yield Rows(convert(block), block.columns[-1] if ids else unnamed)


def _gaps(
    kernel: Any, file: Table, names: Sequence[str], block: Block, options: argparse.Namespace
) -> dict[str, list[int]]:
    """Find empty cells; kernels on records take them, unless --drop-missing is given."""
    from kreinlearn.kernels.fields import fields_in

    take = kernel.domain.is_records and not options.drop_missing
    return {} if take and fields_in(kernel) else gaps_of_block(file, names, block, whole=take)


def _array_rows(file: ArrayFile, model: Any, options: argparse.Namespace) -> Iterator[Rows]:
    from kreinlearn.cli.data import variable

    X = file.get(variable(file, options, model.kernel_))
    ids = None if options.id is None else file.column(options.id)
    if ids is not None and len(ids) != len(X):
        raise ValueError(f"--id {options.id}: {len(ids)} values for {len(X)} objects")
    for start in range(0, len(X), BATCH):
        stop = start + BATCH
        yield Rows(X[start:stop], None if ids is None else ids[start:stop])


def _compare_columns(
    model: Any, known: Sequence[str] | None, options: argparse.Namespace, talk: Talk
) -> None:
    """Refuse --column for records, whose fields have names; note one that fit did not see."""
    from kreinlearn.estimators.access import column_name

    if options.column and model.kernel_.domain.is_records:
        options.parser.error(
            f"--column: {options.model} finds its columns by the names that they had in fit; "
            "leave the flag out, and rename columns of the file if need be"
        )
    column = column_name(model)
    fitted = [column] if column is not None else [] if known is None else list(known)
    if options.column and fitted and options.column != fitted:
        talk.note(
            f"{options.model} was fitted on {listed(fitted)}, and is applied to "
            f"{listed(options.column)} (--column)"
        )


def _wanted(
    model: Any, known: Sequence[str] | None, table: Table, options: argparse.Namespace
) -> tuple[Sequence[str], Callable[[Block], Any]]:
    """Return columns by the names they had in fit, or as --column says, and what reads them."""
    from kreinlearn.cli.data import object_columns
    from kreinlearn.estimators.access import column_name

    kernel, column = model.kernel_, options.column
    if kernel.domain.is_records:
        return _record_columns(kernel, table)
    if known is None and kernel.domain.is_objects:
        name = column[0] if column else column_name(model)
        name = name or object_columns(table, *table.split([options.id]), text=True)[0]
        return [name], table.pick(name).as_objects
    if known is None:
        known, _ = table.split([options.id])
    names = column or list(known)
    return names, table.pick(names).as_numbers


def _record_columns(kernel: Any, table: Table) -> tuple[list[str], Callable[[Block], Any]]:
    """Return the columns of records, and what reads them: numbers where these were numbers."""
    from kreinlearn.kernels.fields import fields_in

    fields, whole = fields_in(kernel), _of_whole_rows(kernel)
    names = kernel.domain.columns_in(table) if fields else []
    names = list(dict.fromkeys([*names, *(name for one in whole for name in one.columns_)]))
    numeric = {str(field.name) for field in fields if field.numeric_}
    for one in whole:
        known = zip(one.columns_, one.numeric_, strict=True)
        numeric |= {name for name, number in known if number and name not in one.dates_}
    picked = table.pick(names)
    return names, partial(picked.as_records, numeric=numeric, lists=picked.list_columns())


def _of_whole_rows(kernel: Any) -> list[Any]:
    """Return the kernels that compare whole rows, whether they stand alone or are parts."""
    from kreinlearn.kernels import Field

    if isinstance(kernel, Field):
        return []
    if hasattr(kernel, "columns_"):
        return [kernel]
    return [one for part in kernel.inner for one in _of_whole_rows(part)]
