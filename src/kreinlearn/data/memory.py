"""The memory budget: what a fit may take, and the one error that says when it needs more."""

from __future__ import annotations

import os
import re
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_UNITS |= {"ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}


def free_memory() -> int:
    """Return the bytes that this process may still take within the limit of its container."""
    free, group = _system_memory(), Path("/sys/fs/cgroup")
    with suppress(OSError, ValueError):  # "max": no limit
        limit = int((group / "memory.max").read_text(encoding="ascii"))
        taken = int((group / "memory.current").read_text(encoding="ascii"))
        free = max(0, min(free, limit - taken))
    return free


def _system_memory() -> int:
    """Return what the system calls available, or else half of its memory, or else 4 GiB."""
    with suppress(OSError):
        text = Path("/proc/meminfo").read_text(encoding="ascii")
        if available := re.search(r"MemAvailable:\s+(\d+)", text):
            return int(available[1]) * 1024
    if sys.platform != "win32":  # which has no sysconf
        with suppress(OSError, ValueError):
            return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    return 4 * 2**30


def budget_bytes(memory_budget: int | float | str | None) -> int:
    """Return bytes for a number, a text such as "200MB", or None: a quarter of what is free."""
    if memory_budget is None:
        return free_memory() // 4
    if isinstance(memory_budget, str):
        match = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*([kmgt]i?)?b?\s*", memory_budget, re.I)
        if not match:
            raise ValueError(
                f"memory_budget={memory_budget!r} is not understood; "
                'pass bytes, or a text such as "200MB" or "4GiB"'
            )
        return int(float(match[1]) * _UNITS[(match[2] or "").lower()])
    return int(memory_budget)


def in_words(n_bytes: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if n_bytes < 999.5:  # rounds to three digits
            return f"{n_bytes:.3g} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.3g} TB"


def require_memory(needed: float, budget: float, what: str, remedy: str) -> None:
    """Raise a MemoryError before an allocation that would exceed the budget, never after it."""
    if needed > budget:
        raise MemoryError(
            f"{what} needs {in_words(needed)} but memory_budget is {in_words(budget)}; {remedy}"
        )


@dataclass(frozen=True)
class Resources:
    """How the work of an estimator is done: for the parameter ``resources``.

    Nothing here changes what is learned, beyond rounding.

    Parameters
    ----------
    memory_budget : int, float, str or None, default=None
        How much memory a fit may take beside X: bytes, or a text such as "200MB" or "4GiB". None
        is a quarter of the memory that is free. A fit that would need more is refused before it
        begins, with a message that says what to do.
    store : str, Path or None, default=None
        A folder that keeps the kernel values of ``fit`` on disk, for kernels that take long. A fit
        that was interrupted goes on where it stopped, and a later fit with other penalties, more
        landmarks or more rows after the same ones evaluates no pair again. Values of other rows,
        another kernel, other parameters or another version are refused.

    Examples
    --------
    >>> import numpy as np
    >>> from kreinlearn import KreinRidge, Resources
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> model = KreinRidge(resources=Resources(memory_budget="500MB"), random_state=0)
    >>> model.fit(X, X[:, 0]).predict(X).shape
    (200,)
    """

    memory_budget: int | float | str | None = None
    store: str | os.PathLike[str] | None = None
