"""The report, opened in a browser: its text, its pictures, its width, and that it asks no one."""

from __future__ import annotations

import base64
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kreinlearn import Evaluation, Inspection, inspect
from kreinlearn.evaluation import Score
from kreinlearn.report import write_report
from tests import chromium

EVIL = '<img src="http://example.org/x.png" onerror="window.ran=1"><script>window.ran=1</script>'
LONG = "x" * 90
KREIN = "KreinRidgeClassifier"


def inspected() -> Inspection:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    return inspect(np.abs(X[:, None] - X).max(axis=2) ** 2, "precomputed_dissimilarity",
                   y=X[:, 0] > 0, random_state=0)  # fmt: skip


def evaluated() -> Evaluation:
    scores = [
        Score(
            KREIN, "Krein learner", np.array([4.0, 5, 3, 4, 5]), 0.2, 0.01,
            kernel_weights={LONG: 0.75, EVIL: 0.25}, kernel_losses={LONG: 0.5, EVIL: 1.5},
        ),
        Score(EVIL, "baseline", np.array([9.0, 8, 9, 10, 9]), 120.0, 0.0001),
        Score("always the most frequent class", "trivial", np.full(5, 50.0) + 0.1, 0.001, 1e-5),
        Score("KreinSVC", "Krein learner", np.empty(0), np.nan, np.nan, f"failed, {EVIL} {LONG}"),
    ]  # fmt: skip
    notes = (f"1 classes have one object each ({EVIL}).",)
    return Evaluation("classification", "error, %", 60, 5, 0.25, EVIL, scores, notes)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("matplotlib")
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(path, inspection=inspected(), evaluation=evaluated(), source=EVIL + LONG)
    return path


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[chromium.Browser]:
    if os.name != "posix":
        pytest.skip("Chromium is driven through files 3 and 4, which only POSIX can pass on")
    program = chromium.found()
    if program is None:
        pytest.skip(f"no browser: none of {', '.join(chromium.NAMES)} is on the path")
    with chromium.running(program, tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.mark.parametrize("width", [375, 1200])
def test_nothing_is_wider_than_the_window(
    browser: chromium.Browser, page: Path, width: int
) -> None:
    browser.open(page, width)
    assert browser.value("window.innerWidth") == width
    assert browser.value("document.documentElement.scrollWidth") <= width
    boxes = browser.value(
        "[...document.querySelectorAll('p, li, h1, h2, figure, figcaption, img, .scroll')]"
        ".map(e => e.getBoundingClientRect().right)"
    )
    assert len(boxes) > 25
    assert max(boxes) <= width


def test_a_table_that_is_too_wide_scrolls_in_its_box(browser: chromium.Browser, page: Path) -> None:
    browser.open(page, 375)
    inner, outer = browser.value(
        "(e => [e.scrollWidth, e.clientWidth])(document.querySelector('.scroll'))"
    )
    assert inner > outer
    assert outer <= 375


@pytest.mark.parametrize("width", [375, 1200])
def test_pictures_are_drawn_and_described(
    browser: chromium.Browser, page: Path, width: int
) -> None:
    browser.open(page, width)
    pictures = browser.value(
        "[...document.querySelectorAll('img')].map(s => { const b = s.getBoundingClientRect();"
        " return [b.width, b.height, s.complete, s.naturalWidth, s.alt]; })"
    )
    assert len(pictures) == 2
    for across, height, complete, natural, description in pictures:
        assert 250 < across <= width
        assert height > 100
        assert complete
        assert natural > 200
        assert len(description) > 40


def test_the_verdict_comes_first_and_everything_is_said(
    browser: chromium.Browser, page: Path
) -> None:
    browser.open(page, 1200)
    text = browser.value("document.querySelector('main').innerText")
    verdict = browser.value("document.querySelector('h1').nextElementSibling.innerText")
    found, learned = inspected(), evaluated()
    assert "is not positive definite" in verdict
    assert learned.verdict in verdict
    assert "larger than chance" in verdict
    flat = " ".join(text.split())
    for name, value in found.rows():
        assert name in flat
        assert value in flat
    assert found.advice in flat
    cells = browser.value(
        "[...document.querySelectorAll('table')[0].querySelectorAll('tr')]"
        ".map(r => [...r.children].map(c => c.innerText))"
    )
    assert cells == [list(learned.header), *[list(row) for row in learned.rows()[:3]]]
    assert f"KreinSVC: failed, {EVIL} {LONG}" in flat


def test_names_are_text_and_never_markup(browser: chromium.Browser, page: Path) -> None:
    browser.open(page, 1200)
    assert browser.value("window.ran") is None
    assert browser.value("document.querySelectorAll('script, iframe, link').length") == 0
    sources = browser.value("[...document.querySelectorAll('img')].map(e => e.src.slice(0, 18))")
    assert set(sources) == {"data:image/svg+xml"}
    assert browser.value("document.title").endswith(EVIL + LONG)
    assert EVIL in browser.value("document.querySelector('table').textContent")


def test_no_request_is_made_and_nothing_is_complained_about(
    browser: chromium.Browser, page: Path
) -> None:
    browser.open(page, 375)
    assert {one for one in browser.requests() if not one.startswith("data:")} == {page.as_uri()}
    assert browser.complaints() == []


def test_a_request_would_be_noticed(browser: chromium.Browser, tmp_path: Path) -> None:
    asks = tmp_path / "asks.html"
    asks.write_text('<img src="http://example.org/x.png">', encoding="utf8")
    before = len(browser.requests())
    browser.open(asks, 375)
    assert "http://example.org/x.png" in browser.requests()[before:]


def test_a_screen_reader_finds_its_way(browser: chromium.Browser, page: Path) -> None:
    browser.open(page, 1200)
    tree = browser.call("Accessibility.getFullAXTree")["nodes"]
    named: dict[str, list[str]] = {}
    for node in tree:
        if not node["ignored"]:
            role, name = node["role"]["value"], node.get("name", {}).get("value", "")
            named.setdefault(role, []).append(name)
    assert len(named["main"]) == 1
    assert named["table"] == [
        "Errors on 5 folds of 60 objects",
        "What was found about the dissimilarity",
    ]
    assert all(named["image"])
    assert all("plot of" in name for name in named["image"])
    assert named["columnheader"][:2] == ["learner", "error, %"]
    assert KREIN in named["rowheader"]
    assert browser.value("document.documentElement.lang") == "en"
    levels = browser.value(
        "[...document.querySelectorAll('h1,h2,h3,h4')].map(h => Number(h.tagName[1]))"
    )
    assert levels[0] == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))
    assert levels.count(1) == 1


@pytest.mark.parametrize("dark", [False, True])
def test_text_stands_out_from_the_paper(browser: chromium.Browser, page: Path, dark: bool) -> None:
    browser.open(page, 1200, dark=dark)
    pairs = browser.value(
        "['body', '.verdict', '.notes', 'td'].map(s => [getComputedStyle("
        "document.querySelector(s)).color, getComputedStyle(document.querySelector("
        "s == '.verdict' ? s : 'body')).backgroundColor])"
    )
    for ink, paper in pairs:
        assert contrast(ink, paper) >= 4.5
    light = luminance(pairs[0][1]) > 0.5
    assert light is not dark


def luminance(colour: str) -> float:
    """Relative, as WCAG defines it, of "rgb(r, g, b)"."""
    parts = np.array([int(n) / 255 for n in re.findall(r"\d+", colour)[:3]])
    linear = np.where(parts <= 0.03928, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(a: str, b: str) -> float:
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


def test_it_prints_on_few_pages(browser: chromium.Browser, page: Path) -> None:
    browser.open(page, 1200, dark=True)
    made = browser.call("Page.printToPDF", paperWidth=8.27, paperHeight=11.69)["data"]
    pdf = base64.b64decode(made)
    assert pdf.startswith(b"%PDF")
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 5
    browser.call("Emulation.setEmulatedMedia", media="print")
    assert browser.value("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert browser.value("getComputedStyle(document.querySelector('.scroll')).overflowX") == (
        "visible"
    )
    browser.call("Emulation.setEmulatedMedia", media="")


# Without a browser


def test_either_part_is_enough_and_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.html"
    write_report(path, evaluation=evaluated(), title="Mine")
    text = path.read_text(encoding="utf8")
    assert "<title>Mine</title>" in text
    assert "Which learner errs least" in text
    assert "What to do" not in text
    write_report(str(path), inspection=inspected())
    text = path.read_text(encoding="utf8")
    assert "What to do" in text
    assert "Which learner errs least" not in text
    with pytest.raises(ValueError, match="pass one of them"):
        write_report(path)
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_cannot_be_written_stays_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "r.html"
    path.write_text("before", encoding="utf8")

    def full(self: Path, *args: Any, **more: Any) -> int:
        Path.touch(self)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match="No space"):
        write_report(path, inspection=inspected())
    monkeypatch.undo()
    assert path.read_text(encoding="utf8") == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_the_kernel_is_named_and_what_a_person_wrote_is_shown_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "r.html"
    X = np.random.default_rng(0).normal(size=(20, 2))
    found = inspect(X, "gaussian", kernel_params={"width": 2.0})
    assert found.kernel == "gaussian, width=2.0"
    write_report(path, inspection=found, source="my `best` file.csv")
    text = path.read_text(encoding="utf8")
    assert "<li>kernel: gaussian, width=2.0</li>" in text
    assert "<li>objects: my `best` file.csv</li>" in text
    assert "<title>Learning from similarities: my `best` file.csv</title>" in text
    assert "<h1>Learning from similarities: my `best` file.csv</h1>" in text
    scores = [replace(score, name=f"`{score.name}`") for score in evaluated().scores[:1]]
    write_report(path, inspection=found, evaluation=replace(evaluated(), scores=scores, kernel="k"))
    text = path.read_text(encoding="utf8")
    assert f'<th scope="row">`{KREIN}`</th>' in text
    assert "<li>kernel: gaussian, width=2.0; k</li>" in text


def test_every_learner_failed(tmp_path: Path) -> None:
    found = evaluated()
    write_report(tmp_path / "r.html", evaluation=replace(found, scores=found.scores[3:]))
    assert "No learner has a result" in (tmp_path / "r.html").read_text(encoding="utf8")


def test_without_matplotlib_a_sentence_stands_for_a_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    write_report(tmp_path / "r.html", inspection=inspected())
    text = (tmp_path / "r.html").read_text(encoding="utf8")
    assert "<img" not in text
    assert "kreinlearn[plot]" in text
