"""The paper's iota: against plain numpy, and what the section makes of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from reproduction import indefiniteness as part
from reproduction import sets
from reproduction.report import Table
from reproduction.scale import ALL, QUICK

SMALL = replace(QUICK, rows=150, polygons=40, balls=20)


def iota(K):
    """Percent, from singular values and the trace: no sign of an eigenvalue is looked at."""
    nuclear = np.linalg.svd(K, compute_uv=False).sum()
    return 50 * (1 - np.trace(K) / nuclear)


def centred(M):
    J = np.eye(len(M)) - 1 / len(M)
    return -0.5 * J @ M @ J


@pytest.fixture
def no_data(monkeypatch, tmp_path):
    monkeypatch.setenv("KREINLEARN_DATA", str(tmp_path))
    sets.learning_set.cache_clear()
    yield
    sets.learning_set.cache_clear()


@pytest.fixture
def measured(no_data):
    return {task.key: task.run() for task in part.tasks(SMALL)}


def row(name, value, **more):
    kinds = {"iota": value, "not squared": 1.0, "of similarities": 90.0}
    return {"set": name, "n": 10, "origin": sets.SAME, **kinds, **more}


def test_rows_have_the_iota_of_the_definition(measured):
    for name in ("balls3d", "polydism57"):
        D = sets.learning_set(name, SMALL).M
        (found,) = measured[f"indefiniteness/quick/{sets.called(name)}"]
        assert found["iota"] == pytest.approx(iota(centred(D**2)), rel=1e-9)
        assert found["not squared"] == pytest.approx(iota(centred(D)), abs=1e-9)
        similarity = 1 - D / D.max()
        assert found["of similarities"] == pytest.approx(iota(centred(similarity**2)), rel=1e-9)
        assert found["iota"] < 50 < found["of similarities"]
        assert "asymmetry" not in found


def test_delta_gauss_has_one_half(measured):
    (found,) = measured["indefiniteness/quick/delta_gauss/digits"]
    assert found["iota"] == pytest.approx(50, abs=1e-9)
    assert found["n"] == 150


def test_an_asymmetric_matrix_is_made_symmetric_in_five_ways(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    D = rng.uniform(1, 2, (12, 12))
    np.fill_diagonal(D, 0)
    (tmp_path / "dissimilarity").mkdir()
    np.savez(tmp_path / "dissimilarity" / "protein.npz", D=D, y=np.arange(12) % 2)
    monkeypatch.setenv("KREINLEARN_DATA", str(tmp_path))
    sets.learning_set.cache_clear()
    (found,) = part._dissimilarity("protein", SMALL)
    sets.learning_set.cache_clear()
    upper = np.where(np.tri(12, dtype=bool), D.T, D)
    lower = np.where(np.tri(12, dtype=bool), D, D.T)
    ways = [0.5 * (D + D.T), np.minimum(D, D.T), np.maximum(D, D.T), upper, lower]
    expected = [iota(centred(M**2)) for M in ways]
    assert [found[how] for how in part.SYMMETRIC] == pytest.approx(expected, rel=1e-9)
    assert found["iota"] == found["mean"]


@pytest.mark.parametrize(
    ("value", "printed", "said"), [(0.0718, 0.07, "0.07"), (22.9, 23.0, "23"), (22.4, 23.0, "22")]
)
def test_values_are_rounded_as_printed(value, printed, said):
    assert part.in_digits(value, printed) == said


HALF = {"set": "digits", "n": 150, "iota": 50.0}


@pytest.fixture
def section(monkeypatch):
    """The section of rows, whatever is in the data folder."""
    monkeypatch.setattr(part, "rows_of", lambda tasks, measurements: measurements)
    return lambda *rows: part.section(ALL, [*rows, HALF])


def test_every_printed_digit_is_checked_where_the_matrix_is_the_papers(section):
    checks = section(row("balls3d", 0.0718), row("woodyplants50", 22.4)).checks
    assert [check.holds for check in checks] == [True, False, True]
    assert "22 (22.4)" in checks[1].found


@pytest.mark.parametrize(
    "other",
    [
        row("polydish57", 42.9, origin=f"{sets.EQUIVALENT}: of a recipe"),
        row("chickenpieces_20_60", 29.8, origin=sets.SIBLING),
        row("coilyork", 26.0, asymmetry=0.1, **dict.fromkeys(part.SYMMETRIC, 26.0)),
        row("zongker", 40.0),  # what is printed cannot be
    ],
)
def test_other_matrices_are_shown_and_not_checked(section, other):
    found = section(other)
    assert len(found.checks) == 1
    first, second = (block for block in found.blocks if isinstance(block, Table))
    shown = {cells[0]: cells for cells in first.rows}
    assert list(shown) == list(ALL.dissimilarity)
    assert float(shown[other["set"]][4]) == other["iota"]
    assert shown["prodom"][3] == "99"
    assert [cells[0] for cells in second.rows] == ["coilyork"] * ("asymmetry" in other)
    assert found.numbers[f"indefiniteness/{other['set']}/iota %"] == other["iota"]
