"""Docstrings of the package as numpydoc wants them.

The package writes ``name : what it is, in words`` on one or more lines; numpydoc takes what
follows the colon for a type. Mathematics in them (``|x - z|``, ``f_+``) is no markup.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import is_dataclass
from itertools import groupby
from typing import Any

import kreinlearn

SECTIONS = ("Parameters", "Attributes")
LITERAL = re.compile(r"(``.+?``)")
UNDERSCORE = re.compile(r"(?<=\w)_(?=\W|$)")  # rank_ would be a link
ITEM = re.compile(r'["\w., ]+ : ')
CLASSES = "|".join(name for name in kreinlearn.__all__ if name[0].isupper())
PUBLIC = re.compile(rf"``({CLASSES})``")


def escaped(line: str) -> str:
    """Nothing outside literals is markup; public classes become links."""
    halves = LITERAL.split(line)
    for i in range(0, len(halves), 2):
        plain = halves[i].replace("*", r"\*").replace("|", r"\|")
        halves[i] = UNDERSCORE.sub(r"\\_", plain)
    return PUBLIC.sub(r":py:obj:`\1 <kreinlearn.\1>`", "".join(halves))


def items(lines: list[str], quote: str = "") -> Iterator[str]:
    """Names on one line, words below."""
    names = ""
    for line in lines:
        if line.startswith(" "):
            yield escaped(line)
            continue
        names = f"{names} {line}".strip()
        if " : " in names:
            name, words = names.split(" : ", 1)
            yield from (f"{quote}{name}{quote}", f"    {escaped(words)}")
            names = ""


def paragraph(lines: list[str], section: str) -> Iterator[str]:
    if lines[0].lstrip().startswith(">>>"):
        yield from lines
    elif section in SECTIONS:
        yield from items(lines)
    elif ITEM.match(lines[0]):
        yield from items(lines, quote="``")
    else:
        yield from map(escaped, lines)


def rewritten(lines: list[str]) -> Iterator[str]:
    section = ""
    for blank, group in groupby(lines, key=lambda line: not line.strip()):
        block = list(group)
        if blank:
            yield from block
            continue
        if len(block) > 1 and set(block[1].strip()) == {"-"}:
            section = block[0].strip()
            yield from block[:2]
            block = block[2:]
        if block:
            yield from paragraph(block, section)


FIELD = re.compile(r"^    (\w+): [^#\n]+?(?:#\s*(.+))?$", re.MULTILINE)


def fields(kind: type) -> Iterator[str]:
    """Of a dataclass, with the comments that say what they are."""
    yield from ("", "Attributes", "----------")
    for name, words in FIELD.findall(inspect.getsource(kind)):
        yield from (name, f"    {escaped(words)}")


def process(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    if str(getattr(obj, "__module__", "kreinlearn")).startswith("kreinlearn"):
        lines[:] = list(rewritten(lines))
        if what == "class" and is_dataclass(obj):
            lines += fields(obj)


def setup(app: Any) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", process, priority=100)  # before numpydoc
    return {"parallel_read_safe": True, "parallel_write_safe": True}
