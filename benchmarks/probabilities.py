"""How good probabilities are: python -m benchmarks.probabilities [--sets SET] [--quick] [--write]

KreinClassifier has probabilities from the stack that it fits anyway. KreinRidgeClassifier and
KreinSVC have them with ``probability=True``, which calibrates scores of objects that were left out.
"refitted" is what they did before: a sigmoid per class by CalibratedClassifierCV, which fits five
parts of the objects again with the penalties and the similarity that were found. Scikit-learn's SVC
is calibrated in that way too, on exp(-d / median) with C = 1. All get the same distances. The
log loss is the mean of -log of the probability of the true class, and the Brier score the mean of
the squared distance between the probabilities and the truth.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC

from benchmarks import tables
from benchmarks.learners import fitted_quietly
from benchmarks.object_sets import QUICK_SETS, Matrices, available, matrices
from benchmarks.timing import timed
from kreinlearn import KreinClassifier, KreinRidgeClassifier, KreinSVC
from kreinlearn.report.model import Table

Array = NDArray[Any]
RESULTS = Path(__file__).parent / "results" / "probabilities.md"
HEADING = "Probabilities"
SETS = (
    *("chromosomes", "amp_ampscanner", "mpeg7_contours", "JapaneseVowels", "PLAID"),
    *("PROTEINS", "ENZYMES"),
)
GIVEN = {"kernel": "precomputed_dissimilarity", "random_state": 0, "n_jobs": 1}


class Figure(NamedTuple):
    """What one method reaches on one set."""

    log_loss: float
    brier: float
    error: float
    cpu: float


class MedianSVC:
    """SVC on exp(-d / median), with probabilities by scikit-learn's calibration."""

    def fit(self, D: Array, y: Array) -> MedianSVC:
        self.median = np.median(D[np.triu_indices_from(D, 1)])
        folds = min(5, int(np.unique(y, return_counts=True)[1].min()))
        svc = SVC(kernel="precomputed")
        self.model = CalibratedClassifierCV(svc, cv=max(folds, 2), ensemble=False)
        self.model.fit(np.exp(-D / self.median), y)
        self.classes_ = self.model.classes_
        return self

    def predict_proba(self, D: Array) -> Array:
        return np.asarray(self.model.predict_proba(np.exp(-D / self.median)))


class Refitted:
    """A learner whose probabilities come from five further fits, by CalibratedClassifierCV."""

    def __init__(self, learner: Any) -> None:
        self.learner = learner

    def fit(self, D: Array, y: Array) -> Refitted:
        self.plain = self.learner(**GIVEN).fit(D, y)
        found = ("lambda_plus", "lambda_minus", "similarity")
        again = clone(self.plain).set_params(**{n: getattr(self.plain, f"{n}_") for n in found})
        folds = min(5, int(np.unique(y, return_counts=True)[1].min()))
        cv = StratifiedKFold(max(folds, 2), shuffle=True, random_state=0)
        self.model = CalibratedClassifierCV(again, cv=cv, ensemble=False).fit(D, y)
        self.classes_ = self.model.classes_
        return self

    def predict_proba(self, D: Array) -> Array:
        (one,) = self.model.calibrated_classifiers_
        one.estimator = self.plain
        return np.asarray(one.predict_proba(D))


METHODS = {
    "KreinClassifier": partial(KreinClassifier, **GIVEN),
    "KreinRidgeClassifier, probability=True": partial(
        KreinRidgeClassifier, probability=True, **GIVEN
    ),
    "KreinRidgeClassifier, refitted": partial(Refitted, KreinRidgeClassifier),
    "KreinSVC, probability=True": partial(KreinSVC, probability=True, **GIVEN),
    "KreinSVC, refitted": partial(Refitted, KreinSVC),
    "SVC, calibrated": MedianSVC,
}


def brier_score(P: Array, truth: Array) -> float:  # (n, c), (n, c)
    """The mean squared distance between probabilities and the truth, which is 0 or 1."""
    return float(np.square(P - truth).sum(axis=1).mean())


def measured(M: Matrices, method: str) -> Figure:
    """Fit to the training part, and judge the probabilities of the test part."""
    model = METHODS[method]()
    timing = timed(lambda: fitted_quietly(model, M.D, M.y))
    P = model.predict_proba(M.D_test)
    truth = M.y_test[:, None] == model.classes_
    loss = log_loss(M.y_test, P, labels=model.classes_)
    wrong = model.classes_[np.argmax(P, axis=1)] != M.y_test
    return Figure(loss, brier_score(P, truth), float(wrong.mean()), timing.cpu)


def table(found: dict[str, dict[str, Figure]]) -> Table:
    header = ["set", "method", "log loss", "Brier score", "error, %", "CPU s"]
    rows = [
        [
            name,
            method,
            f"{f.log_loss:.3f}",
            f"{f.brier:.3f}",
            f"{100 * f.error:.2f}",
            f"{f.cpu:.2f}",
        ]
        for name, figures in found.items()
        for method, f in figures.items()
    ]
    note = " ".join((__doc__ or "").split("\n\n")[1].split())
    return Table(
        "Log loss and Brier score on the test part",
        header,
        rows,
        [note, wins(found), compared(found)],
    )


def wins(found: dict[str, dict[str, Figure]]) -> str:
    """On how many sets KreinClassifier has the best probabilities."""
    first = next(iter(METHODS))
    counts = [
        sum(
            figures[first][i] <= min(f[i] for name, f in figures.items() if name != first)
            for figures in found.values()
        )
        for i in range(2)
    ]
    return (
        f"{first} has the smallest log loss on {counts[0]} and the smallest Brier score on "
        f"{counts[1]} of {len(found)} sets."
    )


def compared(found: dict[str, dict[str, Figure]]) -> str:
    """How probabilities of objects left out compare to those of further fits."""
    sentences = []
    for learner in ("KreinRidgeClassifier", "KreinSVC"):
        new, old = (
            [figures[f"{learner}, {way}"] for figures in found.values()]
            for way in ("probability=True", "refitted")
        )
        better = [sum(a[i] <= b[i] for a, b in zip(new, old, strict=True)) for i in range(2)]
        cpu = sum(one.cpu for one in old) / max(sum(one.cpu for one in new), 1e-9)
        sentences.append(
            f"{learner}: without further fits the log loss is at most that of further fits on "
            f"{better[0]}, and the Brier score on {better[1]} of {len(found)} sets; further fits "
            f"take {cpu:.1f} times the CPU time."
        )
    return " ".join(sentences)


def main(arguments: Sequence[str] | None = None) -> dict[str, dict[str, Figure]]:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.probabilities", description=__doc__, allow_abbrev=False
    )
    parser.add_argument("--sets", nargs="+", metavar="SET", help=f"of {', '.join(SETS)}")
    parser.add_argument("--quick", action="store_true", help="small generated sets")
    parser.add_argument("--write", nargs="?", type=Path, const=RESULTS, metavar="FILE")
    options: Any = parser.parse_args(arguments)
    names = options.sets or (list(QUICK_SETS) if options.quick else list(SETS))
    there, absent = available(names, 0)
    for sentence in absent:
        print(sentence, file=sys.stderr)
    found: dict[str, dict[str, Figure]] = {}
    for name in there:
        print(f"{name} ...", file=sys.stderr, flush=True)
        M = matrices(name, 0, 0)
        found[name] = {method: measured(M, method) for method in METHODS}
    made = table(found)
    made.show(tables.console())
    if options.write:
        command = tables.command_line("benchmarks.probabilities", arguments)
        tables.write_markdown(options.write, HEADING, command, [made])
    return found


if __name__ == "__main__":
    main()
