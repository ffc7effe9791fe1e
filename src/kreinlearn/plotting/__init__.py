"""Pictures of similarities and models, as display classes in the style of scikit-learn."""

from kreinlearn.plotting.comparison import ComparisonDisplay
from kreinlearn.plotting.embedding import EmbeddingDisplay, LandmarkDisplay
from kreinlearn.plotting.explanations import ExplanationDisplay
from kreinlearn.plotting.penalties import PenaltyDisplay
from kreinlearn.plotting.ranks import RankErrorDisplay
from kreinlearn.plotting.spectrum import SpectrumDisplay
from kreinlearn.plotting.weights import KernelWeightsDisplay

__all__ = [
    "ComparisonDisplay",
    "EmbeddingDisplay",
    "ExplanationDisplay",
    "KernelWeightsDisplay",
    "LandmarkDisplay",
    "PenaltyDisplay",
    "RankErrorDisplay",
    "SpectrumDisplay",
]
