"""Which learner errs least on a person's own objects: cross-validated, on the same folds."""

from kreinlearn.evaluation.findings import Evaluation, Score
from kreinlearn.evaluation.running import evaluate

__all__ = ["Evaluation", "Score", "evaluate"]
