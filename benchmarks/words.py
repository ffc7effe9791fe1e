"""1.24 million words of 11 languages, Levenshtein, 500 landmarks: python -m benchmarks.words

The CPU seconds of a fit with its tuning are compared with those of rapidfuzz's distances alone. The
peak of memory above that of the words is measured for 300,000 words and for all. Errors on test
words are compared with those of the nearest landmark. Each number of words is measured in a process
of its own.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import gen_batches

from benchmarks import tables
from benchmarks.tables import Check
from benchmarks.timing import forget_peak, resident_megabytes, said_by
from kreinlearn import KreinRidgeClassifier, KreinSVC
from kreinlearn.data.tiles import TILE
from kreinlearn.datasets import load_dataset, make_noisy_strings
from kreinlearn.report.model import Table

RESULTS = Path(__file__).parent / "results" / "words.md"
HEADING = "A million words"
LANDMARKS, TEST = 500, 50_000
LIMIT, FLAT = 8.0, 100.0  # times the bare evaluations; bytes more for a word more
LEARNERS = {"KreinRidgeClassifier": KreinRidgeClassifier, "KreinSVC": KreinSVC}


def words(n: int | None, seed: int = 0) -> tuple[list[str], Any, list[str], Any]:
    """Training words and their languages, then those of the test part."""
    try:
        data = load_dataset("large/words11")
        X, y = data.s, data.y
    except FileNotFoundError:
        print("words11 is not there: noisy strings stand in for it", file=sys.stderr)
        X, y = make_noisy_strings(n_samples=20_000, length=8, n_classes=5, random_state=seed)
    order = np.random.default_rng(seed).permutation(len(X))
    test, train = np.split(order, [min(TEST, len(X) // 4)])
    train = train[:n]
    return [X[i] for i in train], y[train], [X[i] for i in test], y[test]


def bare(X: list[str], Z: list[str]) -> None:
    """Evaluate every distance of a word to a landmark, tile by tile, and nothing else."""
    from rapidfuzz.distance import Levenshtein
    from rapidfuzz.process import cdist

    for tile in gen_batches(len(X), TILE):
        cdist(X[tile], Z, scorer=Levenshtein.distance, workers=1, dtype=np.uint8)


def measured(learner: str, n: int | None) -> dict[str, float | str]:
    from rapidfuzz.distance import Levenshtein
    from rapidfuzz.process import cdist

    X, y, X_test, y_test = words(n)
    model = LEARNERS[learner]("levenshtein", landmarks=LANDMARKS, random_state=0, n_jobs=1)
    model.fit(X[:2000], y[:2000])  # compiled before anything is timed
    before, wall, cpu = forget_peak(), time.perf_counter(), time.process_time()
    model.fit(X, y)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak, start = resident_megabytes("VmHWM") - before, time.process_time()
    bare(X, model.landmarks_)
    bare_cpu, start = time.process_time() - start, time.process_time()
    error = float(np.mean(model.predict(X_test) != y_test))
    predict = time.process_time() - start
    D = cdist(X_test, model.landmarks_, scorer=Levenshtein.distance, dtype=np.uint8)
    nearest = y[model.landmark_indices_][D.argmin(axis=1)]
    return {
        "learner": learner, "n": len(X), "cpu": cpu, "wall": wall, "bare": bare_cpu, "peak": peak,
        "predict": predict, "error": error, "nearest": float(np.mean(nearest != y_test)),
        "n_test": len(y_test), "similarity": model.similarity_,
    }  # fmt: skip


def in_a_process(learner: str, n: int | None) -> dict[str, Any]:
    found: dict[str, Any] = said_by("benchmarks.words", "--one", learner, str(n or 0))
    return found


def table(found: Sequence[dict[str, Any]]) -> Table:
    header = (
        "learner", "words", "CPU s of the fit", "wall s", "bare CPU s", "fit / bare",
        "MB above the words", "predict CPU s", "error, %", "nearest landmark, %", "similarity",
    )  # fmt: skip
    rows = [
        [
            r["learner"], f"{r['n']:,}", f"{r['cpu']:.1f}", f"{r['wall']:.1f}", f"{r['bare']:.2f}",
            f"{r['cpu'] / r['bare']:.2f}", f"{r['peak']:.0f}", f"{r['predict']:.2f}",
            f"{100 * r['error']:.2f}", f"{100 * r['nearest']:.2f}", r["similarity"],
        ]
        for r in found
    ]  # fmt: skip
    return Table(HEADING, header, rows, [*(__doc__ or "").splitlines()[2:]])


def checks(found: Sequence[dict[str, Any]], whole: bool) -> list[Check]:
    made = []
    for learner in dict.fromkeys(r["learner"] for r in found):
        few, many = (r for r in found if r["learner"] == learner)
        ratio = many["cpu"] / many["bare"]
        grown = 1e6 * (many["peak"] - few["peak"]) / (many["n"] - few["n"])
        found_errors = f"{100 * many['error']:.2f} against {100 * many['nearest']:.2f} %"
        made += [
            Check(f"{learner}: fit over bare evaluations", f"{ratio:.2f}", f"< {LIMIT:g}",
                  ratio < LIMIT if whole else None),
            Check(f"{learner}: bytes more for a word more", f"{grown:.0f}", f"<= {FLAT:g}",
                  grown <= FLAT if whole else None),
            Check(f"{learner}: fewer errors than the nearest landmark", found_errors, "fewer",
                  many["error"] < many["nearest"]),
        ]  # fmt: skip
    return made


def main(arguments: Sequence[str] | None = None) -> list[dict[str, Any]]:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.words", description=__doc__, allow_abbrev=False
    )
    parser.add_argument("--learners", nargs="+", choices=LEARNERS, default=list(LEARNERS))
    parser.add_argument("--quick", action="store_true", help="10,000 and 40,000 words")
    parser.add_argument("--one", nargs=2, metavar=("LEARNER", "N"), help=argparse.SUPPRESS)
    parser.add_argument("--write", nargs="?", type=Path, const=RESULTS, metavar="FILE")
    options = parser.parse_args(arguments)
    if options.one:
        print(json.dumps(measured(options.one[0], int(options.one[1]) or None)))
        return []
    sizes = (10_000, 40_000) if options.quick else (300_000, None)
    found = [in_a_process(learner, n) for learner in options.learners for n in sizes]
    made = [tables.checked(checks(found, not options.quick)), table(found)]
    for one in made:
        one.show(tables.console())
    if options.write:
        words_ = sys.argv[1:] if arguments is None else arguments
        command = tables.command_line("benchmarks.words", words_)
        tables.write_markdown(options.write, HEADING, command, made)
    return found


if __name__ == "__main__":
    main()
