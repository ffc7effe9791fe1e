"""Several kernels: which of them are used, with what weights, and what that evaluates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import cross_val_score

from kreinlearn import KreinClassifier, KreinRegressor, Resources, load
from kreinlearn.kernels import Gaussian, NGrams, dissimilarity, pairwise
from kreinlearn.kernels.dissimilarity import make_transform
from kreinlearn.kernels.several import Several
from kreinlearn.learn import combination

N, NEW = 90, 30
AGAIN = 600  # pairs of a person's function that are evaluated twice, to see whether it repeats


def objects(seed: int = 0, n: int = N + NEW) -> tuple[list[Any], Any]:
    """Three numbers each: the first decides on the class, the second helps, the third is noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = (X[:, 0] + 0.5 * X[:, 1] > 0).astype(int)
    return [tuple(x) for x in X.tolist()], y


def counted(coordinate: int) -> tuple[Any, list[Any]]:
    """The distance in one coordinate, and a list of the pairs of which it was evaluated."""
    seen = list[Any]()

    def d(a: Any, b: Any) -> float:
        seen.append(frozenset([a, b]))
        return abs(float(a[coordinate] - b[coordinate]))

    d.__name__ = f"d{coordinate}"
    return dissimilarity(pairwise(d)), seen


def apart(coordinate: int) -> Any:
    def d(a: Any, b: Any) -> float:
        return abs(float(a[coordinate] - b[coordinate]))

    d.__name__ = f"d{coordinate}"
    return dissimilarity(pairwise(d))


KERNELS = [apart(0), apart(1), apart(2)]


def test_the_weights_find_the_kernels_that_matter() -> None:
    X, y = objects()
    model = KreinClassifier(KERNELS, random_state=0).fit(X[:N], y[:N])
    weights = model.kernel_weights_
    assert list(weights) == ["d0", "d1", "d2"]
    assert sum(weights.values()) == pytest.approx(1.0, abs=1e-12)
    assert weights["d0"] > weights["d2"]
    assert [*model.kernel_losses_] == ["d0", "d1", "d2"]
    assert model.kernel_losses_["d0"] == min(model.kernel_losses_.values())
    assert set(model.kernel_seconds_) == set(weights)
    alone = [KreinClassifier(k, random_state=0).fit(X[:N], y[:N]) for k in KERNELS]
    errors = [1 - one.score(X[N:], y[N:]) for one in alone]
    assert 1 - model.score(X[N:], y[N:]) <= min(errors) + np.sqrt(0.25 / NEW)


def test_the_model_is_that_of_the_sum_by_its_definition() -> None:
    X, y = objects(1)
    model = KreinClassifier(KERNELS, random_state=0).fit(X[:N], y[:N])
    kernel, values = model.kernel_, np.array(X)
    total, rows = np.zeros((N, N)), np.zeros((NEW, N))
    coordinates = [int(label[1]) for label, w in model.kernel_weights_.items() if w]
    for number, name, weight in kernel.terms:
        x = values[:, coordinates[number]]
        D = np.abs(x[:, None] - x[:N])
        transform = make_transform(name, D[:N])
        a = transform.offsets(D)
        S = transform.similarity(D, a, a[:N])
        total += weight * 0.5 * (S[:N] + S[:N].T)
        rows += weight * S[N:]
    bound = 64 * len(kernel.terms) * np.finfo(float).eps * np.abs(total).max()
    assert_allclose(kernel(X[:N]), total, atol=bound)
    assert_allclose(kernel(X[N:], X[:N]), rows, atol=bound)
    assert_allclose(kernel.diagonal(X[:N]), np.diagonal(total), atol=bound)
    again = kernel.columns(X[:40])(X[N:])  # not all reference objects are columns here
    assert_allclose(again, rows[:, :40], atol=bound)


@pytest.mark.parametrize("front", [KreinClassifier, KreinRegressor])
def test_a_list_of_one_kernel_is_that_kernel_bit_for_bit(front: Any) -> None:
    X, y = objects(2)
    params = {"landmarks": None, "random_state": 0}  # "auto" depends on what a function costs
    one = front(KERNELS[0], **params).fit(X[:N], y[:N])
    for kernels in ([KERNELS[0]], [KERNELS[0], KERNELS[0]]):
        other = front(kernels, **params).fit(X[:N], y[:N])
        assert_array_equal(one.predict(X), other.predict(X))
        assert_array_equal(one.dual_coef_, other.dual_coef_)
        assert not hasattr(other, "kernel_weights_")


def test_no_pair_is_evaluated_twice() -> None:
    X, y = objects(3)
    kernels, seen = zip(*(counted(i) for i in range(3)), strict=True)
    model = KreinClassifier(list(kernels), random_state=0).fit(X[:N], y[:N])
    every_pair = N * (N - 1) // 2
    for pairs in seen:  # a few pairs of a person's function are looked at again
        different = [pair for pair in pairs if len(pair) == 2]
        assert len(set(different)) == every_pair
        assert len(different) <= every_pair + AGAIN
        pairs.clear()
    model.predict(X[N:])
    for pairs, w in zip(seen, model.kernel_weights_.values(), strict=True):
        assert len(pairs) == (NEW * N if w else 0)


def test_kernels_without_weight_are_evaluated_on_the_sample_alone() -> None:
    X, y = objects(4, n=600)
    y = (np.array(X)[:, 0] > 0).astype(int)
    (useful, some), (noise, few) = counted(0), counted(2)
    model = KreinClassifier([useful, noise], landmarks=None, random_state=0).fit(X, y)
    assert model.kernel_weights_["d2"] == 0
    most = combination.COMPARED * (combination.COMPARED + 1) // 2
    assert len(few) <= most + AGAIN
    different = [pair for pair in some if len(pair) == 2]
    assert len(set(different)) == 600 * 599 // 2
    assert len(different) <= 600 * 599 // 2 + AGAIN


def test_all_objects_are_landmarks_in_any_order() -> None:
    """The basis was that of another order, and the test error 15,000 times as large."""
    X = np.random.default_rng(0).normal(size=(260, 3))
    order = np.random.default_rng(1).permutation(60)
    models = [
        KreinRegressor(["manhattan", "euclidean"], landmarks=landmarks, random_state=0)
        for landmarks in (None, order)
    ]
    plain, permuted = (model.fit(X[:60], X[:60, 0]).predict(X[60:]) for model in models)
    assert_allclose(permuted, plain, rtol=1e-9, atol=1e-9)
    assert models[0].expected_error_ == pytest.approx(models[1].expected_error_, rel=1e-9)


@pytest.mark.parametrize("landmarks", [20, "uniform", [0, 5, 7, 30, 31, 60, 61, 62, 80]])
def test_landmarks_are_those_that_were_asked_for(landmarks: Any) -> None:
    X, y = objects(5)
    model = KreinClassifier(KERNELS, landmarks=landmarks, random_state=0).fit(X[:N], y[:N])
    if isinstance(landmarks, list):
        assert_array_equal(model.landmark_indices_, landmarks)
    elif isinstance(landmarks, int):
        assert model.n_landmarks_ == landmarks
    assert model.score(X[N:], y[N:]) > 0.7


def test_a_fit_can_be_repeated_and_saved(tmp_path: Any) -> None:
    X, y = objects(6)
    words = ["".join(chr(97 + int(4 * abs(v)) % 26) for v in x) for x in X]
    names = ["levenshtein", "jaro_winkler", "lcs"]
    model = KreinClassifier(names, random_state=0).fit(words[:N], y[:N])
    again = KreinClassifier(names, random_state=0).fit(words[:N], y[:N])
    assert_array_equal(model.predict_proba(words), again.predict_proba(words))
    model.save(tmp_path / "m.krein")
    other = load(tmp_path / "m.krein")
    assert_array_equal(model.predict_proba(words), other.predict_proba(words))
    assert other.kernel_weights_ == model.kernel_weights_
    assert other.kernel_losses_ == model.kernel_losses_
    assert other.kernel_similarities_ == model.kernel_similarities_


def test_a_store_holds_the_values_of_the_sum(tmp_path: Any) -> None:
    X, y = objects(7)
    words = ["".join(chr(97 + int(4 * abs(v)) % 26) for v in x) for x in X]
    names = ["levenshtein", "jaro_winkler"]
    plain = KreinClassifier(names, landmarks=20, random_state=0).fit(words[:N], y[:N])
    for _ in range(2):
        resources = Resources(store=tmp_path / "store")
        model = KreinClassifier(names, landmarks=20, resources=resources, random_state=0)
        model.fit(words[:N], y[:N])
        assert_array_equal(model.predict_proba(words), plain.predict_proba(words))


def test_similarities_and_dissimilarities_stand_side_by_side() -> None:
    X, y = objects(8)
    vectors = np.array(X)
    kernels = [Gaussian(), "manhattan", "cosine"]
    model = KreinClassifier(kernels, random_state=0).fit(vectors[:N], y[:N])
    assert model.score(vectors[N:], y[N:]) > 0.8
    assert len(model.kernel_weights_) == 3
    weights = np.ones(N)
    weights[:10] = 0
    light = KreinClassifier(kernels, random_state=0).fit(vectors[:N], y[:N], sample_weight=weights)
    left = KreinClassifier(kernels, random_state=0).fit(vectors[10:N], y[10:N])
    assert light.kernel_losses_ == pytest.approx(left.kernel_losses_, rel=0.3)


# What cannot be


@pytest.mark.parametrize(
    ("kernels", "error", "message"),
    [
        ([], ValueError, r"kernel=\[\] holds no kernel; pass a list of kernels"),
        (["levenshtein", "nonsense"], ValueError, "nonsense"),
        (["levenshtein", 3], TypeError, "kernel=3 is neither a name"),
        (["levenshtein", "gaussian"], ValueError, "all parts of a combination see the same X"),
    ],
)
def test_lists_that_make_no_sense(kernels: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        KreinClassifier(kernels).fit(["ab", "cd", "ef", "gh"], [0, 0, 1, 1])


def test_parameters_belong_to_one_kernel() -> None:
    with pytest.raises(ValueError, match="give each kernel its own parameters"):
        KreinClassifier(["dtw", "msm"], kernel_params={"window": 0.1}).fit(
            [[1.0, 2.0]] * 4, [0, 1] * 2
        )


def test_a_list_has_no_values_before_it_is_learned() -> None:
    with pytest.raises(TypeError, match="no values before its weights are learned"):
        Several(["levenshtein", "lcs"]).fit(["a", "b"], np.random.default_rng(0))(["a", "b"])


def test_an_object_on_which_one_kernel_fails_is_named() -> None:
    X = ["ab", "cd", 3, "gh"]
    with pytest.raises((TypeError, ValueError), match="object 2"):
        KreinClassifier(["levenshtein", "jaro_winkler"]).fit(X, [0, 0, 1, 1])


# Given matrices


def given_matrices(n: int = 120) -> tuple[list[Any], Any]:
    X, y = objects(9, n)
    values = np.array(X)
    return [np.abs(values[:, i, None] - values[:, i]) for i in range(3)], y


def test_a_list_of_matrices_is_a_list_of_kernels_on_row_numbers() -> None:
    matrices, y = given_matrices()
    numbers = np.arange(len(y))
    model = KreinClassifier(matrices, random_state=0).fit(numbers[:N], y[:N])
    assert list(model.kernel_weights_) == ["matrix 1", "matrix 2", "matrix 3"]
    X, _ = objects(9, len(y))
    by_function = KreinClassifier(KERNELS, random_state=0).fit(X[:N], y[:N])
    assert [*model.kernel_weights_.values()] == [*by_function.kernel_weights_.values()]
    assert_allclose(model.predict_proba(numbers[N:]), by_function.predict_proba(X[N:]), atol=1e-9)
    scores = cross_val_score(KreinClassifier(matrices, random_state=0), numbers, y, cv=3)
    assert scores.mean() > 0.8


def test_matrices_that_do_not_fit() -> None:
    matrices, y = given_matrices(20)
    numbers = np.arange(20)
    with pytest.raises(ValueError, match=r"row number 10, and a given matrix has 10 rows"):
        KreinClassifier([matrices[0], matrices[1][:10, :10]]).fit(numbers, y)
    with pytest.raises(ValueError, match=r"must be square, got an array of shape \(20, 10\)"):
        KreinClassifier([matrices[0], matrices[1][:, :10]]).fit(numbers, y)
    with pytest.raises(ValueError, match="are its row numbers, 0 to 19"):
        KreinClassifier(matrices).fit(["a"] * 20, y)
    matrices[1][3, 4] = np.nan
    with pytest.raises(ValueError, match=r"the matrix is nan at \(3, 4\)"):
        KreinClassifier(matrices).fit(numbers, y)
    with pytest.raises(ValueError, match="all weights of 2 kernels are zero"):
        KreinClassifier(0 * NGrams() + 0 * NGrams(idf=True)).fit(["a", "b"] * 10, y)
    with pytest.raises(ValueError, match=r'belong to one kernel, and kernel is "auto"'):
        KreinClassifier(kernel_params={"foo": 1}).fit(["a", "b"] * 10, y)


def test_a_list_with_a_kernel_on_other_objects() -> None:
    with pytest.raises(ValueError, match="dtw: object 0"):
        KreinClassifier(["levenshtein", "dtw"]).fit(["a", "b"] * 10, [0, 1] * 10)


def test_matrices_are_data_of_a_model_file(tmp_path: Any) -> None:
    matrices, y = given_matrices(60)
    model = KreinClassifier(matrices, random_state=0).fit(np.arange(50), y[:50])
    model.save(tmp_path / "m.krein")
    new = np.arange(50, 60)
    assert_array_equal(load(tmp_path / "m.krein").predict(new), model.predict(new))


def test_landmarks_from_outside_are_the_reference_objects() -> None:
    X, y = objects(10)
    kernels, seen = zip(*(counted(i) for i in range(2)), strict=True)
    model = KreinClassifier(list(kernels), landmarks=X[:9], random_state=0).fit(X[9:N], y[9:N])
    for pairs in seen:
        pairs.clear()
    model.predict(X[N:])
    for pairs, w in zip(seen, model.kernel_weights_.values(), strict=True):
        assert len(pairs) == (9 * NEW if w else 0)
