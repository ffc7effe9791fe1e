"""The command ``kreinlearn``: parses, calls, prints; one line instead of a traceback."""

from kreinlearn.cli.main import main

__all__ = ["main"]
