"""The similarity matrix of some of the objects, and how indefinite it is."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval, validate_params

from kreinlearn.data.memory import free_memory, in_words
from kreinlearn.data.tiles import as_generator, length
from kreinlearn.estimators.transformer import KreinNystroem
from kreinlearn.kernels import Kernel, double_centre
from kreinlearn.kernels.dissimilarity import check_dissimilarities
from kreinlearn.pairs.evaluate import evaluate
from kreinlearn.solvers.spectrum import indefiniteness_of_matrix, power_of_two_scale

EXACT_UP_TO = 5000  # objects, for an indefiniteness from the whole spectrum
SAMPLE_SIZE = 2000  # objects drawn when there are more
COPIES = 4  # of the similarities held at a time: evaluated, averaged, scaled, decomposed


@validate_params(
    {
        "kernel": [str, callable, Kernel],
        "kernel_params": [dict, None],
        "n_samples": [Interval(Integral, 1, None, closed="left"), None],
        "random_state": ["random_state", np.random.Generator],
    },
    prefer_skip_nested_validation=True,
)
def indefiniteness(
    X: Any,
    kernel: Any = "precomputed",
    *,
    kernel_params: Any = None,
    n_samples: int | None = None,
    random_state: Any = None,
) -> float:
    """How far from positive semi-definite a similarity is: 0 (it is) to 1 (it is negative).

    The sum of the negative over the sum of all eigenvalues of the kernel matrix, in magnitude;
    a dissimilarity is squared and double-centred first.

    Parameters
    ----------
    X : a square matrix for ``"precomputed"`` and ``"precomputed_dissimilarity"``, else objects.
    kernel, kernel_params : as in ``KreinNystroem``.
    n_samples : how many objects to draw, uniformly; ``None`` takes all up to 5000, else 2000.
        The indefiniteness of a sample grows with its size, so a value from a sample is the
        indefiniteness *at that size*: compare it with others of the same size only.
    random_state : int, RandomState, Generator or None, for the draw.

    Examples
    --------
    >>> import numpy as np
    >>> from kreinlearn import indefiniteness
    >>> indefiniteness(np.array([[1.0, 2.0], [2.0, 1.0]]))  # eigenvalues 3 and -1
    0.25
    """
    rng = as_generator(random_state)
    model = KreinNystroem(kernel, kernel_params=kernel_params)
    X, fitted = model._prepared(X, rng)
    n = length(X)
    if n_samples is None:
        n_samples = n if n <= EXACT_UP_TO else SAMPLE_SIZE
    require_room(min(n, n_samples))
    chosen = np.arange(n)
    if n_samples < n:
        chosen = np.sort(rng.choice(n, n_samples, replace=False))
    return indefiniteness_of_matrix(_similarity(model, X, fitted, chosen, rng))


def require_room(m: int) -> None:
    needed, free = 8 * COPIES * m**2, free_memory()
    if needed > free:
        raise MemoryError(
            f"the spectrum of {m} objects needs {in_words(needed)} but {in_words(free)} are free; "
            "pass a smaller n_samples"
        )


def _similarity(model: Any, X: Any, kernel: Kernel, chosen: Any, rng: np.random.Generator) -> Any:
    """The similarity matrix of the chosen objects, (m, m)."""
    if kernel.domain.is_matrix:
        K = X[np.ix_(chosen, chosen)]
        return similarity_from(K) if kernel.of_dissimilarities else K
    Z = kernel.select(X, chosen)
    K = evaluate(kernel.symmetric, Z, chosen, chosen)
    if kernel.untrusted:
        model._probe(kernel, Z, K, rng, "K is made symmetric")
    if not kernel.is_dissimilarity:
        return K
    check_dissimilarities(K, np.diagonal(K))
    return similarity_from(K)


def similarity_from(D: Any) -> Any:
    """Centred squares up to a power of two: no finding depends on the scale."""
    return double_centre(D / power_of_two_scale(D))
