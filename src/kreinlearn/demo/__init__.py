"""The demonstration: a metric that is no kernel, looked at, approximated and learned from."""

from kreinlearn.demo.command import main

__all__ = ["main"]
