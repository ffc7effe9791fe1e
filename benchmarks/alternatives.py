"""What one would take for objects of a kind instead of a distance.

The alternative for strings is tf-idf weights of n-grams of 1 to 4 letters, upper and lower case
apart, with scikit-learn's `LinearSVC`. For series it is aeon's `RocketClassifier`; series of
unequal length are filled up with zeros by aeon's `Padder` to the length of the longest training
series, and longer test series are cut there. For graphs it is GraKeL's Weisfeiler-Lehman kernel, 5
iterations, normalised, with `SVC`; where GraKeL cannot be installed, this library's kernel of the
same definition stands in, and the last table says so. For contours it is 32 magnitudes of Fourier
coefficients of the outline, which do not depend on place, size, rotation, starting point or mirror
images, with `SVC` and a Gaussian kernel. Penalties C, and the width of the Gaussian kernel, are
chosen by 5 folds (fewer if a class is smaller).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC, LinearSVC

from kreinlearn.kernels.graphs import WeisfeilerLehman

Array = NDArray[Any]
FOLDS = 5
LINEAR_C = 10.0 ** np.arange(-2, 3)
KERNEL_C = 10.0 ** np.arange(-2, 5)
GAMMAS = 10.0 ** np.arange(-3, 1)
N_POINTS, N_FREQUENCIES = 128, 16  # of an outline


def alternative(kind: str, y: Array) -> Any:
    """The unfitted classifier for objects of a kind, with folds that suit the labels."""
    smallest = int(np.unique(y, return_counts=True)[1].min())
    return MAKERS[kind](StratifiedKFold(max(2, min(FOLDS, smallest)), shuffle=True, random_state=0))


# Strings


def _strings(folds: StratifiedKFold) -> Any:
    grams = TfidfVectorizer(analyzer="char", ngram_range=(1, 4), lowercase=False)
    model = make_pipeline(grams, LinearSVC(random_state=0))
    return GridSearchCV(model, {"linearsvc__C": LINEAR_C}, cv=folds)


# Series


class PaddedRocket(ClassifierMixin, BaseEstimator):
    """aeon's Rocket for series of shape (length,) or (length, channels), of any lengths."""

    def fit(self, X: Sequence[Any], y: Array) -> Self:
        from aeon.classification.convolution_based import RocketClassifier

        self.length_ = max(map(len, X))
        self.model_ = RocketClassifier(random_state=0, n_jobs=1).fit(self._padded(X), y)
        return self

    def predict(self, X: Sequence[Any]) -> Array:
        return np.asarray(self.model_.predict(self._padded(X)))

    def _padded(self, X: Sequence[Any]) -> Array:  # (n, channels, length)
        from aeon.transformations.collection.unequal_length import Padder

        series = [np.asarray(x, dtype=np.float64).reshape(len(x), -1) for x in X]
        padder = Padder(padded_length=self.length_)
        return np.asarray(padder.fit_transform([x[: self.length_].T for x in series]))


# Graphs


class GraKeLKernel:
    """GraKeL's normalised Weisfeiler-Lehman kernel."""

    def __init__(self, X: Sequence[Any]) -> None:
        from grakel.kernels import WeisfeilerLehman

        self.kernel = WeisfeilerLehman(n_iter=5, normalize=True)
        self.among = np.asarray(self.kernel.fit_transform(list(map(_for_grakel, X))))

    def __call__(self, X: Sequence[Any]) -> Array:
        return np.asarray(self.kernel.transform(list(map(_for_grakel, X))))


class OwnKernel:
    """The same values by our own kernel, where GraKeL cannot be imported."""

    def __init__(self, X: Sequence[Any]) -> None:
        self.X = X
        self.kernel = WeisfeilerLehman(h=5).fit(X, np.random.default_rng(0))
        self.among = self.kernel.symmetric(X)

    def __call__(self, X: Sequence[Any]) -> Array:
        return self.kernel(X, self.X)


class GraphSVC(ClassifierMixin, BaseEstimator):
    """A Weisfeiler-Lehman kernel, then a support vector machine whose C is chosen by folds."""

    def __init__(self, folds: Any) -> None:
        self.folds = folds

    def fit(self, X: Sequence[Any], y: Array) -> Self:
        try:
            self.kernel_: Any = GraKeLKernel(X)
        except ImportError:  # it is not installed, or was built for another numpy
            self.kernel_ = OwnKernel(X)
        search = GridSearchCV(SVC(kernel="precomputed"), {"C": KERNEL_C}, cv=self.folds)
        self.search_ = search.fit(self.kernel_.among, y)
        self.best_params_ = {**search.best_params_, "kernel": type(self.kernel_).__name__}
        return self

    def predict(self, X: Sequence[Any]) -> Array:
        return np.asarray(self.search_.predict(self.kernel_(X)))


def _for_grakel(graph: Any) -> tuple[dict[int, dict[int, float]], dict[int, int]]:
    """Neighbours of each node, none for nodes that stand alone, and the labels."""
    neighbours: dict[int, dict[int, float]] = {i: {} for i in range(len(graph.node_labels))}
    for i, j in graph.edges.tolist():
        neighbours[i][j] = neighbours[j][i] = 1.0
    return neighbours, dict(enumerate(graph.node_labels.tolist()))


# Contours


def descriptors(contours: Sequence[Any]) -> Array:  # (n, 2 * N_FREQUENCIES)
    """Magnitudes of the Fourier coefficients of outlines, as a vector of length one for each."""
    return np.array([_magnitudes(np.asarray(x, dtype=np.float64)) for x in contours])


def _magnitudes(x: Array) -> Array:
    """|F_k| of points at equal steps along an outline, run through counter-clockwise."""
    closed = np.vstack([x, x[:1]])
    z = closed[:, 0] + 1j * closed[:, 1]
    if np.imag(np.conj(z[:-1]) * z[1:]).sum() < 0:
        z = z[::-1]
    walked = np.concatenate([[0], np.abs(np.diff(z)).cumsum()])
    steps = np.linspace(0, walked[-1], N_POINTS, endpoint=False)
    F = np.abs(np.fft.fft(np.interp(steps, walked, z)))
    few = np.concatenate([F[1 : N_FREQUENCIES + 1], F[-N_FREQUENCIES:]])  # F[0] is the place
    return np.asarray(few / np.linalg.norm(few))


def _contours(folds: StratifiedKFold) -> Any:
    model = make_pipeline(FunctionTransformer(descriptors), StandardScaler(), SVC())
    return GridSearchCV(model, {"svc__C": KERNEL_C, "svc__gamma": GAMMAS}, cv=folds)


MAKERS: dict[str, Callable[[StratifiedKFold], Any]] = {
    "strings": _strings,
    "series": lambda folds: PaddedRocket(),
    "graphs": GraphSVC,
    "contours": _contours,
}
