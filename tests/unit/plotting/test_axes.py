"""Axes of learners are those of the similarity, not of the approximation that they predict with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")


from kreinlearn import (  # noqa: E402
    KreinNystroem,
    KreinPCA,
    KreinRidge,
    KreinRidgeClassifier,
    KreinSVC,
    Landmarks,
    indefiniteness,
    load,
    save,
)
from kreinlearn.datasets import make_polygons  # noqa: E402
from kreinlearn.plotting import (  # noqa: E402
    EmbeddingDisplay,
    PenaltyDisplay,
    SpectrumDisplay,
)


@pytest.fixture(scope="module")
def polygons() -> Any:
    return make_polygons(150, random_state=0)


@pytest.fixture(scope="module")
def learner(polygons: Any) -> Any:
    options: Any = {"similarity": "squared", "lambda_plus": 0.01, "lambda_minus": 0.01}
    return KreinRidgeClassifier("hausdorff", landmarks=50, random_state=0, **options).fit(*polygons)


def centred_squares(model: Any, X: Any) -> Any:
    """-1/2 J D^2 J, centred on the landmarks of a model, from the distances."""
    Z, n = model.landmarks_, len(X)
    D = model.kernel_.columns([*X, *Z])(X) ** 2
    a = D[:, n:].mean(axis=1)
    c = (model.kernel_.columns(Z)(Z) ** 2).mean()
    return 0.5 * (a[:, None] + a - D[:, :n] - c)


def share_of(values: Any) -> float:
    return float(-values[values < 0].sum() / np.abs(values).sum())


def share_in(title: str) -> float:
    return float(title.split()[-6]) / 100


def test_a_spectrum_says_what_it_is_the_spectrum_of(polygons: Any, learner: Any) -> None:
    X = polygons[0]
    own = SpectrumDisplay.from_estimator(learner).ax_.get_title()
    assert own.startswith("Signed spectrum of the approximation by 50 landmarks:\n")
    true = share_of(np.linalg.eigvalsh(centred_squares(learner, X)))
    assert abs(share_in(own) - true) > 0.05  # what it says is so of the approximation alone
    with_X = SpectrumDisplay.from_estimator(learner, X).ax_.get_title()
    assert "of the approximation by 50 landmarks\n(error 4" in with_X
    assert share_in(with_X) == pytest.approx(true, abs=0.1)


def test_a_learner_on_all_objects_has_the_spectrum_of_the_similarity(polygons: Any) -> None:
    X, y = (part[:60] for part in polygons)
    options: Any = {"similarity": "squared", "lambda_plus": 0.01, "lambda_minus": 0.01}
    model = KreinSVC("hausdorff", landmarks=None, random_state=0, **options).fit(X, y)
    display = SpectrumDisplay.from_estimator(model, X)
    share = 100 * indefiniteness(X, "hausdorff")
    assert display.ax_.get_title() == f"Signed spectrum: {share:.3g} % of it is negative"
    D = np.linalg.eigvalsh(centred_squares(model, X))
    largest = D[np.argsort(-np.abs(D))][:20]
    np.testing.assert_allclose(np.asarray(display.eigenvalues)[:20], largest, rtol=1e-6)


@pytest.mark.parametrize("model", [KreinPCA(2), KreinNystroem(rank=2), KreinNystroem(rank="auto")])
def test_a_spectrum_of_a_few_axes_is_called_that(model: Any) -> None:
    X = np.random.default_rng(0).normal(size=(80, 3))
    model = model.set_params(kernel="delta_gauss", random_state=0).fit(X)
    kept = "axes" if isinstance(model, KreinPCA) else "dimensions"
    for display in (
        SpectrumDisplay.from_estimator(model),
        SpectrumDisplay.from_estimator(model, X),
    ):
        assert f"of the {model.rank_} {kept} kept:" in display.ax_.get_title()


def test_the_rank_of_a_learner_is_that_of_its_landmarks() -> None:
    X = np.random.default_rng(0).normal(size=(80, 3))
    options: Any = {"lambda_plus": 1, "lambda_minus": 1, "random_state": 0}
    model = KreinRidge("delta_gauss", landmarks=Landmarks(20, rank=3), **options).fit(X, X[:, 0])
    assert "of the 3 dimensions kept:" in SpectrumDisplay.from_estimator(model).ax_.get_title()
    assert "kept" not in SpectrumDisplay.from_estimator(model, X).ax_.get_title()


def test_a_machine_with_both_kinds_of_penalties_has_a_loss_to_draw() -> None:
    X = np.random.default_rng(0).normal(size=(80, 3))
    y = X[:, 0] > 0
    model = KreinSVC("delta_gauss", landmarks=15, lambda_l1=0.01, random_state=0).fit(X, y)
    assert np.isfinite(PenaltyDisplay.from_estimator(model, X, y, grid=2).losses).all()


def test_objects_lie_on_axes_of_the_similarity(polygons: Any, learner: Any) -> None:
    X, y = polygons
    display = EmbeddingDisplay.from_estimator(learner, X, y)
    D, U = np.linalg.eigh(centred_squares(learner, X))
    order = np.argsort(-np.abs(D))[:2]
    np.testing.assert_allclose(display.eigenvalues, D[order], rtol=0.2)
    assert np.linalg.norm(learner.eigenvalues_[:2] - D[order]) > 5 * np.abs(D[order[0]])
    norms = np.linalg.norm(display.coordinates, axis=0)
    cosines = np.abs(np.sum(display.coordinates * U[:, order], axis=0)) / norms
    assert cosines.min() > 0.8
    assert display.ax_.get_title() == "Objects on two axes of the similarity\n(by 50 landmarks)"


def test_other_objects_and_rows_that_are_drawn() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 3))
    y = X[:, 0]
    model = KreinRidge("delta_gauss", landmarks=20, lambda_plus=1, lambda_minus=1, random_state=0)
    model.fit(X[:500], y[:500])
    found = SpectrumDisplay.from_estimator(model, X[500:])
    K = model.kernel_(X[500:], X[500:])
    D = np.linalg.eigvalsh(K)
    np.testing.assert_allclose(found.eigenvalues[:2], D[np.argsort(-np.abs(D))[:2]], rtol=0.1)


def test_axes_do_not_depend_on_the_unit() -> None:
    X = np.random.default_rng(0).normal(size=(60, 3))
    K = np.tanh(X @ X.T - 1)
    first, second = (
        KreinRidge("precomputed", landmarks=15, lambda_plus=c, lambda_minus=c, random_state=0)
        for c in (1.0, 2.0**400)
    )
    a = EmbeddingDisplay.from_estimator(first.fit(K, X[:, 0]), K)
    b = EmbeddingDisplay.from_estimator(second.fit(K * 2.0**400, X[:, 0]), K * 2.0**400)
    np.testing.assert_allclose(b.eigenvalues / 2.0**400, a.eigenvalues, rtol=1e-9)
    np.testing.assert_allclose(b.coordinates / 2.0**200, a.coordinates, atol=1e-9)


def test_a_matrix_of_other_objects_has_no_axes_for_a_learner() -> None:
    X = np.random.default_rng(0).normal(size=(40, 3))
    K = np.tanh(X @ X.T - 1)
    model = KreinRidge("precomputed", landmarks=15, lambda_plus=1, lambda_minus=1, random_state=0)
    model.fit(K, X[:, 0])
    for make in (EmbeddingDisplay, SpectrumDisplay):
        with pytest.raises(ValueError, match=r"pass the square one .* KreinPCA instead"):
            make.from_estimator(model, K[:5])


def test_a_loaded_learner_is_drawn(tmp_path: Path, polygons: Any, learner: Any) -> None:
    X = polygons[0]
    save(learner, tmp_path / "model.krein")
    loaded = load(tmp_path / "model.krein")
    np.testing.assert_allclose(
        EmbeddingDisplay.from_estimator(loaded, X).coordinates,
        EmbeddingDisplay.from_estimator(learner, X).coordinates, atol=1e-9,
    )  # fmt: skip


def test_penalties_of_a_loaded_learner_are_looked_at_on_other_folds(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(60, 3))
    y = X[:, 0] * X[:, 1]
    model = KreinRidge("delta_gauss", landmarks=15, random_state=0).fit(X, y)
    save(model, tmp_path / "model.krein")
    known = PenaltyDisplay.from_estimator(model, X, y, grid=3)
    drawn = PenaltyDisplay.from_estimator(load(tmp_path / "model.krein"), X, y, grid=3)
    assert known.criterion == "cross-validated squared error"
    assert drawn.criterion == "cross-validated squared error, folds drawn anew"
    np.testing.assert_allclose(drawn.losses, known.losses, rtol=0.5)
