"""The errors that are raised when a model cannot be saved or loaded."""

from __future__ import annotations


class ModelFormatError(ValueError):
    """The file is not a model file, is damaged, or was written by a newer version."""


class GivenError(ValueError):
    """The file may be sound, but the kernel that was given or registered does not go with it."""


class NotDataError(TypeError):
    """An object that a file of data cannot contain."""


def require(condition: object, message: str) -> None:
    """Raise a ModelFormatError with this message unless the condition holds."""
    if not condition:
        raise ModelFormatError(message)
