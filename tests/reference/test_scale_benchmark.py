"""benchmarks.scale at small size: what it measures, by another route, and what the page says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from benchmarks import (
    requests,
    scale,
    scale_dask,
    scale_fit,
    scale_parts,
    scale_report,
    scale_sets,
)
from benchmarks.timing import Row
from kreinlearn.kernels import DeltaGauss
from reproduction.tasks import Journal, Outcome
from tests.systems import linux_only, posix_only

N, M, TEST = 20_000, 50, 5_000
ONLY = f"fit/synthetic/{N}/m={M}/KreinSVC"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("scale") / "synthetic"
    scale_sets.write("synthetic", N, TEST, path)
    return path


@pytest.fixture(scope="module")
def fits(folder: Path) -> dict[str, Any]:
    return {name: scale_fit.measured(folder, "synthetic", M, name) for name in scale_fit.LEARNERS}


# The set


def test_the_signal_is_that_of_its_definition() -> None:
    data = scale_sets.synthetic(3000)
    half = np.random.default_rng(5).standard_normal((8, 20)) / (1 + np.arange(20) / 2)
    f = np.zeros(3000)
    for sign, c in zip(np.tile([1.0, -1.0], 8), np.vstack([half, -half]), strict=True):
        d = ((data.X - c) ** 2).sum(axis=1)
        f += sign * (np.exp(-d / 4) - np.exp(-5 * d / 4))
    f = (f - np.median(f)) / f.std()
    np.testing.assert_allclose(data.best["numbers"], f, atol=1e-8)
    noise = data.targets["numbers"] - f
    assert 0.48 < noise.std() < 0.52
    assert np.array_equal(data.targets["labels"], data.targets["numbers"] > 0)


def test_parts_do_not_meet_and_baselines_are_those_of_scikit_learn(folder: Path) -> None:
    X, T = np.load(folder / "train.npy"), np.load(folder / "test.npy")
    assert (X.shape, T.shape) == ((N, 20), (TEST, 20))
    assert not set(X[:, 0]) & set(T[:, 0])
    y, t = (np.load(folder / f"{part}_numbers.npy") for part in ("train", "test"))
    about = json.loads((folder / "about.json").read_text("utf8"))["numbers"]
    assert about["constant"] == pytest.approx(np.sqrt(np.mean((t - y.mean()) ** 2)))
    residual = t - Ridge().fit(X, y).predict(T)
    assert about["linear"] == pytest.approx(np.sqrt(np.mean(residual**2)))
    labels = np.load(folder / "test_labels.npy")
    assert np.array_equal(labels, t > 0)


def test_columns_with_names_come_back_from_parquet(tmp_path: Path) -> None:
    X = np.random.default_rng(0).standard_normal((30, 2))
    scale_sets._write_rows(tmp_path / "train", X, ("a", "b"))
    found = scale_sets.rows_at(tmp_path, "train").numbers()
    np.testing.assert_array_equal(found[0:30], X)


@pytest.mark.parametrize(("name", "d"), [("parquet", 20), ("npy", 10)])
def test_a_set_in_pieces_is_its_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, d: int
) -> None:
    monkeypatch.setattr(scale_sets, "PIECE", 2000)
    scale_sets.write(name, 4500, 700, tmp_path)
    train, test = (scale_sets.rows_at(tmp_path, part) for part in ("train", "test"))
    X, T = (np.load(p) if name == "npy" else p.numbers()[0:5000] for p in (train, test))
    assert (X.shape, T.shape) == ((4500, d), (700, d))
    y, t = (np.load(tmp_path / f"{part}_numbers.npy") for part in ("train", "test"))
    half = np.random.default_rng(5).standard_normal((8, d)) / (1 + np.arange(d) / 2)
    f = np.zeros(5200)
    for sign, c in zip(np.tile([1.0, -1.0], 8), np.vstack([half, -half]), strict=True):
        distances = ((np.vstack([X, T]) - c) ** 2).sum(axis=1)
        f += sign * (np.exp(-distances / 4) - np.exp(-5 * distances / 4))
    f = (f - np.median(f[:2000])) / f[:2000].std()  # of the first piece
    noise = np.append(y, t) - f
    assert 0.47 < noise.std() < 0.53
    assert len(set(X[:, 0]) | set(T[:, 0])) == 5200  # no piece comes twice
    assert np.array_equal(np.load(tmp_path / "train_labels.npy"), y > 0)
    about = json.loads((tmp_path / "about.json").read_text("utf8"))
    residual = t - Ridge().fit(X[:2000], y[:2000]).predict(T)
    assert about["numbers"]["linear"] == pytest.approx(np.sqrt(np.mean(residual**2)))
    assert (about["n"], about["d"]) == (4500, d)


# One fit


@linux_only
def test_a_fit_learns_what_a_linear_model_cannot(fits: dict[str, Any]) -> None:
    for one in fits.values():
        assert one["best"] < one["error"] < 0.6 * one["linear"]
        assert (one["n"], one["d"], one["m"], one["n_test"]) == (N, 20, M, TEST)
        assert one["cpu"] > 0
        assert 0 <= one["system"] <= one["cpu"] + 0.02  # which is counted in hundredths
        assert one["bound"] > 0
    assert fits["KreinSVC"]["passes"] > 1


@linux_only
def test_kernel_values_are_counted_once(fits: dict[str, Any]) -> None:
    for one in fits.values():  # of pairs among landmarks one half
        assert 0.99 <= one["evaluated"] < 1.1
    kernel = scale_fit.CountedDeltaGauss(width=3.0).fit(np.eye(3), np.random.default_rng(0))
    before = kernel.tally.values
    X = np.random.default_rng(0).standard_normal((40, 3))
    plain = DeltaGauss(width=3.0).fit(np.eye(3), np.random.default_rng(0))
    np.testing.assert_array_equal(kernel.columns(X[:7])(X), plain.columns(X[:7])(X))
    assert kernel.tally.values - before == 40 * 7


# The run and its page


@linux_only
def test_a_run_writes_journal_page_and_drawing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal, page = tmp_path / "scale.jsonl", tmp_path / "scale.md"
    words = ["--quick", "--only", ONLY, "--journal", str(journal), "--write", str(page)]
    scale.main(words)
    before = journal.read_bytes()
    scale.main([*words, "--report-only"])
    assert journal.read_bytes() == before
    versions = scale.versions()
    ((key, one),) = Journal(journal, versions).outcomes.items()
    assert key == ONLY
    assert one.cpu > one.rows[0]["cpu"]  # its process did more than the fit
    assert f"before the first measurement: {one.load:.2f}." in page.read_text("utf8")
    cells = " | ".join(scale_report.cells(one.rows[0]))
    assert f"| {cells} |" in page.read_text("utf8")
    assert f"Not measured yet: fit/synthetic/5000/m={M}/KreinRidge, " in page.read_text("utf8")
    root = ElementTree.fromstring(page.with_suffix(".svg").read_text("utf8"))
    drawn = " ".join(root.itertext())
    assert "bare bound" in drawn
    assert "memory budget" in drawn
    left: list[bool] = []
    monkeypatch.setattr(
        scale,
        "run",
        lambda journal, wanted, *more: left.extend(c.key in journal.outcomes for c in wanted),
    )
    scale.main(words)
    scale.main([*words, "--again"])
    assert left == [True, False]


def test_cases_are_those_asked_for_and_missing_sets_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scale.main(["--list"])
    keys = capsys.readouterr().out.split("\n")
    fitted = {"/".join(key.split("/")[1:3]) for key in keys if key.startswith("fit/")}
    sizes = {f"synthetic/{n}" for n in (10**5, 3 * 10**5, 10**6, 3 * 10**6)}
    pieces = {"parquet/10000000", "npy/2500000", "npy/25000000"}
    assert fitted == sizes | pieces | {"covertype/all", "flights3m/all"}
    assert "fit/parquet/10000000/m=500/KreinSVC/dask" in keys
    assert sum(key.startswith("part/") for key in keys) == len(scale_parts.PARTS)
    monkeypatch.delenv("KREINLEARN_DATA", raising=False)
    there, missing = scale.available(scale.cases(quick=False))
    assert not any("covertype" in case.key or "flights3m" in case.key for case in there)
    assert [text.split()[0] for text in missing] == ["covertype", "flights3m"]


def found(**more: Any) -> dict[str, Any]:
    return {"set": "synthetic", "n": 10**5, "m": 500, "learner": "KreinRidge", "cpu": 2.0,
            "peak": 50.0, "error": 0.1, "linear": 0.3, "constant": 0.5, **more}  # fmt: skip


def test_the_checks_of_fits() -> None:
    good = [found(), found(n=10**6, cpu=20.0, peak=120.0), found(n=3 * 10**6, cpu=61.0, peak=300.0)]
    growth, flat, fewer = scale_report.checks(good, True)
    assert (growth.found, growth.holds, flat.holds, fewer.holds) == ("10.00 x", True, True, True)
    bad = [found(), found(n=10**6, cpu=21.2, peak=150.0, error=0.4)]
    assert [check.holds for check in scale_report.checks(bad, True)] == [False, False, False]
    assert [check.holds for check in scale_report.checks(bad, False)][:2] == [None, None]
    peaks = (900.0, 10**5), (2001.0, 10**6)
    machine = [found(learner="KreinSVC", cpu=6.2, bound=2.0, peak=p, n=n) for p, n in peaks]
    _, memory, over, _ = scale_report.checks(machine, True)
    assert (memory.found, memory.holds) == ("2001 MB", False)
    assert over[1:] == ("3.10 x", "<= 3", False)


def test_the_limits_of_tens_of_millions_of_rows() -> None:
    few = found(set="npy", n=2_500_000, m=30, cpu=2.0, bound=1.0)
    many = found(set="npy", n=25_000_000, m=30, cpu=21.5, bound=10.0, peak=300.0)
    growth, flat, over, _ = scale_report.checks([few, many], True)
    assert (
        growth.what == "growth of the fit, 2.5e+06 to 2.5e+07 rows: KreinRidge, m = 30, from .npy"
    )
    assert (growth.found, growth.holds, flat.holds) == ("10.75 x", False, True)
    assert over[1:] == ("2.15 x", "<= 2", False)
    case = {"set": "parquet", "n": 10**7, "learner": "KreinRidgeClassifier"}
    fits = [found(**case, wall=119.0, peak=501.0), found(**case, where="Dask", wall=500.0)]
    memory, wall, _ = scale_report.checks(fits, True)
    assert (memory.found, memory.holds, wall.found, wall.holds) == ("501 MB", False, "119 s", True)


@linux_only
def test_a_fit_on_dask_is_that_of_this_process(tmp_path: Path) -> None:
    pytest.importorskip("dask.dataframe")
    pytest.importorskip("distributed")
    scale_sets.write("parquet", 9000, 1000, tmp_path)
    fits = [
        scale_fit.measured(tmp_path, "parquet", 20, "KreinRidgeClassifier", where)
        for where in (scale_fit.HERE, scale_fit.DASK)
    ]
    assert fits[0]["error"] == fits[1]["error"] < fits[0]["linear"]
    assert fits[0]["lambda_plus"] == pytest.approx(fits[1]["lambda_plus"], rel=1e-6)
    assert fits[1]["cpu"] > 0
    assert "Dask" in scale_report.cells(fits[1])


@linux_only
def test_sets_stay_in_a_folder_that_is_given(tmp_path: Path) -> None:
    made, journal = tmp_path / "sets", tmp_path / "scale.jsonl"
    words = ["--quick", "--journal", str(journal), "--folder", str(made)]
    scale.main([*words, "--only", "fit/npy/5000/*"])
    (about,) = made.glob("*/about.json")
    written = about.stat().st_mtime_ns
    scale.main([*words, "--only", "fit/npy/5000/*", "--again"])
    assert about.stat().st_mtime_ns == written


def test_what_is_missed_has_a_reason() -> None:
    machine = {"set": "synthetic", "learner": "KreinSVC", "m": 500}
    slow = [found(**machine), found(**machine, n=10**6, cpu=30.0, bound=20.0)]
    (reason,) = scale_report.reasons(list(scale_report.checks(slow, True)))
    assert reason.startswith("Missed: growth of the fit, 1e+05 to 1e+06 rows: KreinSVC, m = 500.")
    assert not list(scale_report.reasons(list(scale_report.checks(slow, False))))


def test_a_machine_that_was_not_quiet_is_named() -> None:
    assert not list(scale_report.disturbed([found(load=2.5, workers=2)]))
    fits = [found(load=2.5, workers=2), found(load=7.0, workers=2)]
    (words,) = scale_report.disturbed(fits)
    assert "from 2.5 to 7.0" in words


def test_the_page_tells_how_busy_the_machine_was_before() -> None:
    one = Outcome("part/full/x", [], 1.0, 1.0)
    assert scale_report.load_before(one._replace(load=0.123)).endswith(": 0.12.")
    assert "not known" in scale_report.load_before(one)


def test_rows_with_a_target_are_checks() -> None:
    row = Row("fit", "1.2 x", "<= 1.15", False, "noted")
    assert scale_report.check(row, True) == ("fit", "1.2 x; noted", "<= 1.15", False)
    assert scale_report.check(row, False).holds is None


@posix_only("a load average")
def test_parts_of_other_benchmarks_give_rows() -> None:
    sizes = scale_parts.QUICK._replace(n=5000)
    rows = scale_parts.measured("passes", sizes)
    judged = [row for row in rows if row["target"]]
    assert len(judged) == 3
    assert all("load " in row["note"] for row in judged)
    json.dumps(rows)  # as a process says them


def test_dask_and_this_process_get_the_same_rows() -> None:
    pytest.importorskip("dask")
    X, y = scale_dask.here(5000, 2048)
    assert X.shape == (5000, 20)
    assert scale_dask.sizes(5000, 2048) == [2048, 2048, 904]
    np.testing.assert_array_equal(X[2048:4096], scale_dask.block(1, 2048))
    np.testing.assert_array_equal(y[:2048], scale_dask.two_classes(X[:2048]))


# Requests for one object


class Counted:
    """A model that counts its requests."""

    def __init__(self) -> None:
        self.asked: list[object] = []

    def predict(self, one: object) -> None:
        self.asked.append(one)


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_threads_share_the_requests(threads: int) -> None:
    case = requests.Case("a count", Counted(), "x")
    case.ask_in_threads(threads)
    assert case.model.asked == ["x"] * requests.REQUESTS


def test_requests_for_one_object_have_their_limits() -> None:
    asked = requests.cases(20, 30)
    assert [asked[name].model.n_landmarks_ for name in requests.LIMITS] == [20, 30]
    rows = requests.one_object(1, 20, 30)
    limits = [(row.what, row.target) for row in rows if row.target.endswith("ms")]
    assert limits == [
        ("predict of one string, 20 landmarks", "<= 0.45 ms"),
        ("predict of one vector of 10, 30 landmarks", "<= 0.35 ms"),
    ]
    assert sum(row.target == ">= 1" for row in rows) == 2
