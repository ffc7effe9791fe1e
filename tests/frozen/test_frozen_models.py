"""Model files of every format that there was are read, and predict what they did."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kreinlearn
from kreinlearn.persist.header import VERSION
from tests.frozen.make import FOLDER, answers, models, rows

FILES = sorted(FOLDER.glob("format*/*.krein"))
RTOL = 1e-7  # another machine sums otherwise


def expected(path: Path) -> Any:
    return json.loads((path.parent / "expected.json").read_text(encoding="utf8"))[path.stem]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.InconsistentVersionWarning")
def test_a_frozen_model_predicts_what_it_did(path: Path) -> None:
    said, model = expected(path), kreinlearn.load(path)
    found = answers(model, rows(path.stem, said["rows"]))
    assert found.keys() == said["answers"].keys()
    for method, values in said["answers"].items():
        if isinstance(values[0], str):
            assert found[method] == values
        else:
            np.testing.assert_allclose(found[method], values, rtol=RTOL, atol=RTOL)


def test_every_format_is_here_and_files_are_small() -> None:
    assert {path.parent.name for path in FILES} == {f"format{v}" for v in range(1, VERSION + 1)}
    assert {path.stem for path in FILES} == set(models())
    assert max(path.stat().st_size for path in FILES) < 25_000
