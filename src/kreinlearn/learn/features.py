"""Features of a learner: which map they come from, and the sums over rows that solvers see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from kreinlearn.kernels.base import Array
from kreinlearn.nystrom.core import FeatureMap, core_rank, fit_core, landmark_map
from kreinlearn.nystrom.landmarks import MapSpec
from kreinlearn.nystrom.sweep import Swept
from kreinlearn.pairs.evaluate import LandmarkColumns
from kreinlearn.pairs.pairs import Pairs
from kreinlearn.pairs.sample import Sample
from kreinlearn.sums.moments import Centred, FeatureMoments, Gram, Moments, total_moments

POWER_STEPS = 30  # of the iteration for the largest eigenvalue


class FeatureKind(Protocol):
    """What the features of an object are made of."""

    signed: bool  # whether features have a signature, and two penalties

    def map_of(self, K_ZZ: Array, eps: float, spec: MapSpec) -> tuple[Array, Array]:
        """W and S of the features K_XZ W, for the maps that folds make of their own landmarks."""

    def core(
        self, pairs: Pairs, swept: Swept, spec: MapSpec, rng: np.random.Generator
    ) -> FeatureMap:
        """The feature map of all rows."""

    def root(self, unit: float) -> float:
        """The unit of the features, if the kernel values are divided by ``unit``."""


class KreinFeatures:
    """Features of the Krein space that the landmarks span: K ~ Phi diag(S) Phi'."""

    signed = True

    def map_of(self, K_ZZ: Array, eps: float, spec: MapSpec) -> tuple[Array, Array]:
        return landmark_map(K_ZZ, core_rank(spec), eps)

    def core(
        self, pairs: Pairs, swept: Swept, spec: MapSpec, rng: np.random.Generator
    ) -> FeatureMap:
        feature_map = fit_core(pairs, swept.sample, swept.gram, len(pairs.rows), spec, rng)
        return feature_map.cut(spec.rank)

    def root(self, unit: float) -> float:
        return float(np.sqrt(unit))


class SimilarityFeatures:
    """The similarities to the landmarks themselves: one penalty, no signature."""

    signed = False

    def map_of(self, K_ZZ: Array, eps: float, spec: MapSpec) -> tuple[Array, Array]:
        return np.eye(len(K_ZZ)), np.ones(len(K_ZZ))

    def core(
        self, pairs: Pairs, swept: Swept, spec: MapSpec, rng: np.random.Generator
    ) -> FeatureMap:
        return identity_map(len(swept.sample.landmarks))

    def root(self, unit: float) -> float:
        return unit


def identity_map(m: int) -> FeatureMap:
    """Features that are the similarities to m landmarks."""
    return FeatureMap(np.eye(m), np.ones(m), np.empty((m, 0)), np.empty(0))


@dataclass(frozen=True)
class Features:
    """All that solvers see of the rows: sums over groups of rows, and the map of features."""

    groups: list[Moments]  # of C / unit
    columns: LandmarkColumns
    unit: float
    map: FeatureMap  # of C / unit
    sample: Sample | None = None
    exact_terms: Sequence[FeatureMoments] | None = (
        None  # of the features themselves, where they are few
    )

    @property
    def terms(self) -> Sequence[FeatureMoments]:
        """Sums over the features of each group."""
        if self.exact_terms is not None:
            return self.exact_terms
        return [group.terms(self.map.W) for group in self.groups]

    @property
    def gram(self) -> Gram:
        """Of C / unit over all rows."""
        return Swept(self.groups, self.columns, self.unit, None).gram  # type: ignore[arg-type]

    def whole(self, *, intercept: bool) -> Centred:
        """The sums over all rows, about the means if there is an intercept."""
        return total_moments(self.terms).centred(intercept=intercept)

    def scale(self, *, intercept: bool) -> float:
        """The largest eigenvalue of the Gram matrix of the features over the weight of all rows."""
        whole = self.whole(intercept=intercept)
        return gram_scale(whole.G, whole.n)


def gram_scale(G: Array, n: float) -> float:
    """The largest eigenvalue of a Gram matrix over n, by a power iteration; 1 if it is zero."""
    v = np.sqrt(np.maximum(np.diagonal(G), 0.0))
    size = float(np.linalg.norm(v))
    for _ in range(POWER_STEPS):
        if size == 0:
            return 1.0
        v = G @ (v / size)
        size = float(np.linalg.norm(v))
    return size / n


@dataclass(frozen=True)
class Linear:
    """A model that is linear in the features of C / unit, and how it was found."""

    coef: Array  # (r, q)
    intercept: Array  # (q,)
    n_iter: int = 0  # steps of an iterative solver, the most over the outputs
    converged: bool = True
    singular: bool = False  # the solution of smallest norm, as there are many
    attributes: Mapping[str, Any] = field(default_factory=dict)  # what the loss adds to the model
    landmarks: Array | None = None  # places of the landmarks that have a coefficient; None: all
