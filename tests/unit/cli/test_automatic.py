"""fit without --kernel: the kernels that suit the file are compared; and evaluate with several."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import kreinlearn
from kreinlearn import cli
from kreinlearn.cli import data
from kreinlearn.cli.messages import Talk
from kreinlearn.cli.parser import parser
from tests.unit.cli.commands import printed, read_csv, run, write_csv

N = 40


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of things, in a folder of its own; only the name tells the class."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    label = np.arange(N) % 2
    things = {
        "thing_id": [f"t{i}" for i in rng.permutation(N)],
        "index": np.arange(1, N + 1),
        "name": ["".join(rng.choice(list("abcd"[2 * c : 2 * c + 2]), size=6)) for c in label],
        "colour": rng.choice(["red", "green"], size=N),
        "size": rng.normal(size=N).round(3),
        "label": [f"class {c}" for c in label],
    }
    write_csv(tmp_path / "things.csv", things)
    write_csv(tmp_path / "words.csv", {name: things[name] for name in ("name", "label")})
    numbers = {"a": rng.normal(size=N) + label, "b": rng.normal(size=N), "label": things["label"]}
    write_csv(tmp_path / "numbers.csv", numbers)


def given(*words: str, command: str = "fit") -> data.Given:
    """What a command gets from the options."""
    more = ["-o", "m.krein"] if command == "fit" else []
    options = parser().parse_args([command, *words, "--target", "label", *more])
    return data.load(options, Talk(quiet=True), streams=command == "fit")


def test_the_front_door_compares_kernels_on_texts_numbers_and_records() -> None:
    words, numbers, things = map(given, ("words.csv", "numbers.csv", "things.csv"))
    assert {one.kernel for one in (words, numbers, things)} == {"auto"}
    assert words.column == "name"
    assert list(words.X) == read_csv(Path("words.csv"))["name"]
    assert numbers.X.shape == (N, 2)
    rows = read_csv(Path("things.csv"))
    wanted = zip(rows["name"], rows["colour"], map(float, rows["size"]), strict=True)
    fields = ("name", "colour", "size")
    assert [dict(zip(fields, row, strict=True)) for row in wanted] == things.X


def test_others_have_the_kernel_that_they_had() -> None:
    assert given("words.csv", "--estimator", "ridge").kernel == "levenshtein"
    assert given("numbers.csv", "--estimator", "KreinSVC").kernel == "gaussian"
    assert given("words.csv", command="evaluate").kernel == "auto"
    assert given("numbers.csv", command="evaluate").kernel == "auto"
    assert given("words.csv", "--kernel", "auto", command="evaluate").kernel == "auto"
    assert given("words.csv", "--kernel", "jaro").kernel == "jaro"


def test_a_symmetric_matrix_stays_one() -> None:
    X = np.random.default_rng(0).normal(size=(N, 2))
    D = np.abs(X[:, None] - X).sum(axis=2)
    write_csv(Path("D.csv"), {f"d{j}": D[:, j] for j in range(N)})
    np.save("D.npy", D)
    np.save("X.npy", X)
    Path("y.txt").write_text("\n".join(map(str, np.arange(N) % 2)) + "\n")
    for file, kernel in (("D.csv", 1), ("D.npy", 1), ("X.npy", 0)):
        options = parser().parse_args(["fit", file, "--labels", "y.txt", "-o", "m.krein"])
        found = data.load(options, Talk(quiet=True)).kernel
        assert found == ("precomputed_dissimilarity" if kernel else "auto")


def test_a_table_of_another_kind_of_file_is_read_as_a_csv_file_is() -> None:
    csv_reader, pq = map(pytest.importorskip, ("pyarrow.csv", "pyarrow.parquet"))
    for name in ("words", "numbers"):
        csv = given(f"{name}.csv")
        pq.write_table(csv_reader.read_csv(f"{name}.csv"), f"{name}.parquet")
        parquet = given(f"{name}.parquet")
        assert parquet.kernel == "auto"
        assert_array_equal(np.asarray(parquet.X), np.asarray(csv.X))


@pytest.mark.parametrize(
    ("name", "values", "is_one"),
    [
        ("id", [f"x{i}" for i in range(N)], True),
        ("person_id", [f"x{i}" for i in range(N)], True),
        ("personId", [f"x{i}" for i in range(N)], True),
        ("ID", range(N), True),
        ("Unnamed: 0", range(N), True),
        ("index", range(1, N + 1), True),
        ("customer_id", range(90_000, 90_000 - 7 * N, -7), True),
        ("index", [i + 0.5 for i in range(N)], False),
        ("id", [f"x{i // 2}" for i in range(N)], False),
        ("id", [0, *range(N - 1)], True),
        ("customerId", [i // 3 for i in range(N)], True),
        ("customer_id", [i / 3 for i in range(N)], False),
        ("glycemic_index", [i // 3 for i in range(N)], False),
        ("customer", [f"C{1089 - i}" for i in range(N)], True),
        ("order", [f"2026-A-{i + i // 2:05}" for i in range(N)], True),
        ("grid", [f"x{i * i}" for i in range(N)], False),
        ("name", [f"x{i // 2}" for i in range(N)], False),
        ("name", [f"{'xy'[i % 2]}{i}" for i in range(N)], False),
        ("name", [f"x{i}y" for i in range(N)], False),
        ("size", range(N), False),
        ("day", [f"2026-01-{i + 1:02}" for i in range(N)], False),
    ],
)
def test_columns_that_only_name_the_rows(name: str, values: Any, is_one: bool) -> None:
    rows = read_csv(Path("things.csv"))
    more = {"colour": rows["colour"], "weight": rows["size"], "label": rows["label"]}
    write_csv(Path("f.csv"), {name: list(values), **more})
    assert (name not in given("f.csv").X[0]) is is_one
    assert name in given("f.csv", "--column", name, "--column", "colour").X[0]


def test_identifiers_are_named_and_are_kept_if_there_is_nothing_else(
    capsys: pytest.CaptureFixture[str],
) -> None:
    run("fit", "things.csv", "--target", "label", "-o", "m.krein")
    said = capsys.readouterr().err
    assert "left out, because they only name the rows: thing_id, index" in said
    rows = read_csv(Path("things.csv"))
    write_csv(Path("ids.csv"), {"id": rows["thing_id"], "label": rows["label"]})
    assert given("ids.csv").column == "id"


def test_fit_says_the_weights_and_predict_reads_the_columns_that_are_needed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = printed(capsys, "fit", "things.csv", "--target", "label", "-o", "m.krein", "--quiet")
    model = kreinlearn.load("m.krein")
    assert found["kernel"] == "auto"
    assert found["kernel_weights"] == model.kernel_weights_
    assert sum(found["kernel_weights"].values()) == pytest.approx(1)
    largest = max(found["kernel_weights"], key=found["kernel_weights"].get)
    assert "name" in largest
    run("predict", "m.krein", "things.csv", "-o", "out.csv", "--quiet")
    things = read_csv(Path("things.csv"))
    right = [a == b for a, b in zip(read_csv(Path("out.csv"))["prediction"], things["label"],
                                    strict=True)]  # fmt: skip
    assert np.mean(right) > 0.9
    run("fit", "words.csv", "--target", "label", "-o", "n.krein")
    assert "kernel weights" in capsys.readouterr().out
    run("predict", "n.krein", "words.csv", "-o", "words_out.csv", "--quiet")
    assert len(read_csv(Path("words_out.csv"))["prediction"]) == N


@pytest.mark.parametrize("gaps", [0, 3])
def test_whole_rows_are_read_again_by_predict(gaps: int) -> None:
    rng = np.random.default_rng(1)
    colour, shape = (rng.choice(["a", "b"], size=80).tolist() for _ in range(2))
    label = [f"{a}{b}" for a, b in zip(colour, shape, strict=True)]
    table: dict[str, list[Any]] = {
        "colour": colour, "shape": shape, "size": rng.normal(size=80).tolist(), "label": label,
    }  # fmt: skip
    for row, name in enumerate(list(table)[:gaps]):
        table[name][row] = ""
    write_csv(Path("rows.csv"), table)
    rows = given("rows.csv", "--kernel", "gower").X
    kreinlearn.KreinClassifier(random_state=0).fit(rows, label).save("m.krein")
    run("predict", "m.krein", "rows.csv", "-o", "out.csv", "--scores", "--quiet")
    model = kreinlearn.load("m.krein")
    assert "Gower()" in [name for name, weight in model.kernel_weights_.items() if weight]
    scores = model.decision_function(rows)
    written = read_csv(Path("out.csv"))
    for j, name in enumerate(model.classes_):
        column = np.array(written[f"score_{name}"], dtype=float)
        np.testing.assert_allclose(column, scores[:, j], rtol=1e-9, atol=1e-9)


def test_rows_with_gaps_take_part_or_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    things = read_csv(Path("things.csv"))
    things["size"][3] = things["name"][5] = things["name"][8] = ""
    write_csv(Path("gaps.csv"), things)
    words = ["fit", "gaps.csv", "--target", "label", "-o", "m.krein"]
    predict = ["predict", "m.krein", "gaps.csv", "-o", "out.csv"]
    run(*words)
    assert kreinlearn.load("m.krein").n_landmarks_ == N
    run(*predict)
    assert len(read_csv(Path("out.csv"))["prediction"]) == N
    capsys.readouterr()
    run(*words, "--drop-missing", "--force")
    said = capsys.readouterr().err
    assert f"left out: 3 of {N} rows; name is empty in 2 rows (lines 7, 10)" in said
    assert "warning" not in said
    weights = kreinlearn.load("m.krein").kernel_weights_
    assert any("name" in name and weight for name, weight in weights.items())
    run(*predict, "--drop-missing", "--force")
    needed = any("size" in name and weight for name, weight in weights.items())
    gaps = (3, 5, 8) if needed else (5, 8)  # a column that the model does not look at may be empty
    found = read_csv(Path("out.csv"))
    assert found["row"] == [str(i) for i in range(N) if i not in gaps]
    assert len(found["prediction"]) == N - len(gaps)
    run(*predict, "--drop-missing", "--force", "--id", "thing_id")
    written = read_csv(Path("out.csv"))
    assert list(written) == ["thing_id", "prediction"]
    assert written["thing_id"] == [things["thing_id"][int(i)] for i in found["row"]]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_reports_name_the_lines_or_rows_of_the_file_and_how_many_are_left_out(
    capsys: pytest.CaptureFixture[str], suffix: str
) -> None:
    """Objects 7 and 20 have a wrong label, and rows before them are left out."""
    words = read_csv(Path("words.csv"))
    words["label"][7], words["label"][20] = words["label"][20], words["label"][7]
    words["name"][3] = words["name"][10] = ""
    write_csv(Path("gaps.csv"), words)
    if suffix == ".parquet":
        pa_csv, parquet = pytest.importorskip("pyarrow.csv"), pytest.importorskip("pyarrow.parquet")
        parquet.write_table(pa_csv.read_csv("gaps.csv"), "gaps.parquet")
    pages = ["--html", "page.html", "--markdown", "page.md"]
    flags = ["--kernel", "levenshtein", "--learners", "neighbours", "--target", "label"]
    run("evaluate", f"gaps{suffix}", *flags, *pages, "--drop-missing")
    found = {7: words["name"][7], 20: words["name"][20]}
    shown = [f"{name} (line {i + 2})" for i, name in found.items()]
    note = "Lines are those of the file, counted from 1."
    if suffix == ".parquet":
        shown = [f"{name} (row {i})" for i, name in found.items()]
        note = "Rows are counted from 0: row 0 is the first."
    out = re.sub(r"[\s│]+", " ", capsys.readouterr().out)  # cells are wrapped
    for text in (out, Path("page.html").read_text("utf8"), Path("page.md").read_text("utf8")):
        assert [one for one in [*shown, note] if one not in text] == []
    for path in ("page.html", "page.md"):
        assert f"without 2 of {N} rows, which have empty cells" in Path(path).read_text("utf8")


def test_what_stands_for_no_number_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    numbers = read_csv(Path("numbers.csv"))
    run("fit", "numbers.csv", "--target", "label", "-o", "m.krein", "--quiet")
    numbers["a"][1], numbers["a"][2], numbers["a"][4], numbers["b"][7] = "n/a", "", "NA", "nan"
    write_csv(Path("gaps.csv"), numbers)
    said = "a is empty in 3 rows (lines 3, 4, 6), b is empty in one row (line 9)"
    capsys.readouterr()
    for words in (
        ["fit", "gaps.csv", "--target", "label", "-o"],
        ["predict", "m.krein", "gaps.csv"],
    ):
        more = ["n.krein"] if words[0] == "fit" else []
        assert cli.main([*words, *more]) == 1
        assert said in capsys.readouterr().err
        assert cli.main([*words, *more, "--drop-missing"]) == 0
        assert said in capsys.readouterr().err


def test_gower_takes_rows_with_gaps() -> None:
    things = read_csv(Path("things.csv"))
    things["size"][3] = ""
    write_csv(Path("gaps.csv"), things)
    flags = ("gaps.csv", "--kernel", "gower")
    assert [row["size"] for row in given(*flags).X].count(None) == 1
    assert len(given(*flags, "--drop-missing").X) == N
    run("fit", *flags, "--target", "label", "-o", "m.krein", "--quiet")
    run("predict", "m.krein", "gaps.csv", "-o", "out.csv", "--quiet")
    assert len(read_csv(Path("out.csv"))["prediction"]) == N


def test_columns_that_the_model_was_not_fitted_on(capsys: pytest.CaptureFixture[str]) -> None:
    run("fit", "things.csv", "--target", "label", "-o", "m.krein", "--quiet")
    with pytest.raises(SystemExit):
        cli.main(["predict", "m.krein", "things.csv", "--column", "colour", "-o", "out.csv"])
    assert "--column: m.krein finds its columns by the names that they" in capsys.readouterr().err
    run("fit", "words.csv", "--target", "label", "-o", "n.krein", "--quiet")
    run("fit", "numbers.csv", "--target", "label", "-o", "o.krein", "--quiet")
    for model, file, column, fitted in (
        ("n.krein", "things.csv", ["colour"], ["name"]),
        ("o.krein", "numbers.csv", ["b", "a"], ["a", "b"]),
    ):
        for columns in (column, fitted):
            flags = [word for name in columns for word in ("--column", name)]
            run("predict", model, file, *flags, "-o", "out.csv", "--force")
            said = f"{model} was fitted on {', '.join(fitted)}, and is applied to "
            assert (said in capsys.readouterr().err) is (columns is column)


def test_decimal_commas(capsys: pytest.CaptureFixture[str]) -> None:
    numbers = read_csv(Path("numbers.csv"))
    commas = {name: [x.replace(".", ",") for x in values] for name, values in numbers.items()}
    write_csv(Path("commas.csv"), commas, delimiter=";")
    assert_array_equal(given("commas.csv", "--decimal", ",").X, given("numbers.csv").X)
    fit = ["fit", "commas.csv", "--target", "label", "-o", "m.krein"]
    run(*fit, "--decimal", ",")
    assert " --decimal , " in capsys.readouterr().err  # in the command that is proposed
    run("predict", "m.krein", "commas.csv", "--decimal", ",", "-o", "out.csv")
    assert "texts" not in capsys.readouterr().err
    assert cli.main([*fit, "--kernel", "gaussian", "--column", "a", "--force"]) == 1
    said = capsys.readouterr().err
    assert "look like numbers with decimal commas: a, b; decimal=',' reads numbers" in said
    assert cli.main(["predict", "m.krein", "commas.csv"]) == 1
    assert "is '" in capsys.readouterr().err


def test_a_column_that_is_called_by_its_place(capsys: pytest.CaptureFixture[str]) -> None:
    words = read_csv(Path("words.csv"))
    rows = zip(words["name"], words["label"], strict=True)
    Path("bare.csv").write_text("".join(f"{a},{b}\n" for a, b in rows))
    fit = ["fit", "bare.csv", "-o", "m.krein", "--target"]
    assert cli.main([*fit, "2"]) == 1
    said = capsys.readouterr().err
    assert f"no column '2' in bare.csv; the first line names them: {words['name'][0]}, cla" in said
    assert "if it is a row, add --no-header" in said
    assert cli.main([*fit, "3"]) == 1
    assert "--no-header" not in capsys.readouterr().err
    run(*fit, "2", "--no-header", "--quiet")


def test_evaluate_several_kernels(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--target", "label", "--cv", "2", "--quiet"]
    kernels = ["--kernel", "levenshtein", "--kernel", "jaro_winkler"]
    found = printed(capsys, "evaluate", "words.csv", *flags, *kernels)
    assert found["kernel"] == "levenshtein, jaro_winkler"
    assert found["kernel_weights"].keys() == {"levenshtein", "jaro_winkler"}
    failed = {score["name"]: score["failed"] for score in found["scores"]}
    assert failed["KreinClassifier"] is None
    assert failed["KreinSVC"] == "takes one kernel"
    run("evaluate", "things.csv", *flags, "--kernel", "auto", "--html", "report.html")
    assert "on the first fold: " in capsys.readouterr().out
    pytest.importorskip("matplotlib")
    assert "Bar plot of the weights of kernels" in Path("report.html").read_text("utf8")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["fit", "words.csv", "--estimator", "ridge"], "--kernel auto is for fit with --estimator"),
        (["inspect", "words.csv"], "--kernel auto is for fit with --estimator krein, and for"),
        (["fit", "words.csv", "--kernel-param", "a=1"], "--kernel-param belongs to a kernel"),
        (["fit", "words.csv", "--kernel", "jaro"], "--kernel auto: there is no such kernel"),
    ],
)
def test_wrong_calls(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    output = ["-o", "m.krein"] if words[0] == "fit" else []
    with pytest.raises(SystemExit) as left:
        cli.main([*words, "--kernel", "auto", "--target", "label", *output])
    assert left.value.code == 2
    assert message in capsys.readouterr().err


def test_series_in_json_lines_are_compared_as_series() -> None:
    lines = [
        {"curve": np.sin(np.arange(8) * (0.3 + i % 2)).tolist(), "label": i % 2} for i in range(N)
    ]
    Path("s.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    run("fit", "s.jsonl", "--target", "label", "-o", "m.krein", "--quiet")
    assert any("DTW" in name for name in kreinlearn.load("m.krein").kernel_losses_)
