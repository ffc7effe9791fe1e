"""Files of someone who makes all checksums right: no memory that is not in them, no odd model."""

from __future__ import annotations

import io
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import kreinlearn
from kreinlearn import ModelFormatError, pairwise, register
from kreinlearn.kernels.base import REGISTRY
from kreinlearn.kernels.domains import Objects
from kreinlearn.persist.json_values import is_a
from tests.reliability import damage
from tests.unit.persist import cases

Members = dict[str, bytes]
Change = Callable[[Any, Members], Any]  # of the header and the members, in place
TIMES, MORE = 64, 2**21  # bytes of memory for a byte of the file, and beside


def strings() -> Any:
    X = ["ab", "abc", "b", "cab", "bca", "aa"]
    return kreinlearn.KreinRidgeClassifier("levenshtein", lambda_plus=0.1, lambda_minus=0.1).fit(
        X, list("uvwuvw")
    )


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
    members = damage.members_of(path.read_bytes())
    header = json.loads(members["header.json"])
    change(header, members)
    path.write_bytes(damage.sealed(members, header))
    return path


def npy(x: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, np.asarray(x))
    return file.getvalue()


# Memory


def column(kind: list[Any], **parts: Any) -> Change:
    """A parameter that is an object of this kind: arrays by name, and columns within."""

    def change(header: Any, members: Members) -> None:
        def add(node: Any) -> Any:
            if isinstance(node, dict):
                return {name: add(part) for name, part in node.items()}
            if isinstance(node, list):
                return node
            name = f"more{len(members)}.npy"
            members[name] = npy(node)
            return name

        node = {"kind": kind, **add(parts)}
        header["parameters"]["kernel_params"] = {"type": "object", "column": node}

    return change


def labels(dtype: str, items: list[Any]) -> Change:
    node = {"type": "labels", "dtype": dtype, "items": items}
    return lambda header, members: header["state"].update(classes_=node)


def empty(shape: tuple[int, int]) -> Any:
    return np.empty(shape, np.int64)


def texts(count: int) -> dict[str, Any]:
    """One long text, and many of no character."""
    sizes = np.zeros(count, np.int64)
    sizes[0] = 20_000
    return {"kind": ["str"], "text": np.full(20_000, 65, np.uint8), "size": sizes}


def arrays(dtype: str) -> dict[str, Any]:
    no = {"values": np.empty(0, dtype), "shape": empty((0, 1))}
    return {"kind": ["array", dtype, 1], **no}


NUMBERS = {"data": arrays("<f8"), "indices": arrays("<i4"), "indptr": arrays("<i4")}
HUGE = 10**11


def broad(header: Any, members: Members) -> None:
    """Sparse rows with many more columns, all empty."""
    header["state"]["n_features_in_"] = 2**27
    rows = np.load(io.BytesIO(members["landmarks.shape.npy"]))[0, 0]
    members["landmarks.shape.npy"] = npy(np.array([[rows, 2**27]]))


def sparse() -> Any:
    X = sp.random_array((9, 4), density=0.5, rng=np.random.default_rng(0), format="csr")
    return kreinlearn.KreinNystroem("delta_gauss", random_state=0).fit(X)


BOMBS: dict[str, tuple[Callable[[], Any], Change]] = {
    "one wide text of many": (
        strings,
        column(["texts", "<U20000", 1], items=texts(3000), shape=np.array([[3000]])),
    ),
    "texts for 60 GB": (
        strings,
        column(["texts", "<U150064", 1], items=texts(100_000), shape=np.array([[100_000]])),
    ),
    "one wide class of many": (
        strings,
        labels("<U200000", ["A" * 200_000, *(f"b{i}" for i in range(400))]),
    ),
    "classes of a strange type": (strings, labels("<i8,(200000000,)i1", [1, 2, 3])),
    "arrays of no dimension": (
        strings,
        column(["array", "<f8", 0], values=np.empty(0), shape=empty((HUGE, 0))),
    ),
    "matrices of no dimension": (
        strings,
        column(["sparse", "csr_array"], **NUMBERS, shape=empty((HUGE, 0))),
    ),
    "objects of no dimension": (
        strings,
        column(
            ["objects", "|O", 0],
            items={"kind": ["none"], "values": np.empty(0, np.uint8)},
            shape=empty((HUGE, 0)),
        ),
    ),
    "a wide matrix": (
        given,
        lambda header, members: header["state"].update(n_features_in_=30_000_000),
    ),
    "sparse landmarks": (sparse, broad),
    "landmarks of no features": (
        vectors,
        lambda header, members: members.update({"landmarks.npy": npy(np.empty((HUGE, 0)))}),
    ),
    "a long header": (
        strings,
        lambda header, members: header.update(not_stored={"cv": "x" * 2**21}),
    ),
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
    return lambda header, members: header["state"].update(new)


def without(name: str) -> Change:
    return lambda header, members: header["state"].pop(name)


def parameters(**new: Any) -> Change:
    return lambda header, members: header["parameters"].update(new)


def record(value: Any) -> Any:
    """A value of plain fields, as the header has it."""
    return {"type": "record", "of": type(value).__name__, "fields": vars(value)}


def resources(**fields: Any) -> Any:
    return record(kreinlearn.Resources(**fields))


def landmarks(**fields: Any) -> Any:
    return record(kreinlearn.Landmarks(**fields))


def learned(**new: Any) -> Change:
    return lambda header, members: header["kernel"]["fitted"].update(new)


def moved(name: str, *others: str) -> Change:
    """The first entry of arrays is one more."""

    def change(header: Any, members: Members) -> None:
        for one in (name, *others):
            x = np.load(io.BytesIO(members[f"{one}.npy"]))
            x.reshape(-1)[0] += 1
            members[f"{one}.npy"] = npy(x)

    return change


def unweighted(name: str, weight: Any) -> Change:
    """One part of a decision has this weight, or none."""

    def change(header: Any, members: Members) -> None:
        node = header["state"]["part_weights_"]
        at = node["keys"].index(name)
        if weight is None:
            del node["keys"][at], node["values"][at]
        else:
            node["values"][at] = weight

    return change


def fields(name: str, **new: Any) -> Change:
    return lambda header, members: header["state"][name]["fields"].update(new)


def backwards(header: Any, members: Members) -> None:
    header["state"]["classes_"]["items"].reverse()


@pytest.mark.parametrize(
    ("value", "wanted", "right"),
    [
        (None, "int | None", True),
        (3, "int | float | str | None", True),
        (True, "int | None", False),
        ("3", "int | None", False),
        (None, "int", False),
        ([1], "list[int] | None", True),
        (["1"], "list[int] | None", False),
        (np.zeros(2), "Array", True),
        (0, "Any", True),
    ],
)
def test_fields_of_records_have_the_types_of_their_class(
    value: Any, wanted: str, right: bool
) -> None:
    assert is_a(value, wanted) == right


SHOWN = {"type": "dict", "keys": ["transform"], "values": ["evil"]}
ODD: dict[str, tuple[Callable[[], Any], Change, str]] = {
    "a store": (strings, parameters(resources=resources(store="folder")), "its store is 'folder'"),
    "classes backwards": (strings, backwards, "classes are not in order"),
    "a class twice": (
        strings,
        labels("<U1", ["u", "v", "v"]),
        "classes are not in order, or one is there twice",
    ),
    "a scheme": (strings, parameters(landmarks=landmarks(scheme="some")), "'scheme' parameter"),
    "a pool": (strings, parameters(landmarks=landmarks(pool=-1)), "'pool' parameter"),
    "a pool of text": (strings, parameters(landmarks=landmarks(pool="1")), "pool of a Landmarks"),
    "a budget": (
        strings,
        parameters(resources=resources(memory_budget="some")),
        "memory_budget='some'",
    ),
    "a type": (strings, parameters(resources=resources(dtype="float16")), "'dtype' parameter"),
    "an output": (vectors, state(_sklearn_output_config=SHOWN), "set_output is"),
    "the mean": (vectors, moved("_mean"), "do not give what the model gave"),
    "the intercept": (strings, moved("_intercept", "intercept_"), "do not give what the model"),
    "the map": (strings, moved("_map.W"), "do not give what the model gave"),
    "the signs of the map": (strings, moved("_map.S"), "spectrum is not that of its map"),
    "no map": (strings, without("_map"), "its _map is missing"),
    "a map of another type": (strings, state(_map=None), "its _map does not fit"),
    "no weights of parts": (front, without("part_weights_"), "its part_weights_ is missing"),
    "a part without a weight": (front, unweighted("neighbours_3", None), "parts of its decision"),
    "a negative weight": (front, unweighted("krein", -1.0), "parts of its decision"),
    "a weight of text": (front, unweighted("krein", "1"), "parts of its decision"),
    "no neighbours": (front, without("_neighbours"), "parts of its decision"),
    "a neighbour of no class": (front, moved("_neighbours.labels"), "neighbours do not fit"),
    "neighbours without a floor": (front, fields("_neighbours", floor=0.0), "neighbours do not"),
    "a range": (front, moved("_range"), "parts of its decision"),
    "a weight of a part": (front, unweighted("krein", 17.0), "do not give what the model gave"),
    "a method of the kernel": (vectors, learned(takes_=3), "its kernel has learned"),
    "more of the kernel": (strings, learned(width_=3.0), "its kernel has learned"),
    "less of the kernel": (
        vectors,
        lambda header, members: header["kernel"]["fitted"].clear(),
        "its kernel has learned",
    ),
}


@pytest.mark.parametrize("name", ODD)
def test_what_no_fit_leaves_is_refused(name: str, tmp_path: Path) -> None:
    make, change, what = ODD[name]
    with pytest.raises(ModelFormatError, match=what):
        kreinlearn.load(changed(make(), tmp_path / "m.krein", change))


def test_the_header_is_known_by_its_hash(tmp_path: Path) -> None:
    path = tmp_path / "m.krein"
    strings().save(path)
    members = damage.members_of(path.read_bytes())
    other = members["header.json"].replace(b'"verbose": 0', b'"verbose": 1')
    assert other != members["header.json"]
    for part in (other, members["header.json"] + b" "):
        path.write_bytes(damage.packed(list({**members, "header.json": part}.items())))
        with pytest.raises(ModelFormatError, match="header is not the one that was written"):
            kreinlearn.load(path)
    del members["header.sha256"]
    path.write_bytes(damage.packed(list(members.items())))
    with pytest.raises(ModelFormatError, match=r"no header\.sha256"):
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
    members = damage.members_of(path.read_bytes())
    for name in ("shown_", "columns", "_odd_", "__class__"):
        header = json.loads(members["header.json"])
        header["kernel"]["fitted"][name] = 3
        path.write_bytes(damage.sealed(members, header))
        with pytest.raises(ModelFormatError, match="its kernel has learned"):
            kreinlearn.load(path, kernel=Own())


def test_cases_are_sound_without_the_change(tmp_path: Path) -> None:
    for make in (strings, vectors, given, sparse, front):
        found = kreinlearn.load(changed(make(), tmp_path / "m.krein", lambda *_: None))
        assert cases.answers(found, found.landmarks_ if make is not given else np.eye(9))
