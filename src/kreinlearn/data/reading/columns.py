"""Columns by name: which there are, and what a person may have meant."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

LISTED = 12  # names in an error


def require_column(name: str, names: Sequence[str], path: Path, what: str = "column") -> int:
    """The place of a column, or an error that lists those there."""
    count = names.count(name)
    if count == 1:
        return names.index(name)
    if count > 1:
        places = [j + 1 for j, other in enumerate(names) if other == name]
        raise ValueError(
            f"{path} has {count} {what}s named {name!r}, at places {places}; rename all but one"
        )
    raise ValueError(
        f"{path} has no {what} {name!r}{_meant(name, names)}; there are: "
        f"{listed(names)}{_other_delimiter(names)}"
    )


def listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - LISTED} more" * (len(names) > LISTED)
    return ", ".join(names[:LISTED]) + more


def _meant(name: str, names: Sequence[str]) -> str:
    same = {other.strip().lower(): other for other in reversed(names)}
    close = get_close_matches(name.strip().lower(), same, n=1)
    return f" (did you mean {same[close[0]]!r}?)" if close else ""


def _other_delimiter(names: Sequence[str]) -> str:
    """A hint, where the only name looks like several."""
    found = [mark for mark in (";", "\t", "|", ",") if mark in names[0]]
    if len(names) > 1 or not found:
        return ""
    shown = "tab" if found[0] == "\t" else f"'{found[0]}'"
    return f"; if {shown} separates the columns give --delimiter {shown}"
