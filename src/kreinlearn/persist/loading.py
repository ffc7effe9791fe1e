"""load: from a file of data to an estimator, everything checked before it is used."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from importlib import import_module
from io import BufferedReader
from typing import Any

import numpy as np
from sklearn.calibration import _CalibratedClassifier, _SigmoidCalibration

from kreinlearn.data.memory import budget_bytes
from kreinlearn.data.tiles import take
from kreinlearn.kernels.base import Kernel
from kreinlearn.pairs.evaluate import LandmarkColumns
from kreinlearn.persist.checking import outputs, require_same_kernel, require_same_outputs
from kreinlearn.persist.container import Content, Member, read_directory
from kreinlearn.persist.errors import GivenError, ModelFormatError, require
from kreinlearn.persist.header import DIGEST, EXTERNAL, HEADER, LONGEST, parsed, warn_of_versions
from kreinlearn.persist.kernels import fresh_kernel, require_registered, teach
from kreinlearn.persist.members import Stored
from kreinlearn.persist.state import (
    ELSEWHERE,
    ESTIMATORS,
    STORED,
    require_columns,
    require_consistent,
    require_map_of,
)
from kreinlearn.persist.values import Reader

MOST_JOBS = 1024  # that a file may ask for


def load(path: Any, *, kernel: Any = None) -> Any:
    """The estimator that ``save`` wrote: it predicts bit for bit the same on the same machine.

    Nothing in the file is run. Everything is checked before it is used: sizes, names, checksums
    and types of all parts, and that they fit together. Checksums find damage; they are no
    signature, so take models from those whose predictions you would trust. Landmarks in it are
    training data of whoever fitted it.

    Parameters
    ----------
    path : a file written by ``save``.
    kernel : the kernel that was left out by ``save(..., external_kernel=True)``. It is compared
        with stored values: one that gives others is a ValueError.

    Raises
    ------
    ModelFormatError : a ValueError; the file is no model, is damaged, or of a newer version.
    OSError : it is not there (``FileNotFoundError``), or cannot be read.

    Warns
    -----
    InconsistentVersionWarning : it was saved by another version of kreinlearn or scikit-learn.
    """
    try:
        with _opened(path) as (file, size):
            return _loaded(file, size, kernel)
    except ModelFormatError as error:
        raise ModelFormatError(f"{os.fspath(path)!r} cannot be loaded: {error}") from error
    except MemoryError as error:
        raise ModelFormatError(
            f"{os.fspath(path)!r} cannot be loaded: there is less free memory than it asks for"
        ) from error


@contextmanager
def _opened(path: Any) -> Iterator[tuple[BufferedReader, int]]:
    mode = os.stat(path).st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):  # of a folder open says so
        raise OSError(f"{os.fspath(path)!r} is no regular file; load reads a file that save wrote")
    with open(path, "rb") as file:
        yield file, os.fstat(file.fileno()).st_size


def _loaded(file: BufferedReader, size: int, kernel: Any) -> Any:
    begin = file.read(4)
    require(begin[:1] != b"\x80", "it looks like a pickle, which may run code and is never read")
    require(begin == b"PK\3\4", "it is no ZIP file, and save writes one")
    members = read_directory(file, size)
    header = _header(file, members)
    stored = Stored(file, members, header["sha256"])
    try:
        estimator = _rebuilt(header, Reader(stored), kernel)
    except (ModelFormatError, GivenError, OSError, ImportError, MemoryError, Warning):
        raise
    except Exception as error:
        why = f"{type(error).__name__}: {error}".splitlines()[0]
        raise ModelFormatError(f"what it holds is no sound model ({why:.200})") from error
    stored.require_all_taken()
    return estimator


def _header(file: BufferedReader, members: dict[str, Member]) -> dict[str, Any]:
    """The header, which is no longer among the members then."""
    first, digest = members.pop(HEADER, None), members.pop(DIGEST, None)
    if first is None or first.start:
        raise ModelFormatError(f"its first member is not {HEADER}")
    require(first.size <= LONGEST, f"its header has {first.size} bytes, {LONGEST} are allowed")
    text = Content(file, first).read(first.size)
    if digest is None or digest.size != 64:
        raise ModelFormatError(f"it has no {DIGEST}")
    same = Content(file, digest).read(64) == sha256(text).hexdigest().encode()
    require(same, "its header is not the one that was written: its sha256 is another")
    return parsed(text)


def _rebuilt(header: dict[str, Any], reader: Reader, given: Any) -> Any:
    name = header["estimator"]
    require(isinstance(name, str) and name in ESTIMATORS, f"its estimator is {name!r:.80}")
    warn_of_versions(name, header["written_by"])
    cls = getattr(import_module(f"kreinlearn.estimators.{ESTIMATORS[name]}"), name)
    estimator = cls(**_parameters(cls, header["parameters"], reader, given))
    _require_parameters(estimator)
    state = _values(header["state"], reader)
    for key, value in state.items():
        require(key in STORED, f"it has an attribute {key!r:.80}")
        setattr(estimator, key, value)
    estimator.kernel_ = kernel = estimator._with_processes(fresh_kernel(estimator))
    teach(kernel, header["kernel"], reader.value)
    estimator._columns = columns = _columns(kernel, _values(header["columns"], reader), state)
    require_consistent(name, state, columns)
    estimator.landmarks_ = _landmarks(kernel, columns, state)
    _calibrate(estimator, reader.value(header["sigmoids"]))
    found = reader.value(header["map"])
    if name == "SpectrumSVC":
        require(found is None, "it has a feature map, and its estimator has none")
    else:
        require_map_of(state, found)
        estimator._map = found  # makes it fitted
    _require_as_saved(estimator, _values(header["check"], reader))
    return estimator


def _values(nodes: Any, reader: Reader) -> dict[str, Any]:
    require(isinstance(nodes, dict), "a part of its header is missing")
    return {key: reader.value(node) for key, node in nodes.items()}


def _parameters(cls: Any, nodes: Any, reader: Reader, given: Any) -> dict[str, Any]:
    good = isinstance(nodes, dict) and nodes.keys() == set(cls._get_param_names())
    require(good, "its parameters are not those of its estimator")
    rest = {key: node for key, node in nodes.items() if key != "kernel"}
    values = {key: reader.value(node) for key, node in rest.items()}
    for name in ELSEWHERE & values.keys():
        require(values[name] is None, f"its {name} is {values[name]!r:.80}, and save leaves it out")
    if nodes["kernel"] == EXTERNAL:
        if given is None:
            raise GivenError(
                "the model was saved without its kernel, a function of its author; give it: "
                "load(path, kernel=...)"
            )
        return {"kernel": given, **values}
    if given is not None:
        raise GivenError("the file holds the kernel of its model; leave kernel out")
    kernel = reader.value(nodes["kernel"])
    require(isinstance(kernel, str | Kernel), f"its kernel is {kernel!r:.80}")
    if isinstance(kernel, str):
        require_registered(kernel)
    return {"kernel": kernel, **values}


def _require_parameters(estimator: Any) -> None:
    """An error unless a fit would take them; prediction uses memory and threads of this machine."""
    estimator._validate_params()
    budget_bytes(estimator.memory_budget)
    jobs = estimator.n_jobs
    good = jobs is None or (type(jobs) is not bool and 0 < abs(jobs) <= MOST_JOBS)
    require(good, f"its n_jobs is {jobs!r:.40}")


def _columns(kernel: Kernel, parts: dict[str, Any], state: dict[str, Any]) -> LandmarkColumns:
    wanted = {"objects", "landmarks", "transform", "offsets"}
    require(parts.keys() == wanted, "its landmarks are missing")
    require_columns(kernel, parts, state)
    return LandmarkColumns(raw=kernel.columns(parts["objects"]), **parts)


def _landmarks(kernel: Kernel, columns: LandmarkColumns, state: dict[str, Any]) -> Any:
    if kernel.domain.is_matrix:
        return state["landmark_indices_"]
    objects = columns.objects
    return objects if columns.landmarks is None else take(objects, columns.landmarks)


def _calibrate(estimator: Any, sigmoids: Any) -> None:
    wanted = bool(getattr(estimator, "probability", False))
    require((sigmoids is not None) == wanted, "its probabilities are missing")
    if not wanted:
        return
    k = len(estimator.classes_)
    good = isinstance(sigmoids, np.ndarray) and sigmoids.shape == (1 if k == 2 else k, 2)
    good = good and sigmoids.dtype == np.float64 and bool(np.isfinite(sigmoids).all())
    require(good, "its probabilities do not fit its classes")
    found = [_SigmoidCalibration() for _ in sigmoids]
    for sigmoid, (slope, constant) in zip(found, sigmoids.tolist(), strict=True):
        sigmoid.a_, sigmoid.b_ = slope, constant
    estimator._calibration = _CalibratedClassifier(
        None, found, classes=estimator.classes_, method="sigmoid"
    )


def _require_as_saved(estimator: Any, before: dict[str, Any]) -> None:
    require(before.keys() == {"kernel", "outputs"}, "values to check the model by are missing")
    require_same_kernel(estimator.kernel_, estimator._columns.objects, before["kernel"])
    require_same_outputs(outputs(estimator), before["outputs"])
