"""fit --conformal, and predict --coverage, --novelty and --explain: as in Python."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import kreinlearn as kl
from kreinlearn import cli
from kreinlearn.cli import arguments
from kreinlearn.data import text
from kreinlearn.datasets import make_noisy_strings
from kreinlearn.solvers.conformal import METHODS
from tests.unit.cli.commands import printed, read_csv, run, write_csv

WORDS, NUMBERS = make_noisy_strings(80, n_classes=3, noise=16, random_state=0)
LABELS = np.array(["x", "y", "z"])[NUMBERS]
NEW = [*make_noisy_strings(25, n_classes=3, noise=16, random_state=1)[0], "#" * 60]
RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(80, 2))
Y = POINTS[:, 0] + 0.3 * RNG.normal(size=80)


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_csv(Path("words.csv"), {"text": WORDS, "label": LABELS})
    write_csv(Path("new.csv"), {"text": NEW})
    write_csv(Path("points.csv"), {"a": POINTS[:, 0], "b": POINTS[:, 1], "y": Y})


def fit_words(*flags: str) -> None:
    run("fit", "words.csv", "--target", "label", "--column", "text", "--kernel", "levenshtein",
        "--quiet", *flags, "-o", "m.krein")  # fmt: skip


def fit_points(*flags: str) -> None:
    run("fit", "points.csv", "--target", "y", "--kernel", "gaussian", "--quiet", *flags,
        "-o", "m.krein")  # fmt: skip


def loaded() -> Any:
    """The model, which takes rows without names as the command does."""
    model = kl.load("m.krein")
    vars(model).pop("feature_names_in_", None)
    return model


def lines(path: str) -> list[Any]:
    return [json.loads(line) for line in Path(path).read_text(encoding="utf8").splitlines()]


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert cli.main(list(words)) == 1
    return capsys.readouterr().err


def test_the_methods_are_those_of_the_library() -> None:
    assert arguments.CONFORMAL == METHODS


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("memory", [None, "30MB"])
def test_sets_and_novelty_of_several_blocks(
    method: str, memory: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text, "BATCH", 16)
    monkeypatch.setattr("kreinlearn.cli.data.ROOM", 4 if memory is None else 10**6)
    rows = [] if memory is None else ["--memory", memory]  # these stay in the file
    fit_words("--conformal", method, "--landmarks", "20", *rows)
    run("predict", "m.krein", "new.csv", "--coverage", "0.95", "--novelty", "-o", "o.csv")
    model = kl.load("m.krein")
    found = read_csv(Path("o.csv"))
    assert list(found) == ["prediction", "set", "novelty"]
    wanted = [" | ".join(model.classes_[row]) for row in model.predict_set(NEW, 0.95)]
    assert found["set"] == wanted
    assert any(" | " in one for one in wanted)
    assert_array_equal(np.array(found["novelty"], float), model.novelty(NEW))
    assert float(found["novelty"][-1]) == min(map(float, found["novelty"]))
    if memory is None:
        kind = kl.KreinClassifier("levenshtein", landmarks=20, random_state=0)
        same = kind.fit(WORDS, LABELS, conformal=method)
        assert_array_equal(model.predict_set(NEW, 0.95), same.predict_set(NEW, 0.95))


@pytest.mark.parametrize("method", METHODS)
def test_intervals(method: str, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["points.csv", "--target", "y", "--kernel", "gaussian", "--conformal", method]
    assert printed(capsys, "fit", *flags, "-o", "m.krein")["conformal"] == method
    run("predict", "m.krein", "points.csv", "--coverage", "0.8", "-o", "o.csv")
    found = read_csv(Path("o.csv"))
    assert list(found) == ["prediction", "lower", "upper"]
    ends = loaded().predict_interval(POINTS, 0.8)
    assert_array_equal(np.array([found["lower"], found["upper"]], float).T, ends)
    same = kl.KreinRegressor("gaussian", random_state=0).fit(POINTS, Y, conformal=method)
    assert_array_equal(ends, same.predict_interval(POINTS, 0.8))


def test_one_pair_of_ends_for_each_of_several_outputs() -> None:
    both = np.column_stack([Y, -Y])
    model = kl.KreinRidge("gaussian", random_state=0).fit(POINTS, both, conformal="split")
    model.save("m.krein")
    np.save("new.npy", POINTS)
    run("predict", "m.krein", "new.npy", "--coverage", "0.8", "-o", "o.csv")
    found, ends = read_csv(Path("o.csv")), model.predict_interval(POINTS, 0.8)
    assert list(found) == ["prediction", "lower_0", "upper_0", "lower_1", "upper_1"]
    for j in range(2):
        assert_array_equal(np.array(found[f"lower_{j}"], float), ends[:, j, 0])
        assert_array_equal(np.array(found[f"upper_{j}"], float), ends[:, j, 1])
    assert cli.main(["predict", "m.krein", "new.npy", "--explain", "2"]) == 1


def test_lists_in_files_that_have_them() -> None:
    fit_words("--conformal", "split")
    flags = ["--coverage", "0.8", "--explain", "2", "--quiet"]
    model = kl.load("m.krein")
    sets = [model.classes_[row].tolist() for row in model.predict_set(NEW, 0.8)]
    run("predict", "m.krein", "new.csv", *flags, "-o", "o.jsonl")
    found, explained = lines("o.jsonl"), model.explain(NEW, 2)
    assert [row["set"] for row in found] == sets
    for row, one in zip(found, explained, strict=True):
        written = row["explanation"]
        reasons = [*written.pop("for"), *reversed(written.pop("against"))]
        assert reasons == [reason._asdict() for reason in one.reasons]
        whole = sum(reason["contribution"] for reason in reasons)
        rest = [written[name] for name in ("other_landmarks", "constant", "neighbours", "clipped")]
        assert whole + sum(rest) == pytest.approx(written["value"], abs=1e-12)
    pytest.importorskip("pyarrow")
    run("predict", "m.krein", "new.csv", *flags, "-o", "o.parquet")
    table = pytest.importorskip("pyarrow.parquet").read_table("o.parquet")
    assert table.column("set").to_pylist() == sets
    assert all(table.column("for_1").to_pylist())


def test_landmarks_in_columns() -> None:
    fit_words()
    run("predict", "m.krein", "new.csv", "--explain", "2", "-o", "o.csv")
    found, model = read_csv(Path("o.csv")), kl.load("m.krein")
    sides = ["for_1", "for_2", "against_1", "against_2"]
    rest = ["other_landmarks", "constant", "clipped", "neighbours"]
    assert list(found) == ["prediction", *sides, "value", *rest]
    for i, one in enumerate(model.explain(NEW, 2)):
        first, last = one.reasons[0], one.reasons[-1]
        assert (
            found["for_1"][i] == f"{first.example[:40]} ({first.label}) {first.contribution:+.3g}"
        )
        assert found["against_1"][i].startswith(f"{last.example[:40]} ({last.label}) -")
        assert float(found["value"][i]) == one.value


def test_landmarks_that_are_no_texts_have_numbers_and_may_be_missing() -> None:
    fit_points("--landmarks", "3", "--estimator", "ridge")
    run("predict", "m.krein", "points.csv", "--explain", "3", "-o", "o.csv")
    found, model = read_csv(Path("o.csv")), loaded()
    one = model.explain(POINTS[:1], 3)[0]
    best = one.reasons[0]
    assert found["for_1"][0] == f"row {best.landmark} ({best.label}) {best.contribution:+.3g}"
    assert len(one.reasons) == 3  # so that three of six cells are empty
    cells = [found[f"{side}_{i}"][0] for side in ("for", "against") for i in (1, 2, 3)]
    assert cells.count("") == 3


def test_bad_input_112_a_model_without_what_is_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    fit_words()
    for flags in (["--coverage", "0.9"], ["--novelty"]):
        said = refused(capsys, "predict", "m.krein", "new.csv", *flags)
        assert f"fitted without --conformal, which {flags[0]} needs" in said
        assert "fit --conformal split" in said
    kl.KreinKMeans(3, kernel="levenshtein", random_state=0).fit(WORDS).save("g.krein")
    said = refused(capsys, "predict", "g.krein", "new.csv", "--explain", "3")
    assert "holds a KreinKMeans: it has no --explain" in said
    K = np.exp(-np.abs(POINTS[:, :1] - POINTS[:, 0]))
    kl.KreinRidge("precomputed", random_state=0).fit(K, Y, conformal="split").save("k.krein")
    np.save("k.npy", K)
    said = refused(capsys, "predict", "k.krein", "k.npy", "--novelty")
    assert "novelty(X, diagonal=...) in Python" in said


@pytest.mark.parametrize("share", ["0", "1", "90", "x", "nan"])
def test_bad_input_113_a_coverage_is_refused_before_any_work(
    share: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        cli.main(["predict", "absent.krein", "new.csv", "--coverage", share])
    assert f"{share!r} is not a number between 0 and 1" in capsys.readouterr().err


def test_bad_input_114_names_that_are_written(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        cli.main(["predict", "m.krein", "new.csv", "--id", "novelty", "--novelty"])
    assert "--id novelty: what is written has a column of that name" in capsys.readouterr().err


def test_too_few_rows_are_said_once_in_terms_of_flags(capsys: pytest.CaptureFixture[str]) -> None:
    fit_points("--conformal", "split")
    run("predict", "m.krein", "points.csv", "--coverage", "0.99", "-o", "o.csv")
    said = capsys.readouterr().err
    assert said.count("coverage=0.99 needs at least 99 objects") == 1
    assert set(read_csv(Path("o.csv"))["upper"]) == {"inf"}


def test_neither_store_nor_progress_is_left_in_the_models_of_folds() -> None:
    fit_words("--conformal", "cv+", "--store", "values", "--landmarks", "20")
    for one in kl.load("m.krein")._conformal.models:
        assert one.verbose == 0
        assert one.resources.store is None


def test_labels_of_a_row_are_named(tmp_path: Path) -> None:
    rows = [["x", "y"], ["y"], [], ["x"]] * 10
    texts = ["ab", "b", "", "a"] * 10
    texts = [f"{text}{'c' * (i % 5 + 1)}" for i, text in enumerate(texts)]
    model = kl.KreinRidgeClassifier("levenshtein", random_state=0).fit(texts, rows)
    model.save(tmp_path / "m.krein")
    file = write_csv(tmp_path / "t.csv", {"text": texts})
    for flags in ([], ["--scores"]):
        run("predict", tmp_path / "m.krein", file, "-o", tmp_path / "p.csv", "--force", *flags)
        written = read_csv(tmp_path / "p.csv")
        names = np.array(["x", "y"])
        wanted = [" | ".join(names[row.astype(bool)]) for row in model.predict(texts)]
        assert written["prediction"] == wanted
    assert [float(value) for value in written["score_x"]] == pytest.approx(
        model.decision_function(texts)[:, 0].tolist()
    )


def test_explanations_name_rows_of_the_file_where_some_were_left_out() -> None:
    """Every fifth row has no target: what is left keeps the number that it has in the file."""
    y = ["" if i % 5 == 0 else str(value) for i, value in enumerate(Y)]
    write_csv(Path("gaps.csv"), {"a": POINTS[:, 0], "b": POINTS[:, 1], "y": y})
    run("fit", "gaps.csv", "--target", "y", "--kernel", "gaussian", "--quiet", "--drop-missing",
        "-o", "m.krein")  # fmt: skip
    model = loaded()
    assert_array_equal(model.landmark_indices_, [i for i in range(80) if i % 5])
    assert_array_equal(model.landmarks_, POINTS[model.landmark_indices_])


def test_gower_keeps_rows_with_gaps_but_not_without_a_target(
    capsys: pytest.CaptureFixture[str],
) -> None:
    a = ["" if i % 7 == 0 else str(x) for i, x in enumerate(POINTS[:, 0])]
    y = ["", *map(str, Y[1:])]
    write_csv(Path("gaps.csv"), {"a": a, "b": POINTS[:, 1], "y": y})
    run("fit", "gaps.csv", "--target", "y", "--kernel", "gower", "--drop-missing", "-o", "m.krein")
    assert "left out: 1 of 80 rows; y is empty in one row" in capsys.readouterr().err
    assert len(loaded().landmarks_) == 79
