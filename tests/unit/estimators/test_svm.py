"""KreinSVC: penalties where there are many classes, and memory where there are many threads."""

import tracemalloc

import numpy as np

from kreinlearn import KreinSVC, Landmarks, Resources
from kreinlearn.kernels import DeltaGauss
from kreinlearn.learn.task import some_outputs


def test_penalties_of_many_classes_are_tuned_on_the_largest():
    """Rare classes alone want far more penalty: they are not those that are looked at."""
    labels = np.repeat(np.arange(6), [3, 40, 2, 50, 30, 20])
    Y = np.where(labels[:, None] == np.arange(6), 1.0, -1.0)
    np.testing.assert_array_equal(some_outputs(Y), [1, 3, 4, 5])
    np.testing.assert_array_equal(some_outputs(Y[:, :2]), [0, 1])


def test_more_threads_take_no_more_memory_than_there_is():
    """Where kernel values are evaluated again, each thread has a tile of them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30_000, 3))
    y = X[:, 0] * X[:, 1] + 0.5 * rng.normal(size=len(X)) > 0
    model = KreinSVC(
        "delta_gauss", landmarks=Landmarks(200, "uniform", pool=500), lambda_plus=1e-3,
        lambda_minus=1e-3, random_state=0, resources=Resources(memory_budget="30MB"),
    )  # fmt: skip
    coef = model.set_params(n_jobs=1).fit(X, y).dual_coef_  # compiled and imported
    tracemalloc.start()
    try:
        several = model.set_params(n_jobs=16).fit(X, y).dual_coef_
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 30e6
    np.testing.assert_array_equal(several, coef)


def test_rows_that_do_not_fit_are_evaluated_once_per_pass():
    """A first pass, one that begins with what a sample tells, and others that verify it."""
    evaluated = []

    class Counted(DeltaGauss):
        def columns(self, Z):
            columns = super().columns(Z)

            class CountedColumns(type(columns)):
                def __call__(self, A, out=None):
                    evaluated.append(len(A) * len(Z))
                    return super().__call__(A, out)

            columns.__class__ = CountedColumns
            return columns

    rng = np.random.default_rng(1)
    X, m = rng.normal(size=(40_000, 3)), 30
    y = np.digitize(X[:, 0] * X[:, 1] + 0.5 * rng.normal(size=len(X)), [-0.4, 0.4])
    model = KreinSVC(
        Counted(2.0, 4.0), landmarks=Landmarks(m, pool=500), lambda_plus=1e-4, lambda_minus=1e-4,
        random_state=0,
    )  # fmt: skip
    found = []
    for share in (1.4, 4.0):  # of the bytes of all kernel values
        budget = Resources(memory_budget=int(share * 8 * m * len(X)))
        evaluated.clear()
        model.set_params(resources=budget).fit(X, y)
        found.append((sum(evaluated) / (m * len(X)), model.n_iter_, model.dual_coef_))
    (again, passes, coef), (once, _, other) = found
    assert once <= 1.1  # the pool and the landmarks may be evaluated beside the rows
    assert again <= once + passes
    assert passes <= 4
    np.testing.assert_array_equal(coef, other)
