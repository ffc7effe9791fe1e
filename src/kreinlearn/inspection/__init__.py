"""What a similarity is like, before anything is learned from it."""

from kreinlearn.inspection.result import Inspection
from kreinlearn.inspection.similarity_matrix import indefiniteness
from kreinlearn.inspection.survey import inspect

__all__ = ["Inspection", "indefiniteness", "inspect"]
