"""The demonstration at reduced size: what it prints against numpy, what it writes, how it ends."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import struct
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.svm import SVC

from kreinlearn import (
    KreinClassifier,
    KreinNystroem,
    KreinRidgeClassifier,
    KreinSVC,
    Landmarks,
    SpectrumSVC,
)
from kreinlearn.datasets import make_polygons
from reproduction import demo
from reproduction.__main__ import main
from tests.oracles import double_centred, indefiniteness_by_trace
from tests.systems import hearing, posix_only

N, SEED = 60, 3
RANKS = (5, 10, 25)  # 50 and 100 would need more landmarks than there are polygons


Folds = list[tuple[np.ndarray, np.ndarray]]


class Run(NamedTuple):
    status: int
    lines: list[str]
    folder: Path

    def cells(self, *starts: str) -> list[str]:
        """The cells of the one table row whose first cells are these."""
        rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in self.lines]
        (row,) = [row for row in rows if row[: len(starts)] == list(starts)]
        return row[len(starts) :]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("demo")
    printed = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(printed):
        status = main(["demo", "--n", str(N), "--seed", str(SEED)])
    return Run(status, printed.getvalue().splitlines(), folder)


@pytest.fixture(scope="module")
def similarity(distances: np.ndarray) -> np.ndarray:
    """Squared and centred distances."""
    return double_centred(distances)


@pytest.fixture(scope="module")
def distances() -> np.ndarray:
    """The Hausdorff distances pair by pair from their definition."""
    X, _ = make_polygons(N, random_state=SEED)

    def distance(a: np.ndarray, b: np.ndarray) -> float:
        table = np.linalg.norm(a[:, None] - b[None], axis=2)
        return float(max(table.min(axis=0).max(), table.min(axis=1).max()))

    return np.array([[distance(a, b) for b in X] for a in X])


def best_error(K: np.ndarray, k: int) -> float:
    """The distance to the nearest matrix of rank k, by its singular value decomposition."""
    U, sigma, Vt = np.linalg.svd(K)
    return float(np.linalg.norm(K - (U[:, :k] * sigma[:k]) @ Vt[:k]))


def test_it_ends_well_and_says_where_the_picture_is(run: Run) -> None:
    assert run.status == 0
    assert run.lines[-1] == f"picture: {run.folder / 'demo.png'}"
    assert [path.name for path in run.folder.iterdir()] == ["demo.png"]


def test_the_picture_is_a_png_of_the_size_asked_for(run: Run) -> None:
    picture = (run.folder / "demo.png").read_bytes()
    assert picture[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", picture[16:24]) == (1725, 1260)
    assert len(picture) > 60_000  # four empty pairs of axes have less


def test_the_inspection_agrees_with_numpy(run: Run, similarity: np.ndarray) -> None:
    text = "\n".join(line.rstrip() for line in run.lines)
    eigenvalues = np.linalg.eigvalsh(similarity)
    cut = 1e-12 * np.abs(eigenvalues).max()
    signs = f"{np.sum(eigenvalues > cut)} positive, {np.sum(eigenvalues < -cut)} negative"
    assert run.cells("classes") == ["30 with 5 sides, 30 with 7 sides"]
    assert signs in text
    assert f"{100 * indefiniteness_by_trace(similarity):.1f} % of {N}" in text
    assert run.cells("triangle inequality broken") == ["0 % of triples"]  # it is a metric


def test_the_smallest_errors_agree_with_numpy(run: Run, similarity: np.ndarray) -> None:
    norm = np.linalg.norm(similarity)
    expected = [f"{best_error(similarity, k) / norm:.1%}" for k in RANKS]
    assert run.cells("smallest error", "") == [*expected, ""]


@pytest.mark.parametrize("scheme", [("greedy_kmeans++", "ls"), ("leverage", "plain")])
def test_the_ratios_agree_with_numpy(
    run: Run, similarity: np.ndarray, scheme: tuple[str, str]
) -> None:
    X, _ = make_polygons(N, random_state=SEED)
    J = np.eye(N) - 1 / N

    def ratio(k: int, seed: int) -> float:
        landmarks = Landmarks(2 * k, *scheme)
        model = KreinNystroem("hausdorff", landmarks=landmarks, rank=k, random_state=seed).fit(X)
        Phi = J @ model.transform(X)
        K = sum(s * np.outer(phi, phi) for s, phi in zip(model.signature_, Phi.T, strict=True))
        return float(np.sqrt(np.sum((similarity - K) ** 2))) / best_error(similarity, k)

    ratios = np.array([[ratio(k, SEED + r) for r in range(3)] for k in RANKS])
    printed = [float(cell.replace(",", "")) for cell in run.cells(*scheme)]
    expected = [*np.median(ratios, axis=1), ratios.max()]
    np.testing.assert_allclose(printed, expected, rtol=0.005)  # printed to three figures


def test_every_scheme_for_objects_has_a_row_and_none_beats_the_optimum(run: Run) -> None:
    for landmarks in ("uniform", "leverage", "kmeans++", "greedy_kmeans++"):
        cells = run.cells(landmarks, "ls")
        assert len(cells) == len(RANKS) + 1
        assert all(float(cell.replace(",", "")) >= 1 for cell in cells)


# Learning. The folds are made here again; scikit-learn's loop, or numpy, counts the errors.


def printed(errors: np.ndarray) -> list[str]:
    """The mean and its standard error in %, as a row has them."""
    percent = 100 * np.asarray(errors)
    return [f"{percent.mean():.1f}", f"{np.std(percent, ddof=1) / np.sqrt(len(percent)):.1f}"]


@pytest.fixture(scope="module")
def folds() -> Folds:
    _, y = make_polygons(N, random_state=SEED)
    return list(StratifiedKFold(5, shuffle=True, random_state=SEED).split(np.zeros(N), y))


@pytest.mark.parametrize(
    ("method", "learner"), [("KreinRidge", KreinRidgeClassifier), ("KreinSVC", KreinSVC)]
)
def test_the_errors_agree_with_cross_val_score(
    run: Run, folds: Folds, method: str, learner: type
) -> None:
    X, y = make_polygons(N, random_state=SEED)
    model = learner("hausdorff", landmarks=15, random_state=SEED)
    errors = 1 - cross_val_score(model, X, y, cv=folds)
    assert run.cells(method)[:3] == ["15", *printed(errors)]


@pytest.mark.parametrize("spectrum", ["flip", "clip"])
def test_a_matrix_of_distances_gives_the_same_errors_as_the_polygons(
    run: Run, distances: np.ndarray, folds: Folds, spectrum: str
) -> None:
    _, y = make_polygons(N, random_state=SEED)
    model = SpectrumSVC("precomputed_dissimilarity", spectrum=spectrum, random_state=SEED)
    errors = 1 - cross_val_score(model, distances, y, cv=folds)
    cells = run.cells(f"SpectrumSVC {spectrum}")
    assert [*cells[:3], *cells[4:]] == ["48", *printed(errors), "squared", "", ""]


def test_the_errors_of_the_nearest_neighbour_agree_with_numpy(
    run: Run, distances: np.ndarray, folds: Folds
) -> None:
    _, y = make_polygons(N, random_state=SEED)
    errors = []
    for train, test in folds:
        nearest = [min(train, key=lambda j, i=i: distances[i, j]) for i in test]
        errors.append(np.mean(y[nearest] != y[test]))
    assert run.cells("1-NN")[:3] == ["48", *printed(np.array(errors))]


def test_the_errors_of_the_raw_machine_agree_with_scikit_learn(
    run: Run, distances: np.ndarray, folds: Folds
) -> None:
    _, y = make_polygons(N, random_state=SEED)
    errors = []
    for train, test in folds:
        D = distances[np.ix_(train, train)]
        K, J = double_centred(D), np.eye(len(train)) - 1 / len(train)
        K_test = -0.5 * (distances[np.ix_(test, train)] ** 2 - np.mean(D**2, axis=0)) @ J
        C = np.logspace(-2, 4, 7) / np.abs(np.diagonal(K)).mean()
        means = [cross_val_score(SVC(C=c, kernel="precomputed"), K, y[train]).mean() for c in C]
        machine = SVC(C=C[np.argmax(means)], kernel="precomputed").fit(K, y[train])
        errors.append(np.mean(machine.predict(K_test) != y[test]))
    assert run.cells("SVC raw")[:3] == ["48", *printed(np.array(errors))]


def shown(model: KreinClassifier | KreinRidgeClassifier) -> str:
    """The similarity in a cell of the table."""
    added = model.similarity_.count("+") + 1
    return model.similarity_ if added == 1 else f"sum of {added}"


def test_what_was_chosen_is_that_of_the_first_fold(run: Run, folds: Folds) -> None:
    X, y = make_polygons(N, random_state=SEED)
    train = folds[0][0]
    model = KreinRidgeClassifier("hausdorff", landmarks=None, random_state=SEED)
    model.fit([X[i] for i in train], y[train])
    plus, minus = f"{model.lambda_plus_:.0e}", f"{model.lambda_minus_:.0e}"
    assert run.cells("KreinRidge exact")[4:] == [shown(model), plus, minus]


def test_the_front_door_decides_for_itself(run: Run, folds: Folds) -> None:
    X, y = make_polygons(N, random_state=SEED)
    model = KreinClassifier("hausdorff", random_state=SEED)
    errors = 1 - cross_val_score(model, X, y, cv=folds)
    train = folds[0][0]
    cells = run.cells("KreinClassifier")
    assert cells[:3] == ["48", *printed(errors)]
    assert cells[4] == shown(model.fit([X[i] for i in train], y[train]))


def test_methods_have_rows_with_what_they_have(run: Run) -> None:
    for method in ("KreinVCRidge", "SimilarityRidge", "KreinRidge d^2"):
        landmarks, error, standard_error, seconds, similarity, plus, minus = run.cells(method)
        assert 0 <= float(error) <= 100
        assert float(standard_error) >= 0 <= float(seconds)
        assert landmarks == ("48" if method == "KreinRidge d^2" else "15")
        assert similarity == "squared" or method != "KreinRidge d^2"
        assert float(plus) > 0
        assert bool(minus) == (method != "SimilarityRidge")  # it has one penalty


# Endings.


def test_without_matplotlib_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setattr(demo, "methods", lambda n, seed: {"1-NN": demo.NearestNeighbour()})
    output = tmp_path / "demo.png"
    assert main(["demo", "--n", "20", "--output", str(output)]) == 0
    assert 'pip install "kreinlearn[plot]"' in capsys.readouterr().err
    assert not output.exists()


@posix_only("a way to interrupt one other process")
def test_interrupted_it_gives_130_and_no_traceback(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "reproduction", "demo", "--n", "600"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])},
        **hearing(),
    )
    assert process.stdout is not None
    assert "Polygons" in process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130
    assert errors == "interrupted\n"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--n", "19"], "from 20 to 5000"),
        (["--n", "5001"], "from 20 to 5000"),
        (["--n", "many"], "invalid int value"),
        (["--seed", "-1"], "not negative"),
        (["--output", "nowhere/demo.png"], "no such folder"),
        (["--out", "demo.png"], "unrecognized arguments"),
    ],
)
def test_wrong_options_give_2(
    argv: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit:
        main(["demo", *argv])
    assert exit.value.code == 2
    assert message in capsys.readouterr().err
