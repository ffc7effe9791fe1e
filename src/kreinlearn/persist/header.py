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
    *("columns", "state", "sigmoids", "check", "sha256"),
}
EXTERNAL = {"type": "external"}  # in the place of a kernel that must be given to load


def versions() -> dict[str, str]:
    """The versions of the libraries that may change what a model does."""
    ours = import_module("kreinlearn").__version__
    return {"kreinlearn": ours, "scikit-learn": sklearn.__version__}


def parsed(text: bytes) -> dict[str, Any]:
    """The header; ModelFormatError unless it is JSON of this format and of a known version."""
    try:
        header = json.loads(
            text.decode("ascii"), parse_float=_finite, parse_constant=_finite,
            object_pairs_hook=_unique,
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


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    require(len(fields) == len(pairs), "its header has a field twice")
    return fields


class OtherVersion(InconsistentVersionWarning):
    """The model was saved by another version of a library, so that predictions may differ."""

    library = ""

    def __str__(self) -> str:
        return (
            f"the {self.estimator_name} was saved by {self.library} "
            f"{self.original_sklearn_version}, and this is {self.current_sklearn_version}: its "
            "predictions may differ; fit and save it anew to be sure"
        )


def warn_of_versions(name: str, before: object) -> None:
    """Warn if an estimator of this name was saved by other versions."""
    now = versions()
    if not isinstance(before, dict) or before.keys() != now.keys():
        raise ModelFormatError("it has no versions")
    require(all(isinstance(one, str) for one in before.values()), "it has no versions")
    for library, version in now.items():
        if before[library] != version:
            warning = OtherVersion(
                estimator_name=name, current_sklearn_version=version,
                original_sklearn_version=before[library][:40],
            )  # fmt: skip
            warning.library = library
            warn(warning)
