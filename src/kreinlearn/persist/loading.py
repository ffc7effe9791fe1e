"""The function ``load``: from a file of data to an estimator, everything checked before its use."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from hashlib import sha256
from typing import Any, BinaryIO

from sklearn.base import BaseEstimator

from kreinlearn.data.tiles import take
from kreinlearn.kernels import Kernel
from kreinlearn.kernels.base import Objects
from kreinlearn.pairs.evaluate import LandmarkColumns
from kreinlearn.persist.arrays import Stored
from kreinlearn.persist.checking import outputs, require_same_kernel, require_same_outputs
from kreinlearn.persist.container import Content, Member, read_directory
from kreinlearn.persist.errors import GivenError, ModelFormatError, require
from kreinlearn.persist.estimators import (
    calibration_from,
    class_of,
    estimators,
    fresh_kernel,
    require_parameters,
    with_processes,
)  # fmt: skip  # isort: skip
from kreinlearn.persist.header import DIGEST, EXTERNAL, HEADER, LONGEST, parsed, warn_of_versions
from kreinlearn.persist.json_values import Node, Reader
from kreinlearn.persist.kernels import has_few_columns, require_registered, teach
from kreinlearn.persist.state import State, require_columns, require_consistent

GivenKernel = str | Kernel | Callable[..., object] | None


def load(path: str | os.PathLike[str], *, kernel: GivenKernel = None) -> Any:
    """Read the estimator that ``save`` wrote.

    On the same machine it predicts bit for bit what the saved estimator predicts. Nothing in the
    file is run. Everything is checked before it is used: the sizes, names, checksums and types of
    all parts, and that they fit together. Checksums find damage, but they are no signature: load
    models only from those whose predictions you would trust. The landmarks in the file are
    training data of whoever fitted the model.

    Parameters
    ----------
    path : str or path-like
        A file that was written by ``save``.
    kernel : str, callable, Kernel or None, default=None
        The kernel that was left out by ``save(..., external_kernel=True)``. It is compared with
        stored values, and a kernel that gives other values is a ValueError.

    Returns
    -------
    estimator
        The fitted estimator.

    Raises
    ------
    ModelFormatError
        The file is no model, is damaged, or was written by a newer version. It is a ValueError.
    OSError
        The file is not there (``FileNotFoundError``) or cannot be read.

    Warns
    -----
    InconsistentVersionWarning
        The model was saved by another version of kreinlearn or scikit-learn.
    """
    try:
        mode = os.stat(path).st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):  # open refuses a folder itself
            raise OSError(
                f"{os.fspath(path)!r} is no regular file; load reads a file that save wrote"
            )
        with open(path, "rb") as file:
            return _loaded(file, os.fstat(file.fileno()).st_size, kernel)
    except ModelFormatError as error:
        raise ModelFormatError(f"{os.fspath(path)!r} cannot be loaded: {error}") from error
    except MemoryError as error:
        raise ModelFormatError(
            f"{os.fspath(path)!r} cannot be loaded: there is less free memory than it asks for"
        ) from error


def _loaded(file: BinaryIO, size: int, kernel: GivenKernel) -> BaseEstimator:
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
        raise ModelFormatError(f"its content is no sound model ({why:.200})") from error
    stored.require_all_taken()
    return estimator


def _header(file: BinaryIO, members: dict[str, Member]) -> Node:
    """Read the header, and take it out of the members."""
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


def _rebuilt(header: Node, reader: Reader, given: GivenKernel) -> BaseEstimator:
    name = header["estimator"]
    require(isinstance(name, str) and name in estimators(), f"its estimator is {name!r:.80}")
    warn_of_versions(name, header["written_by"])
    cls = class_of(name)
    estimator = cls(**_parameters(cls, header["parameters"], reader, given))
    require_parameters(estimator)
    state = reader.values(header["state"])
    chosen, few_columns = state.get("kernel_params_"), has_few_columns(header["kernel"])
    fresh = fresh_kernel(estimator, chosen, few_columns=few_columns)
    kernel = with_processes(estimator, fresh)
    teach(kernel, header["kernel"], reader.value)
    columns = _columns(kernel, reader.values(header["columns"]), state)
    require_consistent(estimator, state, columns)
    landmarks = _landmarks(kernel, columns, state)
    rebuilt = {"kernel_": kernel, "_columns": columns, "landmarks_": landmarks}
    vars(estimator).update(state | rebuilt)
    vars(estimator).update(calibration_from(estimator, reader.value(header["sigmoids"])))
    before = reader.values(header["check"])
    require(before.keys() == {"kernel", "outputs"}, "values to check the model by are missing")
    require_same_kernel(kernel, columns.objects, before["kernel"])
    require_same_outputs(outputs(estimator), before["outputs"])
    return estimator


def _parameters(
    cls: type[BaseEstimator], nodes: object, reader: Reader, given: GivenKernel
) -> dict[str, Any]:
    if not isinstance(nodes, dict) or nodes.keys() != set(cls._get_param_names()):
        raise ModelFormatError("its parameters are not those of its estimator")
    values = reader.values({key: node for key, node in nodes.items() if key != "kernel"})
    store = getattr(values["resources"], "store", None)
    require(store is None, f"its store is {store!r:.80}, and save leaves it out")
    if nodes["kernel"] == EXTERNAL:
        if given is None:
            raise GivenError(
                "the model was saved without its kernel, a function of its author; pass it: "
                "load(path, kernel=...)"
            )
        return {"kernel": given, **values}
    if given is not None:
        raise GivenError("the file contains the kernel of its model: leave kernel out")
    kernel = reader.value(nodes["kernel"])
    require(isinstance(kernel, str | Kernel), f"its kernel is {kernel!r:.80}")
    if isinstance(kernel, str):
        require_registered(kernel)
    return {"kernel": kernel, **values}


def _columns(kernel: Kernel, parts: State, state: State) -> LandmarkColumns:
    wanted = {"objects", "landmarks", "transform", "offsets"}
    require(parts.keys() == wanted, "its landmarks are missing")
    require_columns(kernel, parts, state)
    return LandmarkColumns(raw=kernel.columns(parts["objects"]), **parts)


def _landmarks(kernel: Kernel, columns: LandmarkColumns, state: State) -> Objects:
    if kernel.domain.is_matrix:
        return state["landmark_indices_"]
    objects = columns.objects
    return objects if columns.landmarks is None else take(objects, columns.landmarks)
