"""What a similarity is: kernels on vectors and objects, dissimilarities, given matrices."""

from kreinlearn.kernels._base import Kernel, register, registered, resolve
from kreinlearn.kernels.callables import pairwise
from kreinlearn.kernels.dissimilarity import dissimilarity, double_centre
from kreinlearn.kernels.objects import Hausdorff, ModifiedHausdorff
from kreinlearn.kernels.precomputed import Precomputed, PrecomputedDissimilarity
from kreinlearn.kernels.scikit import SklearnKernel, SklearnMetric
from kreinlearn.kernels.vectors import (
    DeltaGauss,
    Epanechnikov,
    Gaussian,
    GaussianCombination,
    Multiquadric,
    Sigmoid,
    TruncatedL1,
)

__all__ = [
    "DeltaGauss",
    "Epanechnikov",
    "Gaussian",
    "GaussianCombination",
    "Hausdorff",
    "Kernel",
    "ModifiedHausdorff",
    "Multiquadric",
    "Precomputed",
    "PrecomputedDissimilarity",
    "Sigmoid",
    "SklearnKernel",
    "SklearnMetric",
    "TruncatedL1",
    "dissimilarity",
    "double_centre",
    "pairwise",
    "register",
    "registered",
    "resolve",
]
