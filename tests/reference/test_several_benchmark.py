"""benchmarks.several at small size: the truth it draws, and what it says of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks import several
from kreinlearn.datasets import make_graphs, make_noisy_strings
from tests.oracles import edit_cost


def test_exactly_two_fields_carry_the_class() -> None:
    pairs = set()
    for seed in range(8):
        here, true = several.mixed_records(200, seed)
        pairs.add(tuple(true))
        assert len(true) == 2
        assert len(here.X) == len(here.X_test) == len(here.y) == len(here.y_test) == 200
        for name in "abc":  # a number is its class with noise of deviation 0.55
            gap = np.array([record[name] for record in here.X]) - here.y
            assert (gap.std() < 0.75) == (name in true)
    assert len(pairs) > 2
    again, _ = several.mixed_records(200, 7)
    assert [record["text"] for record in again.X] == [record["text"] for record in here.X]


def test_texts_are_those_of_the_labels() -> None:
    labels = np.random.default_rng(5).permutation(np.arange(40) % several.CLASSES)
    texts = several._texts(labels, 3)
    made, own, prototypes = make_noisy_strings(
        40, n_classes=several.CLASSES, noise=18, return_prototypes=True, random_state=3
    )
    assert sorted(texts) == sorted(made)
    for text, label in zip(texts, labels, strict=True):
        assert own[made.index(text)] == label
        assert edit_cost(text, prototypes[label], 1, 1) <= 18


def test_levels_add_up_the_differences() -> None:
    assert several.levels("A=BaC=d") == "1132551"


def fitted(wrong: int, weights: dict[str, float] | None = None) -> several.Fitted:
    return several.Fitted(np.arange(100) < wrong, weights or {}, 1.0)


def tried(seed: int, all_: int, true: int, alone: tuple[int, int], top: float) -> several.Tried:
    weights = {"text": top, "series": 0.0, "a": 0.4, "b": 0.2, "c": 0.0}
    fits = {several.ALL: fitted(all_, weights), several.TRUE: fitted(true),
            several.AUTO: fitted(all_)}  # fmt: skip
    fields = dict.fromkeys(several.MAKERS, 75) | dict(zip(("text", "a"), alone, strict=True))
    return several.Tried(
        seed, ["text", "a"], fits | {name: fitted(k) for name, k in fields.items()}
    )


def test_checks_of_tables() -> None:
    good = [tried(seed, 11, 10, (30, 20 + seed), 0.4) for seed in range(10)]
    named, alone, true = several.mixed_checks(good, True)
    assert (named.found, named.holds) == ("10 of 10 seeds", True)
    d = -9.0 - np.arange(10)  # 11 less the better one: 20, 21, ..., 29
    assert alone.found == f"{d.mean():+.2f} ± {d.std(ddof=1) / np.sqrt(10):.2f}"
    assert (alone.holds, true.found, true.holds) == (True, "+1.00 ± 0.00", True)
    bad = [tried(seed, 25 + seed, 10, (30, 25 + seed), 0.1) for seed in range(10)]
    named, alone, true = several.mixed_checks(bad, True)
    assert (named.found, named.holds) == ("0 of 10 seeds", False)
    assert alone.holds is true.holds is False
    assert [check.holds for check in several.mixed_checks(good, False)] == [None] * 3


def test_checks_of_chromosomes() -> None:
    found = {"string": fitted(10), "levels": fitted(4), "both": fitted(6)}
    string, levels = several.chromosome_checks(found, True)
    assert (string.found[:5], string.holds) == ("-4.00", True)
    assert (levels.found[:5], levels.holds) == ("+2.00", False)


def test_without_the_data_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KREINLEARN_DATA", str(tmp_path))
    page = tmp_path / "several.md"
    made = several.main(["--quick", "--seeds", "2", "--write", str(page)])
    titles = [table.title for table in made]
    assert titles[0] == "Checks"
    assert not any("Chromosomes" in title for title in titles)
    text = page.read_text("utf8")
    assert "MISSING" in text
    assert "MISSING" in capsys.readouterr().out
    weights = next(table for table in made if table.title.startswith("Weights"))
    for row in weights.rows:
        assert sum(map(float, row[2:])) == pytest.approx(1, abs=0.03)
    costs = made[-1]
    assert [row[0].split()[1] for row in costs.rows] == ["strings", "series", "graphs"]
    for row in costs.rows:
        assert all(float(cell) >= 0 for cell in row[1:7])

    X, _ = make_graphs(60, random_state=0)
    kernels = list(map(several.label_of, several.candidates_for(X)))
    assert int(costs.rows[-1][7]) == len(kernels)
    assert costs.rows[-1][8] in kernels
