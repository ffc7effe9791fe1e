"""Opening a store, which is refused unless its values belong to these rows and this kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import count, pairwise
from os import PathLike
from typing import Any, NoReturn

import numpy as np

from kreinlearn.data.tiles import TILE, length, take
from kreinlearn.kernels.base import Array, Kernel, Objects, symmetry_rtol
from kreinlearn.pairs.store.blocks import StoredBlocks
from kreinlearn.pairs.store.evaluation import Stored
from kreinlearn.pairs.store.fingerprints import description, differences, fingerprint
from kreinlearn.pairs.store.folder import Entry, Folder

PROBED = 8  # stored pairs that are evaluated again if the kernel is a user's function
Span = tuple[int, int, str]  # first row, last row + 1, fingerprint of these rows
Mark = Callable[[int, int], str]  # first row, last row + 1 -> fingerprint


@contextmanager
def stored(
    path: str | PathLike[str], kernel: Kernel, X: Objects, outside: Objects | None,
    described: dict[str, Any] | None = None,
) -> Iterator[Stored]:  # fmt: skip
    """The stored values of a fitted kernel, for rows of X and landmarks from outside X.

    However the ``with`` block ends, values that were evaluated in it are on the disk afterwards.
    ``described`` is the description of the kernel, if it was made elsewhere.
    """
    with opened_blocks(path, kernel, X, described) as (blocks, names):
        Z = [] if outside is None else outside
        numbers = names.of(Z)
        require_same_values(blocks, kernel, X, numbers, Z)
        yield Stored(blocks, kernel, numbers)


@contextmanager
def opened_blocks(
    path: str | PathLike[str], kernel: Kernel, X: Objects, described: dict[str, Any] | None = None
) -> Iterator[tuple[StoredBlocks, OutsideNames]]:
    """The blocks of a store of rows of X, and the numbers of objects from outside X in it."""
    folder = Folder(path)
    try:
        blocks, names = _opened(folder, described or description(kernel), X)
    except BaseException:
        folder.close()
        raise
    try:
        yield blocks, names
    finally:
        blocks.close()


def _opened(folder: Folder, here: dict[str, Any], X: Objects) -> tuple[StoredBlocks, OutsideNames]:
    """The blocks of a store, if its kernel is described as ``here``, and names of other objects."""
    n = length(X)
    mark = cache(lambda start, stop: fingerprint(X[start:stop]))
    recorded = folder.description(lambda: {**here, "values": "float64", "rows": _spans(mark, 0, n)})
    entries = folder.entries()
    spans = [*recorded["rows"], *(entry["data"] for entry in entries if "data" in entry)]
    n_recorded, other_rows = _recorded_rows(spans, mark, n)
    if differs := [*differences(here, recorded), *other_rows]:
        _refuse(folder, "; ".join(differs))
    blocks = StoredBlocks(folder, entries)
    if blocks.greatest >= n_recorded:
        _refuse(folder, f"the log has lost the fingerprints of rows from {n_recorded} on")
    folder.append([{"data": span} for span in _spans(mark, n_recorded, n)])
    return blocks, OutsideNames(folder, entries, blocks.least)


def _spans(mark: Mark, start: int, n: int) -> list[Span]:
    """Fingerprints of the fixed tiles of rows start..n."""
    cuts = [start, *range((start // TILE + 1) * TILE, n, TILE), n] if start < n else []
    return [(a, b, mark(a, b)) for a, b in pairwise(cuts)]


def _recorded_rows(spans: list[Any], mark: Mark, n: int) -> tuple[int, list[str]]:
    """How many rows of X the store has recorded, and why X does not begin with all of them."""
    end = 0
    for start, stop, recorded in spans:
        if start != end:
            break  # a line of the log is damaged
        if stop > n:
            return end, [f"X has {n} rows and the store {spans[-1][1]}: rows can only be added"]
        if mark(start, stop) != recorded:
            return end, [f"rows {start}..{stop - 1} of X differ from those in the store"]
        end = stop
    return end, []


def _refuse(folder: Folder, why: str) -> NoReturn:
    raise ValueError(
        f"store={str(folder.path)!r} holds kernel values of other data or another kernel: {why}. "
        "Pass another path, or the same kernel and the same rows, after which more rows may follow"
    )


class OutsideNames:
    """Numbers below zero for objects that are not rows of X; equal objects share a number."""

    def __init__(self, folder: Folder, entries: list[Entry], least: int) -> None:
        outside = [entry for entry in entries if "outside" in entry]
        self.folder = folder
        self.numbers = {entry["fingerprint"]: entry["outside"] for entry in outside}
        self._free = count(min([least, 0, *self.numbers.values()]) - 1, -1)

    def of(self, objects: Objects) -> Array:
        """The number of each object; new ones are written to the log."""
        new, names = list[Entry](), list[int]()
        for i in range(length(objects)):
            mark = fingerprint(objects[i : i + 1])
            if mark not in self.numbers:
                self.numbers[mark] = next(self._free)
                new.append({"outside": self.numbers[mark], "fingerprint": mark})
            names.append(self.numbers[mark])
        self.folder.append(new)
        return np.array(names, dtype=np.int64)


def require_same_values(
    blocks: StoredBlocks, kernel: Kernel, X: Objects, outside: Array, Z: Objects
) -> int:
    """Refuse the store if a user's function gives other values than those that are stored.

    ``outside`` has the numbers of the objects Z, which are not rows of X. Returns how many pairs
    were evaluated.
    """
    if not kernel.untrusted:
        return 0
    places, n = {name: k for k, name in enumerate(outside.tolist())}, 0
    for i, j, before in blocks.sample(PROBED, outside):
        x, z = (take(X, [at]) if at >= 0 else take(Z, [places[at]]) for at in (i, j))
        now, n = float(kernel.anew(x, z)[0, 0]), n + 1
        if abs(now - before) > symmetry_rtol(np.float32) * max(abs(now), abs(before)):
            a, b = (f"row {at}" if at >= 0 else f"landmark {places[at]}" for at in (i, j))
            _refuse(
                blocks.folder,
                f"for {a} and {b} the kernel gives {now:.6g} now, and {before:.6g} is stored; it "
                "is not deterministic, or something that it depends on has changed",
            )
    return n
