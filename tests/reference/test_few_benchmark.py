"""benchmarks.few on simulated sets: what it measures, by another route, and what the page says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import kreinlearn
from benchmarks import few, few_sets
from benchmarks.few import Cell, Found, Summary
from kreinlearn import KreinClassifier, KreinRegressor
from kreinlearn.kernels import GivenMatrix

ROOT = Path(__file__).parents[2]
HERE = Path(kreinlearn.__file__).parents[2]  # the checkout that is imported
LABELS, NUMBERS = "noise labels", "smooth function"
COMMAND = ["--quick", "--sets", LABELS, NUMBERS]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("few")
    assert few_sets.fill([LABELS, NUMBERS], folder) == {}
    return folder


@pytest.fixture(scope="module")
def journal(folder: Path) -> Path:
    path = folder / "few.jsonl"
    words = [f"--folder={folder}", f"--journal={path}", f"--write={path.with_suffix('.md')}"]
    few.main([*COMMAND, *words])
    return path


def test_errors_are_those_of_the_front_door(folder: Path, journal: Path) -> None:
    results = few.main([*COMMAND, f"--folder={folder}", f"--journal={journal}"])
    assert set(results) == {(name, n) for name in (LABELS, NUMBERS) for n in (16, 24)}
    for (name, n), one in results.items():
        kept = few_sets.load(name, folder)
        kernels = [GivenMatrix(M, is_dissimilarity=m) for _, m, M in kept.matrices]
        learner = KreinRegressor if name == NUMBERS else KreinClassifier
        train, test = few.drawn(kept.y, name == NUMBERS, n, 1)
        for values, kernel in ((one.front, kernels), (list(one.alone.values())[-1], kernels[-1])):
            model = learner(kernel, random_state=1).fit(train, kept.y[train])
            off = model.predict(test) - kept.y[test]
            if name == LABELS:
                assert values["error"][1] == 100 * np.mean(off != 0)
                assert values["expected"][1] == pytest.approx(100 * model.expected_error_)
                p = model.predict_proba(test)[np.arange(len(test)), kept.y[test]]
                assert values["log_loss"][1] == pytest.approx(-np.mean(np.log(p)))
            else:
                unit = kept.y.std()
                assert values["error"][1] == pytest.approx(np.sqrt(np.mean(off**2)) / unit)
                assert values["expected"][1] == pytest.approx(model.expected_error_ / unit)


def test_what_was_measured_is_not_measured_again(folder: Path, journal: Path) -> None:
    before = journal.read_bytes()
    words = [f"--folder={folder}", f"--journal={journal}", f"--source={HERE}"]
    page = journal.with_name("both.md")
    few.main([*COMMAND, *words, f"--write={page}"])
    assert journal.read_bytes() == before  # the other checkout is this one
    assert "| 24 | 1 | +0.00 ± 0.00 |" in page.read_text("utf8")


def test_the_page_holds_the_figures(journal: Path) -> None:
    page = journal.with_suffix(".md").read_text("utf8")
    for name in (LABELS, NUMBERS):
        assert f"| {name} | 16 |" in page
    assert "python -m benchmarks.few --quick" in page
    assert "PASS" not in page  # two sets are not all
    assert "not measured" in page


def test_values_are_read_by_numpy_alone(folder: Path) -> None:
    code = (
        "import sys; from benchmarks.few_sets import load; "
        f"print(load({LABELS!r}, {str(folder)!r}).y.sum(), "
        "[m for m in sys.modules if m in ('kreinlearn', 'sklearn', 'scipy', 'joblib')])"
    )
    said = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=True)
    assert said.stdout.split() == [b"500", b"[]"]


def test_sets_that_are_not_there_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KREINLEARN_DATA", raising=False)
    said = few_sets.fill(["MUTAG"], tmp_path)
    assert said["MUTAG"].startswith("MISSING set MUTAG")
    assert list(tmp_path.iterdir()) == []


def test_training_and_test_objects_are_apart() -> None:
    y = np.arange(600) % 3
    for draw in range(5):
        train, test = few.drawn(y, False, 16, draw)
        assert (len(train), len(test)) == (16, few.TEST)
        assert len(np.union1d(train, test)) == 16 + few.TEST
    rare = np.r_[np.zeros(300, int), 1, 1, np.arange(2, 50)]
    train, _ = few.drawn(rare, False, 16, 0)
    assert np.sum(np.unique(rare[train], return_counts=True)[1] >= 2) >= 2


def test_means_have_the_standard_errors_of_draws() -> None:
    draws = np.array([1.0, 2.0, 4.0, np.nan])
    one = few.mean_of(draws)
    assert one.value == pytest.approx(7 / 3)
    assert one.error == pytest.approx(np.sqrt(7 / 3 / 3))
    both = few.over_sets([one, few.Mean(1.0, 0.0)])
    assert both == pytest.approx((5 / 3, one.error / 2))


def of(
    name: str, n: int, error: float, best: float, *, bias: float = 0.0, loss: float = 0.7
) -> Found:
    """A set with two draws, and two kernels."""
    moved, there = np.array([-0.01, 0.01]), np.ones(2)
    front = {
        "error": error + moved, "expected": error + bias + 2 * moved, "log_loss": loss * there,
        "train": error * there, "n_test": 100 * there, "cpu": there,
    }  # fmt: skip
    alone = {"a": {"error": best * there}, "b": {"error": (best + 5) * there}}
    return Found(Cell(name, n, 2, False, ["a", "b"]), front, alone)


def judged(now: Found, before: Found, exploding: float = 1.0) -> list[bool | None]:
    n = now.cell.n
    rows = [of("numbers", n, exploding, 1.0)] * few.FITS
    checks = few.checks([Summary(n, [before], [now])], [Summary(n, rows, rows)], whole=True)
    return [check.holds for check in checks]


def test_the_checks_hold_and_miss() -> None:
    good = of(LABELS, 16, 20.0, 19.0)
    assert judged(good, good) == [True, True, None, *[True] * 6]
    worse = of(LABELS, 16, 26.1, 20.0, bias=-3.0, loss=0.8)
    assert judged(worse, good) == [False, True, None, False, False, False, True, True, False]
    assert judged(good, good, exploding=2.1)[-2:] == [False, True]
    many, more = of("s", 120, 10.0, 9.0), of("s", 120, 10.3, 9.0)
    assert judged(more, many)[:3] == [False, True, False]
    assert not any(c.holds for c in few.checks([Summary(16, [good], [good])], [], whole=False))
