"""Routines of BLAS and LAPACK that run without the GIL, unlike the wrappers of scipy."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import scipy.linalg.cython_blas
import scipy.linalg.cython_lapack
from numpy.typing import NDArray

Array = NDArray[Any]

_TEXT, _POINTER, _INTEGER = ctypes.c_char_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int)


def _routine(module: Any, name: str, *arguments: Any) -> Any:
    """A routine by its address."""
    capsule = module.__pyx_capi__[name]
    name_of = ctypes.PYFUNCTYPE(_TEXT, ctypes.py_object)
    pointer_of = ctypes.PYFUNCTYPE(_POINTER, ctypes.py_object, _TEXT)
    signature = name_of(("PyCapsule_GetName", ctypes.pythonapi))(capsule)
    address = pointer_of(("PyCapsule_GetPointer", ctypes.pythonapi))(capsule, signature)
    return ctypes.CFUNCTYPE(None, *arguments)(address)


_SYRK = _routine(
    scipy.linalg.cython_blas, "dsyrk", _TEXT, _TEXT, _INTEGER, _INTEGER, _POINTER, _POINTER,
    _INTEGER, _POINTER, _POINTER, _INTEGER,
)  # fmt: skip
_POTRF = _routine(
    scipy.linalg.cython_lapack, "dpotrf", _TEXT, _INTEGER, _POINTER, _INTEGER, _INTEGER
)
_SYEVD = _routine(
    scipy.linalg.cython_lapack, "dsyevd", _TEXT, _TEXT, _INTEGER, _POINTER, _INTEGER, _POINTER,
    _POINTER, _INTEGER, _POINTER, _INTEGER, _INTEGER,
)  # fmt: skip


_ONE = np.ones(1)
_ONE_AT = _ONE.ctypes.data  # its address, while it lives


def add_gram(C: Array, triangle: Array) -> Array:
    """Add C'C to the upper triangle of a matrix (m, m) in Fortran order, for rows C (b, m)."""
    C = np.ascontiguousarray(C, dtype=np.float64)
    b, m = C.shape
    columns, depth = ctypes.c_int(m), ctypes.c_int(b)
    _SYRK(
        b"U", b"N", columns, depth, _ONE_AT, C.ctypes.data, columns,
        _ONE_AT, triangle.ctypes.data, columns,
    )  # fmt: skip
    return triangle


def cholesky(A: Array) -> Array:
    """The factor of a symmetric matrix in C order, in its lower triangle; A is overwritten.

    The result is in Fortran order, and its upper triangle holds what was there before.
    ``LinAlgError`` says that the matrix is not positive definite.
    """
    assert A.dtype == np.float64
    assert A.flags.c_contiguous
    assert A.shape == (len(A), len(A))
    size, status = ctypes.c_int(len(A)), ctypes.c_int(0)
    leading = ctypes.c_int(max(len(A), 1))
    _POTRF(b"L", size, A.ctypes.data, leading, status)
    if status.value:
        raise np.linalg.LinAlgError(f"the pivot of row {status.value - 1} is not positive")
    if not np.isfinite(np.diagonal(A)).all():  # some versions of LAPACK go on with NaN
        raise np.linalg.LinAlgError("the matrix is not finite")
    return A.T


def eigh(A: Array) -> tuple[Array, Array]:
    """Eigenvalues in rising order, and eigenvectors, which take the place of A in its memory.

    A is a finite symmetric matrix in Fortran order. The method is the divide and conquer of LAPACK.
    """
    n = len(A)
    n_numbers = 1 + 6 * n + 2 * n * n
    if n_numbers > np.iinfo(np.intc).max:
        raise ValueError(
            f"LAPACK does not decompose a matrix of {n} rows and columns; use fewer landmarks"
        )
    return _syevd(b"V", A, n_numbers, 3 + 5 * n), A


def eigvalsh(A: Array) -> Array:
    """The eigenvalues alone, in rising order; what is left of A is of no use."""
    return _syevd(b"N", A, 1 + 2 * len(A), 1)


def _syevd(job: bytes, A: Array, n_numbers: int, n_integers: int) -> Array:
    """The eigenvalues of A, which is overwritten; LAPACK asks for so much memory to work with."""
    n = len(A)
    assert A.dtype == np.float64
    assert A.flags.f_contiguous
    assert A.shape == (n, n)
    D, work, integers = np.empty(n), np.empty(n_numbers), np.empty(n_integers, dtype=np.intc)
    size, leading, status = ctypes.c_int(n), ctypes.c_int(max(n, 1)), ctypes.c_int(0)
    _SYEVD(
        job, b"L", size, A.ctypes.data, leading, D.ctypes.data, work.ctypes.data,
        ctypes.c_int(work.size), integers.ctypes.data, ctypes.c_int(integers.size), status,
    )  # fmt: skip
    if status.value:
        raise np.linalg.LinAlgError("the eigenvalues did not converge")
    return D
