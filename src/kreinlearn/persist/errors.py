"""What is raised for a file that is no model, or no sound one."""

from __future__ import annotations


class ModelFormatError(ValueError):
    """The file is not a model file, is damaged, or was written by a newer version."""


def require(condition: object, what: str) -> None:
    """ModelFormatError unless the condition holds."""
    if not condition:
        raise ModelFormatError(what)


class GivenError(ValueError):
    """The file may be sound, but not what was given or registered to go with it."""
