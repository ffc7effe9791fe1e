"""What ``make versions`` runs, and what it counts."""

from __future__ import annotations

import pytest

from tests import versions

REPORT = """<testsuites>
<testsuite tests="10" failures="2" errors="1" skipped="3"/>
<testsuite tests="4" failures="0" errors="0" skipped="0"/>
</testsuites>"""


@pytest.mark.parametrize(
    ("there", "options", "expected"),
    [
        (
            ["3.11", "3.12", "3.13"],
            {},
            [("3.11", "oldest"), ("3.13", "newest"), ("3.13", "unbound")],
        ),
        (["3.11"], {}, [("3.11", "oldest"), ("3.11", "newest"), ("3.11", "unbound")]),
        (["3.12", "3.13"], {}, [("3.13", "newest"), ("3.13", "unbound")]),
        (
            ["3.11", "3.12", "3.13"],
            {"pythons": ["3.11", "3.12"], "which": ["unbound"]},
            [("3.11", "unbound"), ("3.12", "unbound")],
        ),
        (
            ["3.11", "3.12", "3.13"],
            {"pythons": ["3.11", "3.12"]},
            [
                *(("3.11", which) for which in ("oldest", "newest", "unbound")),
                *(("3.12", which) for which in ("newest", "unbound")),
            ],
        ),
        (["3.12", "3.13"], {"which": ["oldest"]}, [("3.12", "oldest"), ("3.13", "oldest")]),
        (["3.12"], {"pythons": ["3.13"]}, []),
    ],
)
def test_the_ends_or_what_is_named(
    there: list[str],
    options: dict[str, list[str]],
    expected: list[tuple[str, str]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(versions, "found", lambda python: "path" if python in there else None)
    found = [(one.python, one.which) for one in versions.settings(**options)]
    assert found == expected
    absent = [p for p in options.get("pythons", versions.PYTHONS) if p not in there]
    said = capsys.readouterr().out
    assert said.count("was not found") == len(absent)
    assert all(f"Python {python} was not found" in said for python in absent)


def test_unbound_versions_have_no_extra_that_holds_others_back(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(versions, "resolved", lambda *args, **options: {})
    extras = versions.extras_with_wheels("uv", versions.Setting("3.13", "path", "newest"))
    assert "compare" in extras
    unbound = versions.extras_with_wheels("uv", versions.Setting("3.13", "path", "unbound"))
    assert unbound == [extra for extra in extras if extra != "compare"]
    assert "The extra compare holds others back" in capsys.readouterr().out


def test_errors_count_as_failures() -> None:
    assert versions.counts_of(REPORT) == (8, 3, 3)
