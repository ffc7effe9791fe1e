"""The demonstration: a metric that is no kernel is inspected, approximated and learned from."""

from reproduction.demo.command import main

__all__ = ["main"]
