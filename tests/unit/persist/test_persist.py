"""Model files: what they hold of a fit, kernels of a person, parameters, and the file itself."""

from __future__ import annotations

import copy
import hashlib
import json
import warnings
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline

import kreinlearn
from kreinlearn import ModelFormatError, dissimilarity, normalized, pairwise, register
from kreinlearn.kernels import Kernel, LinearCombination, Normalized
from kreinlearn.kernels.base import REGISTRY
from kreinlearn.kernels.domains import Objects
from kreinlearn.persist import files
from kreinlearn.plotting import EmbeddingDisplay
from tests.bounds import least_cpu_seconds
from tests.unit.persist.cases import sparse_rows
from tests.unit.persist.test_round_trips import loaded, same

# Everything of a fit is stored, or left out for a reason


def words(n: int = 30) -> list[str]:
    rng = np.random.default_rng(1)
    return ["".join(rng.choice(list("abc"), size=rng.integers(1, 7))) for _ in range(n)]


def numbers(n: int = 30) -> Any:
    return np.random.default_rng(2).normal(size=(n, 3))


LABELS = np.array(["one", "two", "three"])[np.arange(30) % 3]
TARGETS = np.sin(np.arange(30))
GRID = [{"width": 1.0}, {"width": 3.0}]


def tuned() -> dict[str, Any]:
    """Fits that leave every attribute that there is."""
    X, frame = numbers(), pd.DataFrame(numbers(), columns=["a", "b", "c"])
    parts = kreinlearn.KreinVCRidgeClassifier("sigmoid", random_state=0)
    for part in range(2):
        parts.partial_fit(X[part::2], LABELS[part::2], classes=np.unique(LABELS))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        table = pa.table({"word": words(), "y": TARGETS})
        column = kreinlearn.KreinRidge("levenshtein", random_state=0).fit(table, "y")
    return {
        "nystroem": kreinlearn.KreinNystroem("gaussian", tol=0.5, random_state=0).fit(X),
        "pca": kreinlearn.KreinPCA(2, kernel="gaussian").set_output(transform="pandas").fit(frame),
        "grid": kreinlearn.KreinRidge(kernel_params=GRID, random_state=0).fit(X, TARGETS),
        "classes": kreinlearn.KreinRidgeClassifier("levenshtein", probability=True).fit(
            words(), LABELS
        ),
        "weights": kreinlearn.KreinSVC("gaussian", class_weight={"one": 2.0, "two": 1, "three": 1})
        .fit(X, LABELS),
        "l1": kreinlearn.KreinSVC("gaussian", lambda_l1="auto", random_state=0).fit(X, LABELS),
        "spectrum": kreinlearn.SpectrumSVC("gaussian", random_state=0).fit(X, LABELS),
        "given": kreinlearn.KreinNystroem("gaussian", landmarks=X[:5] + 1).fit(X),
        "outside": kreinlearn.KreinRidge(
            "gaussian", landmarks=kreinlearn.Landmarks(X[:5] + 1, rank=np.int64(3)), random_state=0
        ).fit(X, TARGETS),
        "few": kreinlearn.KreinRidgeClassifier("gaussian", landmarks=8, random_state=0)
        .fit(X, LABELS),
        "front": kreinlearn.KreinClassifier("levenshtein", random_state=0).fit(words(), LABELS),
        "several": kreinlearn.KreinClassifier(["levenshtein", "lcs"], random_state=0).fit(
            words(), LABELS
        ),
        "numbers": kreinlearn.KreinRegressor("gaussian", random_state=0).fit(X, TARGETS),
        "tiny": kreinlearn.KreinRidge("gaussian", random_state=0).fit(X, TARGETS * 1e-200),
        "parts": parts, "column": column,
        "groups": kreinlearn.KreinKMeans("auto", kernel="gaussian", random_state=0).fit(X),
        "left out": kreinlearn.KreinRidge("gaussian", random_state=0).fit(
            X, TARGETS, conformal="split"
        ),
    }  # fmt: skip


@pytest.fixture(scope="module")
def fits() -> dict[str, Any]:
    return tuned()


FITS = ("nystroem", "pca", "grid", "classes", "l1", "spectrum", "given", "parts")
FITS = (
    *FITS,
    "column",
    "weights",
    "outside",
    "few",
    "front",
    "several",
    "numbers",
    "tiny",
    "left out",
)


def equal(a: Any, b: Any) -> bool:
    """Of one type and the same content, however deep."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return same(a, b) if a.dtype != object else a.tolist() == b.tolist()
    if isinstance(a, np.random.Generator):
        return equal(a.bit_generator.state, b.bit_generator.state)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(equal(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(equal, a, b))
    if hasattr(a, "__dict__") and not isinstance(a, type | np.dtype):
        return equal(vars(a), vars(b))
    return bool(a == b)


@pytest.mark.parametrize("name", ["grid", "few", "outside", "tiny", "column", "parts"])
def test_partial_fit_goes_on_from_a_loaded_fit(
    name: str, fits: dict[str, Any], tmp_path: Path
) -> None:
    X, y = (words() if name == "column" else numbers()), TARGETS
    if name in ("few", "parts"):
        y = LABELS
    if name == "tiny":
        y = TARGETS * 1e-200
    model = copy.deepcopy(fits[name])
    found = loaded(model, tmp_path / "m.krein")
    before = found.dual_coef_
    for one in (model, found):
        one.partial_fit(X[:20], y[:20])
    np.testing.assert_array_equal(found.dual_coef_, model.dual_coef_)
    assert not np.array_equal(before, found.dual_coef_)


@pytest.mark.parametrize("name", FITS)
def test_attributes_of_a_fit_come_back(name: str, fits: dict[str, Any], tmp_path: Path) -> None:
    model = fits[name]
    found = loaded(model, tmp_path / "m.krein")
    assert equal(found.get_params(), model.get_params())
    wanted = vars(model).keys() - files.LEFT_OUT
    assert vars(found).keys() == wanted
    for attribute in wanted & files.stored_names(type(model)):
        assert equal(getattr(found, attribute), getattr(model, attribute)), attribute
    assert equal(found.landmarks_, model.landmarks_)
    assert equal(vars(found).get("_map"), vars(model).get("_map"))


def test_every_attribute_is_left_by_some_fit_and_listed_by_its_class(fits: dict[str, Any]) -> None:
    """What a class does not list would be lost, and its fits here leave what all classes list."""
    left, listed = set[str](), set[str]()
    for fit in fits.values():
        names = vars(fit).keys() - fit.get_params().keys()
        stored = files.stored_names(type(fit))
        assert names <= stored | files.REBUILT | files.LEFT_OUT
        left, listed = left | names, listed | stored
    assert listed <= left


def test_estimators_are_those_that_their_room_lists(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    model = kreinlearn.KreinRidge("gaussian", random_state=0).fit(numbers(), TARGETS)
    path, room = tmp_path / "m.krein", import_module("kreinlearn.estimators")
    monkeypatch.setattr(room, "ESTIMATORS", {"KreinRidge": "ridge"}, raising=False)
    assert same(loaded(model, path).predict(numbers()), model.predict(numbers()))
    monkeypatch.setattr(room, "ESTIMATORS", {"KreinPCA": "transformer"})
    with pytest.raises(TypeError, match=r"estimator of kreinlearn \(KreinPCA\), got a KreinRidge"):
        model.save(path)
    with pytest.raises(ModelFormatError, match="its estimator is 'KreinRidge'"):
        kreinlearn.load(path)


def test_partial_fit_goes_on(fits: dict[str, Any], tmp_path: Path) -> None:
    X, model = numbers(), fits["parts"]
    found = loaded(model, tmp_path / "m.krein")
    found.partial_fit(X[:9] + 1, LABELS[:9])
    model = copy.deepcopy(model).partial_fit(X[:9] + 1, LABELS[:9])
    assert same(model.decision_function(X), found.decision_function(X))


def test_scores_and_further_methods(fits: dict[str, Any], tmp_path: Path) -> None:
    found = loaded(fits["classes"], tmp_path / "m.krein")
    assert found.score(words(), LABELS) == fits["classes"].score(words(), LABELS)
    assert same(found.predict_proba(words()), fits["classes"].predict_proba(words()))
    found = loaded(fits["nystroem"], tmp_path / "m.krein")
    before = fits["nystroem"].estimate_error(numbers(), random_state=0)
    assert found.estimate_error(numbers(), random_state=0) == before
    found = loaded(fits["pca"], tmp_path / "m.krein")
    frame = pd.DataFrame(numbers(), columns=["a", "b", "c"])
    assert found.transform(frame).equals(fits["pca"].transform(frame))
    with pytest.raises(ValueError, match="feature names should match"):
        found.transform(frame[["b", "a", "c"]])


def test_pictures_of_a_loaded_learner(fits: dict[str, Any], tmp_path: Path) -> None:
    before, found = fits["grid"], loaded(fits["grid"], tmp_path / "m.krein")
    for model in (before, found):
        model.shown = EmbeddingDisplay.from_estimator(model, numbers()).coordinates
    assert same(before.__dict__.pop("shown"), found.shown)


def test_rows_of_a_frame_as_series(tmp_path: Path) -> None:
    """Names of columns are known, and their number is not: objects are of any length."""
    frame = pd.DataFrame(numbers(), columns=["a", "b", "c"])
    model = kreinlearn.KreinRidgeClassifier("dtw", random_state=0).fit(frame, LABELS)
    found = loaded(model, tmp_path / "m.krein")
    assert found.feature_names_in_.tolist() == ["a", "b", "c"]
    assert same(found.predict(frame), model.predict(frame))
    with pytest.raises(ValueError, match="feature names should match"):
        found.predict(frame[["b", "a", "c"]])


LONG = {
    "one of many characters": ["x" * 4000, *(f"label {i}" for i in range(29))],
    "of many characters": [f"{i:02d}" + "é" * 2000 for i in range(30)],
    "of much room": np.array([f"{i:02d}" for i in range(30)], "<U3000"),
    "numbers": np.arange(30) % 3,
    "of halves": np.array(["a", "\ud800", "\udc00"], object)[np.arange(30) % 3],
}


@pytest.mark.parametrize("name", LONG)
@pytest.mark.filterwarnings("ignore:The number of unique classes")
def test_classes_that_are_long(name: str, tmp_path: Path) -> None:
    y = np.asarray(LONG[name])
    model = kreinlearn.KreinRidgeClassifier("gaussian", lambda_plus=0.1, lambda_minus=0.1)
    found = loaded(model.fit(numbers(), y), tmp_path / "m.krein")
    assert equal(found.classes_, model.classes_)
    assert equal(found.predict(numbers()), model.predict(numbers()))


def test_sparse_rows_of_very_many_columns(tmp_path: Path) -> None:
    """Hashed features: the file grows with what is in them, and so does what load takes."""
    X = sparse_rows(9, 4, np.random.default_rng(0))
    wide = sp.csr_array((X.data, X.indices, X.indptr), shape=(9, 2**21))
    model = kreinlearn.KreinNystroem("delta_gauss", random_state=0).fit(wide)
    found = loaded(model, tmp_path / "m.krein")
    assert same(found.transform(wide), model.transform(wide))
    assert (tmp_path / "m.krein").stat().st_size < 20_000


def test_many_names_of_features(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(4, 60_000))
    frame = pd.DataFrame(X, columns=[f"a feature, number {i}" for i in range(60_000)])
    model = kreinlearn.KreinNystroem("gaussian").fit(frame)
    found = loaded(model, tmp_path / "m.krein")
    assert equal(found.feature_names_in_, model.feature_names_in_)


def test_it_can_be_fitted_again_and_saved_again(fits: dict[str, Any], tmp_path: Path) -> None:
    first, second = tmp_path / "1.krein", tmp_path / "2.krein"
    found = loaded(fits["grid"], first)
    found.save(second)
    assert first.read_bytes() == second.read_bytes()
    again = clone(found).fit(numbers(), TARGETS)
    assert same(again.predict(numbers()), fits["grid"].predict(numbers()))


# Kernels of a person


def overlap(a: Any, b: Any, power: float = 1.0) -> float:
    return float(len(set(a) & set(b)) ** power)


def block(A: Any, B: Any) -> Any:
    return np.array([[overlap(a, b) for b in B] for a in A])


class Own(Kernel):
    """A kernel class with something learned."""

    domain = Objects()

    def __init__(self, power: float = 1.0) -> None:
        self.power = power

    def fit(self, X: Any, rng: np.random.Generator) -> Any:
        self.scale_ = float(len(X))
        return self

    def columns(self, Z: Any) -> Any:
        def values(A: Any, out: Any = None) -> Any:
            K = np.array([[overlap(a, z, self.power) / self.scale_ for z in Z] for a in A])
            if out is None:
                return K
            out[:] = K
            return out

        return values


FUNCTIONS = {
    "block": block,
    "pairwise": pairwise(overlap, power=2.0),
    "dissimilarity": dissimilarity(pairwise(lambda a, b: abs(len(a) - len(b)))),
    "inside": normalized(pairwise(overlap) + pairwise(overlap, power=0.5)),
    "class": Own(2.0),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_is_left_out_and_given_again(name: str, tmp_path: Path) -> None:
    kernel, X = FUNCTIONS[name], words()
    model = kreinlearn.KreinRidge(kernel, similarity="squared", random_state=0).fit(X, TARGETS)
    with pytest.raises(TypeError, match=r"not code; register it.*external_kernel=True"):
        model.save(tmp_path / "m.krein")
    assert not list(tmp_path.iterdir())
    found = loaded(model, tmp_path / "m.krein", kernel=kernel)
    assert found.kernel is kernel
    assert same(found.predict(X), model.predict(X))
    with pytest.raises(ValueError, match="saved without its kernel"):
        kreinlearn.load(tmp_path / "m.krein")
    with pytest.raises(ValueError, match=r"cannot be loaded|fitted to a dis|gives .* now and gave"):
        kreinlearn.load(tmp_path / "m.krein", kernel=pairwise(lambda a, b: float(len(a + b))))


def test_a_kernel_that_the_file_holds_is_not_given(tmp_path: Path) -> None:
    model = kreinlearn.KreinRidge("gaussian").fit(numbers(), TARGETS)
    model.save(tmp_path / "m.krein")
    with pytest.raises(ValueError, match="leave kernel out"):
        kreinlearn.load(tmp_path / "m.krein", kernel="gaussian")


@pytest.fixture
def registry() -> Iterator[dict[str, Any]]:
    before = dict(REGISTRY)
    yield REGISTRY
    REGISTRY.clear()
    REGISTRY.update(before)


@pytest.mark.parametrize("factory", [lambda power=1.0: pairwise(overlap, power=power), Own])
def test_a_registered_kernel_is_found_by_its_name(
    factory: Any, registry: dict[str, Any], tmp_path: Path
) -> None:
    register("overlap", factory)
    X, path = words(), tmp_path / "m.krein"
    model = kreinlearn.KreinRidge("overlap", kernel_params={"power": 2.0}, random_state=0)
    found = loaded(model.fit(X, TARGETS), path)
    assert found.get_params() == model.get_params()
    assert same(found.predict(X), model.predict(X))
    register("overlap", lambda power=1.0: pairwise(overlap, power=3.0), replace=True)
    with pytest.raises(ValueError, match=r"gives .* now and gave|cannot be loaded"):
        kreinlearn.load(path)
    del registry["overlap"]
    with pytest.raises(ModelFormatError, match=r"kernel='overlap' is unknown.*register\("):
        kreinlearn.load(path)


def test_names_of_registered_kernels_inside_others(
    registry: dict[str, Any], tmp_path: Path
) -> None:
    register("overlap", lambda: pairwise(overlap))
    kernel = LinearCombination(["overlap", normalized("overlap")], [1.0, -0.5])
    with pytest.raises(TypeError, match="no name that a later process could find"):
        kreinlearn.KreinRidge(kernel).fit(words(), TARGETS).save(tmp_path / "m.krein")
    kernel = LinearCombination(["overlap", Normalized("overlap")], [1.0, -0.5])
    model = kreinlearn.KreinRidge(kernel, random_state=0).fit(words(), TARGETS)
    assert same(loaded(model, tmp_path / "m.krein").predict(words()), model.predict(words()))


# Parameters that are no data


def test_splitters_are_replaced_with_a_warning(tmp_path: Path) -> None:
    model = kreinlearn.KreinRidge("gaussian", cv=KFold(3)).fit(numbers(), TARGETS)
    with pytest.warns(UserWarning, match="is not data and is not stored") as heard:
        model.save(tmp_path / "m.krein")
    assert len(heard) == 1
    found = kreinlearn.load(tmp_path / "m.krein")
    assert found.cv is None
    assert same(found.predict(numbers()), model.predict(numbers()))


SEEDS = [5, np.random.default_rng(5), np.random.RandomState(5)]


@pytest.mark.parametrize("seed", [*SEEDS, np.random.Generator(np.random.MT19937(5))])
def test_random_numbers_go_on(seed: Any, tmp_path: Path) -> None:
    X = numbers()
    model = kreinlearn.KreinRidge("gaussian", landmarks=7, random_state=seed).fit(X, TARGETS)
    found = loaded(model, tmp_path / "m.krein")
    assert same(clone(found).fit(X, TARGETS).predict(X), clone(model).fit(X, TARGETS).predict(X))


def test_folds_as_arrays_and_a_store(tmp_path: Path) -> None:
    folds = list(KFold(3).split(numbers()))
    resources = kreinlearn.Resources(memory_budget="1GB", store=tmp_path / "store")
    model = kreinlearn.KreinRidge("cityblock", cv=folds, resources=resources)
    found = loaded(model.fit(numbers(), TARGETS), tmp_path / "m.krein")
    assert equal(found.cv, folds)
    assert found.resources == kreinlearn.Resources(memory_budget="1GB")
    assert str(tmp_path).encode() not in (tmp_path / "m.krein").read_bytes()


def test_parameters_changed_after_the_fit_are_refused(tmp_path: Path) -> None:
    model = kreinlearn.KreinRidge("gaussian").fit(numbers(), TARGETS)
    for changed in ({"kernel": "sigmoid"}, {"kernel_params": {"width": 3.0}}):
        with pytest.raises(ValueError, match="not what the model was fitted with"):
            copy.deepcopy(model).set_params(**changed).save(tmp_path / "m.krein")


def test_what_save_does_not_take(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"takes a fitted estimator.*got a Pipeline"):
        kreinlearn.save(make_pipeline(kreinlearn.KreinRidge()), tmp_path / "m.krein")
    with pytest.raises(NotFittedError):
        kreinlearn.KreinRidge().save(tmp_path / "m.krein")

    class Mine(kreinlearn.KreinRidge):
        pass

    with pytest.raises(TypeError, match="got a Mine"):
        Mine("gaussian").fit(numbers(), TARGETS).save(tmp_path / "m.krein")
    objects = [Pair(word, 1) for word in words()]
    model = kreinlearn.KreinRidge(pairwise(lambda a, b: overlap(a[0], b[0]))).fit(objects, TARGETS)
    with pytest.raises(TypeError, match=r"contains a .*Pair, but a model file takes only numbers"):
        model.save(tmp_path / "m.krein", external_kernel=True)
    assert not list(tmp_path.iterdir())


class Pair(NamedTuple):
    word: str
    number: int


# The file


def test_the_file_can_be_read_by_hand(fits: dict[str, Any], tmp_path: Path) -> None:
    """Two lines, a line of JSON, and the bytes of the arrays that it mentions, in their order."""
    path, model = tmp_path / "m.krein", fits["nystroem"]
    model.save(path)
    first, digest, rest = path.read_bytes().split(b"\n", 2)
    assert first == b"kreinlearn model 2"
    assert hashlib.sha256(rest).hexdigest() == digest.decode()
    text, data = rest.split(b"\n", 1)
    content = json.loads(text)
    assert content["estimator"] == "KreinNystroem"
    assert content["parameters"]["kernel"] == "gaussian"
    dtype, shape, order = content["state"]["landmark_indices_"]["of"]
    start = data.index(model.landmark_indices_.tobytes())
    found = np.frombuffer(data[start:], dtype, shape[0])
    assert same(found, model.landmark_indices_)
    assert order == "C"
    (_, shape, order) = content["state"]["_map"]["of"][1]["W"]["of"]
    assert shape == list(model._map.W.shape)
    assert model._map.W.tobytes(order) in data


def test_the_same_model_gives_the_same_file(tmp_path: Path) -> None:
    for name in ("1", "2"):
        kreinlearn.KreinRidge("gaussian", random_state=0).fit(numbers(), TARGETS).save(
            tmp_path / name
        )
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()


def test_loading_a_model_of_a_thousand_landmarks_is_no_fit(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(1000, 20))
    model = kreinlearn.KreinNystroem(landmarks=kreinlearn.Landmarks(1000, "uniform", core="plain"))
    fitting = least_cpu_seconds(lambda: model.fit(X), times=1)
    model.save(tmp_path / "m.krein")
    assert least_cpu_seconds(lambda: kreinlearn.load(tmp_path / "m.krein")) < fitting / 3
    assert kreinlearn.load(tmp_path / "m.krein").n_landmarks_ == 1000


def apart(a: float, b: float) -> float:
    return abs(float(a) - float(b))


def alike(a: float, b: float) -> float:
    return float(a * b)


def test_a_similarity_that_is_given_for_a_dissimilarity_is_named(tmp_path: Path) -> None:
    path, kernel = tmp_path / "m.krein", dissimilarity(pairwise(apart))
    X, y = [1.0, 2.0, 4.0, 7.0], [0.0, 1.0, 0.0, 1.0]
    for mine, other, message in (
        (kernel, pairwise(alike), r"fitted to a dissimilarity, .*kernel=dissimilarity\("),
        (pairwise(alike), kernel, r"fitted to a similarity, .*without dissimilarity\("),
    ):
        model = kreinlearn.KreinRidge(mine, lambda_plus=1, lambda_minus=1).fit(X, y)
        model.save(path, external_kernel=True)
        with pytest.raises(ValueError, match=message):
            kreinlearn.load(path, kernel=other)
        found = kreinlearn.load(path, kernel=mine)
        np.testing.assert_array_equal(found.predict(X), model.predict(X))
