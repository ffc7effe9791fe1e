"""How the work of one fit is done, whatever it computes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kreinlearn.data.memory import budget_bytes, require_memory
from kreinlearn.progress import Progress

if TYPE_CHECKING:
    from kreinlearn.pairs.store.evaluation import Stored


@dataclass(frozen=True)
class Session:
    """Threads, memory, precision, store and progress of one fit."""

    workers: int = 1
    budget: int = field(default_factory=lambda: budget_bytes(None))  # bytes
    budget_given: bool = False  # whether the budget is the user's, or a share of the free memory
    progress: Progress = field(default_factory=Progress)
    store: Stored | None = None  # of kernel values on disk
    single: bool = False  # float32 blocks are multiplied in float32

    def require_memory(self, n_bytes: int, what: str, remedy: str) -> None:
        """Raise MemoryError before an allocation that does not fit the budget."""
        require_memory(n_bytes, self.budget, what, remedy)
