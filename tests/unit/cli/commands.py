"""Running commands within this process."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kreinlearn import cli


def run(*words: Any) -> None:
    assert cli.main([str(word) for word in words]) == 0


def printed(capsys: pytest.CaptureFixture[str], *words: Any) -> Any:
    """The JSON object that a command prints, and nothing else on stdout."""
    capsys.readouterr()
    run(*words, "--json")
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    return json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


def write_csv(path: Path, columns: dict[str, Any], delimiter: str = ",") -> Path:
    with path.open("w", newline="", encoding="utf8") as file:
        out = csv.writer(file, delimiter=delimiter)
        out.writerow(columns)
        out.writerows(zip(*(np.asarray(one).tolist() for one in columns.values()), strict=True))
    return path


def read_csv(path: Path) -> dict[str, list[str]]:
    with path.open(newline="", encoding="utf8") as file:
        names, *rows = csv.reader(file)
    return {name: [row[j] for row in rows] for j, name in enumerate(names)}
