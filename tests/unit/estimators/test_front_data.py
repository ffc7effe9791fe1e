"""The estimators to try first: forms of data, and ways of working with scikit-learn."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kreinlearn import (
    Blocks,
    KreinClassifier,
    KreinRegressor,
    table,
)
from kreinlearn.kernels import Gaussian
from tests.unit.estimators.first import (
    NEW,
    N,
    X,
    classifier,
    distances,
    front,
    scores,
    target_of,
)

# Forms of data


@front
def test_sparse_rows_are_dense_rows(learner: Any) -> None:
    y = target_of(learner)
    dense = learner("gaussian", random_state=0).fit(X, y)
    found = learner("gaussian", random_state=0).fit(sp.csr_array(X), y)
    size = np.abs(scores(dense, NEW)).max()
    assert_allclose(scores(found, sp.csr_array(NEW)), scores(dense, NEW), rtol=0, atol=1e-6 * size)


@front
def test_columns_of_landmarks_are_enough(learner: Any) -> None:
    """A matrix of as many columns as landmarks gives what the whole matrix gives."""
    D, Z, y = distances(X, X), np.arange(3, 30), target_of(learner)
    params = {"kernel": "precomputed_dissimilarity", "landmarks": Z, "random_state": 0}
    whole, some = learner(**params).fit(D, y), learner(**params).fit(D[:, Z], y)
    D_new = distances(NEW, X[Z])
    assert_array_equal(scores(some, D_new), scores(whole, D_new))
    assert some.expected_error_ == whole.expected_error_
    with pytest.raises(ValueError, match="pass landmarks=<their row numbers>"):
        learner("precomputed_dissimilarity").fit(D[:, Z], y)


@front
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_rows_that_are_streamed(learner: Any, tmp_path: Path) -> None:
    rows = np.random.default_rng(4).normal(size=(9000, 2))
    y = rows[:, 0] if learner is KreinRegressor else (rows[:, 0] > 0).astype(int)
    model = learner("gaussian", landmarks=20, random_state=0)
    wanted = scores(model.fit(rows, y), NEW)
    error = model.expected_error_
    np.save(tmp_path / "X.npy", rows)
    text = tmp_path / "X.csv"
    lines = [f"{a!r},{b!r},{c!r}" for (a, b), c in zip(rows.tolist(), y.tolist(), strict=True)]
    text.write_text("\n".join(["a,b,y", *lines]) + "\n")
    blocks = Blocks(lambda: iter(np.array_split(rows, 7)))
    given = [(str(tmp_path / "X.npy"), y), (blocks, y), (table(text), "y"), (str(text), "y")]
    for X_given, y_given in given:
        model.fit(X_given, y_given)
        assert_array_equal(scores(model, NEW), wanted)
        assert model.expected_error_ == error
    assert model.score(str(text), "y") > 0.9


@front
def test_frames_and_targets_that_are_columns_of_them(learner: Any) -> None:
    pd, pa = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    y = target_of(learner)
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(y=y)
    model = learner("gaussian", random_state=0).fit(frame[["a", "b"]], frame["y"])
    assert [*model.feature_names_in_] == ["a", "b"]
    wanted = scores(model, frame[["a", "b"]])
    assert_array_equal(wanted, scores(learner("gaussian", random_state=0).fit(X, y), X))
    by_name = learner("gaussian", random_state=0).fit(pa.Table.from_pandas(frame), "y")
    assert_array_equal(scores(by_name, frame[["a", "b"]]), wanted)
    with pytest.raises(ValueError, match="pass the targets themselves"):
        learner().fit(frame, "y")


# Ways of working


def words(letters: str, rng: np.random.Generator) -> list[str]:
    return ["".join(rng.choice(list(letters), size=rng.integers(3, 8))) for _ in range(20)]


WORDS = words("abc", np.random.default_rng(5)) + words("bcd", np.random.default_rng(6))
KIND = np.repeat([0, 1], 20)


@front
def test_parameters_go_round(learner: Any) -> None:
    model = learner(Gaussian(2.0), landmarks=0.3, time_limit=3.0)
    copy = clone(model)
    assert repr(copy.get_params()) == repr(model.get_params())
    copy.set_params(kernel__width=7.0, landmarks="auto", time_limit=None)
    assert (copy.kernel.width, model.kernel.width, copy.time_limit) == (7.0, 2.0, None)
    before = repr(copy.get_params())
    copy.fit(X, target_of(learner))
    assert repr(copy.get_params()) == before
    assert copy.kernel_.width_ == 7.0
    assert not hasattr(clone(copy), "expected_error_")
    with pytest.raises(ValueError, match="Invalid parameter 'lambda_plus'"):
        copy.set_params(lambda_plus=1.0)


@front
def test_pickle(learner: Any) -> None:
    model = learner("levenshtein", landmarks=15, random_state=0).fit(WORDS, KIND)
    copy = pickle.loads(pickle.dumps(model))
    assert_array_equal(scores(copy, WORDS), scores(model, WORDS))


@front
def test_a_fitted_model_keeps_a_fold_per_row_and_no_kernel_values(learner: Any) -> None:
    rows = np.random.default_rng(8).normal(size=(4000, 2))
    y = rows[:, 0] if learner is KreinRegressor else rows[:, 0] > 0
    sizes = [
        len(pickle.dumps(learner("gaussian", landmarks=15, random_state=0).fit(rows[:n], y[:n])))
        for n in (1000, 4000)
    ]
    assert sizes[1] - sizes[0] < 3000 * 15 * 8 / 4  # a value of each landmark is 15 x 8 bytes


@front
def test_a_second_fit_leaves_nothing_of_the_first(learner: Any) -> None:
    y = target_of(learner)
    model = (
        learner("gaussian", random_state=0).fit(X, y).set_params(landmarks=X[:9].copy()).fit(X, y)
    )
    once = learner("gaussian", landmarks=X[:9].copy(), random_state=0).fit(X, y)
    assert {*vars(model)} == {*vars(once)}
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full((N, 2), np.nan), y)
    assert not [name for name in learner._fitted if name in vars(model)]


@front
def test_a_grid_over_a_pipeline(learner: Any) -> None:
    y = target_of(learner)
    model = make_pipeline(StandardScaler(), learner(Gaussian(), random_state=0))
    name = learner.__name__.lower()
    grid = {f"{name}__kernel__width": [1e-3, 3.0], f"{name}__landmarks": [None, 20]}
    search = GridSearchCV(model, grid, cv=3, error_score="raise").fit(X, y)
    assert search.best_params_[f"{name}__kernel__width"] == 3.0
    by_hand = clone(model).set_params(**search.best_params_).fit(X, y)
    assert_array_equal(search.predict(NEW), by_hand.predict(NEW))


def test_cross_validation_of_strings_is_that_of_their_distances() -> None:
    """Of words that differ: equal ones are left out together, and distances cannot tell which."""
    different, first = np.unique(WORDS, return_index=True)
    D = np.array([[float(levenshtein(a, b)) for b in different] for a in different])
    given = {"y": KIND[first], "cv": 3, "method": "predict_proba"}
    of_strings = cross_val_predict(classifier("levenshtein"), different.tolist(), **given)
    of_matrix = cross_val_predict(classifier("precomputed_dissimilarity"), D, **given)
    assert_allclose(of_strings, of_matrix, rtol=0, atol=1e-9)
    assert np.mean(of_strings.argmax(axis=1) == KIND[first]) > 0.6


def levenshtein(a: str, b: str) -> int:
    row = np.arange(len(b) + 1)
    for i, x in enumerate(a):
        before, row[0] = row.copy(), i + 1
        for j, z in enumerate(b):
            row[j + 1] = min(before[j + 1] + 1, row[j] + 1, before[j] + (x != z))
    return int(row[-1])


@front
def test_of_several_kernel_parameters_one_is_chosen(learner: Any) -> None:
    widths = [{"width": 1e-4}, {"width": 3.0}]
    model = learner("gaussian", kernel_params=widths, random_state=0).fit(X, target_of(learner))
    assert model.kernel_params_ == {"width": 3.0}
    assert [choice.kernel_params for choice in model.choices_] == widths[::-1]


# Reproducibility


@front
@pytest.mark.parametrize("landmarks", ["auto", 20])
def test_a_seed_gives_the_same_model_and_threads_change_nothing(
    learner: Any, landmarks: Any
) -> None:
    y = target_of(learner)
    fits = [
        learner("euclidean", landmarks=landmarks, random_state=3, n_jobs=n_jobs).fit(X, y)
        for n_jobs in (1, 1, 2)
    ]
    first = scores(fits[0], NEW)
    for model in fits[1:]:
        assert_array_equal(scores(model, NEW), first)
        assert model.expected_error_ == fits[0].expected_error_


@pytest.mark.parametrize("as_text", [False, True])
def test_auto_of_a_file_of_texts(tmp_path, as_text):
    """Texts are compared as texts, and several columns as records, whatever they are kept in."""
    words = ["aab", "bbb", "aba", "bab"] * 8
    texts, mixed = tmp_path / "texts.csv", tmp_path / "mixed.csv"
    texts.write_text("text,label\n" + "\n".join(f"{word},{word[0]}" for word in words))
    lines = [f"{word},{i % 5}.5,{word[0]}" for i, word in enumerate(words)]
    mixed.write_text("text,size,label\n" + "\n".join(lines))
    path = str(texts) if as_text else texts
    model = KreinClassifier(random_state=0).fit(path, "label")
    here = KreinClassifier(random_state=0).fit(words, [word[0] for word in words])
    assert model.kernel_weights_ == here.kernel_weights_
    assert model.score(path, "label") == 1.0
    of_mixed = KreinClassifier(random_state=0).fit(mixed, "label").kernel_weights_
    assert {name.split(":")[0] for name in of_mixed} == {"text", "size", "Gower()"}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kernel", ["auto", "gower", {"word": "levenshtein", "size": "gaussian"}])
def test_a_frame_that_is_not_collected(kernel: Any) -> None:
    frame = pl.DataFrame({"word": ["hat", "cat", "tiger", "tigger"] * 10, "size": np.arange(40.0)})
    y = np.arange(40) % 4 < 2
    model = KreinClassifier(kernel, random_state=0).fit(frame.lazy(), y)
    expected = KreinClassifier(kernel, random_state=0).fit(frame, y)
    np.testing.assert_array_equal(model.predict_proba(frame.lazy()), expected.predict_proba(frame))


def test_a_series_with_an_index_of_its_own() -> None:
    words = pd.Series(["hat", "cat", "tiger", "tigger"] * 10, index=np.arange(40)[::-1] + 7)
    y = pd.Series(np.arange(40) % 4 < 2, index=words.index)
    for kernel in ("auto", "levenshtein"):
        model = KreinClassifier(kernel, random_state=0).fit(words, y)
        expected = KreinClassifier(kernel, random_state=0).fit(list(words), list(y))
        np.testing.assert_array_equal(model.predict(words[::2]), expected.predict(list(words)[::2]))


def test_texts_on_dask() -> None:
    frames = pytest.importorskip("dask.dataframe")
    words, y = ["hat", "cat", "tiger", "tigger"] * 10, np.arange(40) % 4 < 2
    column = frames.from_pandas(pd.Series(words), npartitions=2)
    model = KreinClassifier("levenshtein", random_state=0).fit(column, y)
    np.testing.assert_array_equal(model.predict(column).compute(), model.predict(words))
    with pytest.raises(ValueError, match="looks at no objects on Dask; name a kernel, such as"):
        KreinClassifier().fit(column, y)
