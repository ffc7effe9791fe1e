"""The choice of a similarity: no pair twice, the smallest loss, and nothing else changed."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from kreinlearn.kernels import Gaussian, Precomputed, dissimilarity, pairwise
from kreinlearn.kernels.dissimilarity import AUTO_TRANSFORMS, shares_of
from kreinlearn.learn.folds import TRAINING
from kreinlearn.learn.similarity import SimilaritySpec, choose_similarity, with_kernel
from tests import oracles
from tests.unit.learn.learning import (
    DISTANCES,
    FEW,
    MOST,
    NUMBERS,
    K,
    N,
    X,
    averaged,
    of_distances,
    of_vectors,
    opened,
    rng,
    task_of,
)


def counted(pairs):
    def d(i, j):
        pairs[min(i, j), max(i, j)] += 1
        return float(DISTANCES[i, j])

    return dissimilarity(pairwise(d))


@pytest.mark.parametrize("sampled", [N, 30])
def test_no_pair_is_evaluated_twice(sampled):
    counts, landmarks = Counter(), np.arange(0, 30, 2)
    given = opened(counted(counts), list(range(N)), landmarks, rows=np.arange(sampled))
    chosen = choose_similarity(task_of(*given), SimilaritySpec("auto"))
    _, features = chosen.task.swept(by_fold=True)
    assert set(counts.values()) == {1}
    expected = {(min(i, j), max(i, j)) for i in range(N) for j in landmarks}
    assert set(counts) == expected
    assert {choice.similarity for choice in chosen.choices} == set(AUTO_TRANSFORMS)
    assert features.columns.transform is not None


def test_no_pair_is_evaluated_twice_by_a_kernel():
    """Three widths of a function are three kernels, each evaluated once for a pair."""
    counts = Counter()

    def k(i, j, width):
        counts[width, min(i, j), max(i, j)] += 1
        return float(np.exp(-DISTANCES[i, j] / width))

    landmarks = np.arange(0, 40, 3)
    task = task_of(*opened(pairwise(k, width=1.0), list(range(N)), landmarks))
    kernels = [({"width": 1.0}, None)]
    kernels += [
        ({"width": width}, lambda pairs, width=width: pairwise(k, width=width))
        for width in (2.0, 5.0)
    ]
    chosen = choose_similarity(task, SimilaritySpec(kernels=kernels))
    assert set(counts.values()) == {1}
    assert len(counts) == 3 * len({(min(i, j), max(i, j)) for i in range(N) for j in landmarks})
    assert chosen.kernel_params == chosen.choices[0].kernel_params
    np.testing.assert_array_equal(chosen.task.sample.landmarks, landmarks)


def test_a_task_seen_by_another_kernel():
    first = of_vectors(FEW)
    other = with_kernel(first, Gaussian(2.0).fit(X, rng()))
    np.testing.assert_array_equal(other.sample.landmarks, first.sample.landmarks)
    np.testing.assert_array_equal(other.sample.rows, first.sample.rows)
    np.testing.assert_array_equal(other.folds, first.folds)
    gaps = ((X[:, None] - X[FEW]) ** 2).sum(2)
    np.testing.assert_allclose(other.sample.C, np.exp(-gaps / 2.0), rtol=0, atol=1e-13)
    np.testing.assert_allclose(first.sample.C, K[:, FEW], rtol=0, atol=1e-13)


def test_of_few_landmarks_the_similarity_of_smallest_loss_is_chosen():
    task = of_distances(FEW)
    before = task.sample.C.copy()
    chosen = choose_similarity(task, SimilaritySpec("auto"))
    choices = chosen.choices
    assert {choice.similarity for choice in choices} == set(AUTO_TRANSFORMS)
    assert chosen.similarity == choices[0].similarity == chosen.task.similarity
    losses = np.array([choice.loss for choice in choices])
    assert losses[0] == min(losses[:2])
    assert (np.diff(losses[2:]) >= 0).all()
    for choice in choices:
        other = task.using(choice.similarity)
        loss = averaged(other.terms_of(other.splits()), choice.tuned.values)
        assert choice.loss == pytest.approx(loss, rel=1e-6)
    np.testing.assert_array_equal(task.sample.C, before)  # the task given is not changed
    assert task.similarity == "squared"


OTHERS = rng(1).permutation(N) % 3


@pytest.mark.parametrize("rounds", [(NUMBERS,), (NUMBERS, OTHERS)], ids=["one", "two"])
def test_of_all_objects_similarities_are_blended(rounds):
    """Each is shown behind the blend, with its penalties and their loss."""
    task = replace(of_distances(np.arange(N)), rounds=rounds)
    before = task.sample.raw.copy()
    chosen = choose_similarity(task, SimilaritySpec("auto"))
    blend, *alone = chosen.choices
    assert chosen.similarity == blend.similarity == chosen.task.similarity
    assert set(shares_of(blend.similarity)) <= set(AUTO_TRANSFORMS)
    assert len(shares_of(blend.similarity)) > 1
    assert {choice.similarity for choice in alone} == set(AUTO_TRANSFORMS)
    losses = [choice.loss for choice in alone]
    assert losses == sorted(losses)
    for choice in chosen.choices:
        other = task.using(choice.similarity)
        folds = [replace(other, rounds=(), folds=each) for each in rounds]
        terms = [fold for each in folds for fold in each.terms_of(each.splits())]
        assert choice.loss == pytest.approx(averaged(terms, choice.tuned.values), rel=1e-6)
    np.testing.assert_array_equal(task.sample.raw, before)  # the task given is not changed
    assert task.similarity == "squared"
    # the eigenbasis, the loss and the penalties of the blend are not found again
    np.testing.assert_array_equal(chosen.task.tuned.values, blend.tuned.values)
    assert chosen.task.tuning(blend.tuned.values)[0] == blend.loss
    spectrum = chosen.task.basis.spectrum
    K = chosen.task.sample.square(blend.similarity)
    np.testing.assert_allclose((spectrum.U * spectrum.D) @ spectrum.U.T, K, rtol=0, atol=1e-10)


def test_penalties_of_all_rows_are_handed_on():
    """Where the sample is all rows, what the choice has tuned is tuned already."""
    chosen = choose_similarity(of_distances(FEW), SimilaritySpec("auto"))
    np.testing.assert_array_equal(chosen.task.tuned.values, chosen.choices[0].tuned.values)
    some = opened(Precomputed(is_dissimilarity=True), DISTANCES, FEW, rows=np.union1d(FEW, [1, 3]))
    assert choose_similarity(task_of(*some), SimilaritySpec("auto")).task.tuned is None


def test_tied_penalties_stay_tied():
    chosen = choose_similarity(of_distances(FEW), SimilaritySpec("auto", equal=True))
    for choice in chosen.choices:
        assert choice.tuned.values[0] == choice.tuned.values[1]


def test_a_transformation_that_is_named_is_not_compared():
    chosen = choose_similarity(of_distances(FEW), SimilaritySpec("exp"))
    assert (chosen.similarity, chosen.choices) == ("exp", None)
    assert chosen.task.similarity == "exp"
    only = choose_similarity(of_vectors(FEW), SimilaritySpec("auto"))
    assert (only.similarity, only.kernel_params, only.choices) == (None, None, None)


def test_all_landmarks_are_the_reference_set():
    """Not only those of a first draw: the similarity is that of all landmarks."""
    pairs, sample = opened(Precomputed(is_dissimilarity=True), DISTANCES, FEW[:4])
    task = task_of(pairs, pairs.grown(sample, FEW[4:]))
    assert task.sample.transform.n_reference == 4
    found = choose_similarity(task, SimilaritySpec("squared")).task.sample
    D_ZZ = DISTANCES[np.ix_(FEW, FEW)]
    expected = oracles.centred_on(DISTANCES[:, FEW], DISTANCES[:, FEW], D_ZZ, D_ZZ)
    np.testing.assert_allclose(found.C, expected, rtol=0, atol=1e-12)


def test_the_first_is_taken_where_no_fold_can_judge():
    task = of_vectors(MOST, folds=np.full(N, TRAINING))
    kernels = [({"a": 1}, None), ({"a": 2}, lambda pairs: Gaussian(2.0).fit(X, rng()))]
    chosen = choose_similarity(task, SimilaritySpec(kernels=kernels))
    assert [choice.loss for choice in chosen.choices] == [np.inf, np.inf]
    assert chosen.kernel_params == {"a": 1}
