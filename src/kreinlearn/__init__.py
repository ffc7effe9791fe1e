"""Learning from any symmetric similarity or dissimilarity, positive definite or not."""

from kreinlearn.estimators.baselines import SimilarityRidge, SimilarityRidgeClassifier
from kreinlearn.estimators.ridge import KreinRidge, KreinRidgeClassifier
from kreinlearn.estimators.spectrum_svc import SpectrumSVC
from kreinlearn.estimators.svm import KreinSVC
from kreinlearn.estimators.transformer import KreinNystroem, KreinPCA
from kreinlearn.estimators.variance import KreinVCRidge, KreinVCRidgeClassifier
from kreinlearn.inspect import Inspection, indefiniteness, inspect
from kreinlearn.kernels import dissimilarity, pairwise, register

__version__ = "0.1.0.dev0"

__all__ = [
    "Inspection",
    "KreinNystroem",
    "KreinPCA",
    "KreinRidge",
    "KreinRidgeClassifier",
    "KreinSVC",
    "KreinVCRidge",
    "KreinVCRidgeClassifier",
    "SimilarityRidge",
    "SimilarityRidgeClassifier",
    "SpectrumSVC",
    "dissimilarity",
    "indefiniteness",
    "inspect",
    "pairwise",
    "register",
]
