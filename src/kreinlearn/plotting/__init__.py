"""Pictures of similarities and models, as display classes of scikit-learn's kind."""

from kreinlearn.plotting.comparison import ComparisonDisplay
from kreinlearn.plotting.spectrum import SpectrumDisplay

__all__ = ["ComparisonDisplay", "SpectrumDisplay"]
