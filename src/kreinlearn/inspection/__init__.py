"""What a similarity is like, before anything is learnt from it."""

from kreinlearn.inspection.findings import Inspection
from kreinlearn.inspection.sample import indefiniteness
from kreinlearn.inspection.survey import inspect

__all__ = ["Inspection", "indefiniteness", "inspect"]
