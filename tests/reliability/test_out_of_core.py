"""Files that are wrong, too large or in the way, and the memory that a fit takes.

The numbers in the names of the tests are rows of the table in docs/bad_inputs.rst.
"""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kreinlearn import (
    Blocks,
    KreinNystroem,
    KreinRidge,
    KreinRidgeClassifier,
    Resources,
    inspect,
    predict_to,
    table,
)
from kreinlearn.data.opening import opened
from kreinlearn.data.tiles import TILE
from tests.systems import linux_only, press

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

X = np.random.default_rng(0).normal(size=(50, 3))
Y = X[:, 0] + X[:, 1] ** 2
NAMES = ["a", "b", "c"]


def ridge(**more: Any) -> Any:
    return KreinRidge("gaussian", random_state=0, lambda_plus=0.1, lambda_minus=0.1, **more)


def npy(folder: Path, A: Any) -> Path:
    np.save(folder / "x.npy", A)
    return folder / "x.npy"


def parquet(folder: Path, A: Any, **more: Any) -> Path:
    columns = {name: A[:, j] for j, name in enumerate(NAMES)}
    pq.write_table(pa.table({**columns, **more}), folder / "x.parquet", row_group_size=7)
    return folder / "x.parquet"


def text(folder: Path, A: Any) -> Path:
    lines = [",".join(map(repr, map(float, row))) for row in A]
    return written(folder, "\n".join(["a,b,c", *lines]).encode())


def written(folder: Path, content: bytes, name: str = "x.csv") -> Path:
    (folder / name).write_bytes(content)
    return folder / name


def blocks(folder: Path, A: Any) -> Blocks:
    halves = [A[:20], A[20:]]
    return Blocks(lambda: iter(halves))


def mapped(folder: Path, A: Any) -> Any:
    return np.load(npy(folder, A), mmap_mode="r")


Write = Callable[[Path, Any], Any]
FILES: dict[str, Write] = {
    "npy": npy, "parquet": parquet, "csv": text, "blocks": blocks, "map": mapped,
}  # fmt: skip
every = pytest.mark.parametrize("write", FILES.values(), ids=FILES)


def spoiled(value: float) -> Any:
    A = X.copy()
    A[31, 1] = value
    return A


@every
def test_bad_input_01_nan(tmp_path: Path, write: Write) -> None:
    with pytest.raises(ValueError, match=r"Input X contains NaN: row 31, column ('b'|1) of"):
        ridge().fit(write(tmp_path, spoiled(np.nan)), Y)


@every
def test_bad_input_01_nan_at_prediction_leaves_the_model(tmp_path: Path, write: Write) -> None:
    model = ridge().fit(X, Y)
    data = write(tmp_path, spoiled(np.nan))
    if write in (parquet, text):
        model = ridge().fit(table(pa.table(dict(zip(NAMES, X.T, strict=True)))), Y)
    with pytest.raises(ValueError, match=r"row 31, column ('b'|1) of"):
        model.predict(data)
    assert model.coef_ is not None


@every
def test_bad_input_02_infinity(tmp_path: Path, write: Write) -> None:
    with pytest.raises(ValueError, match=r"infinity or a value too large .*row 31, column"):
        ridge().fit(write(tmp_path, spoiled(-np.inf)), Y)


def test_bad_input_03_missing_target(tmp_path: Path) -> None:
    path = parquet(tmp_path, X, y=pa.array([1.0] * 33 + [None] * 17))
    with pytest.raises(ValueError, match=r"Input y contains NaN: row 33, column 'y' of"):
        ridge().fit(path, "y")


def test_bad_input_04_nan_in_a_matrix_on_disk(tmp_path: Path) -> None:
    K = X @ X.T
    K[3, 4] = K[4, 3] = np.nan
    with pytest.raises(ValueError, match="NaN at row 3, column 4"):
        KreinNystroem("precomputed").fit(npy(tmp_path, K))


@every
def test_bad_input_08_number_of_columns(tmp_path: Path, write: Write) -> None:
    model = ridge().fit(X[:, :2], Y)
    data = write(tmp_path, X)
    with pytest.raises((ValueError, UserWarning), match=r"3 features, but KreinRidge is exp|names"):
        model.predict(data)


def test_bad_input_13_one_class(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="class"):
        KreinRidgeClassifier().fit(parquet(tmp_path, X, y=np.ones(50, int)), "y")


@pytest.mark.parametrize("dtype", ["int32", "bool", "float16"])
def test_bad_input_39_other_numbers(tmp_path: Path, dtype: str) -> None:
    A = (X > 0).astype(dtype)
    found = ridge().fit(npy(tmp_path, A), Y).predict(A)
    np.testing.assert_array_equal(found, ridge().fit(A.astype(float), Y).predict(A.astype(float)))


def test_bad_input_40_dates(tmp_path: Path) -> None:
    days = np.full((50, 2), np.datetime64("2020-01-01"))
    with pytest.raises(TypeError, match="holds dates"):
        ridge().fit(npy(tmp_path, days), Y)
    with pytest.raises(TypeError, match=r"got dates \(date32.*column 'day' of"):
        ridge().fit(parquet(tmp_path, X, day=days[:, 0]), Y)
    with pytest.raises(TypeError, match="got dates"):
        ridge().fit(written(tmp_path, b"a,b\n1,2020-01-01\n2,2020-01-02\n"), Y[:2])


def test_bad_input_41_complex(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Complex data not supported"):
        ridge().fit(npy(tmp_path, X * 1j), Y)


def test_bad_input_45_objects_that_are_pickled(tmp_path: Path) -> None:
    path = npy(tmp_path, np.array([{1: 2}] * 5, dtype=object))
    for kernel in ("gaussian", "levenshtein"):
        with pytest.raises(ValueError, match="pickled objects, which are not read"):
            KreinNystroem(kernel).fit(path)


def test_bad_input_46_texts_with_a_vector_kernel(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="could not convert string to float: column 'd' of"):
        ridge().fit(parquet(tmp_path, X, d=["x"] * 50), Y)
    with pytest.raises(ValueError, match="could not convert string to float: column 'b' of"):
        ridge().fit(written(tmp_path, b"a,b\n1,x\n2,y\n"), Y[:2])
    for data in (npy(tmp_path, np.array(["x", "y"])), Blocks(lambda: iter([["x", "y"]]))):
        with pytest.raises(ValueError, match="Expected 2D array, got 1D array instead"):
            ridge().fit(data, Y[:2])


def test_bad_input_46_texts_later_in_a_column_of_numbers(tmp_path: Path) -> None:
    many = b"a,b\n" + b"1,2\n" * 300_000 + b"1,x\n"
    with pytest.raises(ValueError, match=r"column 'b' of .*x\.csv \(line 300002\) is 'x'"):
        ridge().fit(written(tmp_path, many), np.zeros(300_001))


def test_integers_that_turn_out_to_be_other_numbers(tmp_path: Path) -> None:
    many = b"a,b\n" + b"1,2\n" * 300_000 + b"1,2.5\n"
    held: Any = opened(written(tmp_path, many))
    assert held.numbers()[300_000:300_001].tolist() == [[1.0, 2.5]]


def test_bad_input_47_which_column_holds_the_objects(tmp_path: Path) -> None:
    words = ["x", "yy"] * 25
    path = parquet(tmp_path, X, one=words, two=words)
    with pytest.raises(
        ValueError, match=r"2 columns of texts or lists, \['one', 'two'\].*columns="
    ):
        KreinNystroem("levenshtein").fit(path)
    with pytest.raises(ValueError, match=r"no column 'three' in .*x\.parquet; columns are"):
        table(path, columns="three")
    with pytest.raises(ValueError, match="no column 'three'"):
        ridge().fit(path, "three")
    assert KreinNystroem("levenshtein").fit(table(path, columns="two")).rank_ > 0


def test_bad_input_48_other_columns(tmp_path: Path) -> None:
    model = ridge().fit(parquet(tmp_path, X), Y)
    pq.write_table(pa.table({"a": X[:, 0], "b": X[:, 1], "z": Y}), tmp_path / "z.parquet")
    with pytest.raises(ValueError, match="The feature names should match"):
        model.predict(tmp_path / "z.parquet")


def test_bad_input_49_names_at_fit_only(tmp_path: Path) -> None:
    model = ridge().fit(parquet(tmp_path, X), Y)
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        model.predict(npy(tmp_path, X))


def test_bad_input_51_missing_values_and_categories(tmp_path: Path) -> None:
    holes = pa.array([1] * 40 + [None] * 10)
    with pytest.raises(ValueError, match="Input X contains NaN: row 40, column 'd'"):
        ridge().fit(parquet(tmp_path, X, d=holes), Y)
    kinds = pa.array(["x", "y"] * 25).dictionary_encode()
    with pytest.raises(ValueError, match="got categories in column 'd'"):
        ridge().fit(parquet(tmp_path, X, d=kinds), Y)
    words = pa.array(["x"] * 49 + [None])
    with pytest.raises(ValueError, match=r"Input X contains NaN: row 49, column 'd' .* is missing"):
        KreinNystroem("levenshtein").fit(table(parquet(tmp_path, X, d=words), columns="d"))


def test_bad_input_53_dimensions(tmp_path: Path) -> None:
    for shape in ((50,), (5, 5, 2)):
        with pytest.raises(ValueError, match=f"Expected 2D array, got {len(shape)}D array instead"):
            ridge().fit(npy(tmp_path, np.zeros(shape)), Y)
    with pytest.raises(ValueError, match="the block from row 0 on is of shape"):
        Blocks(lambda: iter([np.zeros(3)]))
    with pytest.raises(
        ValueError, match=r"is of shape \(4, 2\), those before it are of width \(3,\)"
    ):
        Blocks(lambda: iter([np.zeros((5, 3)), np.zeros((4, 2))]))


@pytest.mark.parametrize("shape", [(0, 3), (3, 0)])
def test_bad_input_54_no_rows_or_columns(tmp_path: Path, shape: tuple[int, int]) -> None:
    what = "sample" if shape[0] == 0 else "feature"
    with pytest.raises(ValueError, match=rf"Found array with 0 {what}\(s\)"):
        ridge().fit(npy(tmp_path, np.zeros(shape)), Y[: shape[0]])


def test_bad_input_54_files_and_blocks_without_rows(tmp_path: Path) -> None:
    empty = [written(tmp_path, b"a,b\n"), parquet(tmp_path, X[:0])]
    for data in empty:
        with pytest.raises(ValueError, match=r"Found array with 0 sample\(s\)"):
            ridge().fit(data, Y[:0])
    with pytest.raises(ValueError, match=r"Found array with 0 sample\(s\)"):
        Blocks(lambda: iter([]))
    (tmp_path / "folder").mkdir()
    with pytest.raises(ValueError, match="folder is a folder; name a file, or a folder that holds"):
        ridge().fit(tmp_path / "folder", Y)


@every
def test_bad_input_55_lengths(tmp_path: Path, write: Write) -> None:
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        ridge().fit(write(tmp_path, X), Y[:-1])


def test_bad_input_56_no_target(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="requires y to be passed"):
        ridge().fit(npy(tmp_path, X), None)
    with pytest.raises(ValueError, match="X, a ndarray, is no table on disk or of pyarrow"):
        ridge().fit(X, "y")


def test_bad_input_62_memory(tmp_path: Path) -> None:
    path = npy(tmp_path, np.zeros((3, 40_000)))
    with pytest.raises(
        MemoryError, match=rf"reading {TILE} rows of .*x\.npy at a time needs 655 MB"
    ):
        ridge(resources=Resources(memory_budget="100MB")).fit(path, Y[:3])
    many = npy(tmp_path, np.zeros((50_000, 3)))
    small = Resources(memory_budget="1MB")
    with pytest.raises(MemoryError, match=r"holding all rows of .*x\.npy needs 1.2 MB"):
        KreinNystroem("seuclidean", resources=small, landmarks=2).fit(many)


def test_bad_input_63_disk_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = ridge().fit(X, Y)
    for suffix in (".npy", ".csv", ".parquet"):
        path = tmp_path / f"found{suffix}"
        path.write_text("old")

        def full(fd: int) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            predict_to(model, X, path)
        monkeypatch.undo()
        assert path.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 3


def test_bad_input_63_an_error_on_the_way(tmp_path: Path) -> None:
    model = ridge().fit(X, Y)
    many = np.zeros((2 * TILE, 3))
    many[-1, 0] = np.nan
    path = tmp_path / "found.npy"
    path.write_text("old")
    with pytest.raises(ValueError, match=f"row {2 * TILE - 1}"):
        predict_to(model, npy(tmp_path, many), path)
    assert path.read_text() == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["found.npy", "x.npy"]


@pytest.mark.usefixtures("heard")
def test_bad_input_64_interrupted_while_reading(tmp_path: Path) -> None:
    def slowly() -> Any:
        yield X
        threading.Timer(0.05, press).start()
        threading.Event().wait(30)
        yield X

    pieces = iter([iter([X, X]), iter([X, X]), slowly()])
    data = Blocks(lambda: next(pieces))
    model = ridge()
    with pytest.raises(KeyboardInterrupt):
        model.fit(data, np.tile(Y, 2))
    assert not hasattr(model, "coef_")


def test_bad_input_76_row_too_long(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"x\.csv, line 3: 3 fields, but the header names 2; is a"):
        ridge().fit(written(tmp_path, b"a,b\n1,2\n3,4,5\n"), Y[:2])


def test_bad_input_77_row_too_short(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"x\.csv, line 3: 1 field, but the header names 2; is"):
        ridge().fit(written(tmp_path, b"a,b\n1,2\n3\n"), Y[:2])


def test_bad_input_78_texts_that_look_like_nothing(tmp_path: Path) -> None:
    path = written(tmp_path, b"word\nNA\nnull\nnan\n7\n")
    held: Any = table(path, columns="word").objects()
    assert held[0:4] == ["NA", "null", "nan", "7"]
    numbers = written(tmp_path, b"a,b\n1,2\n3,NA\n")
    with pytest.raises(ValueError, match=r"Input X contains NaN: row 1, column 'b' .*\(line 3\)"):
        ridge().fit(numbers, Y[:2])


def test_bad_input_79_latin_1(tmp_path: Path) -> None:
    path = written(tmp_path, "word\ncafé\nthé\n".encode("latin-1"))
    message = r"line 2: the byte 0xe9 is not in utf-8; .*encoding='latin-1'"
    with pytest.raises(ValueError, match=message):
        KreinNystroem("levenshtein").fit(table(path, columns="word"))
    held = table(path, columns="word", encoding="latin-1").objects()
    assert held[0:2] == ["café", "thé"]


def test_bad_input_80_byte_order_mark(tmp_path: Path) -> None:
    decomposed = "cafe\u0301"
    path = written(tmp_path, b"\xef\xbb\xbf" + f"word\n{decomposed}\nb\n".encode())
    held = table(path).objects()
    assert held.names == ["word"]
    assert held[0:2] == [decomposed, "b"]


@pytest.mark.parametrize("name", ["x.npy", "x.csv", "x.parquet", "x.tsv", "folder"])
def test_bad_input_81_missing_file(tmp_path: Path, name: str) -> None:
    with pytest.raises(FileNotFoundError, match=f"{name}' is taken as a path, and there is no"):
        ridge().fit(tmp_path / name, Y)
    with pytest.raises(FileNotFoundError):
        inspect(str(tmp_path / name), "gaussian")


@pytest.mark.parametrize("name", ["x.npy", "x.csv", "x.parquet", "x.arrow"])
def test_bad_input_81_empty_file(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} (is|cannot)"):
        ridge().fit(written(tmp_path, b"", name), Y)


def test_bad_input_84_only_known_kinds_of_files(tmp_path: Path) -> None:
    model = ridge().fit(X, Y)
    known = r"must end in one of \.npy, \.csv, \.tsv, \.jsonl, \.parquet"
    with pytest.raises(ValueError, match=known):
        predict_to(model, X, tmp_path / "found.txt")
    for path in (written(tmp_path, b"1", "x.doc"), str(tmp_path / "x.doc")):
        with pytest.raises(ValueError, match=r"x\.doc is of no known kind; .*\.npy, \.npz"):
            ridge().fit(path, Y)
    nowhere = r"no such file in .*; a path ends in \.npy, \.npz"
    for call in (ridge().fit, lambda name, y: model.predict(name)):
        with pytest.raises(FileNotFoundError, match=nowhere):
            call("nowhere.doc", Y)
    with pytest.raises(ValueError, match="method='transform' is not among"):
        predict_to(model, X, tmp_path / "found.npy", "transform")
    assert not (tmp_path / "found.npy").exists()


def test_a_file_that_is_cut_short(tmp_path: Path) -> None:
    for path in (npy(tmp_path, X), parquet(tmp_path, X)):
        path.write_bytes(path.read_bytes()[:-100])
        with pytest.raises(ValueError, match=r"is cut short: |cannot be read as Parquet"):
            ridge().fit(path, Y)


def test_a_file_that_shrinks_between_two_passes(tmp_path: Path) -> None:
    lengths = iter([50, 50, 30, 30])
    data = Blocks(lambda: iter([X[: next(lengths, 30)]]))
    with pytest.raises(ValueError, match="ended early: it has changed since it was opened"):
        ridge().fit(data, Y)


def test_a_csv_file_without_names(tmp_path: Path) -> None:
    path = written(tmp_path, b"1,2\n3,4\n5,6\n")
    with pytest.raises(ValueError, match="holds numbers, not names of columns"):
        ridge().fit(path, Y[:3])
    assert ridge().fit(table(path, header=False), Y[:3]).n_features_in_ == 2


def test_blocks_that_can_be_read_once(tmp_path: Path) -> None:
    generator = (block for block in [X])
    for data, what in ((lambda: ridge().fit(generator, Y), "got a generator"),
                       (lambda: Blocks(generator), "Blocks got a generator"),
                       (lambda: Blocks(lambda: generator), "one iterator every time")):  # fmt: skip
        with pytest.raises(TypeError, match=f"{what}.*several times; pass Blocks"):
            data()
    with pytest.raises(TypeError, match="Blocks takes a function"):
        Blocks(3)  # type: ignore[arg-type]


def test_a_list_of_blocks_is_not_taken_for_rows(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    model = ridge().fit(X, Y)
    for cut in ([X[:20], X[20:]], [X[:25], X[25:]], (X[:20], X[20:]),
                [pd.DataFrame(X[:20]), pd.DataFrame(X[20:])]):  # fmt: skip
        for call in (lambda cut: ridge().fit(cut, Y), model.predict):
            with pytest.raises(ValueError, match=r"of 2 blocks, .* pass kreinlearn\.Blocks\(X\)"):
                call(cut)
    np.testing.assert_array_equal(model.predict(Blocks([X[:20], X[20:]])), model.predict(X))


def test_an_object_that_gives_one_iterator_twice(tmp_path: Path) -> None:
    once = iter([X])
    spent = type("Spent", (), {"__iter__": lambda self: once})()
    with pytest.raises(TypeError, match=r"several times; pass Blocks"):
        ridge().fit(spent, Y)


def test_files_of_a_folder_are_alike(tmp_path: Path) -> None:
    home = tmp_path / "parts"
    home.mkdir()
    pq.write_table(pa.table({"a": [1.0], "b": [2.0]}), home / "1.parquet")
    pq.write_table(pa.table({"a": [1.0], "b": [2]}), home / "2.parquet")
    with pytest.raises(
        ValueError, match=r"'b' is double in the first file and int64 in .*2\.parquet"
    ):
        ridge().fit(home, Y[:2])


def test_columns_of_one_name(tmp_path: Path) -> None:
    twice = pa.table([X[:, 0], X[:, 1]], names=["a", "a"])
    for data in (twice, written(tmp_path, b"a,a\n1,2\n3,4\n")):
        with pytest.raises(ValueError, match="more than one column 'a'"):
            ridge().fit(data, Y)


def test_probabilities_of_rows_in_a_file(tmp_path: Path) -> None:
    model = KreinRidgeClassifier(probability=True, random_state=0)
    found = model.fit(npy(tmp_path, X), Y > 0).predict_proba(X)
    np.testing.assert_allclose(found, model.fit(X, Y > 0).predict_proba(X), rtol=0, atol=1e-9)


def test_no_file_is_left_by_a_conversion(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    held: Any = opened(text(tmp_path, X))
    np.testing.assert_array_equal(held.numbers()[0:50], X)
    assert not list((tmp_path / "temporary").iterdir())


def test_a_package_that_is_missing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = parquet(tmp_path, X)
    monkeypatch.setitem(sys.modules, "pyarrow.dataset", None)
    with pytest.raises(ImportError, match=r'needs pyarrow.*pip install "kreinlearn\[scale\]"'):
        ridge().fit(path, Y)


MEMORY = """
import re, sys
from pathlib import Path
import numba  # which a fit imports: the room for its code is not what is measured
import numpy as np
from kreinlearn import KreinRidge, Resources, predict_to

def most():
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1000

folder = Path(sys.argv[1])
before = most()
few = np.random.default_rng(0).normal(size=(9000, 20))
budget = Resources(memory_budget="200MB")
made = dict(kernel="delta_gauss", landmarks=200, random_state=0, resources=budget, n_jobs=2)
KreinRidge(**{**made, "landmarks": 20}).fit(few, few[:, 0])  # all is imported and compiled
compiled = most()
model = KreinRidge(**made).fit(folder / "x.npy", str(folder / "y.npy"))
after_fit = most()
predict_to(model, folder / "x.npy", folder / "found.npy")
print(after_fit - compiled, most() - before)
"""


@pytest.mark.slow
@linux_only
def test_rows_of_a_file_keep_to_the_budget(tmp_path: Path) -> None:
    """The kernel values would be three times the budget of 200 MB, and the file is not resident."""
    n, d, rng = 400_000, 50, np.random.default_rng(0)
    held = np.lib.format.open_memmap(tmp_path / "x.npy", "w+", np.float64, (n, d))
    for start in range(0, n, 50_000):
        held[start : start + 50_000] = rng.normal(size=(50_000, d))
    np.save(tmp_path / "y.npy", np.sin(held[:, 0]))
    del held
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, str(tmp_path)], capture_output=True, text=True, timeout=280,
    )  # fmt: skip
    of_the_fit, of_all = map(float, done.stdout.split() or [np.inf, np.inf])
    assert of_all < 200, done.stderr  # the budget
    assert of_the_fit < 0.75 * (tmp_path / "x.npy").stat().st_size / 1e6
    assert np.load(tmp_path / "found.npy", mmap_mode="r").shape == (n,)


MACHINE = """
import re
import sys
import numpy as np
from kreinlearn import KreinSVC, Resources

def resident(which):
    with open("/proc/self/status") as file:
        return int(re.search(which + r":\\s+(\\d+)", file.read())[1]) / 1000

n, classes, m, budget = map(int, sys.argv[1:])
X = np.random.default_rng(0).normal(size=(n, 6))
signal = np.sin(X[:, 0]) + X[:, 1] * X[:, 2]
y = np.digitize(signal, np.quantile(signal, np.arange(1, classes) / classes))
made = dict(kernel="delta_gauss", lambda_plus=1e-4, lambda_minus=1e-4, random_state=0, n_jobs=2)
KreinSVC(landmarks=20, **made).fit(X[:9000], y[:9000])  # all is imported and compiled
before = resident("VmRSS")
room = Resources(memory_budget=f"{budget}MB")
model = KreinSVC(landmarks=m, resources=room, **made).fit(X, y)
print(resident("VmHWM") - before, model.n_iter_)
"""


@pytest.mark.slow
@linux_only
@pytest.mark.parametrize(
    ("n", "classes", "m", "budget"),
    [(200_000, 3, 100, 100), (30_000, 24, 500, 400)],
    ids=["many rows", "many classes"],
)
def test_a_machine_keeps_to_its_budget(n: int, classes: int, m: int, budget: int) -> None:
    """The values of many rows would not fit, and the sums of many classes fill most of it."""
    words = [sys.executable, "-c", MACHINE, *map(str, (n, classes, m, budget))]
    done = subprocess.run(words, capture_output=True, text=True, timeout=280)
    peak, n_iter = map(float, done.stdout.split() or [np.inf, 0])
    assert peak < budget, done.stderr
    assert n_iter > 2
