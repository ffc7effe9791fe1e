"""Files of arrays: shapes at once, values when asked for, and nothing unpickled."""

from __future__ import annotations

import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from kreinlearn.data.arrays import ArrayFile
from kreinlearn.data.opening import open_file, opened
from kreinlearn.data.tiles import TILE

X = np.arange(12.0).reshape(4, 3)


def arrays(folder: Path, kind: str, **found: Any) -> Path:
    path = folder / f"x{kind}"
    if kind == ".npy":
        np.save(path, next(iter(found.values())))
    else:
        np.savez_compressed(path, **found)
    return path


@pytest.mark.parametrize("kind", [".npy", ".npz"])
def test_arrays(tmp_path: Path, kind: str) -> None:
    path = arrays(tmp_path, kind, X=X, y=np.array([0, 1, 0, 1]))
    file = open_file(path)
    assert isinstance(file, ArrayFile)
    assert file.names == (["x"] if kind == ".npy" else ["X", "y"])
    assert_array_equal(file.get(file.names[0]), X)
    assert file.described(file.names[:1]) == f"{file.names[0]} (4 x 3)"
    with pytest.raises(ValueError, match=r"there is no array 'Z' in .*; arrays are "):
        file.get("Z")


def test_texts(tmp_path: Path) -> None:
    words = ["see", "", "oboe"]
    assert open_file(arrays(tmp_path, ".npy", a=np.array(words))).get("x") == words  # type: ignore[union-attr]
    bytes_ = np.array([w.encode() for w in words])
    assert open_file(arrays(tmp_path, ".npz", a=bytes_)).get("a") == words  # type: ignore[union-attr]


def test_pickles_bombs_and_twins_are_refused(tmp_path: Path) -> None:
    objects = np.array([{}, []], dtype=object)
    with pytest.raises(ValueError, match="pickled objects, which are not read"):
        open_file(arrays(tmp_path, ".npy", a=objects))
    with pytest.raises(ValueError, match="pickled objects, which are not read"):
        open_file(arrays(tmp_path, ".npz", a=objects))
    bomb = arrays(tmp_path, ".npz", a=np.zeros((1000, 1000)))
    assert bomb.stat().st_size < 20_000
    with pytest.raises(MemoryError, match=r"the array 'a' of .* needs 8 MB"):
        open_file(bomb, memory_budget="1MB").get("a")  # type: ignore[union-attr]
    with zipfile.ZipFile(tmp_path / "twins.npz", "w") as archive:
        archive.write(tmp_path / "x.npy", "a.npy")
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.write(tmp_path / "x.npy", "a.npy")
    with pytest.raises(ValueError, match=r"two arrays are named 'a\.npy'"):
        open_file(tmp_path / "twins.npz")


@pytest.mark.parametrize("kind", [".npy", ".npz"])
def test_a_damaged_array_file_is_a_value_error(tmp_path: Path, kind: str) -> None:
    path = arrays(tmp_path, kind, X=X, y=np.arange(4))
    whole, rng = path.read_bytes(), np.random.default_rng(0)
    for _ in range(60):
        damaged = bytearray(whole)
        for place in rng.integers(min(len(whole), 400), size=3):
            damaged[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(bytes(damaged[: int(rng.integers(1, len(whole)))]))
        with suppress(ValueError, MemoryError):
            file = open_file(path, memory_budget="10MB")
            assert isinstance(file, ArrayFile)
            for name in file.names:
                file.get(name)


@pytest.mark.parametrize("kind", [".npy", ".npz"])
def test_the_only_array_of_a_file_is_taken_as_rows(tmp_path: Path, kind: str) -> None:
    source: Any = opened(arrays(tmp_path, kind, X=X))
    assert_array_equal(source[1:3], X[1:3])
    assert_array_equal(source.take([3, 0]), X[[3, 0]])
    words: Any = opened(arrays(tmp_path, kind, X=np.array(["see", "oboe"])))
    assert words[0:2] == ["see", "oboe"]


@pytest.mark.parametrize("order", ["C", "F"])
def test_rows_of_a_npy_file_are_those_of_the_array(tmp_path: Path, order: Any) -> None:
    """In spans, as most rows of a tile in any order, as single rows, and as dense parts of some."""
    rng = np.random.default_rng(0)
    A = np.asarray(rng.standard_normal((3 * TILE + 50, 2)), order=order)
    np.save(tmp_path / "a.npy", A)
    source: Any = opened(tmp_path / "a.npy")
    tile = rng.permutation(np.arange(TILE, 2 * TILE)[rng.random(TILE) < 0.9])
    single = rng.choice(len(A), 40, replace=False)
    mixed = np.concatenate([np.arange(5, 300), [2 * TILE + 7, len(A) - 1, 0]])
    for numbers in (tile, single, mixed, np.array([9, 9, 8]), np.arange(0)):
        assert_array_equal(source.take(numbers), A[numbers])
    assert_array_equal(source[TILE - 3 : 2 * TILE + 3], A[TILE - 3 : 2 * TILE + 3])
    assert source[7:7].shape == (0, 2)


def test_texts_of_a_npy_file_by_number(tmp_path: Path) -> None:
    words = np.array([f"w{i}" for i in range(2 * TILE)])
    np.save(tmp_path / "words.npy", words)
    source: Any = opened(tmp_path / "words.npy")
    for numbers in ([4, 2, 3], [2 * TILE - 1, 0]):
        assert source.take(numbers) == words[numbers].tolist()


def test_a_npy_file_that_was_cut_since_it_was_opened(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    np.save(path, np.zeros((2 * TILE, 3)))
    source: Any = opened(path)
    with path.open("r+b") as file:
        file.truncate(5000)
    assert_array_equal(source[0:4], np.zeros((4, 3)))
    for numbers in (np.arange(TILE), np.array([3, 2 * TILE - 1])):
        with pytest.raises(ValueError, match=r"a\.npy ended early: it has changed since"):
            source.take(numbers)


def test_rows_that_are_not_asked_for_are_not_judged(tmp_path: Path) -> None:
    A = np.ones((100, 2))
    A[40, 1] = np.nan
    np.save(tmp_path / "a.npy", A)
    source: Any = opened(tmp_path / "a.npy")
    assert_array_equal(source.take(np.delete(np.arange(100), 40)), np.ones((99, 2)))
    with pytest.raises(ValueError, match="row 40, column 1 of"):
        source.take(np.arange(100)[::-1])


def test_one_of_several_arrays_is_to_be_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"arrays, \['X', 'y'\]; pass one of them, .*\(path\)"):
        opened(arrays(tmp_path, ".npz", X=X, y=X[0]))
