"""Damaged model files: what a disk, a network, a careless person or a hostile one makes of them."""

from __future__ import annotations

import io
import json
import pickle
import struct
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from hashlib import sha256
from typing import Any

import numpy as np

from kreinlearn.persist import container

Case = tuple[str, bytes]
Lazy = tuple[str, Callable[[], bytes]]
GONE = object()
HEADERS = ("header.json", "header.sha256")
TWICE = b'{"format": 1, "format": 1}'
JSON_VALUES: list[Any] = [
    None, True, False, 0, -1, 7, 10**30, 0.5, "x", "", [], {}, [[]], {"type": "x"}, {"type": []},
    {"type": "array", "member": "x"}, {"type": "float", "is": "nan"}, {"type": "list", "items": []},
]  # fmt: skip


# By accident


def accidents(text: bytes, rng: np.random.Generator) -> Iterator[Case]:
    """Endless: bits flipped, parts lost, doubled, zeroed, exchanged."""
    n = len(text)
    while True:
        yield "bit", _flipped(text, rng, 1)
        yield "bit", _flipped(text, rng, 1)
        yield "bits", _flipped(text, rng, int(rng.integers(2, 40)))
        a, b, c = sorted(int(i) for i in rng.integers(n, size=3))
        yield "cut", text[:a]
        yield "zeroed", text[:a] + bytes(b - a) + text[b:]
        yield "lost", text[:a] + text[b:]
        yield "doubled", text[:b] + text[a:]
        yield "exchanged", text[:a] + text[b:c] + text[a:b] + text[c:]
        yield "noise", text[:a] + rng.bytes(min(b - a, 64)) + text[a + min(b - a, 64) :]
        yield "head lost", text[a:]


def _flipped(text: bytes, rng: np.random.Generator, count: int) -> bytes:
    found = bytearray(text)
    for place in rng.integers(8 * len(text), size=count).tolist():
        found[place // 8] ^= 1 << place % 8
    return bytes(found)


# By someone who makes all checksums right


def members_of(text: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(text)) as file:
        return {name: file.read(name) for name in file.namelist()}


def sealed(members: dict[str, bytes], header: Any = None) -> bytes:
    """A file of these members with the right sizes, CRCs and hashes."""
    header = json.loads(members["header.json"]) if header is None else header
    arrays = {name: part for name, part in members.items() if name not in HEADERS}
    if isinstance(header, dict) and isinstance(header.get("sha256"), dict):
        header["sha256"] = {name: sha256(part).hexdigest() for name, part in arrays.items()}
    text = json.dumps(header).encode()
    return packed([*zip(HEADERS, (text, digest(text)), strict=True), *arrays.items()])


def digest(text: bytes) -> bytes:
    return sha256(text).hexdigest().encode()


def packed(members: list[tuple[str, bytes]]) -> bytes:
    file = io.BytesIO()
    container.write(file, [(name, [part]) for name, part in members])
    return file.getvalue()


def other_headers(text: bytes) -> Iterator[Lazy]:
    """Every field of the header replaced by a value of every other JSON type, or left out."""
    members = members_of(text)
    before = json.loads(members["header.json"])
    for path in _paths(before):
        if path[0] == "sha256":
            continue
        now = _at(before, path)
        for value in JSON_VALUES:
            if type(now) is not type(value):
                what = f"header {path} = {value!r:.30}"
                yield what, partial(_with_field, members, path, value)
        yield f"header without {path}", partial(_with_field, members, path, GONE)


def _with_field(members: dict[str, bytes], path: tuple[Any, ...], value: Any) -> bytes:
    header = json.loads(members["header.json"])
    place = _at(header, path[:-1])
    if value is GONE:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return sealed(members, header)


def _paths(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = node.items() if isinstance(node, dict) else enumerate(node)
    for key, value in items:
        yield (*path, key)
        if isinstance(value, dict | list):
            yield from _paths(value, (*path, key))


def _at(node: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        node = node[key]
    return node


def other_arrays(text: bytes) -> Iterator[Lazy]:
    """Every array replaced by others, and every two of them exchanged."""
    members = members_of(text)
    names = [name for name in members if name not in HEADERS]
    for name in names:
        array = np.load(io.BytesIO(members[name]))
        for what, part in _replacements(array):
            yield f"{name} {what}", partial(sealed, {**members, name: part})
    for i, one in enumerate(names):
        for other in names[:i]:
            swapped = {**members, one: members[other], other: members[one]}
            yield f"{one} and {other} exchanged", partial(sealed, swapped)


def _replacements(x: Any) -> Iterator[tuple[str, bytes]]:
    changed: dict[str, Any] = {
        "as float32": x.astype(np.float32), "as int64": x.astype(np.int64),
        "as bool": x.astype(bool), "as bytes": x.astype("S3"), "as complex": x.astype(complex),
        "flat": x.reshape(-1), "with an axis": x[None], "transposed": x.T.copy(),
        "empty": x.reshape(-1)[:0], "shorter": x[:-1], "longer": np.concatenate([x, x[-1:]]),
        "as text": x.astype(str), "wider": np.concatenate([x, x], axis=-1),
    }  # fmt: skip
    for what, other in changed.items():
        if other.dtype != x.dtype or other.shape != x.shape:
            yield what, _npy(other)
    extreme = {"f": [np.nan, np.inf, -1e300, 1e300], "i": [-1, 99], "u": [0, 255]}
    for value in extreme.get(x.dtype.kind, []):
        with np.errstate(all="ignore"):
            yield f"all {value}", _npy(np.full_like(x, value))
            one = x.copy()
            one.reshape(-1)[-1] = value
            yield f"one {value}", _npy(one)
    yield "as objects", _objects(x)
    yield "version 2", b"\x93NUMPY\x02\x00" + _npy(x)[8:]
    yield "a lying shape", _npy(x).replace(b"'shape': (", b"'shape': (9", 1)
    yield "nothing", b""
    yield "no array", b"P" * 200


def _npy(x: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, x)
    return file.getvalue()


def _objects(x: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, x.astype(object), allow_pickle=True)
    return file.getvalue()


# Other containers


def other_containers(text: bytes) -> Iterator[Case]:
    members = members_of(text)
    items = list(members.items())
    bombs = {**members, "bomb.npy": bytes(10**8)}
    yield "compressed", _zip(members, zipfile.ZIP_DEFLATED)
    yield "bomb", _zip(bombs, zipfile.ZIP_DEFLATED)
    yield "packed anew", _zip(members, zipfile.ZIP_STORED)
    yield "prefix", b"#!/bin/sh\n" + text
    yield "two files", text + text
    yield "rest", text + b"\0"
    yield "comment", text[:-2] + b"\3\0abc"
    yield "empty", b""
    yield "no members", text[-container.TAIL.size :]
    for name in ("../../x", "/etc/x", "a/b.npy", "x\0y", "C:\\x", "header.json/"):
        yield f"member {name}", packed([*items, (name, b"x")])
        yield f"member {name} alone", packed([(name, items[0][1]), *items[1:]])
    for name in members:
        yield f"{name} twice", packed([*items, (name, members[name])])
        left = {key: part for key, part in members.items() if key != name}
        yield f"without {name}", packed(list(left.items()))
    yield "other order", packed(items[::-1])
    yield "extra", sealed({**members, "more.npy": members[items[-1][0]]})
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        yield f"pickle {protocol}", pickle.dumps({"kernel": "gaussian"}, protocol)
    yield "pickle in a zip", sealed({**members, items[-1][0]: pickle.dumps([1])})
    for header in (
        b"",
        b"[]",
        b"{}",
        b"null",
        b"[" * 10**5,
        b"\xff",
        b'{"a":1,"a":1}',
        b"1" * 5000,
    ):
        sound = [("header.json", header), ("header.sha256", digest(header)), *items[2:]]
        yield f"header {header!r:.20}", packed(sound)


def _zip(members: dict[str, bytes], method: int) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as zipped:
        for name, part in members.items():
            zipped.writestr(name, part)
    return file.getvalue()


def lies(text: bytes, rng: np.random.Generator) -> Iterator[Case]:
    """Every field of every header, local, central and at the end, says something else."""
    places = [(text.find(b"PK\3\4"), 80), (text.find(b"PK\1\2"), 90)]
    places += [(len(text) - container.TAIL.size, container.TAIL.size)]
    for start, length in places:
        for at in range(start, start + length):
            for value in (0, 1, 0x7F, 0xFF, int(rng.integers(256))):
                if text[at] != value:
                    yield f"byte {at} = {value}", text[:at] + bytes([value]) + text[at + 1 :]
        for at in range(start, start + length - 8, 3):
            huge = struct.pack("<Q", 2**40)
            yield f"size at {at}", text[:at] + huge + text[at + 8 :]
