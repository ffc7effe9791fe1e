"""The picture of the README is drawn from the figures of the measured page."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import picture


def test_the_table_is_read_and_the_digest_sees_every_figure() -> None:
    page = "## Other\n\nno\n\n## Test error, %\n\n| set | a | 1-NN |\n| --- | --- | ---: |\n"
    page += "| one | x, y | 1.50 |\n| two | z | 2 |\n\n\n## More\n"
    assert picture.errors_of(page) == [
        {"set": "one", "a": "x, y", "1-NN": "1.50"},
        {"set": "two", "a": "z", "1-NN": "2"},
    ]
    rows = [dict.fromkeys(("set", "distance", *picture.METHODS), "1")]
    for name in ("set", *picture.METHODS):
        assert picture.digest([rows[0] | {name: "2"}]) != picture.digest(rows)


def test_the_picture_is_that_of_the_page() -> None:
    rows = picture.errors_of(picture.PAGE.read_text(encoding="utf8"))
    assert len(rows) == 13
    assert picture.digest(rows) in picture.PICTURE.read_text(encoding="utf8")


def test_it_is_drawn_with_every_set_and_method(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    rows = picture.errors_of(picture.PAGE.read_text(encoding="utf8"))
    picture.draw(rows, tmp_path / "drawn.svg")
    drawn = (tmp_path / "drawn.svg").read_text(encoding="utf8")
    assert picture.digest(rows) in drawn
    for text in [label for label, *_ in picture.METHODS.values()]:
        assert text in drawn
    assert all(row["set"].partition("_")[0] in drawn for row in rows)
