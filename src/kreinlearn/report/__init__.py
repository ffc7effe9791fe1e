"""What a long computation found, as one document: on the terminal, as Markdown, as HTML."""

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
from kreinlearn.report.pages import write_report
from kreinlearn.report.terminal import show

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
