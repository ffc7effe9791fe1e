"""The function ``load``: from a file of data to an estimator, everything checked before its use."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from io import BufferedReader
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from kreinlearn.data.opening import near_name
from kreinlearn.data.tiles import take
from kreinlearn.kernels import Kernel
from kreinlearn.kernels.candidates import AUTO
from kreinlearn.pairs.evaluate import LandmarkColumns
from kreinlearn.persist.checking import outputs, require_same_kernel, require_same_outputs
from kreinlearn.persist.errors import GivenError, ModelFormatError, require
from kreinlearn.persist.estimators import (
    calibration_from,
    class_of,
    estimators,
    fresh_kernel,
    require_parameters,
    with_processes,
)  # fmt: skip  # isort: skip
from kreinlearn.persist.header import Own, content_of, warn_of_versions, with_fields
from kreinlearn.persist.kernels import kernels_in, require_registered, teach
from kreinlearn.persist.state import require_columns, require_conformal, require_consistent
from kreinlearn.solvers.conformal import Conformal

GivenKernel = str | Kernel | Callable[..., object] | None


def load(path: str | os.PathLike[str], *, kernel: GivenKernel = None, decode: Own = None) -> Any:
    """Read the estimator that ``save`` wrote.

    On the same machine it predicts bit for bit what the saved estimator predicts. Nothing in the
    file is run. Everything is checked before it is used: the checksum of the file, the sizes,
    names and types of all parts, and that they fit together. A checksum finds damage, but it is no
    signature: load models only from those whose predictions you would trust. The landmarks in the
    file are training data of whoever fitted the model.

    Parameters
    ----------
    path : str or path-like
        A file that was written by ``save``.
    kernel : str, callable, Kernel or None, default=None
        The kernel that was left out by ``save(..., external_kernel=True)``. It is compared with
        stored values, and a kernel that gives other values is a ValueError.
    decode : callable or None, default=None
        For objects of a class of your own, which were saved by ``save(..., encode=...)``: the
        function that turns the data that ``encode`` returned into an object again.

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
    if not os.path.exists(path):
        raise FileNotFoundError(
            f"{os.fspath(path)!r}: there is no such file{near_name(Path(path))}"
        )
    try:
        mode = os.stat(path).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(
                f"{os.fspath(path)!r} is a folder; load reads a file that save wrote"
            )
        if not stat.S_ISREG(mode):
            raise OSError(
                f"{os.fspath(path)!r} is no regular file; load reads a file that save wrote"
            )
        with open(path, "rb") as file:
            return _loaded(file, os.fstat(file.fileno()).st_size, kernel, decode)
    except ModelFormatError as error:
        raise ModelFormatError(f"{os.fspath(path)!r} cannot be loaded: {error}") from error
    except MemoryError as error:
        raise ModelFormatError(
            f"{os.fspath(path)!r} cannot be loaded: there is less free memory than it asks for"
        ) from error


def _loaded(file: BufferedReader, size: int, kernel: GivenKernel, decode: Own) -> BaseEstimator:
    try:
        return _rebuilt(content_of(file, size, decode), kernel)
    except (ModelFormatError, GivenError, OSError, ImportError, MemoryError, Warning):
        raise
    except Exception as error:
        why = f"{type(error).__name__}: {error}".splitlines()[0]
        given = " and ".join(
            name for name, one in (("kernel", kernel), ("decode", decode)) if one is not None
        )
        hint = f"; is {given} what belongs to this model?" if given else ""
        raise ModelFormatError(f"its content is no sound model ({why:.200}){hint}") from error


def _rebuilt(content: dict[str, Any], given: GivenKernel) -> BaseEstimator:
    name, state, known = content["estimator"], content["state"], content["kernel"]
    require(isinstance(name, str) and name in estimators(), f"its estimator is {name!r:.80}")
    warn_of_versions(name, content["written_by"])
    cls = class_of(name)
    external = content["external_kernel"]
    estimator = cls(**_parameters(cls, content["parameters"], external, given))
    require_parameters(estimator)
    few_columns = "landmark_rows" in known["fitted"]
    fresh = fresh_kernel(estimator, state, few_columns=few_columns)
    kernel = with_processes(estimator, fresh)
    teach(kernel, known)
    if external:
        _require_same_direction(kernel, content["columns"])
    require_columns(kernel, content["columns"], state)
    objects, places = content["columns"]["objects"], content["columns"]["landmarks"]
    columns = LandmarkColumns(raw=kernel.columns(objects), **content["columns"])
    require_consistent(estimator, state, columns)
    landmarks = objects if places is None else take(objects, places)
    if kernel.domain.is_matrix:
        landmarks = state["landmark_indices_"]
    vars(estimator).update(state, kernel_=kernel, _columns=columns, landmarks_=landmarks)
    vars(estimator).update(calibration_from(estimator, content["sigmoids"]))
    before = content["check"]
    require(before.keys() == {"kernel", "outputs"}, "values to check the model by are missing")
    require_same_kernel(kernel, objects, before["kernel"])
    require_same_outputs(outputs(estimator), before["outputs"])
    if "conformal" in content:
        vars(estimator)["_conformal"] = _conformal(estimator, content["conformal"], given)
    return estimator


def _conformal(estimator: BaseEstimator, parts: Any, given: GivenKernel) -> Conformal:
    """What says how good predictions are, with the models of the folds."""
    require(isinstance(parts, dict) and "models" in parts, "its objects left out are missing")
    good = all(isinstance(one, dict) and "conformal" not in one for one in parts["models"])
    require(good, "the models of its folds are damaged")
    models = tuple(_rebuilt(with_fields(one), given) for one in parts["models"])
    conformal = Conformal(parts["method"], parts["left_out"], models)
    require_conformal(estimator, conformal)
    return conformal


def _require_same_direction(kernel: Kernel, columns: Any) -> None:
    """Raise an error if a dissimilarity was given for a model of similarities, or the reverse."""
    fitted = isinstance(columns, dict) and columns.get("transform") is not None
    if fitted and not kernel.is_dissimilarity:
        raise GivenError(
            "the model was fitted to a dissimilarity, and the kernel that was given is a "
            "similarity; pass load(path, kernel=dissimilarity(...))"
        )
    if kernel.is_dissimilarity and not fitted:
        raise GivenError(
            "the model was fitted to a similarity, and the kernel that was given is a "
            "dissimilarity; pass it without dissimilarity(...)"
        )


def _parameters(
    cls: type[BaseEstimator], values: dict[str, Any], external: object, given: GivenKernel
) -> dict[str, Any]:
    require(isinstance(external, bool), "it does not say whether it contains its kernel")
    if external and given is None:
        raise GivenError(
            "the model was saved without its kernel, a function of its author; pass it: "
            "load(path, kernel=...)"
        )
    if given is not None and not external:
        raise GivenError("the file contains the kernel of its model: leave kernel out")
    values = {**values, "kernel": given} if external else values
    good = values.keys() == set(cls._get_param_names())
    require(good, "its parameters are not those of its estimator")
    store = getattr(values["resources"], "store", None)
    require(store is None, f"its store is {store!r:.80}, and save leaves it out")
    kernel = values["kernel"]
    for one in kernels_in(kernel):
        known = isinstance(one, str | Kernel | np.ndarray)
        require(external or known, f"its kernel is {one!r:.80}")
        if isinstance(one, str) and one != AUTO:
            require_registered(one)
    return values
