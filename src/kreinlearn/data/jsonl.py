"""JSON lines: one object per line, whose keys are the columns."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kreinlearn.data.fields import shown
from kreinlearn.data.text import TextTable


class JsonLines(TextTable):
    """A table whose rows are JSON objects; the keys of the first one name the columns."""

    def __init__(self, path: Path, *, encoding: str | None = None) -> None:
        super().__init__(path, encoding)
        _, first = next(self.records(), (0, {}))
        if not first:
            raise ValueError(f"{path} is empty: it has no object with a key")
        self.names = list(first)

    def records(self) -> Iterator[tuple[int, dict[str, Any]]]:
        for number, line in enumerate(self.text.lines(), 1):
            if not line.strip():
                continue
            try:
                record = json.loads(line, object_pairs_hook=_unique)
            except (ValueError, RecursionError) as error:
                raise ValueError(f"{self.path}, line {number}: {_why(error)}") from None
            if not isinstance(record, dict):
                raise ValueError(
                    f"{self.path}, line {number}: {shown(record)}, but a line must be an object, "
                    '{"column": value, ...}'
                )
            yield number, record


class _RepeatedKeyError(ValueError):
    """A key that an object of JSON has twice."""


def _why(error: Exception) -> str:
    """Why a line cannot be read: it is no JSON, or Python refuses what it holds."""
    if isinstance(error, json.JSONDecodeError | _RepeatedKeyError):
        return f"no JSON: {error}"
    if isinstance(error, RecursionError):
        return "lists or objects are nested too deeply"
    most = sys.get_int_max_str_digits()
    return f"an integer has more than {most:,} digits; write it as a text, or with an exponent"


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON, none of whose keys is there twice."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise _RepeatedKeyError(f"the key {shown(twice)} is there twice; write every key once")
    return fields
