"""--kernel for single columns, and several of them."""

from __future__ import annotations

import json
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
from kreinlearn.kernels import Field
from tests.unit.cli.commands import printed, read_csv, run, write_csv

N = 30
FLAGS = ["--kernel", "name=jaro_winkler", "--kernel", "history=dtw", "--kernel", "age=gaussian"]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of people, in a folder of their own."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    label = np.arange(N) % 2
    rows: dict[str, list[Any]] = {
        "key": [f"k{i}" for i in range(N)],
        "code": [f"{i % 7:03d}" for i in range(N)],
        "name": ["".join(rng.choice(list("abcd"[: 2 + 2 * c]), size=6)) for c in label],
        "history": [np.sin(np.arange(5 + i % 4) * (0.4 + c)).tolist() for i, c in enumerate(label)],
        "age": (20 + 10 * label + rng.normal(size=N)).tolist(),
        "label": [f"class {c}" for c in label],
    }
    cells = {**rows, "history": list(map(json.dumps, rows["history"]))}
    write_csv(tmp_path / "people.csv", cells)
    lines = [dict(zip(rows, row, strict=True)) for row in zip(*rows.values(), strict=True)]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (tmp_path / "people.jsonl").write_text(text)


def people() -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path("people.jsonl").read_text().splitlines()]


def given(*words: str) -> data.Given:
    """What a fit gets from the options."""
    options = parser().parse_args(["fit", *words, "--target", "label", "-o", "m.krein"])
    return data.load(options, Talk(quiet=True))


@pytest.mark.parametrize("file", ["people.csv", "people.jsonl"])
def test_columns_become_fields_of_records(file: str) -> None:
    found = given(file, *FLAGS)
    assert found.shown == "name=jaro_winkler, history=dtw, age=gaussian"
    expected = kreinlearn.columns({"name": "jaro_winkler", "history": "dtw", "age": "gaussian"})
    assert [repr(one) for one in found.kernel] == [repr(one) for one in expected]
    wanted = [{name: row[name] for name in ("name", "history", "age")} for row in people()]
    assert wanted == found.X
    assert found.n == N


def test_texts_stay_texts_for_kernels_on_texts() -> None:
    text, number = (given("people.csv", "--kernel", f"code={name}") for name in ("jaro", "gower"))
    assert text.X[:3] == [{"code": "000"}, {"code": "001"}, {"code": "002"}]
    assert number.X[:3] == [{"code": 0.0}, {"code": 1.0}, {"code": 2.0}]


def test_a_column_may_be_compared_in_two_ways_and_have_a_mark_in_its_name() -> None:
    rows = people()
    write_csv(Path("marks.csv"), {"a=b": [r["name"] for r in rows], "label": [1, 2] * 15})
    found = given("marks.csv", "--kernel", "a=b=jaro", "--kernel", "a=b=levenshtein")
    assert [one.name for one in found.kernel] == ["a=b", "a=b"]
    assert list(found.X[0]) == ["a=b"]


def test_several_kernels_on_the_same_objects() -> None:
    found = given("people.csv", "--column", "name", "--kernel", "jaro", "--kernel", "levenshtein")
    assert found.kernel == ["jaro", "levenshtein"]
    assert found.shown == "jaro, levenshtein"
    assert list(found.X) == [row["name"] for row in people()]
    numbers = given("people.csv", "--kernel", "gaussian", "--kernel", "manhattan", "--id", "code")
    assert numbers.kernel == ["gaussian", "manhattan"]
    assert_array_equal(numbers.X, [[row["age"]] for row in people()])


def test_one_kernel_is_no_list() -> None:
    assert given("people.csv", "--column", "name", "--kernel", "jaro").kernel == "jaro"
    assert isinstance(given("people.csv", "--kernel", "name=jaro").kernel, Field)


@pytest.mark.parametrize("file", ["people.csv", "people.jsonl"])
@pytest.mark.parametrize("field", ["name=jaro_winkler", "history=dtw", "age=gaussian", "age=gower"])
def test_fit_and_predict_one_column(
    file: str, field: str, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--kernel", field, "--target", "label", "-o", "m.krein"]
    found = printed(capsys, "fit", file, *flags, "--quiet")
    assert (found["kernel"], found["n_objects"]) == (field, N)
    run("predict", "m.krein", file, "--id", "key", "-o", "out.csv", "--quiet")
    column, name = field.split("=")
    model = kreinlearn.KreinClassifier(Field(column, name), random_state=0)
    model.fit(people(), [row["label"] for row in people()])
    out = read_csv(Path("out.csv"))
    assert out["prediction"] == model.predict(people()).tolist()
    assert out["key"] == [f"k{i}" for i in range(N)]


def test_parameters_of_the_kernel_of_a_column(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--kernel", "history=dtw", "--kernel-param", "window=0.2", "--target", "label"]
    run("fit", "people.csv", *flags, "-o", "m.krein", "--quiet")
    assert kreinlearn.load("m.krein").kernel_.kernel.window == 0.2
    assert printed(capsys, "inspect", "people.csv", *flags, "--quiet")["kernel"]
    assert printed(capsys, "evaluate", "people.csv", *flags, "--cv", "2", "--quiet")["kernel"]


def test_no_note_about_columns_that_were_named(capsys: pytest.CaptureFixture[str]) -> None:
    run("inspect", "people.csv", "--kernel", "name=jaro")
    said = capsys.readouterr()
    assert "--column" not in said.err
    assert "people.csv, name=jaro" in said.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--kernel", "name=jaro", "--kernel", "dtw"], "either each names a column, as in name="),
        (["--kernel", "name=levenstein"], "--kernel levenstein: there is no such kernel; did you"),
        (["--kernel", "=jaro"], "there is no column before the mark"),
        (["--kernel", "name="], "there is no such kernel"),
        (["--kernel", "label=jaro"], "--kernel label=jaro: label is the target or the id of rows"),
        (["--kernel", "key=jaro", "--id", "key"], "key is the target or the id"),
        (
            ["--kernel", "name=jaro", "--column", "name"],
            "the columns are those that --kernel names",
        ),
        (["--kernel", "name=precomputed"], "a given matrix cannot be part of another kernel"),
        ([*FLAGS, "--kernel-param", "window=0.1"], "--kernel-param belongs to one kernel, and"),
    ],
)
def test_wrong_calls(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        cli.main(["inspect", "people.csv", "--target", "label", *words])
    assert left.value.code == 2
    assert message in capsys.readouterr().err


def failing(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert cli.main(list(words)) == 1
    return capsys.readouterr().err


def test_columns_that_are_not_there_or_are_missing(capsys: pytest.CaptureFixture[str]) -> None:
    said = failing(capsys, "inspect", "people.csv", "--kernel", "agee=gaussian")
    assert "there is no column 'agee' (did you mean 'age'?) in people.csv; columns are key" in said
    rows = people()
    rows[4]["age"] = rows[6]["age"] = None
    Path("holes.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    said = failing(capsys, "inspect", "holes.jsonl", "--kernel", "age=gaussian")
    assert "age is empty in 2 rows (lines 5, 7); fill in, or leave out with --drop-missing" in said
    both = ["--kernel", "age=gaussian", "--kernel", "name=jaro"]
    words = ["fit", "holes.jsonl", *both, "--target", "label", "-o", "m.krein"]
    assert cli.main(words) == 0  # a name is known where an age is missing
    assert cli.main([*words, "--force", "--drop-missing"]) == 0
    assert "left out: 2 of 30 rows; age is empty in 2 rows (lines 5, 7)" in capsys.readouterr().err
    said = failing(capsys, "inspect", "people.csv", "--kernel", "name=gaussian")
    assert "takes a number, or a vector" in said
    assert "in the field 'name' of the records" in said


def test_arrays_have_no_columns(capsys: pytest.CaptureFixture[str]) -> None:
    np.save("X.npy", np.eye(4))
    with pytest.raises(SystemExit):
        cli.main(["inspect", "X.npy", "--kernel", "a=gaussian"])
    assert "X.npy holds arrays and no columns" in capsys.readouterr().err
