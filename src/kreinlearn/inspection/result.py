"""What ``inspect`` returns, and how it is printed."""

from __future__ import annotations

from dataclasses import dataclass

from kreinlearn.inspection.arguments import Array
from kreinlearn.inspection.measures import ERROR, NEIGHBOURS, SHUFFLES

NO_BETTER = " Neighbours tell nothing here; learners may, and evaluate compares them."


@dataclass(frozen=True)
class Inspection:
    """What ``inspect`` has found out about a similarity or dissimilarity.

    Print it, or read its attributes. All shares are from 0 to 1.

    Attributes
    ----------
    kind : str
        "similarity" or "dissimilarity".
    given : str
        How it was given: as a "matrix", "function of pairs", "function of blocks" or "kernel".
    looks_like_dissimilarity : bool
        Whether a similarity has a zero diagonal and no negative value.
    n_objects : int
        The number of objects.
    n_sampled : int
        The number of objects that were looked at.
    asymmetry : float or None
        The largest \\|k(x, z) - k(z, x)\\| relative to the largest \\|k\\|; None if values change
        when they are evaluated again.
    drift : float
        The largest change of a value that is evaluated again, relative to the largest \\|k\\|.
    indefiniteness : dict
        The indefiniteness of a quarter, a half and all of the sample, by number of objects.
    eigenvalues : ndarray
        Eigenvalues of the sampled similarity by decreasing magnitude, without those that are zero
        up to rounding.
    signature : tuple of three ints
        The numbers of positive, negative and zero eigenvalues.
    effective_rank : int
        The number of eigenvalues that make up all but five percent of the norm of K.
    n_landmarks : int or None
        A number of landmarks that approximates K that well; None if the sample is too small to
        tell.
    self_dissimilarity : float
        The largest d(x, x) relative to the largest d. All other findings take it as zero.
    negative_squares : float
        The share of pairs with k(x, x) + k(z, z) < 2 k(x, z).
    triangle_violations : float or None
        The share of triples that break the triangle inequality; None for a similarity.
    duplicates : int
        The number of pairs in the sample that no similarity tells apart.
    label_signal : float or None
        The share of the negative part of K in y'\\|K\\|y; None without y.
    label_excess : float or None
        \\|K- y\\|, where K- is the negative part of K, relative to its largest value for shuffled
        y; None without y.
    advice : str
        What the findings mean and what to do, in plain words.
    kernel : str
        The name of the kernel and the parameters that were given.
    neighbours_score : float or None
        How well y of each sampled object is predicted by its five nearest others: the share of
        right classes, or R^2 of numbers; None without y.
    guess_score : float or None
        The share of right classes if the most frequent one is always guessed; None for numbers.
    """

    kind: str
    given: str
    looks_like_dissimilarity: bool
    n_objects: int
    n_sampled: int
    asymmetry: float | None
    drift: float
    indefiniteness: dict[int, float]
    eigenvalues: Array
    signature: tuple[int, int, int]
    effective_rank: int
    n_landmarks: int | None
    self_dissimilarity: float
    negative_squares: float
    triangle_violations: float | None
    duplicates: int
    label_signal: float | None
    label_excess: float | None
    advice: str
    kernel: str = ""
    neighbours_score: float | None = None
    guess_score: float | None = None

    @property
    def exact(self) -> bool:
        """Whether all objects were looked at."""
        return self.n_sampled == self.n_objects

    @property
    def positive_definite(self) -> bool:
        """Whether the sample has no negative eigenvalue."""
        return self.signature[1] == 0

    @property
    def indistinct(self) -> bool:
        """Whether no two objects can be told apart, or there is only one."""
        return self.duplicates == self.n_sampled * (self.n_sampled - 1) // 2

    @property
    def answer(self) -> str:
        """How well y can be told from neighbours, in plain words; nothing if that is not known."""
        score, guess = self.neighbours_score, self.guess_score
        if score is None or self.indistinct or self.looks_like_dissimilarity:
            return ""
        k = min(NEIGHBOURS, self.n_sampled - 1)
        who = f"Predicted by {k} nearest neighbours (leave-one-out)"
        if guess is None:
            share = f"{score:.0%}" if score > 0 else "nothing"
            said = f"{share} of the variance of the target is explained (R^2 = {score:.2f})."
        else:
            said = (
                f"{score:.0%} of {self.n_sampled:,} objects get the right class; always guessing "
                f"the most frequent class gets {guess:.0%} right."
            )
        return f"{who}, {said}{'' if score > (guess or 0.0) else NO_BETTER}"

    def rows(self) -> list[tuple[str, str]]:
        """The name and the value of every finding, as text."""
        positive, negative, zero = self.signature
        looked = "all" if self.exact else f"{self.n_sampled:,} of them, drawn at random"
        doubt = "; it looks like a dissimilarity" if self.looks_like_dissimilarity else ""
        sizes = ", ".join(f"{percent(share)} of {n:,}" for n, share in self.indefiniteness.items())
        rank = f"{self.effective_rank} of {self.n_sampled} (all but {ERROR:.0%} of |K|)"
        symmetric = "not known" if self.asymmetry is None else _holds(self.asymmetry)
        enough = f"{self.n_landmarks:,}" if self.n_landmarks else "more than seen"
        broken = self.triangle_violations
        findings = {
            "objects": f"{self.n_objects:,}; looked at {looked}",
            "kind": f"{self.kind}, given as a {self.given}{doubt}",
            "symmetric": symmetric,
            "deterministic": _holds(self.drift),
            "positive definite": "yes" if self.positive_definite else "no",
            "indefiniteness": sizes,
            "signature": f"{positive} positive, {negative} negative, {zero} zero",
            "effective rank": rank,
            "enough landmarks": enough,
            "self-dissimilarity": self._of_self(),
            "negative squared distances": f"{percent(self.negative_squares)} of pairs",
            "triangle inequality broken": "" if broken is None else f"{percent(broken)} of triples",
            "duplicates": f"{self.duplicates:,} pairs in the sample",
            "label signal in the negative part": self._signal(),
        }
        return [(name, value) for name, value in findings.items() if value]

    def _of_self(self) -> str:
        if self.kind == "similarity":
            return ""
        share = self.self_dissimilarity
        return f"{share:.2g} of the largest; counted as zero here" if share else "none"

    def _signal(self) -> str:
        if self.label_signal is None:
            return ""
        times = f"{self.label_excess:.2g} times the most of {SHUFFLES} shuffles"
        return f"{percent(self.label_signal)} of y'|K|y; |K- y| is {times}"

    def __str__(self) -> str:
        rows = self.rows()
        width = max(len(name) for name, _ in rows)
        said = f"{self.answer} {self.advice}".lstrip()
        return "\n".join([said, "", *(f"{name:<{width}}  {value}" for name, value in rows)])


def percent(share: float) -> str:
    """A share in percent, with two significant digits however small it is."""
    return f"{100 * share:.2g} %" if share < 0.1 else f"{100 * share:.1f} %"


def _holds(gap: float) -> str:
    return f"no, off by {gap:.2g}" if gap else "yes"
