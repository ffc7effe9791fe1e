"""Messages of the library in the terms of flags, findings as JSON, words as values."""

from __future__ import annotations

import contextlib
import errno
import json
import pickle
import re
import warnings
from argparse import ArgumentTypeError
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kreinlearn
from kreinlearn import KreinRidge, Resources, cli
from kreinlearn.cli import arguments
from kreinlearn.cli.examples import EPILOGS
from kreinlearn.cli.messages import Talk, one_line
from kreinlearn.cli.parser import commands_of, parser
from kreinlearn.data.errors import EmptyError, OptionError
from kreinlearn.data.writing import as_json


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


def test_an_error_of_memory_names_the_flags_of_the_command() -> None:
    with pytest.raises(MemoryError) as caught:
        KreinRidge(resources=Resources(memory_budget=10)).fit(np.eye(50), np.arange(50))
    fit = parser().parse_args(["fit", "x.csv", "--target", "y", "-o", "m.krein"])
    assert one_line(caught.value, fit).endswith(" (--memory and --landmarks decide)")
    inspect = parser().parse_args(["inspect", "x.csv"])
    assert one_line(MemoryError(), inspect) == "the memory is full (fewer objects decide)"


def test_one_line() -> None:
    error = ValueError("first\n  second")
    error.add_note("a\nnote")
    assert one_line(error) == "first second; a note"
    assert one_line(OSError(errno.ENOENT, "No such file", "x.csv")) == "x.csv: No such file"
    assert one_line(OSError(errno.ENOSPC, "No space left")) == "No space left"
    assert one_line(KeyboardInterrupt()) == "KeyboardInterrupt"


def test_warnings_are_lines_each_once(capsys: pytest.CaptureFixture[str]) -> None:
    for talk, expected in ((Talk(), "warning: rank=3 is few\n"), (Talk(quiet=True), "")):
        with talk.listening():
            for _ in range(2):
                warnings.warn("rank=3\nis few", UserWarning, stacklevel=1)
                warnings.warn("a detail", DeprecationWarning, stacklevel=1)
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


# Advice


def flags_of_commands() -> dict[str, set[str]]:
    """The flags of every command."""
    return {name: set(one._option_string_actions) for name, one in commands_of(parser()).items()}


def test_every_flag_in_messages_and_in_the_manual_is_one() -> None:
    root = Path(kreinlearn.__file__).parents[2]
    known = set().union(*flags_of_commands().values()) | {"--help", "--version"}
    files = [*(root / "src/kreinlearn/cli").glob("*.py"), *(root / "docs").glob("*.rst")]
    seen = set()
    for file in files:
        for line in file.read_text(encoding="utf8").splitlines():
            if file.suffix == ".py" or "kreinlearn " in line:
                found = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+\b", line))
                assert found <= known, (file.name, line)
                seen |= found
    assert {"--target", "--drop-missing", "--learners"} <= seen


def test_commands_of_the_manual_can_be_called() -> None:
    root = Path(kreinlearn.__file__).parents[2]
    flags, tried = flags_of_commands(), 0
    texts = [
        *EPILOGS.values(),
        *(one.read_text(encoding="utf8") for one in (root / "docs").glob("*.rst")),
    ]
    texts.append((root / "README.md").read_text(encoding="utf8"))
    for line in "\n".join(texts).replace("\\\n", " ").splitlines():
        called = re.match(r"\s*\$? ?kreinlearn ([a-z]+) (.*)", line)
        if called and called[1] in flags:
            assert set(re.findall(r"(?<!\S)--[a-z][a-z-]*", called[2])) <= flags[called[1]], line
            tried += 1
    assert tried > 20


def test_help_fits_a_screen() -> None:
    for name, command in commands_of(parser()).items():
        lines = command.format_help().splitlines()
        assert len(lines) <= 44, (name, len(lines))
        assert max(map(len, lines)) <= 100, name


# Slips


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{'ab' * (i % 5)}c,{i},{i % 3},{'xy'[i % 2]}\n" for i in range(12))
    Path("firms.csv").write_text("firm,size,age,label\n" + rows)
    D = np.abs(np.subtract.outer(np.arange(12.0), np.arange(12.0)))
    np.save("D.npy", D)
    np.save("few.npy", D[:3, :7])
    Path("labels.csv").write_text("label\n" + "x\ny\n" * 6)


FIT = "fit firms.csv --target label -o m.krein"


@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("predict firms.csv firms.csv -o out.csv", "the model comes first, as in kreinlearn "
         "predict MODEL FILE: are the two swapped? kreinlearn fit writes a model"),
        ("fit frims.csv --target label -o m.krein", "no such file (did you mean 'firms.csv'?)"),
        ("predict firms.krein firms.csv -o out.csv", "(did you mean 'firms.csv'?); kreinlearn fit"),
        (f"{FIT} --column size,age", "repeat the flag for each column: --column size --column age"),
        (f"{FIT} --kernel levenstein", "levenshtein? kreinlearn kernels lists all of them"),
        (f"{FIT} --kernel foo", "there is no such kernel; kreinlearn kernels lists all of them"),
        (f"{FIT} --kernel gaussian --column firm", "holds text, and --kernel gaussian takes "
         "numbers: name columns of numbers with --column, or a kernel that takes such objects "
         "(levenshtein for texts;"),
    ],
)  # fmt: skip
def test_slips(words: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with contextlib.suppress(SystemExit):
        assert cli.main(words.split()) == 1
    assert message in capsys.readouterr().err


@pytest.mark.usefixtures("tables")
def test_a_column_that_is_named_for_predict_is_one_column(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.main(f"{FIT} --column size --column age --quiet".split()) == 0
    assert (
        cli.main(["predict", "m.krein", "firms.csv", "--column", "size,age", "-o", "out.csv"]) == 1
    )
    assert "--column size --column age" in capsys.readouterr().err


@pytest.mark.usefixtures("tables")
def test_a_matrix_with_other_columns_than_in_fit(capsys: pytest.CaptureFixture[str]) -> None:
    flags = "--labels labels.csv --kernel precomputed_dissimilarity -o m.krein --quiet"
    assert cli.main(["fit", "D.npy", *flags.split()]) == 0
    assert cli.main(["predict", "m.krein", "few.npy", "-o", "out.csv"]) == 1
    said = capsys.readouterr().err
    assert "X has 7 features, but KreinClassifier is expecting 12" in said
    assert "Pass the columns of the training objects, in their order" in said


@pytest.mark.usefixtures("tables")
def test_a_model_that_is_damaged_is_not_called_swapped(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(f"{FIT} --column size --quiet".split()) == 0
    Path("m.krein").write_bytes(Path("m.krein").read_bytes()[:-1])
    assert cli.main(["predict", "m.krein", "firms.csv", "-o", "out.csv"]) == 1
    said = capsys.readouterr().err
    assert "it was cut or changed" in said
    assert "swapped" not in said
