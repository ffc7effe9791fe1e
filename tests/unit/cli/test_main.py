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
from kreinlearn.cli import kernels as its_module

COMMANDS = ("inspect", "fit", "predict", "evaluate", "approximate", "cluster")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "required: command"),
        ("inspect FILE --out x", "there is no flag --out"),
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
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(SystemExit) as exit:
        cli.main(words.replace("FILE", str(file)).split())
    assert exit.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (ValueError("the kernel is not ours"), 1, "kreinlearn: the kernel is not ours"),
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
    def run(*arguments: Any) -> int:
        raise error

    monkeypatch.setattr(its_module, "run", run)
    assert cli.main(["kernels"]) == status
    assert capsys.readouterr().err == line + "\n"


def test_help_has_every_command_and_examples(capsys: pytest.CaptureFixture[str]) -> None:
    for words, expected in (
        (["--help"], [*COMMANDS, "kernels"]),
        *(([name, "--help"], ["--force", "--quiet"]) for name in COMMANDS),
    ):
        with pytest.raises(SystemExit) as exit:
            cli.main(words)
        text = capsys.readouterr().out
        assert exit.value.code == 0
        assert "examples:" in text
        assert all(word in text for word in expected)


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
