"""Predictions that go to a file a part at a time: neither the rows nor the results are held."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from kreinlearn.data.files import replacing
from kreinlearn.data.memory import budget_bytes
from kreinlearn.data.sources.base import library
from kreinlearn.data.tiles import TILE, Part, length
from kreinlearn.distributed import is_dask, parts
from kreinlearn.estimators._base import KreinEstimator

MOST_TILES = 32  # in a part
SHARE = 8  # of the budget, for the results of a part
METHODS = ("predict", "decision_function", "predict_proba", "transform")

Write = Callable[[Any], Any]  # of one part
Method = Callable[[Any], Any]  # of a fitted estimator


def predict_to(estimator: Any, X: Any, path: Any, method: str = "predict") -> Path:
    """Predictions for X, written to a .npy, .csv or .parquet file a part at a time.

    The values are those of ``estimator.predict(X)``. A file of that name is replaced at the end,
    when all is written; a run that fails leaves it as it was.

    Parameters
    ----------
    estimator : a fitted estimator of this package.
    X : whatever its ``predict`` takes: an array, objects, a path, ``table(...)``, ``Blocks(...)``;
        a dask collection, of which a few blocks at a time are evaluated, and their results come
        here. What blocks have in common, a shuffle say, is done again: persist it before.
    path : the file to write; its suffix says how.
    method : "predict", "decision_function", "predict_proba" or "transform".

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from pathlib import Path
    >>> from kreinlearn import KreinRidge, predict_to
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> model = KreinRidge(random_state=0).fit(X, X[:, 0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.load(predict_to(model, X, Path(folder) / "found.npy")).shape
    (100,)
    """
    path = Path(path)
    _require_known(estimator, path, method)
    values = (_parts_of_lazy if is_dask(X) else _parts)(estimator, X, getattr(estimator, method))
    first = next(values, None)
    if first is None:
        raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required")
    with replacing(path) as temporary:
        names = _names(estimator, method, first)
        with WRITERS[path.suffix](temporary, first, names) as write:
            for part in chain([first], values):
                write(part)
    return path


def _require_known(estimator: Any, path: Path, method: str) -> None:
    if path.suffix not in WRITERS:
        raise ValueError(f"path={str(path)!r} must end in one of {', '.join(WRITERS)}")
    if not isinstance(estimator, KreinEstimator):
        raise TypeError(f"predict_to takes an estimator of kreinlearn, got {estimator!r}")
    if method not in METHODS or not hasattr(estimator, method):
        known = [name for name in METHODS if hasattr(estimator, name)]
        raise ValueError(f"method={method!r} is not among {known}, those of this estimator")
    check_is_fitted(estimator)


def _parts(estimator: Any, X: Any, method: Method) -> Iterator[Any]:
    """Results of whole tiles, as many at a time as the budget has room for; one to begin with."""
    X = estimator._validated(X, estimator.kernel_, reset=False)
    n, start, step = length(X), 0, TILE
    while start < n:
        stop = min(start + step, n)
        values = np.asarray(method(Part(X, start, stop)))
        yield values
        tiles = _room(estimator) // max(TILE * (values.nbytes // len(values)), 1)
        start, step = stop, TILE * int(max(1, min(tiles, MOST_TILES)))


def _parts_of_lazy(estimator: Any, X: Any, method: Method) -> Iterator[Any]:
    """Results of a few blocks of a dask collection at a time, evaluated by its workers."""
    yield from parts(method(X), _room(estimator))


def _room(estimator: Any) -> int:
    return budget_bytes(estimator.memory_budget) // SHARE


def _names(estimator: Any, method: str, values: Any) -> list[str]:
    """A name a column of the results."""
    if values.ndim == 1:
        return ["prediction" if method == "predict" else method]
    if method == "transform":
        return [str(name) for name in estimator.get_feature_names_out()]
    classes = getattr(estimator, "classes_", ())
    if len(classes) == values.shape[1]:
        return [str(label) for label in classes]
    return [f"{method}{j}" for j in range(values.shape[1])]


@contextmanager
def _npy(path: Path, first: Any, names: list[str]) -> Iterator[Write]:
    if first.dtype.hasobject:
        raise TypeError(
            f"predictions are objects ({type(first[0]).__name__}), which a .npy file does not "
            "hold; write a .csv or .parquet file"
        )
    n = 0

    def header() -> None:  # as long for any n
        said = {"descr": np.lib.format.dtype_to_descr(first.dtype), "fortran_order": False}
        np.lib.format.write_array_header_2_0(file, {**said, "shape": (n, *first.shape[1:])})

    def write(values: Any) -> None:
        nonlocal n
        n += len(values)
        file.write(values.tobytes())

    with path.open("xb") as file:
        header()
        yield write
        file.seek(0)
        header()


@contextmanager
def _csv(path: Path, first: Any, names: list[str]) -> Iterator[Write]:
    with path.open("x", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(names)
        yield lambda values: writer.writerows(values.reshape(len(values), -1).tolist())


@contextmanager
def _parquet(path: Path, first: Any, names: list[str]) -> Iterator[Write]:
    pa, pq = library("pyarrow"), library("pyarrow.parquet")

    def batch(values: Any) -> Any:
        return pa.record_batch([pa.array(c) for c in values.reshape(len(values), -1).T], names)

    with path.open("xb") as file, pq.ParquetWriter(file, batch(first).schema) as writer:
        yield lambda values: writer.write_batch(batch(values))


WRITERS = {".npy": _npy, ".csv": _csv, ".parquet": _parquet}
