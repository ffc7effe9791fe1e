"""Gram matrices of blocks of kernel values, summed without holding the interpreter lock."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.linalg.cython_blas
from numpy.typing import NDArray

from kreinlearn.data.tiles import tiles
from kreinlearn.sums.parallel import sum_over_blocks

Array = NDArray[Any]


STRIP = 128  # columns of a triangle that are added at a time


@dataclass
class Gram:
    """C'wC (upper triangle, Fortran order) and the weighted column sums of row blocks C."""

    triangle: Array  # (m, m)
    sums: Array  # (m,)
    single: bool = False  # float32 blocks multiplied in float32, summed in float64

    @classmethod
    def zeros(cls, m: int, *, single: bool = False) -> Self:
        return cls(np.zeros((m, m), order="F"), np.zeros(m), single)

    def add(self, C: Array, w: Array | None = None) -> None:
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
        for strip in self._strips():
            self.triangle[strip] += other.triangle[strip]
        self.sums += other.sums
        return self

    def __isub__(self, other: Self) -> Self:
        for strip in self._strips():
            self.triangle[strip] -= other.triangle[strip]
        self.sums -= other.sums
        return self

    def clear(self) -> None:
        for strip in self._strips():
            self.triangle[strip] = 0.0
        self.sums[:] = 0.0

    def _strips(self) -> Iterator[tuple[slice, slice]]:
        """The upper triangle in parts: what is below stays untouched."""
        m = len(self.sums)
        for j in range(0, m, STRIP):
            yield slice(0, min(j + STRIP, m)), slice(j, j + STRIP)

    @property
    def matrix(self) -> Array:  # (m, m)
        upper = np.triu(self.triangle)
        return np.asarray(upper + np.triu(upper, 1).T)


def gram_of(C: Array, workers: int = 1) -> Gram:
    """C'C and column sums of a matrix in memory, in the fixed tiles."""

    def add(total: Gram, span: tuple[int, int]) -> None:
        total.add(C[slice(*span)])

    return sum_over_blocks(
        add, tiles(len(C)), lambda: Gram.zeros(C.shape[1]), len(C), workers=workers
    )


def _blas(name: str) -> Any:
    """A BLAS routine by its address: called so it releases the GIL, as scipy's does not."""
    capsule = scipy.linalg.cython_blas.__pyx_capi__[name]
    get_name = ctypes.pythonapi.PyCapsule_GetName
    get_name.restype, get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype = ctypes.c_void_p
    get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    integer, pointer = ctypes.POINTER(ctypes.c_int), ctypes.c_void_p
    text, one = ctypes.c_char_p, pointer
    prototype = ctypes.CFUNCTYPE(
        None, text, text, integer, integer, one, pointer, integer, one, pointer, integer
    )
    return prototype(get_pointer(capsule, get_name(capsule)))


_SYRK = {np.dtype(np.float64): _blas("dsyrk"), np.dtype(np.float32): _blas("ssyrk")}


def add_gram(C: Array, triangle: Array) -> Array:
    """triangle += C'C, upper triangle only; C (b, m) in rows, triangle (m, m) in Fortran order."""
    C = np.ascontiguousarray(C)
    b, m = C.shape
    one = np.ones(1, C.dtype)
    columns, depth = ctypes.c_int(m), ctypes.c_int(b)
    _SYRK[C.dtype](
        b"U", b"N", columns, depth, one.ctypes.data, C.ctypes.data, columns,
        one.ctypes.data, triangle.ctypes.data, columns,
    )  # fmt: skip
    return triangle
