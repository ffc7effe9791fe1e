"""Reports: Markdown that nothing breaks, and what says where results come from."""

from __future__ import annotations

import re

import kreinlearn
from reproduction.report import (
    Check,
    Document,
    Picture,
    Section,
    Table,
    provenance,
    to_markdown,
    versions,
)

ROWS = [["delta_gauss", "1.5 ± 0.1", "a|b"], ["sigmoid", "missing", "<c>"], ["d*", "-3", ""]]
SECTION = Section(
    "First",
    ["1. no list", Table("Errors", ("kernel", "error", "remark"), ROWS, ["A *note*."]),
     Picture("one", "A caption", "words", "<svg/>")],
    [Check("it holds", "1", "<= 2", True), Check("unknown", "-", "<= 2", None)],
)  # fmt: skip


def test_a_document_is_markdown_in_which_no_text_is_taken_for_markup() -> None:
    text = to_markdown(Document("Title", ["- one\n- two <b>"], [SECTION]), "pictures")
    lines = text.splitlines()
    assert lines[:4] == ["# Title", "", "- one", "- two \\<b>"]
    assert "| claim | verdict | found | limit | section |" in lines
    assert "| it holds | PASS | 1 | \\<= 2 | 1 |" in lines
    assert "| unknown | not measured | - | \\<= 2 | 1 |" in lines
    assert "1\\. no list" in lines
    at = lines.index("| kernel | error | remark |")
    assert lines[at - 2] == "**Table 1.** Errors"
    assert lines[at + 1] == "| --- | ---: | --- |"
    assert lines[at + 2] == "| delta_gauss | 1.5 ± 0.1 | a\\|b |"
    assert lines[at + 4] == "| d\\* | -3 |  |"
    assert "![words](pictures/one.svg)" in lines
    assert "**Figure 1.** A caption" in lines
    assert "A \\*note\\*." in lines


def test_provenance_names_commits_versions_and_the_kind_of_machine() -> None:
    assert list(versions()) == ["kreinlearn", "Python", "numpy", "scipy", "scikit-learn", "numba"]
    lines = provenance("python -m reproduction all", ["b2", "a1", ""]).splitlines()
    names = [line.split(":")[0] for line in lines]
    assert names == ["- date", "- commit", "- versions", "- machine", "- command"]
    assert re.fullmatch(r"- date: \d{4}-\d\d-\d\d", lines[0])
    assert lines[1] == "- commit: unknown, a1, b2"
    assert f"kreinlearn {kreinlearn.__version__}, Python 3." in lines[2]
    assert lines[4] == "- command: `python -m reproduction all`"
    assert len(provenance("x", [""]).splitlines()) == 4
