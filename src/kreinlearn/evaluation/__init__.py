"""Which learner has the smallest error on given objects: cross-validated, on the same folds."""

from kreinlearn.evaluation.result import Evaluation, Score
from kreinlearn.evaluation.running import evaluate

__all__ = ["Evaluation", "Score", "evaluate"]
