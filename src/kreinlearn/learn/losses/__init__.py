"""Losses as values: each knows its loss on a fold, how it is tuned, and its solution."""

from kreinlearn.learn.losses.base import Loss
from kreinlearn.learn.losses.hinge import SquaredHinge
from kreinlearn.learn.losses.sparse import SparseHinge
from kreinlearn.learn.losses.squared import SquaredError
from kreinlearn.learn.losses.variance import VarianceConstrained
from kreinlearn.learn.task import Linear

__all__ = ["Linear", "Loss", "SparseHinge", "SquaredError", "SquaredHinge", "VarianceConstrained"]
