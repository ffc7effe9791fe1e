"""What holds for every kernel on objects: checks called with a kernel and some objects."""

from __future__ import annotations

import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from kreinlearn import KreinRidgeClassifier

FOLDS = StratifiedKFold(5)


def matrix(f: Any, A: Any, B: Any) -> Any:
    """f(a, b) pair by pair."""
    return np.array([[f(a, b) for b in B] for a in A], dtype=np.float64).reshape(len(A), len(B))


def check_symmetry(kernel: Any, X: Any) -> None:
    """Both ways the same bits, and a diagonal that is zero if the kernel is a dissimilarity."""
    K = kernel(X, X)
    assert K.dtype == np.float64
    assert K.shape == (len(X), len(X))
    assert_array_equal(K, K.T)
    for same in (kernel.symmetric(X), kernel(X)):
        assert_array_equal(same, K)
    assert_array_equal(kernel.diagonal(X), np.diag(K))
    if kernel.is_dissimilarity:
        assert (K >= 0).all()
        assert not np.diag(K).any()


def check_pieces(kernel: Any, A: Any, Z: Any) -> None:
    """Pieces, threads and the order of columns change no bit; nothing gives no rows."""
    columns = kernel.columns(Z)
    whole = columns(A)
    parts = [A[:1], A[1:8], A[8:]]
    assert_array_equal(np.concatenate([columns(part) for part in parts]), whole)
    with ThreadPoolExecutor(2) as pool:
        assert_array_equal(np.concatenate(list(pool.map(columns, parts))), whole)
    order = np.random.default_rng(7).permutation(len(Z))
    assert_array_equal(kernel(A, [Z[j] for j in order]), whole[:, order])
    assert_array_equal(kernel(A, Z[:1]), whole[:, :1])
    assert columns(A[:0]).shape == (0, len(Z))
    assert kernel(A, Z[:0]).shape == (len(A), 0)


def check_copies(kernel: Any, A: Any, Z: Any) -> None:
    expected = kernel.columns(Z)(A)
    for columns in (kernel.columns(Z), pickle.loads(pickle.dumps(kernel)).columns(Z)):
        assert_array_equal(pickle.loads(pickle.dumps(columns))(A), expected)
    cloned, same = (k.fit(A, np.random.default_rng(0))(A, Z) for k in (clone(kernel), kernel))
    assert_array_equal(cloned, same)


def check_estimator(kernel: Any, X: list[Any], y: Any, new: list[Any], forms: list[Any]) -> None:
    """By the kernel as by its matrix, to 1e-12; and the same from every form of the objects.

    Folds or groups are given there, because equal objects would be left out together: a matrix
    cannot know them, and sets that are equal need not be lists that are.
    """
    kernel = clone(kernel).fit(X, np.random.default_rng(0))
    given = "precomputed_dissimilarity" if kernel.is_dissimilarity else "precomputed"
    model = KreinRidgeClassifier(kernel=clone(kernel), cv=FOLDS).fit(X, y)
    by_matrix = KreinRidgeClassifier(kernel=given, cv=FOLDS).fit(kernel(X), y)
    f = model.decision_function(new)
    assert_allclose(f, by_matrix.decision_function(kernel(new, X)), rtol=0, atol=1e-12)
    assert_array_equal(model.predict(new), by_matrix.predict(kernel(new, X)))
    assert model.score(X, y) > 0.8
    fixed = {"lambda_plus": 0.01, "lambda_minus": 0.01, "random_state": 0}
    fits = [
        KreinRidgeClassifier(clone(kernel), **fixed).fit(form, y, groups=range(len(y)))
        for form in (X, *forms)
    ]
    for fit, form in zip(fits, (new, *forms), strict=True):
        assert_array_equal(fit.decision_function(new), fits[0].decision_function(new))
        assert fit.decision_function(form[:2]).shape == (2,)


def check_bad_object(kernel: Any, good: list[Any], bad: Any, message: str) -> None:
    """Object 1 of three is named as a column, as a row, and in fit with its number in all of X."""
    X = [good[0], bad, good[1]]
    for act in (kernel.columns, kernel.columns(good)):
        with pytest.raises(ValueError, match=r"object 1 \(of 3\) " + message):
            act(X)
    many = [good[0]] * 3000
    many[2345] = bad
    with pytest.raises(ValueError, match=r"object 2345 \(of 3000\) " + message):
        clone(kernel).fit(many, np.random.default_rng(0))


def check_missing_package(
    kernel: Any, X: list[Any], package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line that names the extra."""
    for module in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.setitem(sys.modules, module, None)
    for act in (lambda: kernel(X, X), lambda: kernel.fit(X, np.random.default_rng(0))):
        with pytest.raises(ImportError, match=rf'^this needs {package}.*"kreinlearn\[{extra}\]"$'):
            act()
