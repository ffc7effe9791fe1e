"""Model files: they contain data, never code."""

from kreinlearn.persist.errors import ModelFormatError
from kreinlearn.persist.loading import load
from kreinlearn.persist.saving import save

__all__ = ["ModelFormatError", "load", "save"]
