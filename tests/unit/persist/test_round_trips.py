"""A model that was saved and loaded says bit for bit what it said before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kreinlearn
from tests.unit.persist import cases


def same(a: Any, b: Any) -> bool:
    a, b = np.asarray(a), np.asarray(b)
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def loaded(model: Any, path: Path, **given: Any) -> Any:
    model.save(path, external_kernel=bool(given))
    return kreinlearn.load(path, **given)


@pytest.mark.parametrize("kind", cases.KINDS)
@pytest.mark.parametrize("name", cases.MODELS)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_round_trip(name: str, kind: str, tmp_path: Path) -> None:
    model, X, y = cases.model_of(name, kind)
    model.fit(X, y)
    found = loaded(model, tmp_path / "m.krein")
    assert type(found) is type(model)
    before, after = cases.answers(model, X), cases.answers(found, X)
    assert before.keys() == after.keys()
    for method in before:
        assert same(before[method], after[method]), method


@pytest.mark.parametrize("name", cases.MODELS)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_loaded_model_takes_the_columns_of_its_landmarks(name: str, tmp_path: Path) -> None:
    model, K, y = cases.model_of(name, "given_few")
    found = loaded(model.fit(K, y), tmp_path / "m.krein")
    K = K[:, model.landmark_indices_]
    for method in ("predict", "transform"):
        if hasattr(model, method):
            assert same(getattr(model, method)(K), getattr(found, method)(K))


@pytest.mark.parametrize("name", cases.REGISTERED)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_round_trip_of_every_registered_kernel(name: str, tmp_path: Path) -> None:
    X = cases.objects_for(name)
    model = kreinlearn.KreinNystroem(name, landmarks=9, random_state=0).fit(X)
    found = loaded(model, tmp_path / "m.krein")
    assert same(model.transform(X), found.transform(X))
    assert found.kernel_.get_params().keys() == model.kernel_.get_params().keys()
