"""Models on objects of a class of the user: saved as the data that a function makes of them."""

from __future__ import annotations

import numpy as np
import pytest

from kreinlearn import KreinClassifier, KreinRidgeClassifier, Landmarks, load, save
from kreinlearn.kernels import dissimilarity, pairwise, similarity_of


class Own:
    def __init__(self, value, name):
        self.value, self.name = value, name


def distance(a, b):
    return abs(a.value - b.value) + (a.name != b.name)


def encode(own):
    return {"value": own.value, "type": np.array([1, 2]), "name": (own.name,)}


def decode(data):
    assert data["type"].tolist() == [1, 2]
    return Own(data["value"], *data["name"])


KERNEL = dissimilarity(pairwise(distance))
RNG = np.random.default_rng(3)
X = [Own(float(v), "ab"[i % 2]) for i, v in enumerate(RNG.normal(size=24))]
Y = np.array([x.value > 0 for x in X])


MODELS = {
    "all": KreinRidgeClassifier(KERNEL, random_state=0),
    "given": KreinRidgeClassifier(KERNEL, landmarks=X[:5], random_state=0),
    "inside": KreinRidgeClassifier(similarity_of(KERNEL, "local3", n_reference=8), random_state=0),
    "several": KreinClassifier([KERNEL, pairwise(lambda a, b: a.value * b.value)], random_state=0),
}


@pytest.mark.parametrize("name", MODELS)
def test_predictions_are_the_same(name, tmp_path):
    model = MODELS[name].fit(X, Y)
    model.save(tmp_path / "model", external_kernel=True, encode=encode)
    again = load(tmp_path / "model", kernel=model.kernel, decode=decode)
    f = model.decision_function(X)
    np.testing.assert_allclose(again.decision_function(X), f, rtol=0, atol=1e-13 * np.abs(f).max())
    assert all(isinstance(one, Own) for one in again.landmarks_)
    assert b"Own" in (tmp_path / "model").read_bytes()


@pytest.mark.parametrize("name", ["all", "given"])
def test_without_encode(name, tmp_path):
    with pytest.raises(TypeError, match=r"contains a .*Own, .*save\(\.\.\., encode=f\)"):
        save(MODELS[name].fit(X, Y), tmp_path / "model", external_kernel=True)
    with pytest.raises(TypeError, match="encode must be a function of one object, got 3"):
        save(MODELS[name], tmp_path / "model", external_kernel=True, encode=3)
    with pytest.raises(TypeError, match="Own in what encode returned for a Own"):
        save(MODELS[name], tmp_path / "model", external_kernel=True, encode=lambda own: [own])
    with pytest.raises(ValueError, match=r"encode raised ZeroDivisionError .* for .*; pass a func"):
        save(MODELS[name], tmp_path / "model", external_kernel=True, encode=lambda own: 1 / 0)
    assert not (tmp_path / "model").exists()


def test_load_says_what_it_needs(tmp_path):
    save(MODELS["all"].fit(X, Y), tmp_path / "model", external_kernel=True, encode=encode)
    with pytest.raises(
        ValueError, match=r"objects of the class Own, .*load\(path, decode=\.\.\.\)"
    ):
        load(tmp_path / "model", kernel=KERNEL)
    with pytest.raises(ValueError, match="decode raised KeyError"):
        load(tmp_path / "model", kernel=KERNEL, decode=lambda data: Own(data["length"], "a"))
    with pytest.raises(ValueError, match="it is another kernel"):
        load(tmp_path / "model", kernel=KERNEL, decode=lambda data: Own(2 * data["value"], "a"))
    with pytest.raises(ValueError, match=r"without its kernel.*load\(path, kernel=\.\.\.\)"):
        load(tmp_path / "model", decode=decode)


def test_encode_is_not_asked_for_data(tmp_path):
    model = KreinRidgeClassifier("levenshtein").fit(["a", "ab", "b", "bb"], [0, 0, 1, 1])
    save(model, tmp_path / "model", encode=lambda _: pytest.fail("no object of a class"))
    assert load(tmp_path / "model", decode=decode).predict(["a"]) == model.predict(["a"])


def test_encode_is_not_asked_for_a_function_that_chooses_landmarks(tmp_path):
    model = KreinRidgeClassifier(KERNEL, landmarks=Landmarks(5, lambda rows, m, rng: range(m)))
    with pytest.warns(UserWarning, match="is not data and is not stored"):
        save(model.fit(X, Y), tmp_path / "model", external_kernel=True, encode=encode)
    again = load(tmp_path / "model", kernel=KERNEL, decode=decode)
    assert again.predict(X).tolist() == model.predict(X).tolist()


def test_a_decoder_of_something_else_is_named(tmp_path):
    save(MODELS["all"].fit(X, Y), tmp_path / "model", external_kernel=True, encode=encode)
    with pytest.raises(ValueError, match="is kernel and decode what belongs to this model"):
        load(tmp_path / "model", kernel=KERNEL, decode=lambda data: data)
