"""Which kernels "auto" compares, by the kind of objects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from kreinlearn import KreinClassifier, KreinRegressor, load
from kreinlearn.datasets import make_graphs, make_polygons, make_warped_series
from kreinlearn.kernels import candidates
from kreinlearn.kernels.candidates import candidates_for
from kreinlearn.kernels.fields import Field
from kreinlearn.kernels.vectors import Gaussian

RNG = np.random.default_rng(0)
WORDS = ["".join(RNG.choice(list("abcde"), 5)) for _ in range(40)]
NUMBERS = RNG.normal(size=(40, 3))
KIND = np.arange(40) % 2


def names(X: Any) -> set[str]:
    return {type(kernel).__name__ for kernel in candidates_for(X)}


@pytest.mark.parametrize(
    ("X", "some"),
    [
        (WORDS, {"Levenshtein", "JaroWinkler", "NGrams"}),
        (np.array(WORDS), {"Levenshtein", "NGrams"}),
        (pd.Series(WORDS), {"Levenshtein", "NGrams"}),
        ([list(word) for word in WORDS], {"Levenshtein", "NGrams"}),
        ([set(word) for word in WORDS], {"JaccardSets", "Tversky"}),
        (make_warped_series(20, random_state=0)[0], {"DTW", "MSM", "Convolutions"}),
        (make_polygons(20, random_state=0)[0], {"Procrustes", "Turning", "DTW"}),
        (make_graphs(20, random_state=0)[0], {"WLDistance", "WeisfeilerLehman"}),
        ([networkx.path_graph(k) for k in (3, 4, 5)], {"WLDistance", "ShortestPath"}),
        (NUMBERS, {"SklearnMetric"}),
        (NUMBERS.tolist(), {"SklearnMetric"}),
        (sp.csr_array(NUMBERS), {"SklearnMetric"}),
        (pd.DataFrame(NUMBERS), {"SklearnMetric"}),
    ],
)
def test_every_kind_of_objects_has_its_kernels(X: Any, some: set[str]) -> None:
    assert some <= names(X)


PEPTIDES = ["".join(RNG.choice(list("ACDEFGHIKLMNPQRSTVWYX"), 8 + i % 5)) for i in range(40)]


@pytest.mark.parametrize(
    ("X", "aligned"),
    [
        (PEPTIDES, True),
        (np.array(PEPTIDES), True),
        ([*PEPTIDES * 4, "ACDO"], False),  # a letter that is no amino acid
        ([*PEPTIDES[:2], None, *PEPTIDES * 4], False),  # which no one looks at
        ([x.lower() for x in PEPTIDES], False),
        ([list(x) for x in PEPTIDES], False),
        (["".join(RNG.choice(list("ACGTRYSWKMBDHVN"), 9)) for _ in range(99)], False),  # DNA
    ],
)
def test_proteins_are_aligned(X: Any, aligned: bool) -> None:
    pytest.importorskip("parasail")
    found = [str(kernel) for kernel in candidates_for(X) if type(kernel).__name__[0] == "S"]
    assert found == ["SmithWaterman(normalized=True, unknown='X')"] * aligned


def test_vectors_in_a_file_have_the_kernel_that_is_fast(tmp_path: Path) -> None:
    np.save(tmp_path / "vectors.npy", NUMBERS)
    assert names(str(tmp_path / "vectors.npy")) == {"Gaussian"}


def test_very_many_vectors_have_the_kernel_that_is_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(NUMBERS) < candidates.MANY
    many = np.zeros((candidates.MANY + 1, 1))
    (only,) = candidates_for(many)
    assert isinstance(only, Gaussian)


def test_rows_on_workers_have_the_kernel_that_is_fast() -> None:
    dask = pytest.importorskip("dask")
    array = pytest.importorskip("dask.array")
    X = np.random.default_rng(0).standard_normal((60, 3))
    blocks = [dask.delayed(part) for part in np.array_split(X, 3)]
    for rows in (array.from_array(X, chunks=20), blocks):
        (kernel,) = candidates_for(rows)
        assert isinstance(kernel, Gaussian)
    KreinClassifier().fit(blocks, X[:, 0] > 0)


def test_each_field_of_a_table_has_its_kernels() -> None:
    frame = pd.DataFrame({"word": WORDS, "size": NUMBERS[:, 0], "group": np.where(KIND, "a", "b")})
    frame["gaps"] = np.where(np.arange(40) % 3, NUMBERS[:, 1], np.nan)
    for X in (frame, frame.to_dict("records")):
        with pytest.warns(UserWarning, match="field 'gaps' is missing in 14 of 40 rows, first in"):
            kernels = candidates_for(X)
        fields = [kernel for kernel in kernels if isinstance(kernel, Field)]
        assert {field.name for field in fields} == {"word", "size", "group"}  # no gaps
        assert sum(type(field.kernel).__name__ == "WeightedDegree" for field in fields) == 1
        assert len(kernels) == len(fields) + 1  # and Gower's distance of whole rows


def test_objects_that_are_not_known() -> None:
    with pytest.raises(ValueError, match="does not know objects such as object"):
        candidates_for([object(), object()])
    with pytest.raises(ValueError, match="objects of one kind, and object 0 is str 'a'"):
        candidates_for(["a", {1, 2}])
    with pytest.raises(ValueError, match="there are none"):
        candidates_for([])


def test_kernels_whose_library_is_missing_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "find_spec", lambda name: None)
    assert names(WORDS) == {"NGrams", "WeightedDegree"}
    assert names([*WORDS, "abc"]) == {"NGrams"}
    elastic = {"DTW", "DerivativeDTW", "ShapeDTW", "MSM", "ERP"}
    assert names([np.arange(5.0)] * 3) == {*elastic, "Convolutions"}
    assert names([np.arange(2.0)] * 3) == {"DTW", "ERP"}


@pytest.mark.parametrize("front", [KreinClassifier, KreinRegressor])
def test_the_front_door_compares_them_by_default(front: Any, tmp_path: Any) -> None:
    y = np.array([word.count("a") > 0 for word in WORDS]).astype(int)
    model = front(random_state=0).fit(WORDS, y)
    assert set(model.kernel_losses_) == set(model.kernel_weights_)
    assert len(model.kernel_weights_) == 7
    model.save(tmp_path / "m.krein")
    np.testing.assert_array_equal(load(tmp_path / "m.krein").predict(WORDS), model.predict(WORDS))


def test_kernels_that_would_take_too_long_are_left_out() -> None:
    series, y = make_warped_series(60, random_state=0)
    with pytest.warns(UserWarning, match="was left out: it would take about"):
        model = KreinClassifier(time_limit=0.001, random_state=0).fit(series, y)
    assert len(model.kernel_losses_) < 5


def test_records_without_a_field_that_is_there() -> None:
    rows = [{"h": None}, *({"h": np.arange(4.0) + i} for i in range(9))]
    with (
        pytest.warns(UserWarning, match="it is left out"),
        pytest.raises(ValueError, match="no field without missing values"),
    ):
        candidates_for(rows)
    with pytest.raises(ValueError, match=r"field 'when': kernel=.auto. does not know objects"):
        candidates_for([{"when": object(), "h": 1.0}] * 3)


@pytest.mark.parametrize(
    ("objects", "kernel"),
    [
        ([(["a", "b"], []), (["a", "b"], [[0, 1]])], "WLDistance"),
        ([[], ["to", "be"], ["or", "not"]], "NGrams"),
        ([("Ann", 31), ("Bob", 35), ("Cid", 28)], "Field"),
    ],
)
def test_objects_at_the_border(objects: Any, kernel: str) -> None:
    assert kernel in names(objects)
