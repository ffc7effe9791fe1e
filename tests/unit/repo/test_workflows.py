"""The workflows call the Makefile and nothing else, with few rights and fixed actions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parents[3]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
SETTINGS = [*WORKFLOWS, ROOT / ".github" / "dependabot.yml", ROOT / ".readthedocs.yaml"]
ACTION = re.compile(r"uses: ([\w./-]+)@[0-9a-f]{40} # v\d+\.\d+\.\d+")
PLACEHOLDER = "ORGANISATION"

workflows = pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)


def parsed(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf8"))


def steps(path: Path) -> Iterator[dict[str, Any]]:
    for job in parsed(path)["jobs"].values():
        yield from job.get("steps", [])


def targets() -> set[str]:
    [line] = re.findall(r"^\.PHONY: (help .*)", (ROOT / "Makefile").read_text("utf8"), re.M)
    return set(line.split())


def test_there_are_workflows() -> None:
    assert [path.stem for path in WORKFLOWS] == ["checks", "release", "weekly"]


@workflows
def test_every_step_is_a_target_of_the_makefile(path: Path) -> None:
    commands = [step["run"] for step in steps(path) if "run" in step]
    called = [re.fullmatch(r"make (\w+)", command.strip()) for command in commands]
    assert all(called), commands
    assert {match[1] for match in called if match} <= targets()
    assert bool(commands) == (path.stem != "release")  # which builds nothing but by the checks


def test_all_that_a_release_needs_is_called() -> None:
    commands = {step.get("run") for path in WORKFLOWS for step in steps(path)}
    wanted = (
        "lint",
        "test",
        "versions",
        "docs",
        "manual",
        "dist",
        "smoke",
        "workflows",
        "portable",
    )
    assert {f"make {target}" for target in wanted} <= commands


@workflows
def test_actions_are_fixed_to_a_commit_whose_version_is_named(path: Path) -> None:
    lines = re.findall(r"uses: .*", path.read_text(encoding="utf8"))
    others = [line for line in lines if not line.startswith("uses: ./.github/workflows/")]
    assert others
    assert [line for line in others if not ACTION.fullmatch(line)] == []


def test_an_action_has_one_version() -> None:
    text = "\n".join(path.read_text(encoding="utf8") for path in WORKFLOWS)
    used = {found[0] for found in re.finditer(ACTION, text)}
    names = [ACTION.fullmatch(one)[1] for one in used]  # type: ignore[index]
    assert len(names) == len(set(names)) > 3


@workflows
def test_rights_are_few_and_runs_end(path: Path) -> None:
    workflow = parsed(path)
    assert workflow["permissions"] == {"contents": "read"}
    assert "group" in workflow["concurrency"]
    for name, job in workflow["jobs"].items():
        assert job.get("permissions", {}) == ({"id-token": "write"} if name == "publish" else {})
        assert "uses" in job or job["timeout-minutes"] <= 180


def test_what_is_published_was_checked_and_tried() -> None:
    jobs = parsed(ROOT / ".github" / "workflows" / "release.yml")["jobs"]
    assert jobs["publish"]["needs"] == "checks"
    assert jobs["checks"]["uses"] == "./.github/workflows/checks.yml"
    checked = parsed(ROOT / ".github" / "workflows" / "checks.yml")["jobs"]
    assert {"lint", "test", "versions", "docs", "dist", "smoke"} == set(checked)


def test_the_matrix_has_the_pythons_of_the_project() -> None:
    from tests.versions import PYTHONS

    matrix = parsed(WORKFLOWS[0])["jobs"]["test"]["strategy"]["matrix"]
    assert matrix["python"] == [*PYTHONS]
    assert [system.partition("-")[0] for system in matrix["os"]] == ["ubuntu", "macos", "windows"]


@pytest.mark.parametrize("path", SETTINGS, ids=lambda path: path.name)
def test_no_registry_is_named_by_its_address(path: Path) -> None:
    assert re.findall(r"://|repository-url|index-url", path.read_text(encoding="utf8")) == []


def test_the_placeholder_stands_in_one_place() -> None:
    here = [path for path in ROOT.iterdir() if path.suffix in (".md", ".toml", ".cff", ".yaml")]
    here += [*(ROOT / ".github").rglob("*.*"), *(ROOT / "docs").glob("*.*")]
    naming = [path.name for path in here if PLACEHOLDER in path.read_text(encoding="utf8")]
    assert naming == ["pyproject.toml"]
