"""The demonstration: a metric that is no kernel is inspected, approximated and learned from."""

from kreinlearn.demo.command import main

__all__ = ["main"]
