"""What holds on any processor: equal bits, evaluated pairs, refused files, faults, exit codes."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import runpy
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import kreinlearn as kl
from kreinlearn import Blocks, Landmarks, ModelFormatError, Resources, dissimilarity, pairwise
from tests.kept.predictions import CLASSES, LETTERS, NAMES, NUMBERS, N, objects
from tests.kept.processes import PEAKS, STOP, ovr

ROOT = Path(__file__).parents[2]


def started(*words: str) -> subprocess.Popen[str]:
    """A process of this package, with one thread."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    env = {**os.environ, **threads, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    command = [sys.executable, "-m", "tests.kept.processes", *words]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, env=env)


def said(process: subprocess.Popen[str]) -> Any:
    """The last line that it prints."""
    out, _ = process.communicate()
    return json.loads(out.splitlines()[-1]) if process.returncode == 0 else "failed"


# Bits

ROWS = np.random.default_rng(0).normal(size=(18_509, 3))  # ten tiles and a part of one
TARGET = np.sin(2 * ROWS[:, 0]) + ROWS[:, 1] ** 2 + 100.0
KINDS = np.array(["a", "bb", "c"])[np.digitize(ROWS[:, 0] + 0.3 * ROWS[:, 1], [-0.5, 0.7])]
MADE: dict[str, Any] = {"kernel": "delta_gauss", "landmarks": 25, "random_state": 3}
FIXED = {"lambda_plus": 1e-4, "lambda_minus": 1e-3}
EXACT: dict[str, tuple[Any, Any, int]] = {  # an estimator, targets, rows
    "KreinRidge": (kl.KreinRidge(**MADE), TARGET, len(ROWS)),
    "KreinRidge, least squares": (
        kl.KreinRidge(**{**MADE, "landmarks": Landmarks(25, core="ls")}), TARGET, len(ROWS),
    ),
    "KreinRidgeClassifier": (ovr(kl.KreinRidgeClassifier(**MADE)), KINDS, len(ROWS)),
    "KreinClassifier": (kl.KreinClassifier(**MADE), KINDS, len(ROWS)),
    "KreinVCRidge": (kl.KreinVCRidge(**MADE), TARGET, len(ROWS)),
    "KreinSVC": (ovr(kl.KreinSVC(**MADE, **FIXED)), KINDS, 9_000),
    "KreinNystroem": (kl.KreinNystroem(**MADE), None, len(ROWS)),
}  # fmt: skip
WAYS: dict[str, list[dict[str, Any]]] = {
    "threads": [{"n_jobs": 2}, {"n_jobs": 4}],
    "budgets": [{"budget": size} for size in ("5MB", "7MB", "12MB", "30MB")],
    "chunks": [{"blocks": count} for count in (2, 7, 98)],
    "a file": [{"file": True}, {"file": True, "n_jobs": 2, "budget": "12MB"}],
}


def mark(
    name: str, n_jobs: int = 1, budget: str | None = None, blocks: int = 0, file: bool = False
) -> str:
    """A hash of what a fit finds and says."""
    model, y, n = EXACT[name]
    rows: Any = ROWS[:n]
    with tempfile.TemporaryDirectory() as folder:
        if blocks:
            parts = np.array_split(rows, blocks)
            rows = Blocks(lambda: iter(parts))
        elif file:
            np.save(Path(folder) / "X.npy", rows)
            rows = Path(folder) / "X.npy"
        resources = Resources(memory_budget=budget) if budget else None
        model.set_params(n_jobs=n_jobs, resources=resources)
        model.fit(rows, *([] if y is None else [y[:n]]))
    way = next(w for w in ("decision_function", "predict", "transform") if hasattr(model, w))
    found = [getattr(model, way)(ROWS[:3000]), model.landmark_indices_]
    found += [model.dual_coef_, model.intercept_] if y is not None else [model.eigenvalues_]
    return hashlib.sha256(b"".join(np.asarray(one).tobytes() for one in found)).hexdigest()


def bits() -> dict[str, Any]:
    """Whether the bits of one thread come out however the rows come and go."""
    found: dict[str, Any] = {}
    for name in EXACT:
        wanted = mark(name)
        found[name] = {
            what: "equal" if all(mark(name, **way) == wanted for way in ways) else "different"
            for what, ways in WAYS.items()
        }
    return found


# Evaluated pairs

WORDS = [f"{word}{i}" for i, word in enumerate(objects("strings")[0])]  # no two are equal
COUNTED: dict[str, tuple[str, dict[str, Any], Any]] = {  # an estimator, parameters, targets
    "KreinRidge": ("KreinRidge", {}, NUMBERS),
    "KreinRidge, penalties": ("KreinRidge", {**FIXED, "similarity": "squared"}, NUMBERS),
    "KreinRidge, few": ("KreinRidge", {"landmarks": 10}, NUMBERS),
    "KreinRidge, uniform": ("KreinRidge", {"landmarks": Landmarks(10, "uniform")}, NUMBERS),
    "KreinRidge, leverage": ("KreinRidge", {"landmarks": Landmarks(10, "leverage")}, NUMBERS),
    "KreinVCRidge": ("KreinVCRidge", {}, NUMBERS),
    "KreinRidgeClassifier, few": ("KreinRidgeClassifier", {"landmarks": 10}, NAMES),
    "KreinSVC": ("KreinSVC", {}, NAMES),
    "KreinSVC, few": ("KreinSVC", {"landmarks": 10}, NAMES),
    "KreinClassifier": ("KreinClassifier", {}, NAMES),
    "KreinRegressor, cv+": ("KreinRegressor", {}, NUMBERS),
    "SpectrumSVC": ("SpectrumSVC", {}, NAMES),
    "SimilarityRidge, few": ("SimilarityRidge", {"landmarks": 10}, NUMBERS),
    "KreinNystroem, few": ("KreinNystroem", {"landmarks": 10}, None),
    "KreinKMeans": ("KreinKMeans", {"n_clusters": 3}, None),
    "evaluate": ("evaluate", {"cv": 3, "n_jobs": 1}, NAMES),
}
met: Counter[tuple[str, str]] = Counter()


def apart(a: str, b: str) -> float:
    met[min(a, b), max(a, b)] += 1
    return float(sum(abs(a.count(x) - b.count(x)) for x in LETTERS) + abs(len(a) - len(b)))


def evaluations() -> dict[str, Any]:
    """Pairs of a costly function: all calls, distinct pairs, the most of one pair; of predict."""
    kernel, found, new = dissimilarity(pairwise(apart)), {}, [f"{w}?" for w in WORDS[:5]]
    for what, (name, params, y) in COUNTED.items():
        met.clear()
        predicted = 0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if name == "evaluate":
                kl.evaluate(WORDS, y, kernel, random_state=0, **params)
            else:
                model = ovr(getattr(kl, name)(kernel=kernel, random_state=0, n_jobs=1, **params))
                more = {"conformal": "cv+"} if "cv+" in what else {}
                model.fit(WORDS, *([] if y is None else [y]), **more)
        fitted = [met.total(), len(met), max(met.values())]
        if name != "evaluate":
            met.clear()
            getattr(model, "predict" if hasattr(model, "predict") else "transform")(new)
            predicted = met.total()
        names = ("calls", "pairs", "most", "predict")
        found[what] = dict(zip(names, [*fitted, predicted], strict=True))
    return found


# Resident peaks


def peaks() -> dict[str, Any]:
    return {name: said(started("peak", name)) for name in PEAKS} if sys.platform == "linux" else {}


# Files of models


def flips(step: int = 1) -> dict[str, Any]:
    """One bit of each byte of a file is flipped, and each end is cut off."""
    (X, new), found = objects("strings"), {}
    models = {
        "KreinRidgeClassifier": (ovr(kl.KreinRidgeClassifier("levenshtein", landmarks=9)), NAMES),
        "KreinSVC": (ovr(kl.KreinSVC("levenshtein", landmarks=9)), NAMES),
        "KreinClassifier": (kl.KreinClassifier("levenshtein", landmarks=9), NAMES),
        "KreinRegressor": (kl.KreinRegressor("levenshtein", landmarks=9), NUMBERS),
    }
    for name, (model, y) in models.items():
        model.set_params(random_state=0, n_jobs=1).fit(X, y)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "m.krein"
            kl.save(model, path)
            same = model.predict(new).tobytes() == kl.load(path).predict(new).tobytes()
            whole, taken = path.read_bytes(), 0
            for i in range(0, len(whole) + 9, step):
                damaged = bytearray(whole[: 2 * len(whole) - 1 - i])  # at last, cut off
                if i < len(damaged):
                    damaged[i] ^= 1 << i % 8
                path.write_bytes(damaged)
                with contextlib.suppress(ModelFormatError):
                    kl.load(path)
                    taken += 1
        found[name] = {"loaded, as before": same, "damaged, taken": taken}
    return found


# Faults


def reached(process: subprocess.Popen[str], calls: int) -> bool:
    """Wait until a fit has evaluated so many pairs; False if it ends before."""
    assert process.stdout is not None
    return any(int(line) >= calls for line in process.stdout if line.strip().isdigit())


def faults() -> dict[str, Any]:
    """A fit with a store is killed, resumed on a disk that is full, and resumed again."""
    alone = said(started("fit", "", "0", "0"))
    with tempfile.TemporaryDirectory() as folder:
        store = str(Path(folder) / "store")
        first = started("fit", store, "1e-4", "0")
        running = reached(first, STOP)
        second = said(started("fit", store, "0", "0"))  # in use
        first.kill()
        first.communicate()
        full = said(started("fit", store, "0", "50000"))
        resumed, again = (said(started("fit", store, "0", "0")) for _ in range(2))
    return {
        "killed while it ran": running,
        "a second process": "refused" if "refused" in second else "let in",
        "full disk": full.get("refused", "no error") if isinstance(full, dict) else full,
        "bits, resumed": "equal" if resumed["bits"] == alone["bits"] == again["bits"] else "other",
        "pairs, resumed": "fewer" if resumed["calls"] < 0.8 * alone["calls"] else "as many",
        "pairs, again": "hardly any" if again["calls"] < 0.02 * alone["calls"] else "too many",
    }


# The command line

# One call a line, each in a folder with the files of the calls before.
CALLS = (Path(__file__).parent / "calls.txt").read_text(encoding="utf8").splitlines()


def folder_of_files(home: Path) -> None:
    words, amounts = objects("strings")[0], [f"{y:.3f}" for y in NUMBERS]
    rows = [f"{w},{k}" for w, k in zip(words, NAMES, strict=True)]
    points = zip(objects("vectors")[0][:, :2], amounts, strict=True)
    pairs = [f"{x:.3f},{z:.3f},{y}" for (x, z), y in points]
    for name, lines in {
        "words.csv": ["word,kind", *rows],
        "gaps.csv": ["word,kind", *rows[:20], ",red", *rows[20:]],
        "broken.csv": ["word,kind", *rows[:20], "a,b,c,d", *rows[20:]],
        "rows.csv": ["x,z,amount", *pairs],
        "labels.txt": list(NAMES),
    }.items():
        (home / name).write_text("\n".join([*lines, ""]), encoding="utf8")
    np.save(home / "D.npy", np.abs(np.subtract.outer(CLASSES[:N], CLASSES[:N] + 0.0)))
    (home / "damaged.krein").write_bytes(b"kreinlearn model 1\n" + b"0" * 64 + b"\n{}\n")


def command(words: str) -> Any:
    """The exit code of a call in this process."""
    silent, argv = io.StringIO(), ["kreinlearn", *words.split()]
    with mock.patch.object(sys, "argv", argv), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with contextlib.redirect_stdout(silent), contextlib.redirect_stderr(silent):
            try:
                runpy.run_module("kreinlearn", run_name="__main__")
            except SystemExit as end:
                return end.code or 0
    return 0


def exits() -> dict[str, Any]:
    """The exit code of each call, the files that it leaves, and what was predicted."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        home = Path(folder)
        folder_of_files(home)
        for call in CALLS:
            before = files(home)
            code = command(call)
            left = sorted({name for name, _ in files(home) - before})
            found.setdefault(call, []).append(" ".join([str(code), *left]))
        for name in ("p.csv", "g.csv"):
            found[name] = (home / name).read_text().split() if (home / name).exists() else []
    return found


def files(home: Path) -> set[tuple[str, int]]:
    return {(path.name, path.stat().st_mtime_ns) for path in home.iterdir()}
