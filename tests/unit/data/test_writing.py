"""Files are written whole or not at all, a block of rows at a time."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from kreinlearn.data.opening import open_file
from kreinlearn.data.table import Table
from kreinlearn.data.writing import (
    TABLES,
    folder_beside,
    npy_file,
    replacing,
    table_file,
    write_npz,
)

WORDS, NUMBERS = ["NA", 'say "hi"', "a,b\tc", "two\nlines", ""], np.array([1.5, 2, -3, 1e-9, 4])


@pytest.mark.parametrize("suffix", TABLES)
def test_a_table_is_read_as_it_was_written(tmp_path: Path, suffix: str) -> None:
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    path = tmp_path / f"x{suffix}"
    with table_file(path) as write:
        for part in (slice(0, 2), slice(2, 5)):
            write({"word": WORDS[part], "n": NUMBERS[part], "kind": np.array(["p"] * 5)[part]})
        assert not path.exists()
    file = open_file(path)
    assert isinstance(file, Table)
    assert file.names == ["word", "n", "kind"]
    assert file.column("word") == WORDS
    np.testing.assert_array_equal(file.pick(["n"]).numbers()[0:5][:, 0], NUMBERS)
    assert file.column("kind") == ["p"] * 5


def test_json_has_no_numbers_that_are_not_finite(tmp_path: Path) -> None:
    with table_file(tmp_path / "x.jsonl") as write:
        write({"n": np.array([1.0, np.nan, np.inf])})
    lines = (tmp_path / "x.jsonl").read_text().splitlines()
    assert [json.loads(line)["n"] for line in lines] == [1.0, None, None]


@pytest.mark.parametrize("shape", [(), (3,)])
def test_an_array_of_unknown_length(tmp_path: Path, shape: tuple[int, ...]) -> None:
    A = np.arange(np.prod((10, *shape)), dtype=np.float32).reshape(10, *shape)
    with npy_file(tmp_path / "x.npy") as write:
        for start in (0, 4, 8):
            write(A[start : start + 4])
    found = np.load(tmp_path / "x.npy")
    assert found.dtype == A.dtype
    np.testing.assert_array_equal(found, A)


@pytest.mark.parametrize("make", [npy_file, table_file, replacing])
def test_what_fails_leaves_the_old_file(tmp_path: Path, make: object) -> None:
    path = tmp_path / ("x.npy" if make is npy_file else "x.csv")
    path.write_text("old")
    with pytest.raises(KeyError), make(path):  # type: ignore[operator]
        raise KeyError
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_for_the_time_being_is_removed_also_if_a_signal_comes_as_it_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with folder_beside(tmp_path / "x.npz") as folder:
        (folder / "a").write_text("some")
        assert folder.parent == tmp_path
    assert not list(tmp_path.iterdir())
    mkdir = Path.mkdir

    def interrupted(path: Path) -> None:
        mkdir(path)
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "mkdir", interrupted)
    with pytest.raises(KeyboardInterrupt), folder_beside(tmp_path / "x.npz"):
        pass
    monkeypatch.undo()
    assert not list(tmp_path.iterdir())


def test_arrays_by_name(tmp_path: Path) -> None:
    arrays = {"X": np.arange(12.0).reshape(4, 3), "y": np.array([1, -1, 1, 1])}
    path = tmp_path / "x.npz"
    write_npz(path, arrays)
    file = open_file(path)
    assert not isinstance(file, Table)
    assert file.names == ["X", "y"]
    for name, array in arrays.items():
        np.testing.assert_array_equal(file.get(name), array)
