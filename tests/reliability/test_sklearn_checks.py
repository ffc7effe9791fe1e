"""scikit-learn's own checks, those it never yields to third parties, and its ways of working."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from unittest import SkipTest

import joblib
import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn import config_context
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import linear_kernel
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks, get_tags
from sklearn.utils.estimator_checks import estimator_checks_generator

from kreinlearn import (
    KreinClassifier,
    KreinNystroem,
    KreinPCA,
    KreinRegressor,
    KreinRidge,
    KreinRidgeClassifier,
    KreinSVC,
    KreinVCRidge,
    KreinVCRidgeClassifier,
    Landmarks,
    Resources,
    SimilarityRidge,
    SimilarityRidgeClassifier,
    SpectrumSVC,
    dissimilarity,
    pairwise,
)
from kreinlearn.kernels import DeltaGauss, Gaussian, Sigmoid
from kreinlearn.sums.parallel import worker_count
from tests.models import FRONT, LEARNERS, penalised
from tests.sklearn_checks import checks, n_later_checks


class NystroemOfDistances(KreinNystroem):
    metric = "precomputed"  # the checks feed distances to estimators that have this attribute


class PCAOfDistances(KreinPCA):
    metric = "precomputed"


class RidgeOfDistances(KreinRidge):
    metric = "precomputed"


class RidgeClassifierOfDistances(KreinRidgeClassifier):
    metric = "precomputed"


class VCRidgeOfDistances(KreinVCRidge):
    metric = "precomputed"


class VCRidgeClassifierOfDistances(KreinVCRidgeClassifier):
    metric = "precomputed"


class SVCOfDistances(KreinSVC):
    metric = "precomputed"


class SimilarityRidgeOfDistances(SimilarityRidge):
    metric = "precomputed"


class SimilarityRidgeClassifierOfDistances(SimilarityRidgeClassifier):
    metric = "precomputed"


class SpectrumOfDistances(SpectrumSVC):
    metric = "precomputed"


class RegressorOfDistances(KreinRegressor):
    metric = "precomputed"


class ClassifierOfDistances(KreinClassifier):
    metric = "precomputed"


@dataclass(frozen=True)
class Products:
    """A callable kernel with a name that does not change from run to run."""

    def __call__(self, A: Any, B: Any) -> Any:
        return linear_kernel(A, B)


FORMS = {
    "nystroem-vectors": KreinNystroem(),
    "nystroem-indefinite": KreinNystroem("delta_gauss", landmarks=20),
    "nystroem-metric": KreinNystroem("euclidean", landmarks=20),
    "nystroem-callable": KreinNystroem(Products(), landmarks=20),
    "nystroem-precomputed": KreinNystroem("precomputed"),
    "nystroem-precomputed-distances": NystroemOfDistances("precomputed_dissimilarity"),
    "pca-vectors": KreinPCA(),
    "pca-precomputed": KreinPCA(kernel="precomputed"),
    "pca-precomputed-distances": PCAOfDistances(kernel="precomputed_dissimilarity"),
}
N_CHECKS = {name: 48 if "precomputed" in name else 47 for name in FORMS}
N_CHECKS["nystroem-precomputed-distances"] = N_CHECKS["pca-precomputed-distances"] = 49
OF_DISTANCES = [
    RidgeOfDistances, RidgeClassifierOfDistances, VCRidgeOfDistances, VCRidgeClassifierOfDistances,
    SVCOfDistances, SimilarityRidgeOfDistances, SimilarityRidgeClassifierOfDistances,
]  # fmt: skip
DISTANCES: dict[str, Any] = {"kernel": "precomputed_dissimilarity", "similarity": "squared"}
GIVEN = {f"{one.__name__}-vectors": penalised(one, kernel=Gaussian(2.0)) for one in LEARNERS}
GIVEN |= {f"{one.__name__}-precomputed": penalised(one, kernel="precomputed") for one in LEARNERS}
GIVEN |= {f"{one.__name__}-precomputed": penalised(one, **DISTANCES) for one in OF_DISTANCES}
GIVEN["KreinRidge-landmarks"] = penalised(KreinRidge, 1e-3, kernel=DeltaGauss(20.0), landmarks=0.5)
SPECTRUM = {
    "SpectrumSVC-vectors": SpectrumSVC(Gaussian(2.0), C=1.0),
    "SpectrumSVC-precomputed": SpectrumSVC("precomputed", C=1.0),
    "SpectrumOfDistances-precomputed": SpectrumOfDistances("precomputed_dissimilarity", C=1.0),
    **{
        f"SpectrumSVC-{how}": SpectrumSVC(Sigmoid(0.15, -1.0), spectrum=how, C=1.0)
        for how in ("clip", "shift", "square")
    },
    "SpectrumSVC-tuned": SpectrumSVC(random_state=0),
}
TUNED = {f"{one.__name__}-tuned": one() for one in LEARNERS}
TUNED |= {f"{one.__name__}-tuned": one() for one in FRONT}
TUNED |= {f"{one.__name__}-landmarks": one(landmarks=0.3, random_state=0) for one in FRONT}
TUNED |= {f"{one.__name__}-precomputed": one("precomputed") for one in FRONT}
TUNED |= {
    f"{one.__name__}-precomputed": one("precomputed_dissimilarity")
    for one in (RegressorOfDistances, ClassifierOfDistances)
}
for name, one in {**GIVEN, **TUNED}.items():
    N_CHECKS[name] = (68 if is_classifier(one) else 61) - 3 * ("precomputed" in name)
    N_CHECKS[name] += hasattr(one, "metric")
for name, one in SPECTRUM.items():  # without partial_fit
    N_CHECKS[name] = 64 - 3 * ("precomputed" in name) + hasattr(one, "metric")
for name in N_CHECKS:
    N_CHECKS[name] -= n_later_checks(learner=name not in FORMS)

WEIGHTS = [f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")]
NOT_A_MATRIX = "check_decision_proba_consistency"
NOT_DISTANCES = ["check_classifiers_one_label_sample_weights", "check_class_weight_classifiers"]


def expected_to_fail(model: Any) -> dict[str, str]:
    """Checks by name, and why."""
    failing = {}
    if get_tags(model).input_tags.pairwise and hasattr(model, "predict_proba"):
        failing[NOT_A_MATRIX] = "the check feeds vectors in place of a matrix"
    if model.kernel == "precomputed_dissimilarity" and is_classifier(model):
        why = "the check feeds a matrix whose diagonal is not zero"
        return failing | dict.fromkeys(NOT_DISTANCES, why)
    if get_tags(model).input_tags.pairwise or not hasattr(model, "predict"):
        return failing
    if isinstance(model, SpectrumSVC) and model.C != "auto":
        return dict.fromkeys(WEIGHTS, "to 1e-7, and libsvm stops at 1e-3 (that of SVC fails too)")
    if model.landmarks != "auto":
        return dict.fromkeys(WEIGHTS, "landmarks are drawn from rows, and repeated rows are more")
    if isinstance(model, SpectrumSVC) or model.lambda_plus == "auto":
        return dict.fromkeys(WEIGHTS, "rows are left out, and repetitions of them are not")
    return {}


STRICT = {**FORMS, **GIVEN, **SPECTRUM}


def passes(check: Any, estimator: Any) -> None:
    """The check passes; only those of arrays of other libraries and of a method may be skipped."""
    try:
        check(estimator)
    except SkipTest:
        name, _, method = check.func.__name__.partition("_output_format_")
        other = name == "check_array_api_input"  # it needs SCIPY_ARRAY_API=1
        assert other or (method and not hasattr(estimator, method))
        raise


@pytest.mark.parametrize(("estimator", "check"), checks(STRICT, expected_to_fail))
@pytest.mark.filterwarnings("ignore::UserWarning")  # the checks feed duplicates and constants
def test_sklearn_check(estimator: Any, check: Any) -> None:
    passes(check, estimator)


# By chance repeated rows may lead to the same penalties, as they do for some learners on the data
# of the checks (not on other data): there a failure is only allowed.
@pytest.mark.parametrize(("estimator", "check"), checks(TUNED, expected_to_fail, strict=False))
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_sklearn_check_of_defaults(estimator: Any, check: Any) -> None:
    passes(check, estimator)


def general_check(model: Any) -> str:
    if is_classifier(model):
        return "check_classifiers_train"
    return "check_regressors_train" if is_regressor(model) else "check_transformer_general"


@pytest.mark.parametrize("form", [*STRICT, *TUNED])
def test_the_checks_are_not_voided(form: str) -> None:
    model = {**STRICT, **TUNED}[form]
    names = [check.func.__name__ for _, check in estimator_checks_generator(model)]
    assert len(names) == N_CHECKS[form]
    assert {general_check(model), "check_fit_idempotent", "check_estimators_pickle"} <= {*names}


# Checks that are run on scikit-learn's own estimators only.
NEVER_YIELDED = [
    "check_dataframe_column_names_consistency",
    "check_inplace_ensure_writeable",
    "check_param_validation",
]
OF_TRANSFORMERS = [
    "check_get_feature_names_out_error",
    "check_global_output_transform_pandas",
    "check_global_set_output_transform_polars",
    "check_set_output_transform",
    "check_set_output_transform_pandas",
    "check_set_output_transform_polars",
    "check_transformer_get_feature_names_out",
    "check_transformer_get_feature_names_out_pandas",
]
OF_CLASSIFIERS = ["check_class_weight_balanced_linear_classifier"]


FIRST = {form: one for form, one in TUNED.items() if isinstance(one, tuple(FRONT))}


def never_yielded() -> Iterator[tuple[str, str]]:
    for form, model in {**STRICT, **FIRST}.items():
        names = [*NEVER_YIELDED]
        names += OF_TRANSFORMERS * hasattr(model, "transform")
        if (
            form not in {*FIRST, *SPECTRUM} and not get_tags(model).input_tags.pairwise
        ):  # linear ones
            names += OF_CLASSIFIERS * is_classifier(model)
        yield from ((form, name) for name in names)


@pytest.mark.parametrize(("form", "name"), list(never_yielded()))
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")  # as they do it
@pytest.mark.filterwarnings("ignore:X has feature names")
def test_check_never_yielded(form: str, name: str) -> None:
    estimator = clone({**STRICT, **FIRST}[form])
    yielded = {check.func.__name__ for _, check in estimator_checks_generator(estimator)}
    assert name not in yielded
    getattr(estimator_checks, name)(type(estimator).__name__, estimator)


@pytest.mark.parametrize(
    ("kernel", "pairwise_tag", "positive", "sparse"),
    [
        ("gaussian", False, False, True),
        ("truncated_l1", False, False, False),
        ("hausdorff", False, False, False),
        ("precomputed", True, False, False),
        ("precomputed_dissimilarity", True, True, False),
        (dissimilarity("precomputed"), True, True, False),
    ],
)
def test_tags(kernel: Any, pairwise_tag: bool, positive: bool, sparse: bool) -> None:
    tags = get_tags(KreinNystroem(kernel)).input_tags
    assert (tags.pairwise, tags.positive_only, tags.sparse) == (pairwise_tag, positive, sparse)
    assert tags.two_d_array  # False would void every check above
    assert tags.string == (kernel == "hausdorff")


# Ways of working


@pytest.fixture(scope="module")
def data() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3))
    return X, np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=90)


def squared_distances(A: Any, B: Any) -> Any:
    return cdist(A, B, "sqeuclidean")


def difference_of_gaussians(A: Any, B: Any) -> Any:
    d2 = squared_distances(A, B)
    return np.exp(-d2 / 3) - 0.5 * np.exp(-d2)


@pytest.mark.parametrize("form", ["similarity", "distances"])
def test_grid_search_slices_a_precomputed_matrix(data: Any, form: str) -> None:
    """The scores with a matrix, sliced by scikit-learn, are those with the function itself."""
    X, y = data
    if form == "similarity":
        given, K, function = "precomputed", difference_of_gaussians(X, X), difference_of_gaussians
    else:
        given, K = "precomputed_dissimilarity", np.sqrt(squared_distances(X, X))
        function = dissimilarity("euclidean")
    grid = {"kreinnystroem__landmarks": [None], "ridge__alpha": [1e-3, 1.0]}

    def scores(kernel: Any, X: Any) -> Any:
        model = make_pipeline(KreinNystroem(kernel, random_state=0), Ridge())
        search = GridSearchCV(model, grid, cv=KFold(3), error_score="raise").fit(X, y)
        assert search.predict(X).shape == (90,)
        return search.cv_results_["mean_test_score"]

    assert get_tags(make_pipeline(KreinNystroem(given), Ridge())).input_tags.pairwise
    np.testing.assert_allclose(scores(given, K), scores(function, X), rtol=1e-6)


def test_grid_search_over_parameters_of_a_kernel_object(data: Any) -> None:
    X, y = data
    model = make_pipeline(
        StandardScaler(), KreinNystroem(Gaussian(), landmarks=40, random_state=0), Ridge(0.01)
    )
    widths = [0.01, 3.0, 1e4]
    search = GridSearchCV(model, {"kreinnystroem__kernel__width": widths}, cv=3).fit(X, y)
    assert search.best_params_ == {"kreinnystroem__kernel__width": 3.0}
    best = search.best_estimator_[1]
    assert best.kernel_.width_ == 3.0
    by_hand = clone(model).set_params(kreinnystroem__kernel=Gaussian(3.0)).fit(X, y)
    np.testing.assert_array_equal(by_hand.predict(X), search.predict(X))


def workers_here(estimator: Any, X: Any, y: Any = None) -> float:
    return float(worker_count(None))


def test_grid_search_in_processes_does_not_oversubscribe(data: Any) -> None:
    X, y = data
    model = make_pipeline(KreinNystroem("delta_gauss", random_state=0, landmarks=20), Ridge())
    search = GridSearchCV(model, {"ridge__alpha": [0.1, 1.0]}, cv=2, scoring=workers_here, n_jobs=2)
    threads = search.fit(X, y).cv_results_["mean_test_score"]
    np.testing.assert_array_equal(threads, max(1, joblib.cpu_count() // 2))


def test_cross_validation_on_lists_of_objects() -> None:
    """Folds of a list of sets give what the folds of its similarity matrix give."""
    rng = np.random.default_rng(1)
    X = [set(rng.choice(12, rng.integers(2, 7), replace=False).tolist()) for _ in range(60)]
    y = np.array([float(3 in x) + 0.1 * len(x) for x in X])
    K = np.array([[float(len(a & b)) for b in X] for a in X])

    def errors(kernel: Any, X: Any) -> Any:
        model = make_pipeline(KreinNystroem(kernel, landmarks=None), Ridge(0.1))
        return cross_validate(model, X, y, cv=3, error_score="raise")["test_score"]

    by_function = errors(pairwise(shared), X)
    np.testing.assert_allclose(by_function, errors("precomputed", K), rtol=1e-8)
    assert by_function.min() > 0.9


def shared(a: set[int], b: set[int]) -> float:
    return float(len(a & b))


@pytest.mark.parametrize("model", [KreinNystroem, KreinPCA])
def test_a_generator_as_random_state(data: Any, model: Any) -> None:
    X, _ = data
    first, second = (
        model(kernel="gaussian", landmarks=9, random_state=np.random.default_rng(5)).fit(X)
        for _ in range(2)
    )
    np.testing.assert_array_equal(first.landmark_indices_, second.landmark_indices_)
    rng = np.random.default_rng(5)
    drawn = [model(landmarks=9, random_state=rng).fit(X).landmark_indices_ for _ in range(2)]
    np.testing.assert_array_equal(drawn[0], first.landmark_indices_)
    assert set(drawn[1]) != set(drawn[0])  # it goes on where it was


@pytest.mark.parametrize("kernel", ["delta_gauss", "precomputed", pairwise(cdist), shared])
def test_clone_keeps_parameters_and_nothing_else(kernel: Any) -> None:
    given = {"landmarks": Landmarks([1, 2], core="plain"), "resources": Resources("1GB")}
    model = KreinNystroem(kernel, rank=7, **given)
    model.signature_ = np.ones(3)
    copy = clone(model)
    assert not hasattr(copy, "signature_")
    assert repr(copy.get_params()) == repr(model.get_params())


@pytest.mark.parametrize("kernel", [DeltaGauss(2.0), "euclidean", difference_of_gaussians])
@pytest.mark.parametrize("model", [KreinNystroem, KreinPCA])
def test_pickle(data: Any, model: Any, kernel: Any) -> None:
    X, _ = data
    fitted = model(kernel=kernel, landmarks=20, random_state=0).fit(X)
    copy = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(copy.transform(X), fitted.transform(X))
    assert len(pickle.dumps(fitted)) < 60_000  # landmarks and maps, no data


@pytest.mark.parametrize("model", [KreinNystroem(Gaussian(2.0)), KreinPCA(kernel=pairwise(shared))])
def test_representations(model: Any, data: Any) -> None:
    assert type(model).__name__ in model._repr_html_()
    assert "kernel" in repr(model)
    with config_context(display="text"):
        assert type(model).__name__ in repr(make_pipeline(model, Ridge()))


def test_metadata_routing_asks_for_nothing() -> None:
    with config_context(enable_metadata_routing=True):
        model = make_pipeline(KreinNystroem(landmarks=5), Ridge())
        routing = KreinNystroem().get_metadata_routing()
        assert not routing.consumes("fit", {"sample_weight", "y"})
        X = np.arange(20.0).reshape(10, 2)
        given = {}  # scikit-learn 1.6.0 does not take None here
        assert cross_val_predict(model, X, X[:, 0], cv=2, params=given).shape == (10,)
