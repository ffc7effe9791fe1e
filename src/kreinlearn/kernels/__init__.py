"""Similarities and dissimilarities of vectors, objects, rows of tables and given matrices."""

from kreinlearn.kernels._memory import remembering
from kreinlearn.kernels.alignment import NeedlemanWunsch, SmithWaterman
from kreinlearn.kernels.attributed import SlicedWL, WassersteinWL
from kreinlearn.kernels.base import Kernel, register, registered, resolve
from kreinlearn.kernels.callables import pairwise
from kreinlearn.kernels.combine import LinearCombination, Product
from kreinlearn.kernels.convolutions import Convolutions
from kreinlearn.kernels.dissimilarity import dissimilarity
from kreinlearn.kernels.fields import Field, columns
from kreinlearn.kernels.graphs import (
    GraphEdit,
    ShortestPath,
    WeisfeilerLehman,
    WLAssignment,
    WLDistance,
)
from kreinlearn.kernels.ngrams import NGrams
from kreinlearn.kernels.objects import Hausdorff, ModifiedHausdorff
from kreinlearn.kernels.positions import WeightedDegree
from kreinlearn.kernels.precomputed import (
    GivenMatrix,
    Precomputed,
    PrecomputedDissimilarity,
    double_centre,
)
from kreinlearn.kernels.scikit import SklearnKernel, SklearnMetric
from kreinlearn.kernels.series import (
    DTW,
    EDR,
    ERP,
    LCSS,
    MSM,
    TWE,
    AmercedDTW,
    DerivativeDTW,
    ShapeDTW,
    WeightedDTW,
)
from kreinlearn.kernels.sets import JaccardSets, Tversky
from kreinlearn.kernels.shapes import Chamfer, EarthMover, Procrustes, Turning
from kreinlearn.kernels.strings import (
    LCS,
    DamerauLevenshtein,
    Hamming,
    Indel,
    Jaro,
    JaroWinkler,
    Levenshtein,
)
from kreinlearn.kernels.subsequences import WassersteinSubsequence
from kreinlearn.kernels.tables import Gower
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
    "DTW",
    "EDR",
    "ERP",
    "LCS",
    "LCSS",
    "MSM",
    "TWE",
    "AmercedDTW",
    "Chamfer",
    "Convolutions",
    "DamerauLevenshtein",
    "DeltaGauss",
    "DerivativeDTW",
    "EarthMover",
    "Epanechnikov",
    "Field",
    "Gaussian",
    "GaussianCombination",
    "GivenMatrix",
    "Gower",
    "GraphEdit",
    "Hamming",
    "Hausdorff",
    "Indel",
    "JaccardSets",
    "Jaro",
    "JaroWinkler",
    "Kernel",
    "Levenshtein",
    "LinearCombination",
    "ModifiedHausdorff",
    "Multiquadric",
    "NGrams",
    "NeedlemanWunsch",
    "Normalized",
    "Precomputed",
    "PrecomputedDissimilarity",
    "Procrustes",
    "Product",
    "ShapeDTW",
    "ShortestPath",
    "Sigmoid",
    "SimilarityOf",
    "SklearnKernel",
    "SklearnMetric",
    "SlicedWL",
    "SmithWaterman",
    "TruncatedL1",
    "Turning",
    "Tversky",
    "WLAssignment",
    "WLDistance",
    "WassersteinSubsequence",
    "WassersteinWL",
    "WeightedDTW",
    "WeightedDegree",
    "WeisfeilerLehman",
    "columns",
    "dissimilarity",
    "double_centre",
    "normalized",
    "pairwise",
    "register",
    "registered",
    "remembering",
    "resolve",
    "similarity_of",
]
