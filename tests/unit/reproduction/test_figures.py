"""Figures, read back from their SVG: what is drawn, where, and in which colour."""

from __future__ import annotations

import math
import re
import sys
from collections import Counter
from xml.etree import ElementTree

import numpy as np
import pytest

from reproduction.figures import COLOURS, Line, Panel, drawn, limits
from reproduction.report import Picture

RANKS = (5, 10, 25, 50, 100)
SVG = "{http://www.w3.org/2000/svg}"


def picture(panels: list[Panel], **options: object) -> Picture:
    pytest.importorskip("matplotlib")
    labels = {"caption": "c", "alt": "a", "xlabel": "rank k", "ylabel": "error"}
    made = drawn("name", panels, **{**labels, **options})  # type: ignore[arg-type]
    assert isinstance(made, Picture)
    return made


def texts(picture: Picture) -> list[str]:
    return ["".join(t.itertext()) for t in ElementTree.fromstring(picture.svg).iter(f"{SVG}text")]


def strokes(picture: Picture, least: int) -> list[tuple[str, bool, int]]:
    """Colour, whether it is dashed and number of points of curves with so many points."""
    found = []
    for path in ElementTree.fromstring(picture.svg).iter(f"{SVG}path"):
        points, style = len(re.findall("[ML]", path.get("d", ""))), path.get("style", "")
        colour = re.search(r"stroke: (#\w+)", style)
        if colour and "clip-path" in path.attrib and points >= least:
            found.append((colour[1], "stroke-dasharray" in style, points))
    return found


@pytest.fixture(scope="module")
def two() -> list[Panel]:
    falling = [10.0, 8.0, 5.0, 3.0, 2.0]
    ours = Line("ours", RANKS, falling)
    theirs = Line("other", RANKS, [2 * y for y in falling], dashed=True)
    paper = Line("other", RANKS, [3 * y for y in falling], printed=True)
    return [Panel("first $ set_1", [ours, theirs, paper]), Panel("second", [theirs, ours])]


def test_every_word_is_there_and_the_legend_has_each_label_once(two: list[Panel]) -> None:
    counted = Counter(texts(picture(two, xlog=True)))
    for word in ("first $ set_1", "second", "rank k", "error", "ours", "other", "the paper"):
        assert counted[word] == 1
    for rank in RANKS:
        assert counted[str(rank)] >= 2


def test_a_label_has_one_colour_in_all_panels(two: list[Panel]) -> None:
    found = Counter(strokes(picture(two, xlog=True), least=5))
    blue, red = COLOURS[:2]
    # the paper's points: dotted, in the colour of their label
    assert found == {(blue, False, 5): 2, (red, True, 5): 3}


def test_the_same_figure_is_the_same_text(two: list[Panel]) -> None:
    first, again = picture(two), picture(two)
    assert first == again
    assert "date" not in first.svg.lower()


def test_what_is_not_finite_is_left_out() -> None:
    y = [3.0, math.nan, 2.0, math.inf, 1.0]
    made = picture([Panel("", [Line("a", RANKS, y), Line("b", RANKS, [math.nan] * 5)])])
    assert strokes(made, least=3) == [(COLOURS[0], False, 3)]
    made = picture([Panel("", [Line("a", RANKS, [1.0, 0.0, -1.0, 2.0, 3.0])])], ylog=True)
    assert strokes(made, least=3) == [(COLOURS[0], False, 3)]


def test_a_panel_without_points_says_so() -> None:
    made = picture([Panel("a", []), Panel("b", [Line("l", [1, 2], [math.nan] * 2)])], ylog=True)
    assert texts(made).count("not measured") == 2


@pytest.mark.parametrize("log", [False, True])
def test_a_value_far_away_does_not_flatten_the_panel(log: bool) -> None:
    y = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 1e9])
    low, high = limits(y, log)
    assert low < 1 < 7 < high < 10
    assert limits(y[:-1], log) == pytest.approx((low, high))


def test_limits_of_equal_values_have_room() -> None:
    low, high = limits(np.full(5, 2.0), False)
    assert low < 2 < high
    low, high = limits(np.array([0.0, 0.0, 0.0, 100.0]), False)
    assert low < 0 < 100 < high


def test_rows_of_five() -> None:
    panels = [Panel(str(i), [Line("a", [1, 2], [1, 2])]) for i in range(7)]
    one, two = picture(panels[:5]), picture(panels)
    sizes = [re.search(r'width="([\d.]+)pt" height="([\d.]+)pt"', made.svg) for made in (one, two)]
    (w1, h1), (w2, h2) = ([float(x) for x in size.groups()] for size in sizes if size)
    assert w1 == w2 == 720
    assert h1 + 100 < h2 < 2 * h1


def test_without_matplotlib_there_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    made = drawn("n", [], caption="Error by rank", alt="", xlabel="", ylabel="")
    assert isinstance(made, str)
    assert "Error by rank" in made
