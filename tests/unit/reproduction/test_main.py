"""The command line of the reproduction, converters, and what it may import."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io

import reproduction
from reproduction import __main__ as commands
from reproduction.__main__ import main
from reproduction.scale import ALL, NAMES, QUICK
from reproduction.tasks import JournalError

FOLDER = Path(reproduction.__file__).parent


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_only_public_names_of_kreinlearn_are_imported(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("kreinlearn"):
            module = import_module(str(node.module))
            names = {alias.name for alias in node.names}
            documented = getattr(module, "__all__", None) or [
                name for name in vars(module) if not name.startswith("_") and name.islower()
            ]
            assert names <= set(documented), node.module
            assert str(node.module).count(".") <= 1


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What reproduce was called with."""
    seen: list[tuple[Any, ...]] = []

    def noted(*arguments: Any, **options: Any) -> int:
        seen.append((*arguments, options))
        return 0

    monkeypatch.setattr(commands, "reproduce", noted)
    return seen


@pytest.mark.parametrize(
    ("words", "names", "scale"),
    [
        ("all", list(NAMES), ALL),
        ("quick", list(NAMES), QUICK),
        ("flops table1", ["flops", "table1"], ALL),
        ("flops --quick", ["flops"], QUICK),
    ],
)
def test_what_is_reproduced(
    calls: list[tuple[Any, ...]], words: str, names: list[str], scale: Any
) -> None:
    assert main(words.split()) == 0
    command = f"python -m reproduction {words}"
    options = {"fresh": False, "report_only": False, "command": command}
    assert calls == [(names, scale, Path("kreinlearn-paper"), None, options)]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "required: what"),
        ("tabel1", "invalid choice: 'tabel1'"),
        ("all --jobs 0", "--jobs 0: it must be 1 or more"),
        ("all --out x", "unrecognized arguments"),
        ("convert a.mat b.npy", "the target ends in .npz"),
    ],
)
def test_wrong_words_give_2(
    words: str, message: str, calls: list[tuple[Any, ...]], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit:
        main(words.split())
    assert exit.value.code == 2
    assert message in capsys.readouterr().err
    assert calls == []


def test_a_data_folder_that_is_not_there_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KREINLEARN_DATA", str(tmp_path / "gone"))
    with pytest.raises(SystemExit):
        main(["all"])
    assert "correct or unset it" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "status"),
    [(JournalError("not ours"), 1), (PermissionError(13, "no"), 1), (KeyboardInterrupt(), 130)],
)
def test_what_may_happen_is_one_line(
    error: BaseException,
    status: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fails(*arguments: Any, **options: Any) -> int:
        raise error

    monkeypatch.setattr(commands, "reproduce", fails)
    assert main(["all"]) == status
    assert capsys.readouterr().err.count("\n") == 1


# Converters


def test_a_mat_file_becomes_what_the_data_folder_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    D, y = np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0))), np.array([1, 1, 2, 2])
    scipy.io.savemat(tmp_path / "a.mat", {"dis": D, "labels": y[:, None], "cells": [{"a": 1}, "b"]})
    (tmp_path / "dissimilarity").mkdir()
    target = tmp_path / "dissimilarity" / "a.npz"
    words = ["convert", str(tmp_path / "a.mat"), str(target)]
    assert main([*words, "D=dis", "y=labels"]) == 0
    assert capsys.readouterr().out == "D: 4 x 4\ny: 4\n"
    monkeypatch.setenv("KREINLEARN_DATA", str(tmp_path))
    stored = import_module("kreinlearn.datasets").load_dataset("dissimilarity/a")
    np.testing.assert_array_equal(stored.D, D)
    np.testing.assert_array_equal(stored.y, y)
    for more, message in (([], "cells is no array"), (["D=d"], "has no variable d; there are")):
        assert main([*words, *more]) == 1
        assert message in capsys.readouterr().err
    (tmp_path / "a.mat").write_bytes(b"no MATLAB file" * 20)
    assert main(words) == 1
    assert "save it with -v7" in capsys.readouterr().err
