"""The JSON header of a model file: what it must say before anything else is read."""

from __future__ import annotations

import json
from importlib import import_module
from math import isfinite
from typing import Any

import sklearn
from sklearn.exceptions import InconsistentVersionWarning

from kreinlearn._warnings import warn
from kreinlearn.persist.errors import ModelFormatError, require

FORMAT, VERSION = "kreinlearn model", 1
HEADER, DIGEST = "header.json", "header.sha256"
LONGEST = 2**20  # bytes
FIELDS = {
    *("format", "version", "written_by", "estimator", "parameters", "not_stored", "kernel"),
    *("columns", "state", "map", "sigmoids", "check", "sha256"),
}
EXTERNAL = {"type": "external"}  # in the place of a kernel that is given again


def versions() -> dict[str, str]:
    """Of the libraries whose change may change what a model does."""
    ours = import_module("kreinlearn").__version__
    return {"kreinlearn": ours, "scikit-learn": sklearn.__version__}


def parsed(text: bytes) -> dict[str, Any]:
    """ModelFormatError unless it is JSON of this format and of a version that is known."""
    try:
        header = json.loads(
            text.decode("ascii"), parse_float=_finite, parse_constant=_finite,
            object_pairs_hook=_once,
        )  # fmt: skip
    except ModelFormatError:
        raise
    except (ValueError, RecursionError) as error:
        raise ModelFormatError(f"its header is no JSON that save writes ({error!s:.80})") from error
    good = isinstance(header, dict) and header.get("format") == FORMAT
    require(good, f"its header does not say {FORMAT!r}")
    version = header.get("version")
    require(type(version) is int and version > 0, f"its version is {version!r:.40}")
    require(
        version <= VERSION,
        f"it was written by a newer version of kreinlearn (format {version}, this one reads up to "
        f"{VERSION}); update kreinlearn",
    )
    require(header.keys() == FIELDS, f"its header has the fields {sorted(header)!s:.200}")
    return dict(header)


def _finite(number: str) -> float:
    value = float(number)
    require(isfinite(value), f"its header has the number {number:.40}")
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    require(len(found) == len(pairs), "its header has a field twice")
    return found


class OtherVersion(InconsistentVersionWarning):
    """Saved by another version of a library: predictions may differ."""

    def __init__(self, name: str, library: str, here: str, there: str) -> None:
        super().__init__(
            estimator_name=name, current_sklearn_version=here, original_sklearn_version=there
        )
        self.library = library

    def __str__(self) -> str:
        return (
            f"the {self.estimator_name} was saved by {self.library} "
            f"{self.original_sklearn_version}, and this is {self.current_sklearn_version}: its "
            "predictions may differ; fit and save it anew to be sure"
        )


def warn_of_versions(name: str, there: Any) -> None:
    here = versions()
    good = isinstance(there, dict) and there.keys() == here.keys()
    require(good and all(isinstance(one, str) for one in there.values()), "it has no versions")
    for library, version in here.items():
        if there[library] != version:
            warn(OtherVersion(name, library, version, there[library][:40]))
