"""A page in its two forms and a table: read back by parsers, nothing lost, or taken for markup."""

from __future__ import annotations

import io
import re
from base64 import b64decode
from html.parser import HTMLParser
from typing import Any

import pytest
from rich.console import Console

from kreinlearn.report.model import Block, Page, Picture, Table, in_markdown
from kreinlearn.report.template import to_html, to_markdown

NASTY = 'a < b & "c" | *d* _e_ [f](g) \\h $i$ `j` <script>alert(1)</script>'
SVG = '<svg xmlns="http://www.w3.org/2000/svg"><text>5 &lt; 6</text></svg>'
VOID = {"meta", "br", "hr", "img", "link"}
ROWS = [["delta_gauss", "1.5 ± 0.1", NASTY], ["sigmoid", "missing", ""], ["c|d", "-3", "e"]]
HEADER = ("kernel", "error, %", "remark")


def a_page() -> Page:
    table = Table(f"Errors {NASTY}", HEADER, ROWS, [f"Note {NASTY}"])
    small = Table("Small", ("n", "s"), [["1", "2"]])
    sections: dict[str, list[Block]] = {
        "First & foremost": [NASTY, table, Picture(NASTY, NASTY, SVG)],
        "Second": [[f"first {NASTY}", "second"], small],
    }
    return Page("Title <b>", f"It is {NASTY}", sections)


# HTML


class Elements(HTMLParser):
    """Elements in order with the elements around them, and the text of each."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.stack: list[str] = []
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: list[str] = []
        self.open: list[int] = []
        self.feed(text)
        self.close()
        assert self.stack == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.elements.append((tag, {k: v or "" for k, v in attrs}))
        self.texts.append("")
        if tag not in VOID:
            self.stack.append(tag)
            self.open.append(len(self.elements) - 1)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.stack.pop() == tag
        self.open.pop()

    def handle_data(self, data: str) -> None:
        for i in self.open:
            self.texts[i] += data

    def all(self, tag: str) -> list[tuple[dict[str, str], str]]:
        zipped = zip(self.elements, self.texts, strict=True)
        return [(attrs, text) for (name, attrs), text in zipped if name == tag]


@pytest.fixture(scope="module")
def page() -> Elements:
    return Elements(to_html(a_page()))


def test_the_page_is_balanced_named_and_in_a_language(page: Elements) -> None:
    assert page.all("html")[0][0]["lang"] == "en"
    assert page.all("title")[0][1] == "Title <b>"
    assert page.all("meta")[2][0]["content"] == "width=device-width, initial-scale=1"


def test_the_page_forbids_scripts_and_whatever_is_elsewhere(page: Elements) -> None:
    policy = page.all("meta")[1][0]
    assert policy["http-equiv"] == "Content-Security-Policy"
    allowed = "default-src 'none'; style-src 'unsafe-inline'; img-src data:;"
    assert policy["content"].startswith(allowed)
    assert all(attrs.get("src", "data:").startswith("data:") for _, attrs in page.elements)
    assert not any("href" in attrs for _, attrs in page.elements)
    assert "@import" not in to_html(a_page())


def test_text_is_text(page: Elements) -> None:
    assert not page.all("script")
    assert page.all("p")[0] == ({"class": "verdict"}, f"It is {NASTY}")
    assert NASTY in [text for _, text in page.all("p")]
    assert NASTY in [text for _, text in page.all("td")]
    assert [text for _, text in page.all("li")] == [f"first {NASTY}", "second"]
    assert [text for _, text in page.all("h2")] == ["First & foremost", "Second"]


def test_every_picture_says_what_it_shows(page: Elements) -> None:
    ((image, _),) = page.all("img")
    assert image["alt"] == NASTY
    assert b64decode(image["src"].partition(",")[2]).decode() == SVG
    assert page.all("figcaption")[0][1] == NASTY


def test_every_cell_has_its_headers(page: Elements) -> None:
    scopes = [attrs["scope"] for attrs, _ in page.all("th")]
    assert (scopes.count("col"), scopes.count("row")) == (3 + 2, 3 + 1)
    assert [text for _, text in page.all("caption")] == [f"Errors {NASTY}", "Small"]
    regions = [attrs for attrs, _ in page.all("div")]
    assert all(attrs["tabindex"] == "0" and attrs["aria-label"] for attrs in regions)
    kinds = {text: attrs.get("class") for attrs, text in page.all("td")}
    assert (kinds["1.5 ± 0.1"], kinds["e"], kinds[NASTY]) == ("n", "v", "long")


# Markdown


def cells(line: str) -> list[str]:
    """Of one row, as a reader of Markdown has them."""
    parts = re.split(r"(?<!\\)\|", line)[1:-1]
    return [re.sub(r"\\(.)", r"\1", part.strip()) for part in parts]


def tables(text: str) -> list[list[list[str]]]:
    blocks = [block for block in text.split("\n\n") if block.startswith("|")]
    return [[cells(line) for line in block.splitlines()] for block in blocks]


def test_tables_of_markdown_parse_back() -> None:
    text = to_markdown(a_page())
    errors, small = tables(text)
    assert [errors[0], *errors[2:]] == [list(HEADER), *ROWS]
    assert errors[1] == ["---", "---:", "---"]
    assert small == [["n", "s"], ["---", "---:"], ["1", "2"]]
    assert "## Second" in text
    assert "<script" not in re.sub(r"\\<", "", text)


@pytest.mark.parametrize("text", ["# no heading", "1. no list", "- no list\nbut two lines", "> x"])
def test_a_paragraph_of_markdown_stays_one(text: str) -> None:
    shown = in_markdown(text)
    assert re.sub(r"\\(.)", r"\1", shown) == text.replace("\n", " ")
    assert "\\" in shown.split()[0]


def test_one_table_alone() -> None:
    table = Table("T", ("a", "b"), [["x", "1"]], ["note"])
    assert table.markdown(3) == "### T\n\n| a | b |\n| --- | ---: |\n| x | 1 |\n\nnote\n"


# The terminal


@pytest.mark.parametrize("width", [40, 70, 300])
def test_the_terminal_shows_all(width: int) -> None:
    console = Console(file=io.StringIO(), width=width)
    Table(NASTY, HEADER, ROWS, ["a note"]).show(console)
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    assert max(map(len, text.splitlines())) <= width
    for word in ("delta_gauss", "1.5 ± 0.1", "missing", "a note"):
        assert word in text
    assert width < 300 or NASTY in text  # [f] is no colour


def test_a_wide_table_is_shown_in_parts() -> None:
    table = Table("Wide", [f"column{j}" for j in range(12)], [[f"{j}.5" for j in range(12)]])
    console = Console(file=io.StringIO(), width=50)
    table.show(console)
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    rows = [line.split("│")[1:-1] for line in text.splitlines() if "│" in line]
    assert [cell.strip() for row in rows for cell in row[1:]] == [f"{j}.5" for j in range(1, 12)]
    assert {row[0].strip() for row in rows} == {"0.5"}


def test_columns_of_numbers_are_told_from_words() -> None:
    rows = [["a", "-1.5", "≤ 2", "x1", "12 s", ""], ["b", "missing", "3e-5", "2", "", ""]]
    rows.append(["c", "(2 ± 1)", "1,000", "y", "3 min", ""])
    expected = [False, True, True, False, True, False]
    assert Table("", "abcdef", rows).numeric == expected
    rows[0][1] = "1.5 on the first set, 2.5 on the second"
    assert Table("", "abcdef", rows).numeric[1] is False
