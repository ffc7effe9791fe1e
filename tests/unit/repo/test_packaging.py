"""The project's description, its extras and its locks agree with one another."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import kreinlearn

ROOT = Path(__file__).parents[3]
LOCKS = ("demo", "test")
FIELDS = {"graphs", "shapes", "bio", "scale", "plot", "completion"}  # extras for users
CORE = {"joblib", "numba", "numpy", "rapidfuzz", "rich", "scikit-learn", "scipy", "threadpoolctl"}


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    with open(ROOT / "pyproject.toml", "rb") as file:
        return tomllib.load(file)["project"]


def lock_text(name: str) -> str:
    return (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf8")


def entries(text: str) -> list[tuple[Requirement, list[str]]]:
    """Requirements of a lock with what follows each: its hashes, or what else stands there."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ").splitlines()
    halves = [re.split(r"\s+(?=--)", line.strip()) for line in joined]
    return [(Requirement(head), rest) for head, *rest in halves]


def without_hashes(text: str) -> list[str]:
    """Names of the requirements that are not pinned with one sha256 or more and nothing else."""

    def held(requirement: Requirement, rest: list[str]) -> bool:
        hashes = [re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", item) for item in rest]
        pins = [spec.operator for spec in requirement.specifier]
        return bool(hashes) and all(hashes) and pins == ["=="] and requirement.url is None

    return [requirement.name for requirement, rest in entries(text) if not held(requirement, rest)]


def addresses(text: str) -> list[str]:
    """Lines that name an index, a link folder or any address."""
    pattern = r"://|file:|--?(index-url|extra-index-url|find-links|trusted-host)|^-[if]\b|@ "
    return [line for line in text.splitlines() if re.search(pattern, line)]


def wanted(project: dict[str, Any], extras: set[str]) -> list[Requirement]:
    groups = [project["optional-dependencies"][extra] for extra in extras]
    return [Requirement(text) for group in [project["dependencies"], *groups] for text in group]


@pytest.mark.parametrize("name", [*LOCKS, "docs", "release"])
def test_locks_are_hashed_and_name_no_address(name: str) -> None:
    text = lock_text(name)
    assert len(entries(text)) > 20
    assert without_hashes(text) == []
    assert addresses(text) == []


def test_a_bad_lock_is_found() -> None:
    good = f"numpy==2.3.5 ; python_version < '3.15' \\\n    --hash=sha256:{'0' * 64}\n"
    assert without_hashes(good) == addresses(good) == []
    assert without_hashes(good + "scipy==1.17.1\n") == ["scipy"]
    assert without_hashes(good.replace("==", ">=")) == ["numpy"]
    assert without_hashes(good.replace("sha256", "md5")) == ["numpy"]
    for line in ("--index-url https://index.example", "-f wheels", "a @ file:///wheels/a.whl"):
        assert addresses(good + line) == [line]


@pytest.mark.parametrize(
    ("name", "extras"), [("demo", {"plot"}), ("test", {"test", "compare", *FIELDS})]
)
def test_a_lock_holds_what_the_project_asks_for(
    project: dict[str, Any], name: str, extras: set[str]
) -> None:
    pins: dict[str, list[str]] = {}
    for requirement, _ in entries(lock_text(name)):
        version = str(requirement.specifier).removeprefix("==")
        pins.setdefault(canonicalize_name(requirement.name), []).append(version)
    for requirement in wanted(project, extras):
        versions = pins.get(canonicalize_name(requirement.name), [])
        assert versions, f"{requirement} is not in requirements/{name}.txt: run make lock"
        assert all(requirement.specifier.contains(version) for version in versions), requirement


def test_the_demo_is_locked_within_the_tests() -> None:
    demo, test = ({str(requirement) for requirement, _ in entries(lock_text(n))} for n in LOCKS)
    assert demo < test


@pytest.mark.parametrize("other", [*LOCKS, "docs"])
def test_what_a_release_needs_changes_no_package(other: str) -> None:
    """All locks are installed into the same folder, so a package has the same versions in both."""

    def pins(lock: str) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for requirement, _ in entries(lock_text(lock)):
            found.setdefault(requirement.name, set()).add(str(requirement.specifier))
        return found

    release, theirs = pins("release"), pins(other)
    shared = release.keys() & theirs.keys()
    assert "rich" in shared
    assert {name for name in shared if release[name] != theirs[name]} == set()


def test_core_dependencies_are_those_of_the_design(project: dict[str, Any]) -> None:
    core = [Requirement(text) for text in project["dependencies"]]
    assert {requirement.name for requirement in core} == CORE


def test_every_dependency_is_bounded(project: dict[str, Any]) -> None:
    for requirement in wanted(project, {*FIELDS, "test", "compare", "docs"}):
        assert {spec.operator for spec in requirement.specifier} == {">=", "<"}, requirement


def test_every_extra_exists_and_all_is_their_union(project: dict[str, Any]) -> None:
    extras = project["optional-dependencies"]
    assert set(extras) == FIELDS | {"all", "test", "compare", "docs"}
    [union] = [Requirement(text) for text in extras["all"]]
    assert union.name == project["name"] == "kreinlearn"
    assert union.extras == FIELDS
    assert not union.specifier
    assert union.marker is None


def test_the_licence_and_the_python_version_are_stated(project: dict[str, Any]) -> None:
    assert project["license"] == "BSD-3-Clause"
    assert (ROOT / "LICENSE").read_text(encoding="utf8").startswith("BSD 3-Clause License")
    assert project["requires-python"] == ">=3.11"
    assert (ROOT / "src" / "kreinlearn" / "py.typed").exists()


def test_the_citation_has_the_version_of_the_package() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf8")
    assert f"\nversion: {kreinlearn.__version__}\n" in citation


def test_the_changelog_has_a_section_for_changed_models() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf8")
    for release in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        assert "\n### Changed models\n" in release, release.splitlines()[0]


SAYS_UNRELEASED = re.compile(
    r"[Oo]nce it is released|[Nn]othing is released|the first release,|pip install \"?\."
)
RELEASED = re.compile(r"^## \[\d", re.MULTILINE)  # the heading of a release in the changelog


def test_only_before_a_release_it_is_said_that_there_is_none() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs" / name for name in ("start.rst", "faq.rst"))]
    said = [page.name for page in pages if SAYS_UNRELEASED.search(page.read_text(encoding="utf8"))]
    released = RELEASED.search((ROOT / "CHANGELOG.md").read_text(encoding="utf8"))
    assert bool(said) != bool(released), said
    assert released or ".dev" in kreinlearn.__version__


@pytest.mark.parametrize(
    ("text", "unreleased"),
    [("Nothing is released yet", True), ('pip install ".[bio]"', True),
     ("$ pip install .", True), ('pip install "kreinlearn[bio]"', False)],
)  # fmt: skip
def test_what_says_that_nothing_is_released(text: str, unreleased: bool) -> None:
    assert bool(SAYS_UNRELEASED.search(text)) == unreleased
    assert RELEASED.search("# Changelog\n\n## [0.1.0] - 2027-01-01\n")
    assert not RELEASED.search("# Changelog\n\n## [Unreleased]\n")
