"""Whatever was given is opened as the same rows: the same values, the same models, bit for bit."""

from __future__ import annotations

import csv
import gzip
import pickle
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kreinlearn import (
    Blocks,
    KreinNystroem,
    KreinRidge,
    KreinRidgeClassifier,
    KreinSVC,
    Landmarks,
    Resources,
    indefiniteness,
    inspect,
    predict_to,
    table,
)
from kreinlearn.data.opening import opened, with_target
from kreinlearn.data.source import BATCH, BEHIND, Checked, Stream
from kreinlearn.data.tiles import TILE, Part, length, take

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
ds = pytest.importorskip("pyarrow.dataset")

N, D = 9001, 3  # the pool of landmarks is 4096 rows: the others are streamed
NAMES = ["a", "b", "c"]
Write = Callable[[Path, Any], Any]


def numbers(n: int = N, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=(n, D))


X = numbers()
Y = np.sin(X[:, 0]) + X[:, 1] ** 2
LABELS = np.where(np.median(Y) < Y, "high", "low")
ALPHABET = np.array(list("abcdef"))


def words(n: int) -> list[str]:
    rng = np.random.default_rng(5)
    return ["".join(rng.choice(ALPHABET, size=k)) for k in rng.integers(1, 9, size=n)]


# Every form that rows of numbers may have


def memory_map(folder: Path, X: Any) -> Any:
    np.save(folder / "map.npy", X)
    return np.load(folder / "map.npy", mmap_mode="r")


def npy(folder: Path, X: Any) -> Any:
    np.save(folder / "x.npy", X)
    return folder / "x.npy"


def fortran(folder: Path, X: Any) -> Any:
    np.save(folder / "f.npy", np.asfortranarray(X))
    return str(folder / "f.npy")


def arrow(X: Any, **more: Any) -> Any:
    columns = {name: X[:, j] for j, name in enumerate(NAMES)}
    return pa.table({**columns, **more})


def parquet(folder: Path, X: Any) -> Any:
    pq.write_table(arrow(X), folder / "x.parquet", row_group_size=777)
    return folder / "x.parquet"


def parquet_folder(folder: Path, X: Any) -> Any:
    home = folder / "parts"
    home.mkdir()
    for i, (start, stop) in enumerate([(0, 1), (1, 5000), (5000, len(X))]):
        pq.write_table(arrow(X[start:stop]), home / f"{i}.parquet")
    return home


def dataset(folder: Path, X: Any) -> Any:
    return ds.dataset(parquet_folder(folder, X), format="parquet")


def filtered(folder: Path, X: Any) -> Any:
    twice = arrow(np.vstack([X, X]), keep=np.arange(2 * len(X)) < len(X))
    pq.write_table(twice, folder / "twice.parquet", row_group_size=4000)
    whole = ds.dataset(folder / "twice.parquet").filter(ds.field("keep"))
    return table(whole, columns=NAMES)


def feather(folder: Path, X: Any) -> Any:
    whole = arrow(X)
    with pa.ipc.new_file(str(folder / "x.arrow"), whole.schema) as writer:
        writer.write_table(whole, max_chunksize=999)
    return folder / "x.arrow"


def write_csv(path: Any, X: Any, delimiter: str = ",") -> None:
    with gzip.open(path, "wt") if path.suffix == ".gz" else path.open("w") as file:
        out = csv.writer(file, delimiter=delimiter)
        out.writerow(NAMES)
        out.writerows(X.tolist())


def comma(folder: Path, X: Any) -> Any:
    write_csv(folder / "x.csv", X)
    return folder / "x.csv"


def tab(folder: Path, X: Any) -> Any:
    write_csv(folder / "x.tsv", X, "\t")
    return str(folder / "x.tsv")


def zipped(folder: Path, X: Any) -> Any:
    write_csv(folder / "x.csv.gz", X)
    return folder / "x.csv.gz"


def blocks(folder: Path, X: Any) -> Any:
    ends = [0, 1, 1, 5000, len(X)]
    pieces = [X[a:b] for a, b in pairwise(ends)]
    return Blocks(lambda: iter(pieces))


class Again:
    """Blocks that can be iterated again, and that is all: no length, no array."""

    def __init__(self, X: Any) -> None:
        self.X = X

    def __iter__(self) -> Iterator[Any]:
        ends = [0, 1, 1, 5000, len(self.X)]
        return (self.X[a:b] for a, b in pairwise(ends))


def iterable(folder: Path, X: Any) -> Any:
    return Again(X)


FORMS: dict[str, Write] = {
    one.__name__: one
    for one in (
        *(memory_map, npy, fortran, parquet, parquet_folder, dataset),
        *(filtered, feather, comma, tab, zipped, blocks, iterable),
    )
} | {"table": lambda folder, X: arrow(X)}
form = pytest.mark.parametrize("write", FORMS.values(), ids=FORMS.keys())


def source(data: Any) -> Any:
    found = opened(data)
    return found if isinstance(found, Checked) else found.numbers()


# Rows


@form
def test_a_source_gives_the_rows_of_the_array(tmp_path: Path, write: Write) -> None:
    held = source(write(tmp_path, X))
    assert (held.shape, length(held), held.dtype) == (X.shape, N, np.float64)
    for span in [(0, 1), (4999, 5002), (0, TILE), (8000, N), (10, 20), (N - 1, N), (3, 3)]:
        np.testing.assert_array_equal(held[slice(*span)], X[slice(*span)])
    rng = np.random.default_rng(1)
    for some in [
        rng.permutation(N)[:50],
        np.array([7, 3, 7]),
        np.arange(100, 300),
        np.array([], int),
    ]:
        np.testing.assert_array_equal(take(held, some), X[some])


@form
def test_float32_is_read_in_double(tmp_path: Path, write: Write) -> None:
    small = X[:60].astype(np.float32)
    held = source(write(tmp_path, small))
    assert held.dtype == held[5:7].dtype == np.float64
    np.testing.assert_array_equal(held[0:60].astype(np.float32), small)


@pytest.mark.parametrize("dtype", ["int16", "uint8", "bool", "float16"])
def test_numbers_of_other_types(tmp_path: Path, dtype: str) -> None:
    whole = (X[:40] > 0).astype(dtype)
    held = source(npy(tmp_path, whole))
    assert held.dtype == np.float64
    np.testing.assert_array_equal(held[0:40], whole.astype(float))


def test_decimals_booleans_and_partition_keys_are_numbers(tmp_path: Path) -> None:
    from decimal import Decimal

    whole = pa.table({"a": [Decimal("1.5"), Decimal("2.5")], "b": [True, False], "year": [7, 8]})
    pq.write_to_dataset(whole, tmp_path / "parts", partition_cols=["year"])
    found = source(tmp_path / "parts")
    assert found.names == ["a", "b", "year"]
    np.testing.assert_array_equal(found[0:2], [[1.5, 1, 7], [2.5, 0, 8]])


def test_rows_are_read_by_many_threads(tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    held = source(parquet(tmp_path, X))
    spans = [(a, min(a + 500, N)) for a in range(0, N, 500)] * 3
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda span: held[slice(*span)], spans))
    for span, block in zip(spans, found, strict=True):
        np.testing.assert_array_equal(block, X[slice(*span)])


def test_a_source_can_be_sent_to_another_process(tmp_path: Path) -> None:
    for write in (npy, parquet):
        held = source(write(tmp_path, X))
        held[0:10]
        again = pickle.loads(pickle.dumps(held))
        np.testing.assert_array_equal(again[5:9], X[5:9])


class Counting(Stream):
    """Counts the pieces it hands out; can begin at every 1000th row."""

    def __init__(self, n: int, step: int = 1) -> None:
        self.read_pieces, self.step = 0, step
        super().__init__((n, 1), np.float64, self.counted, self.possible_begin)

    def possible_begin(self, start: int) -> int:
        return start // self.step * self.step if self.step > 1 else 0

    def counted(self, begin: int) -> Iterator[Any]:
        for start in range(begin, self.shape[0], 1000):
            self.read_pieces += 1
            yield np.arange(start, min(start + 1000, self.shape[0]), dtype=float)[:, None]


def test_a_stream_reads_once_what_is_asked_for_in_order_or_nearly() -> None:
    stream = Counting(100_000)
    spans = [(a, a + TILE) for a in range(0, 90_000, TILE)]
    spans[3], spans[4] = spans[4], spans[3]  # as two workers may
    for span in spans:
        np.testing.assert_array_equal(stream.read(*span)[:, 0], np.arange(*span))
    assert stream.read_pieces <= 93
    kept = sum(len(piece) for _, piece in stream._window)
    assert kept <= BEHIND + 2 * BATCH  # whatever the length of the file


def test_a_stream_begins_where_it_can() -> None:
    stream = Counting(100_000, step=1000)
    stream.read(80_500, 80_501)
    assert stream.read_pieces == 1
    stream.read(3_000, 3_001)
    assert stream.read_pieces == 2


def test_sampled_rows_stay_in_memory_while_there_is_room() -> None:
    stream = Counting(100_000)
    held = Checked(stream, "it")
    sample = np.arange(0, 100_000, 50)
    for _ in range(5):
        np.testing.assert_array_equal(held.take(sample)[:, 0], sample)
    assert stream.read_pieces == 100
    poor = held.within(10**6)
    poor.budget = 8 * 100
    for _ in range(2):
        np.testing.assert_array_equal(poor.take(sample)[:, 0], sample)
    assert (stream.read_pieces, len(poor._numbers)) == (300, 0)


def test_large_row_groups_are_decoded_a_batch_at_a_time(tmp_path: Path) -> None:
    n = 400_000
    whole = pa.table({name: np.zeros(n) for name in NAMES})
    pq.write_table(whole, tmp_path / "x.parquet", row_group_size=n)
    held = source(tmp_path / "x.parquet")
    before = pa.total_allocated_bytes()
    most = 0
    for start in range(0, n, TILE):
        held[start : start + TILE]
        most = max(most, pa.total_allocated_bytes() - before)
    assert most < 8 * n * D / 4


# Models


def model_of(kind: Any, **more: Any) -> Any:
    common = {"landmarks": 20, "random_state": 0, "kernel_params": {"width": 2.0}}
    return kind("gaussian", **common, **more)


LEARNERS = {
    "ridge": (lambda: model_of(KreinRidge), Y),
    "classifier": (lambda: model_of(KreinRidgeClassifier), LABELS),
    "svc": (lambda: model_of(KreinSVC, lambda_plus=1e-3, lambda_minus=1e-3), LABELS),
    "features": (lambda: model_of(KreinNystroem), None),
}
REFERENCE: dict[str, Any] = {}


def reference(name: str) -> Any:
    if name not in REFERENCE:
        make, y = LEARNERS[name]
        REFERENCE[name] = make().fit(X, y)
    return REFERENCE[name]


def results(model: Any, X: Any) -> list[Any]:
    if hasattr(model, "transform"):
        return [model.transform(X), model.eigenvalues_]
    return [model.predict(X), model.coef_, model.intercept_]


@form
@pytest.mark.parametrize("name", LEARNERS)
def test_models_are_those_of_the_array(tmp_path: Path, write: Write, name: str) -> None:
    make, y = LEARNERS[name]
    data = write(tmp_path, X)
    found = results(make().fit(data, y), data)
    for mine, theirs in zip(found, results(reference(name), X), strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("write", [npy, parquet, blocks])
def test_a_machine_that_reads_rows_again_is_that_of_the_array(tmp_path: Path, write: Write) -> None:
    many = numbers(30_000, seed=1)
    labels = many[:, 0] + many[:, 1] ** 2 > 1
    few = Resources(memory_budget=8 * 10 * len(many) - 1)  # too little to hold all kernel values
    given = {"landmarks": 10, "random_state": 0, "lambda_plus": 1e-3, "lambda_minus": 1e-3}
    mine, theirs = (
        KreinSVC("gaussian", kernel_params={"width": 2.0}, **given, **more).fit(data, labels)
        for data, more in ((write(tmp_path, many), {"resources": few}), (many, {}))
    )
    assert mine.n_iter_ > 1  # rows were read again
    np.testing.assert_allclose(mine.coef_, theirs.coef_, rtol=1e-9)


def text_forms(folder: Path, texts: list[str]) -> dict[str, Any]:
    whole = pa.table({"word": texts, "length": [len(text) for text in texts]})
    pq.write_table(whole, folder / "w.parquet", row_group_size=777)
    with (folder / "w.csv").open("w") as file:
        csv.writer(file).writerows([["word", "length"], *zip(texts, map(len, texts), strict=True)])
    np.save(folder / "w.npy", np.array(texts))
    halves = [texts[:100], texts[100:]]
    return {
        "parquet": folder / "w.parquet",
        "column": table(folder / "w.parquet", columns="word"),
        "csv": table(str(folder / "w.csv"), columns="word"),
        "npy": folder / "w.npy",
        "blocks": Blocks(lambda: iter(halves)),
    }


@pytest.mark.parametrize("kind", [KreinRidge, KreinNystroem])
def test_models_of_texts_are_those_of_the_list(tmp_path: Path, kind: Any) -> None:
    texts = words(8500)
    y = np.array([len(text) for text in texts], dtype=float)
    more = {} if kind is KreinNystroem else {"similarity": "squared"}

    def make() -> Any:
        return kind("levenshtein", landmarks=20, random_state=0, **more)

    wanted = results(make().fit(texts, y), texts[:500])
    for name, data in text_forms(tmp_path, texts).items():
        found = results(make().fit(data, y), texts[:500])
        for mine, theirs in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(mine, theirs, err_msg=name)


def test_a_target_is_a_column_of_the_file(tmp_path: Path) -> None:
    pq.write_table(arrow(X, y=Y), tmp_path / "xy.parquet", row_group_size=1000)
    path = tmp_path / "xy.parquet"
    model = LEARNERS["ridge"][0]().fit(path, "y")
    theirs = reference("ridge")
    np.testing.assert_array_equal(model.coef_, theirs.coef_)
    assert list(model.feature_names_in_) == NAMES
    np.testing.assert_array_equal(model.predict(path), theirs.predict(X))  # y is left alone
    assert model.score(path, "y") == theirs.score(X, Y)
    assert model.score(table(path, columns=NAMES), "y") == theirs.score(X, Y)
    again = [LEARNERS["ridge"][0]() for _ in range(2)]
    for _ in range(2):
        again[0].partial_fit(path, "y")
        again[1].partial_fit(X, Y)
    np.testing.assert_array_equal(again[0].coef_, again[1].coef_)


def test_columns_of_a_file_are_found_by_name(tmp_path: Path) -> None:
    path = parquet(tmp_path, X)
    model = LEARNERS["ridge"][0]().fit(path, Y)
    turned = arrow(X, more=Y).select(["c", "more", "a", "b"])
    pq.write_table(turned, tmp_path / "turned.parquet")
    np.testing.assert_array_equal(model.predict(tmp_path / "turned.parquet"), model.predict(path))
    with pytest.raises(ValueError, match="same order as they were in fit"):
        model.predict(table(tmp_path / "turned.parquet", columns=["c", "a", "b"]))


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_target_and_texts_of_one_file(tmp_path: Path, form: str) -> None:
    texts = words(120)
    labels = ["long" if len(text) > 4 else "short" for text in texts]
    whole = pa.table({"word": texts, "kind": labels})
    path = tmp_path / f"w.{form}"
    if form == "csv":
        import pyarrow.csv

        pyarrow.csv.write_csv(whole, path)
    else:
        pq.write_table(whole, path)
    model = KreinRidgeClassifier("levenshtein", random_state=0).fit(path, "kind")
    again = KreinRidgeClassifier("levenshtein", random_state=0).fit(texts, labels)
    np.testing.assert_array_equal(model.coef_, again.coef_)
    assert model.classes_.tolist() == ["long", "short"]
    np.testing.assert_array_equal(model.predict(path), again.predict(texts))
    assert model.predict(["abc"]) == ["short"]  # without a warning about names
    assert model.score(path, "kind") == again.score(texts, labels)


def test_targets_keep_their_types(tmp_path: Path) -> None:
    whole = {"i": [1, 2, 3], "b": [True, False, True], "t": ["x", "y", "x"], "f": [0.5, 1.5, 2.5]}
    pq.write_table(pa.table(whole), tmp_path / "x.parquet")
    for name, kind in [("i", "i"), ("b", "b"), ("t", "U"), ("f", "f")]:
        left, y = with_target(tmp_path / "x.parquet", name)
        assert (y.dtype.kind, y.tolist()) == (kind, whole[name])
        assert left.names == [other for other in whole if other != name]
    np.save(tmp_path / "y.npy", [1.0, 2.0])
    assert with_target(X, str(tmp_path / "y.npy"))[1].tolist() == [1.0, 2.0]


def test_series_of_equal_length_are_rows_of_an_array(tmp_path: Path) -> None:
    import kreinlearn

    series = X[:60]
    kernel = kreinlearn.dissimilarity(kreinlearn.pairwise(lambda a, b: float(np.abs(a - b).max())))
    one, other = (KreinNystroem(kernel, landmarks=10, random_state=0) for _ in range(2))
    one.fit(npy(tmp_path, series))
    np.testing.assert_array_equal(one.transform(series), other.fit(series).transform(series))


def test_a_matrix_is_read_from_a_file(tmp_path: Path) -> None:
    K = X[:50] @ X[:50].T - 0.1
    np.save(tmp_path / "k.npy", K)
    path = tmp_path / "k.npy"
    one = KreinNystroem("precomputed", random_state=0).fit(path)
    np.testing.assert_array_equal(
        one.eigenvalues_, KreinNystroem("precomputed", random_state=0).fit(K).eigenvalues_
    )
    assert indefiniteness(path) == indefiniteness(K)
    assert inspect(path).asymmetry == 0.0


def test_inspect_and_indefiniteness_take_files(tmp_path: Path) -> None:
    pq.write_table(arrow(X, y=Y), tmp_path / "xy.parquet")
    given = {"n_samples": 80, "random_state": 0}
    mine = inspect(tmp_path / "xy.parquet", "sigmoid", y="y", **given)
    theirs = inspect(X, "sigmoid", y=Y, **given)
    np.testing.assert_array_equal(mine.eigenvalues, theirs.eigenvalues)
    assert mine.label_signal == theirs.label_signal
    path = npy(tmp_path, X)
    assert indefiniteness(path, "sigmoid", **given) == indefiniteness(X, "sigmoid", **given)


@pytest.mark.parametrize("write", [iterable, dataset])
def test_scores_inspect_and_files_of_predictions_take_them_too(
    tmp_path: Path, write: Write
) -> None:
    data, model = write(tmp_path, X), LEARNERS["ridge"][0]()
    assert model.fit(data, Y).score(data, Y) == reference("ridge").score(X, Y)
    found = predict_to(model, data, tmp_path / "found.npy")
    np.testing.assert_array_equal(np.load(found), reference("ridge").predict(X))
    given = {"n_samples": 80, "random_state": 0}
    mine, theirs = inspect(data, "sigmoid", **given), inspect(X, "sigmoid", **given)
    np.testing.assert_array_equal(mine.eigenvalues, theirs.eigenvalues)


def test_columns_of_a_parquet_file(tmp_path: Path) -> None:
    whole = arrow(X, y=Y, word=words(N)).select(["word", "c", "y", "a", "b"])
    path = tmp_path / "all.parquet"
    pq.write_table(whole, path, row_group_size=2000)
    np.testing.assert_array_equal(source(table(path, columns=NAMES))[4000:4100], X[4000:4100])
    _, y = with_target(path, "y")
    np.testing.assert_array_equal(y, Y)
    assert opened(path, "word").objects()[2100:2103] == words(N)[2100:2103]


def test_blocks_of_objects_that_can_be_iterated_again() -> None:
    given = words(60)
    pieces = type("Pieces", (), {"__iter__": lambda self: iter([given[:7], given[7:]])})()
    make = KreinRidge("levenshtein", landmarks=10, random_state=0)
    wanted = make.fit(given, Y[:60]).dual_coef_
    np.testing.assert_array_equal(make.fit(pieces, Y[:60]).dual_coef_, wanted)


def test_rows_of_tables_are_read_into_memory(tmp_path: Path) -> None:
    whole = pa.table({"size": [1.0, 2.0, 3.0, 9.0], "kind": ["a", "b", "a", "b"]})
    pq.write_table(whole, tmp_path / "x.parquet")
    mine = KreinNystroem("gower", random_state=0).fit(tmp_path / "x.parquet")
    theirs = KreinNystroem("gower", random_state=0).fit(whole)
    np.testing.assert_array_equal(mine.eigenvalues_, theirs.eigenvalues_)


def test_kernels_that_want_all_rows_get_them_if_there_is_room(tmp_path: Path) -> None:
    path = npy(tmp_path, X)
    given = {"landmarks": 10, "random_state": 0, "resources": Resources(memory_budget="50MB")}
    made = [KreinNystroem("seuclidean", **given) for _ in range(2)]
    np.testing.assert_array_equal(made[0].fit(path).eigenvalues_, made[1].fit(X).eigenvalues_)
    scaled = KreinNystroem("gaussian", kernel_params={"width": "scale"}, random_state=0)
    assert scaled.fit(path).kernel_.width_ == scaled.fit(X).kernel_.width_


# Predictions to a file


READ: dict[str, Callable[[Path], Any]] = {
    ".npy": np.load,
    ".csv": lambda path: np.loadtxt(path, delimiter=",", skiprows=1),
    ".parquet": lambda path: np.column_stack(pq.read_table(path).columns).squeeze(),
}


@pytest.mark.parametrize("suffix", READ)
@pytest.mark.parametrize(("name", "method"), [("ridge", "predict"), ("features", "transform")])
def test_predictions_go_to_a_file(tmp_path: Path, suffix: str, name: str, method: str) -> None:
    model = reference(name)
    path = predict_to(model, npy(tmp_path, X), str(tmp_path / f"found{suffix}"), method)
    wanted = getattr(model, method)(X)
    np.testing.assert_array_equal(READ[suffix](path), wanted)
    assert sorted(p.name for p in tmp_path.iterdir()) == [f"found{suffix}", "x.npy"]


@pytest.mark.parametrize("suffix", READ)
def test_predicted_labels_go_to_a_file(tmp_path: Path, suffix: str) -> None:
    model = reference("classifier")
    path = predict_to(model, X, tmp_path / f"found{suffix}")
    if suffix == ".npy":
        found = np.load(path)
    elif suffix == ".csv":
        (head, *found) = path.read_text().splitlines()
        assert head == "prediction"
    else:
        found = pq.read_table(path)["prediction"].to_pylist()
    np.testing.assert_array_equal(found, model.predict(X))
    scores = predict_to(model, X, tmp_path / f"s{suffix}", "decision_function")
    np.testing.assert_array_equal(READ[suffix](scores), model.decision_function(X))


def test_predictions_of_any_input_in_memory(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=NAMES)
    model = LEARNERS["ridge"][0]().fit(frame, Y)
    path = predict_to(model, frame, tmp_path / "found.npy")  # names are known: no warning
    np.testing.assert_array_equal(np.load(path), model.predict(frame))


def test_parts_of_predictions_follow_the_budget(tmp_path: Path) -> None:
    seen: list[int] = []

    class Watched(KreinNystroem):
        def transform(self, X: Any) -> Any:
            seen.append(length(X))
            return super().transform(X)

    landmarks = Landmarks(40, core="plain")
    model = Watched("gaussian", landmarks=landmarks, random_state=0).fit(X)
    predict_to(model, X, tmp_path / "a.npy", "transform")
    assert seen == [TILE, N - TILE]
    model.resources = Resources(memory_budget=8 * TILE * 8 * model.rank_ * 2)
    seen.clear()
    predict_to(model, X, tmp_path / "b.npy", "transform")
    assert seen == [TILE, 2 * TILE, N - 3 * TILE]
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), np.load(tmp_path / "b.npy"))


def test_a_part_of_validated_rows() -> None:
    part = Part(X, 10, 20)
    assert (part.shape, len(part)) == ((10, D), 10)
    np.testing.assert_array_equal(part[2:5], X[12:15])
    np.testing.assert_array_equal(take(part, [3, 1]), X[[13, 11]])
    assert Part(list("abcdef"), 1, 4)[0:2] == ["b", "c"]


def test_nothing_of_the_extra_is_imported_without_need() -> None:
    import subprocess

    code = (
        "import numpy as np, sys; from kreinlearn import KreinRidge; X = np.eye(9);"
        "KreinRidge(random_state=0).fit(X, X[0]).predict(X);"
        "print([m for m in ('pyarrow',) if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() in ("[]", "['pyarrow']"), done.stderr


def test_small_blocks_may_be_read_far_ahead() -> None:
    A = np.arange(4.0 * BEHIND).reshape(-1, 2)
    source = Blocks(lambda: iter(np.array_split(A, 200)))
    for start in (len(A) - 5, 3, len(A) // 2):
        np.testing.assert_array_equal(source[start : start + 5], A[start : start + 5])
