"""Files of a person's own: what is read is what was written, and errors name the line."""

from __future__ import annotations

import csv
import gzip
import json
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from kreinlearn.data.reading import CsvSheet, Variables, gathering, opened, sheets, target_of
from kreinlearn.data.reading.columns import require_column
from kreinlearn.data.reading.numbers import is_missing, is_number, is_numeric

LETTERS = st.characters(codec="utf-8", exclude_characters="\0")
TEXTS = ["NA", "null", "", "007", " x ", 'say "hi"', "a,b", "two\nlines", "café", "None", "1e5"]


def written(
    folder: Path, content: str | bytes, name: str = "x.csv", encoding: str = "utf8"
) -> Path:
    path = folder / name
    path.write_bytes(content.encode(encoding) if isinstance(content, str) else content)
    return path


def table(path: Path, rows: list[list[Any]], delimiter: str = ",") -> Path:
    with path.open("w", newline="", encoding="utf8") as file:
        csv.writer(file, delimiter=delimiter).writerows(rows)
    return path


def texts_of(path: Path, name: str = "text", **options: Any) -> list[str]:
    sheet = opened(path, **options)
    assert not isinstance(sheet, Variables)
    return gathering.column(sheet, name)[0]


# Texts stay texts


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet", ".csv.gz", ".arrow"])
def test_a_column_of_texts_is_as_it_was_written(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"x{suffix}"
    rows = list(enumerate(TEXTS))
    if suffix in (".parquet", ".arrow"):
        pa = pytest.importorskip("pyarrow")
        whole = pa.table({"n": range(len(TEXTS)), "text": TEXTS})
        if suffix == ".parquet":
            pytest.importorskip("pyarrow.parquet").write_table(whole, path, row_group_size=4)
        else:
            with pa.ipc.new_file(str(path), whole.schema) as writer:
                writer.write_table(whole)
    elif suffix == ".jsonl":
        path.write_text("\n".join(json.dumps({"n": i, "text": text}) for i, text in rows))
    else:
        table(path, [["n", "text"], *map(list, rows)], "\t" if suffix == ".tsv" else ",")
        if suffix.endswith(".gz"):
            path.write_bytes(gzip.compress(path.read_bytes()))
    assert texts_of(path) == TEXTS
    sheet = opened(path)
    assert not isinstance(sheet, Variables)
    assert gathering.kinds_of(sheet) == (["n"], ["text"])


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(
        st.tuples(*[st.text(LETTERS, max_size=9)] * 3),
        min_size=1, max_size=12,
    ),
    delimiter=st.sampled_from(",;\t|"),
)  # fmt: skip
def test_whatever_the_csv_module_writes_is_read(
    rows: list[tuple[str, ...]], delimiter: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("csv") / "x.csv"
    table(path, [["a", "b", "c"], *map(list, rows)], delimiter)
    sheet = opened(path, delimiter=delimiter)
    assert isinstance(sheet, CsvSheet)
    (block,) = sheet.blocks(["a", "b", "c"])
    assert list(zip(*block.columns, strict=True)) == rows


@pytest.mark.parametrize(
    ("encoding", "given"),
    [
        ("utf-8", None), ("utf-8-sig", None), ("utf-16", None), ("utf-32", None),
        ("utf-16-le", "utf-16-le"), ("latin-1", "latin-1"), ("cp1252", "cp1252"),
        ("utf-8-sig", "utf-8"),
    ],
)  # fmt: skip
def test_encodings(tmp_path: Path, encoding: str, given: str | None) -> None:
    path = written(tmp_path, "text,n\ncafé,1\nnaïve,2\n", encoding=encoding)
    assert texts_of(path, encoding=given) == ["café", "naïve"]


def test_a_text_is_not_normalised(tmp_path: Path) -> None:
    composed, decomposed = "é", "e\u0301"
    path = written(tmp_path, f"text,n\n{composed},1\n{decomposed},2\n")
    assert texts_of(path) == [composed, decomposed]


# Lines


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_are_counted_with_those_inside_quotes(tmp_path: Path, end: str) -> None:
    lines = ["text,n", '"one', 'two",1', "", "b,2", '"', "", '",3', "c,4"]
    sheet = CsvSheet(written(tmp_path, end.join(lines) + end))
    (block,) = sheet.blocks(["text", "n"])
    assert list(block.places) == [2, 5, 6, 9]
    assert list(block.columns[0]) == [f"one{end}two", "b", end * 2, "c"]


def test_blocks_are_whole_and_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sheets, "ROWS", 7)
    path = table(tmp_path / "x.csv", [["text", "n"], *([f"w{i}", i] for i in range(30))])
    lines = path.with_suffix(".jsonl")
    lines.write_text("".join(json.dumps({"n": i}) + "\n\n" for i in range(30)))
    for found, step in ((opened(path), 1), (opened(lines), 2)):
        assert not isinstance(found, Variables)
        blocks = list(found.blocks(["n"]))
        assert [len(block.places) for block in blocks] == [7, 7, 7, 7, 2]
        assert [int(v) for block in blocks for v in block.columns[0]] == list(range(30))
        first = 2 if step == 1 else 1
        assert [p for b in blocks for p in b.places] == list(range(first, first + 30 * step, step))


def test_a_file_without_names(tmp_path: Path) -> None:
    path = written(tmp_path, "1,2\n3,4\n")
    sheet = CsvSheet(path, header=False)
    assert sheet.names == ["1", "2"]
    assert_array_equal(rows_of(sheet, ["1", "2"]), [[1, 2], [3, 4]])
    assert CsvSheet(path).numbered
    assert CsvSheet(path).without_header().names == sheet.names


def rows_of(sheet: Any, names: list[str]) -> Any:
    parts = gathering.parts(sheet, names, gathering.number_rows(sheet, names))
    return gathering.whole(parts, sheet)


# Numbers


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", True), (" -2.5e-3 ", True), (".5", True), ("5.", True), ("+7", True), ("007", True),
        ("1_000", False), ("nan", False), ("inf", False), ("", False), ("0x1f", False),
        ("1,5", False), ("٣", False), ("1 2", False), ("true", False), (3, True), (2.5, True),
        (float("nan"), False), (None, False), (float("inf"), False), ([1], False),
    ],
)  # fmt: skip
def test_what_is_a_number(text: Any, expected: bool) -> None:
    assert is_number(text) is expected
    if expected:
        assert np.isfinite(float(text))


def test_what_is_missing() -> None:
    assert all(map(is_missing, ["", " ", "NA", "NaN", "n/a", "NULL", "?", None, float("nan")]))
    assert not any(map(is_missing, ["0", "nil", "x", 0, 0.0, "-"]))


def test_a_column_of_numbers_may_have_gaps_and_a_few_mistakes() -> None:
    assert is_numeric(["1", "", "NA", "2.5"])
    assert is_numeric(["1"] * 19 + ["x"])
    assert is_numeric(["1", "inf", "-Infinity"])
    assert not is_numeric(["1"] * 4 + ["x"])
    assert not is_numeric(["", "NA"])
    assert not is_numeric(["NA", "b"])


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("", "is missing"), ("NA", "is missing"), ("x", "is 'x', no finite number"),
        ("1_0", "is '1_0', no finite number"), ("inf", "is 'inf', no finite"),
        ("nan", "is missing"), ("1e999", "is '1e999', no finite number"),
    ],
)  # fmt: skip
def test_a_value_that_is_no_number_is_named_by_its_line(
    tmp_path: Path, value: str, message: str
) -> None:
    lines = [f"{i},{i + 0.5}" for i in range(20)]
    lines[11] = f"11,{value}"
    sheet = opened(written(tmp_path, "\n".join(["a,b", *lines])))
    with pytest.raises(ValueError, match=rf"x\.csv, line 13: b {message}"):
        rows_of(sheet, ["a", "b"])
    assert rows_of(sheet, ["a"]).shape == (20, 1)  # the other column is not looked at


def test_records_keep_gaps(tmp_path: Path) -> None:
    sheet: Any = opened(written(tmp_path, "age,kind\n3,red\n,NA\nNA,\n"))
    convert = gathering.records(sheet, ["age", "kind"], {"age"})
    (block,) = sheet.blocks(["age", "kind"])
    assert convert(block) == [
        {"age": 3.0, "kind": "red"}, {"age": None, "kind": "NA"}, {"age": None, "kind": None},
    ]  # fmt: skip


# Columns


def test_a_column_that_is_not_there(tmp_path: Path) -> None:
    names = ["text", "Label", "id"]
    with pytest.raises(
        ValueError, match=r"no column 'label' \(did you mean 'Label'\?\); there are: t"
    ):
        require_column("label", names, tmp_path)
    with pytest.raises(ValueError, match=r"has no column 'zzz'; there are: text, Label, id$"):
        require_column("zzz", names, tmp_path)
    with pytest.raises(ValueError, match=r"2 columns named 'a', at places \[1, 3\]; rename"):
        require_column("a", ["a", "b", "a"], tmp_path)
    with pytest.raises(ValueError, match=r"and 8 more$"):
        require_column("zzz", [f"c{i}" for i in range(20)], tmp_path)
    for mark, shown in ((";", "';'"), ("\t", "tab"), ("|", r"'\|'")):
        with pytest.raises(ValueError, match=f"give --delimiter {shown}$"):
            require_column("a", [f"a{mark}b"], tmp_path)


# Targets


@pytest.mark.parametrize(
    ("values", "task", "expected", "why"),
    [
        (["a", "b", "a"], "auto", ["a", "b", "a"], "2 classes"),
        (["NA", "x", "NA"], "auto", ["NA", "x", "NA"], "2 classes"),
        (["1", "2", "1", "2"], "auto", [1, 2, 1, 2], "2 classes"),
        (["007", "8", "007", "8"], "auto", ["007", "8", "007", "8"], "2 classes"),
        (["1", "2", "3"], "auto", [1.0, 2.0, 3.0], "numbers"),
        (["1", "2", "1"], "regression", [1.0, 2.0, 1.0], "numbers"),
        (["1.5", "2", "1.5", "2"], "auto", [1.5, 2.0, 1.5, 2.0], "numbers"),
        (["1.0", "2.0", "1.0", "2.0"], "auto", ["1.0", "2.0", "1.0", "2.0"], "2 classes"),
        ([True, False, True, False], "auto", [True, False, True, False], "2 classes"),
        ([1.0, 2.0, 1.0, 2.0], "auto", [1.0, 2.0, 1.0, 2.0], "2 classes"),
        ([1.5, 2.0, 1.5, 2], "classification", [1.5, 2.0, 1.5, 2.0], "2 classes"),
        ([1, 2, 1, 2], "auto", [1, 2, 1, 2], "2 classes"),
        ([10**30, 2, 10**30, 2], "classification", [str(10**30), "2"] * 2, "2 classes"),
        ([1, "b", 1, "b"], "auto", ["1", "b", "1", "b"], "2 classes"),
        ([0.5, 1.5, 2.5], "auto", [0.5, 1.5, 2.5], "numbers"),
        ([*map(str, range(21))] * 2, "auto", [*map(float, range(21))] * 2, "numbers"),
        ([*map(str, range(21))] * 2, "classification", [*range(21)] * 2, "21 classes"),
        (["9" * 20, "b", "b"], "auto", ["9" * 20, "b", "b"], "2 classes"),
    ],
)  # fmt: skip
def test_what_a_target_is(values: list[Any], task: str, expected: list[Any], why: str) -> None:
    found = target_of(values, "y", "f.csv, line {}: y", range(2, 2 + len(values)), task)
    assert found.values.tolist() == expected
    assert {type(v) for v in found.values.tolist()} == {type(v) for v in expected}
    assert found.why == why
    assert found.task == ("regression" if why == "numbers" else "classification")


@pytest.mark.parametrize(
    ("values", "task", "message"),
    [
        (["a", "", "a"], "auto", "line 3: y is missing; every row needs a class"),
        (["a", None, "a"], "auto", "line 3: y is missing"),
        (["a", "a"], "auto", "one class only, 'a'.*--target"),
        (["a", "b", "c"], "auto", "3 different values in as many rows"),
        (["1", "x", "2"], "regression", "line 3: y is 'x', no finite number"),
        (["1", "", "2"], "regression", "line 3: y is missing"),
        ([[1], [2]], "auto", r"line 2: y is \[1\], no class or number"),
        ([1, "1", 1, "1"], "auto", r"y holds classes of several types \(int, str\).*in one way"),
        ([True, 1, 2, 2], "auto", r"several types \(bool, int\)"),
    ],
)  # fmt: skip
def test_a_target_that_is_none(values: list[Any], task: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        target_of(values, "y", "f.csv, line {}: y", range(2, 2 + len(values)), task)


# Arrays


X = np.arange(12.0).reshape(4, 3)


def arrays(folder: Path, kind: str, **found: Any) -> Path:
    path = folder / f"x{kind}"
    if kind == ".npy":
        np.save(path, next(iter(found.values())))
    elif kind == ".npz":
        np.savez_compressed(path, **found)
    else:
        pytest.importorskip("scipy.io").savemat(path, found)
    return path


@pytest.mark.parametrize("kind", [".npy", ".npz", ".mat"])
def test_arrays(tmp_path: Path, kind: str) -> None:
    path = arrays(tmp_path, kind, X=X, y=np.array([0, 1, 0, 1]))
    file = opened(path)
    assert isinstance(file, Variables)
    assert file.names == (["x"] if kind == ".npy" else ["X", "y"])
    assert_array_equal(file.get(file.names[0]), X)
    assert file.described(file.names[:1]) == f"{file.names[0]} (4 x 3)"
    with pytest.raises(ValueError, match="has no array 'Z'; there are: "):
        file.get("Z")


def test_texts_and_cells(tmp_path: Path) -> None:
    words = ["see", "", "oboe"]
    assert opened(arrays(tmp_path, ".npy", a=np.array(words))).get("x") == words  # type: ignore[union-attr]
    bytes_ = np.array([w.encode() for w in words])
    assert opened(arrays(tmp_path, ".npz", a=bytes_)).get("a") == words  # type: ignore[union-attr]
    cells = np.empty(3, dtype=object)
    cells[:] = words
    series = np.empty(2, dtype=object)
    series[:] = [np.arange(3.0), np.arange(5.0)]
    file = opened(arrays(tmp_path, ".mat", w=cells, s=series, c=np.array(["ab", "c"])))
    assert isinstance(file, Variables)
    assert file.get("w") == words
    assert file.get("c") == ["ab", "c"]
    assert [x.tolist() for x in file.get("s")] == [[0, 1, 2], [0, 1, 2, 3, 4]]


def test_pickles_bombs_and_twins_are_refused(tmp_path: Path) -> None:
    objects = np.array([{}, []], dtype=object)
    with pytest.raises(ValueError, match="pickled objects, which are not read"):
        opened(arrays(tmp_path, ".npy", a=objects))
    with pytest.raises(ValueError, match="pickled objects, which are not read"):
        opened(arrays(tmp_path, ".npz", a=objects))
    bomb = arrays(tmp_path, ".npz", a=np.zeros((1000, 1000)))
    assert bomb.stat().st_size < 20_000
    with pytest.raises(MemoryError, match=r"the array 'a' of .* needs 8 MB"):
        opened(bomb, memory="1MB").get("a")  # type: ignore[union-attr]
    with zipfile.ZipFile(tmp_path / "twins.npz", "w") as archive:
        archive.write(tmp_path / "x.npy", "a.npy")
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.write(tmp_path / "x.npy", "a.npy")
    with pytest.raises(ValueError, match=r"two arrays are named 'a\.npy'"):
        opened(tmp_path / "twins.npz")


@pytest.mark.parametrize("kind", [".npy", ".npz", ".mat"])
def test_a_damaged_array_file_is_a_value_error(tmp_path: Path, kind: str) -> None:
    path = arrays(tmp_path, kind, X=X, y=np.arange(4))
    whole, rng = path.read_bytes(), np.random.default_rng(0)
    for _ in range(60):
        damaged = bytearray(whole)
        for place in rng.integers(min(len(whole), 400), size=3):
            damaged[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(bytes(damaged[: int(rng.integers(1, len(whole)))]))
        with suppress(ValueError, MemoryError):
            file = opened(path, memory="10MB")
            assert isinstance(file, Variables)
            for name in file.names:
                file.get(name)


def test_a_file_of_matlab_73(tmp_path: Path) -> None:
    path = written(tmp_path, b"MATLAB 7.3 MAT-file, Platform: GLNXA64" + b" " * 90, "x.mat")
    with pytest.raises(ValueError, match=r"of MATLAB 7\.3; save it again"):
        opened(path)
