"""Kernels on single fields of records: values, declarations, forms of records, errors."""

from __future__ import annotations

import json
import pickle
import re
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.utils import InputTags

from kreinlearn import (
    Blocks,
    KreinClassifier,
    KreinNystroem,
    KreinRegressor,
    KreinRidge,
    KreinRidgeClassifier,
    KreinSVC,
    Resources,
    columns,
    dissimilarity,
    evaluate,
    inspect,
    load,
    normalized,
    pairwise,
    save,
    similarity_of,
    table,
)
from kreinlearn.kernels import (
    DTW,
    Field,
    Gaussian,
    Gower,
    JaroWinkler,
    Kernel,
    remembering,
    resolve,
)
from kreinlearn.kernels.domains import Anything, Objects, Records, Vectors
from kreinlearn.kernels.fields import fields_in
from tests.unit.kernels.object_checks import check_copies, check_estimator, check_symmetry

EPS = np.finfo(np.float64).eps
N = 36
FIELDS = {"name": "jaro_winkler", "history": "dtw", "age": "gaussian"}


def people(n: int = N, seed: int = 0) -> tuple[list[dict[str, Any]], Any]:
    """Records of three classes: each field tells a little about the class."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    rows = []
    for i, c in enumerate(y):
        steps = np.arange(rng.integers(6, 11))
        rows.append(
            {
                "id": i,
                "name": "".join(rng.choice(list("abc"[: c + 1]), size=6)),
                "history": (np.sin(steps * (0.4 + 0.3 * c)) + 0.2 * rng.normal()).tolist(),
                "age": float(20 + 10 * c + 6 * rng.normal()),
                "place": rng.normal(size=2).round(3).tolist(),
                "colour": ["red", "blue", "green"][rng.integers(3)],
            }
        )
    return rows, y


ROWS, Y = people()
NEW, _ = people(9, 1)


def column(name: str, rows: list[Any] = ROWS) -> list[Any]:
    return [row[name] for row in rows]


def fitted(kernel: Kernel, X: Any = ROWS) -> Any:
    return kernel.fit(X, np.random.default_rng(0))


def shared(a: str, b: str) -> float:
    return float(len(set(a) & set(b)))


def nearness(A: list[float], B: list[float]) -> Any:
    """A function of two blocks, which are lists of numbers."""
    assert isinstance(A, list)
    return -np.abs(np.subtract.outer(A, B))


def together() -> Any:
    name, history, age = columns(FIELDS)
    return similarity_of(name) + 0.5 * similarity_of(history) + age


# Values


@pytest.mark.parametrize(
    ("name", "inner"),
    [
        ("name", "jaro_winkler"),
        ("name", normalized("smith_waterman")),
        ("name", similarity_of("levenshtein")),
        ("history", "dtw"),
        ("place", "gaussian"),
        ("place", "dtw"),
        ("name", pairwise(shared)),
        ("age", nearness),
    ],
)
def test_values_are_those_of_the_field_alone(name: str, inner: Any) -> None:
    field, alone = fitted(Field(name, inner)), resolve(inner)
    X: Any = column(name)
    new: Any = column(name, NEW)
    if alone.domain.is_vectors:
        X, new = np.array(X), np.array(new)
    alone = alone.fit(X, np.random.default_rng(0).spawn(1)[0])
    for rows in (ROWS[:5], [dict(row) for row in NEW]):
        values: Any = [row[name] for row in rows]
        values = np.array(values) if isinstance(X, np.ndarray) else values
        assert_array_equal(field(rows, ROWS), alone(values, X))
        assert_array_equal(field(rows), alone(values))
        assert_array_equal(field.diagonal(rows), alone.diagonal(values))
        assert_array_equal(field.anew(rows, ROWS), alone.anew(values, X))
    out = np.full((len(NEW), N), np.nan)
    assert_array_equal(field.columns(ROWS)(NEW, out), out)
    assert_array_equal(out, alone(new, X))


def test_numbers_are_vectors_of_length_one() -> None:
    age = np.array(column("age"))
    D = np.abs(np.subtract.outer(age, age))
    assert_allclose(fitted(Field("age", "manhattan"))(ROWS), D, atol=2 * EPS * age.max())
    width = np.median(D[np.triu_indices(N, 1)] ** 2)  # of squared distances
    # |x - z|^2 is a sum of three terms, each at most the largest square, and so is its exponent
    bound = 16 * EPS * (age.max() - age.min()) ** 2 / width
    assert_allclose(fitted(Field("age", "gaussian"))(ROWS), np.exp(-(D**2) / width), atol=bound)


def test_numbers_of_other_types_and_booleans() -> None:
    from decimal import Decimal
    from fractions import Fraction

    rows = [(1,), (np.float32(2.5),), (np.int8(-3),), (Decimal("0.5"),), (Fraction(1, 4),), (True,)]
    x = np.array([1, 2.5, -3, 0.5, 0.25, 1])
    assert_array_equal(fitted(Field(0, "manhattan"), rows)(rows), np.abs(np.subtract.outer(x, x)))


def test_gower_compares_categories() -> None:
    colours = np.array(column("colour"))
    differ = (colours[:, None] != colours).astype(float)
    assert_array_equal(fitted(Field("colour", "gower"))(ROWS), differ)
    assert_array_equal(
        fitted(Field("age", "gower"))(ROWS),
        fitted(Gower(), [(x,) for x in column("age")])([(x,) for x in column("age")]),
    )


def test_a_record_inside_a_record() -> None:
    rows = [{"who": row} for row in ROWS]
    inside = columns({"name": "levenshtein", "colour": "gower"})
    assert_array_equal(
        fitted(Field("who", inside[0] + 2.0 * inside[1]), rows)(rows),
        fitted(inside[0])(ROWS) + 2.0 * fitted(inside[1])(ROWS),
    )


def test_a_fixed_sum_is_the_sum_of_the_fields() -> None:
    kernel = fitted(together())
    parts = [
        weight * part(NEW, ROWS) for weight, part in zip([1, 0.5, 1], kernel.parts, strict=True)
    ]
    assert_array_equal(kernel(NEW, ROWS), parts[0] + parts[1] + parts[2])
    product = fitted(Field("age", "gaussian") * Field("place", "gaussian"))
    a, b = product.parts
    assert_array_equal(product(NEW, ROWS), a(NEW, ROWS) * b(NEW, ROWS))


def test_the_same_field_twice() -> None:
    kernel = fitted(Field("name", "levenshtein") + Field("name", "jaro"))
    assert len({id(part) for part in kernel.parts}) == 2
    assert kernel.domain.names == ["name"]
    X = column("name")
    assert_array_equal(kernel(ROWS), resolve("levenshtein")(X) + resolve("jaro")(X))


def test_pieces_copies_and_symmetry() -> None:
    for kernel in (Field("name", "levenshtein"), Field("name", pairwise(shared))):
        check_symmetry(fitted(kernel), ROWS)
        check_copies(kernel.fit(ROWS, np.random.default_rng(0)), ROWS, ROWS[:4])


# Declarations


@pytest.mark.parametrize(
    "inner",
    [
        "levenshtein",
        "gaussian",
        "dtw",
        "smith_waterman",
        "gower",
        pairwise(shared),
        nearness,
        dissimilarity(pairwise(shared)),
        similarity_of("dtw"),
    ],
)
def test_it_declares_what_its_kernel_declares(inner: Any) -> None:
    field, alone = Field("name", inner), resolve(inner)
    for name in (
        "is_dissimilarity", "threads", "costly", "pairs_once", "splits_squares", "diagonal_cost",
        "pair_seconds", "rows_per_call", "jobs",
    ):  # fmt: skip
        assert getattr(field, name) == getattr(alone, name), name
    assert not field.sparse
    assert not field.writes_in_place
    assert field.domain == Records((("name", alone.domain),), whole=False)
    assert field.untrusted == ([field] if alone.untrusted else [])


def test_domains_of_combinations() -> None:
    age, name = columns({"age": "gaussian", "name": "smith_waterman"})
    both = (("age", Vectors(True)), ("name", Objects()))
    assert (age + name).domain == Records(both, whole=False)
    assert (age + name).domain.objects == {"name"}
    assert (age + similarity_of("gower")).domain == Records(both[:1], whole=True)
    assert (pairwise(shared) + age).domain == Records(both[:1]) == (age + pairwise(shared)).domain
    assert Records(both).intersection(Anything()) == Records(both)
    for other in ("gaussian", "smith_waterman"):
        with pytest.raises(ValueError, match="takes records"):
            _ = age + resolve(other)


def test_tags() -> None:
    tags, kernel = InputTags(), Field("age", "gaussian")
    kernel.domain.tags(tags, kernel)
    assert (tags.categorical, tags.string, tags.allow_nan, tags.sparse) == (
        True,
        True,
        True,
        False,
    )


def test_parameters() -> None:
    field = Field("age", Gaussian(width=2.0))
    assert field.get_params()["kernel__width"] == 2.0
    assert clone(field).set_params(kernel__width=3.0, name="place").kernel.width == 3.0
    assert resolve(field, {"kernel": "gower"}).kernel == "gower"
    with pytest.raises(ValueError, match="'kernel__width' cannot be set: kernel is the name"):
        Field("age", "gaussian").set_params(kernel__width=3.0)
    grid = fitted(field := Field("age", "gaussian")).grid()
    assert [one["kernel"].width for one in grid] == [one["width"] for one in field.parts[0].grid()]


def test_fields_of_a_kernel() -> None:
    name, age = Field("name", "jaro"), Field("age", "gaussian")
    kernel = similarity_of(name) + age * age
    assert [field.name for field in fields_in(kernel)] == ["name", "age", "age"]
    assert fields_in(Gaussian()) == []
    fields = fields_in(fitted(kernel))
    assert [field.numeric_ for field in fields] == [False, True, True]


# columns


def test_columns_makes_one_kernel_per_field() -> None:
    own = JaroWinkler(prefix_weight=0.2)
    found = columns({"name": own, 3: "gaussian", "colour": pairwise(shared)})
    assert [type(one) for one in found] == [Field] * 3
    assert [one.name for one in found] == ["name", 3, "colour"]
    assert isinstance(found[1].kernel, Gaussian)
    assert found[0].kernel is not own
    assert found[0].kernel.prefix_weight == 0.2


@pytest.mark.parametrize("wrong", [["name"], {}, "name", None])
def test_columns_takes_a_dict(wrong: Any) -> None:
    with pytest.raises(
        TypeError, match="columns takes a dict from names of fields to kernels, got"
    ):
        columns(wrong)


def test_wrong_kernels_and_names() -> None:
    with pytest.raises(ValueError, match=r"(?s)'levenstein' is unknown.*in the field 'name' of"):
        columns({"name": "levenstein"})
    with pytest.raises(ValueError, match="a given matrix cannot be part of another kernel"):
        columns({"name": "precomputed"})
    for name in (True, 1.5, None, ("a",)):
        with pytest.raises(TypeError, match="a field is named by a text, or by its place in a"):
            columns({name: "gaussian"})
        with pytest.raises(TypeError, match="a field is named by a text, or by its place in a"):
            fitted(Field(name, "gaussian"))


# Estimators


def test_a_sum_by_the_kernel_as_by_its_matrix() -> None:
    kernel, frame = together(), pd.DataFrame(ROWS)
    check_estimator(kernel, ROWS, Y > 0, NEW, [frame, pl.DataFrame(ROWS), tuple(ROWS)])
    check_estimator(Field("history", "dtw"), ROWS, Y > 0, NEW, [frame])


FORMS: dict[str, Any] = {
    "frame of pandas": pd.DataFrame,
    "frame of polars": pl.DataFrame,
    "table of pyarrow": pa.Table.from_pylist,
    "other order of columns": lambda rows: pd.DataFrame(rows).iloc[:, ::-1],
    "further columns": lambda rows: pd.DataFrame(rows).assign(more="x"),
    "array of dicts": lambda rows: np.array(rows, dtype=object),
}


@pytest.mark.parametrize("form", FORMS)
def test_all_forms_of_records_are_the_same(form: str) -> None:
    made = FORMS[form]
    kernel = KreinRidgeClassifier(together(), random_state=0)
    expected = clone(kernel).fit(ROWS, Y).decision_function(NEW)
    model = kernel.fit(made(ROWS), Y)
    for new in (NEW, made(NEW), pd.DataFrame(NEW)):
        assert_array_equal(model.decision_function(new), expected)
    assert set(model.landmarks_[0]) == set(FIELDS)


def test_tuples_by_place() -> None:
    wanted = ["age", "id", "name"]
    tuples, new = ([tuple(row[w] for w in wanted) for row in rows] for rows in (ROWS, NEW))
    age, name = columns({0: "gaussian", 2: "levenshtein"})
    model = KreinRidgeClassifier(age + similarity_of(name), random_state=0).fit(tuples, Y)
    age, name = columns({"age": "gaussian", "name": "levenshtein"})
    by_name = KreinRidgeClassifier(age + similarity_of(name), random_state=0).fit(ROWS, Y)
    expected = by_name.decision_function(NEW)
    for form in (new, np.array(new, dtype=object), pd.DataFrame(new), model.landmarks_ and new):
        assert_array_equal(model.decision_function(form), expected)
    assert_array_equal(model.decision_function(model.landmarks_), model.decision_function(tuples))
    with pytest.raises(ValueError, match="there is no field 'age'; fields of tuples"):
        by_name.predict(new)


def test_rows_of_an_array_of_numbers() -> None:
    X = np.random.default_rng(0).normal(size=(30, 3))
    y = X[:, 1] > 0
    model = KreinRidgeClassifier(Field(1, "gaussian"), random_state=0).fit(X, y)
    alone = KreinRidgeClassifier("gaussian", random_state=0).fit(X[:, 1:2], y)
    f, g = model.decision_function(X), alone.decision_function(X[:, 1:2])
    assert_allclose(f, g, atol=1e-9 * np.abs(g).max())


@pytest.mark.parametrize("estimator", [KreinClassifier, KreinSVC, KreinRidgeClassifier])
def test_every_field_in_learners(estimator: Any) -> None:
    for field in columns({**FIELDS, "colour": "gower", "place": "manhattan"}):
        model = estimator(field, random_state=0).fit(ROWS, Y)
        assert model.predict(pd.DataFrame(NEW)).shape == (9,)
    assert estimator(together(), random_state=0).fit(ROWS, Y).score(ROWS, Y) > 0.9


def test_regression_landmarks_and_maps() -> None:
    target = np.array(column("age"))
    model = KreinRidge(together(), landmarks=12, random_state=0).fit(ROWS, target)
    assert model.n_landmarks_ == 12
    assert model.score(ROWS, target) > 0.5
    given = KreinRidge(together(), landmarks=pd.DataFrame(ROWS[:7]), random_state=0)
    assert given.fit(ROWS, target).landmarks_ == [{k: row[k] for k in FIELDS} for row in ROWS[:7]]
    assert KreinRegressor(together(), random_state=0).fit(ROWS, target).score(ROWS, target) > 0.5
    features = KreinNystroem(together(), landmarks=12, random_state=0).fit(ROWS).transform(NEW)
    assert features.shape[0] == 9


def test_inspect_evaluate_and_search() -> None:
    assert "objects" in dict(inspect(pd.DataFrame(ROWS), together()).rows())
    found = evaluate(pd.DataFrame(ROWS), Y, Field("name", "jaro_winkler"), cv=2, random_state=0)
    assert found.best is not None
    model = KreinRidgeClassifier(Field("age", Gaussian()), random_state=0)
    search = GridSearchCV(model, {"kernel__kernel__width": [1.0, 100.0]}, cv=2)
    assert search.fit(pd.DataFrame(ROWS), Y).best_params_


def test_processes_give_the_same_bits() -> None:
    kernel = Field("name", pairwise(shared)) + Field("colour", pairwise(shared))
    fits = [KreinRidgeClassifier(kernel, n_jobs=n, random_state=0).fit(ROWS, Y) for n in (1, 2)]
    assert fits[1].kernel_.jobs == 2
    f, g = (fit.decision_function(NEW) for fit in fits)
    assert_array_equal(f, g)


def test_threads_and_a_store_give_the_same_bits(tmp_path: Path) -> None:
    model = KreinRidgeClassifier(together(), landmarks=12, random_state=0)
    expected = clone(model).fit(ROWS, Y).decision_function(NEW)
    stored = clone(model).set_params(n_jobs=2, resources=Resources(store=tmp_path / "values"))
    for _ in range(2):
        assert_array_equal(stored.fit(ROWS, Y).decision_function(NEW), expected)


def test_remembered_values_belong_to_the_field() -> None:
    rows = [{"a": x, "b": x[::-1] + "z"} for x in column("name")]
    kernel = Field("a", "levenshtein") + Field("b", "levenshtein")
    expected = fitted(clone(kernel), rows)(rows)
    with remembering():
        assert_array_equal(fitted(kernel, rows)(rows), expected)
        assert_array_equal(kernel(rows), expected)


def test_model_files(tmp_path: Path) -> None:
    for kernel in (together(), Field("colour", Gower()), Field("history", DTW(window=0.3))):
        model = KreinClassifier(kernel, random_state=0).fit(pd.DataFrame(ROWS), Y)
        save(model, tmp_path / "model.krein")
        read = load(tmp_path / "model.krein")
        assert_array_equal(read.predict_proba(NEW), model.predict_proba(NEW))
        assert [one.numeric_ for one in fields_in(read.kernel_)] == [
            one.numeric_ for one in fields_in(model.kernel_)
        ]
        (tmp_path / "model.krein").unlink()
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict(NEW), model.predict(NEW))


# Files


def written(folder: Path, kind: str, rows: list[Any], y: Any) -> Path:
    path = folder / f"people.{kind}"
    labelled = [{**row, "label": int(label)} for row, label in zip(rows, y, strict=True)]
    if kind == "parquet":
        pq.write_table(pa.Table.from_pylist(labelled), path)
    elif kind == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in labelled))
    else:
        lists = [
            {k: json.dumps(v) if isinstance(v, list) else v for k, v in row.items()}
            for row in labelled
        ]
        pd.DataFrame(lists).to_csv(path, index=False)
    return path


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_files(kind: str, tmp_path: Path) -> None:
    path = written(tmp_path, kind, ROWS, Y)
    kernel = together() + Field("place", "gaussian")
    model = KreinRidgeClassifier(kernel, random_state=0).fit(path, "label")
    expected = KreinRidgeClassifier(kernel, random_state=0).fit(ROWS, Y)
    for X in (path, str(path), table(path), ROWS):
        assert_array_equal(model.decision_function(X), expected.decision_function(ROWS))
    with pytest.raises(ValueError, match=r"no column 'agee' \(did you mean 'age'\?\) in .*columns"):
        KreinRidge(Field("agee", "gaussian")).fit(path, "label")
    with pytest.raises(ValueError, match=r"there is no field 0 in .*, whose columns go by name"):
        KreinRidge(Field(0, "gaussian")).fit(path, "label")
    with pytest.raises(ValueError, match="there is no column 'age'"):
        KreinRidge(Field("age", "gaussian")).fit(table(path, ["id", "name"]), "label")


def test_texts_of_a_csv_file_that_look_like_numbers(tmp_path: Path) -> None:
    path = tmp_path / "codes.csv"
    path.write_text("code,size\n" + "".join(f"{i:05d},{i / 7}\n" for i in range(20)))
    codes = [f"{i:05d}" for i in range(20)]
    kernel = Field("code", "levenshtein")
    model = KreinRidge(kernel, random_state=0).fit(path, np.arange(20.0))
    assert [row["code"] for row in model.landmarks_] == codes
    alone = KreinRidge("levenshtein", random_state=0).fit(codes, np.arange(20.0))
    assert_array_equal(model.predict(path), alone.predict(codes))
    numbers = KreinRidge(Field("code", "gaussian"), random_state=0).fit(path, np.arange(20.0))
    assert [row["code"] for row in numbers.landmarks_] == [float(i) for i in range(20)]


def test_lists_of_a_csv_file(tmp_path: Path) -> None:
    path, good = tmp_path / "series.csv", '"[1, 2.5]",0\n" [3] ",1\n' * 10
    for bad in ("[1, 2, [3]", "[1, 2", "1;2"):
        path.write_text(f's,y\n{good}"{bad}",0\n')
        expected = (
            rf"row 20, column 's' of .* \(line 22\) is '{re.escape(bad)}', and others in this"
        )
        with pytest.raises(ValueError, match=expected):
            KreinRidge(Field("s", "dtw")).fit(path, "y")
    path.write_text(f"s,y\n{good},0\n")
    model = KreinRidge(Field("s", "dtw"), random_state=0).fit(path, "y")
    assert [row["s"] for row in model.landmarks_] == [*[[1, 2.5], [3]] * 10, None]


def test_a_missing_cell_of_a_file(tmp_path: Path) -> None:
    rows = [dict(row) for row in ROWS]
    rows[4]["age"] = rows[9]["age"] = None
    for kind in ("csv", "jsonl", "parquet"):
        path = written(tmp_path, kind, rows, Y)
        model = KreinRidge(together(), random_state=0).fit(path, "label")
        expected = KreinRidge(together(), random_state=0).fit(rows, Y)
        assert_array_equal(model.predict(path), expected.predict(rows))


def test_blocks_of_records_and_arrays_on_disk(tmp_path: Path) -> None:
    target = np.array(column("age"))
    for kernel in (Field("name", "jaro"), similarity_of("gower") + Field("age", "gaussian")):
        rows = [{"name": row["name"], "age": row["age"]} for row in ROWS]
        model = KreinRidge(kernel, random_state=0)
        expected = model.fit(rows, target).predict(rows)
        blocks = Blocks([rows[:20], rows[20:]])
        assert_array_equal(model.fit(blocks, target).predict(blocks), expected)
    X = np.random.default_rng(0).normal(size=(N, 3))
    np.save(tmp_path / "X.npy", X)
    model = KreinRidge(Field(1, "gaussian"), random_state=0)
    expected = model.fit(X, target).predict(X)
    assert_array_equal(model.fit(tmp_path / "X.npy", target).predict(X), expected)


def test_a_part_of_the_rows_at_a_time() -> None:
    target = np.array(column("age"))
    fixed = {"lambda_plus": 0.01, "lambda_minus": 0.01, "landmarks": 10, "random_state": 0}
    model = KreinRidge(Field("age", Gaussian(width=50.0)), **fixed)
    model.partial_fit(ROWS[:20], target[:20]).partial_fit(pd.DataFrame(ROWS[20:]), target[20:])
    assert model.score(ROWS, target) > 0.9


# A dict in place of a kernel


@pytest.mark.parametrize("front", [KreinClassifier, KreinRegressor])
def test_a_dict_means_columns(front: Any, tmp_path: Path) -> None:
    model = front(FIELDS, random_state=0).fit(ROWS, Y)
    expected = front(columns(FIELDS), random_state=0).fit(ROWS, Y)
    assert model.kernel_weights_ == expected.kernel_weights_
    assert_array_equal(model.predict(NEW), expected.predict(NEW))
    save(model, tmp_path / "m.krein")
    again = load(tmp_path / "m.krein")
    assert again.kernel == FIELDS
    assert_array_equal(again.predict(NEW), model.predict(NEW))


@pytest.mark.parametrize("one", [KreinSVC, KreinRidgeClassifier, KreinRidge])
def test_a_dict_is_a_sum_where_one_kernel_is_taken(one: Any, tmp_path: Path) -> None:
    name, age = columns(fields := {"name": "jaro_winkler", "age": "gaussian"})
    model = one(fields, random_state=0).fit(ROWS, Y)
    expected = one(similarity_of(name) + age, random_state=0).fit(ROWS, Y)
    assert_array_equal(model.predict(NEW), expected.predict(NEW))
    save(model, tmp_path / "m.krein")
    assert_array_equal(load(tmp_path / "m.krein").predict(NEW), model.predict(NEW))
    assert isinstance(resolve({"name": "jaro_winkler"}), Field)


def test_a_dict_in_other_places() -> None:
    assert KreinNystroem(FIELDS, random_state=0).fit(ROWS).transform(NEW).shape[0] == 9
    assert inspect(ROWS, FIELDS).rows()
    assert evaluate(ROWS, Y, FIELDS, cv=2, random_state=0).best is not None
    for model in (KreinClassifier, KreinRidge):
        with pytest.raises(
            TypeError, match=r"columns takes a dict from names of fields .*got \{\}"
        ):
            model({}).fit(ROWS, Y)
    with pytest.raises(ValueError, match="belong to one kernel, and kernel is a dict; give"):
        KreinClassifier(FIELDS, kernel_params={"width": 1.0}).fit(ROWS, Y)


# Gaps and dates

GAPS: list[Any] = [{"x": 1.0}, {"x": 3}, {"x": None}, {"x": 7}, {"x": np.nan}, {"y": 2}]


def test_a_missing_value_is_at_the_mean_distance() -> None:
    kernel = fitted(Field("x", "manhattan"), GAPS)
    assert kernel.mean_ == 4.0  # of 2, 6 and 4
    D = np.array([
        [0, 2, 4, 6, 4, 4],
        [2, 0, 4, 4, 4, 4],
        [4, 4, 0, 4, 0, 0],
        [6, 4, 4, 0, 4, 4],
        [4, 4, 0, 4, 0, 0],
        [4, 4, 0, 4, 0, 0],
    ])  # fmt: skip
    assert_array_equal(kernel(GAPS), D)
    assert_array_equal(kernel.diagonal(GAPS), np.zeros(6))
    for rows in (range(6), [2], [0, 3], [4, 5]):
        for of in (range(6), [2], [0, 3], [4, 5]):
            A, B = ([GAPS[i] for i in places] for places in (rows, of))
            assert_array_equal(kernel(A, B), D[np.ix_(rows, of)])
            assert_array_equal(kernel.anew(A, B), D[np.ix_(rows, of)])


def test_a_missing_value_has_the_mean_similarity() -> None:
    kernel = fitted(Field("x", Gaussian(width=8.0)), GAPS)
    each = np.exp(-np.array([4.0, 36.0, 16.0]) / 8)
    assert_allclose(kernel.mean_, each.mean(), rtol=4 * EPS)
    K = kernel(GAPS)
    assert_array_equal(K[[2, 4, 5]], np.full((3, 6), kernel.mean_))
    assert_array_equal(kernel.diagonal(GAPS), [1, 1, kernel.mean_, 1, kernel.mean_, kernel.mean_])
    assert_array_equal(np.diagonal(K), kernel.diagonal(GAPS))
    assert_array_equal(K, K.T)


def test_the_mean_is_that_of_a_few_pairs() -> None:
    calls = []

    def far(a: float, b: float) -> float:
        calls.append((a, b))
        return abs(a - b)

    rows = [{"x": float(i)} for i in range(500)]
    kernel = fitted(Field("x", dissimilarity(pairwise(far))), rows)
    assert len(calls) <= 50 * 51 / 2
    assert_allclose(kernel.mean_, 500 / 3, rtol=0.05)
    assert fitted(Field("x", "manhattan"), [{"x": 5}, {"x": None}]).mean_ == 0.0


def with_gaps(rows: list[Any], *, left_out: bool = False) -> list[Any]:
    """Records of which every third field is missing."""
    gone = None if left_out else np.nan
    return [
        {k: gone if (i + j) % 3 == 0 else v for j, (k, v) in enumerate(row.items())}
        for i, row in enumerate(rows)
    ]


@pytest.mark.parametrize("model", [KreinClassifier, KreinRidgeClassifier, KreinSVC])
def test_gaps_in_fit_and_predict(model: Any, tmp_path: Path) -> None:
    rows, new = with_gaps(ROWS), with_gaps(NEW, left_out=True)
    one = model(together(), random_state=0)
    values = one.fit(rows, Y).decision_function(new)
    for form in (pd.DataFrame(new), [{k: v for k, v in row.items() if v} for row in new]):
        assert_array_equal(one.decision_function(form), values)
    save(one, tmp_path / "gaps.krein")
    assert_array_equal(load(tmp_path / "gaps.krein").decision_function(new), values)
    whole = model(together(), random_state=0).fit(ROWS, Y)  # no gaps in the fit
    assert whole.predict(rows).shape == (N,)


def test_gaps_in_every_field_of_a_list(tmp_path: Path) -> None:
    kernels = columns({**FIELDS, "colour": "gower", "place": "manhattan"})
    rows, new = with_gaps(ROWS), with_gaps(NEW)
    model = KreinClassifier(kernels, random_state=0).fit(rows, Y)
    assert model.score(rows, Y) > 0.8
    save(model, tmp_path / "gaps.krein")
    again = load(tmp_path / "gaps.krein")
    assert_array_equal(again.predict_proba(new), model.predict_proba(new))


DAYS = [0.0, 4.5, 10.0]
DATES = {
    "dates": [date(2024, 3, 1), datetime(2024, 3, 5, 12), date(2024, 3, 11)],
    "numpy": [np.datetime64(x) for x in ("2024-03-01", "2024-03-05T12", "2024-03-11")],
    "pandas": [pd.Timestamp(x) for x in ("2024-03-01", "2024-03-05 12:00", "2024-03-11")],
    "ISO": ["2024-03-01", "2024-03-05T12:00", "2024-03-11"],
    "day first": ["01.03.2024", "5.3.2024 12:00", "11.03.2024"],
}


@pytest.mark.parametrize("form", DATES)
def test_dates_are_days_for_kernels_on_vectors(form: str) -> None:
    rows = [{"when": x} for x in DATES[form]]
    kernel = fitted(Field("when", "manhattan"), rows)
    assert_array_equal(kernel(rows), np.abs(np.subtract.outer(DAYS, DAYS)))
    assert_array_equal(kernel([{"when": "2024-03-02"}], rows), [[1.0, 3.5, 9.0]])
    for X in (rows * 4, pd.DataFrame(rows * 4)):
        model = KreinRidge(Field("when", "gaussian"), random_state=0).fit(X, DAYS * 4)
        assert_allclose(model.predict(rows), DAYS, atol=0.2)


def test_kernels_on_texts_see_dates_as_texts() -> None:
    rows = [{"when": x} for x in DATES["ISO"]]
    assert fitted(Field("when", "levenshtein"), rows)(rows)[0, 2] == 1.0  # 01 and 11


# Errors


@pytest.mark.parametrize("name", ["age", "name", "history"])
def test_a_field_that_is_missing_everywhere(name: str) -> None:
    rows: list[Any] = [{**row, name: None} for row in ROWS]
    field = Field(name, FIELDS[name])
    expected = f"field '{name}' is missing in all 36 rows .*; leave the field out, or fill it in"
    for X in (rows, pd.DataFrame(rows)):
        with pytest.raises(ValueError, match=expected):
            KreinRidgeClassifier(field).fit(X, Y)
    model = KreinRidgeClassifier(field, random_state=0).fit(ROWS, Y)
    assert len(np.unique(model.decision_function(rows), axis=0)) == 1


def test_a_function_beside_a_field_sees_whole_records() -> None:
    kernel = pairwise(lambda a, b: float(a["colour"] == b["colour"])) + Field("age", "gaussian")
    model = KreinRidgeClassifier(kernel, random_state=0).fit(pd.DataFrame(ROWS), Y)
    assert set(model.landmarks_[0]) == set(ROWS[0])


def test_objects_that_are_no_records() -> None:
    for X in (column("name"), column("age"), [None] * N):
        with pytest.raises(ValueError, match=r"row 0 \(of 36\) is .*; a record is a dict"):
            KreinRidgeClassifier(Field("age", "gaussian")).fit(X, Y)


def test_values_that_the_kernel_does_not_take() -> None:
    rows = [dict(row) for row in ROWS]
    for name, bad, inner, message in (
        ("age", "old", "gaussian", "is str 'old'; this kernel takes a number, or a vector"),
        ("age", np.inf, "gaussian", "is inf; numbers must be finite"),
        ("age", [], "gaussian", r"is list \[\]; this kernel takes a number, or a vector"),
        ("age", [[1.0], [2.0, 3.0]], "gaussian", "is list .*; this kernel takes a number"),
        ("place", [1.0, 2.0, 3.0], "gaussian", "is a vector of 3 numbers, the first has 2"),
        ("place", [1.0, np.nan], "gaussian", r"is \[1.0, nan\]; numbers must be finite"),
        ("name", 5, "levenshtein", "is int 5; allowed are str"),
        ("history", "up", "dtw", "is str 'up'; a time series is"),
    ):
        rows[21] = {**ROWS[21], name: bad}
        expected = rf"(?s)object 21 \(of 36\) {message}.*in the field '{name}' of the records"
        with pytest.raises(ValueError, match=expected):
            fitted(Field(name, inner), rows)
        with pytest.raises(ValueError, match=expected):
            KreinRidgeClassifier(Field(name, inner)).fit(rows, Y)
        if inner == "gaussian":
            with pytest.raises(ValueError, match=expected):
                KreinRidgeClassifier(Field(name, inner), random_state=0).fit(ROWS, Y).predict(rows)


def test_numbers_that_are_categories() -> None:
    frame = pd.DataFrame({"code": pd.Categorical([1, 2, 3] * 12)})
    with pytest.raises(ValueError, match=r"(?s)is Category 1; this kernel takes .* \"gower\""):
        KreinRidgeClassifier(Field("code", "gaussian")).fit(frame, Y)
    KreinRidgeClassifier(Field("code", "gower"), random_state=0).fit(frame, Y)
    kernel = Field("code", pairwise(lambda a, b: -abs(a - b)))
    KreinRidgeClassifier(kernel, random_state=0).fit(frame, Y)


def test_an_asymmetric_function_of_a_field_is_noticed() -> None:
    kernel = Field("age", pairwise(lambda a, b: a - 2 * b))
    with pytest.warns(UserWarning, match="symmetric"):
        KreinRidge(kernel, random_state=0).fit(ROWS, np.arange(N))


def test_a_dask_collection_is_refused() -> None:
    dd = pytest.importorskip("dask.dataframe")
    frame = dd.from_pandas(pd.DataFrame(ROWS)[["name", "age"]], npartitions=2)
    with pytest.raises(TypeError, match="takes no dask collection"):
        KreinRidge(Field("age", "gaussian")).fit(frame, np.arange(N))
