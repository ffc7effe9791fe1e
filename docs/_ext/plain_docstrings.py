"""Docstrings of the package for numpydoc: mathematics in them is no markup.

Outside of literals, ``|x - z|``, ``f_+`` and ``rank_`` mean what they say, and not a substitution
or a link. Public classes in double backticks become links.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import is_dataclass
from typing import Any

import kreinlearn

LITERAL = re.compile(r"(``.+?``)")
# |x| would be a substitution, rank_ a link; what has a backslash is left as it is
MARKUP = re.compile(r"(?<!\\)[*|]|(?<=\w)_(?=\W|$)")
CLASSES = "|".join(name for name in kreinlearn.__all__ if name[0].isupper())
PUBLIC = re.compile(rf"``({CLASSES})``")
FIELD = re.compile(r"^    (\w+): [^#\n]+?(?:#\s*(.+))?$", re.MULTILINE)


def escaped(text: str) -> str:
    """Nothing outside of literals is markup; public classes become links."""
    halves = LITERAL.split(text)
    for i in range(0, len(halves), 2):
        halves[i] = MARKUP.sub(r"\\\g<0>", halves[i])
    return PUBLIC.sub(r":py:obj:`\1 <kreinlearn.\1>`", "".join(halves))


def rewritten(lines: list[str]) -> Iterator[str]:
    """Every line escaped, except code and the names of parameters, which numpydoc escapes."""
    for line in lines:
        name, colon, kind = line.partition(" : ")
        if line.lstrip().startswith((">>>", "...")):
            yield line
        elif colon and not line.startswith(" "):
            yield f"{name}{colon}{escaped(kind)}"
        else:
            yield escaped(line)


def fields(kind: type) -> Iterator[str]:
    """Fields of a dataclass, with the comments that say what they are."""
    yield from ("", "Attributes", "----------")
    for name, words in FIELD.findall(inspect.getsource(kind)):
        yield from (name, f"    {escaped(words)}")


def process(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    if str(getattr(obj, "__module__", "kreinlearn")).startswith("kreinlearn"):
        described = {"Parameters", "Attributes"}.intersection(lines)
        lines[:] = list(rewritten(lines))
        if what == "class" and is_dataclass(obj) and not described:
            lines += fields(obj)


def setup(app: Any) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", process, priority=100)  # before numpydoc
    return {"parallel_read_safe": True, "parallel_write_safe": True}
