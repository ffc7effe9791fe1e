"""The errors that are raised when a model cannot be saved or loaded."""

from __future__ import annotations

REMEDY = "load reads whole files that this version's save wrote: copy it again, or fit anew"


class ModelFormatError(ValueError):
    """The file is not a model file, is damaged, or was written by another version."""


class GivenError(ValueError):
    """The file may be sound, but the kernel that was given or registered does not go with it."""


class NotDataError(TypeError):
    """An object that a file of data cannot contain."""


def require(condition: object, found: str, remedy: str = REMEDY) -> None:
    """Raise a ModelFormatError, of what was found and what to do, unless the condition holds."""
    if not condition:
        raise ModelFormatError(f"{found}; {remedy}")
