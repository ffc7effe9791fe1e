"""Sections made of rows: what is shown, what is said to be missing, and what holds."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from reproduction import classification, printed, sets
from reproduction.classifying import DEFAULTS, EXACT, LEARNERS, PAPER
from reproduction.command import PARTS as EVERY
from reproduction.paired import ALL
from reproduction.report import Table
from reproduction.scale import ALL as EVERYTHING
from reproduction.scale import QUICK

PARTS = [EVERY[name] for name in ("rank-classification", "table1", "table2")]
RANKS, TABLE1, TABLE2 = PARTS
SCALE = replace(EVERYTHING, dissimilarity=("balls3d", "zongker"), balls=20)
RATES = {
    "krein lsm": 4,
    "krein vc-lsm": 3,
    "krein sh-svm": 2,
    "sf-lsm": 1,
}  # wrong of 20, at rank 5


@pytest.fixture(autouse=True)
def panels(monkeypatch):
    """No data folder; the panels of figures by name, instead of drawings."""
    asked = {}
    monkeypatch.delenv("KREINLEARN_DATA", raising=False)
    monkeypatch.setattr(
        classification, "drawn", lambda name, panels, **_: str(asked.update({name: panels}))
    )
    return asked


def rows(method, variant, rank, fold, missed, target=ALL):
    return {
        "set": "balls3d", "n": 200, "target": target, "method": method, "folds": 10, "seed": 0,
        "fold": fold, "n_train": 180, "n_test": 20, "missed": missed, "wall": 1.0, "cpu": 1.0,
        "wrong": " ".join(map(str, range(missed))), "chosen": "similarity=squared", "failed": "",
        "variant": variant, "rank": rank, "origin": "the paper's", "base": None,
    }  # fmt: skip


def measurements(missed=lambda method, fold: 0):
    """Of all tasks of the three parts; the scheme's errors fall with the rank."""
    made = {}
    for task in (task for part in PARTS for task in part.tasks(SCALE)):
        what, fold = task.key.split("/")[3], int(task.key.split("fold ")[1].split("/")[0])
        name, _, method = what.partition(", ")
        if name == "scheme":
            made[task.key] = [
                rows(m, PAPER, k, fold, count - min(count, j))
                for j, k in enumerate(SCALE.ranks)
                for m, count in RATES.items()
            ]
        elif name in (DEFAULTS, EXACT):
            made[task.key] = [rows(method, name, None, fold, missed(method, fold))]
        else:
            made[task.key] = []
    return made


def tables(section):
    return {block.title: block for block in section.blocks if isinstance(block, Table)}


def test_every_row_of_the_papers_table_is_there_in_its_order():
    table = tables(TABLE1.section(SCALE, measurements()))
    scheme = table["The paper's scheme at rank 100, all classes at once"]
    assert [classification.ROWS[row[0]] for row in scheme.rows] == list(
        dict.fromkeys(name for name, _ in printed.table1())
    )
    by_name = {row[0]: row for row in scheme.rows}
    assert by_name["balls3d"][:4] == ["balls3d", "200", "0.00 ± 0.00", "0.50 ± 1.50"]
    assert by_name["zongker"][1:4] == ["not at hand", "", "17.75 ± 2.23"]
    assert by_name["prodom"][1] == "not in this run"


def test_ours_must_not_be_above_the_papers_best_figure():
    """The paper has 0.00 on balls 3D: one error in one fold is too many."""
    one = TABLE1.section(SCALE, measurements(lambda m, f: int(m == "krein lsm" and f == 0)))
    found = {check.what: check for check in one.checks}
    assert len(found) == 11  # two of balls3d, one of each other row
    assert found["balls3d (the paper's): error of KreinSVC at defaults, percent"].holds is True
    ridge = found["balls3d (the paper's): error of KreinRidgeClassifier at defaults, percent"]
    assert (ridge.holds, ridge.limit) == (False, "0.00 (krein sh-svm, s.e. 0.00)")
    rates = np.array([5.0] + [0.0] * 9)
    error = math.sqrt(((rates - 0.5) ** 2).sum() / 9 / 10)
    assert ridge.found == f"0.50 (s.e. {error:.2f})"
    assert found["zongker: error at defaults, percent"].holds is None


def test_a_smaller_run_is_not_held_against_the_paper():
    assert TABLE1.section(replace(SCALE, folds=3), measurements()).checks == []


def test_differences_are_paired_fold_by_fold():
    section = TABLE1.section(SCALE, measurements(lambda m, f: f % 2))
    paired = tables(section)[
        "Ours at defaults against the paper's scheme at rank 100, fold by fold"
    ]
    gaps = np.array([0.0, 5.0] * 5)  # ours less the scheme, which errs on none at rank 100
    shown = f"{gaps.mean():+.2f} ± {gaps.std(ddof=1) / math.sqrt(10):.2f}"
    assert paired.rows[0] == ["balls3d", "KreinSVC", *[shown] * 4]
    assert section.numbers[f"table1/balls3d/{ALL}/{DEFAULTS}/krein lsm"] == 2.5


def test_panels_have_our_curves_the_papers_points_and_a_reference(panels):
    RANKS.section(SCALE, measurements(lambda m, f: 3))
    (drawn,) = panels.values()
    assert len(drawn) == 10
    by_title = {panel.title: panel.lines for panel in drawn}
    ours = [line for line in by_title["balls3d"] if not line.printed]
    assert {line.label: line.y[0] for line in ours} == {
        "krein lsm": 20.0, "krein vc-lsm": 15.0, "krein sh-svm": 10.0, "sf-lsm": 5.0,
        "KreinSVC, defaults": 15.0,
    }  # fmt: skip
    assert [line.label for line in ours if line.dashed] == ["KreinSVC, defaults"]
    for title in ("balls3d", "zongker (not at hand)", "prodom (not in this run)"):
        theirs = {line.label: line for line in by_title[title] if line.printed}
        assert set(theirs) == set(LEARNERS)
        assert list(theirs["sf-lsm"].x) == [5, 10, 25, 50, 100]


def test_curves_are_medians_beside_the_papers():
    section = RANKS.section(SCALE, measurements())
    (table,) = tables(section).values()
    by_name = {tuple(row[:2]): row[2:] for row in table.rows}
    theirs = [printed.classification()["balls3D", "krein lsm", k] for k in SCALE.ranks]
    ours = [20.0, 15.0, 10.0, 5.0, 0.0]
    assert by_name["balls3d", "krein lsm"] == [
        f"{a:.1f} ({b:.1f})" for a, b in zip(ours, theirs, strict=True)
    ]
    assert by_name["zongker", "sf-lsm"][0].startswith("(")
    assert section.numbers["rank-classification/balls3d/krein lsm/k=5 median"] == 20.0


def test_exact_methods_stand_against_the_rank_on_the_same_folds():
    section = TABLE2.section(SCALE, measurements(lambda m, f: 2))
    (table,) = tables(section).values()
    assert [row[2] for row in table.rows] == [*list(LEARNERS)[:3], "flip svm"]
    for row in table.rows:
        assert row[3:6] == ["10.00 ± 0.00", "0.00 ± 0.00", "+10.00 ± 0.00"]


def test_parts_share_what_they_measure_and_small_polygons_are_apart():
    scale = replace(QUICK, dissimilarity=("balls3d", "polydism57"))
    keys = {part: {task.key for task in part.tasks(scale)} for part in PARTS}
    assert keys[RANKS] <= keys[TABLE1]
    shared = keys[TABLE1] & keys[TABLE2]
    balls = f"{sets.called('balls3d')} of {2 * scale.balls}"
    assert {key.split("/")[2] for key in shared} == {balls}
    small = {key.split("/")[3] for key in keys[TABLE2] if f"of {scale.exact_polygons}" in key}
    assert "scheme at (25,)" in small
