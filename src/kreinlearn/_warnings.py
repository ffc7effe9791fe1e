"""Warnings that name the line of the person who called, not one of the library."""

from __future__ import annotations

import sys
import warnings

LIBRARIES = {"contextlib", "joblib", "kreinlearn", "sklearn"}


class NotRemembered(UserWarning):
    """There is no room for kernel values, some of which are evaluated more than once."""


class RareClasses(UserWarning):
    """Some classes have fewer objects than there are folds."""


def warn(message: str | Warning, category: type[Warning] = UserWarning) -> None:
    level, frame = 2, sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").split(".")[0] in LIBRARIES:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
