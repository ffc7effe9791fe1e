"""The questions that every loss answers, whatever the features are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from kreinlearn.kernels.base import Array
from kreinlearn.learn.left_out import LeftOut
from kreinlearn.learn.search import FoldLosses, MeanLoss, Tuned, Unknowns
from kreinlearn.learn.task import Features, Linear, Task
from kreinlearn.solvers.least_squares import Fold
from kreinlearn.sums.moments import Centred

if TYPE_CHECKING:
    from kreinlearn.learn.coding import Encoded


class Loss(Protocol):
    """A loss is handed to a fit as a value; adding one touches no other file."""

    needs_pool: bool  # rows beside the landmarks are looked at before the pass over all rows

    def unknowns(self, penalties: Unknowns) -> Unknowns:
        """What is tuned: the penalties, and further values of the loss."""

    def keeping(self, task: Task, *, by_fold: bool, often: bool) -> Any:
        """Where the pass over all rows keeps kernel values for the solver; None: nowhere.

        ``often`` says that rows will be looked at many times, as for models without each fold.
        """

    iterates: bool  # every output takes steps of an iterative solver
    diagonal: bool  # solved in the eigenbasis of the kernel matrix, if all objects are landmarks

    def prepared(self, features: Features, encoded: Encoded, *, intercept: bool) -> Loss:
        """The loss for given data: what it has to know of the targets first."""

    def objective(self, folds: Sequence[Fold], workers: int = 1) -> MeanLoss:
        """The cross-validated loss and its gradient, as functions of the values."""

    def criterion(self, task: Task, features: Features, *, loo: bool) -> FoldLosses:
        """The cross-validated loss of this task, which ``tune`` minimises in the end."""

    def tune(self, task: Task, features: Features, unknowns: Unknowns, *, loo: bool) -> Tuned:
        """The values of smallest cross-validated loss."""

    def settled(self, values: Array) -> Loss:
        """The loss with its own values fixed as they were tuned."""

    def solve(self, task: Task, features: Features, values: Array, kept: Any) -> Linear:
        """The model of all outputs at given penalties, from all rows."""

    def solve_sums(self, whole: Centred, S: Array, values: Array) -> Linear:
        """The same from sums over all rows, where these are enough."""

    def left_out(
        self, task: Task, features: Features, values: Array, kept: Any, solution: Linear
    ) -> LeftOut:
        """Scores of training objects by models without them, at the values of the solution."""
