"""The benchmark of coverage and novelty: its numbers by another route, and a small run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks import worth


def test_covered_counts_what_is_inside() -> None:
    task = worth.problem("waves", 120)
    train, test = next(worth.divisions(120, 1))
    assert sorted([*train, *test]) == list(range(120))
    model = task.learner().fit(task.X[train], task.y[train], conformal="split")
    share, width = worth.covered(model, task.X[test], task.y[test], 0.8)
    ends, y = model.predict_interval(task.X[test], 0.8), task.y[test]
    inside = [low <= value <= high for (low, high), value in zip(ends, y, strict=True)]
    assert share == pytest.approx(sum(inside) / len(inside), rel=1e-12)
    assert width == pytest.approx(np.mean(ends[:, 1] - ends[:, 0]) / np.std(y), rel=1e-12)


def test_classes_in_sets_are_counted() -> None:
    task = worth.problem("polygons", 120)
    train, test = next(worth.divisions(120, 1))
    model = worth.classifier().fit(task.part(train, train), task.y[train], conformal="cv+")
    share, size = worth.covered(model, task.part(test, train), task.y[test], 0.8)
    sets = model.predict_set(task.part(test, train), 0.8)
    labels = [set(model.classes_[row]) for row in sets]
    truth = task.y[test]
    hits = [value in one for value, one in zip(truth, labels, strict=True)]
    assert share == pytest.approx(np.mean(hits), rel=1e-12)
    assert size == pytest.approx(np.mean([len(one) for one in labels]), rel=1e-12)


def test_checks_are_against_the_promises() -> None:
    good = worth.Figure(np.array([0.79, 0.89, 0.94]), np.ones(3), 1.0)
    bad = worth.Figure(np.array([0.5, 0.7, 0.8]), np.ones(3), 6.0)
    fine = worth.coverage_checks("sets", {"a": {"split": good, "cv+": good}}, True)
    assert [check.holds for check in fine] == [True] * 7
    wrong = worth.coverage_checks("sets", {"a": {"split": bad, "cv+": bad}}, True)
    assert [check.holds for check in wrong] == [False] * 7


def test_a_small_run_writes_a_page(tmp_path: Path) -> None:
    made = worth.main(["--quick", "--write", str(tmp_path / "page.md")])
    text = (tmp_path / "page.md").read_text(encoding="utf8")
    assert len(made) == 4
    assert all(table.title in text for table in made)
    assert "| noisy strings | split |" in text
    areas = made[-1].rows[0]
    assert all(0.5 < float(cell.split()[0]) <= 1 for cell in areas[2:])
