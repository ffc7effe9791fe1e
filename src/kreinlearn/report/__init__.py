"""What a long computation found, as one document: on the terminal, as Markdown, as HTML."""

from typing import TYPE_CHECKING, Any

from kreinlearn.report.html import to_html
from kreinlearn.report.markdown import to_markdown
from kreinlearn.report.model import (
    Block,
    Check,
    Document,
    Picture,
    Section,
    Table,
    Verdict,
    provenance,
    versions,
)
from kreinlearn.report.terminal import show

if TYPE_CHECKING:
    from kreinlearn.report.pages import write_report

__all__ = [
    "Block",
    "Check",
    "Document",
    "Picture",
    "Section",
    "Table",
    "Verdict",
    "provenance",
    "show",
    "to_html",
    "to_markdown",
    "versions",
    "write_report",
]


def __getattr__(name: str) -> Any:
    """``write_report`` knows estimators: a command that shows a table starts without them."""
    if name != "write_report":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from kreinlearn.report.pages import write_report

    return write_report
