"""float32 where it is enough, float64 where it is not: spectra that are known beforehand."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kreinlearn import (
    KreinNystroem,
    KreinPCA,
    KreinRidge,
    KreinRidgeClassifier,
    KreinSVC,
    Landmarks,
    Resources,
)
from kreinlearn.kernels import SklearnMetric
from kreinlearn.learn import precision
from kreinlearn.learn.precision import TooCoarse, doubled, in_enough_precision
from kreinlearn.pairs.pairs import Pairs
from kreinlearn.pairs.rows import Rows, Session

N, D = 12_000, 5  # more rows than a pool
PROMISED = 1e-3  # of the spread of predictions


def rows(decades: float) -> tuple[Any, Any]:
    """Columns whose products have eigenvalues over so many decades; y depends on all alike."""
    F = np.random.default_rng(0).normal(size=(N, D))
    return F * np.logspace(0, -decades / 2, D), F.sum(axis=1)


def model_of(
    kind: Any = KreinRidge, dtype: str | None = None, store: Any = None, **more: Any
) -> Any:
    resources = Resources(dtype=dtype, store=store)
    return kind("linear", landmarks=20, random_state=0, resources=resources, **more)


def ridge(penalty: float = 0.0, **more: Any) -> Any:
    return model_of(lambda_plus=penalty, lambda_minus=penalty, **more)


def unguarded(model: Any, X: Any, y: Any = None) -> Any:
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.setattr(precision, "_require", lambda error: None)
        return model.fit(X) if y is None else model.fit(X, y)


def spread(difference: Any, whole: Any) -> float:
    return float(np.linalg.norm(difference) / np.linalg.norm(whole - whole.mean(axis=0)))


CASES = [(decades, penalty) for decades in (0, 2, 4, 6, 8) for penalty in (0.0, 1e-6, 1e-2)]


@pytest.mark.filterwarnings("ignore:the penalty is zero")
@pytest.mark.parametrize(("decades", "penalty"), CASES)
def test_float64_takes_over_where_predictions_would_change(decades: float, penalty: float) -> None:
    X, y = rows(decades)
    exact = ridge(penalty, dtype="float64").fit(X, y)
    wanted = exact.predict(X)
    coarse = unguarded(ridge(penalty, dtype="float32"), X, y).predict(X)
    change = spread(coarse - wanted, wanted)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = ridge(penalty, dtype="float32").fit(X, y)
    told = [str(one.message) for one in said if "float32" in str(one.message)]
    if change > 3 * PROMISED:
        assert model.dtype_ == np.float64
        np.testing.assert_array_equal(model.coef_, exact.coef_)
    elif change < PROMISED / 3:
        assert model.dtype_ == np.float32
    assert len(told) == (model.dtype_ == np.float64)
    assert spread(model.predict(X) - wanted, wanted) < 3 * PROMISED


def test_both_answers_are_among_the_cases() -> None:
    changes = []
    for decades in (0, 8):
        X, y = rows(decades)
        models = [ridge(1e-6, dtype="float64").fit(X, y),
                  unguarded(ridge(1e-6, dtype="float32"), X, y)]  # fmt: skip
        exact, coarse = (one.predict(X) for one in models)
        changes.append(spread(coarse - exact, exact))
    assert changes[0] < PROMISED / 3
    assert changes[1] > 3 * PROMISED


@pytest.mark.parametrize("decades", [0, 3, 6, 8])
def test_the_estimate_is_that_of_all_rows(decades: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within a factor of ten, where it matters, in the median over landmarks.

    For about a quarter of all draws of landmarks the factor is larger.
    """
    X, y = rows(decades)
    seen: list[float] = []
    monkeypatch.setattr(precision, "_require", seen.append)
    ratios = []
    for seed in range(5):
        coarse, exact = (
            ridge(1e-6, dtype=dtype).set_params(random_state=seed).fit(X, y).predict(X)
            for dtype in ("float32", "float64")
        )
        ratios.append(max(seen.pop(), 1e-5) / max(spread(coarse - exact, exact), 1e-5))
    assert 0.1 < np.median(ratios) < 10


@pytest.mark.parametrize("kind", [KreinRidgeClassifier, KreinSVC])
def test_classifiers_are_guarded(kind: Any) -> None:
    for decades, dtype in ((0, np.float32), (7, np.float64)):
        X, y = rows(decades)
        y = y + np.random.default_rng(1).normal(size=N)  # classes that overlap
        given = {"lambda_plus": 1e-6, "lambda_minus": 1e-6}
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            model = model_of(kind, dtype="float32", **given).fit(X, y > 0)
        assert model.dtype_ == dtype
        assert len([one for one in said if "float32" in str(one.message)]) == (dtype == np.float64)
        assert not [one for one in said if "invalid value" in str(one.message)]
        if dtype == np.float64:
            again = model_of(kind, dtype="float64", **given).fit(X, y > 0)
            np.testing.assert_array_equal(model.coef_, again.coef_)
            assert model.decision_function(X).dtype == np.float64


@pytest.mark.parametrize("kind", [KreinNystroem, KreinPCA])
def test_features_are_guarded(kind: Any) -> None:
    X, _ = rows(0)
    given: dict[str, Any] = {"n_components": 3} if kind is KreinPCA else {}
    given |= {"landmarks": 20, "random_state": 0, "resources": Resources(dtype="float32")}
    model = kind(kernel="linear", **given).fit(X)
    assert model.dtype_ == np.float32
    X = X + 1e5  # products of about 5e10, less a constant: what is left is 3e5
    with pytest.warns(UserWarning, match=r'dtype="float32" changes results by .*float64 is used'):
        model = kind(
            kernel="polynomial",
            kernel_params={"degree": 1, "coef0": -1e10 * D, "gamma": 1.0},
            **given,
        ).fit(X)
    assert model.dtype_ == np.float64
    assert model.transform(X).dtype == np.float64


@pytest.mark.parametrize("core", ["plain", "ls", "truncated"])
def test_the_error_of_an_approximation(core: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X = rows(0)[0] + 300.0
    kernel = {"kernel": "polynomial", "kernel_params": {"degree": 1, "coef0": -9e4 * D, "gamma": 1}}
    single, double = (Resources(dtype=dtype) for dtype in ("float32", "float64"))
    seen: list[float] = []
    monkeypatch.setattr(precision, "_require", seen.append)
    landmarks = Landmarks(20, core=core)
    coarse = KreinNystroem(**kernel, landmarks=landmarks, random_state=0, resources=single).fit(X)
    landmarks = Landmarks(coarse.landmark_indices_, core=core)
    exact = KreinNystroem(**kernel, landmarks=landmarks, random_state=0, resources=double).fit(X)
    a, b = (one.approximate(X[:200]).astype(float) for one in (coarse, exact))
    change = np.linalg.norm(a - b) / np.linalg.norm(b)
    assert change / 10 < seen[0] < 10 * change


def test_nothing_is_checked_in_float64(monkeypatch: pytest.MonkeyPatch) -> None:
    def checked(error: float) -> None:
        raise AssertionError

    monkeypatch.setattr(precision, "_require", checked)
    X, y = rows(0)
    for dtype in (None, "float64"):
        assert ridge(dtype=dtype).fit(X, y).dtype_ == np.float64
    assert ridge().fit(X.astype(np.float32), y).dtype_ == np.float32  # sums are in float64


def test_parts_are_guarded() -> None:
    X, y = rows(10)
    with pytest.warns(UserWarning, match="float64 is used"):
        model = ridge(1e-9, dtype="float32").partial_fit(X[:6000], y[:6000])
    model.partial_fit(X[6000:], y[6000:])
    again = ridge(1e-9, dtype="float64")
    for part in (slice(0, 6000), slice(6000, N)):
        again.partial_fit(X[part], y[part])
    np.testing.assert_array_equal(model.coef_, again.coef_)


def test_a_file_is_read_again_in_float64(tmp_path: Path) -> None:
    X, y = rows(10)
    np.save(tmp_path / "x.npy", X)
    with pytest.warns(UserWarning, match="float64 is used"):
        model = ridge(1e-9, dtype="float32").fit(tmp_path / "x.npy", y)
    np.testing.assert_array_equal(model.coef_, ridge(1e-9, dtype="float64").fit(X, y).coef_)


@pytest.mark.parametrize("similarity", ["local3", "rank3"])
def test_a_dissimilarity_is_compared_by_its_own_reference(similarity: str) -> None:
    X, y = rows(0)
    model = KreinRidge("euclidean", landmarks=20, random_state=0, similarity=similarity,
                       resources=Resources(dtype="float32"),
                       lambda_plus=1e-3, lambda_minus=1e-3)  # fmt: skip
    assert model.fit(X, y).dtype_ == np.float32


def test_a_store_holds_values_of_one_precision(tmp_path: Path) -> None:
    pytest.importorskip("zarr")
    X, y = rows(10)
    with pytest.raises(
        ValueError, match=r'the store holds its values; pass Resources with dtype="float64"'
    ):
        ridge(1e-9, dtype="float32", store=tmp_path / "s").fit(X, y)


def test_warnings_of_a_fit_in_float32_are_heard() -> None:
    X, y = rows(0)
    model = KreinRidge("gaussian", landmarks=60, resources=Resources(dtype="float32"))
    with pytest.warns(UserWarning, match="60 landmarks exceed n_samples=50; all 50 objects"):
        model.fit(X[:50], y[:50])


def test_the_figure_is_said() -> None:
    assert "0.12" in str(TooCoarse(0.1234))


def test_the_same_sample_in_double_precision() -> None:
    """Rows under new numbers, with the same columns, reference set and landmarks."""
    X = rows(0)[0][:300].astype(np.float32)
    pairs = Pairs(SklearnMetric("euclidean").fit(X, np.random.default_rng(0)), Rows(X), Session())
    numbers = np.arange(5, 300, 3)
    sample = pairs.with_reference(pairs.grown(pairs.sample(numbers), numbers[[9, 2, 40, 7]]))
    sample = pairs.grown(sample.with_landmarks(numbers[:0]), numbers[[30, 2]]).using("exp")
    _, double = doubled(pairs, sample, "exp")
    assert sample.eps > double.eps == np.finfo(float).eps
    np.testing.assert_array_equal(double.rows, np.arange(len(numbers)))
    np.testing.assert_array_equal(numbers[double.landmarks], sample.landmarks)
    gaps = X[numbers][:, None].astype(float) - X[numbers[[9, 2, 40, 7]]]
    d = np.sqrt((gaps**2).sum(2))
    median = np.median(d[[9, 2, 40, 7]][np.triu_indices(4, 1)])
    to = np.sqrt(((X[numbers][:, None].astype(float) - X[sample.landmarks]) ** 2).sum(2))
    np.testing.assert_allclose(double.C, np.exp(-to / median), rtol=1e-12)
    np.testing.assert_allclose(sample.C, double.C, rtol=1e-4)


def test_a_fit_that_is_not_repeated_is_asked_for_once() -> None:
    asked: list[str] = []

    def fit(dtype: str) -> str:
        asked.append(dtype)
        if dtype == "float32":
            raise TooCoarse(0.5)
        return dtype

    assert in_enough_precision(lambda dtype: dtype, stored=False) == "float32"
    with pytest.warns(
        UserWarning, match=r"changes results by 0\.5 of their spread .*float64 is used"
    ):
        assert in_enough_precision(fit, stored=False) == "float64"
    assert asked == ["float32", "float64"]
    with pytest.raises(ValueError, match=r"pass Resources with dtype=.float64. and another store"):
        in_enough_precision(fit, stored=True)


def test_warnings_of_a_fit_that_is_repeated_are_not_heard_twice() -> None:
    def fit(dtype: str) -> None:
        warnings.warn(f"of {dtype}", UserWarning, stacklevel=1)
        if dtype == "float32":
            raise TooCoarse(0.5)

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        in_enough_precision(fit, stored=False)
    messages = [str(one.message) for one in said]
    assert "of float32" not in messages
    assert messages[-1] == "of float64"
