"""Gram matrices of blocks of kernel values, summed without the interpreter lock."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
import scipy.linalg.cython_blas

from kreinlearn.data.tiles import tiles
from kreinlearn.sums import Array
from kreinlearn.sums.parallel import sum_over_blocks

STRIP = 128  # columns of a triangle that are added at once


@dataclass
class Gram:
    """C'wC and the weighted column sums of blocks C of rows.

    Only the upper triangle of ``triangle`` is used, in Fortran order; ``matrix`` is all of it.
    """

    triangle: Array  # (m, m)
    sums: Array  # (m,)
    single: bool = False  # whether float32 blocks are multiplied in float32; sums are float64

    @classmethod
    def zeros(cls, m: int, *, single: bool = False) -> Self:
        return cls(np.zeros((m, m), order="F"), np.zeros(m), single)

    def add(self, C: Array, w: Array | None = None) -> None:
        """Add a block of rows (b, m) with weights (b,)."""
        if w is not None:
            self.sums += w @ C
            C = np.sqrt(w).astype(C.dtype, copy=False)[:, None] * C
        else:
            self.sums += C.sum(axis=0, dtype=np.float64)
        if C.dtype == np.float32 and self.single:
            self.triangle += add_gram(C, np.zeros(self.triangle.shape, np.float32, order="F"))
        else:
            add_gram(np.asarray(C, dtype=np.float64), self.triangle)

    def __iadd__(self, other: Self) -> Self:
        return self._combine(other, np.add)

    def __isub__(self, other: Self) -> Self:
        return self._combine(other, np.subtract)

    def _combine(self, other: Self, operation: Callable[..., Array]) -> Self:
        for strip in self._strips():
            operation(self.triangle[strip], other.triangle[strip], out=self.triangle[strip])
        operation(self.sums, other.sums, out=self.sums)
        return self

    def clear(self) -> None:
        """Set all sums to zero, to be used again."""
        for strip in self._strips():
            self.triangle[strip] = 0.0
        self.sums[:] = 0.0

    def _strips(self) -> Iterator[tuple[slice, slice]]:
        """Strips of columns that cover the upper triangle and little else."""
        m = len(self.sums)
        for j in range(0, m, STRIP):
            yield slice(0, min(j + STRIP, m)), slice(j, j + STRIP)

    @property
    def matrix(self) -> Array:  # (m, m)
        upper = np.triu(self.triangle)
        return np.asarray(upper + np.triu(upper, 1).T)


def gram_of(C: Array, workers: int = 1) -> Gram:
    """C'C and the column sums of a matrix in memory, summed in the fixed tiles."""

    def add(total: Gram, span: tuple[int, int]) -> None:
        total.add(C[slice(*span)])

    zero = partial(Gram.zeros, C.shape[1])
    return sum_over_blocks(add, tiles(len(C)), zero, len(C), workers=workers)


def _blas(name: str) -> Any:
    """A BLAS routine by its address; unlike the wrappers of scipy it runs without the GIL."""
    capsule = scipy.linalg.cython_blas.__pyx_capi__[name]
    text, integer, pointer = ctypes.c_char_p, ctypes.POINTER(ctypes.c_int), ctypes.c_void_p
    name_of = ctypes.PYFUNCTYPE(text, ctypes.py_object)
    pointer_of = ctypes.PYFUNCTYPE(pointer, ctypes.py_object, text)
    signature = name_of(("PyCapsule_GetName", ctypes.pythonapi))(capsule)
    address = pointer_of(("PyCapsule_GetPointer", ctypes.pythonapi))(capsule, signature)
    matrix = pointer, pointer, integer  # a factor, the matrix, its leading dimension
    return ctypes.CFUNCTYPE(None, text, text, integer, integer, *matrix, *matrix)(address)


_SYRK = {np.dtype(np.float64): _blas("dsyrk"), np.dtype(np.float32): _blas("ssyrk")}


def add_gram(C: Array, triangle: Array) -> Array:
    """Add C'C to the upper triangle of a matrix (m, m) in Fortran order, for rows C (b, m)."""
    C = np.ascontiguousarray(C)
    b, m = C.shape
    one = np.ones(1, C.dtype)
    columns, depth = ctypes.c_int(m), ctypes.c_int(b)
    _SYRK[C.dtype](
        b"U", b"N", columns, depth, one.ctypes.data, C.ctypes.data, columns,
        one.ctypes.data, triangle.ctypes.data, columns,
    )  # fmt: skip
    return triangle
