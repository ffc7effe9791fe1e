"""Displays: what is drawn, read back from matplotlib, is what another computation gives."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from matplotlib import pyplot  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402

from kreinlearn import (  # noqa: E402
    KreinClassifier,
    KreinNystroem,
    KreinPCA,
    KreinRidge,
    KreinRidgeClassifier,
    KreinSVC,
    KreinVCRidge,
    KreinVCRidgeClassifier,
    Landmarks,
    SimilarityRidge,
    SpectrumSVC,
    columns,
    plotting,
)
from kreinlearn.datasets import (  # noqa: E402
    make_graphs,
    make_noisy_strings,
    make_polygons,
    make_warped_series,
)
from kreinlearn.plotting import (  # noqa: E402
    EmbeddingDisplay,
    ExplanationDisplay,
    KernelWeightsDisplay,
    PenaltyDisplay,
    SpectrumDisplay,
)
from tests import oracles  # noqa: E402
from tests.bounds import left_out_error  # noqa: E402


def vectors(n: int = 60, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=(n, 3))


def indefinite(n: int = 40, seed: int = 0) -> Any:
    A = np.random.default_rng(seed).normal(size=(n, n))
    return (A + A.T) / 2


def dissimilarities(n: int = 40) -> Any:
    X = vectors(n)
    return np.abs(X[:, None] - X).sum(axis=2) ** 1.5


def drawn_text(ax: Any) -> str:
    ax.figure.canvas.draw()
    axes = ax.figure.axes
    texts = [t.get_text() for a in axes for t in a.findobj(matplotlib.text.Text)]
    return "\n".join(texts)


# Spectrum


def test_a_spectrum_is_that_of_the_matrix() -> None:
    K = indefinite()
    model = KreinNystroem("precomputed", landmarks=Landmarks(None, core="plain")).fit(K)
    display = SpectrumDisplay.from_estimator(model)
    D = np.linalg.eigvalsh(K)
    expected = {"positive": np.sort(D[D > 0])[::-1], "negative": np.sort(-D[D < 0])[::-1]}
    for sign, values in expected.items():
        x, y = display.lines_[sign].get_data()
        np.testing.assert_array_equal(x, np.arange(1, len(values) + 1))
        np.testing.assert_allclose(y, values, rtol=1e-6)
        assert display.lines_[sign].get_label() == f"{sign} ({len(values)})"
    share = 100 * -D[D < 0].sum() / np.abs(D).sum()
    assert f"{share:.3g} %" in display.ax_.get_title()


def test_a_spectrum_relative_to_its_largest_and_of_one_sign() -> None:
    display = SpectrumDisplay.from_predictions([-4.0, 0.0, -1.0], relative=True)
    assert list(display.lines_) == ["negative"]
    np.testing.assert_allclose(display.lines_["negative"].get_ydata(), [1, 0.25])
    assert display.ax_.get_ylabel() == "|eigenvalue|, of the largest"
    with pytest.raises(ValueError, match="not zero"):
        SpectrumDisplay.from_predictions([0.0, 0.0])


def test_signs_are_told_apart_without_colours() -> None:
    lines = SpectrumDisplay.from_predictions([3.0, 1.0, -2.0, -1.0]).lines_
    looks = [(ln.get_marker(), ln.get_linestyle(), ln.get_markerfacecolor() == "white")
             for ln in lines.values()]  # fmt: skip
    assert all(a != b for a, b in zip(*looks, strict=True))


# Penalties


@pytest.mark.parametrize("cv", [None, 5, "loo"])
def test_losses_are_those_of_cross_validation_by_hand(cv: Any) -> None:
    rng = np.random.default_rng(0)
    X = vectors(40)
    y = X[:, 0] ** 2 + 0.1 * rng.normal(size=40)
    fixed: Any = {"kernel": lambda A, B: np.tanh(0.4 * A @ B.T - 1)}
    model = KreinRidge(**fixed, landmarks=None, cv=cv, random_state=0).fit(X, y)
    display = PenaltyDisplay.from_estimator(model, X, y, grid=4)
    assert model.folds_.shape == ((40, 2) if cv is None else (40,))
    for i, j in ((0, 0), (1, 3), (3, 2)):
        share = 40 / 39 if cv == "loo" else 1.0  # leaving one out keeps n lambda
        plus, minus = share * display.lambda_plus[j], share * display.lambda_minus[i]

        def predicted(train: Any, test: Any, plus: float = plus, minus: float = minus) -> Any:
            own = KreinRidge(**fixed, landmarks=None, lambda_plus=plus, lambda_minus=minus)
            return own.fit(X[train], y[train]).predict(X[test])

        wanted = oracles.cross_validated(predicted, model.folds_, y)
        error = left_out_error(wanted, y) if cv == "loo" else 1e-6 * wanted
        assert display.losses[i, j] == pytest.approx(wanted, abs=error)
    assert display.chosen == (model.lambda_plus_, model.lambda_minus_)
    assert display.criterion == "cross-validated squared error"
    assert not np.allclose(display.losses, display.losses.T)  # the axes are not confused


@pytest.mark.parametrize(
    "learner",
    [
        KreinRidge("delta_gauss", landmarks=15),
        KreinRidge("delta_gauss", landmarks=15, cv="loo"),
        KreinRidge("delta_gauss"),
        KreinRidge("delta_gauss", cv="loo"),
        KreinRidge("delta_gauss", cv=4),
        KreinVCRidge("delta_gauss"),
        KreinVCRidge("delta_gauss", radius="tuned"),
        KreinRidgeClassifier("delta_gauss", kernel_params="auto"),
        KreinVCRidgeClassifier("delta_gauss", landmarks=15),
        KreinSVC("delta_gauss"),
        KreinSVC("delta_gauss", landmarks=15),
        KreinRidge("delta_gauss", landmarks=Landmarks(15, rank=5)),
        KreinRidge("delta_gauss", landmarks=Landmarks(vectors(9, seed=1), rank=5)),
    ],
    ids=lambda learner: type(learner).__name__,
)
def test_the_loss_where_it_was_tried_is_what_the_search_saw(learner: Any) -> None:
    X = vectors(60)
    y: Any = X[:, 0] * X[:, 1]
    if hasattr(learner, "class_weight"):
        y = np.where(y > 0.3, "c", np.where(y > -0.3, "b", "a"))
    model = learner.set_params(random_state=0).fit(X, y)
    from kreinlearn.plotting.penalties import criterion_of

    loss = criterion_of(model, X, y)[0]
    assert loss(model.lambda_plus_, model.lambda_minus_) == pytest.approx(model.cv_loss_, rel=1e-5)


def test_the_loss_does_not_depend_on_the_unit_of_the_kernel() -> None:
    from kreinlearn.plotting.penalties import criterion_of

    X = vectors(50)
    K = np.tanh(X @ X.T - 1) * 2.0**400  # beyond what is squared as it is
    model = KreinRidge("precomputed", landmarks=15, random_state=0).fit(K, X[:, 0])
    loss = criterion_of(model, K, X[:, 0])[0]
    assert loss(model.lambda_plus_, model.lambda_minus_) == pytest.approx(model.cv_loss_, rel=1e-5)


def test_a_dissimilarity_is_transformed_as_in_the_fit() -> None:
    D = dissimilarities()
    y = (D[0] > np.median(D[0])).astype(int)
    model = KreinRidgeClassifier("precomputed_dissimilarity", random_state=0).fit(D, y)
    display = PenaltyDisplay.from_estimator(model, D, y, grid=3)
    assert display.losses.min() >= 0.9 * model.cv_loss_
    assert display.losses.shape == (3, 3)


def test_the_chosen_penalties_are_marked_where_they_are() -> None:
    losses = np.arange(12.0).reshape(3, 4)
    display = PenaltyDisplay.from_predictions(
        [1, 10, 100, 1000], [1, 10, 100], losses, chosen=(10, 1e9), criterion="error"
    )
    assert display.chosen_ is not None
    plus, minus = (float(v[0]) for v in display.chosen_.get_data())
    assert plus == pytest.approx(10)
    assert 80 < minus < 100  # whole, beside the edge
    assert display.ax_.get_xscale() == display.ax_.get_yscale() == "log"
    text = drawn_text(display.ax_)
    assert "error" in text
    assert "chosen, beyond the edge" in text
    within = PenaltyDisplay.from_predictions(
        [1, 10, 100, 1000], [1, 10, 100], losses, chosen=(1, 9)
    )
    assert "beyond" not in drawn_text(within.ax_)
    with pytest.raises(ValueError, match=r"\(3, 4\) goes with"):
        PenaltyDisplay.from_predictions([1, 10, 100, 1000], [1, 10, 100], losses.T)
    PenaltyDisplay.from_predictions([1, 10], [1, 10], np.ones((2, 2)))  # flat


ONLY_L1 = KreinSVC(lambda_l1=0.01, lambda_plus=0, lambda_minus=0, random_state=0)


@pytest.mark.parametrize("learner", [SimilarityRidge(), KreinNystroem(), ONLY_L1])
def test_a_model_without_two_penalties_is_refused(learner: Any) -> None:
    X = vectors()
    y = X[:, 0] > 0 if learner is ONLY_L1 else X[:, 0]
    with pytest.raises(TypeError, match="two penalties"):
        PenaltyDisplay.from_estimator(learner.fit(X, y), X, y)


# Embedding


def classical_scaling(D: Any) -> tuple[Any, Any]:
    """Torgerson's: the two largest |eigenvalues| of -1/2 J D^2 J."""
    J = np.eye(len(D)) - 1 / len(D)
    values, U = np.linalg.eigh(-0.5 * J @ D**2 @ J)
    order = np.argsort(-np.abs(values))[:2]
    return U[:, order] * np.sqrt(np.abs(values[order])), values[order]


def test_an_embedding_is_classical_scaling() -> None:
    D = dissimilarities()
    model = KreinPCA(
        kernel="precomputed_dissimilarity", landmarks=Landmarks(None, core="plain")
    ).fit(D)
    display = EmbeddingDisplay.from_estimator(model, D)
    expected, values = classical_scaling(D)
    offsets = np.asarray(display.scatters_["objects"].get_offsets())
    np.testing.assert_allclose(np.abs(offsets), np.abs(expected), atol=1e-6)
    np.testing.assert_allclose(display.eigenvalues, values, rtol=1e-6)
    np.testing.assert_allclose(offsets, model.transform(D), atol=1e-9)


def test_components_are_centred() -> None:
    X = vectors()
    model = KreinPCA(3, kernel="delta_gauss", random_state=0).fit(X)
    display = EmbeddingDisplay.from_estimator(model, X, axes=(2, 0))
    np.testing.assert_allclose(display.coordinates, model.transform(X)[:, [2, 0]], atol=1e-9)
    np.testing.assert_allclose(display.coordinates.mean(axis=0), 0, atol=1e-9)


@pytest.mark.parametrize("core", ["plain", "ls"])
def test_axes_of_an_approximation_are_its_eigenvectors(core: str) -> None:
    X = vectors(80)
    model = KreinNystroem("delta_gauss", landmarks=Landmarks(40, core=core), random_state=0).fit(X)
    display = EmbeddingDisplay.from_estimator(model, X, axes=(3, 1))
    D, U = np.linalg.eigh(model.approximate(X))
    order = np.argsort(-np.abs(D))[[3, 1]]
    expected = U[:, order] * np.sqrt(np.abs(D[order]))
    np.testing.assert_allclose(np.abs(display.coordinates), np.abs(expected), atol=1e-6)
    signs = ["negative" if d < 0 else "positive" for d in D[order]]
    assert display.ax_.get_xlabel().startswith(f"{signs[0]} axis 4, eigenvalue {D[order[0]]:+.3g}")
    assert display.ax_.get_ylabel().startswith(f"{signs[1]} axis 2")


def test_a_negative_axis_is_dashed_and_imaginary() -> None:
    ax = EmbeddingDisplay.from_predictions(vectors()[:, :2], [5.0, -2.0]).ax_
    text = drawn_text(ax)
    assert "positive axis 1, eigenvalue +5" in text
    assert "negative axis 2, eigenvalue -2" in text
    y_ticks = [t.get_text() for t in ax.get_yticklabels()]
    x_ticks = [t.get_text() for t in ax.get_xticklabels()]
    assert any(t.endswith("i") for t in y_ticks)
    assert not any(t.endswith("i") for t in x_ticks)
    assert ax.spines["left"].get_linestyle() != ax.spines["bottom"].get_linestyle()


def test_classes_have_marks_of_their_own_and_every_object_is_drawn() -> None:
    X, y = vectors(30)[:, :2], np.array(["a", "<b>", "$c$"] * 10)
    display = EmbeddingDisplay.from_predictions(X, [1.0, 1.0], y)
    for name, points in display.scatters_.items():
        np.testing.assert_array_equal(points.get_offsets(), X[y == name])
    shapes = {str(points.get_paths()[0].vertices.round(3)) for points in
              display.scatters_.values()}  # fmt: skip
    assert len(shapes) == 3
    assert legend_of(display) == ["$c$", "<b>", "a"]


def legend_of(display: Any) -> list[str]:
    display.figure_.canvas.draw()
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


def test_a_legend_names_whatever_the_classes_are_called() -> None:
    X, names = vectors(30)[:, :2], ["_hidden", "$5 to $10", "x^{$", "", "a" * 50]
    display = EmbeddingDisplay.from_predictions(X, [1.0, 1.0], np.array(names * 6))
    assert legend_of(display) == ["", "$5 to $10", "_hidden", "a" * 31 + "…", "x^{$"]


def test_a_long_legend_stands_beside_the_points() -> None:
    X = vectors(50)[:, :2]
    many = EmbeddingDisplay.from_predictions(X, [1.0, 1.0], np.arange(50) % 25)
    assert len(many.scatters_) == 25
    assert legend_of(many) == [*map(str, range(12)), "... and 13 more"]
    right = many.ax_.get_window_extent().x1
    assert many.ax_.get_legend().get_window_extent().x0 >= right
    few = EmbeddingDisplay.from_predictions(X, [1.0, 1.0], np.arange(50) % 3)
    assert legend_of(few) == ["0", "1", "2"]
    assert few.ax_.get_legend().get_window_extent().x1 <= few.ax_.get_window_extent().x1


def test_numbers_are_shown_by_shade() -> None:
    X = vectors(30)
    display = EmbeddingDisplay.from_predictions(X[:, :2], [1.0, 1.0], X[:, 2])
    np.testing.assert_array_equal(display.scatters_["objects"].get_array(), X[:, 2])
    with pytest.raises(ValueError, match="y has 29"):
        EmbeddingDisplay.from_predictions(X[:, :2], [1.0, 1.0], X[1:, 2])


# Weights


def two_fields() -> Any:
    """A model of records of which one field tells the class, and the other one nothing."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    rows = [{"size": float(c + 0.1 * rng.normal()), "noise": float(rng.normal())} for c in y]
    kernels = columns({"noise": "manhattan", "size": "manhattan"})
    return KreinClassifier(kernels, random_state=0).fit(rows, y)


def test_weights_are_those_of_the_model_and_the_largest_is_at_the_top() -> None:
    model = two_fields()
    display = KernelWeightsDisplay.from_estimator(model)
    weights = sorted(model.kernel_weights_.values(), reverse=True)
    assert [bar.get_width() for bar in display.bars_] == weights
    assert [model.kernel_weights_[name] for name in display.names_] == weights
    ax = display.ax_
    first = ax.get_yticklabels()[0].get_text()
    assert "size" in first
    assert ax.transData.transform((0, 0))[1] > ax.transData.transform((0, 1))[1]
    losses = [f"{model.kernel_losses_[name]:.3g}" for name in display.names_]
    assert set(losses) <= set(drawn_text(ax).split("\n"))


def test_kernels_of_equal_weight_are_sorted_by_their_losses() -> None:
    weights, losses = {"a": 0.0, "b": 1.0, "c": 0.0}, {"a": 2500.0, "b": 0.125, "c": 0.5}
    display = KernelWeightsDisplay.from_predictions(weights, losses)
    assert display.names_ == ["b", "c", "a"]
    assert "2,500" in drawn_text(display.ax_)
    bare = KernelWeightsDisplay.from_predictions(weights)
    assert "alone" not in drawn_text(bare.ax_)


def test_a_model_without_weights_is_refused() -> None:
    X = vectors()
    one = KreinClassifier("gaussian", random_state=0).fit(X, X[:, 0] > 0)
    for model in (one, KreinRidge(random_state=0).fit(X, X[:, 0])):
        with pytest.raises(TypeError, match=f"{type(model).__name__} was fitted with one kernel"):
            KernelWeightsDisplay.from_estimator(model)
    with pytest.raises(ValueError, match="weights is empty"):
        KernelWeightsDisplay.from_predictions({})


# Explanations


def test_bars_are_the_contributions_and_the_rest_is_written() -> None:
    X, y = make_noisy_strings(60, random_state=0)
    model = KreinClassifier("levenshtein", random_state=0).fit(X[:50], y[:50])
    display = ExplanationDisplay.from_estimator(model, X[50], n=2)
    (one,) = model.explain(X[50:51], 2)
    assert [bar.get_width() for bar in display.bars_] == [r.contribution for r in one.reasons]
    labels = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert labels == [f"{r.example} ({r.label})" for r in one.reasons]
    below = " ".join(display.ax_.get_xlabel().split())
    assert f"neighbours {one.parts['neighbours']:+.3g}" in below
    rest = one.parts["landmarks"] - sum(r.contribution for r in one.reasons)
    assert f"all other landmarks {rest:+.3g}" in below
    assert display.ax_.get_title() == f"Why {one.target}: decision value {one.value:.4g}"
    assert display.insets_ == []


def lines_in(ax: Any) -> list[Any]:
    return [line.get_xydata() for line in ax.get_lines()]


def test_series_are_lines_and_contours_closed_curves() -> None:
    X, y = make_warped_series(30, random_state=0)[:2]
    model = KreinRidgeClassifier("dtw", random_state=0).fit(X[:25], y[:25])
    display = ExplanationDisplay.from_estimator(model, X[25], n=1)
    for inset, reason in zip(display.insets_, display.explanation.reasons, strict=True):
        drawn = lines_in(inset)
        np.testing.assert_array_equal(drawn[0][:, 1], X[25])
        np.testing.assert_array_equal(drawn[1][:, 1], X[reason.landmark])
    shapes, kinds = make_polygons(30, random_state=0)
    model = KreinRidgeClassifier("procrustes", random_state=0).fit(shapes[:25], kinds[:25])
    display = ExplanationDisplay.from_estimator(model, shapes[25], n=1)
    points = lines_in(display.insets_[0])[0]
    np.testing.assert_array_equal(points[0], points[-1])
    sides, own = np.diff(points, axis=0), shapes[25]
    known = np.diff(np.vstack([own, own[:1]]), axis=0)
    scale = np.sqrt(np.square(own - own.mean(axis=0)).sum(axis=1).mean())
    np.testing.assert_allclose(sides, known / scale, rtol=0, atol=1e-13)


def test_series_of_two_channels_are_two_lines() -> None:
    X = [np.random.default_rng(i).normal(size=(9, 2)) + i % 2 for i in range(20)]
    model = KreinRidgeClassifier("dtw", random_state=0).fit(X, np.arange(20) % 2)
    display = ExplanationDisplay.from_estimator(model, X[0], n=1)
    assert display.kind == "series"
    assert len(display.insets_[0].get_lines()) == 4


def test_vectors_are_bars_and_values_and_a_matrix_has_row_numbers() -> None:
    X = vectors()
    model = KreinRidge("gaussian", random_state=0).fit(X, X[:, 0])
    display = ExplanationDisplay.from_estimator(model, X[0], n=1)
    heights = [bar.get_height() for bar in display.insets_[0].patches]
    np.testing.assert_array_equal(heights, X[0])
    first = display.explanation.reasons[0]
    label = display.ax_.get_yticklabels()[0].get_text()
    values = ", ".join(f"{value:.3g}" for value in first.example)
    assert label == f"row {first.landmark} ({first.label:.3g})\n{values}"
    assert display.ax_.get_title().startswith("What makes up the prediction")
    D = dissimilarities()
    model = KreinRidge("precomputed_dissimilarity", random_state=0).fit(D, D[0])
    display = ExplanationDisplay.from_estimator(model, D[3], n=1)
    assert display.ax_.get_yticklabels()[0].get_text().startswith("row ")
    assert display.insets_ == []


def test_graphs_and_records_are_not_drawn() -> None:
    graphs, kinds = make_graphs(30, random_state=0)[:2]
    model = KreinRidgeClassifier("wl_distance", random_state=0).fit(graphs, kinds)
    records = [{"name": f"n{i}", "size": float(i % 7)} for i in range(30)]
    other = KreinClassifier(random_state=0).fit(records, np.arange(30) % 2)
    for fitted, x in ((model, graphs[0]), (other, records[0])):
        display = ExplanationDisplay.from_estimator(fitted, x, n=1)
        assert display.insets_ == []
        assert display.ax_.get_yticklabels()[0].get_text().startswith("row ")


def test_what_decides_nothing_cannot_be_explained() -> None:
    model = KreinPCA(random_state=0).fit(vectors())
    with pytest.raises(TypeError, match="KreinPCA decides nothing"):
        ExplanationDisplay.from_estimator(model, vectors()[0])
    ridge = KreinRidge(random_state=0).fit(vectors(), vectors()[:, 0])
    with pytest.raises(ValueError, match="kind='picture' is not among 'text'"):
        ExplanationDisplay.from_predictions(ridge.explain(vectors()[:1])[0], kind="picture")


# All


def displays() -> list[Any]:
    X = vectors()
    y = X[:, 0]
    nystroem = KreinNystroem("delta_gauss", landmarks=20, random_state=0).fit(X)
    ridge = KreinRidge("delta_gauss", landmarks=20, random_state=0).fit(X, y)
    return [
        lambda ax: SpectrumDisplay.from_estimator(nystroem, ax=ax),
        lambda ax: PenaltyDisplay.from_estimator(ridge, X, y, grid=3, ax=ax),
        lambda ax: EmbeddingDisplay.from_estimator(ridge, X, y, ax=ax),
        lambda ax: KernelWeightsDisplay.from_estimator(two_fields(), ax=ax),
        lambda ax: ExplanationDisplay.from_estimator(ridge, X[0], ax=ax),
    ]


def test_axes_are_labelled_titled_and_where_they_were_asked_for() -> None:
    for make in displays():
        ax = Figure().add_subplot()
        display = make(ax)
        assert display.ax_ is ax
        assert display.figure_ is ax.figure
        assert pyplot.get_fignums() == []
        assert ax.get_xlabel()
        assert ax.get_ylabel()
        assert ax.get_title()
        again = display.plot()
        assert again is display
        assert display.ax_ is not ax
        assert len(pyplot.get_fignums()) == 1
        pyplot.close("all")


@pytest.mark.parametrize(
    "make",
    [
        lambda m, X: SpectrumDisplay.from_estimator(m),
        lambda m, X: EmbeddingDisplay.from_estimator(m, X),
    ],
)
def test_a_machine_without_signed_axes_is_refused(make: Any) -> None:
    X = vectors()
    with pytest.raises(TypeError, match="SpectrumSVC"):
        make(SpectrumSVC(C=1.0).fit(X, X[:, 0] > 0), X)


def test_axes_that_are_not_there_are_refused() -> None:
    X = vectors()
    model = KreinPCA(random_state=0).fit(X)
    with pytest.raises(ValueError, match="two numbers from 0 to 1"):
        EmbeddingDisplay.from_estimator(model, X, axes=(0, 2))


def test_all_displays_are_public() -> None:
    assert set(plotting.__all__) == {
        *("SpectrumDisplay", "PenaltyDisplay", "EmbeddingDisplay"),
        *("KernelWeightsDisplay", "ExplanationDisplay"),
    }


def test_matplotlib_is_imported_when_something_is_drawn_and_missed_in_a_line() -> None:
    code = """
import sys
sys.modules["matplotlib"] = None
from kreinlearn.plotting import SpectrumDisplay
try:
    SpectrumDisplay.from_predictions([1.0, -1.0])
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip().endswith('pip install "kreinlearn[plot]"'), done.stderr
