"""fit and predict: what the Python interface gives, on every kind of file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import kreinlearn
from kreinlearn import Landmarks, Resources, cli, datasets, progress
from kreinlearn.data import text
from tests.unit.cli.commands import printed, read_csv, run, write_csv

WORDS, NUMBERS = datasets.make_noisy_strings(60, n_classes=3, noise=9, random_state=0)
LABELS = np.array(["x", "y", "z"])[NUMBERS]
NEW = datasets.make_noisy_strings(25, n_classes=3, noise=9, random_state=1)[0]
TEXT = ["--column", "text", "--kernel", "levenshtein", "--quiet"]


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def words_in(path: Path, **columns: Any) -> Path:
    """A table of columns, in the form that the name of the path says."""
    kinds = path.suffixes
    if kinds[-1] == ".parquet":
        pa = pytest.importorskip("pyarrow")
        pytest.importorskip("pyarrow.parquet").write_table(pa.table(columns), path)
    elif kinds[-1] == ".jsonl":
        rows = zip(*(np.asarray(one).tolist() for one in columns.values()), strict=True)
        lines = (json.dumps(dict(zip(columns, row, strict=True))) + "\n" for row in rows)
        path.write_text("".join(lines))
    else:
        write_csv(path, columns, "\t" if kinds[-1] == ".tsv" else ",")
    return path


@pytest.fixture(scope="module")
def fitted() -> kreinlearn.KreinClassifier:
    """The model of the Python interface with the same options, for every kind of file."""
    model = kreinlearn.KreinClassifier("levenshtein", landmarks=20, random_state=0)
    return model.fit(WORDS, LABELS)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet"])
@pytest.mark.parametrize("memory", [None, "30MB"])
def test_predictions_are_those_of_the_python_interface(
    suffix: str,
    memory: str | None,
    fitted: kreinlearn.KreinClassifier,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(text, "BATCH", 16)  # several blocks
    monkeypatch.setattr("kreinlearn.cli.data.ROOM", 4 if memory is None else 10**6)
    given = [] if memory is None else ["--memory", memory]  # rows stay on disk
    file = words_in(Path(f"words{suffix}"), text=WORDS, label=LABELS, other=np.arange(60))
    new = words_in(Path(f"new{suffix}"), other=np.arange(25), note=NEW[::-1], text=NEW)
    run("fit", file, "--target", "label", *TEXT, *given, "--landmarks", "20", "-o", "m.krein")
    run("predict", "m.krein", new, "--scores", "--quiet", "-o", "out.csv")
    found = read_csv(Path("out.csv"))
    assert found["prediction"] == fitted.predict(NEW).tolist()
    scores = np.array([found[f"score_{c}"] for c in "xyz"], dtype=float).T
    assert_array_equal(scores, fitted.decision_function(NEW))
    assert list(found) == ["prediction", "score_x", "score_y", "score_z"]


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ([], ("KreinClassifier", {})),
        (["--time-limit", "7.5", "--probabilities"], ("KreinClassifier", {"time_limit": 7.5})),
        (["--estimator", "ridge"], ("KreinRidgeClassifier", {})),
        (["--estimator", "svc"], ("KreinSVC", {})),
        (["--estimator", "vc-ridge"], ("KreinVCRidgeClassifier", {})),
        (["--estimator", "similarity-ridge"], ("SimilarityRidgeClassifier", {})),
        (["--estimator", "SpectrumSVC"], ("SpectrumSVC", {})),
        (["--kernel-param", "normalized=true", "--kernel-param", "weights=1,1,2"],
         ("KreinClassifier",
          {"kernel_params": {"normalized": True, "weights": (1, 1, 2)}})),
        (["--estimator", "ridge", "--cv", "3", "--seed", "7", "--landmarks", "0.5"],
         ("KreinRidgeClassifier", {"cv": 3, "random_state": 7, "landmarks": Landmarks(0.5)})),
        (["--estimator", "ridge", "--param", "lambda_plus=0.5", "--param", "class_weight=balanced"],
         ("KreinRidgeClassifier", {"lambda_plus": 0.5, "class_weight": "balanced"})),
        (["--estimator", "ridge", "--landmarks", "all", "--probabilities"],
         ("KreinRidgeClassifier", {"landmarks": Landmarks(None), "probability": True})),
        (["--landmarks", "9", "--param", "scheme=uniform", "--param", "core=ls", "--memory", "1GB"],
         ("KreinClassifier", {"landmarks": Landmarks(9, "uniform", "ls"),
                              "resources": Resources("1GB")})),
    ],
)  # fmt: skip
def test_flags_are_parameters(flags: list[str], expected: tuple[str, dict[str, Any]]) -> None:
    words, labels = WORDS[:30], LABELS[:30]
    file = words_in(Path("w.csv"), text=words, label=labels)
    run("fit", file, "--target", "label", *TEXT, *flags, "-o", "m.krein")
    name, parameters = expected
    given = {"random_state": 0, "resources": Resources(), "landmarks": Landmarks(), **parameters}
    if name == "SpectrumSVC":
        del given["landmarks"]
    model = getattr(kreinlearn, name)("levenshtein", **given)
    loaded = kreinlearn.load("m.krein")
    assert type(loaded).__name__ == name
    assert loaded.get_params() == {**model.get_params(), "kernel": "levenshtein"}
    assert_array_equal(
        loaded.decision_function(NEW), model.fit(words, labels).decision_function(NEW)
    )


def test_probabilities_scores_and_ids() -> None:
    two = LABELS != "z"
    words, labels = [w for w, keep in zip(WORDS, two, strict=True) if keep], LABELS[two]
    ids = [f"n{i}" for i in range(len(words))]
    file = words_in(Path("w.csv"), id=ids, text=words, label=labels)
    run("fit", file, "--target", "label", *TEXT, "--probabilities", "-o", "m.krein")
    run("predict", "m.krein", file, "--id", "id", "--scores", "--probabilities", "-o", "o.csv")
    model = kreinlearn.load("m.krein")
    found = read_csv(Path("o.csv"))
    assert list(found) == ["id", "prediction", "score_y", "probability_x", "probability_y"]
    assert found["id"] == ids
    assert_array_equal(np.array(found["score_y"], float), model.decision_function(words))
    assert_array_equal(np.array(found["probability_x"], float), model.predict_proba(words)[:, 0])
    assert found["prediction"] == model.predict(words).tolist()


@pytest.mark.parametrize("suffix", [".tsv", ".jsonl", ".parquet"])
def test_forms_of_output(suffix: str) -> None:
    file = words_in(Path("w.csv"), id=np.arange(60), text=WORDS, label=LABELS)
    run("fit", file, "--target", "label", *TEXT, "-o", "m.krein")
    run("predict", "m.krein", file, "--id", "id", "-o", f"o{suffix}", "--quiet")
    expected = kreinlearn.load("m.krein").predict(WORDS).tolist()
    if suffix == ".tsv":
        rows = [line.split("\t") for line in Path("o.tsv").read_text().splitlines()]
        assert rows == [["id", "prediction"], *([str(i), c] for i, c in enumerate(expected))]
    elif suffix == ".jsonl":
        rows = [json.loads(line) for line in Path("o.jsonl").read_text().splitlines()]
        assert rows == [{"id": str(i), "prediction": c} for i, c in enumerate(expected)]
    else:
        table = pytest.importorskip("pyarrow.parquet").read_table("o.parquet")
        assert table.column("prediction").to_pylist() == expected


def test_numbers_by_default_are_all_columns_of_them_and_found_by_name(
    capsys: pytest.CaptureFixture[str],
) -> None:
    X = np.random.default_rng(0).normal(size=(50, 3))
    price = np.sin(X[:, 0]) + X[:, 2]
    columns = {"a": X[:, 0], "word": ["w"] * 50, "b": X[:, 1], "c": X[:, 2], "key": np.arange(50)}
    file = words_in(Path("n.csv"), **columns, price=price)
    run("fit", file, "--target", "price", "--id", "key", "--kernel", "delta_gauss", "-o", "m.krein")
    said = capsys.readouterr().err
    assert "columns: a (number), b (number), c (number) (--column names others)" in said
    assert "price: numbers -> KreinRegressor" in said
    new = words_in(Path("new.csv"), c=X[:, 2], b=X[:, 1], a=X[:, 0], word=X[:, 0])
    run("predict", "m.krein", new, "-o", "o.csv")
    assert "warning" not in capsys.readouterr().err
    model = kreinlearn.KreinRegressor("delta_gauss", random_state=0).fit(X, price)
    assert_array_equal(np.array(read_csv(Path("o.csv"))["prediction"], float), model.predict(X))
    loaded = kreinlearn.load("m.krein")
    assert loaded.feature_names_in_.tolist() == ["a", "b", "c"]
    run("fit", file, "--target", "price", "--column", "a", "--column", "c", "-o", "two.krein")
    assert kreinlearn.load("two.krein").feature_names_in_.tolist() == ["a", "c"]


def test_series_in_json_lines_and_in_columns() -> None:
    series, kinds = datasets.make_warped_series(30, random_state=0)
    rows = [np.asarray(x).ravel().tolist() for x in series]
    file = Path("s.jsonl")
    lines = ({"v": x, "kind": int(c)} for x, c in zip(rows, kinds, strict=True))
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    given = ["--kernel", "dtw", "--kernel-param", "window=0.2", "--target", "kind", "--quiet"]
    run("fit", file, *given, "--column", "v", "-o", "m.krein")
    run("predict", "m.krein", file, "-o", "o.csv", "--quiet")
    model = kreinlearn.KreinClassifier("dtw", kernel_params={"window": 0.2}, random_state=0)
    expected = model.fit(rows, kinds).predict(rows)
    assert read_csv(Path("o.csv"))["prediction"] == list(map(str, expected))
    short = np.array([x[:8] for x in rows])
    table = words_in(Path("t.csv"), **{f"t{j}": short[:, j] for j in range(8)}, kind=kinds)
    run("fit", table, *given, "-o", "t.krein")
    run("predict", "t.krein", table, "-o", "t.out.csv", "--quiet")
    expected = model.fit(short, kinds).predict(short)
    assert read_csv(Path("t.out.csv"))["prediction"] == list(map(str, expected))


def test_rows_of_mixed_tables() -> None:
    ages = ["" if i % 7 == 0 else str(20 + i % 9) for i in range(40)]
    columns = {
        "age": ages,
        "code": [str(i % 3) if i else "x" for i in range(40)],
        "y": ["p", "q"] * 20,
    }
    file = words_in(Path("g.csv"), **columns)
    flags = ["--kernel", "gower", "--kernel-param", "categorical=['code']"]
    run("fit", file, "--target", "y", *flags, "--quiet", "-o", "m.krein")
    few = words_in(Path("few.csv"), code=["1", "2"], age=["25", ""])
    run("predict", "m.krein", few, "-o", "o.csv", "--quiet")
    rows = [
        {"age": float(a) if a else None, "code": c}
        for a, c in zip(columns["age"], columns["code"], strict=True)
    ]
    model = kreinlearn.KreinClassifier(
        "gower", kernel_params={"categorical": ["code"]}, random_state=0
    )
    expected = model.fit(rows, columns["y"]).predict(
        [{"age": 25.0, "code": "1"}, {"age": None, "code": "2"}]
    )
    assert read_csv(Path("o.csv"))["prediction"] == expected.tolist()


# Matrices

D, BALLS = datasets.make_balls3d((30, 30), random_state=0)
MATRIX = ["--kernel", "precomputed_dissimilarity", "--quiet"]


def matrices(folder: Path) -> dict[str, tuple[list[Any], list[Any]]]:
    """Words of fit, and of predict, for every way to give a matrix and its labels."""
    np.save(folder / "D.npy", D)
    np.save(folder / "y.npy", BALLS)
    np.savez(folder / "D.npz", D=D, y=BALLS)
    np.savetxt(folder / "D.csv", D, delimiter=",")
    (folder / "y.txt").write_text("".join(f"{c}\n" for c in BALLS))
    (folder / "y.csv").write_text("kind\n" + "".join(f"{c}\n" for c in BALLS))
    names = [f"o{i}" for i in range(60)]
    named = {"": names, **{name: D[:, i] for i, name in enumerate(names)}, "kind": BALLS}
    write_csv(folder / "named.csv", named)
    upside = {"kind": BALLS, **{name: D[:, 59 - i] for i, name in enumerate(reversed(names))}}
    write_csv(folder / "upside.csv", upside)
    return {
        "npy": (["D.npy", "--labels", "y.npy"], ["D.npy"]),
        "npy, txt": (["D.npy", "--labels", "y.txt"], ["D.npy"]),
        "npz": (["D.npz", "--target", "y"], ["D.npz", "--column", "D"]),
        "csv": (["D.csv", "--labels", "y.csv"], ["D.csv"]),
        "csv of names": (["named.csv", "--target", "kind"], ["upside.csv"]),
    }


@pytest.mark.parametrize("way", ["npy", "npy, txt", "npz", "csv", "csv of names"])
def test_matrices_of_dissimilarities(way: str, tmp_path: Path) -> None:
    fit, predict = matrices(tmp_path)[way]
    run("fit", *fit, *MATRIX, "-o", "m.krein")
    run("predict", "m.krein", *predict, "--scores", "-o", "o.csv", "--quiet")
    model = kreinlearn.KreinClassifier("precomputed_dissimilarity", random_state=0)
    model.fit(D, BALLS)
    found = read_csv(Path("o.csv"))
    assert found["prediction"] == [str(c) for c in model.predict(D)]
    assert_array_equal(np.array(found["score_1"], float), model.decision_function(D))


def test_a_matrix_is_known_without_a_kernel(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    matrices(tmp_path)
    for file in ("D.npy", "D.csv", "named.csv"):
        found = printed(capsys, "inspect", file, *(["--id", "kind"] if file == "named.csv" else []))
        assert found["kernel"] == "precomputed_dissimilarity"
        assert found["n_objects"] == 60
    np.save("K.npy", D @ D)
    assert printed(capsys, "inspect", "K.npy")["kernel"] == "precomputed"
    np.save("X.npy", D[:, :5])
    assert printed(capsys, "inspect", "X.npy")["kernel"] == "gaussian"
    np.save("S.npy", np.random.default_rng(0).normal(size=(20, 20)))
    assert printed(capsys, "inspect", "S.npy")["kernel"] == "gaussian"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["D.npy", "--labels", "named.csv"], "which is the target? --target names it"),
        (["D.npy", "--labels", "short.csv"], "has 3 labels for the 60 objects of D.npy"),
        (["D.npz", "--target", "z"], "there is no array 'z' in D.npz; arrays are D, y"),
        (["three.npz", "--labels", "y.npy"], "several arrays; name that of the objects with --col"),
        (["D.npy", "--labels", "gone.csv"], "gone.csv: there is no such file"),
        (["odd.csv", "--labels", "y.npy"], "column 'b' of the matrix does not hold numbers"),
    ],
)  # fmt: skip
def test_a_matrix_that_is_wrong(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    matrices(tmp_path)
    (tmp_path / "short.csv").write_text("kind\na\nb\na\n")
    (tmp_path / "odd.csv").write_text("a,b\n1,x\n2,y\n")
    np.savez(tmp_path / "three.npz", A=D, B=D, C=D)
    assert cli.main(["fit", *words, *MATRIX, "-o", "m.krein"]) == 1
    assert message in capsys.readouterr().err
    assert not Path("m.krein").exists()


# What is said


def test_what_was_chosen_is_said(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "LONG_RUN", np.inf)  # a busy machine would announce the time
    file = words_in(Path("w.csv"), text=WORDS, label=LABELS)
    run("fit", file, "--target", "label", "-o", "m.krein")
    out, error = capsys.readouterr()
    lines = [line for line in error.splitlines() if " pairs, about " not in line]  # if it is slow
    assert lines == [
        "kernel: auto (--kernel names another)",
        "columns: text (text) (--column names others)",
        "label: 3 classes -> KreinClassifier",
        "next: kreinlearn predict m.krein NEW_FILE -o out.csv",
        "compare: kreinlearn evaluate w.csv --target label --html report.html",
    ]
    assert "n landmarks" in out
    assert "60" in out
    found = printed(capsys, "fit", file, "--target", "label", "-o", "m.krein", "--force")
    assert found["classes"] == ["x", "y", "z"]
    assert found["n_landmarks"] == 60
    assert found["output"] == "m.krein"


def test_quiet_says_nothing_and_stdout_has_data_only(capsys: pytest.CaptureFixture[str]) -> None:
    file = words_in(Path("w.csv"), text=WORDS, label=LABELS)
    run("fit", file, "--target", "label", "--quiet", "--landmarks", "999", "-o", "m.krein")
    assert capsys.readouterr().err == ""
    run("fit", file, "--target", "label", "--landmarks", "999", "-o", "m.krein", "--force")
    assert (
        "warning: 999 landmarks exceed n_samples=60; all 60 objects are used"
        in capsys.readouterr().err
    )
    run("predict", "m.krein", file)
    out, error = capsys.readouterr()
    assert out.splitlines() == ["prediction", *kreinlearn.load("m.krein").predict(WORDS)]
    assert error == "60 predictions: stdout\n"


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (["p"] * 60, "label holds one class only, 'p'"),
        ([f"c{i}" for i in range(60)], "60 different values in as many rows"),
        (
            ["p", ""] * 30,
            "w.csv: label is empty in 30 rows (lines 3, 5, 7, 9, 11, ...); fill in, or leave out",
        ),
    ],
)
def test_a_target_that_cannot_be_learned(
    column: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = words_in(Path("w.csv"), text=WORDS, label=column)
    assert cli.main(["fit", str(file), "--target", "label", "-o", "m.krein"]) == 1
    assert message in capsys.readouterr().err


def test_a_class_with_one_member_is_learned() -> None:
    file = words_in(Path("w.csv"), text=WORDS, label=["p"] * 30 + ["q"] * 29 + ["r"])
    run("fit", file, "--target", "label", "--quiet", "-o", "m.krein")
    assert kreinlearn.load("m.krein").classes_.tolist() == ["p", "q", "r"]


def test_an_interrupted_fit_goes_on_from_its_store() -> None:
    pytest.importorskip("zarr")
    file = words_in(Path("w.csv"), text=WORDS, label=LABELS)
    for name in ("a.krein", "b.krein"):
        run(
            "fit",
            file,
            "--target",
            "label",
            *TEXT,
            "--landmarks",
            "20",
            "--store",
            "kept",
            "-o",
            name,
        )
    assert Path("kept").is_dir()
    a, b = map(kreinlearn.load, ("a.krein", "b.krein"))
    assert_array_equal(a.dual_coef_, b.dual_coef_)
    assert a.resources == Resources()
