"""Groups without labels: KreinKMeans."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClusterMixin, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from kreinlearn._warnings import warn
from kreinlearn.data.memory import Resources
from kreinlearn.data.validation import checked_weights
from kreinlearn.distributed.entrance import lazy_result
from kreinlearn.estimators.ridge import RandomState
from kreinlearn.estimators.transformer import FitResult, _KreinTransformer
from kreinlearn.kernels.base import Array, Objects
from kreinlearn.learn.grouping import (
    Grouping,
    Wanted,
    default_landmarks,
    fit_groups,
    rows_with_room,
)
from kreinlearn.nystrom.landmarks import MapSpec, map_spec
from kreinlearn.pairs.evaluate import LandmarkColumns
from kreinlearn.pairs.pairs import Pairs
from kreinlearn.pairs.rows import Rows
from kreinlearn.solvers.kmeans import squared_distances


class GroupedRows(NamedTuple):
    """What a fit has found, and in which of its rows."""

    map: FitResult
    grouping: Grouping
    rows: Rows  # all of them
    sampled: Array | None  # the rows that were grouped; None: all
    w: Array  # the weights of all rows


class KreinKMeans(ClusterMixin, _KreinTransformer):
    """K-means for any objects with a symmetric similarity or dissimilarity.

    Objects are described by their similarities to landmarks, from which features are made as in
    ``KreinPCA``, and the features are grouped by k-means. For strings, series or graphs a mean is
    no object, so each group has a medoid, the training object nearest to its mean. New objects are
    assigned by ``predict``.

    Parameters
    ----------
    n_clusters : int or "auto", default=8
        The number of groups. "auto" tries 2 to 20 on a sample of at most 1,000 objects and takes
        the number with the largest mean silhouette.
    kernel : str, callable, Kernel or dict, default="gaussian"
        The similarity: a name such as "gaussian" or "levenshtein", a function k(A, B) that returns
        a matrix, ``pairwise(f)`` of a function of two objects, ``dissimilarity(...)``, or an object
        of ``kreinlearn.kernels``. "precomputed" and "precomputed_dissimilarity" take a matrix as X.
        A dict from fields of records to kernels is the sum of ``columns(...)``.
    kernel_params : dict or None, default=None
        Parameters of the kernel, by name; None leaves its own defaults.
    spectrum : {"shift", "flip"}, default="shift"
        What is done about squared distances that are no squares. "shift" minimises the cost of the
        given distances, which a constant shift of all of them makes Euclidean without changing
        which groups are best. "flip" takes the absolute values of the eigenvalues, and minimises
        the cost of other distances. Without negative eigenvalues the two are the same.
    landmarks : int, float, None, str, array-like or Landmarks, default="auto"
        The objects by which all others are described: how many (a number, or a fraction of the
        training objects; None takes all, which is exact), the name of a scheme that chooses them,
        their row numbers, the objects themselves, or ``Landmarks(...)``. "auto" takes all of up to
        1,000 objects, and of more objects 300, or ten times ``n_clusters`` if that is more.
    rank : int or None, default=None
        How many features are kept, those with the largest absolute eigenvalues. None keeps all.
    n_init : int, default=4
        How often k-means is begun anew, from other seeds. The groups of smallest cost are kept.
    max_iter : int, default=300
        The largest number of passes over the features, for one beginning.
    resources : Resources or None, default=None
        Memory, and a store of kernel values on disk, as ``Resources(...)``. None is
        ``Resources()``: a quarter of the free memory, and no store.
    n_jobs : int or None, default=None
        Number of threads, or of processes for kernels that are Python functions; -1 is one for each
        core. None: as many threads as BLAS uses, and no further processes.
    random_state : int, RandomState, Generator or None, default=None
        Source of all random choices: landmarks, samples and seeds. An int gives the same result at
        every call.
    verbose : int or bool, default=0
        If positive, a run that takes long is announced, and its progress is shown on a terminal.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        The number of the group of each training object.
    cluster_centers_ : ndarray of shape (n_clusters_, rank_)
        The means of the groups, in the space of the features.
    cluster_weights_ : ndarray of shape (n_clusters_,)
        The number of objects that each mean was made of, or the sum of their weights.
    medoids_ : ndarray, sparse matrix or list of length n_clusters_
        The training object of each group that is nearest to its mean; with a precomputed kernel
        their row numbers.
    medoid_indices_ : ndarray of shape (n_clusters_,)
        Row numbers of the medoids in the training data.
    n_clusters_ : int
        The number of groups; fewer than ``n_clusters`` if fewer objects differ.
    inertia_ : float
        The cost: the sum of the squared distances of the objects to the means of their groups,
        times their weights. See the notes.
    silhouettes_ : ndarray of shape (n_tried, 2)
        The numbers of groups that were tried, and their mean silhouettes. Exists with
        ``n_clusters="auto"``.
    n_iter_ : int
        The number of passes over the features, in the best of all beginnings.
    signature_ : ndarray of shape (rank_,)
        The sign of each feature, 1 or -1. With ``spectrum="flip"`` it is not used.
    eigenvalues_ : ndarray of shape (rank_,)
        The eigenvalue of each feature, by decreasing absolute value.
    rank_ : int
        The number of features.
    landmarks_ : ndarray, sparse matrix or list of length n_landmarks_
        The landmarks; with a precomputed kernel their row numbers.
    landmark_indices_ : ndarray of shape (n_landmarks_,) or None
        Row numbers of the landmarks in the training data; None if they were given as objects.
    n_landmarks_ : int
        The number of landmarks.
    kernel_ : Kernel
        The fitted kernel.
    n_features_in_ : int
        The number of columns of X. Exists for vectors, tables and matrices.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        The names of the columns of X, if they are all strings.

    See Also
    --------
    KreinNystroem : The features alone, for any other method of scikit-learn.
    KreinPCA : A map of the objects.
    sklearn.cluster.KMeans : The same for vectors and the Euclidean distance.

    Notes
    -----
    The squared distance of two objects is d2(x, z) = k(x, x) + k(z, z) - 2 k(x, z), or the square
    of a given dissimilarity. The cost of groups is the sum, over the groups, of all d2 between two
    of its members, divided by twice its size; that is the sum of the squared distances to the
    means. With ``spectrum="shift"`` this is ``inertia_``, for the distances as the landmarks
    approximate them (exactly, if all objects are landmarks). It may be negative, as d2 may be. If
    s is the absolute value of the smallest eigenvalue of the centred similarity matrix, then d2 + 2
    s between different objects is Euclidean, and the cost of any k groups grows by the same
    s (n - k). With ``spectrum="flip"`` ``inertia_`` is the cost of the distances after all
    eigenvalues became positive.

    A step of Lloyd's algorithm, in which every object goes to the nearest mean, need not lower the
    cost where squared distances may be negative. Steps that do not are not taken. Then objects are
    moved one by one, if that lowers the cost, until no move does. No group is ever emptied.

    ``predict`` takes the nearest mean. For training objects this gives ``labels_``, with an
    exception: an object at a negative squared distance from the mean of its group may be as near or
    nearer to another one.

    If the features of all rows do not fit into a quarter of the memory budget, a random sample of
    the rows is grouped, and all others are assigned by ``predict``, a block at a time.

    References
    ----------
    .. [1] V. Roth, J. Laub, M. Kawanabe, J. M. Buhmann, "Optimal cluster preserving embedding of
       nonmetric proximity data", IEEE Transactions on Pattern Analysis and Machine Intelligence
       25(12), 2003.

    Examples
    --------
    >>> from kreinlearn import KreinKMeans
    >>> words = ["sea", "seat", "sear", "tea", "banana", "bandana", "bananas", "cabana"]
    >>> model = KreinKMeans(2, kernel="levenshtein", random_state=0).fit(words)
    >>> sorted(model.medoids_)
    ['banana', 'sea']
    >>> bool(model.predict(["seas"])[0] == model.labels_[0])
    True
    """

    _works_elsewhere: ClassVar[bool] = False
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **_KreinTransformer._parameter_constraints,
        "n_clusters": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "spectrum": [StrOptions({"shift", "flip"})],
        "rank": [Interval(Integral, 1, None, closed="left"), None],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }
    _fitted: ClassVar[tuple[str, ...]] = (
        *_KreinTransformer._fitted, "labels_", "cluster_centers_", "cluster_weights_", "medoids_",
        "medoid_indices_", "n_clusters_", "inertia_", "silhouettes_", "n_iter_",
    )  # fmt: skip

    def __init__(
        self,
        n_clusters: int | str = 8,
        *,
        kernel: Any = "gaussian",
        kernel_params: dict[str, Any] | None = None,
        spectrum: str = "shift",
        landmarks: Any = "auto",
        rank: int | None = None,
        n_init: int = 4,
        max_iter: int = 300,
        resources: Resources | None = None,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: int | bool = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.kernel = kernel
        self.kernel_params = kernel_params
        self.spectrum = spectrum
        self.landmarks = landmarks
        self.rank = rank
        self.n_init = n_init
        self.max_iter = max_iter
        self.resources = resources
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    # Using

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: Objects, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Choose landmarks, pass once over X, and find groups.

        Parameters
        ----------
        X : array-like, list of objects, path or table
            The training objects. With a precomputed kernel a square matrix.
        y : None
            Ignored; present for pipelines.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each object counts; None: once. Objects of weight 0 are assigned to
            groups and are in no mean; they may still be landmarks, and count for the scale of a
            kernel.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        with self._fitting(X, None, sample_weight):
            self._keep_groups(self._grouped(X, sample_weight))
        return self

    def fit_transform(
        self, X: Objects, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Any:
        """Find groups, and return the distances of the training objects to their means.

        Parameters
        ----------
        X : array-like, list of objects, path or table
            The training objects.
        y : None
            Ignored; present for pipelines.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each object counts; None: once.

        Returns
        -------
        ndarray of shape (n_samples, n_clusters_)
            The distances.
        """
        return self.fit(X, sample_weight=sample_weight).transform(X)

    def transform(self, X: Objects) -> Any:
        """Distances of any objects to the means of the groups.

        Parameters
        ----------
        X : array-like, list of objects, or any other input that ``fit`` takes
            The objects. A matrix of (dis)similarities has one column per training object, or one
            per landmark.

        Returns
        -------
        ndarray of shape (n_samples, n_clusters_)
            The distances. A squared distance -q that is negative, as those of an indefinite
            similarity may be, is given as minus the root of q. A lazy dask array if X is a dask
            collection.
        """
        self._require_fitted()
        if (lazy := lazy_result(self, "transform", X)) is not None:
            return lazy
        return self._scored(*self._new_rows(X), _signed_root, self.n_clusters_)

    def predict(self, X: Objects) -> Any:
        """The group of each object: that whose mean is nearest.

        Parameters
        ----------
        X : array-like, list of objects, or any other input that ``fit`` takes
            The objects. A matrix of (dis)similarities has one column per training object, or one
            per landmark.

        Returns
        -------
        ndarray of shape (n_samples,)
            The numbers of the groups; a lazy dask array if X is a dask collection.
        """
        self._require_fitted()
        if (lazy := lazy_result(self, "predict", X)) is not None:
            return lazy
        return self._scored(*self._new_rows(X), _nearest, 1)[:, 0].astype(np.int32)

    def _scored(self, X: Objects, columns: LandmarkColumns, function: Any, width: int) -> Array:
        """A function of the squared distances to the means, for validated objects."""
        signs = self._signs

        def scores(_: Array, products: Array) -> Array:
            F = products - self._mean
            return np.asarray(function(squared_distances(F, signs, self.cluster_centers_)))

        return self._projected(X, columns, self._map.W, scores, width)

    @property
    def _signs(self) -> Array:
        plain = self.spectrum == "flip"
        return np.ones(self.rank_) if plain else self.signature_.astype(np.float64)

    @property
    def _n_features_out(self) -> int:
        return int(self.n_clusters_)

    # Fitting

    def _grouped(self, X: Objects, sample_weight: ArrayLike | None) -> GroupedRows:
        rng = self._generator()
        all_rows, kernel, _, given = self._received(X, None, sample_weight, rng)
        n = len(all_rows)
        w = np.ones(n)
        if given is not None:
            w = checked_weights(given, n=n, all_zero=False, block=False)
        self._require_enough(n, int(np.count_nonzero(w)))
        rows, sampled = self._sampled(all_rows, kernel.domain.is_matrix, w, rng)
        with self._pairs(kernel, rows, rng) as pairs:
            spec = self._spec(pairs)
            of_rows = w if sampled is None else w[sampled]
            grouping = fit_groups(pairs, spec, self._wanted, of_rows, rng)
            pairs.probe(grouping.fitted.sample)
        result = FitResult(pairs, spec, grouping.fitted)
        return GroupedRows(result, grouping, all_rows, sampled, w)

    @property
    def _wanted(self) -> Wanted:
        k = None if isinstance(self.n_clusters, str) else self.n_clusters
        flips = self.spectrum == "flip"
        return Wanted(k, flips, self.rank, self.n_init, self.max_iter)

    def _default(self, n: int) -> int:
        return default_landmarks(n, self._wanted.n_groups)

    def _spec(self, pairs: Pairs) -> MapSpec:
        core = self._landmarks.core or self._core
        spec = map_spec(
            pairs, self._landmarks, default=self._default(pairs.n), core=core, rank=self.rank
        )
        return replace(spec, rank=None)

    def _require_enough(self, n: int, weighted: int) -> None:
        """Raise ValueError if there are fewer objects, or fewer of positive weight, than groups."""
        least = 3 if self.n_clusters == "auto" else int(self.n_clusters)
        if weighted >= least:
            return
        what = f"n_samples={n}" if weighted == n else f"{weighted} of positive weight"
        if self.n_clusters == "auto":
            raise ValueError(
                f'n_clusters="auto" compares groups of at least 3 objects, got {what}; pass a '
                "number, or more objects"
            )
        raise ValueError(
            f"n_clusters={self.n_clusters} exceeds the number of objects, {what}; lower "
            "n_clusters, or pass more objects"
        )

    def _sampled(
        self, rows: Rows, is_matrix: bool, w: Array, rng: np.random.Generator
    ) -> tuple[Rows, Array | None]:
        """The rows that are grouped: all, or as many as have room for their features."""
        n, wanted = len(rows), self._landmarks
        m = wanted.n
        if isinstance(m, str):
            m = self._default(n)
        elif isinstance(m, float):
            m = max(1, round(m * n))
        elif not isinstance(m, Integral):
            return rows, None  # all objects, or those that are given
        room = rows_with_room(int(m), self._budget())
        if n <= room or is_matrix:
            return rows, None
        numbers = np.flatnonzero(w)
        if len(numbers) > room:
            numbers = np.sort(rng.choice(numbers, room, replace=False))
        self._require_enough(n, len(numbers))
        self._progress().say(f"groups of {len(numbers):,} of {n:,} objects, then of all others")
        return Rows(rows.take(numbers), rows.outside), numbers

    def _keep_groups(self, result: GroupedRows) -> None:
        found, grouping, rows, sampled, w = result
        groups = grouping.groups
        self.n_clusters_ = len(groups.centres)
        self.cluster_centers_, self.cluster_weights_ = groups.centres, groups.weights
        self.inertia_, self.n_iter_ = groups.cost, groups.n_iter
        self.labels_ = groups.labels.astype(np.int32)
        self.medoid_indices_ = grouping.medoids
        if grouping.scores is not None:
            self.silhouettes_ = grouping.scores
        self._keep_map(found, grouping.map, grouping.mean)
        if sampled is not None:
            self._assign_others(rows, sampled, w)
        given = found.pairs.is_matrix
        self.medoids_ = self.medoid_indices_ if given else rows.take(self.medoid_indices_)
        self._warn_of_groups(groups.converged)

    def _assign_others(self, rows: Rows, sampled: Array, w: Array) -> None:
        """Labels and the cost of all rows, of which some were grouped; their numbers in X."""
        self.medoid_indices_ = sampled[self.medoid_indices_]
        if self.landmark_indices_ is not None:
            self.landmark_indices_ = sampled[self.landmark_indices_]
        found = self._scored(rows.X, self._columns, _nearest_and_distance, 2)
        labels = found[:, 0].astype(np.int32)
        labels[sampled] = self.labels_
        self.labels_, self.inertia_ = labels, float(w @ found[:, 1])

    def _warn_of_groups(self, converged: bool) -> None:
        if self.n_clusters != "auto" and self.n_clusters_ < int(self.n_clusters):
            warn(
                f"n_clusters={self.n_clusters} was asked for, but only {self.n_clusters_} objects "
                "differ; there are as many groups",
                ConvergenceWarning,
            )
        if not converged:
            warn(
                f"k-means did not end within max_iter={self.max_iter} passes; raise max_iter",
                ConvergenceWarning,
            )


def _signed_root(D: Array) -> Array:
    return np.sign(D) * np.sqrt(np.abs(D))


def _nearest(D: Array) -> Array:  # (n, 1)
    return D.argmin(axis=1)[:, None]


def _nearest_and_distance(D: Array) -> Array:  # (n, 2)
    return np.column_stack([D.argmin(axis=1), D.min(axis=1)])
