"""What ``make portable`` counts, and the order of the tests that it asks for."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import pytest

from tests.conftest import shuffled
from tests.portable import (
    BY_DEFAULT,
    NOTHING_TO_RUN,
    SETTINGS,
    counted,
    files_of,
    main,
    missing,
    named,
    table,
)

SUMMARY = """..F.
FAILED tests/unit/a.py::test_one - assert 1 == 2
ERROR tests/unit/b.py - no module
1 failed, 90 passed, 3 skipped, 2 xfailed, 1 warning, 2 errors in 61.25s (0:01:01)
"""


def test_counts_of_the_last_line() -> None:
    outcome = counted(SUMMARY, 1)
    kinds = ("passed", "failed", "error", "skipped", "xfailed", "xpassed")
    assert [outcome.counts[kind] for kind in kinds] == [90, 1, 2, 3, 2, 0]
    assert [line.split()[1] for line in outcome.failing] == [
        "tests/unit/a.py::test_one",
        "tests/unit/b.py",
    ]
    assert outcome.completed
    assert not outcome.good


def test_what_is_good() -> None:
    assert counted("90 passed in 3.1s\n", 0).good
    assert counted("no tests ran in 0.1s\n", NOTHING_TO_RUN).good
    assert not counted("1 error in 3.1s\n", 1).good
    assert not counted("90 passed in 3.1s\n", 2).good  # interrupted
    assert not counted("Illegal instruction\n", -4).good


def test_a_setting_that_the_processor_cannot_run_is_said_to_be_skipped() -> None:
    assert all(not missing(SETTINGS[name]) for name in ("numba-generic", "order-1", "alone"))
    because = "skipped: the processor has no AVX512_SKX"
    rows = table({"SkylakeX": because, "order-1": counted(SUMMARY, 1)}).splitlines()
    assert rows[2].startswith(f"| SkylakeX | {because} |")
    assert rows[3] == "| order-1 | 90 | 1 | 2 | 3 | 2 | 0 | 0.0 |"
    assert len({row.count("|") for row in rows}) == 1


def test_an_unknown_setting_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["Prescot"])
    assert "no setting 'Prescot'; there are Prescott, " in capsys.readouterr().err


def test_the_runs_by_default_have_every_setting_once() -> None:
    assert sorted("+".join(BY_DEFAULT).split("+")) == sorted(SETTINGS)
    one = named("Prescott+numba-generic+order-1")
    assert one.environment["OPENBLAS_CORETYPE"] == "Prescott"
    assert one.environment["NUMBA_CPU_NAME"] == "generic"
    assert one.arguments == ("--dist", "load", "--order-seed", "1")
    assert named("Haswell+alone").file_by_file


def test_files_with_tests_or_examples() -> None:
    here = Path(__file__).relative_to(Path(__file__).parents[3])
    assert here.as_posix() in files_of(["tests/unit/repo"])
    assert list(files_of(["tests/unit/sums/__init__.py"])) == []
    assert list(files_of(["src/kreinlearn/datasets.py"])) == ["src/kreinlearn/datasets.py"]


def test_orders_by_seed(request: pytest.FixtureRequest) -> None:
    """The same tests, in another order, with the tests of a file next to each other."""
    items = [*request.session.items]
    one, again, two = (shuffled(items, seed) for seed in (1, 1, 2))
    assert one == again
    assert one != two
    assert set(one) == set(items)
    files = [file for file, _ in groupby(one, key=lambda item: item.path)]
    assert len(files) == len(set(files))
