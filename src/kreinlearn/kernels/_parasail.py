"""Calls of parasail from compiled code: its Python functions take six times as long."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from kreinlearn.kernels._compiled import optimised
from kreinlearn.kernels.base import Array


def _call_at(context: Any, address: Any, words: Any) -> Any:
    """Call a C function of integers and pointers by its address, in compiled code.

    The upper half of a returned ``int`` has no meaning.
    """

    def generate(target: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = ir.IntType(64)
        pointer = ir.FunctionType(word, [word] * len(words)).as_pointer()
        function = builder.inttoptr(args[0], pointer)
        unpack: Any = cgutils.unpack_tuple
        return builder.call(function, unpack(builder, args[1]))

    return types.int64(types.int64, words), generate


_call: Any = intrinsic(_call_at)


@optimised
def _score(profile: int, x: Array, gaps: Array, calls: Array) -> float:
    """The score of one alignment; NaN if there was no memory for it."""
    at = np.int64(x.ctypes.data)
    result = _call(calls[1], (profile, at, np.int64(len(x)), gaps[0], gaps[1]))
    if result == 0:
        return np.nan
    score = np.int32(_call(calls[2], (result,)))
    _call(calls[3], (result,))
    return float(score)


@optimised
def scores(
    A: Array, a: Array, Z: Array, z: Array, matrix: int, gaps: Array, calls: Array, own: bool,
    out: Array,
) -> None:  # fmt: skip
    """Write scores into ``out`` (n, m), or with ``own`` those of each column to itself, (n, 1).

    Nothing is written where one of the two sequences is empty.
    """
    for j in range(len(z) - 1):
        if z[j + 1] == z[j]:
            continue
        x = Z[z[j] : z[j + 1]]
        profile = _call(calls[0], (np.int64(x.ctypes.data), np.int64(len(x)), matrix))
        for i in range(j if own else 0, j + 1 if own else len(a) - 1):
            if a[i + 1] > a[i]:
                out[i, 0 if own else j] = _score(profile, A[a[i] : a[i + 1]], gaps, calls)
        _call(calls[4], (profile,))
