"""Every measured page says when, at which commit and by which command it was made."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from benchmarks import tables

ROOT = Path(__file__).parents[3]
PAGES = sorted((ROOT / "benchmarks" / "results").glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_has_a_date_a_commit_and_a_command(page: Path) -> None:
    head = page.read_text(encoding="utf8")[:1500]
    assert re.search(r"\b20\d\d-\d\d-\d\d\b", head)
    assert re.search(rf"`python -m benchmarks\.{page.stem}\b", head)
    assert re.search(r"\b[Cc]ommit:? .*\b[0-9a-f]{7,40}\b", head)


def git(folder: Path, *words: str) -> str:
    author = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
    command = ["git", "-C", str(folder), *author, *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_the_commit_is_named_and_changes_beside_the_results_are_told(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    results = tmp_path / "benchmarks" / "results"
    results.mkdir(parents=True)
    (tmp_path / "code.py").write_text("1\n", encoding="utf8")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "first")
    short = git(tmp_path, "rev-parse", "--short", "HEAD")
    assert tables.commit(tmp_path / "benchmarks") == short
    (results / "page.md").write_text("measured\n", encoding="utf8")
    assert tables.commit(tmp_path / "benchmarks") == short
    (tmp_path / "code.py").write_text("2\n", encoding="utf8")
    assert tables.commit(tmp_path / "benchmarks") == f"{short} with changes"


def test_without_a_repository_the_commit_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert tables.commit(tmp_path).startswith("unknown")


def test_pages_are_written_with_the_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "commit", lambda: "1234567 with changes")
    tables.write_markdown(tmp_path / "page.md", "Title", "python -m benchmarks.page", [])
    lines = (tmp_path / "page.md").read_text(encoding="utf8").splitlines()
    assert lines[2].startswith("- date: ")
    assert lines[3] == "- commit: 1234567 with changes"
    assert "- command: `python -m benchmarks.page`" in lines
