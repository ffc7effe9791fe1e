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
from kreinlearn.data.frames import is_missing
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
        kernels = candidates_for(X)
        fields = [kernel for kernel in kernels if isinstance(kernel, Field)]
        assert [field.name for field in fields if field.name != "word"] == ["size", "group", "gaps"]
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
    assert "SmithWaterman" not in names(PEPTIDES)
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
    rows: list[Any] = [{"h": None}, *({"h": np.arange(4.0) + i} for i in range(9))]
    assert {kernel.name for kernel in candidates_for(rows)} == {"h"}  # type: ignore[attr-defined]
    with (
        pytest.warns(UserWarning, match="field 'h' is missing in all 5 rows: it is left out"),
        pytest.raises(ValueError, match="finds no field with values; fill them in"),
    ):
        candidates_for([{"h": None}] * 5)
    with pytest.raises(ValueError, match=r"field 'when': kernel=.auto. does not know objects"):
        candidates_for([{"when": object(), "h": 1.0}] * 3)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("front", [KreinClassifier, KreinRegressor])
def test_gaps_take_part(front: Any, tmp_path: Path) -> None:
    frame = pd.DataFrame({"word": WORDS, "size": NUMBERS[:, 0]})
    frame.loc[::3, "word"], frame.loc[1::3, "size"] = None, np.nan
    frame.to_csv(tmp_path / "gaps.csv", index=False)
    records: list[Any] = frame.to_dict("records")
    some = [{k: v for k, v in row.items() if not is_missing(v)} for row in records]
    expected = None
    for X in (frame, records, some, tmp_path / "gaps.csv"):
        model = front(random_state=0).fit(X, KIND)
        assert {"word: Levenshtein()", "size"} <= set(model.kernel_weights_)
        model.save(tmp_path / "m.krein")
        found = load(tmp_path / "m.krein").predict(frame)
        np.testing.assert_array_equal(found, model.predict(X))
        expected = found if expected is None else expected
        np.testing.assert_array_equal(found, expected)
    model = front(random_state=0).fit(frame.bfill().ffill(), KIND)
    assert model.predict(frame).shape == (40,)  # there were no gaps in the fit


def test_a_field_that_is_missing_everywhere_is_left_out(tmp_path: Path) -> None:
    frame = pd.DataFrame({"size": NUMBERS[:, 0], "empty": [None] * 40, "word": WORDS})
    frame.to_csv(tmp_path / "empty.csv", index=False)
    for X in (frame, frame.to_dict("records"), tmp_path / "empty.csv"):
        with pytest.warns(UserWarning, match="field 'empty' is missing in all 40 rows") as caught:
            model = KreinClassifier(random_state=0).fit(X, KIND)
        assert len(caught) == 1
        assert model.predict(X).shape == (40,)


@pytest.mark.parametrize(
    "written",
    [
        lambda day: day,
        lambda day: day.date(),
        lambda day: day.to_datetime64(),
        lambda day: day.isoformat(),
        lambda day: f"{day:%d.%m.%Y}",
        lambda day: f"{day:%m/%d/%Y}",
    ],
)
def test_dates_are_numbers(written: Any, tmp_path: Path) -> None:
    y = np.arange(40.0)
    days = [pd.Timestamp("2024-01-01") + pd.Timedelta(days=i) for i in range(40)]
    rows: list[Any] = [
        {"when": None if i in (3, 7) else written(day), "group": "ab"[i % 2]}
        for i, day in enumerate(days)
    ]
    frame = pd.DataFrame(rows)
    frame.to_csv(tmp_path / "days.csv", index=False)
    frame.to_json(tmp_path / "days.jsonl", orient="records", lines=True, date_format="iso")
    frame.to_parquet(tmp_path / "days.parquet")
    for X in (rows, frame, *(tmp_path / f"days.{end}" for end in ("csv", "jsonl", "parquet"))):
        kernels = candidates_for(X)
        assert [str(one.kernel) for one in kernels if isinstance(one, Field)] == [
            "SklearnMetric(metric='manhattan')", "Gower()",
        ]  # fmt: skip
        model = KreinRegressor(random_state=0).fit(X, y)
        model.save(tmp_path / "m.krein")
        found = load(tmp_path / "m.krein").predict([{"when": written(days[20]), "group": "a"}])
        assert abs(found[0] - 20) < 2


@pytest.mark.parametrize("ids", [["007", "008"], ["12-5", "13-6"], ["2024-13-45", "2024-20-99"]])
def test_texts_that_are_no_dates(ids: list[str]) -> None:
    (field, *_) = candidates_for([{"id": x} for x in ids * 2])
    assert "Levenshtein" in str(field)


def test_dates_of_which_nothing_tells_days_from_months() -> None:
    rows = [{"when": f"{i % 12 + 1}/{i % 5 + 1}/2024", "x": float(i)} for i in range(40)]
    with pytest.warns(UserWarning, match="nothing tells days from months") as caught:
        model = KreinClassifier(random_state=0).fit(rows, KIND)
    assert len(caught) == 1
    assert "when: Levenshtein()" in model.kernel_weights_


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


def test_all_series_say_which_kernels_take_them_however_many_there_are() -> None:
    """One series of two points is too short for derivatives, wherever it stands."""
    rng = np.random.default_rng(0)
    X = [rng.normal(size=6) for _ in range(250)]
    X[101] = X[101][:2]
    looked_at = np.linspace(0, len(X) - 1, candidates.LOOKED_AT).astype(int)
    assert 101 not in looked_at
    assert [str(kernel) for kernel in candidates_for(X)] == ["DTW()", "ERP()"]
