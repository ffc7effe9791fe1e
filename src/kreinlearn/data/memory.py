"""The memory budget: what a fit may take, and the one error that says when it needs more."""

from __future__ import annotations

import os
import re
from pathlib import Path

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}


_UNITS |= {"ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}


def free_memory() -> int:
    """Return the bytes that this process may still take within the limit of its container."""
    free = _system_memory()
    if free is None:
        try:
            free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
        except (AttributeError, OSError, ValueError):
            free = 4 * 2**30
    try:
        group = Path("/sys/fs/cgroup")
        limit = int((group / "memory.max").read_text())  # "max": no limit
        return max(0, min(free, limit - int((group / "memory.current").read_text())))
    except (OSError, ValueError):
        return free


def _system_memory() -> int | None:
    try:
        text = Path("/proc/meminfo").read_text(encoding="ascii")
    except OSError:
        return None
    found = re.search(r"MemAvailable:\s+(\d+)", text)
    return int(found[1]) * 1024 if found else None


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


def require_memory(needed: int, budget: int, what: str, remedy: str) -> None:
    """Raise a MemoryError before an allocation that would exceed the budget, never after it."""
    if needed > budget:
        raise MemoryError(
            f"{what} needs {in_words(needed)} but memory_budget is {in_words(budget)}; {remedy}"
        )
