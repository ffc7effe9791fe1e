"""inspect: draw objects, evaluate them, look."""

from __future__ import annotations

import warnings
from dataclasses import replace
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils._param_validation import Interval, validate_params
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import column_or_1d

from kreinlearn.blocks import as_generator, length, take
from kreinlearn.estimators._validation import asymmetry_of
from kreinlearn.estimators.transformer import KreinNystroem
from kreinlearn.inspection import findings
from kreinlearn.inspection.advice import advice
from kreinlearn.inspection.findings import Array, Inspection
from kreinlearn.inspection.sample import require_room, similarity_from
from kreinlearn.kernels import Kernel
from kreinlearn.kernels._base import symmetry_rtol
from kreinlearn.kernels.precomputed import Precomputed
from kreinlearn.rows import evaluate
from kreinlearn.spectrum import indefiniteness_of, indefiniteness_of_matrix, signed_eigh

SAMPLE_SIZE = 1000
PROBED = 40  # objects evaluated both ways round, and twice
LANDMARKS_A_RANK = 2  # the default comes within a third of the best approximation with so many


class Values(NamedTuple):
    """Similarities or dissimilarities among sampled objects, in random order."""

    M: Array  # (s, s), symmetric
    dissimilarity: bool
    asymmetry: float
    drift: float
    of_self: float  # largest |d(x, x)|, relative as the two above


@validate_params(
    {
        "kernel": [str, callable, Kernel],
        "y": ["array-like", None],
        "kernel_params": [dict, None],
        "n_samples": [Interval(Integral, 2, None, closed="left")],
        "random_state": ["random_state", np.random.Generator],
    },
    prefer_skip_nested_validation=True,
)
def inspect(
    X: Any,
    kernel: Any = "precomputed",
    *,
    y: Any = None,
    kernel_params: Any = None,
    n_samples: int = SAMPLE_SIZE,
    random_state: Any = None,
) -> Inspection:
    """What is this similarity or dissimilarity like, and what can be done with it?

    Parameters
    ----------
    X : a square matrix for ``"precomputed"`` and ``"precomputed_dissimilarity"``, else objects.
    kernel, kernel_params : as in ``KreinNystroem``.
    y : labels or numbers; if given, how much of them sits in the negative part.
    n_samples : objects to look at, drawn uniformly where there are more. The indefiniteness grows
        with their number: it is given for a quarter, a half and all of them.
    random_state : int, RandomState, Generator or None, for the draw.

    Examples
    --------
    >>> import numpy as np
    >>> from kreinlearn import inspect
    >>> D = np.array([[0.0, 1, 1, 3], [1, 0, 1, 1], [1, 1, 0, 1], [3, 1, 1, 0]])
    >>> found = inspect(D, "precomputed_dissimilarity")
    >>> found.positive_definite, found.signature
    (False, (2, 1, 1))
    """
    rng = as_generator(random_state)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # what it would say is among the findings
        model = KreinNystroem(kernel, kernel_params=kernel_params)
        prepared, fitted = model._prepared(_zero_diagonal(X, kernel), rng)
    n = length(prepared)
    if y is not None and length(y) != n:
        raise ValueError(f"y has {length(y)} labels for {n} objects; pass one an object")
    chosen = rng.permutation(n)[: min(n, n_samples)]
    require_room(len(chosen))
    values = _values(X, prepared, fitted, chosen)
    return _found(values, n, None if y is None else _targets(y)[chosen], rng)


def _zero_diagonal(X: Any, kernel: Any) -> Any:
    """A given matrix of dissimilarities without those of objects to themselves."""
    M = np.array(X) if kernel == "precomputed_dissimilarity" else None
    if M is None or M.ndim != 2 or M.dtype.kind not in "fiu":
        return X
    np.fill_diagonal(M, 0)
    return M


def _values(X: Any, prepared: Any, kernel: Kernel, chosen: Array) -> Values:
    if isinstance(kernel, Precomputed):
        M = prepared[np.ix_(chosen, chosen)]
        raw = np.asarray(X)
        gap = asymmetry_of(raw) if raw.ndim == 2 else 0.0  # a condensed vector has no two sides
        of_self = _relative(_largest(np.diagonal(raw)), raw) if raw.ndim == 2 else 0.0
        return Values(M, kernel.of_dissimilarities, _relative(gap, raw), 0.0, of_self)
    Z = kernel.select(prepared, chosen)
    few = take(Z, np.arange(min(PROBED, len(chosen))))
    M = evaluate(kernel.symmetric, Z, chosen, chosen)
    both, again = (np.asarray(kernel.anew(few, few)) for _ in range(2))
    asymmetry, drift, of_self = (
        _relative(_largest(part), both) for part in (both - both.T, both - again, np.diagonal(both))
    )
    return Values(M, kernel.is_dissimilarity, 0.0 if drift else asymmetry, drift, of_self)


def _largest(M: Array) -> float:
    return float(np.abs(M).max(initial=0.0))


def _relative(gap: float, M: Array) -> float:
    """The share of the largest value, 0.0 where it is rounding."""
    largest = _largest(M)
    return gap / largest if gap > symmetry_rtol(M.dtype) * largest else 0.0


def _targets(y: Any) -> Array:
    """Numbers as they are; classes as indicator columns."""
    if type_of_target(y) in ("continuous", "continuous-multioutput"):
        return np.asarray(y, dtype=np.float64)
    labels = column_or_1d(y)
    return np.asarray(labels[:, None] == np.unique(labels), dtype=np.float64)


def _found(values: Values, n: int, y: Array | None, rng: np.random.Generator) -> Inspection:
    M, s = np.asarray(values.M, dtype=np.float64), len(values.M)
    K = similarity_from(M) if values.dissimilarity else M
    spectrum = signed_eigh(K)
    D = spectrum.D
    rank = findings.effective_rank(D)
    enough = LANDMARKS_A_RANK * rank
    found = Inspection(
        kind="dissimilarity" if values.dissimilarity else "similarity",
        n_objects=n,
        n_sampled=s,
        asymmetry=values.asymmetry,
        drift=values.drift,
        indefiniteness=_at_sizes(values, spectrum.D),
        eigenvalues=D,
        signature=(int(np.sum(D > 0)), int(np.sum(D < 0)), s - len(D)),
        effective_rank=rank,
        n_landmarks=min(max(enough, 1), n) if enough <= s // 2 or s == n else None,
        self_dissimilarity=values.of_self if values.dissimilarity else 0.0,
        negative_squares=findings.negative_squares(K),
        triangle_violations=findings.triangle_violations(M, rng) if values.dissimilarity else None,
        duplicates=findings.duplicates(K),
        label_signal=None if y is None else findings.label_signal(spectrum, y),
        advice="",
    )
    return replace(found, advice=advice(found))


def _at_sizes(values: Values, D: Array) -> dict[int, float]:
    """A dissimilarity is centred anew at each size; rows are in random order."""
    *smaller, s = findings.nested_sizes(len(values.M))
    parts = {m: values.M[:m, :m] for m in smaller}
    shares = {
        m: indefiniteness_of_matrix(similarity_from(M) if values.dissimilarity else M)
        for m, M in parts.items()
    }
    return {**shares, s: indefiniteness_of(D)}
