"""A table on the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from kreinlearn.report.model import Table

if TYPE_CHECKING:
    from rich.console import Console

VERDICTS = {"PASS": "green", "MISS": "bold red", "not measured": "yellow"}
WRAPPED = 36  # characters of a line in a cell that is wrapped


def show_table(table: Table, console: Console) -> None:
    """Print a table; if it is too wide, in several parts that each have the first column."""
    from rich.table import Table as RichTable
    from rich.text import Text

    numeric = table.numeric
    for part in parts(table, console.width):
        title = Text(table.title) if 1 in part or len(table.header) == 1 else None
        shown = RichTable(title=title, title_justify="left", title_style="bold")
        for j, width in part.items():
            side: Literal["right", "left"] = "right" if numeric[j] else "left"
            shown.add_column(Text(table.header[j]), justify=side, width=width, overflow="fold")
        for row in table.rows:
            shown.add_row(*(Text(row[j], style=VERDICTS.get(row[j], "")) for j in part))
        console.print(shown)
    for note in table.notes:
        console.print(note, style="dim", markup=False, highlight=False)


def parts(table: Table, width: int) -> Iterator[dict[int, int]]:
    """The columns of each part of a table by number, with their widths, such that it fits."""
    columns = [[row[j] for row in table.rows] for j in range(len(table.header))]
    cells = [max(map(len, column), default=0) for column in columns]
    whole = {j: max(cells[j], len(name)) for j, name in enumerate(table.header)}
    words = [max(map(len, name.split()), default=0) for name in table.header]
    most = min(WRAPPED, width // 2 - 4)  # two columns fit in any case
    least = {j: min(max(cells[j], word), most) for j, word in enumerate(words)}
    chosen: list[int] = []
    for j in least:
        if len(chosen) > 1 and _total(least, [*chosen, j]) > width:
            yield _widths(whole, least, chosen, width)
            chosen = [0]
        chosen.append(j)
    yield _widths(whole, least, chosen, width)


def _total(widths: dict[int, int], columns: list[int]) -> int:
    return 1 + sum(widths[j] + 3 for j in columns)  # with the lines in between


def _widths(
    whole: dict[int, int], least: dict[int, int], columns: list[int], width: int
) -> dict[int, int]:
    """The widths of the columns, without wrapping if there is room."""
    widths = whole if _total(whole, columns) <= width else least
    return {j: widths[j] for j in columns}
