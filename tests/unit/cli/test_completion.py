"""Completion: bash takes the script, and completes; without shtab its name is said."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kreinlearn import cli
from kreinlearn.cli.parser import commands_of, parser
from tests.unit.cli.commands import run

HAS_BASH = pytest.mark.skipif(
    os.name != "posix" or shutil.which("bash") is None,
    reason="no bash here, or that of Windows, which has other paths",
)


@pytest.fixture
def script(capsys: pytest.CaptureFixture[str]) -> str:
    pytest.importorskip("shtab")
    run("completion", "bash")
    return capsys.readouterr().out


def completed(script: str, words: str, folder: Path) -> list[str]:
    """What the last of the words may become."""
    given = " ".join(f"'{word}'" for word in words.split(" "))
    code = f"""{script}
cd '{folder}'; COMP_WORDS=({given}); COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
_shtab_kreinlearn; printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, timeout=60)
    return sorted(done.stdout.split())


@HAS_BASH
def test_bash_completes(script: str, tmp_path: Path) -> None:
    (tmp_path / "words.csv").touch()
    for words, expected in {
        "kreinlearn ev": ["evaluate"],
        "kreinlearn fit --kern": ["--kernel", "--kernel-param"],
        "kreinlearn fit words.csv --kernel leven": ["levenshtein"],
        "kreinlearn fit words.csv --estimator sp": ["spectrum-svc"],
        "kreinlearn evaluate words.csv --task r": ["regression"],
        "kreinlearn fit wo": ["words.csv"],
        "kreinlearn fit words.csv --labels wo": ["words.csv"],
        "kreinlearn completion f": ["fish"],
    }.items():
        assert completed(script, words, tmp_path) == expected, words


def test_every_flag_is_in_the_script_of_every_shell(
    script: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run("completion", "zsh")
    for text in (script, capsys.readouterr().out):
        for command in commands_of(parser()).values():
            assert [flag for flag in command._option_string_actions if flag not in text] == []


def test_without_shtab_it_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert cli.main(["completion", "bash"]) == 1
    assert 'pip install "kreinlearn[completion]"' in capsys.readouterr().err
