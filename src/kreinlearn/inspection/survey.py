"""inspect: draw objects, evaluate them, look."""

from __future__ import annotations

import warnings
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval, validate_params
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import column_or_1d

from kreinlearn.data.opening import with_target
from kreinlearn.data.tiles import as_generator, length
from kreinlearn.data.validation import in_memory, looks_like_distances
from kreinlearn.estimators.transformer import KreinNystroem
from kreinlearn.inspection import findings
from kreinlearn.inspection.advice import advice
from kreinlearn.inspection.findings import Array, Inspection, described
from kreinlearn.inspection.sample import require_room, similarity_from
from kreinlearn.inspection.values import Values, values_of, without_diagonal
from kreinlearn.kernels import Kernel
from kreinlearn.solvers.spectrum import indefiniteness_of, indefiniteness_of_matrix, signed_eigh

SAMPLE_SIZE = 1000
LANDMARKS_A_RANK = 2  # the default comes within a third of the best approximation with so many


@validate_params(
    {
        "kernel": [str, callable, Kernel],
        "y": ["array-like", str, None],
        "kernel_params": [dict, None],
        "n_samples": [Interval(Integral, 2, None, closed="left")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state", np.random.Generator],
        "verbose": ["verbose"],
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
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: int | bool = 0,
) -> Inspection:
    """What is this similarity or dissimilarity like, and what can be done with it?

    Parameters
    ----------
    X : a square matrix for ``"precomputed"`` and ``"precomputed_dissimilarity"``, else objects.
    kernel, kernel_params : as in ``KreinNystroem``.
    y : labels or numbers, or the name of their column in a table X; if given, how much of them
        sits in the negative part.
    n_samples : objects to look at, drawn uniformly where there are more. The indefiniteness grows
        with their number: it is given for a quarter, a half and all of them.
    n_jobs : processes for a function, threads for another kernel, as in ``KreinNystroem``; each
        pair of objects is evaluated once, a function on 1000 objects about 500,000 times.
    random_state : int, RandomState, Generator or None, for the draw and the shuffles of y.
    verbose : 1 shows a bar on a terminal, and says beforehand what a long run will take.

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
    X, y = with_target(in_memory(X) if str(kernel).startswith("precomputed") else X, y)
    model = KreinNystroem(kernel, kernel_params=kernel_params, n_jobs=n_jobs, verbose=verbose)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # what it would say is among the findings
        prepared, fitted = model._prepared(_zero_diagonal(X, model._resolved_kernel()), rng)
    n = length(prepared)
    if y is not None and length(y) != n:
        raise ValueError(f"y has {length(y)} labels for {n} objects; pass one an object")
    chosen = rng.permutation(n)[: min(n, n_samples)]
    require_room(len(chosen))
    values = values_of(model, X, prepared, fitted, chosen)
    found = _found(values, n, None if y is None else _targets(y)[chosen], rng)
    return replace(found, advice=advice(found), kernel=described(kernel, kernel_params))


def _zero_diagonal(X: Any, kernel: Kernel) -> Any:
    """A given matrix of dissimilarities without those of objects to themselves."""
    if not kernel.of_dissimilarities:
        return X
    M = np.asarray(X)
    return without_diagonal(M) if M.ndim == 2 and M.dtype.kind in "fiu" else X


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
    return Inspection(
        kind="dissimilarity" if values.dissimilarity else "similarity",
        given=values.given,
        looks_like_dissimilarity=_misread(values),
        n_objects=n,
        n_sampled=s,
        asymmetry=values.asymmetry,
        drift=values.drift,
        indefiniteness=_at_sizes(values, spectrum.D),
        eigenvalues=D,
        signature=(int(np.sum(D > 0)), int(np.sum(D < 0)), s - len(D)),
        effective_rank=rank,
        n_landmarks=min(max(enough, 1), n) if enough <= s // 2 or s == n else None,
        self_dissimilarity=values.of_self,
        negative_squares=findings.negative_squares(K),
        triangle_violations=findings.triangle_violations(M, rng) if values.dissimilarity else None,
        duplicates=findings.duplicates(K),
        label_signal=None if y is None else findings.label_signal(spectrum, y),
        label_excess=None if y is None else findings.label_excess(spectrum, y, rng),
        advice="",
    )


def _misread(values: Values) -> bool:
    """A similarity, from a person, whose values are those of a dissimilarity."""
    own = values.given != "kernel" and not values.dissimilarity
    return own and looks_like_distances(values.M)


def _at_sizes(values: Values, D: Array) -> dict[int, float]:
    """A dissimilarity is centred anew at each size; rows are in random order."""
    *smaller, s = findings.nested_sizes(len(values.M))
    parts = {m: values.M[:m, :m] for m in smaller}
    shares = {
        m: indefiniteness_of_matrix(similarity_from(M) if values.dissimilarity else M)
        for m, M in parts.items()
    }
    return {**shares, s: indefiniteness_of(D)}
