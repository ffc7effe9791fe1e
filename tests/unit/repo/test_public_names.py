"""The names of the package: all there, imported when asked for, and nothing heavy before."""

from __future__ import annotations

import subprocess
import sys

import pytest

import kreinlearn


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
    code = "import sys, kreinlearn; print([m for m in ('numpy', 'numba', 'sklearn') if m in sys.modules])"  # noqa: E501
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]", done.stderr


def test_a_fit_of_strings_imports_no_compiler() -> None:
    code = """
import sys
from kreinlearn import KreinRidgeClassifier
words = ["ab", "abc", "abd", "xy", "xyz", "xyw"] * 2
KreinRidgeClassifier("levenshtein").fit(words, [0, 0, 0, 1, 1, 1] * 2)
print([m for m in ("numba", "llvmlite", "sklearn.cluster", "dask") if m in sys.modules])
"""
    command = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]", done.stderr
