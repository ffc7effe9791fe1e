"""Fitted estimators as files of data: ``save``, ``load``, and the layout of a file.

A file has a line that names the format, a line with the sha256 of all that follows, the content as
one line of JSON, and the bytes of its arrays.
"""

from __future__ import annotations

import json
import os
import re
from copy import copy
from dataclasses import replace
from hashlib import file_digest, sha256
from importlib import import_module
from io import BufferedReader
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from sklearn.base import BaseEstimator
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.utils.validation import check_is_fitted

from kreinlearn._warnings import warn
from kreinlearn.data.memory import Resources
from kreinlearn.data.opening import near_name
from kreinlearn.data.tiles import length, take
from kreinlearn.data.writing import replacing
from kreinlearn.kernels import Kernel, Precomputed, SimilarityOf, resolve
from kreinlearn.kernels.combine import Composite, alike
from kreinlearn.kernels.precomputed import PickedColumns
from kreinlearn.kernels.several import Several
from kreinlearn.nystrom.landmarks import Landmarks
from kreinlearn.pairs.evaluate import LandmarkColumns
from kreinlearn.persist.errors import REMEDY, GivenError, ModelFormatError, NotDataError, require
from kreinlearn.persist.values import Own, Reader, Writer
from kreinlearn.solvers.conformal import METHODS as LEAVES_OUT
from kreinlearn.solvers.conformal import Conformal
from kreinlearn.sums.parallel import worker_count

VERSION = 2
FIRST_LINE = re.compile(rb"kreinlearn model ([1-9]\d{0,8})\n")
TEXT = ("utf8", "surrogatepass")  # halves of characters stay what they are
DATA = "numbers, texts, arrays, lists, tuples, sets, dicts and networkx graphs of these"
ENCODE = "pass two functions, save(..., encode=f) and load(path, decode=g), for such objects"
NAMES = (
    "register it with register(name, factory) and pass the name as kernel, or save with "
    "external_kernel=True and pass it again: load(path, kernel=...)"
)
OUTSIDE = "it was saved without its kernel, a function; pass it again: load(path, kernel=...)"
INSIDE = "the file contains the kernel of its model: leave kernel out"
DISSIMILARITY = "it was fitted to a dissimilarity, and this is none; pass kernel=dissimilarity(...)"
SIMILARITY = "it was fitted to a similarity, and this is none; pass it without dissimilarity(...)"
ROOM = "kreinlearn.estimators"  # which imports this one
FIT_ONLY = ("cv", "random_state")  # stored as None if they are not data
# Of the attributes that an estimator lists in its ``_fitted``, all others are stored as they are.
# What is made again when a model is loaded is stored in parts; choices_ and folds_ are trails.
REBUILT = {"kernel_", "landmarks_", "_columns", "_conformal"}
LEFT_OUT = {"folds_", "choices_", "_metadata_request", "_skl_callbacks"}
OF_SKLEARN = {"_sklearn_output_config"}  # left by set_output
OUTPUTS = ({}, *({"transform": name} for name in ("default", "pandas", "polars")))
COLUMNS = ("objects", "landmarks", "transform", "offsets")
DERIVED = {"parts_", "to_reference_", "processes", "_cells", "_width"}  # of what kernels learn
METHODS = ("predict", "decision_function", "predict_proba", "transform", "approximate")
RTOL = {8: 1e-10, 4: 1e-4}  # of the largest value, by the bytes of a number
PAIRS_RTOL = 1e-4  # a user's kernel may compute in single precision
PAIRED = 4  # objects whose kernel values are stored
MOST_JOBS = 1024  # that a file may ask for


def save(
    estimator: BaseEstimator, path: str | os.PathLike[str], *, external_kernel: bool = False,
    encode: Own = None,
) -> None:  # fmt: skip
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
    ``resources``. Values of ``cv`` and ``scoring`` that are objects (a splitter, a function) become
    None with a warning, because predictions do not use them. Everything that ``partial_fit`` needs
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
    name = type(estimator).__name__
    if type(estimator).__module__ != f"{ROOM}.{_module_of().get(name)}":
        raise TypeError(
            f"save takes a fitted estimator of kreinlearn ({', '.join(_module_of())}), got a "
            f"{name}; save the last step of a pipeline, or the best_estimator_ of a search"
        )
    check_is_fitted(estimator)
    if encode is not None and not callable(encode):
        raise TypeError(f"encode must be a function of one object, got {encode!r:.80}")
    writer, content = Writer(encode), _content(estimator, external_kernel, encode)
    try:
        text = json.dumps(writer.value(content), ensure_ascii=False).encode(*TEXT) + b"\n"
    except NotDataError as error:
        raise TypeError(_no_data(f"{name} contains {error}", encode)) from error
    digest = sha256(text)
    for array in writer.arrays:
        digest.update(array)
    begin = f"kreinlearn model {VERSION}\n{digest.hexdigest()}\n".encode()
    with replacing(Path(path)) as temporary, temporary.open("xb") as file:
        file.writelines([begin, text, *writer.arrays])


def load(path: str | os.PathLike[str], *, kernel: Any = None, decode: Own = None) -> Any:
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
    name = os.fspath(path)
    if not os.path.exists(path):
        raise FileNotFoundError(f"{name!r}: there is no such file{near_name(Path(path))}")
    if not os.path.isfile(path):
        error = IsADirectoryError if os.path.isdir(path) else OSError
        raise error(f"{name!r} is a folder or no regular file; load reads a file that save wrote")
    try:
        with open(path, "rb") as file:
            return _rebuilt(_content_of(file, os.fstat(file.fileno()).st_size, decode), kernel)
    except (GivenError, OSError, ImportError, Warning):
        raise
    except Exception as error:
        given = " and ".join(
            what for what, one in (("kernel", kernel), ("decode", decode)) if one is not None
        )
        remedy = f"is {given} what belongs to this model?" if given else REMEDY
        why = f"its content is no sound model ({type(error).__name__}: {error!s:.1500}); {remedy}"
        if isinstance(error, MemoryError):
            why = "there is less free memory than it asks for; load it where there is more"
        if isinstance(error, ModelFormatError):
            why = str(error)
        raise ModelFormatError(f"{name!r} cannot be loaded: {why}") from error


def is_model(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins as a model file does."""
    with open(path, "rb") as file:
        return FIRST_LINE.fullmatch(file.readline(80)) is not None


def versions() -> dict[str, str]:
    """The versions of the libraries that may change what a model does."""
    ours = import_module("kreinlearn").__version__
    return {"kreinlearn": ours, "scikit-learn": sklearn.__version__}


class OtherVersion(InconsistentVersionWarning):
    """The model was saved by another version of a library, so that predictions may differ."""

    __init__, __str__ = UserWarning.__init__, UserWarning.__str__


# What is written


def _module_of() -> dict[str, str]:
    """The modules of all estimators, by the names of their classes."""
    return dict(import_module(ROOM).ESTIMATORS)


def stored_names(cls: type[BaseEstimator]) -> set[str]:
    """The names of the attributes that are stored as they are, if a fit left them."""
    fitted = import_module(f"{ROOM}.access").fitted_names(cls)
    return {*fitted, *OF_SKLEARN} - REBUILT - LEFT_OUT


def _content(estimator: BaseEstimator, external: bool, encode: Own) -> dict[str, Any]:
    """Everything that a file holds of an estimator, and of the models of its folds."""
    fitted, kernel, columns = vars(estimator), estimator.kernel_, vars(estimator)["_columns"]
    parameters = _parameters(estimator, external, encode)
    names = stored_names(type(estimator))
    fresh = _fresh_kernel(estimator, fitted, getattr(kernel, "landmark_rows", None) is not None)
    if not (type(fresh) is type(kernel) if kernel.untrusted else alike(fresh, kernel)):
        raise ValueError(
            f"kernel={estimator.kernel!r:.80} and kernel_params={estimator.kernel_params!r:.80} "
            "are not what the model was fitted with; set them back, or fit again"
        )
    content = {
        "written_by": versions(),
        "estimator": type(estimator).__name__,
        "parameters": parameters,
        "external_kernel": "kernel" not in parameters,
        "state": {name: value for name, value in fitted.items() if name in names},
        "kernel": _learned(kernel),
        "columns": {name: getattr(columns, name) for name in COLUMNS},
        "check": _answers(estimator),
    }
    if (kept := fitted.get("_conformal")) is not None:
        models = [_content(model, external, encode) for model in kept.models]
        content["conformal"] = [kept.method, kept.left_out, models]
    return content


def _parameters(estimator: BaseEstimator, external: bool, encode: Own) -> dict[str, Any]:
    """The parameters; None in place of those that are no data and that only a fit would use."""
    stored = dict[str, object]()
    for name, value in estimator.get_params(deep=False).items():
        if isinstance(value, Resources):
            value = replace(value, store=None)  # a folder of the machine of the fit
        chooses = name == "landmarks" and callable(Landmarks.of(value).scheme)
        mine = encode if name == "landmarks" and not chooses else None
        try:
            Writer(mine).value(value)
        except NotDataError as error:
            if name == "kernel" and external:
                continue
            if name == "kernel":
                what = error if isinstance(value, Kernel) else f"kernel={value!r:.200} has no name"
                remedy = f"and a model file contains data, not code; {NAMES}"
                raise TypeError(f"{what}, {remedy}") from error
            what = f"{name}={value!r:.80}"
            if name not in FIT_ONLY and not chooses:
                raise TypeError(_no_data(f"{what} contains {error}", mine)) from error
            warn(f"{what} is not data and is not stored: only another fit would use it")
            value = None
        stored[name] = value
    return stored


def _no_data(what: str, encode: Own) -> str:
    remedy = f"; {ENCODE}" if encode is None else ""
    return f"{what}, but a model file takes only {DATA}{remedy}"


def _learned(kernel: Kernel) -> dict[str, Any]:
    """What a kernel has learned beside its parameters; equal parts are written once."""
    fresh = type(kernel)(**kernel.get_params(deep=False))
    names = sorted(vars(kernel).keys() - vars(fresh).keys() - DERIVED)
    parts = {id(part): part for part in kernel.parts_} if isinstance(kernel, Composite) else {}
    fitted = {name: vars(kernel)[name] for name in names}
    return {"fitted": fitted, "parts": [_learned(part) for part in parts.values()]}


# What is read


def _content_of(file: BufferedReader, size: int, decode: Own) -> Any:
    """The content of a file of this size; an error if it is not what was written."""
    begin = file.readline(80)
    require(begin[:1] != b"\x80", "it looks like a pickle, which may run code and is never read")
    first = FIRST_LINE.fullmatch(begin)
    version = int(first[1]) if first else 0
    require(version, "it does not begin as a model file does")
    require(version >= VERSION, f"it has the old format {version}, and {VERSION} is read")
    newer = f"it was written by a newer version of kreinlearn (format {version}, not {VERSION})"
    require(version == VERSION, newer, "update kreinlearn")
    digest, start = file.readline(65), file.tell()
    same = f"{file_digest(file, 'sha256').hexdigest()}\n".encode() == digest
    require(same, "its sha256 is another than it was when it was written: it was cut or changed")
    file.seek(start)
    text = file.readline().decode(*TEXT)
    reader = Reader(file, size - file.tell(), decode)
    content = reader.value(json.loads(text, object_pairs_hook=_unique))
    require(reader.left == 0, "it has bytes at its end that no array needs")
    return content


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    require(len(dict(pairs)) == len(pairs), "it has a field twice")
    return dict(pairs)


def _rebuilt(content: dict[str, Any], given: Any) -> BaseEstimator:
    """The estimator of a content: made, and then compared with what it was when it was saved."""
    name, state, parts = content["estimator"], content["state"], content["columns"]
    require(isinstance(name, str) and name in _module_of(), f"its estimator is {name!r:.80}")
    for package, now in versions().items():
        before = content["written_by"][package]
        require(type(before) is str, f"it was written by {package} {before!r:.40}")
        if before != now:
            differ = f"the {name} was saved by {package} {before:.40}, and this is {now}"
            remedy = "its predictions may differ; fit and save it anew to be sure"
            warn(OtherVersion(f"{differ}: {remedy}"))
    cls = getattr(import_module(f"{ROOM}.{_module_of()[name]}"), name)
    require(type(content["external_kernel"]) is bool, "it does not say whether it has its kernel")
    if content["external_kernel"] != (given is not None):
        raise GivenError(INSIDE if given is not None else OUTSIDE)
    outside = {} if given is None else {"kernel": given}
    estimator = cls(**content["parameters"], **outside)
    estimator._validate_params()
    jobs, store = estimator.n_jobs, getattr(estimator.resources, "store", None)
    require(jobs is None or 0 < abs(jobs) <= MOST_JOBS, f"its n_jobs is {jobs!r:.40}")
    require(store is None, f"its store is {store!r:.80}, and save leaves it out")
    require(state.get("_sklearn_output_config", {}) in OUTPUTS, "its set_output is unknown")
    odd = state.keys() - stored_names(cls)
    require(not odd, f"it has the attributes {sorted(odd)!s:.80}, which no fit leaves")
    kernel = _fresh_kernel(estimator, state, "landmark_rows" in content["kernel"]["fitted"])
    if given is not None and kernel.is_dissimilarity != (parts["transform"] is not None):
        raise GivenError(SIMILARITY if kernel.is_dissimilarity else DISSIMILARITY)
    jobs = 1 if jobs is None else worker_count(jobs)
    kernel = _taught(kernel.with_processes(jobs), content["kernel"])
    objects, places, matrix = parts["objects"], parts["landmarks"], kernel.domain.is_matrix
    d = state.get("n_features_in_")
    good = d <= kernel.diagonal_.size if matrix else kernel.domain.holds(objects, d)
    require(good and length(objects), "its landmarks are not what its kernel takes")
    columns = LandmarkColumns(raw=kernel.columns(objects), **parts)
    Z = objects if places is None else take(objects, places)
    vars(estimator).update(state, kernel_=kernel, _columns=columns)
    estimator.landmarks_ = estimator.landmark_indices_ if matrix else Z
    arrays = {"n_landmarks_": Z, "rank_": getattr(state.get("_map"), "S", None)}
    for size, of in {**arrays, "n_clusters_": state.get("cluster_centers_")}.items():
        require(of is None or state[size] == length(of), f"its {size} is {state.get(size)!r:.80}")
    good = np.size(state.get("dual_coef_", 0)) == length(Z) * np.size(state.get("_intercept", 0))
    require(good or "dual_coef_" not in state, "its coefficients do not fit its landmarks")
    _require_same(estimator, content["check"])
    if "conformal" in content:
        estimator._conformal = _conformal(estimator, given, content["conformal"])
    return estimator


def _fresh_kernel(estimator: BaseEstimator, state: dict[str, Any], few_columns: bool) -> Kernel:
    """The kernel of an estimator as it was before the fit, which may have chosen parameters.

    ``few_columns`` says that the fit was given the columns of landmarks instead of a whole matrix.
    """
    chosen, learned = state.get("kernel_params_"), state.get("_sum")
    if chosen is not None:
        return resolve(estimator.kernel, chosen)
    kernel: Kernel = import_module(f"{ROOM}.access").resolved_kernel(estimator)
    if learned is not None:
        given = kernel.kernels if isinstance(kernel, Several) else []
        kernels = [given[one] if isinstance(one, int) else one for one in learned.kernels]
        return Several(kernels, learned.terms)
    if few_columns and isinstance(kernel, Precomputed):
        return Precomputed(is_dissimilarity=kernel.of_dissimilarities)
    return kernel


def _taught(kernel: Kernel, known: dict[str, Any]) -> Kernel:
    """A fresh kernel with what ``_learned`` has written, so that it is fitted again."""
    for name, value in known["fitted"].items():
        good = name.isidentifier() and name.endswith("_") and not name.startswith("_")
        good = (good and not hasattr(type(kernel), name)) or name == "landmark_rows"
        require(good, f"its kernel has learned {name!r:.80}")
        setattr(kernel, name, value)
    if isinstance(kernel, Composite):
        parts, states = list[Kernel](), iter(known["parts"])
        for part in kernel.fresh_parts():
            same = [one for one in parts if alike(one, part)]
            parts.append(same[0] if same else _taught(part, next(states)))
        kernel.parts_ = parts
    if isinstance(kernel, SimilarityOf):
        kernel.use_reference()
    return kernel


def _conformal(estimator: BaseEstimator, given: Any, parts: list[Any]) -> Conformal:
    """What says how good predictions are, with the models of the folds."""
    method, left_out, models = parts
    folds = tuple(_rebuilt(one, given) for one in models)
    good = np.isin(left_out.folds, np.arange(len(folds) or 1)).all() and method in LEAVES_OUT
    good = good and len({len(x) for x in vars(left_out).values()}) == 1
    good = good and all(type(one) is type(estimator) for one in folds)
    require(good, "its objects left out do not fit together")
    return Conformal(method, left_out, folds)


# By what a loaded model is recognised as the one that was saved


def _answers(estimator: BaseEstimator) -> dict[str, Any]:
    """Kernel values among a few objects, and what the model says of two that are made up.

    These are given by their kernel values, so that no others are evaluated.
    """
    kernel, columns = estimator.kernel_, vars(estimator)["_columns"]
    model, objects, pairs = copy(estimator), columns.objects, np.empty(0)
    n = estimator.n_features_in_ if kernel.domain.is_matrix else length(objects)
    if not kernel.domain.is_matrix:
        some = take(objects, np.unique(np.linspace(0, n - 1, PAIRED).astype(np.intp)))
        pairs = np.asarray(kernel.anew(some, some), dtype=np.float64)
        columns = replace(columns, raw=PickedColumns(np.arange(n)), objects=np.arange(n))
        given = Precomputed(is_dissimilarity=kernel.is_dissimilarity)
        vars(model).update(kernel_=given, _columns=columns, n_features_in_=n)
    for name in ("feature_names_in_", *OF_SKLEARN, *LEFT_OUT):
        vars(model).pop(name, None)
    model.verbose = 0
    K = 1.0 + np.cos(np.arange(2.0 * n)).reshape(2, n)
    found = {name: getattr(model, name)(K) for name in METHODS if hasattr(model, name)}
    if (map := vars(model).get("_map")) is not None:
        C = columns(K)
        found.update(features=(C @ map.W) * map.S, eigenvectors=C @ map.E, spectrum=map.Lambda)
    return {"pairs": pairs, **found}


def _require_same(estimator: BaseEstimator, before: dict[str, Any]) -> None:
    """Raise an error if the kernel or the model gives other values than before."""
    with np.errstate(all="ignore"):
        now = _answers(estimator)
        same = {name: _alike(x, before[name], name == "pairs") for name, x in now.items()}
    if not same["pairs"]:
        error = GivenError if estimator.kernel_.untrusted else ModelFormatError
        x, y = now["pairs"].ravel(), before["pairs"].ravel()
        i = int(np.argmax(np.abs(x - y)))
        raise error(
            f"for two of its objects the kernel gives {x[i]:.6g} now and gave {y[i]:.6g} when the "
            "model was saved; it is another kernel, or another version of it"
        )
    good = now.keys() == before.keys() and all(same.values())
    require(good, "its arrays do not give what the model gave when it was saved")


def _alike(x: Any, y: Any, pairs: bool) -> bool:
    """Whether two arrays are equal up to rounding, which is another on another machine."""
    if x.dtype.kind != "f" or x.shape != y.shape:
        return bool(np.array_equal(x, y))
    rtol = PAIRS_RTOL if pairs else RTOL[x.itemsize]
    return bool((np.abs(x - y) <= rtol * np.abs(y).max(initial=0.0)).all())
