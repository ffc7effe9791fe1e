"""The command ``kreinlearn``: it parses its arguments, calls the library and prints the results."""

from kreinlearn.cli.main import main

__all__ = ["main"]
