"""KreinNystroem beside other low-rank approximations: python -m benchmarks.peers

The measure and the 45 cases are those of benchmarks/approximation.py, and so are the seeds, of
which there are as many as the notes say. The methods are those of benchmarks/peer_methods.py.
None of the 45 matrices is positive definite, which RPCholesky needs, so all methods are also
compared on a Gaussian kernel on the same five data sets.

The comparison favours ours in one way: its landmarks and its core were chosen by their errors on
these 45 cases, and the other methods have no part that was. The page of approximation.py has
cases that the choice was not made on, but the other methods have not been measured on them.
"""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks import approximation, peer_methods, summary, tables
from benchmarks.measure import Figure


def report(figures: Sequence[Figure]) -> list[tables.Table]:
    """The tables, and below the first what the methods are."""
    made = summary.peer_tables(figures)
    for text in (__doc__, peer_methods.__doc__):
        if made:
            made[0].notes += ["", *(text or "").splitlines()[2:]]
    return made


PAGE = approximation.Page(
    "benchmarks.peers", __doc__ or "", "Low-rank approximation: other methods",
    ("default", "peers", "definite"), report,
)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> list[Figure]:
    return approximation.main(arguments, PAGE)


if __name__ == "__main__":
    main()
