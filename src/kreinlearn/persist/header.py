"""The model file: two lines, the content as one line of JSON, and the bytes of its arrays.

The first line names the format and its version, and the second has the sha256 of all that follows.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from hashlib import file_digest, sha256
from importlib import import_module
from io import BufferedReader
from math import isfinite
from typing import Any

import sklearn
from sklearn.exceptions import InconsistentVersionWarning

from kreinlearn._warnings import warn
from kreinlearn.persist.encoding import Reader, Writer
from kreinlearn.persist.errors import ModelFormatError, require

Own = (
    Callable[[Any], Any] | None
)  # the user's functions from and to objects of classes of their own

VERSION = 1
FIRST_LINE = re.compile(rb"kreinlearn model ([1-9]\d{0,8})\n")
FIELDS = {
    *("written_by", "estimator", "parameters", "not_stored", "external_kernel", "state", "kernel"),
    *("columns", "sigmoids", "check"),
}
OPTIONAL = {"conformal"}


def lines_of(content: dict[str, Any], encode: Own = None) -> list[bytes | memoryview]:
    """The lines of a file with this content, and its arrays; NotDataError for what is not data."""
    writer = Writer(encode)
    text = json.dumps(writer.value(content), ensure_ascii=False, allow_nan=False).encode() + b"\n"
    digest = sha256(text)
    for array in writer.arrays:
        digest.update(array)
    begin = f"kreinlearn model {VERSION}\n{digest.hexdigest()}\n".encode()
    return [begin, text, *writer.arrays]


def is_model(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins as a model file does."""
    with open(path, "rb") as file:
        return FIRST_LINE.fullmatch(file.readline(80)) is not None


def content_of(file: BufferedReader, size: int, decode: Own = None) -> dict[str, Any]:
    """The content of a file of this size; ModelFormatError if it is not what was written."""
    begin = file.readline(80)
    require(begin[:1] != b"\x80", "it looks like a pickle, which may run code and is never read")
    first = FIRST_LINE.fullmatch(begin)
    if first is None:
        raise ModelFormatError("it does not begin as a model file does")
    require(
        int(first[1]) <= VERSION,
        f"it was written by a newer version of kreinlearn (format {int(first[1])}, this one reads "
        f"up to {VERSION}); update kreinlearn",
    )
    digest, start = file.readline(65), file.tell()
    same = f"{file_digest(file, 'sha256').hexdigest()}\n".encode() == digest
    require(same, "its sha256 is another than it was when it was written: it was cut or changed")
    file.seek(start)
    text = file.readline()
    reader = Reader(file, size - file.tell(), decode)
    content = reader.value(_parsed(text))
    require(reader.left == 0, "it has bytes at its end that no array needs")
    return with_fields(content)


def with_fields(content: Any) -> dict[str, Any]:
    """The content of a file, or the part of it that holds the model of a fold; or an error."""
    good = isinstance(content, dict) and content.keys() - OPTIONAL == FIELDS
    require(good, f"it does not have the fields {sorted(FIELDS)}")
    return dict(content)


def _parsed(text: bytes) -> Any:
    try:
        return json.loads(
            text.decode(), parse_float=_finite, parse_constant=_finite, object_pairs_hook=_unique
        )
    except (ValueError, RecursionError) as error:
        why = f"{error!s:.80}"
        raise ModelFormatError(f"its content is no JSON that save writes ({why})") from error


def _finite(number: str) -> float:
    value = float(number)
    require(isfinite(value), f"it has the number {number:.40}")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    require(len(fields) == len(pairs), "it has a field twice")
    return fields


# Versions of libraries


def versions() -> dict[str, str]:
    """The versions of the libraries that may change what a model does."""
    ours = import_module("kreinlearn").__version__
    return {"kreinlearn": ours, "scikit-learn": sklearn.__version__}


class OtherVersion(InconsistentVersionWarning):
    """The model was saved by another version of a library, so that predictions may differ."""

    library = ""

    def __str__(self) -> str:
        return (
            f"the {self.estimator_name} was saved by {self.library} "
            f"{self.original_sklearn_version}, and this is {self.current_sklearn_version}: its "
            "predictions may differ; fit and save it anew to be sure"
        )


def warn_of_versions(name: str, before: Any) -> None:
    """Warn if an estimator of this name was saved by other versions."""
    now = versions()
    good = isinstance(before, dict) and before.keys() == now.keys()
    require(good and all(isinstance(one, str) for one in before.values()), "it has no versions")
    for library, version in now.items():
        if before[library] != version:
            warning = OtherVersion(
                estimator_name=name, current_sklearn_version=version,
                original_sklearn_version=before[library][:40],
            )  # fmt: skip
            warning.library = library
            warn(warning)
