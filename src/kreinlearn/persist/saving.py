"""The function ``save``: a fitted estimator as a file of data, written whole or not at all."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from kreinlearn._warnings import warn
from kreinlearn.data.memory import Resources
from kreinlearn.data.writing import replacing
from kreinlearn.kernels import Kernel
from kreinlearn.kernels.combine import alike
from kreinlearn.nystrom.landmarks import Landmarks
from kreinlearn.persist.checking import kernel_values, outputs
from kreinlearn.persist.encoding import Writer
from kreinlearn.persist.errors import NotDataError
from kreinlearn.persist.estimators import calibration_parts, estimators, fresh_kernel, is_estimator
from kreinlearn.persist.header import Own, lines_of, versions
from kreinlearn.persist.kernels import REMEDY, kernels_in, learned
from kreinlearn.persist.state import COLUMNS, stored_attributes

DATA = "numbers, texts, arrays, lists, tuples, sets, dicts and networkx graphs of these"
ENCODE = (
    "pass a function that turns such an object into these, save(..., encode=f), and one that turns "
    "it back, load(path, decode=g)"
)
# Parameters that only a fit uses: None is stored instead of those that are not data.
FIT_ONLY = ("cv", "random_state")


def save(
    estimator: BaseEstimator,
    path: str | os.PathLike[str],
    *,
    external_kernel: bool = False,
    encode: Own = None,
) -> None:
    """Write a fitted estimator to a file that ``load`` can read.

    The file is a line of JSON and the bytes of arrays: it contains data, never code, and is
    written whole or not at all. It contains what predictions and the fitted attributes need.
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
    encode : callable or None, default=None
        For objects of a class of your own: a function that turns an object into plain data, which
        are numbers, texts, arrays, and lists, tuples and dicts of these. The function itself is not
        stored, and the file remains data: ``load(path, decode=...)`` asks for the function that
        turns the data back into an object.

    Notes
    -----
    The attributes ``folds_`` and ``choices_`` are left out, and so is the folder ``store`` of
    ``resources``. A value of ``cv`` that is an object (a splitter) becomes None with a warning,
    because predictions do not use it. Everything that ``partial_fit`` needs
    to go on is stored.

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
    if encode is not None and not callable(encode):
        raise TypeError(f"encode must be a function of one object, got {encode!r:.80}")
    content = _content(estimator, external_kernel, encode)
    try:
        lines = lines_of(content, encode)
    except NotDataError as error:
        what = f"{type(estimator).__name__} contains {error}, but a model file takes only {DATA}"
        remedy = f"; {ENCODE}" if encode is None else ""
        raise TypeError(f"{what}{remedy}") from error
    with replacing(Path(path)) as temporary, temporary.open("xb") as file:
        file.writelines(lines)


def _content(estimator: BaseEstimator, external_kernel: bool, encode: Own) -> dict[str, object]:
    """Everything that a file holds of an estimator, and of the models of its folds."""
    parameters, not_stored = _parameters(estimator, external_kernel, encode)
    _require_unchanged(estimator)
    name, kernel, columns = type(estimator).__name__, estimator.kernel_, vars(estimator)["_columns"]
    content: dict[str, object] = {
        "written_by": versions(),
        "estimator": name,
        "parameters": parameters,
        "not_stored": not_stored,
        "external_kernel": "kernel" not in parameters,
        "state": stored_attributes(estimator),
        "kernel": learned(kernel),
        "columns": {part: getattr(columns, part) for part in COLUMNS},
        "sigmoids": calibration_parts(estimator),
        "check": {
            "kernel": kernel_values(kernel, columns.objects),
            "outputs": outputs(estimator),
        },
    }
    conformal = vars(estimator).get("_conformal")
    if conformal is not None:
        content["conformal"] = {
            "method": conformal.method,
            "left_out": conformal.left_out,
            "models": [_content(model, external_kernel, encode) for model in conformal.models],
        }
    return content


def _parameters(
    estimator: BaseEstimator, external: bool, encode: Own
) -> tuple[dict[str, object], dict[str, str]]:
    """The parameters that are data, and a description of the others, which are not stored."""
    stored, not_stored = dict[str, object](), dict[str, str]()
    for name, value in estimator.get_params(deep=False).items():
        if isinstance(value, Resources):
            value = replace(value, store=None)  # a folder of the machine of the fit
        chooses = name == "landmarks" and callable(Landmarks.of(value).scheme)
        try:
            for one in kernels_in(value) if name == "kernel" else []:
                if not isinstance(one, str | Kernel | np.ndarray):
                    raise NotDataError(f"kernel={one!r:.200} is a function")
            if chooses:
                raise NotDataError("a function")
            Writer(encode if name == "landmarks" else None).value(value)
            stored[name] = value
        except NotDataError as error:
            if name == "kernel" and external:
                continue
            if name == "kernel":
                what = f"{error}, and a model file contains data, not code; {REMEDY}"
                raise TypeError(what) from error
            if name not in FIT_ONLY and not chooses:
                what = f"{name}={value!r:.80} contains {error}, but a model file takes only {DATA}"
                remedy = f"; {ENCODE}" if name == "landmarks" and encode is None else ""
                raise TypeError(f"{what}{remedy}") from error
            stored[name], not_stored[name] = None, repr(value)[:200]
            warn(
                f"{name}={value!r:.80} is not data and is not stored: the file says {name}=None "
                "instead, which only another fit would use"
            )
    return stored, not_stored


def _require_unchanged(estimator: BaseEstimator) -> None:
    """Raise a ValueError if the parameters do not lead to the kernel that was fitted."""
    fitted = estimator.kernel_
    few_columns = getattr(fitted, "landmark_rows", None) is not None
    fresh = fresh_kernel(estimator, vars(estimator), few_columns=few_columns)
    same = type(fresh) is type(fitted) if fitted.untrusted else alike(fresh, fitted)
    if not same:
        raise ValueError(
            f"kernel={estimator.kernel!r:.80} and kernel_params={estimator.kernel_params!r:.80} "
            "are not what the model was fitted with; set them back, or fit again"
        )
