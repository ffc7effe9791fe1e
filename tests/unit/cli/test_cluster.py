"""kreinlearn cluster: the groups of the Python interface, as a table, files and a page."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kreinlearn import KreinKMeans, cli
from kreinlearn.datasets import make_noisy_strings
from tests.unit.cli.commands import printed, read_csv, run, write_csv

WORDS, _ = make_noisy_strings(60, n_classes=3, random_state=0)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    names = [f"n{i}" for i in range(len(WORDS))]
    return write_csv(tmp_path / "words.csv", {"name": names, "text": WORDS})


def test_groups(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--column", "text", "--clusters", 3, "-o", tmp_path / "g.csv"]
    flags += ["--report", tmp_path / "g.html", "--model", tmp_path / "g.krein"]
    found = printed(capsys, "cluster", file, *flags)
    model = KreinKMeans(3, kernel="levenshtein", random_state=0).fit(WORDS)
    written = read_csv(tmp_path / "g.csv")
    np.testing.assert_array_equal(np.array(written["group"], int), model.labels_)
    assert {one["medoid"] for one in found["groups"]} == set(model.medoids_)
    assert sum(one["objects"] for one in found["groups"]) == 60
    page = (tmp_path / "g.html").read_text(encoding="utf8")
    assert "60 objects in 3 groups" in page
    assert all(word in page for word in model.medoids_)
    run("predict", tmp_path / "g.krein", file, "-o", tmp_path / "p.csv")
    assert read_csv(tmp_path / "p.csv")["prediction"] == written["group"]


def test_rows_have_the_names_of_id(file: Path, tmp_path: Path) -> None:
    run("cluster", file, "--column", "text", "--id", "name", "-o", tmp_path / "g.csv", "--quiet")
    assert read_csv(tmp_path / "g.csv")["name"][:2] == ["n0", "n1"]


def test_rows_keep_their_numbers_and_names_where_some_are_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*WORDS[:20], "", *WORDS[20:40], "", *WORDS[40:]]
    kept = [i for i, word in enumerate(words) if word]
    names = [f"n{i}" for i in range(len(words))]
    file = write_csv(tmp_path / "gaps.csv", {"name": names, "text": words})
    flags = ["--column", "text", "--drop-missing", "--clusters", 3]
    found = printed(capsys, "cluster", file, *flags, "-o", tmp_path / "g.csv")
    assert read_csv(tmp_path / "g.csv")["row"] == [str(i) for i in kept]
    assert all(words[one["medoid_row"]] == one["medoid"] for one in found["groups"])
    run("cluster", file, *flags, "--id", "name", "-o", tmp_path / "named.csv", "--quiet")
    assert read_csv(tmp_path / "named.csv")["name"] == [names[i] for i in kept]


@pytest.mark.parametrize("command", ["cluster", "predict"])
def test_formulas_are_named_once_and_made_harmless(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [f"=1+{i}" if i % 2 else f"@SUM(A{i})" for i in range(len(WORDS))]
    names[0] = "-1.5"  # a number is none
    file = write_csv(tmp_path / "f.csv", {"name": names, "text": WORDS})
    flags = ["--column", "text", "--id", "name", "-o", tmp_path / "out.csv", "--force"]
    words = ["cluster", file, *flags, "--clusters", 2]
    if command == "predict":
        run(*words, "--model", tmp_path / "m.krein", "--quiet")
        words = ["predict", tmp_path / "m.krein", file, *flags]
    capsys.readouterr()
    run(*words)
    assert capsys.readouterr().err.count("a spreadsheet would run them; --spreadsheet writes") == 1
    assert read_csv(tmp_path / "out.csv")["name"] == names
    run(*words, "--spreadsheet")
    assert "would run" not in capsys.readouterr().err
    assert read_csv(tmp_path / "out.csv")["name"] == ["-1.5", *(f"'{one}" for one in names[1:])]


def test_a_wrong_number_is_a_wrong_call(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["cluster", str(file), "--clusters", "0"])
    assert "'0' is not auto, or a number of groups" in capsys.readouterr().err
    assert cli.main(["cluster", str(file), "--column", "text", "--clusters", "99"]) == 1
    assert "n_clusters=99 exceeds the number of objects" in capsys.readouterr().err


def test_condensed_distances_are_grouped_as_the_matrix_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    points = np.random.default_rng(0).normal(size=(30, 2)) + 8 * (np.arange(30) % 2)[:, None]
    D = np.sqrt(np.square(points[:, None] - points).sum(axis=2))
    np.save(tmp_path / "square.npy", D)
    np.save(tmp_path / "condensed.npy", D[np.triu_indices(30, 1)])
    found = []
    for name in ("square", "condensed"):
        flags = ["--kernel", "precomputed_dissimilarity", "--clusters", 2]
        flags += ["--report", tmp_path / f"{name}.html"]
        found.append(printed(capsys, "cluster", tmp_path / f"{name}.npy", *flags))
    assert found[0]["groups"] == found[1]["groups"]
    assert [one["medoid"] for one in found[0]["groups"]] == ["", ""]
    assert [one["objects"] for one in found[0]["groups"]] == [15, 15]
