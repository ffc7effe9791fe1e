"""The pictures of "Benchmarks at a glance" are those of the measured pages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks import glance

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "glance.rst"


def test_a_table_is_read_below_its_title(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "## One, two\n\n| a | b c |\n| --- | ---: |\n| x | 1.5 |\n| y |  |\n\n| other |\n"
    (tmp_path / "page.md").write_text(text, encoding="utf8")
    monkeypatch.setattr(glance, "RESULTS", tmp_path)
    assert glance.rows_of("page", "One, two") == [{"a": "x", "b c": "1.5"}, {"a": "y", "b c": ""}]
    with pytest.raises(ValueError, match=r"page\.md has no table 'Three'"):
        glance.rows_of("page", "Three")


def test_every_picture_is_that_of_the_pages() -> None:
    """If not, python -m benchmarks.glance --write draws them anew."""
    assert glance.old() == []
    there = {path.name for path in glance.RESULTS.glob("glance_*.svg")}
    assert there == {glance.file_of(name).name for name in glance.digests()}


def test_the_manual_shows_every_picture_in_words_too() -> None:
    text = PAGE.read_text(encoding="utf8")
    shown = re.findall(r"image:: \S+/glance_(\w+)\.svg\n +:alt: \S+", text)
    assert sorted(shown) == sorted(glance.digests())


def test_points_are_the_figures_of_the_pages() -> None:
    """The errors and seconds of one set, written out from the page by another route."""
    page = (glance.RESULTS / "objects.md").read_text(encoding="utf8")
    errors, *_, seconds, _ = re.findall(r"^\| chromosomes \|(.*)\|$", page, re.MULTILINE)
    error = [float(cell) for cell in errors.split("|")[:-2]]  # before the distance and the sizes
    *spent, distances = (float(cell) for cell in seconds.split("|"))
    panel = glance.error_panels()["errors_strings"]
    found = {curve.look.label: (curve.x[0], curve.y[0]) for curve in panel.curves}
    assert found["KreinClassifier, several distances"] == (spent[1], error[1])
    assert found["no distance (see below)"] == (spent[3], error[3])
    assert found["KreinClassifier, one distance"] == (round(spent[0] + distances, 2), error[0])
    assert found["nearest neighbour"] == (round(spent[2] + distances, 2), error[2])
    assert panel.names[0][0] == "chromosomes"


def test_every_set_of_the_page_is_drawn() -> None:
    panels = glance.error_panels()
    sets = [name for panel in panels.values() for name, *_ in panel.names]
    rows = glance.rows_of("objects", "Test error, %")
    assert sorted(sets) == sorted(row["set"].partition("_")[0] for row in rows)
    assert len(panels["errors_vectors"].curves) == len(glance.VECTOR_METHODS)


def test_the_digest_sees_every_figure() -> None:
    panel = glance.scale_panels()["seconds_500"]
    first, *rest = panel.curves
    for changed in (first._replace(y=[first.y[0] + 0.01, *first.y[1:]]), first._replace(x=[1.0])):
        assert panel._replace(curves=[changed, *rest]).digest != panel.digest


def test_approximations_are_those_of_the_page() -> None:
    panels = glance.approximation_panels()
    assert len(panels) == 4
    rows = glance.rows_of("peers", "Peers on indefinite kernels")
    [row] = [r for r in rows if r["l"] == "l = 2k" and r["method"] == "KreinNystroem"]
    ours = panels["landmarks_indefinite"].curves[0]
    assert ours.y[2] == float(row["geometric mean of medians"])
    assert "RPCholesky" not in {c.look.label for c in panels["rank_indefinite"].curves}
    assert "RPCholesky" in {c.look.label for c in panels["rank_definite"].curves}


def test_pictures_have_names_and_a_digest() -> None:
    pytest.importorskip("matplotlib")
    panel = glance.error_panels()["errors_shapes"]
    svg = glance.drawn(panel)
    assert panel.digest in svg
    assert {"Shapes", "CPU seconds", "test error, %", "mpeg7"} <= set(
        re.findall(r">([^<>\n]+)<", svg)
    )
    looks = glance.LEGENDS["legend_errors"]
    assert all(f">{look.label}<" in glance.legend(looks) for look in looks)


def test_the_command_tells_of_old_pictures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(glance, "file_of", lambda name: tmp_path / f"{name}.svg")
    assert glance.main([]) == 1
    assert "errors_strings" in capsys.readouterr().out
    for name, digest in glance.digests().items():
        (tmp_path / f"{name}.svg").write_text(digest, encoding="utf8")
    assert glance.main([]) == 0
