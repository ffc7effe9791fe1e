"""What a similarity is like, before anything is learnt from it."""

from kreinlearn.inspect.findings import Inspection
from kreinlearn.inspect.sample import indefiniteness
from kreinlearn.inspect.survey import inspect

__all__ = ["Inspection", "indefiniteness", "inspect"]
