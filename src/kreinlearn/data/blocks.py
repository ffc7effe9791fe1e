"""Blocks of rows from an iterable that can be iterated again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kreinlearn.data.source import NUMBERS, Array, Checked, Stream, require_some

ONCE = (
    "it can be read only once, and a fit reads its rows several times; pass Blocks(f) where f() "
    "makes it anew"
)
Block = ArrayLike  # numbers (b, d), or a list of objects
Make = Callable[[], Iterable[Block]]


class Blocks(Checked):
    """Rows that come in blocks: arrays of equal width, or lists of objects.

    An object that can be iterated and has no length is taken as blocks without this class.

    Parameters
    ----------
    blocks : callable or iterable
        A function that returns an iterator of blocks, or an object that gives a new iterator
        whenever it is iterated. Blocks may have any lengths. They are iterated once to be
        counted and then once for each pass over the rows, and must be the same every time.

    Attributes
    ----------
    shape : tuple of int
        The number of rows and, if the blocks are arrays, the number of columns.
    dtype : dtype
        The type of the rows: float64, or object.

    Examples
    --------
    >>> import numpy as np
    >>> from kreinlearn import Blocks, KreinRidge
    >>> parts = [np.random.default_rng(i).normal(size=(100, 2)) for i in range(3)]
    >>> X, y = Blocks(lambda: iter(parts)), np.concatenate(parts)[:, 0]
    >>> KreinRidge(random_state=0).fit(X, y).predict(X).shape
    (300,)
    """

    def __init__(self, blocks: Make | Iterable[Block]) -> None:
        if not callable(blocks) and not hasattr(blocks, "__iter__"):
            raise TypeError(
                f"Blocks takes a function that returns an iterator, or an iterable; got {blocks!r}"
            )
        if hasattr(blocks, "__next__"):
            raise TypeError(f"Blocks got a {type(blocks).__name__}: {ONCE}")
        make = blocks if callable(blocks) else blocks.__iter__
        shape, dtype = _counted(make)
        super().__init__(Stream(shape, dtype, partial(_pieces, make, shape[1:])), "the blocks")


def _pieces(make: Make, width: tuple[int, ...], begin: int) -> Iterator[Array]:
    """Read the blocks as pieces of a stream of rows."""
    rows = 0
    for block in make():
        piece = _as_rows(block, rows)
        if piece.shape[1:] != width:
            raise ValueError(f"the blocks are not those of the first time, from row {rows} on")
        rows += len(piece)
        yield piece


def _counted(make: Make) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Return the shape and the type of all rows; blocks must be of one width."""
    n, widths, types, first = 0, set(), set(), make()
    if iter(first) is make():
        raise TypeError(f"Blocks got a function that returns one iterator every time: {ONCE}")
    for block in first:
        piece = _as_rows(block, n)
        n += len(piece)
        if len(piece):
            widths.add(piece.shape[1:])
            types.add(piece.dtype)
        if len(widths) > 1:
            raise ValueError(
                f"the block that ends at row {n - 1} is of shape {piece.shape}, those before it "
                f"are of width {next(iter(widths - {piece.shape[1:]}))}; make them equal"
            )
    shape = (n, *(widths.pop() if widths else ()))
    require_some(shape, "the blocks")
    return shape, np.result_type(*types)


def _as_rows(block: Block, first: int) -> Array:
    """Return a block as numbers (b, d), or as objects (b,)."""
    if isinstance(block, list | tuple):
        return np.fromiter(block, dtype=object, count=len(block))
    A = np.asarray(block)
    if A.ndim == 1 and A.dtype.kind in "UTO":
        return np.fromiter(A.tolist(), dtype=object, count=len(A))
    if A.ndim != 2 or A.dtype.kind not in NUMBERS:
        raise ValueError(
            f"the block from row {first} on is of shape {A.shape} and type {A.dtype}; pass arrays "
            "of numbers in two dimensions, or lists of objects"
        )
    return A
