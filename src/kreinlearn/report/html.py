"""A document as one HTML file, which contains its pictures and its style."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from importlib.resources import files

from kreinlearn.report.model import LONG, Block, Document, Picture, Table, Verdict, listed, pieces
from kreinlearn.report.svg import inlined

VERDICTS = {"PASS": "v pass", "MISS": "v miss", "not measured": "v"}
SHORT = 12  # characters of a cell that is never wrapped


def to_html(document: Document) -> str:
    """The HTML page of a document.

    Parameters
    ----------
    document : Document
        The document.

    Returns
    -------
    str
        A page that needs no other file and no network.
    """
    page, style = (
        (files("kreinlearn.report") / name).read_text(encoding="utf8")
        for name in ("page.html", "style.css")
    )
    content = "\n".join(_content(document))
    title = escape("".join(piece for piece, _ in pieces(document.title)))
    return page.format(title=title, style=style, content=content)


def _content(document: Document) -> Iterator[str]:
    numbers = document.numbers
    yield f"<h1>{inline(document.title)}</h1>"
    yield from _blocks(numbers, document.lead)
    yield from _contents(document)
    if document.checked.rows:
        yield '<section aria-labelledby="summary">\n<h2 id="summary">Summary of checks</h2>'
        yield _grid(document.checked, "summary", "checks")
        yield "</section>"
    for i, section in enumerate(document.sections, 1):
        yield f'<section aria-labelledby="section-{i}">'
        yield f'<h2 id="section-{i}">{i}. {inline(section.title)}</h2>'
        yield from _blocks(numbers, section.blocks)
        if section.checks:
            yield f'<h3 id="checks-{i}">Checks</h3>'
            yield _grid(section.checked, f"checks-{i}", "checks")
        yield "</section>"


def _contents(document: Document) -> Iterator[str]:
    if len(document.sections) > 1:
        yield '<nav aria-labelledby="contents">\n<h2 id="contents">Contents</h2>\n<ol>'
        for i, section in enumerate(document.sections, 1):
            yield f'<li><a href="#section-{i}">{inline(section.title)}</a></li>'
        yield "</ol>\n</nav>"


def _blocks(numbers: dict[int, int], blocks: Iterable[Block]) -> Iterator[str]:
    for block in blocks:
        if isinstance(block, Table):
            yield _table(block, numbers[id(block)])
        elif isinstance(block, Picture):
            yield _picture(block, numbers[id(block)])
        elif isinstance(block, Verdict):
            yield f'<p class="verdict">{inline(block)}</p>'
        elif items := listed(block):
            yield "<ul>\n" + "\n".join(f"<li>{inline(item)}</li>" for item in items) + "\n</ul>"
        else:
            yield f"<p>{inline(block)}</p>"


def inline(text: str) -> str:
    """A text with its code marked, and everything else escaped."""
    parts = [(escape(piece), code) for piece, code in pieces(text)]
    return "".join(f"<code>{piece}</code>" if code else piece for piece, code in parts)


# Tables


def _table(table: Table, number: int) -> str:
    name = f"table-{number}"
    caption = f'<figcaption id="{name}"><b>Table {number}.</b> {inline(table.title)}</figcaption>'
    notes = "".join(f'<p class="notes">{inline(note)}</p>\n' for note in table.notes)
    return f"<figure>\n{caption}\n{_grid(table, name)}\n{notes}</figure>"


def _grid(table: Table, label: str, kind: str = "") -> str:
    """The cells in a box that can be scrolled; ``label`` is the id of the element that names it."""
    numeric = table.numeric
    header = [
        f'<th scope="col"{_class("n" if right else "")}>{inline(cell)}</th>'
        for cell, right in zip(table.header, numeric, strict=True)
    ]
    rows = "\n".join(f"<tr>{''.join(_row(row, numeric))}</tr>" for row in table.rows)
    return (
        f'<div class="scroll" role="region" aria-labelledby="{label}" tabindex="0">\n'
        f'<table aria-labelledby="{label}"{_class(kind)}>\n'
        f"<thead><tr>{''.join(header)}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table>\n</div>"
    )


def _row(cells: Iterable[str], numeric: Iterable[bool]) -> Iterator[str]:
    for j, (cell, right) in enumerate(zip(cells, numeric, strict=True)):
        if j == 0:
            yield f'<th scope="row">{inline(cell)}</th>'
        else:
            text = "v" if len(cell) <= SHORT else "long" if len(cell) > LONG else ""
            kind = VERDICTS.get(cell) or ("n" if right else text)
            yield f"<td{_class(kind)}>{inline(cell)}</td>"


def _class(names: str) -> str:
    return f' class="{names}"' if names else ""


# Pictures


def _picture(picture: Picture, number: int) -> str:
    name = f"figure-{number}"
    svg = inlined(picture.svg, name, picture.caption, picture.alt)
    caption = f"<b>Figure {number}.</b> {inline(picture.caption)}"
    if not picture.fluid:
        box = f'<div class="scroll" role="region" aria-labelledby="{name}" tabindex="0">'
        svg = f"{box}\n{svg}\n</div>"
    kind = "picture fluid" if picture.fluid else "picture"
    caption = f'<figcaption id="{name}">{caption}</figcaption>'
    return f'<figure class="{kind}">\n{svg}\n{caption}\n</figure>'
