"""The similarity matrix of some of the objects, and how indefinite it is."""

from __future__ import annotations

from numbers import Integral

import numpy as np
from sklearn.utils._param_validation import Interval, validate_params

from kreinlearn.data.memory import free_memory, in_words
from kreinlearn.data.validation import as_generator
from kreinlearn.inspection.arguments import CHECKS, Array, KernelLike, KernelParams, Objects, Seed
from kreinlearn.inspection.prepared import Prepared, prepare
from kreinlearn.kernels import double_centre
from kreinlearn.kernels.dissimilarity import check_dissimilarities
from kreinlearn.pairs.evaluate import evaluate
from kreinlearn.pairs.probe import warn_of_probe
from kreinlearn.solvers.spectrum import indefiniteness_of_matrix, power_of_two_scale

EXACT_UP_TO = 5000  # objects up to which the whole spectrum is computed
SAMPLE_SIZE = 2000  # objects that are drawn when there are more
COPIES = 4  # of the similarities in memory at a time: evaluated, averaged, scaled, decomposed


@validate_params(
    {**CHECKS, "n_samples": [Interval(Integral, 1, None, closed="left"), None]},
    prefer_skip_nested_validation=True,
)
def indefiniteness(
    X: Objects, kernel: KernelLike = "precomputed", *, kernel_params: KernelParams = None,
    n_samples: int | None = None, random_state: Seed = None,
) -> float:  # fmt: skip
    """Measure how far from positive semi-definite a similarity is.

    The indefiniteness is the sum of the magnitudes of the negative eigenvalues of the kernel
    matrix, divided by the sum of the magnitudes of all eigenvalues. It is 0 for a positive
    semi-definite matrix and 1 for a negative semi-definite one. A dissimilarity is squared and
    double-centred first.

    Parameters
    ----------
    X : array-like or sequence of objects
        The objects. For the kernels ``"precomputed"`` and ``"precomputed_dissimilarity"`` a square
        matrix of shape (n_samples, n_samples).
    kernel : str, callable or Kernel, default="precomputed"
        The similarity or dissimilarity: a registered name, a function of two blocks of objects,
        or a kernel object.
    kernel_params : dict or None, default=None
        Parameters of the kernel.
    n_samples : int or None, default=None
        The number of objects to draw uniformly at random. By default all objects are used if
        there are at most 5000, and 2000 of them otherwise. The indefiniteness of a sample grows
        with its size: compare a value only with values of samples of the same size.
    random_state : int, RandomState, Generator or None, default=None
        Seed or generator for the draw.

    Returns
    -------
    float
        The indefiniteness, from 0 to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from kreinlearn import indefiniteness
    >>> indefiniteness(np.array([[1.0, 2.0], [2.0, 1.0]]))  # eigenvalues 3 and -1
    0.25
    """
    rng = as_generator(random_state)
    prepared = prepare(X, kernel, rng, kernel_params=kernel_params)
    n = prepared.n
    if n_samples is None:
        n_samples = n if n <= EXACT_UP_TO else SAMPLE_SIZE
    require_room(min(n, n_samples))
    rows = np.arange(n)
    if n_samples < n:
        rows = np.sort(rng.choice(n, n_samples, replace=False))
    return indefiniteness_of_matrix(_similarity(prepared, rows, rng))


def require_room(m: int) -> None:
    """Raise a MemoryError if the spectrum of m objects needs more memory than there is."""
    needed, free = 8 * COPIES * m**2, free_memory()
    if needed > free:
        raise MemoryError(
            f"the spectrum of {m} objects needs {in_words(needed)} but {in_words(free)} are free; "
            "pass a smaller n_samples"
        )


def _similarity(prepared: Prepared, rows: Array, rng: np.random.Generator) -> Array:  # (m, m)
    """The similarity matrix of the objects with these row numbers."""
    kernel = prepared.kernel
    if kernel.domain.is_matrix:
        K = np.asarray(prepared.part(rows, rows))
        return similarity_from(K) if kernel.of_dissimilarities else K
    Z = kernel.select(prepared.X, rows)
    K = evaluate(kernel.symmetric, Z, rows, rows)
    if kernel.untrusted:
        warn_of_probe(kernel, Z, K, rng, "K is made symmetric")
    if not kernel.is_dissimilarity:
        return K
    check_dissimilarities(K, np.diagonal(K))
    return similarity_from(K)


def similarity_from(D: Array) -> Array:
    """Doubly centred squares of dissimilarities, up to a power of two.

    None of the findings depends on the scale of the similarities.
    """
    return double_centre(D / power_of_two_scale(D))
