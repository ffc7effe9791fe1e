"""The one template: a page as HTML with its pictures and style in it, or as Markdown."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from html import escape
from importlib.resources import files

from kreinlearn.report.model import LONG, Block, Page, Picture, Table, in_markdown

SHORT = 12  # characters of a cell that is never wrapped


def to_html(page: Page) -> str:
    """A page that needs no other file and no network."""
    frame, style = (
        (files("kreinlearn.report") / name).read_text(encoding="utf8")
        for name in ("page.html", "style.css")
    )
    content = [f"<h1>{escape(page.title)}</h1>", f'<p class="verdict">{escape(page.verdict)}</p>']
    for heading, blocks in page.sections.items():
        content += [f"<h2>{escape(heading)}</h2>", *map(_element, blocks)]
    return frame.format(title=escape(page.title), style=style, content="\n".join(content))


def to_markdown(page: Page) -> str:
    """The page in the dialect of GitHub; pictures are their captions."""
    lines = [f"# {in_markdown(page.title)}", in_markdown(page.verdict)]
    for heading, blocks in page.sections.items():
        lines.append(f"## {in_markdown(heading)}")
        for block in blocks:
            if isinstance(block, Table):
                lines += [f"**{in_markdown(block.title)}**", block.grid()]
                lines += map(in_markdown, block.notes)
            elif isinstance(block, list):
                lines.append("\n".join(f"- {in_markdown(item)}" for item in block))
            elif isinstance(block, str):
                lines.append(in_markdown(block))
    return "\n\n".join(lines) + "\n"


def _element(block: Block) -> str:
    if isinstance(block, Table):
        return _table(block)
    if isinstance(block, Picture):
        image = f"data:image/svg+xml;base64,{b64encode(block.svg.encode()).decode()}"
        caption = f"<figcaption>{escape(block.caption)}</figcaption>"
        drawn = f'<img src="{image}" alt="{escape(block.alt)}">'
        return f'<figure class="picture">{drawn}{caption}</figure>'
    if isinstance(block, list):
        return f"<ul>{''.join(f'<li>{escape(item)}</li>' for item in block)}</ul>"
    return f"<p>{escape(block)}</p>"


def _table(table: Table) -> str:
    """The cells in a box that can be scrolled."""
    title, numeric = escape(table.title), table.numeric
    header = "".join(
        f'<th scope="col"{_kind("", right)}>{escape(cell)}</th>'
        for cell, right in zip(table.header, numeric, strict=True)
    )
    rows = "\n".join(f"<tr>{''.join(_cells(row, numeric))}</tr>" for row in table.rows)
    notes = "".join(f'<p class="notes">{escape(note)}</p>' for note in table.notes)
    return (
        f'<figure><div class="scroll" role="region" aria-label="{title}" tabindex="0">\n'
        f"<table><caption>{title}</caption><thead><tr>{header}</tr></thead>\n"
        f"<tbody>\n{rows}\n</tbody></table></div>{notes}</figure>"
    )


def _cells(row: list[str], numeric: list[bool]) -> Iterator[str]:
    yield f'<th scope="row">{escape(row[0])}</th>'
    for cell, right in zip(row[1:], numeric[1:], strict=True):
        yield f"<td{_kind(cell, right)}>{escape(cell)}</td>"


def _kind(cell: str, right: bool) -> str:
    long = ' class="long"' if len(cell) > LONG else ""
    return ' class="n"' if right else ' class="v"' if 0 < len(cell) <= SHORT else long
