"""Every measured page says when, at which commit and by which command it was made."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from benchmarks import tables
from reproduction.report import commit

ROOT = Path(__file__).parents[3]
PAGES = sorted((ROOT / "benchmarks" / "results").glob("*.md"))
HASH = "[0-9a-f]{7,40}"
COMMIT = rf"^- commit: {HASH}(, {HASH})*$"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_has_a_date_a_commit_and_a_command(page: Path) -> None:
    head = page.read_text(encoding="utf8")[:1500]
    assert re.search(r"^- date: 20\d\d-\d\d-\d\d$", head, re.MULTILINE)
    assert re.search(rf"^- command: `python -m benchmarks\.{page.stem}\b", head, re.MULTILINE)
    assert re.search(COMMIT, head, re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_commits_of_a_page_are_in_the_history(page: Path) -> None:
    if not (ROOT / ".git").exists() or git(ROOT, "rev-parse", "--is-shallow-repository") == "true":
        pytest.skip("not all commits are here")
    line = re.search(COMMIT, page.read_text(encoding="utf8")[:1500], re.MULTILINE)
    assert line is not None
    for one in re.findall(HASH, line[0].partition(":")[2]):
        git(ROOT, "merge-base", "--is-ancestor", one, "HEAD")  # raises an error if it is not


def git(folder: Path, *words: str) -> str:
    author = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
    command = ["git", "-C", str(folder), *author, *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_the_commit_is_named_and_changes_beside_the_results_are_told(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    results, code = tmp_path / "benchmarks" / "results", tmp_path / "src" / "code.py"
    results.mkdir(parents=True)
    code.parent.mkdir()
    code.write_text("1\n", encoding="utf8")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "first")
    short = git(tmp_path, "rev-parse", "--short", "HEAD")
    of_code = commit.__wrapped__  # each time anew
    assert of_code(tmp_path) == short
    (results / "page.md").write_text("measured\n", encoding="utf8")
    (tmp_path / "journal.jsonl").write_text("{}\n", encoding="utf8")
    assert of_code(tmp_path) == short
    code.write_text("2\n", encoding="utf8")
    assert of_code(tmp_path) == f"{short} with changes"
    installed = tmp_path / ".venv"
    installed.mkdir()
    assert of_code(installed) == ""  # a package in the folder of another project


def test_without_a_repository_the_commit_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert commit.__wrapped__(tmp_path) == ""


def test_figures_have_the_commits_that_measured_them() -> None:
    lines = tables.about("python -m benchmarks.page", {"2345678", "1234567"}).splitlines()
    assert lines[1] == "- commit: 1234567, 2345678"
    lines = tables.about("python -m benchmarks.page", {"", "1234567"}).splitlines()
    assert lines[1] == "- commit: unknown, 1234567"


def test_pages_are_written_with_the_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "COMMIT", "1234567 with changes")
    tables.write_markdown(tmp_path / "page.md", "Title", "python -m benchmarks.page", [])
    lines = (tmp_path / "page.md").read_text(encoding="utf8").splitlines()
    assert lines[2].startswith("- date: ")
    assert lines[3] == "- commit: 1234567 with changes"
    assert "- command: `python -m benchmarks.page`" in lines
