"""Pictures of similarities and models, as display classes in the style of scikit-learn."""

from kreinlearn.plotting.embedding import EmbeddingDisplay
from kreinlearn.plotting.explanations import ExplanationDisplay
from kreinlearn.plotting.penalties import PenaltyDisplay
from kreinlearn.plotting.spectrum import SpectrumDisplay
from kreinlearn.plotting.weights import KernelWeightsDisplay

__all__ = [
    "EmbeddingDisplay",
    "ExplanationDisplay",
    "KernelWeightsDisplay",
    "PenaltyDisplay",
    "SpectrumDisplay",
]
