"""The names of the package: all there, imported when asked for, and nothing heavy before."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import kreinlearn

FRONT = "from kreinlearn import KreinClassifier"


def printed(code: str) -> str:
    """What a fresh process prints; bytecode is kept, as anywhere else."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=60,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": ""},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("name", kreinlearn.__all__)
def test_a_public_name_is_what_it_says(name: str) -> None:
    assert getattr(kreinlearn, name).__name__ == name
    assert name in dir(kreinlearn)


def test_places_and_names_agree() -> None:
    assert sorted(kreinlearn._PLACE_OF) == sorted(kreinlearn.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'KreinMagic'"):
        _ = kreinlearn.KreinMagic  # type: ignore[attr-defined]


def test_importing_the_package_imports_nothing_heavy() -> None:
    assert (
        printed("import sys, kreinlearn; print({'numpy', 'sklearn'} & {*sys.modules})") == "set()"
    )


def test_importing_a_learner_adds_only_own_modules_to_those_of_scikit_learn() -> None:
    code = f"""
import sys
import sklearn.svm
before = {{*sys.modules}}
{FRONT}
own = {{"kreinlearn", *sys.stdlib_module_names}}
print(sorted(m for m in {{*sys.modules}} - before if m.partition(".")[0] not in own))
"""
    assert printed(code) == "[]"


def test_importing_a_learner_takes_a_fraction_of_what_scikit_learn_takes() -> None:
    """The aim is 0.15 where scikit-learn finds neither pandas nor pyarrow, and loads neither."""
    code = f"""
from time import process_time
start = process_time()
import sklearn.svm
between = process_time()
{FRONT}
print((process_time() - between) / (between - start))
"""
    assert min(float(printed(code)) for _ in range(3)) < 0.3


def test_a_fit_of_few_strings_or_graphs_imports_no_compiler() -> None:
    code = """
import sys
from kreinlearn import KreinClassifier
words = ["ab" * (3 + i % 4) + "xyz"[i % 3] for i in range(30)]
graphs = [(list("CNO" * (1 + i % 3)), [(0, 1), (1, 2 - i % 2)]) for i in range(30)]
for X in (words, graphs):
    KreinClassifier().fit(X, [i % 2 for i in range(30)])
print([m for m in ("numba", "llvmlite", "sklearn.cluster", "dask") if m in sys.modules])
"""
    assert printed(code) == "[]"
