"""Figures of a test are closed after it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def no_figure_is_left() -> Iterator[None]:
    yield
    from matplotlib import pyplot

    pyplot.close("all")
