"""Predictions that go to a file in parts: neither the rows nor the results are held in memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from kreinlearn.data.tiles import TILE, Part, length
from kreinlearn.data.writing import TABLES, npy_file, table_file
from kreinlearn.distributed.entrance import results_in_parts
from kreinlearn.estimators.base import KreinEstimator
from kreinlearn.kernels.base import Array

MOST_TILES = 32  # in a part
SHARE = 8  # the results of a part take at most one part in eight of the budget
METHODS = ("predict", "decision_function", "predict_proba", "transform")
SUFFIXES = (".npy", *TABLES)

Method = Callable[[Any], Any]  # of a fitted estimator


def predict_to(
    estimator: KreinEstimator, X: Any, path: str | os.PathLike[str], method: str = "predict", *,
    spreadsheet: bool = False,
) -> Path:  # fmt: skip
    """Predict for X and write the results to a file, one part at a time.

    The values are those of ``estimator.predict(X)``. A file of that name is replaced at the end,
    when everything is written; a run that fails leaves it as it was.

    Parameters
    ----------
    estimator : estimator of this package
        It must be fitted.
    X : array, list of objects, path, ``table(...)``, ``Blocks(...)`` or Dask collection
        Whatever the method of the estimator takes. Of a Dask collection a few blocks are
        evaluated at a time, and only their results come here. Work that blocks have in common,
        such as a shuffle, is done again for each of them, so persist the collection before.
    path : str or path
        The file to write. The end of its name decides on the format: .npy, .csv, .tsv, .jsonl or
        .parquet.
    method : {"predict", "decision_function", "predict_proba", "transform"}, default="predict"
        The method of the estimator that is called.
    spreadsheet : bool, default=False
        Whether a .csv or .tsv file is meant for a spreadsheet, which would run a label such as
        "=1+1" or "@SUM(A1)" as a formula. If True, texts that begin so are written with an
        apostrophe before them.

    Returns
    -------
    path : Path
        The file that was written.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from pathlib import Path
    >>> from kreinlearn import KreinRidge, predict_to
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> model = KreinRidge(random_state=0).fit(X, X[:, 0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.load(predict_to(model, X, Path(folder) / "predicted.npy")).shape
    (100,)
    """
    path = Path(path)
    _require_known(estimator, path, method)
    apply: Method = getattr(estimator, method)
    room = estimator._budget() // SHARE
    values = results_in_parts(apply, X, room, partial(_parts, estimator, X, apply, room))
    first = next(values, None)
    if first is None:
        raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required")
    if path.suffix == ".npy":
        with npy_file(path) as write:
            for part in chain([first], values):
                write(part)
        return path
    names = _names(estimator, method, first)
    with table_file(path, spreadsheet=spreadsheet) as write_block:
        for part in chain([first], values):
            columns = part.reshape(len(part), -1).T
            write_block(dict(zip(names, columns, strict=True)))
    return path


def _require_known(estimator: Any, path: Path, method: str) -> None:
    if path.suffix not in SUFFIXES:
        raise ValueError(f"path={str(path)!r} must end in one of {', '.join(SUFFIXES)}")
    if not isinstance(estimator, KreinEstimator):
        raise TypeError(f"predict_to takes an estimator of kreinlearn, got {estimator!r}")
    if method not in METHODS or not hasattr(estimator, method):
        known = [name for name in METHODS if hasattr(estimator, name)]
        raise ValueError(f"method={method!r} is not among {known}, those of this estimator")
    check_is_fitted(estimator)


def _parts(estimator: KreinEstimator, X: Any, method: Method, room: int) -> Iterator[Array]:
    """Results of whole tiles: first of one, then of as many as there is room for."""
    X, _ = estimator._new_rows(X)
    n, start, step = length(X), 0, TILE
    while start < n:
        stop = min(start + step, n)
        values = np.asarray(method(Part(X, start, stop)))
        yield values
        tiles = room // max(TILE * (values.nbytes // len(values)), 1)
        start, step = stop, TILE * int(max(1, min(tiles, MOST_TILES)))


def _names(estimator: Any, method: str, values: Array) -> list[str]:
    """One name per column of the results."""
    if values.ndim == 1:
        return ["prediction" if method == "predict" else method]
    if method == "transform":
        return [str(name) for name in estimator.get_feature_names_out()]
    classes = getattr(estimator, "classes_", ())
    if len(classes) == values.shape[1]:
        return [str(label) for label in classes]
    return [f"{method}{j}" for j in range(values.shape[1])]
