"""save: a fitted estimator as a file of data, written whole or not at all."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from kreinlearn._warnings import warn
from kreinlearn.data.writing import replacing
from kreinlearn.kernels.base import Kernel
from kreinlearn.kernels.combine import alike
from kreinlearn.pairs.evaluate import LandmarkColumns
from kreinlearn.persist import container
from kreinlearn.persist.checking import kernel_values, outputs
from kreinlearn.persist.columns import NotData
from kreinlearn.persist.header import DIGEST, EXTERNAL, FORMAT, HEADER, LONGEST, VERSION, versions
from kreinlearn.persist.kernels import REMEDY, Unregistered, fresh_kernel, learned
from kreinlearn.persist.members import Arrays
from kreinlearn.persist.state import (
    ELSEWHERE,
    ESTIMATORS,
    FIT_ONLY,
    stored_attributes,
)
from kreinlearn.persist.values import Writer

DATA = "numbers, texts, arrays, lists, tuples, sets, dicts and networkx graphs of these"
LABELS = ("classes_", "feature_names_in_")  # a person may read them in the header


def save(estimator: Any, path: Any, *, external_kernel: bool = False) -> None:
    """Write a fitted estimator to a file that ``load`` reads.

    The file is a ZIP of a JSON header and .npy arrays: data, never code. It is written whole or
    not at all. It holds what prediction and the fitted attributes need, among that the landmarks:
    these are training data (the objects themselves), so treat the file as you treat the data.

    Parameters
    ----------
    estimator : a fitted estimator of this library.
    path : where to; a file that is there is replaced.
    external_kernel : whether a kernel that has no registered name (a function, a class of your
        own) may be left out, to be given again: ``load(path, kernel=...)``.

    Notes
    -----
    Left out are ``folds_``, ``choices_`` and the parameter ``store``; ``cv`` and ``scoring`` that
    are objects (a splitter, a function) become None with a warning, as prediction does not use
    them. What ``partial_fit`` needs is stored.

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
    name = type(estimator).__name__
    module = f"kreinlearn.estimators.{ESTIMATORS.get(name)}"
    if type(estimator).__module__ != module:
        raise TypeError(
            f"save takes a fitted estimator of kreinlearn ({', '.join(sorted(ESTIMATORS))}), got "
            f"a {name}; of a pipeline or a search save its last step or best_estimator_"
        )
    check_is_fitted(estimator)
    arrays = Arrays()
    header = _header(estimator, Writer(arrays), external_kernel)
    text = json.dumps({**header, "sha256": arrays.hashes()}, indent=1, allow_nan=False).encode()
    if len(text) > LONGEST:
        raise ValueError(
            f"the header of the model would have {len(text)} bytes, {LONGEST} are allowed: "
            "parameters or classes are too many"
        )
    with replacing(Path(path)) as temporary, temporary.open("xb") as file:
        digest = sha256(text).hexdigest().encode()
        container.write(file, [(HEADER, [text]), (DIGEST, [digest]), *arrays.members()])


def _header(estimator: Any, writer: Writer, external: bool) -> dict[str, Any]:
    name = type(estimator).__name__
    parameters, not_stored = _parameters(estimator, writer, external)
    _require_unchanged(estimator)
    kernel, columns = estimator.kernel_, estimator._columns
    try:
        state = {
            key: writer.labels(value, key) if key in LABELS else writer.value(value, key)
            for key, value in stored_attributes(estimator).items()
        }
        return {
            "format": FORMAT, "version": VERSION, "written_by": versions(), "estimator": name,
            "parameters": parameters, "not_stored": not_stored, "state": state,
            "kernel": learned(kernel, writer.value, "kernel_"),
            "columns": _written_columns(columns, writer),
            "map": writer.value(vars(estimator).get("_map"), "map"),
            "sigmoids": writer.value(_sigmoids(estimator), "sigmoids"),
            "check": {
                "kernel": writer.value(kernel_values(kernel, columns.objects), "check.kernel"),
                "outputs": writer.value(outputs(estimator), "check.outputs"),
            },
        }  # fmt: skip
    except NotData as error:
        raise TypeError(f"{name} holds {error}, a model file holds {DATA}") from error


def _written_columns(columns: LandmarkColumns, writer: Writer) -> dict[str, Any]:
    return {
        "objects": writer.objects(columns.objects, "landmarks"),
        "landmarks": writer.value(columns.landmarks, "landmarks.places"),
        "transform": writer.value(columns.transform, "transform"),
        "offsets": writer.value(columns.offsets, "offsets"),
    }


def _parameters(
    estimator: Any, writer: Writer, external: bool
) -> tuple[dict[str, Any], dict[str, str]]:
    """Parameters as JSON, and in words those that could not be stored."""
    held: dict[str, Any] = {}
    left: dict[str, str] = {}
    for name, value in estimator.get_params(deep=False).items():
        if name == "kernel":
            held[name] = _given_kernel(value, writer, external)
        elif name in ELSEWHERE:
            held[name] = None
        else:
            held[name] = _parameter(name, value, writer, left)
    return held, left


def _parameter(name: str, value: Any, writer: Writer, left: dict[str, str]) -> Any:
    before = writer.arrays.mark()
    try:
        return writer.value(value, f"parameter.{name}")
    except NotData as error:
        if name not in FIT_ONLY:
            raise TypeError(
                f"{name}={value!r:.80} holds {error}; a model file holds {DATA}"
            ) from error
    writer.arrays.back_to(before)
    left[name] = repr(value)[:200]
    warn(
        f"{name}={value!r:.80} is not data and is not stored: the file has {name}="
        f"{FIT_ONLY[name]!r} in its place, which only another fit would use"
    )
    return FIT_ONLY[name]


def _given_kernel(kernel: Any, writer: Writer, external: bool) -> Any:
    before = writer.arrays.mark()
    try:
        if isinstance(kernel, str | Kernel):
            return writer.value(kernel, "parameter.kernel")
    except (Unregistered, NotData) as error:
        why = str(error)
    else:
        why = f"kernel={kernel!r:.200} is a function"
    if not external:
        raise TypeError(f"{why}: a model file holds data, not code; {REMEDY}")
    writer.arrays.back_to(before)
    return EXTERNAL


def _require_unchanged(estimator: Any) -> None:
    """ValueError if the parameters do not lead to the kernel that was fitted."""
    fresh, fitted = fresh_kernel(estimator), estimator.kernel_
    if type(fresh) is not type(fitted) or not (fitted.untrusted or _same(fresh, fitted)):
        raise ValueError(
            f"kernel={estimator.kernel!r:.80} and kernel_params={estimator.kernel_params!r:.80} "
            "are not what the model was fitted with; set them back, or fit again"
        )


def _same(fresh: Kernel, fitted: Kernel) -> bool:
    return alike(fresh.get_params(deep=False), fitted.get_params(deep=False))


def _sigmoids(estimator: Any) -> Any:
    """Slopes and constants of the calibration, (k, 2)."""
    found = vars(estimator).get("_calibration")
    if found is None:
        return None
    return np.array([(sigmoid.a_, sigmoid.b_) for sigmoid in found.calibrators], dtype=np.float64)
