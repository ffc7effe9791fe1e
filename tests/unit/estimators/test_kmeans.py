"""KreinKMeans: what its attributes say, recomputed from the distances; new objects; bad inputs."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import is_clusterer
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

import kreinlearn
from kreinlearn import KreinKMeans, Resources
from kreinlearn.datasets import make_noisy_strings, make_polygons
from tests.sklearn_checks import checks

MATRIX = "precomputed_dissimilarity"
WORDS, LABELS = make_noisy_strings(120, n_classes=3, random_state=0)
BOTH = pytest.mark.parametrize("spectrum", ["shift", "flip"])


@pytest.fixture(scope="module")
def D() -> Any:
    """Distances that are not Euclidean."""
    X, _ = make_polygons(70, random_state=0)
    from kreinlearn.kernels import resolve

    return resolve("hausdorff").symmetric(X)


def eigen(D: Any) -> tuple[Any, Any]:
    J = np.eye(len(D)) - 1 / len(D)
    return np.linalg.eigh(-0.5 * J @ (D * D) @ J)


def cost(d2: Any, labels: Any) -> float:
    groups = [labels == c for c in np.unique(labels)]
    return float(sum(d2[np.ix_(g, g)].sum() / (2 * g.sum()) for g in groups))


def test_the_inertia_of_shift_is_the_cost_of_the_given_distances(D: Any) -> None:
    model = KreinKMeans(4, kernel=MATRIX, random_state=0).fit(D)
    assert eigen(D)[0].min() < -1e-3  # not Euclidean
    assert model.inertia_ == pytest.approx(cost(D * D, model.labels_), rel=1e-9)


def test_the_inertia_of_flip_is_the_cost_of_the_flipped_distances(D: Any) -> None:
    model = KreinKMeans(4, kernel=MATRIX, spectrum="flip", random_state=0).fit(D)
    values, U = eigen(D)
    F = U * np.sqrt(np.abs(values))
    d2 = ((F[:, None] - F[None]) ** 2).sum(axis=2)
    assert model.inertia_ == pytest.approx(cost(d2, model.labels_), rel=1e-9)


@BOTH
def test_groups_are_found_and_predicted(spectrum: str) -> None:
    model = KreinKMeans(3, kernel="levenshtein", spectrum=spectrum, random_state=0).fit(WORDS)
    assert is_clusterer(model)
    assert adjusted_rand_score(LABELS, model.labels_) > 0.95
    np.testing.assert_array_equal(model.predict(WORDS), model.labels_)
    gaps = model.transform(WORDS)
    np.testing.assert_array_equal(gaps.argmin(axis=1), model.labels_)
    assert model.medoids_ == [WORDS[i] for i in model.medoid_indices_]
    for c, i in enumerate(model.medoid_indices_):
        inside = np.flatnonzero(model.labels_ == c)
        assert i in inside
        assert gaps[i, c] <= gaps[inside, c].min() + 1e-6


def test_predict_is_labels_wherever_an_object_is_at_no_negative_distance(D: Any) -> None:
    model = KreinKMeans(6, kernel=MATRIX, random_state=0).fit(D)
    own = model.transform(D)[np.arange(len(D)), model.labels_]
    assert (model.predict(D) == model.labels_)[own >= 0].all()


@BOTH
def test_the_order_of_objects_does_not_matter(spectrum: str) -> None:
    order = np.random.default_rng(1).permutation(len(WORDS))
    one, other = (
        KreinKMeans(3, kernel="levenshtein", spectrum=spectrum, random_state=0).fit(X)
        for X in (WORDS, [WORDS[i] for i in order])
    )
    assert adjusted_rand_score(one.labels_[order], other.labels_) == 1
    assert other.inertia_ == pytest.approx(one.inertia_, rel=1e-9)


def test_weights_count_objects() -> None:
    w = np.random.default_rng(0).integers(0, 3, size=len(WORDS))
    weighted = KreinKMeans(3, kernel="levenshtein", random_state=0).fit(WORDS, sample_weight=w)
    d2 = weighted.transform(WORDS)[np.arange(len(w)), weighted.labels_] ** 2
    assert weighted.inertia_ == pytest.approx(float(w @ d2), rel=1e-9)
    totals = np.bincount(weighted.labels_, w)
    np.testing.assert_array_equal(weighted.cluster_weights_, totals)
    assert (w[weighted.medoid_indices_] > 0).all()


def test_rows_that_do_not_fit_are_assigned_in_blocks() -> None:
    X, y = make_noisy_strings(3000, n_classes=3, random_state=0)
    tiny = Resources(memory_budget="1.2MB")
    agreement = []
    for seed in range(3):  # a group may have none of so few landmarks
        model = KreinKMeans(
            3, kernel="levenshtein", landmarks=kreinlearn.Landmarks(5, pool=500), resources=tiny,
            random_state=seed,
        ).fit(X * 4)  # fmt: skip
        assert model.cluster_weights_.sum() < 12_000  # a sample was grouped
        assert len(model.labels_) == 12_000
        assert model.medoids_ == [(X * 4)[i] for i in model.medoid_indices_]
        assert model.landmarks_ == [(X * 4)[i] for i in model.landmark_indices_]
        agreement.append(adjusted_rand_score(np.tile(y, 4), model.labels_))
    assert np.median(agreement) > 0.5


def test_the_number_of_groups_is_found() -> None:
    model = KreinKMeans("auto", kernel="levenshtein", random_state=0).fit(WORDS)
    tried = model.silhouettes_
    assert model.n_clusters_ == tried[tried[:, 1].argmax(), 0] == 3


@BOTH
def test_a_model_file(spectrum: str, tmp_path: Path) -> None:
    model = KreinKMeans("auto", kernel="levenshtein", spectrum=spectrum, random_state=0).fit(WORDS)
    model.save(tmp_path / "m.krein")
    again = kreinlearn.load(tmp_path / "m.krein")
    assert again.medoids_ == model.medoids_
    np.testing.assert_array_equal(again.labels_, model.labels_)
    np.testing.assert_array_equal(again.transform(WORDS), model.transform(WORDS))
    assert again.inertia_ == model.inertia_


# Bad inputs; the numbers are those of docs/bad_inputs.rst


def test_bad_input_100_more_clusters_than_objects() -> None:
    with pytest.raises(ValueError, match=r"n_clusters=9 exceeds .* n_samples=3; lower n_clusters"):
        KreinKMeans(9, kernel="levenshtein").fit(["a", "b", "c"])
    with pytest.raises(ValueError, match="2 of positive weight"):
        KreinKMeans(3, kernel="levenshtein").fit(["a", "b", "c"], sample_weight=[1, 0, 1])


@pytest.mark.parametrize("k", [0, -1, 2.5, "many"])
def test_bad_input_101_no_number_of_clusters(k: Any) -> None:
    with pytest.raises(ValueError, match="'n_clusters' parameter of KreinKMeans must be"):
        KreinKMeans(k, kernel="levenshtein").fit(WORDS)


def test_bad_input_102_one_cluster(D: Any) -> None:
    model = KreinKMeans(1, kernel=MATRIX).fit(D)
    assert set(model.labels_) == {0}
    assert model.medoid_indices_[0] == (D * D).sum(axis=1).argmin()
    assert model.inertia_ == pytest.approx((D * D).sum() / (2 * len(D)), rel=1e-9)


def test_bad_input_103_fewer_objects_differ_than_clusters() -> None:
    with pytest.warns(ConvergenceWarning, match="only 2 objects differ"):
        model = KreinKMeans(4, kernel="levenshtein").fit(["ab"] * 5 + ["xyz"] * 5)
    assert model.n_clusters_ == 2


def test_bad_input_104_missing_values_in_a_matrix(D: Any) -> None:
    bad = D.copy()
    bad[3, 5] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        KreinKMeans(3, kernel=MATRIX).fit(bad)


def test_bad_input_105_auto_with_two_objects() -> None:
    with pytest.raises(ValueError, match="at least 3 objects, got n_samples=2"):
        KreinKMeans("auto", kernel="levenshtein").fit(["a", "b"])


def test_bad_input_106_too_few_passes() -> None:
    X = np.random.default_rng(0).normal(size=(200, 2))
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        KreinKMeans(20, kernel="euclidean", max_iter=1, random_state=0).fit(X)


# scikit-learn's own checks

REPEATED = "seeds are drawn from rows, and repeated rows are more"
FORMS = {
    "default": KreinKMeans(n_clusters=3, random_state=0),
    "landmarks": KreinKMeans(n_clusters=3, landmarks=10, spectrum="flip", random_state=0),
}


def expected_to_fail(model: Any) -> dict[str, str]:
    kinds = ("dense", "sparse")
    return {f"check_sample_weight_equivalence_on_{kind}_data": REPEATED for kind in kinds}


@pytest.mark.parametrize(("model", "check"), checks(FORMS, expected_to_fail, strict=False))
def test_sklearn_check(model: Any, check: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of few objects, and of what the checks feed
        check(model)
