"""Completion: bash takes the script, and completes."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from kreinlearn import cli
from kreinlearn.cli.completion import bash, commands, fish, zsh

HAS_BASH = pytest.mark.skipif(
    os.name != "posix" or shutil.which("bash") is None,
    reason="no bash here, or that of Windows, which has other paths",
)


@pytest.fixture(scope="module")
def script() -> str:
    return bash(commands())


def completed(script: str, words: str, folder: Path) -> list[str]:
    """What the last of the words may become."""
    given = " ".join(f"'{word}'" for word in words.split(" "))
    code = f"""{script}
cd '{folder}'; COMP_WORDS=({given}); COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
_kreinlearn; printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    return done.stdout.split()


@HAS_BASH
def test_bash_accepts_it(script: str, tmp_path: Path) -> None:
    path = tmp_path / "script"
    for text in (script, zsh(commands())):
        path.write_text(text)
        assert subprocess.run(["bash", "-n", path], timeout=60).returncode == 0


@HAS_BASH
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("kreinlearn ev", ["evaluate"]),
        ("kreinlearn fit --kern", ["--kernel", "--kernel-param"]),
        ("kreinlearn fit words.csv --kernel leven", ["levenshtein"]),
        ("kreinlearn fit words.csv --estimator sp", ["spectrum-svc"]),
        ("kreinlearn evaluate words.csv --task r", ["regression"]),
        ("kreinlearn fit wo", ["words.csv"]),
        ("kreinlearn fit words.csv -o wo", ["words.csv"]),
        ("kreinlearn fit words.csv --labels wo", ["words.csv"]),
        ("kreinlearn fit words.csv --target wo", []),
        ("kreinlearn fit --quiet wo", ["words.csv"]),
        ("kreinlearn completion f", ["fish"]),
        ("kreinlearn --v", ["--version"]),
    ],
)
def test_bash_completes(script: str, words: str, expected: list[str], tmp_path: Path) -> None:
    (tmp_path / "words.csv").touch()
    assert completed(script, words, tmp_path) == expected


def test_every_command_and_flag_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    found = {command.name: command for command in commands()}
    assert set(found) == {
        "inspect", "fit", "predict", "evaluate", "approximate", "cluster", "kernels", "completion",
    }  # fmt: skip
    script = fish(list(found.values()))
    for command in found.values():
        with pytest.raises(SystemExit):
            cli.main([command.name, "--help"])
        text = capsys.readouterr().out
        assert all(flag in text for flag in command.flags)
        for flag in command.flags:
            dash = f"-l {flag[2:]} " if flag.startswith("--") else f"-s {flag[1:]} "
            assert f"seen_subcommand_from {command.name}' {dash}" in script
    assert script.replace("\\'", "").count("'") % 2 == 0
    assert cli.main(["completion", "bash"]) == 0
    assert capsys.readouterr().out == bash(commands())
