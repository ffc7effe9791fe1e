"""The command line: what it takes, what it refuses, in one line and with which status."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import kreinlearn
from kreinlearn import cli
from kreinlearn.cli import reproduce as its_module
from kreinlearn.paper.scale import ALL, NAMES, QUICK
from kreinlearn.paper.tasks import JournalError

COMMANDS = ("inspect", "fit", "predict", "evaluate", "approximate", "cluster")


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What reproduce was called with."""
    seen: list[tuple[Any, ...]] = []

    def reproduce(*arguments: Any, **options: Any) -> int:
        seen.append((*arguments, options))
        return 0

    monkeypatch.setattr(its_module, "reproduce", reproduce)
    return seen


@pytest.mark.parametrize(
    ("words", "names", "scale", "command"),
    [
        ("all", list(NAMES), ALL, "kreinlearn reproduce all"),
        ("quick", list(NAMES), QUICK, "kreinlearn reproduce quick"),
        ("all --quick", list(NAMES), QUICK, "kreinlearn reproduce all --quick"),
        ("table1", ["table1"], ALL, "kreinlearn reproduce table1"),
        ("flops table1", ["flops", "table1"], ALL, "kreinlearn reproduce flops table1"),
        ("flops --quick", ["flops"], QUICK, "kreinlearn reproduce flops --quick"),
    ],
)
def test_what_is_reproduced(
    calls: list[tuple[Any, ...]], words: str, names: list[str], scale: Any, command: str
) -> None:
    assert cli.main(["reproduce", *words.split()]) == 0
    options = {"fresh": False, "report_only": False, "command": command}
    assert calls == [(names, scale, Path("kreinlearn-paper"), None, options)]


def test_options_are_passed_on(calls: list[tuple[Any, ...]], tmp_path: Path) -> None:
    cli.main(["reproduce", "all", "--output", str(tmp_path), "--jobs", "3", "--fresh"])
    cli.main(["reproduce", "all", "--report-only"])
    assert calls[0][2:4] == (tmp_path, 3)
    assert calls[0][4]["command"] == "kreinlearn reproduce all"  # no folder of this machine
    assert [call[4]["fresh"] for call in calls] == [True, False]
    assert [call[4]["report_only"] for call in calls] == [False, True]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "required: command"),
        ("reproduce", "required: what"),
        ("reproduce tabel1", "invalid choice: 'tabel1' (choose from"),
        ("reproduce quick table1", "for some: reproduce table1 --quick"),
        ("reproduce all --jobs 0", "--jobs 0: it must be 1 or more"),
        ("reproduce all --jobs many", "invalid int value"),
        ("reproduce all --out x", "there is no flag --out; did you mean --output?"),
        ("reproduce all --fresh --report-only", "give one of them"),
        ("reproduce all --output FILE", "it is a file"),
        ("demo --n 5", "kreinlearn demo: error: --n 5: from 20 to 5000"),
        ("demo more", "kreinlearn demo: error: unrecognized arguments: more"),
        ("--vers", "kreinlearn: error:"),
        (
            "predict m.krein FILE --probabilities False",
            "unrecognized arguments: False; --probabilities takes no value",
        ),
        ("predict m.krein FILE --id name more", "unrecognized arguments: more (see"),
        ("kernels --objects text", "there is no kind of objects 'text'; did you mean texts?"),
        ("kernels --objects zzz", "there are texts, series, vectors"),
        (
            "fit FILE --target y -o m.krein --param class_wieght=balanced",
            "rank, scheme; did you mean class_weight?",
        ),
    ],
)
def test_wrong_words_give_2(
    words: str,
    message: str,
    calls: list[tuple[Any, ...]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(SystemExit) as exit:
        cli.main(words.replace("FILE", str(file)).split())
    assert exit.value.code == 2
    assert message in capsys.readouterr().err
    assert calls == []


def test_a_data_folder_that_is_not_there_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KREINLEARN_DATA", str(tmp_path / "gone"))
    with pytest.raises(SystemExit) as exit:
        cli.main(["reproduce", "all"])
    assert exit.value.code == 2
    assert "correct or unset it" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (JournalError("the journal is not ours"), 1, "kreinlearn: the journal is not ours"),
        (PermissionError(13, "Permission denied", "x"), 1,
         "kreinlearn: x: Permission denied"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)  # fmt: skip
def test_what_may_happen_is_one_line(
    error: BaseException,
    status: int,
    line: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def reproduce(*arguments: Any, **options: Any) -> int:
        raise error

    monkeypatch.setattr(its_module, "reproduce", reproduce)
    assert cli.main(["reproduce", "all"]) == status
    assert capsys.readouterr().err == line + "\n"


def test_a_folder_that_cannot_be_made_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    folder = str(tmp_path / "file" / "below")
    assert cli.main(["reproduce", "indefiniteness", "--quick", "--output", folder]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"kreinlearn: {folder}: Not a directory")
    assert error.count("\n") == 1


def test_help_has_every_part_and_examples(capsys: pytest.CaptureFixture[str]) -> None:
    for words, expected in (
        (["--help"], [*COMMANDS, "demo", "reproduce"]),
        *(([name, "--help"], ["--force", "--debug"]) for name in COMMANDS),
        (["reproduce", "--help"], NAMES),
    ):
        with pytest.raises(SystemExit) as exit:
            cli.main(words)
        text = capsys.readouterr().out
        assert exit.value.code == 0
        assert "examples:" in text
        assert all(word in text for word in expected)
    assert "kreinlearn-paper in the current" in text


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["--version"])
    assert capsys.readouterr().out == f"kreinlearn {kreinlearn.__version__}\n"


def test_the_module_is_the_command_and_a_closed_pipe_is_no_traceback() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "kreinlearn", "--help"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": ""},  # so that it is the last flush that fails
    )
    assert process.stdout is not None
    process.stdout.close()
    _, error = process.communicate(timeout=240)
    assert process.returncode == 1
    assert error == b""
