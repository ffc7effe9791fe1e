"""Results as tables on the terminal, or as one page of HTML or Markdown."""

from typing import TYPE_CHECKING

from kreinlearn.report.model import Table

if TYPE_CHECKING:
    from kreinlearn.report.pages import write_report

__all__ = ["Table", "write_report"]


def __getattr__(name: str) -> object:
    """Import ``write_report`` when it is used: a command that shows a table starts faster."""
    if name != "write_report":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from kreinlearn.report.pages import write_report

    return write_report
