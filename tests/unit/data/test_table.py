"""Tables: which columns there are, and what a person may have meant."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kreinlearn import table
from kreinlearn.data.errors import OptionError
from kreinlearn.data.opening import with_target
from kreinlearn.data.table import require_column


def test_a_column_that_is_not_there(tmp_path: Path) -> None:
    names = ["text", "Label", "id"]
    with pytest.raises(
        ValueError, match=r"no column 'label' \(did you mean 'Label'\?\) in .*; columns are text, L"
    ):
        require_column("label", names, tmp_path)
    with pytest.raises(ValueError, match=r"no column 'zzz' in .*; columns are text, Label, id$"):
        require_column("zzz", names, tmp_path)
    with pytest.raises(ValueError, match=r"more than one column 'a' in .*, at places \[1, 3\]; re"):
        require_column("a", ["a", "b", "a"], tmp_path)
    with pytest.raises(ValueError, match=r"and 8 more$"):
        require_column("zzz", [f"c{i}" for i in range(20)], tmp_path)
    for mark in (";", "\t", "|"):
        with pytest.raises(OptionError, match="another character separates the columns") as caught:
            require_column("a", [f"a{mark}b"], tmp_path)
        assert (caught.value.option, caught.value.value) == ("delimiter", mark)


def test_columns_of_a_text_file_are_typed_by_their_first_rows(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("word,n,day,twin,twin\n1,2.5,2020-01-01,a,b\n2,,2020-01-02,c,d\n")
    whole = table(path)
    assert whole.names == ["word", "n", "day", "twin", "twin"]
    kinds = {name: kind.what for name, kind in whole.kinds.items()}
    assert kinds == {"word": "number", "n": "number", "day": "date"}
    assert whole.split(["n"]) == (["word"], ["day", "twin"])
    word = table(path, columns="word")  # a column of objects, whatever it looks like
    assert word.kinds["word"].what == "text"
    assert not word.holds_numbers()
    assert table(path, columns=["word"]).holds_numbers()
    with pytest.raises(ValueError, match="more than one column 'twin'"):
        whole.numbers()
    with pytest.raises(TypeError, match=r"got dates \(date\) in column 'day' of"):
        table(path, columns=["n", "day"]).numbers()


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["1", "2", "1"], [1, 2, 1]),
        (["1.5", " 2", "1e3"], [1.5, 2.0, 1000.0]),
        (["a", "NA", "a"], ["a", "NA", "a"]),
        (["007", "x", "7"], ["007", "x", "7"]),
        (["true", "false", "true"], ["true", "false", "true"]),
    ],
)
def test_the_target_of_a_text_file(tmp_path: Path, values: list[str], expected: list[str]) -> None:
    path = tmp_path / "x.csv"
    path.write_text("a,y\n" + "".join(f"{i},{value}\n" for i, value in enumerate(values)))
    left, y = with_target(path, "y")
    assert y.tolist() == expected
    assert left.names == ["a"]
    np.testing.assert_array_equal(left.numbers()[0:3], [[0], [1], [2]])


def test_a_target_that_is_missing_is_named_by_its_line(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("a,y\n1,p\n\n2,\n")
    with pytest.raises(
        ValueError, match=r"y contains NaN: row 1, column 'y' of .* \(line 4\) is m"
    ):
        with_target(path, "y")
