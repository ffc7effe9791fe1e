"""What was found out about a similarity, each figure by its definition, and how it is said."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kreinlearn.progress import name_of
from kreinlearn.solvers.spectrum import Spectrum, indefiniteness_of, power_of_two_scale

Array = NDArray[Any]
TRIANGLES = 200_000  # triples of objects looked at
ROUNDING = 1e-9  # share of the largest value up to which a difference is none
ERROR = 0.05  # share of |K| that an approximation may miss
SHUFFLES = 99  # of labels: real ones that exceed them all do so by chance once in a hundred
SMALL = 1e-3  # an indefiniteness up to this is nearly nothing


@dataclass(frozen=True)
class Inspection:
    """What ``inspect`` found; ``print`` it, or read the attributes. Shares are from 0 to 1."""

    kind: str  # "similarity" or "dissimilarity"
    given: str  # as a "matrix", "function of pairs", "function of blocks" or "kernel"
    looks_like_dissimilarity: bool  # a similarity with a zero diagonal and no negative value
    n_objects: int
    n_sampled: int
    asymmetry: float | None  # largest |k(x, z) - k(z, x)| over the largest |k|; None: it drifts
    drift: float  # largest change of a value evaluated again, over the largest |k|
    indefiniteness: dict[int, float]  # number of objects -> indefiniteness at that number
    eigenvalues: Array  # of the sampled similarity, by decreasing magnitude, rounding left out
    signature: tuple[int, int, int]  # positive, negative, zero eigenvalues
    effective_rank: int  # eigenvalues that make up all but ERROR of |K|
    n_landmarks: int | None  # enough for an approximation that good; None: the sample is too small
    self_dissimilarity: float  # largest d(x, x) over the largest d; taken as 0 by all else
    negative_squares: float  # share of pairs with k(x, x) + k(z, z) < 2 k(x, z)
    triangle_violations: float | None  # share of triples; of a dissimilarity
    duplicates: int  # pairs in the sample that nothing tells apart
    label_signal: float | None  # share of y'|K|y in the negative part
    label_excess: float | None  # |K- y|, K- the negative part, over the most of it for shuffled y
    advice: str
    kernel: str = ""  # its name and the parameters that were given

    @property
    def exact(self) -> bool:
        """All objects were looked at."""
        return self.n_sampled == self.n_objects

    @property
    def positive_definite(self) -> bool:
        return self.signature[1] == 0

    @property
    def indistinct(self) -> bool:
        """No two objects can be told apart, or there is but one."""
        return self.duplicates == self.n_sampled * (self.n_sampled - 1) // 2

    def rows(self) -> list[tuple[str, str]]:
        """Name and value of every finding, as text."""
        return [(name, value) for name, value in self._rows() if value]

    def _rows(self) -> list[tuple[str, str]]:
        positive, negative, zero = self.signature
        looked = "all" if self.exact else f"{self.n_sampled:,} of them, drawn at random"
        sizes = ", ".join(f"{percent(share)} of {n:,}" for n, share in self.indefiniteness.items())
        rank = f"{self.effective_rank} of {self.n_sampled} (all but {ERROR:.0%} of |K|)"
        violated = self.triangle_violations
        return [
            ("objects", f"{self.n_objects:,}; looked at {looked}"),
            ("kind", _kind(self)),
            ("symmetric", "not known" if self.asymmetry is None else _holds(self.asymmetry)),
            ("deterministic", _holds(self.drift)),
            ("positive definite", "yes" if self.positive_definite else "no"),
            ("indefiniteness", sizes),
            ("signature", f"{positive} positive, {negative} negative, {zero} zero"),
            ("effective rank", rank),
            ("enough landmarks", f"{self.n_landmarks:,}" if self.n_landmarks else "more than seen"),
            ("self-dissimilarity", _of_self(self)),
            ("negative squared distances", f"{percent(self.negative_squares)} of pairs"),
            (
                "triangle inequality broken",
                "" if violated is None else f"{percent(violated)} of triples",
            ),
            ("duplicates", f"{self.duplicates:,} pairs in the sample"),
            ("label signal in the negative part", _signal(self)),
        ]

    def __str__(self) -> str:
        width = max(len(name) for name, _ in self.rows())
        lines = [f"{name:<{width}}  {value}" for name, value in self.rows()]
        return "\n".join([*lines, "", self.advice])


def percent(share: float) -> str:
    """Two digits that count, however small."""
    return f"{100 * share:.2g} %" if share < 0.1 else f"{100 * share:.1f} %"


def described(kernel: Any, params: Any) -> str:
    """ "levenshtein, normalized=True"."""
    return ", ".join([name_of(kernel), *(f"{k}={v!r:.40}" for k, v in (params or {}).items())])


def _holds(gap: float) -> str:
    return f"no, off by {gap:.2g}" if gap else "yes"


def _kind(found: Inspection) -> str:
    doubt = "; it looks like a dissimilarity" if found.looks_like_dissimilarity else ""
    return f"{found.kind}, given as a {found.given}{doubt}"


def _of_self(found: Inspection) -> str:
    if found.kind == "similarity":
        return ""
    share = found.self_dissimilarity
    return f"{share:.2g} of the largest; counted as zero here" if share else "none"


def _signal(found: Inspection) -> str:
    if found.label_signal is None:
        return ""
    times = f"{found.label_excess:.2g} times the most of {SHUFFLES} shuffles"
    return f"{percent(found.label_signal)} of y'|K|y; |K- y| is {times}"


# Figures


def nested_sizes(s: int) -> list[int]:
    """A quarter, a half and all of a sample; a small one is taken whole."""
    return sorted({n for n in (s // 4, s // 2, s) if n >= min(s, 20)})


def effective_rank(D: Array, error: float = ERROR) -> int:  # D by decreasing magnitude
    """The least k for which the eigenvalues after the k-th have a norm of ``error`` of all."""
    tails = np.sqrt(np.append(np.cumsum(np.square(D[::-1]))[::-1], 0.0))
    return int(np.argmax(tails <= error * tails[0]))


def triangle_violations(D: Array, rng: np.random.Generator) -> float:
    """Share of drawn triples of distinct objects with d(x, z) > d(x, y) + d(y, z)."""
    n = len(D)
    if n < 3:
        return 0.0
    x, y, z = rng.integers(n, size=(3, TRIANGLES))
    apart = (x != y) & (y != z) & (x != z)
    x, y, z = x[apart], y[apart], z[apart]
    longer = D[x, z] - D[x, y] - D[y, z] > ROUNDING * D.max(initial=0.0)
    return float(np.mean(longer))


def squared_distances(K: Array) -> Array:
    own = np.diagonal(K)
    return np.asarray(own[:, None] + own - 2 * K)


def negative_squares(K: Array) -> float:
    pairs = squared_distances(K)[np.triu_indices(len(K), 1)]
    return float(np.mean(pairs < -ROUNDING * np.abs(K).max(initial=0.0))) if len(pairs) else 0.0


def duplicates(K: Array) -> int:
    """Pairs of objects with the same similarities to all objects."""
    limit = ROUNDING * np.abs(K).max(initial=0.0)
    close = np.triu(np.abs(squared_distances(K)) <= limit, 1)
    pairs = ((K[a], K[close[a]]) for a in np.flatnonzero(close.any(axis=1)))
    return sum(int(np.all(np.abs(rows - row) <= limit, axis=1).sum()) for row, rows in pairs)


def label_signal(spectrum: Spectrum, y: Array) -> float:
    """Share of the negative part in y'|K|y, y (n,) or (n, outputs) less its mean."""
    projected = np.square(spectrum.U.T @ _centred(y)).sum(axis=1)
    return indefiniteness_of(spectrum.D * projected)


def label_excess(spectrum: Spectrum, y: Array, rng: np.random.Generator) -> float:
    """|K- y|, K- the negative part of K, over the most of it for any of SHUFFLES shuffles of y."""
    negative, Y = spectrum.D < 0, _centred(y)
    UD = (spectrum.U * (spectrum.D / power_of_two_scale(spectrum.D)))[:, negative]

    def size(Y: Array) -> float:
        return float(np.linalg.norm(UD.T @ Y))

    most = max(size(Y[rng.permutation(len(Y))]) for _ in range(SHUFFLES))
    return size(Y) / most if most else 0.0


def _centred(y: Array) -> Array:  # (n,) or (n, outputs) -> (n, outputs)
    Y = y.reshape(len(y), -1).astype(np.float64)
    return np.asarray(Y - Y.mean(axis=0))
