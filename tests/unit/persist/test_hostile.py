"""Files of someone who makes all checksums right: no memory that is not in them, no odd model."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kreinlearn
from kreinlearn import ModelFormatError, pairwise, register
from kreinlearn.kernels.base import REGISTRY
from kreinlearn.kernels.domains import Objects
from tests.reliability import damage
from tests.unit.persist import cases

Arrays = dict[str, Any]
Change = Callable[[Any, Arrays], Any]  # of the header and the arrays, in place
TIMES, MORE = 64, 2**21  # bytes of memory for a byte of the file, and beside


def strings(landmarks: Any = "auto") -> Any:
    X = ["ab", "abc", "b", "cab", "bca", "aa"]
    return kreinlearn.KreinRidgeClassifier(
        "levenshtein", landmarks=landmarks, lambda_plus=0.1, lambda_minus=0.1
    ).fit(X, list("uvwuvw"))


def few_strings() -> Any:
    return strings(3)


def vectors() -> Any:
    X = np.random.default_rng(0).normal(size=(12, 2))
    return kreinlearn.KreinPCA(2, kernel="gaussian").set_output(transform="pandas").fit(X)


def given() -> Any:
    X = np.cos(np.subtract.outer(np.arange(9.0), np.arange(9.0)))
    return kreinlearn.KreinRidge("precomputed", lambda_plus=0.1, lambda_minus=0.1).fit(X, X[0])


def front() -> Any:
    X = ["ab", "abc", "b", "cab", "bca", "aa"]
    return kreinlearn.KreinClassifier("levenshtein", random_state=0).fit(X, list("uvwuvw"))


def changed(model: Any, path: Path, change: Change) -> Path:
    model.save(path)
    header, arrays = damage.parts_of(path.read_bytes())
    change(header, arrays)
    path.write_bytes(damage.sealed(header, arrays))
    return path


# Memory


def parameter(node: Any) -> Change:
    """A parameter that is this, of arrays whose bytes are not there."""
    return lambda header, arrays: header["parameters"].update(kernel_params=node)


def typed(name: str, of: Any) -> Any:
    return {"type": name, "of": of}


def array(dtype: str, *shape: int) -> Any:
    return typed("array", [dtype, list(shape), "C"])


def classes(node: Any, x: Any) -> Change:
    def change(header: Any, arrays: Arrays) -> None:
        header["state"]["classes_"], arrays["state.classes_"] = node, x

    return change


HUGE = 10**11


def broad(header: Any, arrays: Arrays) -> None:
    """Sparse rows with many more columns, all empty."""
    header["state"]["n_features_in_"] = 2**27
    header["columns"]["objects"]["of"][1][1] = 2**27


def no_features(header: Any, arrays: Arrays) -> None:
    header["columns"]["objects"], arrays["columns.objects"] = array("<f8", HUGE, 0), b""


def name(x: Any) -> Change:
    return lambda header, arrays: header.update(estimator=x)


def sparse() -> Any:
    X = cases.sparse_rows(9, 4, np.random.default_rng(0))
    return kreinlearn.KreinNystroem("delta_gauss", random_state=0).fit(X)


BOMBS: dict[str, tuple[Callable[[], Any], Change]] = {
    "texts for 60 GB": (strings, parameter(array("<U150064", 100_000))),
    "texts of no width": (strings, parameter(array("<U0", HUGE))),
    "numbers for 800 GB": (strings, parameter(array("<f8", HUGE))),
    "numbers of two huge sides": (strings, parameter(array("<f8", 2**40, 2**40))),
    "one wide class of many": (strings, classes(array("<U200000", 400), b"A" * 400_000)),
    "classes of a strange type": (strings, classes(array("<i8,(200000000,)i1", 3), bytes(24))),
    "arrays of no entry": (strings, parameter(array("<f8", HUGE, 0))),
    "matrices of no entry": (
        strings,
        parameter(
            typed("csr_array", [[array("<f8", 0), array("<i4", 0), array("<i4", 1)], [0, HUGE]])
        ),
    ),
    "objects of no entry": (strings, parameter(typed("objects", [[HUGE, 0], []]))),
    "objects of no dimension": (strings, parameter(typed("objects", [[], []]))),
    "a tuple of a range": (
        strings,
        parameter(typed("tuple", typed("range", [0, HUGE, 1]))),
    ),
    "a graph of ranges": (
        strings,
        parameter(typed("network", ["Graph", {}, *[typed("range", [0, HUGE, 1])] * 2])),
    ),
    "a dict of ranges": (
        strings,
        parameter(typed("dict", [typed("range", [0, HUGE, 1])] * 2)),
    ),
    "many empty lists": (strings, name([[] for _ in range(100_000)])),
    "many empty dicts": (strings, name([{} for _ in range(100_000)])),
    "a long text": (strings, name("x" * 2**21)),
    "a wide matrix": (
        given,
        lambda header, arrays: header["state"].update(n_features_in_=30_000_000),
    ),
    "sparse landmarks": (sparse, broad),
    "landmarks of no features": (vectors, no_features),
}


@pytest.mark.parametrize("name", BOMBS)
def test_memory_is_bounded_by_the_file(name: str, tmp_path: Path) -> None:
    make, change = BOMBS[name]
    path = changed(make(), tmp_path / "m.krein", change)
    tracemalloc.start()
    try:
        with pytest.raises(ModelFormatError):
            kreinlearn.load(path)
        assert tracemalloc.get_traced_memory()[1] < TIMES * path.stat().st_size + MORE
    finally:
        tracemalloc.stop()


def test_too_little_memory_is_an_error_of_the_file(tmp_path: Path) -> None:
    calls: list[int] = []

    def values(a: Any, b: Any) -> float:
        if calls:
            raise MemoryError
        return float(a == b)

    register("hungry", lambda: pairwise(values))
    try:
        model = kreinlearn.KreinRidge("hungry", lambda_plus=0.1, lambda_minus=0.1)
        model.fit(["a", "b", "c"], [1.0, 2.0, 3.0]).save(tmp_path / "m.krein")
        calls.append(1)
        with pytest.raises(ModelFormatError, match="less free memory than it asks for"):
            kreinlearn.load(tmp_path / "m.krein")
    finally:
        del REGISTRY["hungry"]


# Models that no fit leaves


def state(**new: Any) -> Change:
    return lambda header, arrays: header["state"].update(new)


def without(name: str) -> Change:
    return lambda header, arrays: header["state"].pop(name)


def parameters(**new: Any) -> Change:
    return lambda header, arrays: header["parameters"].update(new)


def record(value: Any) -> Any:
    """A value of plain fields, as the header has it."""
    return typed("record", [type(value).__name__, vars(value)])


def resources(**fields: Any) -> Any:
    return record(kreinlearn.Resources(**fields))


def landmarks(**fields: Any) -> Any:
    return record(kreinlearn.Landmarks(**fields))


def learned(**new: Any) -> Change:
    return lambda header, arrays: header["kernel"]["fitted"].update(new)


def moved(name: str, *others: str) -> Change:
    """The first entry of arrays is one more."""

    def change(header: Any, arrays: Arrays) -> None:
        for one in (name, *others):
            x = arrays[f"state.{one}"].copy()
            x.reshape(-1)[0] += 1
            arrays[f"state.{one}"] = x

    return change


def unweighted(name: str, weight: Any) -> Change:
    """One part of a decision has this weight, or none."""

    def change(header: Any, arrays: Arrays) -> None:
        weights = header["state"]["part_weights_"]
        if weight is None:
            del weights[name]
        else:
            weights[name] = weight

    return change


def fields(name: str, **new: Any) -> Change:
    return lambda header, arrays: header["state"][name]["of"][1].update(new)


def backwards(header: Any, arrays: Arrays) -> None:
    arrays["state.classes_"] = arrays["state.classes_"][::-1].copy()


LABELS = np.array([[1, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 1]] * 6)


def several_labels() -> Any:
    X = np.random.default_rng(0).normal(size=(24, 2))
    return kreinlearn.KreinClassifier("gaussian", random_state=0).fit(X, LABELS)


def calibrated_labels() -> Any:
    X = np.random.default_rng(0).normal(size=(24, 2))
    return kreinlearn.KreinSVC(probability=True, random_state=0).fit(X, LABELS)


def probabilities_of_classes(header: Any, arrays: Arrays) -> None:
    header["state"]["_calibration"]["of"][0] = "Temperature"


REFUSED = "do not give what the model gave|is no sound model"
SHOWN = {"transform": "evil"}
ODD: dict[str, tuple[Callable[[], Any], Change, str]] = {
    "a store": (strings, parameters(resources=resources(store="folder")), "its store is 'folder'"),
    "classes backwards": (strings, backwards, REFUSED),
    "a scheme": (strings, parameters(landmarks=landmarks(scheme="some")), "'scheme' parameter"),
    "a pool": (strings, parameters(landmarks=landmarks(pool=-1)), "'pool' parameter"),
    "a pool of text": (strings, parameters(landmarks=landmarks(pool="1")), "'pool' parameter"),
    "a budget": (
        strings,
        parameters(resources=resources(memory_budget="some")),
        "memory_budget='some'",
    ),
    "an output": (vectors, state(_sklearn_output_config=SHOWN), "its set_output is unknown"),
    "the mean": (vectors, moved("_mean"), "do not give what the model gave"),
    "the intercept": (strings, moved("_intercept", "intercept_"), "do not give what the model"),
    "the map": (vectors, moved("_map.1.E"), "do not give what the model gave"),
    "the map of few": (few_strings, moved("_map.1.W"), "do not give what the model gave"),
    "the map of all": (strings, moved("_map.1.W"), "do not give what the model gave"),
    "the signs of the map": (strings, moved("_map.1.S"), REFUSED),
    "no map": (strings, without("_map"), REFUSED),
    "a map of another type": (strings, state(_map=None), REFUSED),
    "no weights of parts": (front, without("part_weights_"), REFUSED),
    "a part without a weight": (front, unweighted("neighbours_3", None), REFUSED),
    "a negative weight": (front, unweighted("krein", -1.0), REFUSED),
    "a weight of text": (front, unweighted("krein", "1"), REFUSED),
    "no neighbours": (front, without("_neighbours"), REFUSED),
    "neighbours without a floor": (front, fields("_neighbours", floor=0.0), REFUSED),
    "labels as classes": (several_labels, state(multilabel_=False), REFUSED),
    "classes as labels": (front, state(multilabel_=True), REFUSED),
    "a label of no landmark": (
        several_labels,
        moved("_neighbours.1.labels"),
        REFUSED,
    ),
    "probabilities of classes": (calibrated_labels, probabilities_of_classes, REFUSED),
    "a weight of a part": (front, unweighted("krein", 17.0), "do not give what the model gave"),
    "less of the kernel": (
        vectors,
        lambda header, arrays: header["kernel"]["fitted"].clear(),
        REFUSED,
    ),
}


@pytest.mark.parametrize("name", ODD)
def test_what_no_fit_leaves_is_refused(name: str, tmp_path: Path) -> None:
    make, change, what = ODD[name]
    with pytest.raises(ModelFormatError, match=what):
        kreinlearn.load(changed(make(), tmp_path / "m.krein", change))


def test_the_content_is_known_by_its_hash(tmp_path: Path) -> None:
    path = tmp_path / "m.krein"
    strings().save(path)
    first, digest, text, data = damage.lines_of(path.read_bytes())
    other = text.replace(b'"verbose": 0', b'"verbose": 1')
    assert other != text
    for part in (other, text + b" "):
        path.write_bytes(b"\n".join([first, digest, part, data]))
        with pytest.raises(ModelFormatError, match="its sha256 is another"):
            kreinlearn.load(path)


class Own(kreinlearn.kernels.Kernel):
    """A person's kernel, which has learned something and shows something."""

    domain = Objects()
    shown_ = 1

    def fit(self, X: Any, rng: np.random.Generator) -> Any:
        self.scale_ = 2.0
        return self

    def columns(self, Z: Any) -> Any:
        return lambda A, out=None: np.array([[self.scale_ * (a == z) for z in Z] for a in A])


def test_a_kernel_of_a_person_learns_what_ends_with_an_underscore(tmp_path: Path) -> None:
    model = kreinlearn.KreinNystroem(Own()).fit(["a", "b", "c"])
    path = tmp_path / "m.krein"
    model.save(path, external_kernel=True)
    assert kreinlearn.load(path, kernel=Own()).kernel_.scale_ == 2.0
    text = path.read_bytes()
    for name in ("shown_", "columns", "_odd_", "__class__"):
        header, arrays = damage.parts_of(text)
        header["kernel"]["fitted"][name] = 3
        path.write_bytes(damage.sealed(header, arrays))
        with pytest.raises(ModelFormatError, match="its kernel has learned"):
            kreinlearn.load(path, kernel=Own())


def test_cases_are_sound_without_the_change(tmp_path: Path) -> None:
    for make in (strings, vectors, given, sparse, front):
        found = kreinlearn.load(changed(make(), tmp_path / "m.krein", lambda *_: None))
        assert cases.answers(found, found.landmarks_ if make is not given else np.eye(9))


# Time


def colliding(n: int) -> list[Any]:
    """Whole numbers with the same hash."""
    return [2**70 + i * (2**61 - 1) for i in range(n)]


@pytest.mark.parametrize(
    "node",
    [
        typed("set", colliding(5000)),
        typed("frozenset", colliding(5000)),
        typed("dict", [[one, 0] for one in colliding(5000)]),
        colliding(5000),
        typed("set", [typed("tuple", [one]) for one in colliding(5000)]),
        typed("set", [typed("Decimal", str(i * (2**61 - 1))) for i in range(5000)]),
    ],
    ids=["set", "frozenset", "dict", "tokens", "tuples", "decimals"],
)
def test_bad_input_90_numbers_of_one_hash_are_refused(node: Any, tmp_path: Path) -> None:
    """A set of them would take the square of their number."""
    path = changed(strings(), tmp_path / "m.krein", parameter({"x": node}))
    with pytest.raises(ModelFormatError, match="100 different values that have one hash"):
        kreinlearn.load(path)


def test_a_few_numbers_of_one_hash_are_numbers(tmp_path: Path) -> None:
    few = {i * (2**61 - 1) for i in range(90)}
    X = [few, {1, 2}, {2**61}, {1, 5}]
    model = kreinlearn.KreinRidge("jaccard_sets", lambda_plus=1, lambda_minus=1).fit(
        X, [0, 1, 2, 1]
    )
    model.save(tmp_path / "m.krein")
    assert kreinlearn.load(tmp_path / "m.krein").landmarks_ == X
