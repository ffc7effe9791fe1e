"""The benchmark of groups runs on made data."""

from __future__ import annotations

import pytest

from benchmarks import clusters


def test_the_benchmark_runs_in_small(capsys: pytest.CaptureFixture[str]) -> None:
    assert clusters.main(["--quick"]) == 0
    out = capsys.readouterr().out
    assert "| noisy strings | 80 | 4 |" in out
    assert "2,000 strings" in out
