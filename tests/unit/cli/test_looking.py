"""inspect, evaluate and approximate: what the Python interface finds, as tables and files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import kreinlearn
from kreinlearn import datasets
from tests.unit.cli.commands import printed, read_csv, run, write_csv

WORDS, NUMBERS = datasets.make_noisy_strings(40, n_classes=2, noise=9, random_state=0)
LABELS = np.array(["x", "y"])[NUMBERS]


@pytest.fixture
def words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    write_csv(Path("w.csv"), {"text": WORDS, "label": LABELS})
    return "w.csv"


def test_inspect_is_that_of_python(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--column", "text", "--kernel", "levenshtein", "--target", "label"]
    found = printed(capsys, "inspect", words, *flags)
    expected = kreinlearn.inspect(WORDS, "levenshtein", y=LABELS, random_state=0)
    assert found["advice"] == expected.advice
    assert found["signature"] == list(expected.signature)
    assert found["label_signal"] == expected.label_signal
    assert_array_equal(found["eigenvalues"], expected.eigenvalues)
    assert found["indefiniteness"] == {str(n): v for n, v in expected.indefiniteness.items()}
    run("inspect", words, *flags)
    out = capsys.readouterr().out
    assert all(name in out for name, _ in expected.rows())
    assert expected.advice in out
    assert found["neighbours_score"] == expected.neighbours_score
    assert out.startswith(f"{expected.answer} {expected.advice}")
    run("inspect", words, *flags, "--html", "i.html")
    assert expected.answer in Path("i.html").read_text(encoding="utf8")


def test_inspect_draws_a_sample(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = printed(capsys, "inspect", words, "--column", "text", "--samples", "15", "--seed", "3")
    expected = kreinlearn.inspect(WORDS, "levenshtein", n_samples=15, random_state=3)
    assert found["n_sampled"] == 15
    assert_array_equal(found["eigenvalues"], expected.eigenvalues)


def test_reports(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    run("inspect", words, "--column", "text", "--html", "i.html")
    page = Path("i.html").read_text(encoding="utf8")
    assert "w.csv" in page
    assert "no positive definite kernel" in page
    assert "objects: w.csv, column text" in page
    assert "kernel: levenshtein" in page
    flags = ["--target", "label", "--cv", "2", "--landmarks", "8"]
    run("evaluate", words, *flags, "--html", "e.html", "--csv", "e.csv")
    assert "KreinRidgeClassifier" in Path("e.html").read_text(encoding="utf8")
    out, error = capsys.readouterr()
    assert "report: e.html" in error
    assert "table: e.csv" in error
    found = read_csv(Path("e.csv"))
    assert all(name in out.replace("\n", " ") for name in found["name"])
    assert sorted(p.name for p in Path().iterdir()) == ["e.csv", "e.html", "i.html", "w.csv"]


def test_evaluate_is_that_of_python(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--target", "label", "--cv", "2", "--seed", "5", "--landmarks", "8"]
    found = printed(capsys, "evaluate", words, *flags, "--kernel", "levenshtein")
    expected = kreinlearn.evaluate(
        WORDS, LABELS, "levenshtein", cv=2, random_state=5, landmarks=8
    ).to_dict()
    for one in (found, expected):
        for score in one["scores"]:
            del score["fit_seconds"], score["predict_seconds"]
        one["scores"].sort(key=lambda score: score["name"])
    assert found["scores"] == expected["scores"]
    assert found["n_folds"] == 2
    assert found["task"] == "classification"


def test_evaluate_predicts_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    X = np.random.default_rng(0).normal(size=(40, 2))
    write_csv(Path("n.csv"), {"a": X[:, 0], "b": X[:, 1], "y": X[:, 0] ** 2})
    found = printed(capsys, "evaluate", "n.csv", "--target", "y", "--cv", "2")
    assert found["task"] == "regression"
    assert {score["name"] for score in found["scores"]} >= {"KreinRidge", "always the mean"}


def test_approximate(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--column", "text", "--target", "label", "--landmarks", "25", "--rank", "10"]
    for force in ([], ["--force"]):  # the second time it replaces
        found = printed(capsys, "approximate", words, *flags, "-o", "f.npz", *force)
    with np.load("f.npz") as file:
        arrays = dict(file)
    model = kreinlearn.KreinNystroem("levenshtein", landmarks=25, rank=10, random_state=0)
    model.fit(WORDS)
    assert_array_equal(arrays["features"], model.transform(WORDS))
    assert_array_equal(arrays["signature"], model.signature_)
    assert_array_equal(arrays["landmarks"], model.landmark_indices_)
    assert_allclose(
        (arrays["features"] * arrays["signature"]) @ arrays["features"].T,
        model.approximate(WORDS),
        atol=1e-9 * np.abs(model.eigenvalues_).max(),
    )
    assert found["rank"] == 10
    assert found["negative_dimensions"] == int(np.sum(model.signature_ < 0))
    error = model.estimate_error(WORDS, random_state=0).relative
    assert found["relative_error"] == pytest.approx(error, rel=1e-3)
    assert sorted(p.name for p in Path().iterdir()) == ["f.npz", "w.csv"]


def test_approximate_to_a_tolerance(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = printed(capsys, "approximate", words, "--column", "text", "--tol", "0.5", "-o", "f.npz")
    assert found["relative_error"] <= 0.5
    assert found["n_landmarks"] <= 40
