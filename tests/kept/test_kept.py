"""The parts of ``python -m tests.kept`` that take seconds; they hold on any processor."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from tests.kept.__main__ import differences, recorded
from tests.kept.predictions import predictions
from tests.kept.promises import exits, flips

FAST: dict[str, Callable[[], dict[str, Any]]] = {
    "predictions": partial(predictions, fast=True),
    "flips": partial(flips, step=7),
    "exits": exits,
}


@pytest.mark.parametrize("name", FAST)
def test_what_is_recorded_is_kept(name: str) -> None:
    found = json.loads(json.dumps(FAST[name]()))
    kept, _ = recorded(name)
    assert list(differences({key: kept[key] for key in found}, found, 1e-6)) == []


def test_differences_are_named() -> None:
    kept = {"a": {"b": [1.0, 2.0], "c": ["x", "y"], "d": 1}, "e": [[1.0], [1.0, 2.0]], "f": True}
    assert list(differences(kept, kept, 0)) == []
    found = {"a": {"b": [1.0, 2.1], "c": ["x", "z"]}, "e": [[1.0], [1.0, 2.5]], "f": False, "g": 0}
    lines = list(differences(kept, found, 1e-3))
    assert [line.partition(": ")[0] for line in lines] == ["a", "a", "a", "e [1]", "f", "g"]
    assert "a: b: apart by 0.05" in lines[0]
    assert "a: d: gone" in lines[2]
    assert list(differences({"peak": 100.0}, {"peak": 20.0}, 0.15, may_fall=True)) == []
    assert list(differences({"peak": 100.0}, {"peak": 120.0}, 0.15, may_fall=True)) != []
    assert list(differences({"a": [1.0]}, {"a": [float("nan")]}, 1.0)) != []
