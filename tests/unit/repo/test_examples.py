"""Every example of the gallery runs, is short, and has what the gallery needs."""

from __future__ import annotations

import os
import runpy
from pathlib import Path

import pytest

plt = pytest.importorskip("matplotlib.pyplot", reason="examples draw with matplotlib")

EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("*.py"))
LONGEST = 60  # lines
ROWS = "20000"  # instead of a million


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    plt.switch_backend("Agg")
    monkeypatch.setattr(plt, "show", lambda: None)
    monkeypatch.setenv("KREINLEARN_EXAMPLE_ROWS", ROWS)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_and_draws(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = os.getcwd()
    try:
        runpy.run_path(str(path))
        drawn = [ax for number in plt.get_fignums() for ax in plt.figure(number).axes]
    finally:
        plt.close("all")
    assert any(ax.has_data() for ax in drawn)
    assert all(ax.get_xlabel() or ax.get_ylabel() or not ax.axison for ax in drawn)
    assert os.getcwd() == before
    assert "Traceback" not in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == [], "an example leaves files behind"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_short_and_has_a_header(path: Path) -> None:
    lines = path.read_text(encoding="utf8").splitlines()
    assert len(lines) < LONGEST
    assert lines[0] == '"""'
    title, rule, blank = lines[1:4]
    assert title
    assert rule == "=" * len(title)
    assert not blank
    assert "# %%" in lines, "the gallery shows text and code in turn"
    assert path.name.startswith("plot_")


def test_there_are_the_examples_that_the_manual_promises() -> None:
    names = {path.stem.removeprefix("plot_") for path in EXAMPLES}
    promised = {"strings", "time_series", "shapes", "graphs", "spreadsheet", "million_rows", "dask"}
    assert promised | {"tuning"} <= names


def test_no_example_downloads_anything() -> None:
    for path in EXAMPLES:
        text = path.read_text(encoding="utf8")
        assert not any(word in text for word in ("fetch_", "http", "urllib", "load_dataset"))
