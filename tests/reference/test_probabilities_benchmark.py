"""The benchmark of probabilities: its scores by another route, and a small run."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import probabilities


def test_brier_score_is_the_mean_squared_distance() -> None:
    P = np.array([[0.5, 0.3, 0.2], [0.0, 1.0, 0.0]])
    truth = np.array([[True, False, False], [False, False, True]])
    wanted = ((0.25 + 0.09 + 0.04) + (0.0 + 1.0 + 1.0)) / 2
    assert probabilities.brier_score(P, truth) == pytest.approx(wanted, rel=1e-15)


def test_a_small_run_writes_a_page(tmp_path) -> None:
    page = tmp_path / "page.md"
    found = probabilities.main(["--sets", "polygons", "--write", str(page)])
    figures = found["polygons"]
    assert set(figures) == set(probabilities.METHODS)
    for figure in figures.values():
        assert 0 <= figure.error <= 1
        assert 0 <= figure.brier <= 2
        assert figure.log_loss > 0
    text = page.read_text(encoding="utf8")
    assert all(f"{figure.log_loss:.3f}" in text for figure in figures.values())
    assert "of 1 sets" in text
