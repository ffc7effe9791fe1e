"""Sets of labels as they are given, and the indicator matrix that is made of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import MultiLabelBinarizer

from kreinlearn.data.labels import checked_indicator, label_names
from kreinlearn.data.validation import are_label_sets

MATRIX = np.array([[1, 0, 1], [0, 0, 0], [1, 1, 0], [0, 0, 1]])
SETS = [{"a", "c"}, set(), {"b", "a"}, {"c"}]
MATRICES = {
    "integers": MATRIX,
    "bool": MATRIX == 1,
    "floats": MATRIX.astype(float),
    "csr": sp.csr_array(MATRIX),
    "coo": sp.coo_matrix(MATRIX),
    "frame": pd.DataFrame(MATRIX),
    "lists": MATRIX.tolist(),
    "arrays": list(MATRIX),
    "fortran": np.asfortranarray(MATRIX),
}
LISTS = {
    "sets": SETS,
    "frozensets": [frozenset(one) for one in SETS],
    "lists": [sorted(one) for one in SETS],
    "tuples": tuple(tuple(one) for one in SETS),
    "twice": [["c", "a", "a"], [], ["b", "a"], ["c"]],
    "series": pd.Series(SETS),
    "mixed": [["a", "c"], set(), ("b", "a"), np.array(["c"])],
}


@pytest.mark.parametrize("form", MATRICES)
def test_a_matrix_is_read_as_it_is(form: str) -> None:
    y = MATRICES[form]
    assert are_label_sets(y)
    assert label_names(y) is None
    found = checked_indicator(y, None)
    assert found.dtype == np.int8
    assert found.flags.c_contiguous
    np.testing.assert_array_equal(found, MATRIX)


@pytest.mark.parametrize("form", LISTS)
def test_lists_of_labels_are_read_as_scikit_learn_reads_them(form: str) -> None:
    y = LISTS[form]
    assert are_label_sets(y)
    names = label_names(y)
    assert names is not None
    theirs = MultiLabelBinarizer()
    np.testing.assert_array_equal(checked_indicator(y, names), theirs.fit_transform(y))
    np.testing.assert_array_equal(names, theirs.classes_)


@pytest.mark.parametrize(
    "y", [[0, 1, 1], ["ab", "cd"], np.array(["ab", "cd"], dtype=object), np.zeros((3, 1)),
          [[0], [1], [1]], [], "ab", None, pd.Series([1, 2])],
)  # fmt: skip
def test_one_class_per_object_is_no_set_of_labels(y: Any) -> None:
    assert not are_label_sets(y)


def test_numbers_are_labels_where_they_are_no_zeros_and_ones() -> None:
    y = [[7, 8], [8, 9]]
    np.testing.assert_array_equal(label_names(y), [7, 8, 9])
    np.testing.assert_array_equal(checked_indicator(y, label_names(y)), [[1, 1, 0], [0, 1, 1]])
    assert label_names([[0, 1], [1, 1]]) is None  # rows of a matrix
    np.testing.assert_array_equal(label_names([{0, 1}, {1}]), [0, 1])


def test_known_labels_name_the_columns() -> None:
    names = label_names([["b"], []], classes=["c", "a", "b"])
    np.testing.assert_array_equal(names, ["a", "b", "c"])
    np.testing.assert_array_equal(checked_indicator([["b"], []], names), [[0, 1, 0], [0, 0, 0]])
    np.testing.assert_array_equal(checked_indicator(MATRIX, names), MATRIX)
    with pytest.raises(ValueError, match="y has 2 columns, and there are 3 labels"):
        checked_indicator(MATRIX[:, :2], names)


def test_a_missing_label_and_a_mixture_of_types() -> None:
    with pytest.raises(ValueError, match="a label of row 1 is missing"):
        label_names([["a"], ["b", None]])
    with pytest.raises(ValueError, match=r"several types \(int, str\)"):
        label_names([["a", "b"], [1]])
    with pytest.raises(ValueError, match=r"y is b at row 1, .* pass a list or a set of labels"):
        label_names([["a", "c"], "b"])
    with pytest.raises(ValueError, match="none of 2 objects has a label"):
        label_names([[], set()])
    with pytest.raises(ValueError, match="5 of its entries are masked"):
        checked_indicator(np.ma.masked_array(MATRIX, MATRIX == 1), None)


def test_bad_input_115_a_label_that_was_never_seen() -> None:
    with pytest.raises(ValueError, match=r"row 1 of y has the label 'd'.* not among"):
        checked_indicator([["a"], ["b", "d"]], np.array(["a", "b", "c"]))


@pytest.mark.parametrize(("value", "said"), [(2, "is 2 at"), (0.5, "is 0.5 at"), (np.nan, "NaN")])
@pytest.mark.parametrize("make", [np.array, sp.csr_array, pd.DataFrame])
def test_bad_input_116_an_indicator_of_other_numbers(make: Any, value: float, said: str) -> None:
    y = MATRIX.astype(type(value))
    y[2, 1] = value
    with pytest.raises(ValueError, match=rf"{said}.*row 2, column 1; .* several columns of 0 and"):
        checked_indicator(make(y), None)


@pytest.mark.parametrize("y", [[["a"], []], [{"a"}, {"a"}]])
def test_bad_input_117_one_label_only(y: Any) -> None:
    with pytest.raises(ValueError, match=r"y has one label only, 'a'; .* two classes"):
        label_names(y)
    with pytest.raises(ValueError, match="one label only, its only column"):
        checked_indicator(sp.csr_array([[1], [0]]), None)
