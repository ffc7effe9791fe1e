"""A document in its three forms: read back by parsers, nothing lost, nothing taken for markup."""

from __future__ import annotations

import io
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from rich.console import Console

from kreinlearn.report.html import to_html
from kreinlearn.report.markdown import inline, to_markdown
from kreinlearn.report.model import (
    Check,
    Document,
    Picture,
    Section,
    Table,
    Verdict,
    literal,
    pieces,
)
from kreinlearn.report.terminal import show

NASTY = 'a < b & "c" | *d* _e_ [f](g) \\h $i$ <script>alert(1)</script>'
SVG = """<?xml version="1.0"?>
<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="9pt">
<defs><path id="m1" d="M 0 0"/><clipPath id="c1"><rect/></clipPath></defs>
<g clip-path="url(#c1)"><use xlink:href="#m1" style="fill: url(#m1)"/><text>5 &lt; 6</text></g>
</svg>"""
VOID = {"meta", "br", "hr", "img", "link"}


@pytest.fixture(scope="module")
def document() -> Document:
    rows = [["delta_gauss", "1.5 ± 0.1", NASTY], ["sigmoid", "missing", ""], ["c|d", "-3", "e"]]
    table = Table(f"Errors {NASTY}", ("kernel", "error, %", "remark"), rows, [f"Note {NASTY}"])
    sections = [
        Section("First & foremost", [NASTY, table, Picture("one", NASTY, NASTY, SVG)]),
        Section(
            "Second",
            [Picture("two", "Again", "the same", SVG), Table("Small", ("n", "s"), [["1", "2"]])],
            [Check("it holds", "1", "≤ 2", True), Check(NASTY, "3", "≤ 2", False)],
        ),
        Section("Third", ["text"], [Check("unknown", "-", "≤ 2", None)]),
    ]
    lead = ["Run `kreinlearn <x> | y`.", f"- first {NASTY}\n- second"]
    return Document("Title <b>", lead, sections)


# HTML


class Page(HTMLParser):
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
def page(document: Document) -> Page:
    return Page(to_html(document))


def test_the_page_is_balanced_named_and_in_a_language(page: Page) -> None:
    assert page.all("html")[0][0]["lang"] == "en"
    assert page.all("title")[0][1] == "Title <b>"
    assert page.all("meta")[2][0]["content"] == "width=device-width, initial-scale=1"


def test_the_page_forbids_scripts_and_whatever_is_elsewhere(page: Page) -> None:
    policy = page.all("meta")[1][0]
    assert policy["http-equiv"] == "Content-Security-Policy"
    assert policy["content"].startswith("default-src 'none'; style-src 'unsafe-inline';")


def test_the_verdict_stands_out_and_comes_first() -> None:
    text = to_html(Document("t", [Verdict("a < b"), "then"], [Section("s")]))
    assert text.index("<h1>") < text.index('<p class="verdict">a &lt; b</p>') < text.index("then")
    assert "a \\< b" in to_markdown(Document("t", [Verdict("a < b")]))


def test_a_backtick_may_be_meant() -> None:
    for text in ("a `b` c", r"\`", "``", r"a\b `c\` d"):
        assert [*pieces(literal(text))] == [(text, False)]
    assert [*pieces(r"see `x` and \`y\`")] == [("see ", False), ("x", True), (" and `y`", False)]
    assert inline(literal("`a`")) == r"\`a\`"


def test_text_is_text(page: Page) -> None:
    assert not page.all("script")
    assert not page.all("b")[0][1].startswith("<")
    assert NASTY in [text for _, text in page.all("p")]
    assert NASTY in [text for _, text in page.all("td")]
    assert [text for _, text in page.all("li")][:2] == [f"first {NASTY}", "second"]
    assert page.all("code")[0][1] == "kreinlearn <x> | y"


def test_ids_are_unique_and_what_refers_to_them_finds_them(page: Page, document: Document) -> None:
    ids = [attrs["id"] for _, attrs in page.elements if "id" in attrs]
    assert len(ids) == len(set(ids)) >= 4 + 2 + 2
    links = [attrs.get("href", attrs.get("xlink:href")) for _, attrs in page.elements]
    inner = [link[1:] for link in links if link]
    labels = [
        label for _, attrs in page.elements for label in attrs.get("aria-labelledby", "").split()
    ]
    urls = re.findall(r"url\(#([^)]+)\)", to_html(document))
    assert len(urls) == 4
    assert set(inner) | set(labels) | set(urls) <= set(ids)


def test_the_page_needs_nothing_else(page: Page, document: Document) -> None:
    for _, attrs in page.elements:
        assert "src" not in attrs
        assert attrs.get("href", "#").startswith("#")
    assert "@import" not in to_html(document)


def test_headings_come_in_order(page: Page) -> None:
    levels = [int(name[1]) for name, _ in page.elements if re.fullmatch("h[1-6]", name)]
    assert levels == [1, 2, 2, 2, 2, 3, 2, 3]
    links = [text for attrs, text in page.all("a") if attrs["href"].startswith("#section")]
    assert links == ["First & foremost", "Second", "Third"]


def test_every_picture_says_what_it_shows(page: Page) -> None:
    drawn = page.all("svg")
    texts = {attrs["id"]: text for tag in ("title", "desc") for attrs, text in page.all(tag)[-2:]}
    named = [[texts[name] for name in attrs["aria-labelledby"].split()] for attrs, _ in drawn]
    assert named == [[NASTY, NASTY], ["Again", "the same"]]
    assert {attrs["role"] for attrs, _ in drawn} == {"img"}
    assert all("5 < 6" in text for _, text in drawn)


def test_every_cell_has_its_headers(page: Page, document: Document) -> None:
    scopes = [attrs["scope"] for attrs, _ in page.all("th")]
    assert scopes.count("col") == 5 + 3 + 2 + 4 + 4
    assert scopes.count("row") == 3 + 3 + 1 + 2 + 1
    assert len(page.all("td")) == 3 * 4 + 3 * 2 + 1 + 2 * 3 + 3
    regions = [attrs for attrs, _ in page.all("div") if attrs["class"] == "scroll"]
    assert len(regions) == 5 + 2
    assert all(attrs["tabindex"] == "0" and attrs["aria-labelledby"] for attrs in regions)


def test_tables_and_figures_are_numbered(page: Page) -> None:
    starts = [text.split(".")[0] for _, text in page.all("figcaption")]
    assert starts == ["Table 1", "Figure 1", "Figure 2", "Table 2"]


def test_verdicts_and_numbers_have_classes(page: Page) -> None:
    kinds = {text: attrs.get("class") for attrs, text in page.all("td")}
    assert (kinds["PASS"], kinds["MISS"], kinds["not measured"]) == ("v pass", "v miss", "v")
    assert kinds["1.5 ± 0.1"] == "n"


# Markdown


def cells(line: str) -> list[str]:
    """Of one row, as a reader of Markdown has them."""
    parts = re.split(r"(?<!\\)\|", line)[1:-1]
    return [re.sub(r"\\(.)", r"\1", part.strip()) for part in parts]


def tables(text: str) -> list[list[list[str]]]:
    blocks = [block for block in text.split("\n\n") if block.startswith("|")]
    return [[cells(line) for line in block.splitlines()] for block in blocks]


def test_tables_of_markdown_parse_back(document: Document) -> None:
    summary, errors, small, second, third = tables(to_markdown(document))
    first = document.sections[0].blocks[1]
    assert isinstance(first, Table)
    assert [errors[0], *errors[2:]] == [list(first.header), *first.rows]
    assert errors[1] == ["---", "---:", "---"]
    assert small == [["n", "s"], ["---", "---:"], ["1", "2"]]
    assert summary[0] == ["claim", "verdict", "found", "limit", "section"]
    assert summary[2:] == [
        ["it holds", "PASS", "1", "≤ 2", "2"],
        [NASTY, "MISS", "3", "≤ 2", "2"],
        ["unknown", "not measured", "-", "≤ 2", "3"],
    ]
    assert [row[:4] for row in summary[2:]] == second[2:] + third[2:]


def test_markdown_has_pictures_beside_it(document: Document) -> None:
    text = to_markdown(document, pictures="there")
    assert re.findall(r"\]\((there/[^)]*)\)", text) == ["there/one.svg", "there/two.svg"]
    assert "**Figure 2.** Again" in text
    assert "## 2. Second" in text
    assert "`kreinlearn <x> | y`" in text
    assert "<script" not in re.sub(r"\\<", "", text)


@pytest.mark.parametrize("text", ["# no heading", "1. no list", "- no list\nbut two lines", "> x"])
def test_a_paragraph_of_markdown_stays_one(text: str) -> None:
    shown = to_markdown(Document("t", [text])).split("\n\n")[1].strip()
    assert re.sub(r"\\(.)", r"\1", shown) == text.replace("\n", " ")
    assert "\\" in shown.split()[0]


def test_one_table_alone() -> None:
    table = Table("T", ("a", "b"), [["x", "1"]], ["note"])
    assert table.markdown(3) == "### T\n\n| a | b |\n| --- | ---: |\n| x | 1 |\n\nnote\n"


# The terminal


def shown(document: Document, width: int) -> str:
    console = Console(file=io.StringIO(), width=width)
    show(document, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [40, 70, 300])
def test_the_terminal_shows_all(document: Document, width: int) -> None:
    text = shown(document, width)
    assert max(map(len, text.splitlines())) <= width
    for word in ("delta_gauss", "1.5 ± 0.1", "missing", "Figure 2. Again", "Table 2.", "MISS"):
        assert word in text
    assert NASTY in shown(document, 300)  # [f] is no colour


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
