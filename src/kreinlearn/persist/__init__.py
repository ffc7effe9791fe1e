"""Model files: they contain data, never code."""

from kreinlearn.persist.errors import ModelFormatError
from kreinlearn.persist.files import load, save

__all__ = ["ModelFormatError", "load", "save"]
