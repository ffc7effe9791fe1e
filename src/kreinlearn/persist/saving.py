"""The function ``save``: a fitted estimator as a file of data, written whole or not at all."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from kreinlearn._warnings import warn
from kreinlearn.data.memory import Resources
from kreinlearn.data.writing import replacing
from kreinlearn.kernels import Kernel
from kreinlearn.kernels.combine import alike
from kreinlearn.persist import container
from kreinlearn.persist.arrays import Arrays
from kreinlearn.persist.checking import kernel_values, outputs
from kreinlearn.persist.errors import NotDataError
from kreinlearn.persist.estimators import estimators, fresh_kernel, is_estimator, sigmoids_of
from kreinlearn.persist.header import DIGEST, EXTERNAL, FORMAT, HEADER, LONGEST, VERSION, versions
from kreinlearn.persist.json_values import Node, Writer
from kreinlearn.persist.kernels import REMEDY, learned
from kreinlearn.persist.state import stored_attributes

DATA = "numbers, texts, arrays, lists, tuples, sets, dicts and networkx graphs of these"
LABELS = ("classes_", "feature_names_in_")  # a person may read them in the header
# Parameters that only a fit uses, and what is stored instead if they are not data.
FIT_ONLY = {"cv": None, "scoring": None, "random_state": None}


def save(
    estimator: BaseEstimator, path: str | os.PathLike[str], *, external_kernel: bool = False
) -> None:
    """Write a fitted estimator to a file that ``load`` can read.

    The file is a ZIP archive of a JSON header and .npy arrays: it contains data, never code, and
    is written whole or not at all. It contains what predictions and the fitted attributes need.
    That includes the landmarks, which are training data (the objects themselves): treat the file
    as you treat the data.

    Parameters
    ----------
    estimator : estimator of this library
        The fitted estimator.
    path : str or path-like
        The file to write. An existing file is replaced.
    external_kernel : bool, default=False
        Whether a kernel without a registered name (a function, or a class of your own) may be left
        out. It must be given again to load the model: ``load(path, kernel=...)``.

    Notes
    -----
    The attributes ``folds_`` and ``choices_`` are left out, and so is the folder ``store`` of
    ``resources``. Values of ``cv`` and ``scoring`` that are objects (a splitter, a function) become
    None with a warning, because predictions do not use them. Everything that ``partial_fit`` needs
    is stored.

    Examples
    --------
    >>> import tempfile, pathlib, kreinlearn
    >>> words = ["see", "sea", "oboe", "hobo"]
    >>> model = kreinlearn.KreinRidge("levenshtein").fit(words, [0, 0, 1, 1])
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.krein"
    >>> kreinlearn.save(model, path)
    >>> bool((kreinlearn.load(path).predict(["bob"]) == model.predict(["bob"])).all())
    True
    """
    if not is_estimator(type(estimator)):
        raise TypeError(
            f"save takes a fitted estimator of kreinlearn ({', '.join(sorted(estimators()))}), got "
            f"a {type(estimator).__name__}; save the last step of a pipeline, or the "
            "best_estimator_ of a search"
        )
    check_is_fitted(estimator)
    arrays = Arrays()
    header = _header(estimator, Writer(arrays), external_kernel)
    text = json.dumps({**header, "sha256": arrays.hashes()}, indent=1, allow_nan=False).encode()
    if len(text) > LONGEST:
        raise ValueError(
            f"the header of the model would have {len(text)} bytes, but only {LONGEST} are "
            "allowed: there are too many parameters or classes"
        )
    digest = sha256(text).hexdigest().encode()
    with replacing(Path(path)) as temporary, temporary.open("xb") as file:
        container.write(file, [(HEADER, [text]), (DIGEST, [digest]), *arrays.members()])


def _header(estimator: BaseEstimator, writer: Writer, external: bool) -> Node:
    name, not_stored = type(estimator).__name__, dict[str, str]()
    parameters = {
        key: _given_kernel(value, writer, external)
        if key == "kernel"
        else _parameter(key, value, writer, not_stored)
        for key, value in estimator.get_params(deep=False).items()
    }
    _require_unchanged(estimator)
    kernel, columns = estimator.kernel_, vars(estimator)["_columns"]
    try:
        return {
            "format": FORMAT, "version": VERSION, "written_by": versions(), "estimator": name,
            "parameters": parameters, "not_stored": not_stored,
            "state": {
                key: writer.labels(value, key) if key in LABELS else writer.value(value, key)
                for key, value in stored_attributes(estimator).items()
            },
            "kernel": learned(kernel, writer.value, "kernel_"),
            "columns": {
                "objects": writer.objects(columns.objects, "landmarks"),
                "landmarks": writer.value(columns.landmarks, "landmarks.places"),
                "transform": writer.value(columns.transform, "transform"),
                "offsets": writer.value(columns.offsets, "offsets"),
            },
            "sigmoids": writer.value(sigmoids_of(estimator), "sigmoids"),
            "check": {
                "kernel": writer.value(kernel_values(kernel, columns.objects), "check.kernel"),
                "outputs": writer.value(outputs(estimator), "check.outputs"),
            },
        }  # fmt: skip
    except NotDataError as error:
        raise TypeError(f"{name} contains {error}, but a model file takes only {DATA}") from error


def _parameter(name: str, value: object, writer: Writer, not_stored: dict[str, str]) -> Any:
    """A parameter as JSON; those that cannot be stored are described in ``not_stored``."""
    if isinstance(value, Resources):
        value = replace(value, store=None)  # a folder of the machine of the fit
    before = writer.arrays.mark()
    try:
        return writer.value(value, f"parameter.{name}")
    except NotDataError as error:
        if name not in FIT_ONLY:
            what = f"{name}={value!r:.80} contains {error}, but a model file takes only {DATA}"
            raise TypeError(what) from error
    writer.arrays.back_to(before)
    not_stored[name] = repr(value)[:200]
    warn(
        f"{name}={value!r:.80} is not data and is not stored: the file says {name}="
        f"{FIT_ONLY[name]!r} instead, which only another fit would use"
    )
    return FIT_ONLY[name]


def _given_kernel(kernel: object, writer: Writer, external: bool) -> Any:
    before = writer.arrays.mark()
    why = f"kernel={kernel!r:.200} is a function"
    try:
        if isinstance(kernel, str | Kernel):
            return writer.value(kernel, "parameter.kernel")
    except NotDataError as error:
        why = str(error)
    if not external:
        raise TypeError(f"{why}, and a model file contains data, not code; {REMEDY}")
    writer.arrays.back_to(before)
    return EXTERNAL


def _require_unchanged(estimator: BaseEstimator) -> None:
    """Raise a ValueError if the parameters do not lead to the kernel that was fitted."""
    fitted, chosen = estimator.kernel_, vars(estimator).get("kernel_params_")
    few_columns = getattr(fitted, "landmark_rows", None) is not None
    fresh = fresh_kernel(estimator, chosen, few_columns=few_columns)
    same = type(fresh) is type(fitted) if fitted.untrusted else alike(fresh, fitted)
    if not same:
        raise ValueError(
            f"kernel={estimator.kernel!r:.80} and kernel_params={estimator.kernel_params!r:.80} "
            "are not what the model was fitted with; set them back, or fit again"
        )
