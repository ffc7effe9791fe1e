"""What a similarity is: kernels on vectors and objects, dissimilarities, given matrices."""

from kreinlearn.kernels._base import Kernel, register, registered, resolve
from kreinlearn.kernels.callables import pairwise
from kreinlearn.kernels.combine import LinearCombination, Product
from kreinlearn.kernels.dissimilarity import dissimilarity, double_centre
from kreinlearn.kernels.objects import Hausdorff, ModifiedHausdorff
from kreinlearn.kernels.precomputed import Precomputed, PrecomputedDissimilarity
from kreinlearn.kernels.scikit import SklearnKernel, SklearnMetric
from kreinlearn.kernels.transformed import Normalized, SimilarityOf, normalized, similarity_of
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
    "LinearCombination",
    "ModifiedHausdorff",
    "Multiquadric",
    "Normalized",
    "Precomputed",
    "PrecomputedDissimilarity",
    "Product",
    "Sigmoid",
    "SimilarityOf",
    "SklearnKernel",
    "SklearnMetric",
    "TruncatedL1",
    "dissimilarity",
    "double_centre",
    "normalized",
    "pairwise",
    "register",
    "registered",
    "resolve",
    "similarity_of",
]
