"""Loops that numba compiles when they are first called.

Importing numba takes as long as importing the rest of the library, and kernels of strings, for
example, do not need it. So modules of kernels do not import it at the top.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])

COMPILING = 1.0  # about the seconds to import numba and to compile a loop
OPTIONS: dict[str, Any] = {"error_model": "numpy", "fastmath": {"contract"}}


def compiled(function: F) -> F:
    """Compile a loop at its first call, with a cache on disk and without the GIL."""
    return cast(F, Compiled(function))


def as_written(function: F) -> F:
    """The same, with the roundings that are written down: no fused multiply-adds."""
    return cast(F, Compiled(function, {"error_model": "numpy"}))


def cached_njit(function: F, **options: Any) -> F:
    """numba.njit, cached on disk wherever some cache directory can be written."""
    from numba import njit

    try:
        return cast(F, njit(nogil=True, cache=True, **options)(function))
    except RuntimeError:  # "cannot cache function ...: no locator available"
        return cast(F, njit(nogil=True, **options)(function))


def optimised(function: F) -> F:
    """The same with contraction to fused multiply-adds, for modules that import numba anyway."""
    return cached_njit(function, **OPTIONS)


def pays(loop: Any, seconds: float) -> bool:
    """Whether a loop is worth compiling, of which numpy takes some seconds for one more call.

    It is when all calls so far would take numpy longer. Both have to give the same bits.
    """
    loop.by_numpy += seconds
    return bool(loop.by_numpy > COMPILING)


class Compiled:
    """A function that can be called from Python and from other compiled functions."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any] | None = None) -> None:
        self.py_func = function
        self.options = OPTIONS if options is None else options
        self.by_numpy = 0.0  # seconds

    @cached_property
    def dispatcher(self) -> Any:
        return cached_njit(self.py_func, **self.options)

    @property
    def _numba_type_(self) -> Any:
        """What numba asks for where a compiled function calls this one."""
        return self.dispatcher._numba_type_

    def __call__(self, *given: Any) -> Any:
        return self.dispatcher(*given)
