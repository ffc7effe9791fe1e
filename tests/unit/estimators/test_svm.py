"""How the penalties of the hinge loss are tuned where there are many classes."""

import numpy as np

from kreinlearn.estimators.svm import some_outputs


def test_penalties_of_many_classes_are_tuned_on_the_largest():
    """Rare classes alone want far more penalty: they are not those that are looked at."""
    labels = np.repeat(np.arange(6), [3, 40, 2, 50, 30, 20])
    Y = np.where(labels[:, None] == np.arange(6), 1.0, -1.0)
    np.testing.assert_array_equal(some_outputs(Y), [1, 3, 4, 5])
    np.testing.assert_array_equal(some_outputs(Y[:, :2]), [0, 1])
