"""What is measured with up to five thousand objects: the cases of python -m benchmarks.small.

A case is a function of its size that runs in a process of its own and returns figures: the CPU and
wall seconds of one fit, the peak of resident memory, and the error on objects that were held out.
"""

from __future__ import annotations

import csv
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC
from threadpoolctl import threadpool_limits

import kreinlearn
from benchmarks import object_sets
from benchmarks.bound import bound
from benchmarks.core import KERNEL, D, data, given_landmarks
from benchmarks.learning_speed import LAMBDA, labels, targets
from benchmarks.timing import Timing, forget_peak, resident_megabytes, timed, timed_command
from kreinlearn import KreinRidge
from kreinlearn.datasets import load_dataset, make_noisy_strings
from kreinlearn.kernels import DeltaGauss
from kreinlearn.kernels.strings import Levenshtein

Array = NDArray[Any]
Figure = dict[str, Any]

LEARNERS = ("KreinClassifier", "KreinRidgeClassifier", "KreinSVC")
PEER, TREES = "SVC, six values of C", "boosted trees"
PENALTIES = {"C": 10.0 ** np.arange(-2, 4)}
LANGUAGES = ("de", "it")
HELD_OUT = 2000
WARM = 60  # objects of a first fit, which imports what is needed
COMMAND = [sys.executable, "-m", "kreinlearn"]


class Problem(NamedTuple):
    """Training objects and test objects, as the learners and as scikit-learn's SVC take them."""

    kernel: str
    X: Any
    y: Array
    X_test: Any
    y_test: Array
    peer: SVC
    K: Any
    K_test: Any

    def few(self, X: Any) -> tuple[Any, Array]:
        """A few training objects of the two largest classes, from X or K, and their labels."""
        classes, sizes = np.unique(self.y, return_counts=True)
        two = classes[np.argsort(-sizes)[:2]]
        rows = np.concatenate([np.flatnonzero(self.y == one)[: WARM // 2] for one in two])
        is_matrix = self.kernel == "precomputed_dissimilarity"
        return (X[np.ix_(rows, rows)] if is_matrix else X[rows]), self.y[rows]


def of_distances(distances: Array, y: Array, distances_test: Array, y_test: Array) -> Problem:
    """The learners are given the distances d, and SVC exp(-d / median)."""
    median = np.median(distances[np.triu_indices_from(distances, 1)])
    K, K_test = np.exp(-distances / median), np.exp(-distances_test / median)
    kernel, peer = "precomputed_dissimilarity", SVC(kernel="precomputed")
    return Problem(kernel, distances, y, distances_test, y_test, peer, K, K_test)


# Fits of one problem


def measured(what: str, work: Callable[[], Any], error: Callable[[Any], float]) -> Figure:
    """Seconds and peak megabytes of a fit, and the error of the model that it returns."""
    forget_peak()
    models: list[Any] = []
    timing = timed(lambda: models.append(work()))
    peak = resident_megabytes("VmHWM")
    return seconds(what, timing) | {"peak": peak, "error": error(models[0])}


def seconds(what: str, timing: Timing) -> Figure:
    return {"what": what, "cpu": timing.cpu, "wall": timing.wall}


def fits(problem: Problem, learners: Sequence[str]) -> list[Figure]:
    """One fit of SVC with its grid, and one of each learner at its defaults, in one thread.

    Each has fitted a few objects before, so that no import is timed.
    """

    def share_wrong(X_test: Any, model: Any) -> float:
        return float(np.mean(model.predict(X_test) != problem.y_test))

    grid = GridSearchCV(problem.peer, PENALTIES, cv=5, n_jobs=1)
    with threadpool_limits(1):
        grid.fit(*problem.few(problem.K))
        work = partial(grid.fit, problem.K, problem.y)
        found = [measured(PEER, work, partial(share_wrong, problem.K_test))]
        for name in learners:
            learner = getattr(kreinlearn, name, None)
            if learner is None:
                found.append({"what": name, "absent": f"kreinlearn has no {name} yet"})
                continue
            model = learner(problem.kernel, n_jobs=1, random_state=0)
            model.fit(*problem.few(problem.X))
            work = partial(model.fit, problem.X, problem.y)
            found.append(measured(name, work, partial(share_wrong, problem.X_test)))
    return found


def two_languages(n: int, n_test: int = HELD_OUT) -> list[Figure]:
    """German and Italian words with Levenshtein distances."""
    X, y = drawn_words(n + n_test)
    kernel = Levenshtein()
    square, rest = kernel.symmetric(X[:n]), kernel(X[n:], X[:n])
    return fits(of_distances(square, y[:n], rest, y[n:]), LEARNERS)


def drawn_words(n: int) -> tuple[list[str], Array]:
    """Some words of two languages of words11, in random order, and their languages."""
    try:
        words = load_dataset("large/words11")
    except FileNotFoundError:
        stand_in("words11")
        return make_noisy_strings(n, n_classes=2, length=8, random_state=0)  # type: ignore[return-value]
    language = words.classes[words.y]
    rows = np.random.default_rng(0).permutation(np.flatnonzero(np.isin(language, LANGUAGES)))[:n]
    return [words.s[i] for i in rows], language[rows]


def object_set(name: str, otherwise: str, learners: Sequence[str]) -> list[Figure]:
    """A set of benchmarks.objects, or one that is made where the data folder is not there."""
    if not object_sets.available([name], 0)[0]:
        stand_in(name)
        name = otherwise
    found = object_sets.matrices(name, 0, 0)
    return fits(of_distances(found.D, found.y, found.D_test, found.y_test), learners)


def vectors(n: int, d: int = 10, n_test: int = HELD_OUT) -> list[Figure]:
    """Normal vectors of two classes that overlap; SVC has its own Gaussian kernel."""
    X = np.random.default_rng(0).standard_normal((n + n_test, d))
    y = labels(X, 2)
    parts = X[:n], y[:n], X[n:], y[n:]
    problem = Problem("delta_gauss", *parts, SVC(), X[:n], X[n:])
    return [*fits(problem, LEARNERS), boosted_trees(*parts)]


def boosted_trees(X: Any, y: Any, X_test: Any, y_test: Any) -> Figure:
    """What one would take for plain numbers, at its defaults, in one thread."""
    model = HistGradientBoostingClassifier(random_state=0)
    with threadpool_limits(1):
        model.fit(X[:WARM], y[:WARM])
        work = partial(model.fit, X, y)
        return measured(TREES, work, lambda fitted: np.mean(fitted.predict(X_test) != y_test))


def stand_in(name: str) -> None:
    print(f"{name} is not there: made objects stand in for it", file=sys.stderr)


# The command line


def fitted_names(n: int) -> list[Figure]:
    """``kreinlearn fit`` on a file of names, and what scikit-learn makes of their letters."""
    X, y, X_test, y_test = drawn_names(n)

    def share_wrong(model: Any) -> float:
        return float(np.mean(model.predict(X_test) != y_test))

    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model.krein"
        timing = timed_on_names("fit", X, y, folder, "-o", str(model))
        ours = seconds("kreinlearn fit", timing) | {"error": share_wrong(kreinlearn.load(model))}
    letters = TfidfVectorizer(analyzer="char_wb", ngram_range=(1, 4))
    theirs = make_pipeline(letters, LinearSVC(random_state=0))
    work = partial(theirs.fit, X, y)
    return [ours, measured("character n-grams, LinearSVC", work, share_wrong)]


def evaluated_names(n: int) -> list[Figure]:
    """``kreinlearn evaluate`` on the same file, and the errors that it finds."""
    X, y, _, _ = drawn_names(n)
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "table.csv"
        timing = timed_on_names("evaluate", X, y, folder, "--csv", str(table))
        with table.open(encoding="utf8", newline="") as file:
            rows = [row for row in csv.DictReader(file) if row["mean"]]
    errors = [{"what": f"its {row['name']}", "error": float(row["mean"]) / 100} for row in rows]
    return [seconds("kreinlearn evaluate", timing), *errors]


def timed_on_names(command: str, X: list[str], y: Array, folder: str, *words: str) -> Timing:
    """The seconds of the processes of a command that is given a file of names in one thread."""
    file = Path(folder) / "names.csv"
    with file.open("w", encoding="utf8", newline="") as target:
        csv.writer(target).writerows([("name", "language"), *zip(X, y, strict=True)])
    given = [str(file), "--target", "language", "--column", "name", "--quiet", "--jobs", "1"]
    return timed_command([*COMMAND, command, *given, *words])


def drawn_names(n: int) -> tuple[list[str], Array, list[str], Array]:
    """Each name of a language once: n for training, and as many as are left, up to 3000."""
    try:
        stored = load_dataset("strings/surnames18")
        pairs = sorted(set(zip(stored.s.tolist(), stored.y.tolist(), strict=True)))
    except FileNotFoundError:
        stand_in("surnames18")
        X, y = make_noisy_strings(2 * n, n_classes=18, length=8, random_state=0)
        pairs = list(zip(X, y.tolist(), strict=True))
    order = np.random.default_rng(0).permutation(len(pairs))[: n + 3000]
    X, y = [pairs[i][0] for i in order], np.array([f"language {pairs[i][1]}" for i in order])
    return X[:n], y[:n], X[n:], y[n:]


# The first use

BARE_IMPORTS = "bare imports of scikit-learn"
BARE = "import sklearn.svm, sklearn.model_selection"
FIRST = """
import numpy as np
rng = np.random.default_rng(0)
y = np.arange({n}) % 2
X = {X}
from kreinlearn import KreinRidgeClassifier
KreinRidgeClassifier({kernel!r}).fit(X, y)
"""
OBJECTS = {
    "strings": ("levenshtein", '["".join(rng.choice(list("abcdef"[c:]), 7)) for c in y]'),
    "vectors": ("delta_gauss", "rng.standard_normal((len(y), 5)) + y[:, None]"),
    "series": ("dtw", "[np.sin((1 + c) * np.arange(30)) + rng.standard_normal(30) for c in y]"),
}


def first_use(rounds: int, n: int = 200) -> list[Figure]:
    """Fits in new processes, imports included, beside the bare imports of scikit-learn.

    Modules have bytecode, as after an installation. Seconds are medians, with code that an earlier
    process has compiled; beside them stands a process that finds nothing compiled.
    """
    fits = {
        f"first fit of {n} {kind}": FIRST.format(n=n, X=X, kernel=kernel)
        for kind, (kernel, X) in OBJECTS.items()
    }
    programs = {BARE_IMPORTS: BARE, **fits}
    with tempfile.TemporaryDirectory() as folder:
        run = partial(in_new_process, Path(folder))
        for program in programs.values():  # bytecode and compiled code
            run(program, "compiled")
        empty = {f"{what}, nothing compiled": run(fits[what], what) for what in fits}
        found = [
            {what: run(programs[what], "compiled") for what in programs} for _ in range(rounds)
        ]
    usual = {what: median([one[what] for one in found]) for what in programs}
    return [seconds(what, timing) for what, timing in (usual | empty).items()]


def in_new_process(folder: Path, program: str, compiled: str) -> Timing:
    """The seconds of a program whose compiled code is kept in a folder of this name."""
    env = {
        "PYTHONPYCACHEPREFIX": str(folder / "bytecode"),
        "PYTHONDONTWRITEBYTECODE": "",
        "NUMBA_CACHE_DIR": str(folder / compiled),
    }
    return timed_command([sys.executable, "-W", "ignore", "-c", program], env)


def median(timings: Sequence[Timing]) -> Timing:
    return Timing(*np.median([(t.cpu, t.wall) for t in timings], axis=0).tolist())


# Many rows

BOUND = "bound, shared by the cores"
FEWEST, MOST = "fewest rows", "most rows"


def all_cores(n: int, m: int = 500, rounds: int = 3) -> list[Figure]:
    """A fit with given landmarks and penalties and the default ``n_jobs``, beside the bound."""
    X, Z = data(n), given_landmarks(n, m)
    y, given = targets(X), {"lambda_plus": LAMBDA, "lambda_minus": LAMBDA, "random_state": 0}
    model = KreinRidge(DeltaGauss(**KERNEL), landmarks=Z, **given)
    model.fit(X, y)
    found = [timed(partial(model.fit, X, y)) for _ in range(rounds)]
    floor = float(np.median([bound(n, m, D).total for _ in range(rounds)]))
    known = hasattr(os, "sched_getaffinity")  # on Linux
    cores = len(os.sched_getaffinity(0)) if known else os.cpu_count() or 1
    shared = seconds(BOUND, Timing(floor, floor / cores))
    return [shared, seconds("KreinRidge", median(found))]


def growing_rows(fewest: int, most: int, m: int = 10, d: int = 5) -> list[Figure]:
    """Tuned fits with few landmarks, for the first rows and for all."""
    X = np.random.default_rng(0).standard_normal((most, d))
    y = targets(X)
    model = KreinRidge(DeltaGauss(), landmarks=m, random_state=0, n_jobs=1)
    model.fit(X[:3000], y[:3000])
    with threadpool_limits(1):
        found = {
            what: timed(partial(model.fit, X[:n], y[:n]))
            for what, n in ((FEWEST, fewest), (MOST, most))
        }
    return [seconds(what, timing) for what, timing in found.items()]


class Case(NamedTuple):
    """Its function for the whole run and for a quick one, and whether it has one BLAS thread."""

    whole: Callable[[], list[Figure]]
    quick: Callable[[], list[Figure]]
    serial: bool = True


CLASSES = ("KreinClassifier", "KreinRidgeClassifier")
CASES = {
    **{
        f"words {n}": Case(partial(two_languages, n), partial(two_languages, n // 10, 100))
        for n in (500, 1000, 2000, 5000)
    },
    "chromosomes": Case(
        partial(object_set, "chromosomes", "noisy strings", CLASSES),
        partial(object_set, "noisy strings", "noisy strings", CLASSES),
    ),
    "mpeg7": Case(
        partial(object_set, "mpeg7_contours", "polygons", LEARNERS),
        partial(object_set, "polygons", "polygons", LEARNERS),
    ),
    "vectors": Case(partial(vectors, 3000), partial(vectors, 300, 10, 100)),
    "names fit": Case(partial(fitted_names, 3000), partial(fitted_names, 200)),
    "names evaluate": Case(partial(evaluated_names, 3000), partial(evaluated_names, 200)),
    "first use": Case(partial(first_use, 5), partial(first_use, 1)),
    "all cores": Case(partial(all_cores, 200_000), partial(all_cores, 20_000), serial=False),
    "many rows": Case(
        partial(growing_rows, 500_000, 4_000_000), partial(growing_rows, 20_000, 160_000)
    ),
}
