"""Damaged model files: what a disk, a network, a careless person or a hostile one makes of them."""

from __future__ import annotations

import copy
import gzip
import io
import json
import pickle
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from hashlib import sha256
from math import prod
from typing import Any, NamedTuple

import numpy as np

Case = tuple[str, bytes]
Lazy = tuple[str, Callable[[], bytes]]
GONE = object()
JSON_VALUES: list[Any] = [
    None, True, False, 0, -1, 7, 10**30, 0.5, "x", "", [], {}, [[]], {"type": "x"}, {"type": []},
    {"type": "array", "of": "x"}, {"type": "float", "of": "nan"}, {"type": "tuple", "of": []},
    {"type": "array", "of": ["<f8", [3], "C"]}, {"type": "tuple", "of": 3},
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


class Parts(NamedTuple):
    """What a file contains: its JSON, and its arrays by where they are in that: "state.coef_"."""

    header: Any
    arrays: dict[str, Any]


def array_nodes(node: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The places where JSON mentions arrays, in their order."""
    if isinstance(node, dict) and node.get("type") == "array":
        yield path, node
        return
    items = node.items() if isinstance(node, dict) else enumerate(node)
    for key, value in items:
        if isinstance(value, dict | list):
            inner = path if key == "of" else f"{path}.{key}".lstrip(".")
            yield from array_nodes(value, inner)


def parts_of(text: bytes) -> Parts:
    header = json.loads(lines_of(text)[2])
    arrays, rest = {}, lines_of(text)[3]
    for path, node in array_nodes(header):
        dtype, shape, order = node["of"]
        array = np.frombuffer(rest, dtype, prod(shape)).reshape(shape, order=order)
        arrays[path], rest = array, rest[array.nbytes :]
    assert not rest
    return Parts(header, arrays)


def lines_of(text: bytes) -> list[bytes]:
    """The format, the digest, the JSON, and the bytes of arrays."""
    return text.split(b"\n", 3)


def sealed(header: Any, arrays: dict[str, Any]) -> bytes:
    """A file of this JSON and these arrays with the right digest.

    An array that is given as bytes is what the JSON says of it, or not.
    """
    header, data = copy.deepcopy(header), b""
    for path, node in array_nodes(header) if isinstance(header, dict | list) else ():
        x = arrays.get(path, b"")
        if not isinstance(x, bytes):
            order = "F" if x.flags.f_contiguous and not x.flags.c_contiguous else "C"
            node["of"] = [x.dtype.str, list(x.shape), order]
            x = x.tobytes(order)
        data += x
    return packed(json.dumps(header).encode(), data)


def packed(header: bytes, data: bytes = b"", first: bytes = b"kreinlearn model 2") -> bytes:
    rest = header + b"\n" + data
    return b"\n".join([first, sha256(rest).hexdigest().encode(), rest])


def other_headers(text: bytes) -> Iterator[Lazy]:
    """Every field of the JSON replaced by a value of every other JSON type, or left out."""
    parts = parts_of(text)
    for path in _paths(parts.header):
        now = _at(parts.header, path)
        for value in JSON_VALUES:
            if type(now) is not type(value):
                what = f"header {path} = {value!r:.30}"
                yield what, partial(_with_field, parts, path, value)
        yield f"header without {path}", partial(_with_field, parts, path, GONE)


def _with_field(parts: Parts, path: tuple[Any, ...], value: Any) -> bytes:
    header = copy.deepcopy(parts.header)
    place = _at(header, path[:-1])
    if value is GONE:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    arrays = {name: x.tobytes("A") for name, x in parts.arrays.items()}
    return sealed(header, arrays)


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
    header, arrays = parts_of(text)
    names = list(arrays)
    for name in names:
        for what, part in _replacements(arrays[name]):
            yield f"{name} {what}", partial(sealed, header, {**arrays, name: part})
    for i, one in enumerate(names):
        for other in names[:i]:
            swapped = {**arrays, one: arrays[other], other: arrays[one]}
            yield f"{one} and {other} exchanged", partial(sealed, header, swapped)


def _replacements(x: Any) -> Iterator[tuple[str, Any]]:
    numbers = x if x.dtype.kind != "U" else np.zeros(x.shape)
    changed: dict[str, Any] = {
        "as float32": numbers.astype(np.float32), "as int64": numbers.astype(np.int64),
        "as bool": numbers.astype(bool), "as bytes": numbers.astype("S3"),
        "as complex": numbers.astype(complex),
        "flat": x.reshape(-1), "with an axis": x[None], "transposed": x.T.copy(),
        "empty": x.reshape(-1)[:0], "as text": x.astype(str),
    }  # fmt: skip
    if x.ndim:
        changed["shorter"], changed["longer"] = x[:-1], np.concatenate([x, x[-1:]])
        changed["wider"] = np.concatenate([x, x], axis=-1)
    for what, other in changed.items():
        if other.dtype != x.dtype or other.shape != x.shape:
            yield what, other
    extreme = {"f": [np.nan, np.inf, -1e300, 1e300], "i": [-1, 99], "u": [0, 255]}
    for value in extreme.get(x.dtype.kind, []) if x.size else []:
        with np.errstate(all="ignore"):
            yield f"all {value}", np.full_like(x, value)
            one = x.copy()
            one.reshape(-1)[-1] = value
            yield f"one {value}", one
    if x.dtype.kind == "U":
        yield "no characters", np.full(x.nbytes // 4, 0x110000, np.uint32).tobytes()
    if x.size:
        yield "nothing", b""
        yield "a byte less", x.tobytes()[:-1]
    yield "a byte more", x.tobytes() + b"\0"
    yield "a pickle", pickle.dumps(x)


# Other containers


def other_containers(text: bytes) -> Iterator[Case]:
    first, digest, header, data = lines_of(text)
    whole = {"model.krein": text, "header.json": header}
    yield "compressed", gzip.compress(text)
    yield "in a zip", _zip(whole, zipfile.ZIP_STORED)
    yield "bomb", _zip({**whole, "bomb.npy": bytes(10**8)}, zipfile.ZIP_DEFLATED)
    yield "prefix", b"#!/bin/sh\n" + text
    yield "two files", text + text
    yield "rest", text + b"\0"
    yield "sealed rest", packed(header, data + b"\0")
    yield "sealed twice", packed(header, data + data)
    yield "without arrays", packed(header)
    yield "empty", b""
    yield "the first line alone", first
    yield "lines of another system", b"\r\n".join([first, digest, header, data])
    yield "a line less", b"\n".join([first, header, data])
    yield "a digest in capitals", b"\n".join([first, digest.upper(), header, data])
    yield "a short digest", b"\n".join([first, digest[:-1], header, data])
    yield "no digest", b"\n".join([first, b"", header, data])
    for other in (b"kreinlearn model 0", b"kreinlearn model 1", b"kreinlearn model 3", b"model 2",
                  b"kreinlearn model 02", b"kreinlearn model -1", b"kreinlearn model 2 ",
                  b"kreinlearn model"):  # fmt: skip
        yield f"{other!r}", packed(header, data, other)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        yield f"pickle {protocol}", pickle.dumps({"kernel": "gaussian"}, protocol)
    for other in (b"", b"[]", b"{}", b"null", b"[" * 10**5, b"\xff", b'{"a":1,"a":1}', b"NaN",
                  b"1" * 5000, b"[1e999]", header + b"{}", header[:-1], b"\xef\xbb\xbf" + header,
                  ):  # fmt: skip
        yield f"header {other!r:.20}", packed(other, data)


def _zip(members: dict[str, bytes], method: int) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as zipped:
        for name, part in members.items():
            zipped.writestr(name, part)
    return file.getvalue()


def lies(text: bytes, rng: np.random.Generator) -> Iterator[Case]:
    """Every byte of the first two lines and some of the others says something else."""
    begin = text.index(b"{")
    for at in (*range(begin + 80), *rng.integers(begin, len(text), size=80), len(text) - 1):
        for value in (0, 1, 10, 0x7F, 0xFF, int(rng.integers(256))):
            if text[at] != value:
                yield f"byte {at} = {value}", text[:at] + bytes([value]) + text[at + 1 :]
