"""Messages of the library in the terms of flags, findings as JSON, words as values."""

from __future__ import annotations

import errno
import json
import pickle
import warnings
from argparse import ArgumentTypeError
from typing import Any

import numpy as np
import pytest

from kreinlearn import KreinRidge, Resources
from kreinlearn.cli import arguments
from kreinlearn.cli.messages import Talk, in_flags, one_line
from kreinlearn.data.errors import EmptyError, OptionError
from kreinlearn.data.writing import as_json


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("rank=9 exceeds the number of landmarks, 3 (n_samples=5); lower rank",
         "--rank 9 exceeds the number of landmarks, 3 (n_samples=5); lower rank"),
        ("landmarks=0.5 is few", "--landmarks 0.5 is few"),
        ("which Resources(store=path) would do", "which --store path would do"),
        ('pass resources=Resources(memory_budget="2GB")', 'pass --memory "2GB"'),
        ("raise Resources(memory_budget=...), or", "raise --memory, or"),
        ('pass landmarks=Landmarks(..., core="plain"), or', 'pass core="plain", or'),
        ("raise memory_budget, or n_jobs", "raise --memory, or --jobs"),
        ("pass kernel_params=None", "pass no --kernel-param"),
        ("pass probability=False", "pass no --probabilities"),
        ("probability=True fits parts again", "--probabilities fits parts again"),
        ("pass Resources(store=None), or cv=None", "pass no --store, or no --cv"),
        ("landmarks=None takes all", "--landmarks None takes all"),
        ('pass kernel="precomputed"', 'pass --kernel "precomputed"'),
        ("The 'n_jobs' parameter", "The --jobs parameter"),
        ("a kernel of low rank", "a kernel of low rank"),
        ("my_cv=3 and kernels=4", "my_cv=3 and kernels=4"),
    ],
)  # fmt: skip
def test_in_flags(text: str, expected: str) -> None:
    assert in_flags(text) == expected


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (OptionError("it is not in utf-8", "name its encoding", "encoding", "latin-1"),
         "it is not in utf-8; name its encoding: --encoding latin-1"),
        (OptionError("one column", "name it", "delimiter", "\t"),
         r"one column; name it: --delimiter '\t'"),
        (OptionError("numbers", "say so", "header", False), "numbers; say so: --no-header"),
        (OptionError("text", "name them", "columns", ["a"]), "text; name them: --column NAME"),
        (EmptyError((0, 3), "x.csv"), "x.csv has no rows"),
        (EmptyError((3, 0), "x.csv"), "x.csv has no columns"),
    ],
)  # fmt: skip
def test_errors_with_parts_name_flags(error: ValueError, expected: str) -> None:
    assert one_line(error) == expected
    back = pickle.loads(pickle.dumps(error))  # as from another process
    assert (str(back), one_line(back)) == (str(error), expected)


def test_a_real_error_of_an_estimator_names_flags() -> None:
    with pytest.raises(MemoryError) as caught:
        KreinRidge(resources=Resources(memory_budget=10)).fit(np.eye(50), np.arange(50))
    said = one_line(caught.value)
    assert "--memory" in said
    assert "memory_budget" not in said


def test_one_line() -> None:
    error = ValueError("first\n  second")
    error.add_note("a\nnote")
    assert one_line(error) == "first second; a note"
    assert one_line(OSError(errno.ENOENT, "No such file", "x.csv")) == "x.csv: No such file"
    assert one_line(OSError(errno.ENOSPC, "No space left")) == "No space left"
    assert "--memory" in one_line(MemoryError())
    assert one_line(KeyboardInterrupt()) == "KeyboardInterrupt"


def test_warnings_are_lines_each_once(capsys: pytest.CaptureFixture[str]) -> None:
    def warn() -> None:
        for _ in range(2):
            warnings.warn("landmarks=3\nis few", UserWarning, stacklevel=1)
            warnings.warn("a detail", DeprecationWarning, stacklevel=1)

    for talk, expected in (
        (Talk(), "warning: --landmarks 3 is few\n"),
        (Talk(verbose=True), "warning: --landmarks 3 is few\nwarning: a detail\n"),
        (Talk(quiet=True), ""),
    ):
        with talk.listening():
            warn()
        assert capsys.readouterr().err == expected


def test_whatever_is_found_is_json() -> None:
    found = {
        "nan": float("nan"), "inf": np.float64("-inf"), "n": np.int8(3), "flag": np.bool_(True),
        "array": np.array([[1.0, np.nan]]), 5: ("a", None), "other": {1}, "path": arguments,
    }  # fmt: skip
    text = json.dumps(as_json(found), allow_nan=False)
    back = json.loads(text)
    assert back["nan"] is None
    assert back["inf"] is None
    assert back["array"] == [[1.0, None]]
    assert back["5"] == ["a", None]
    assert (back["n"], back["flag"], back["other"]) == (3, True, "{1}")


@pytest.mark.parametrize(
    ("read", "text", "expected"),
    [
        (arguments.landmarks, "auto", "auto"), (arguments.landmarks, "all", None),
        (arguments.landmarks, "12", 12), (arguments.landmarks, "0.25", 0.25),
        (arguments.landmarks, "1.0", 1.0), (arguments.rank, "auto", "auto"),
        (arguments.rank, "7", 7),
        (arguments.memory, "2GB", "2GB"), (arguments.jobs, "-1", -1),
        (arguments.encoding, "latin1", "iso8859-1"), (arguments.delimiter, ";", ";"),
        (arguments.delimiter, "tab", "\t"), (arguments.delimiter, "\\t", "\t"),
        (arguments.share, "0.05", 0.05), (arguments.estimator, "svc", "svc"),
        (arguments.assignment, "width=2.5", ("width", 2.5)),
        (arguments.assignment, "a=true", ("a", True)),
        (arguments.assignment, "a=None", ("a", None)),
        (arguments.assignment, "a=1,2,x", ("a", (1, 2, "x"))),
        (arguments.assignment, "a=blosum62", ("a", "blosum62")),
        (arguments.assignment, "a=b=c", ("a", "b=c")),
        (arguments.assignment, "a=['x']", ("a", ["x"])), (arguments.assignment, "a=", ("a", "")),
    ],
)  # fmt: skip
def test_words_as_values(read: Any, text: str, expected: Any) -> None:
    found = read(text)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("read", "text"),
    [
        *((arguments.landmarks, text) for text in ("0", "-1", "0.0", "1.5", "many", "nan", "1e3")),
        *((arguments.memory, text) for text in ("", "0", "2 apples", "-1GB")),
        *((arguments.jobs, text) for text in ("0", "two", "1.5")),
        *((arguments.share, text) for text in ("0", "-1", "nan", "inf", "x")),
        *((arguments.folds, text) for text in ("1", "2.5", "x")),
        *((arguments.delimiter, text) for text in ("", ",,", '"', "\n")),
        *((arguments.assignment, text) for text in ("a", "=1", "a b=1", "1=2")),
        (arguments.encoding, "rot99"), (arguments.estimator, "Nystroem"), (arguments.seed, "-1"),
    ],
)  # fmt: skip
def test_words_that_are_no_values(read: Any, text: str) -> None:
    with pytest.raises(ArgumentTypeError):
        read(text)
