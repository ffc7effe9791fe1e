"""The learning benchmark at reduced size, and its statistics from their definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from benchmarks import learning, tables, verdicts
from benchmarks.learners import (
    NearestNeighbour,
    RawSVC,
    features,
    methods,
    two_lambdas,
)
from benchmarks.learning import cell_of
from benchmarks.learning_sets import learning_set
from benchmarks.verdicts import complete, difference
from kreinlearn.datasets import VARIABLE, make_balls3d
from reproduction.paired import ALL, Errors, Figure, errors_of
from reproduction.sets import LearningSet, centred_squares

METHODS = ["KreinRidge 100", "KreinRidge 100 one lambda", "1-NN", "SVC raw"]
QUICK = ["--quick", "--sets", "balls3d_fresh", "--methods", *METHODS]
RNG = np.random.default_rng(5)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("learning")
    table, figures = folder / "learning.md", folder / "figures.csv"
    found = learning.main([*QUICK, "--csv", str(figures), "--write", str(table)])
    return found, figures, table


def figure(method="a", fold=0, missed=0, n_test=10, **others):
    values = {
        "set": "s", "n": 100, "target": ALL, "method": method, "folds": 10, "seed": 0,
        "fold": fold, "n_train": 90, "n_test": n_test, "missed": missed, "wall": 1.0, "cpu": 2.0,
        "wrong": " ".join(map(str, range(missed))), "chosen": "", "failed": "",
    }  # fmt: skip
    return Figure(**(values | others))


def errors(values, one_split=False):
    units = tuple(range(len(values)))
    return Errors(units, np.asarray(values, dtype=float), 1 / 9, one_split, 0.0, 0.0)


# The whole command


def test_quick_run_measures_every_cell_and_tells_balls_apart(run):
    found, _, _ = run
    assert len(found) == len(METHODS) * learning.QUICK_FOLDS
    assert not any(f.failed for f in found)
    results = complete(found)["balls3d_fresh_small", "multiclass"]
    assert list(results) == METHODS
    # radii alone tell the classes apart: invisible to neighbours, plain in the negative part
    assert results["KreinRidge 100"].mean < 5 < 30 < results["1-NN"].mean


def test_nearest_neighbours_of_the_run_are_those_of_the_same_folds(run):
    data = learning_set("balls3d_fresh", "small", 0)
    for f in (f for f in run[0] if f.method == "1-NN"):
        split = list(data.splits(learning.QUICK_FOLDS, 0))[f.fold]
        nearest = [split.y_train[min(range(len(row)), key=row.__getitem__)] for row in split.M_test]
        assert [int(i) for i in f.wrong.split()] == np.flatnonzero(nearest != split.y_test).tolist()


def test_an_interrupted_run_goes_on_where_it_stopped(run, tmp_path, monkeypatch):
    found, written, _ = run
    part = tmp_path / "part.csv"
    part.write_text("\n".join(written.read_text().splitlines()[:8]) + "\n")  # header, 7 figures
    fitted = []
    measured = learning.measured
    monkeypatch.setattr(learning, "measured", lambda job: fitted.append(job) or measured(job))
    again = learning.main([*QUICK, "--csv", str(part), "--read", str(part)])
    assert len(fitted) == len(found) - 7
    assert {cell_of(f): f.wrong for f in again} == {cell_of(f): f.wrong for f in found}
    assert set(map(cell_of, learning.read([part], 3)[0])) == set(map(cell_of, found))


def test_a_page_of_figures_that_were_read_names_the_commits_that_measured_them(
    run, tmp_path, monkeypatch
):
    _, written, _ = run
    header, *lines = written.read_text("utf8").splitlines()
    start, page = tmp_path / "start.csv", tmp_path / "page.md"
    earlier = [f"{line.rpartition(',')[0]},1234567" for line in lines[:7]]
    start.write_text("\n".join([header, *earlier]) + "\n")
    monkeypatch.setattr(tables, "COMMIT", "2345678")
    learning.main([*QUICK, "--read", str(start), "--write", str(page)])
    assert "- commit: 1234567, 2345678" in page.read_text("utf8").splitlines()
    start.write_text("\n".join([header, *earlier, *lines[7:]]) + "\n")
    learning.main([*QUICK, "--report-only", "--read", str(start), "--write", str(page)])
    assert "2345678" not in page.read_text("utf8")


def test_a_file_of_figures_is_not_mixed_into_unread(run, capsys):
    with pytest.raises(SystemExit):
        learning.parsed([*QUICK, "--csv", str(run[1])])
    assert "--read" in capsys.readouterr().err


def test_tables_hold_errors_and_verdicts(run):
    text = run[2].read_text("utf8")
    one_nn = complete(run[0])["balls3d_fresh_small", "multiclass"]["1-NN"]
    row = f"| 1-NN | {one_nn.mean:.2f} | {one_nn.deviation:.2f} | {one_nn.standard_error:.2f} |"
    assert row in text
    assert "## Two lambdas: never significantly worse than one" in text
    assert "PASS" in text


def test_sets_that_are_not_there_are_named(monkeypatch, capsys):
    monkeypatch.delenv(VARIABLE, raising=False)
    learning.main([*QUICK[:3], "voting", "--methods", "1-NN", "--folds", "2"])
    assert "MISSING set voting" in capsys.readouterr().out


def test_a_method_that_fails_is_a_result(monkeypatch):
    monkeypatch.setattr(NearestNeighbour, "predict", lambda self, M: 1 / 0)
    found = learning.main([*QUICK[:3], "--methods", "1-NN"])
    assert {f.failed for f in found} == {"ZeroDivisionError: division by zero"}
    assert complete(found) == {}


# Sets and methods


def test_asymmetric_rows_are_averaged_before_they_are_split_and_folds_repeat():
    M = RNG.uniform(size=(30, 30))
    data = LearningSet("s", True, 0.5 * (M + M.T), np.repeat([0, 1, 2], 10))
    first, again = (list(data.splits(5, 3)) for _ in range(2))
    assert all(np.array_equal(a.M_test, b.M_test) for a, b in zip(first, again, strict=True))
    for split in first:
        assert np.array_equal(split.M_train, split.M_train.T)
        assert split.M_test.shape == (6, 24)
        assert np.bincount(split.y_test).tolist() == [2, 2, 2]


def test_centred_squares_are_inner_products_with_the_training_mean_as_origin():
    X, A = RNG.normal(size=(12, 3)), RNG.normal(size=(4, 3))

    def distances(P, Q):
        return np.sqrt(((P[:, None] - Q[None]) ** 2).sum(axis=2))

    K = centred_squares(distances(X, X), distances(A, X))[1]
    np.testing.assert_allclose(K, (A - X.mean(axis=0)) @ (X - X.mean(axis=0)).T, atol=1e-12)


def test_raw_svc_looks_for_its_constant_in_units_of_the_matrix():
    D, y = make_balls3d((20, 20), radii=(1.0, 9.0), random_state=0)
    models = [RawSVC(True, 0).fit(c * D, y) for c in (1.0, 1e3)]
    assert models[0].relative_C_ == models[1].relative_C_
    assert np.array_equal(models[0].predict(D), models[1].predict(1e3 * D))


def test_similar_objects_are_near():
    K = np.array([[0.1, 0.9], [0.8, 0.2]])
    assert NearestNeighbour(False).fit(K, np.array([0, 1])).predict(K).tolist() == [1, 0]
    assert NearestNeighbour(True).fit(K, np.array([0, 1])).predict(K).tolist() == [0, 1]


def test_names_of_comparisons_are_names_of_methods():
    for m in (100, 30):
        pairs = [*two_lambdas(m), *features(m)]
        assert {name for pair in pairs for name in (pair.a, pair.b)} <= set(methods(m))


# Statistics


def test_errors_are_means_over_folds_and_deviations_have_divisor_j_less_one():
    missed = [0, 1, 2, 5]
    found = errors_of([figure(fold=i, missed=k, n_test=10 + i) for i, k in enumerate(missed)])
    rates = [0.0, 100 / 11, 200 / 12, 500 / 13]
    mean = sum(rates) / 4
    deviation = math.sqrt(sum((r - mean) ** 2 for r in rates) / 3)
    assert found.mean == pytest.approx(mean)
    assert found.deviation == pytest.approx(deviation)
    assert found.standard_error == pytest.approx(deviation / 2)


def test_one_against_the_rest_is_the_mean_over_classes_in_each_fold():
    figures = [figure(target=c, fold=f, missed=m) for c, f, m in [("1", 0, 1), ("2", 0, 3)]]
    figures += [figure(target=c, fold=1, missed=5) for c in ("1", "2")]
    (key,) = (results := complete(figures))
    assert key == ("s", "one against the rest")
    assert results[key]["a"].values.tolist() == [20.0, 50.0]


def test_one_split_is_judged_object_by_object():
    a, b = (errors_of([figure(folds=1, missed=k, n_test=50)]) for k in (20, 10))
    assert (a.mean, b.mean) == (40.0, 20.0)
    assert a.standard_error == pytest.approx(100 * math.sqrt(0.4 * 0.6 / 49))
    found = difference(a, b)  # ten objects that a alone gets wrong
    assert found.standard_error == pytest.approx(100 * math.sqrt(0.2 * 0.8 / 49))
    assert math.isnan(found.p_corrected)


def test_differences_are_tested_by_students_t_and_with_a_larger_variance():
    x, y = RNG.uniform(0, 20, 10), RNG.uniform(0, 20, 10)
    found = difference(errors(x), errors(y))
    plain = stats.ttest_rel(x, y, alternative="greater")
    assert found.p == pytest.approx(plain.pvalue)
    assert found.mean == pytest.approx(np.mean(x - y))
    t = plain.statistic * math.sqrt((1 / 10) / (1 / 10 + 1 / 9))
    assert found.p_corrected == pytest.approx(1 - stats.t.cdf(t, 9))
    assert difference(errors(y), errors(x)).p == pytest.approx(found.p_better)


@pytest.mark.parametrize(("shift", "p"), [(0.0, 0.5), (1.0, 0.0), (-1.0, 1.0)])
def test_differences_without_any_spread(shift, p):
    found = difference(errors(np.arange(10) + shift), errors(np.arange(10)))
    assert (found.mean, found.standard_error, found.p, found.p_corrected) == (shift, 0, p, p)


def test_only_equal_folds_are_compared():
    with pytest.raises(ValueError, match="same folds"):
        difference(errors([1, 2, 3]), errors([1, 2]))
    figures = [figure("a", fold=i) for i in range(10)] + [figure("b", fold=i) for i in range(9)]
    assert list(complete(figures)["s", "multiclass"]) == ["a"]


def results_of(**means):
    """Errors whose paired differences spread by 3, so that their standard error is 1."""
    waves = {"KreinRidge auto": 3 * np.array([1, -1] * 5)}
    values = {k.replace("_", " "): v + np.zeros(10) for k, v in means.items()}
    return {("s", "multiclass"): {k: errors(v + waves.get(k, 0.0)) for k, v in values.items()}}


@pytest.mark.parametrize(("gap", "within"), [(0.9, True), (1.1, False)])
def test_within_one_standard_error_by_the_paired_difference(gap, within):
    results = results_of(KreinRidge_auto=10 + gap, other=10.0)
    (found,) = verdicts.gaps(results, ["KreinRidge auto"], ["KreinRidge auto", "other"])
    assert found.best == "other"
    assert found.found.standard_error == pytest.approx(1.0)
    assert found.within_paired == within
    assert not found.within_own  # the best has no spread


def test_a_miss_is_printed_as_missed():
    spread = RNG.normal(size=10)
    by_method = {
        "KreinRidge 100": errors(20 + spread),
        "KreinRidge 100 one lambda": errors(10 - spread),
        "1-NN": errors(5 + spread),
    }
    table = verdicts.check_table({("protein", "multiclass"): by_method}, methods(), 100)
    rows = {row[0]: row for row in table.rows}
    for what, row in rows.items():
        assert row[3] == "MISS", what
    assert sum(note.startswith("- MISS, ") for note in table.notes) == len(table.rows)
    assert rows["protein: error % of our best at 100 landmarks"][1:3] == [
        f"{20 + spread.mean():.2f}",
        "0",
    ]
