"""Predictions of dask collections that go to a file, a few blocks at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kreinlearn as kl
from kreinlearn.distributed import delayed
from kreinlearn.distributed.entrance import MOST_BLOCKS

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
pq = pytest.importorskip("pyarrow.parquet")

N = 1500
X = np.random.default_rng(0).normal(size=(N, 3))
LABELS = np.array(["a", "bb", "c"])[np.digitize(X[:, 0], [-0.5, 0.7])]
MODEL = kl.KreinRidgeClassifier("delta_gauss", landmarks=12, random_state=0).fit(X, LABELS)
MAP = kl.KreinNystroem("delta_gauss", landmarks=12, random_state=0).fit(X)


@pytest.fixture(autouse=True)
def threads() -> Any:
    with dask.config.set(scheduler="threads", num_workers=2):
        yield


def lazy(count: int = 7) -> Any:
    return da.from_array(X, chunks=(-(-N // count), 3))


def of_unknown_lengths() -> Any:
    rows = lazy()
    return rows[rows[:, 0] > -1e9]


def with_empty_blocks() -> Any:
    rows = lazy()
    return da.concatenate([rows[:0], rows[:400], rows[:0], rows[400:], rows[:0]])


def bag_like() -> Any:
    return [dask.delayed(part) for part in np.array_split(X, 5)]


def table_of(path: Path) -> Any:
    columns = pq.read_table(path).columns
    return np.column_stack([column.to_pylist() for column in columns]).squeeze()


READ = {
    ".npy": np.load,
    ".csv": lambda path: np.loadtxt(path, delimiter=",", skiprows=1, dtype=str),
    ".parquet": table_of,
}


@pytest.mark.parametrize("make", [lazy, of_unknown_lengths, with_empty_blocks, bag_like])
@pytest.mark.parametrize("suffix", READ)
def test_they_are_those_of_rows_in_memory(tmp_path: Path, make: Any, suffix: str) -> None:
    path = kl.predict_to(MODEL, make(), tmp_path / f"labels{suffix}")
    np.testing.assert_array_equal(READ[suffix](path), MODEL.predict(X))
    path = kl.predict_to(MODEL, make(), tmp_path / f"scores{suffix}", "decision_function")
    found = READ[suffix](path).astype(float)
    np.testing.assert_allclose(found, MODEL.decision_function(X), rtol=1e-12, atol=1e-12)
    assert len(list(tmp_path.iterdir())) == 2


def test_few_blocks_come_here_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    came: list[int] = []
    compute = delayed.compute

    def recorded(result: Any) -> Any:
        values = compute(result)
        came.append(len(values))
        return values

    def refuse(self: Any, *args: Any, **kwargs: Any) -> Any:
        raise AssertionError("gathered")

    monkeypatch.setattr(delayed, "compute", recorded)
    monkeypatch.setattr(da.Array, "__array__", refuse)
    monkeypatch.setattr(da.Array, "compute", refuse)
    few = kl.KreinNystroem("delta_gauss", landmarks=12, random_state=0).fit(X)
    block = 100 * few.rank_ * 8
    few.resources = kl.Resources(memory_budget=8 * 3 * block)  # an eighth has room for three
    rows = lazy(15)
    kl.predict_to(few, rows, tmp_path / "few.npy", "transform")
    assert came == [100, 300, 300, 300, 300, 200]
    came.clear()
    kl.predict_to(MAP, lazy(N // 10), tmp_path / "many.npy", "transform")
    assert came == [10, 10 * MOST_BLOCKS, 10 * MOST_BLOCKS, N - 10 - 20 * MOST_BLOCKS]
    few.resources = kl.Resources(memory_budget=block)  # a block is the least
    came.clear()
    kl.predict_to(few, rows, tmp_path / "one.npy", "transform")
    assert came == [100] * 15
    monkeypatch.undo()
    for name in ("few", "many", "one"):
        found = np.load(tmp_path / f"{name}.npy")
        np.testing.assert_allclose(found, MAP.transform(X), rtol=1e-12, atol=1e-12)


def test_a_block_that_fails_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "found.npy"
    path.write_bytes(b"before")
    bad = X.copy()
    bad[1400] = np.nan
    with pytest.raises(ValueError, match="Input X contains NaN"):
        kl.predict_to(MODEL, da.from_array(bad, chunks=(100, 3)), path)
    with pytest.raises(ValueError, match="X has 2 features, but KreinRidgeClassifier is expecting"):
        kl.predict_to(MODEL, lazy()[:, :2], path)
    with pytest.raises(ValueError, match="0 sample"):
        kl.predict_to(MODEL, lazy()[:0], path)
    assert path.read_bytes() == b"before"
    assert [p.name for p in tmp_path.iterdir()] == ["found.npy"]
