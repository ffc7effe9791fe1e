"""Intervals, sets and novelty of dask collections: objects are left out as in one process."""

from __future__ import annotations

import numpy as np
import pytest

import kreinlearn as kl
from kreinlearn import Landmarks
from kreinlearn.distributed.entrance import for_workers
from kreinlearn.distributed.selecting import kept_on_workers, rows_but, some_rows
from tests.unit.distributed.lazy import array, close, da

N = 11_200  # of which three quarters are more than are fitted in memory
RNG = np.random.default_rng(1)
X = RNG.normal(size=(N, 3))
Y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * RNG.normal(size=N)
W = RNG.random(N) + 0.1
LABELS = np.array(["a", "bb", "c"])[np.digitize(X[:, 0], [-0.5, 0.7])]
CHUNKS = (3000, 0, 4000, N - 7000)
GIVEN = {
    "kernel": "delta_gauss", "landmarks": Landmarks(12, "uniform"), "random_state": 3,
    "lambda_plus": 1e-3, "lambda_minus": 1e-3,
}  # fmt: skip


def lazy(values):
    return array(values, CHUNKS)


@pytest.mark.parametrize("method", ["split", "cv+"])
def test_intervals_and_novelty_are_those_of_one_process(method):
    model = kl.KreinRidge(**GIVEN).fit(X, Y, W, conformal=method)
    wanted = model.predict_interval(X[:200]), model.novelty(X[:200])
    numbers, folds = model.landmark_indices_, model.folds_
    model.fit(lazy(X), lazy(Y), lazy(W), conformal=method)
    np.testing.assert_array_equal(model.landmark_indices_, numbers)
    np.testing.assert_array_equal(model.folds_, folds)
    few = array(X[:200], (80, 120))
    found = model.predict_interval(few), model.novelty(few)
    assert all(isinstance(one, da.Array) for one in found)
    close(found[0].compute(), wanted[0])
    close(found[1].compute(), wanted[1])
    close(model.predict_interval(X[:200]), wanted[0])
    parts = for_workers(model)._conformal.models
    assert not any(hasattr(part, "folds_") for part in parts)  # nothing that grows is sent


def test_sets_are_those_of_one_process():
    model = kl.KreinRidgeClassifier(**GIVEN).fit(X, LABELS, conformal="split")
    wanted = model.predict_set(X[:200], 0.8)
    model.fit(lazy(X), lazy(LABELS), conformal="split")
    found = model.predict_set(array(X[:200], (80, 120)), 0.8)
    np.testing.assert_array_equal(found.compute(), wanted)


@pytest.mark.parametrize("given", [np.arange(0, 3000, 200), X[100:115]], ids=["numbers", "objects"])
def test_given_landmarks_are_not_left_out(given):
    model = kl.KreinRidge(**{**GIVEN, "landmarks": given}).fit(X, Y, conformal="split")
    wanted = model.predict_interval(X[:200])
    close(model.fit(lazy(X), lazy(Y), conformal="split").predict_interval(X[:200]), wanted)


def test_a_frame_keeps_the_names_of_its_columns():
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    frame = pd.DataFrame(X, columns=["u", "v", "w"])
    there = dd.from_pandas(frame, npartitions=4)
    there = there[there["u"] > -1e9]  # lengths are not known any more
    model = kl.KreinRidge(**GIVEN)
    wanted = model.fit(frame, Y, conformal="split").predict_interval(frame[:100])
    model.fit(there, Y, conformal="split")
    assert list(model.feature_names_in_) == ["u", "v", "w"]
    found = model.predict_interval(dd.from_pandas(frame[:100], npartitions=2))
    close(found.compute(), wanted)
    few = dd.from_pandas(frame[:500], npartitions=2)
    assert list(kl.KreinRidge(**GIVEN).fit(few, Y[:500]).feature_names_in_) == ["u", "v", "w"]


def test_parts_of_rows_are_of_the_same_kind():
    db = pytest.importorskip("dask.bag")
    words = [f"word {i}" for i in range(50)]
    left_out = np.array([0, 7, 20, 49])
    rest = [word for i, word in enumerate(words) if i not in left_out]
    bag = db.from_sequence(words, npartitions=3)
    kept, lengths = kept_on_workers(bag, 2**20, given=True)
    assert isinstance(kept, db.Bag)
    assert kept.compute() == words
    assert sum(lengths) == 50
    assert some_rows(bag, left_out, lengths) == [words[i] for i in left_out]
    part = rows_but(bag, left_out, lengths)
    assert isinstance(part, db.Bag)
    assert part.compute() == rest
    blocks = bag.to_delayed()
    parts = [block.compute() for block in rows_but(blocks, left_out, lengths)]
    assert [word for part in parts for word in part] == rest
    assert rows_but(words, left_out, None) == rest


def test_lengths_must_agree():
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        kl.KreinRidge(**GIVEN).fit(lazy(X), Y[:-1], conformal="split")
