"""CSV, TSV and JSON lines: what is read is what was written, and errors name the line."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from kreinlearn import table
from kreinlearn.data import text
from kreinlearn.data.opening import open_file, with_target
from kreinlearn.data.table import Table
from kreinlearn.data.text import Delimited, JsonLines

LETTERS = st.characters(codec="utf-8", exclude_characters="\0")
TEXTS = ["NA", "null", "", "007", " x ", 'say "hi"', "a,b", "two\nlines", "café", "None", "1e5"]


def written(
    folder: Path, content: str | bytes, name: str = "x.csv", encoding: str = "utf8"
) -> Path:
    path = folder / name
    path.write_bytes(content.encode(encoding) if isinstance(content, str) else content)
    return path


def write_rows(path: Path, rows: list[list[Any]], delimiter: str = ",") -> Path:
    with path.open("w", newline="", encoding="utf8") as file:
        csv.writer(file, delimiter=delimiter).writerows(rows)
    return path


def opened(path: Path, **options: Any) -> Table:
    file = open_file(path, **options)
    assert isinstance(file, Table)
    return file


# Decimal marks


@pytest.mark.parametrize(("mark", "suffix"), [(";", ".csv"), ("\t", ".tsv"), (",", ".csv")])
def test_numbers_with_decimal_commas(tmp_path: Path, mark: str, suffix: str) -> None:
    rows = [["10,53", "4", "1,5 kg", "1,2,3"], ["-7", "", "2", "4"], ["NA", "4,25e1", "3", "5"]]
    path = write_rows(tmp_path / f"x{suffix}", [["a", "b", "c", "d"], *rows], mark)
    file = opened(path, decimal=",")
    assert file.split() == (["a", "b"], ["c", "d"])
    found = file.stored.numbers(["a", "b"]).read(0, 3)
    assert_array_equal(found, [[10.53, 4], [-7, np.nan], [np.nan, 42.5]])
    assert file.column("a") == ["10,53", "-7", "NA"]  # texts until they are used as numbers
    assert file.column("c") == ["1,5 kg", "2", "3"]
    path = write_rows(tmp_path / f"y{suffix}", [["1,5", "2"], ["3", "4,5"]], mark)
    bare = opened(path, header=None, decimal=",", delimiter=mark)
    assert_array_equal(bare.pick(["1", "2"]).numbers()[:], [[1.5, 2], [3, 4.5]])
    _, y = with_target(bare, "1")
    assert y.tolist() == [1.5, 3.0]


def test_bad_input_99_a_decimal_mark_is_not_guessed(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "x.csv", [["a", "b"], ["1,5", "1"], ["2,5", "2"]], ";")
    with pytest.warns(UserWarning, match=r"like numbers with decimal commas: a; decimal=','"):
        assert table(path).split() == (["b"], ["a"])
    with (
        pytest.warns(UserWarning, match="read as texts"),
        pytest.raises(ValueError, match=r"decimal commas; name the .*: table\(path, decimal=','"),
    ):
        table(path, ["a", "b"]).numbers()
    assert table(path, "a").objects()[0:2] == ["1,5", "2,5"]
    assert table(path, ["a"], decimal=",").numbers()[:].ravel().tolist() == [1.5, 2.5]
    with pytest.raises(ValueError, match="decimal=';' is no decimal mark"):
        table(path, decimal=";")


def test_points_where_commas_are_decimal_are_named(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "x.csv", [["a", "b"], *[["1,5", "2"]] * 20, ["1.500", "2"]], ";")
    with pytest.raises(ValueError, match=r"row 20, column 'a' of .* \(line 22\) is '1\.500'"):
        table(path, ["a"], decimal=",").numbers()


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
        path.write_text("\n".join(json.dumps({"n": i, "text": one}) for i, one in rows))
    else:
        write_rows(path, [["n", "text"], *map(list, rows)], "\t" if suffix == ".tsv" else ",")
        if suffix.endswith(".gz"):
            path.write_bytes(gzip.compress(path.read_bytes()))
    assert opened(path).column("text") == TEXTS
    assert opened(path).split() == (["n"], ["text"])
    assert opened(path).split(["text"]) == (["n"], [])
    rows_of_texts = table(path, columns="text").objects()  # as the library reads them
    assert rows_of_texts[0 : len(TEXTS)] == TEXTS
    assert rows_of_texts.take([3, 0]) == ["007", "NA"]


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
    write_rows(path, [["a", "b", "c"], *map(list, rows)], delimiter)
    (block,) = opened(path, delimiter=delimiter).blocks(["a", "b", "c"])
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
    assert opened(path, encoding=given).column("text") == ["café", "naïve"]
    assert table(path, columns="text", encoding=given).objects()[0:2] == ["café", "naïve"]


def test_a_text_is_not_normalised(tmp_path: Path) -> None:
    composed, decomposed = "é", "e\u0301"
    path = written(tmp_path, f"text,n\n{composed},1\n{decomposed},2\n")
    assert opened(path).column("text") == [composed, decomposed]


# Lines


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_are_counted_with_those_inside_quotes(tmp_path: Path, end: str) -> None:
    lines = ["text,n", '"one', 'two",1', "", "b,2", '"', "", '",3', "c,4"]
    file = Delimited(written(tmp_path, end.join(lines) + end))
    (columns,) = file.blocks(["text", "n"])
    assert columns[0] == [f"one{end}two", "b", end * 2, "c"]
    assert [file.line(row) for row in range(4)] == [2, 5, 6, 9]
    assert file.place(2, "n") == f"row 2, column 'n' of {file.path} (line 6)"


def test_blocks_are_whole_and_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "BATCH", 7)
    path = write_rows(tmp_path / "x.csv", [["text", "n"], *([f"w{i}", i] for i in range(30))])
    lines = path.with_suffix(".jsonl")
    lines.write_text("".join(json.dumps({"n": i}) + "\n\n" for i in range(30)))
    for found, first, step in ((opened(path), 2, 1), (opened(lines), 1, 2)):
        blocks = list(found.blocks(["n"]))
        assert [block.first for block in blocks] == [0, 7, 14, 21, 28]
        assert [len(block.columns[0]) for block in blocks] == [7, 7, 7, 7, 2]
        assert [int(v) for block in blocks for v in block.columns[0]] == list(range(30))
        assert [found.stored.line(row) for row in range(30)] == [
            first + step * i for i in range(30)
        ]
        assert vars(found.stored)["n"] == len(found) == 30  # counted on the way


def test_a_row_of_another_length_is_named_by_its_line(tmp_path: Path) -> None:
    for row, message in (
        ("b,2,3", r"line 4: 3 fields, but the header names 2; is a delimiter inside a text not q"),
        ("b", r"line 4: 1 field, but the header names 2; is one missing, or the delimiter an"),
    ):
        path = written(tmp_path, f'text,n\n"two\nlines",1\n{row}\n')
        for read in (
            lambda path: opened(path).column("text"),
            lambda path: table(path, columns="text").objects(),
            lambda path: table(path, columns=["n"]).numbers(),
        ):
            with pytest.raises(ValueError, match=message):
                read(path)
    with pytest.raises(ValueError, match="line 2: 1 field, but the first line has 2"):
        Delimited(written(tmp_path, "1,2\n3\n"), header=False).n  # noqa: B018


def test_a_file_without_names(tmp_path: Path) -> None:
    path = written(tmp_path, "1,2\n3,4\n")
    for header in (False, None):
        file = Delimited(path, header=header)
        assert (file.names, file.header) == (["1", "2"], False)
        assert_array_equal(Table(file).numbers()[0:2], [[1, 2], [3, 4]])
    with pytest.raises(ValueError, match=r"first line of .* holds numbers, .* header=False"):
        Delimited(path)
    commas = written(tmp_path, "1,5;2\n3;4,5\n")
    with pytest.raises(ValueError, match="holds numbers, not names of columns"):
        Delimited(commas, delimiter=";")
    assert opened(commas, header=None, decimal=",").numbers()[:].tolist() == [[1.5, 2], [3, 4.5]]
    named = written(tmp_path, "a,2\n3,4\n")
    assert (Delimited(named, header=None).names, Delimited(named, header=None).n) == (["a", "2"], 1)


def test_json_lines_have_types(tmp_path: Path) -> None:
    lines = [{"word": "7", "n": 1, "s": [1, 2]}, {"word": "8", "n": None, "s": [3]}]
    path = tmp_path / "x.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert {name: kind.what for name, kind in opened(path).kinds.items()} == {
        "word": "text", "n": "number", "s": "text",
    }  # fmt: skip
    assert table(path, columns="s").objects()[0:2] == [[1, 2], [3]]
    numbers = table(path, columns=["n"]).numbers()
    with pytest.raises(ValueError, match=r"contains NaN: row 1, column 'n' of .* \(line 2\)"):
        numbers[0:2]
    path.write_text('{"m": 1}\n{"n": 2}\n')
    with pytest.raises(ValueError, match=r"x\.jsonl, line 2: there is no key 'm'"):
        list(JsonLines(path).blocks(["m"]))


# Numbers


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("", "contains NaN: {place}; leave"), ("NA", "contains NaN: {place}; leave"),
        ("nan", "contains NaN: {place}; leave"),
        ("x", "could not convert string to float: {place} is 'x'"),
        ("1_0", "could not convert string to float: {place} is '1_0'"),
        ("inf", r"infinity or a value too large .*: {place}; leave"),
        ("1e999", r"infinity or a value too large .*: {place}; leave"),
    ],
)  # fmt: skip
def test_a_value_that_is_no_number_is_named_by_its_line(
    tmp_path: Path, value: str, message: str
) -> None:
    lines = [f"{i},{i + 0.5}" for i in range(20)]
    lines[11] = f"11,{value}"
    path = written(tmp_path, "\n".join(["a,b", *lines]))
    expected = message.format(place=r"row 11, column 'b' of .*x\.csv \(line 13\)")
    file = opened(path)
    for read in (
        lambda: file.numbers()[0:20],
        lambda: [file.as_numbers(block) for block in file.blocks()],
    ):
        with pytest.raises(ValueError, match=expected):
            read()
    other = file.pick(["a"])  # the other column is not looked at
    assert other.numbers()[0:20].shape == (20, 1)
    assert_array_equal(other.as_numbers(next(other.blocks())), np.arange(20.0)[:, None])


def test_lists_in_fields(tmp_path: Path) -> None:
    file = opened(written(tmp_path, 'zip,steps,size\n01,"[1, 2]",3\n02,"[2.5]",4\n'))
    assert file.list_columns() == ["steps"]
    (block,) = file.blocks()
    assert file.as_records(block, {"size"}, ["steps"])[0] == {
        "zip": "01", "steps": [1, 2], "size": 3.0,
    }  # fmt: skip
    assert file.load_fields(10**6, {"zip"})[1] == {"zip": "02", "steps": [2.5], "size": 4.0}
    assert file.load(10**6)[1] == {"zip": 2.0, "steps": "[2.5]", "size": 4.0}
    with pytest.raises(MemoryError, match=r"x\.csv needs 600 B .*raise Resources\(memory_budget"):
        file.load_fields(100, ())


def test_records_keep_gaps(tmp_path: Path) -> None:
    file = opened(written(tmp_path, "age,kind\n3,red\n,NA\nNA,\n"))
    expected = [
        {"age": 3.0, "kind": "red"}, {"age": None, "kind": "NA"}, {"age": None, "kind": None},
    ]  # fmt: skip
    (block,) = file.blocks()
    assert file.as_records(block, {"age"}) == expected
    assert file.load(10**6) == expected
    with pytest.raises(MemoryError, match=r"x\.csv needs 600 B .*raise Resources\(memory_budget"):
        file.load(100)
