"""Progress: silent unless asked for and on a terminal; there it counts rows to the end."""

from __future__ import annotations

import io
import re
import sys
import threading
from contextlib import closing

import numpy as np
import pytest

from kreinlearn.progress import shown

N = 12_345
SPANS = [(0, 2000), (2500, 4000), (4000, 12_000)]  # rows 2000..2499 are known


class Terminal(io.StringIO):
    def isatty(self):
        return True


def open_terminal(monkeypatch):
    """Stderr from here on; not in a fixture, because pytest puts its own there for each call."""
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(sys, "stderr", Terminal())
    return sys.stderr


def blocks():
    return [(np.arange(*span), f"objects {span}") for span in SPANS]


@pytest.mark.parametrize("verbose", [0, False])
def test_verbose_0_says_nothing_on_a_terminal(verbose, monkeypatch):
    terminal = open_terminal(monkeypatch)
    assert len(list(shown(N, "kernel rows", verbose)(blocks()))) == 3
    assert terminal.getvalue() == ""


@pytest.mark.parametrize("verbose", [1, True, 10])
def test_nothing_is_said_where_there_is_no_terminal(verbose, capfd):
    assert len(list(shown(N, "kernel rows", verbose)(blocks()))) == 3
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("verbose", [0, 1])
def test_blocks_come_through_as_they_are(verbose, monkeypatch):
    open_terminal(monkeypatch)
    given = blocks()
    got = list(shown(N, "kernel rows", verbose)(iter(given)))
    assert all(a is c and b is d for (a, b), (c, d) in zip(got, given, strict=True))


def test_a_terminal_shows_what_is_done_of_how_many_rows(monkeypatch, capfd):
    terminal = open_terminal(monkeypatch)
    seen = [terminal.getvalue() for _ in shown(N, "kernel rows", 1)(blocks())]
    assert "kernel rows" in seen[0]  # at once, before any rate is known
    assert "0/12,345 rows" in seen[0]
    assert "12,345/12,345 rows" not in seen[-1]
    assert re.search(r"12,345/12,345 rows\S* +\S*[\d,]+ rows/s", terminal.getvalue())
    assert capfd.readouterr() == ("", "")


def test_known_rows_count_as_done(monkeypatch):
    from rich.progress import Progress

    open_terminal(monkeypatch)
    update, done = Progress.update, []

    def recorded(self, task, **changes):
        update(self, task, **changes)
        done.append(self.tasks[0].completed)

    monkeypatch.setattr(Progress, "update", recorded)
    assert len(list(shown(N, "kernel rows", 1)(blocks()))) == 3
    assert done == [2000, 4000, 12_000, N]


def test_nothing_to_do_is_done(monkeypatch):
    terminal = open_terminal(monkeypatch)
    assert list(shown(7, "kernel rows", 1)([])) == []
    assert "7/7 rows" in terminal.getvalue()


def test_a_pass_that_is_given_up_leaves_no_thread_and_shows_the_cursor(monkeypatch):
    terminal, before = open_terminal(monkeypatch), set(threading.enumerate())
    with closing(shown(N, "kernel rows", 1)(blocks())) as bar:
        next(bar)
        next(bar)
        (drawing,) = set(threading.enumerate()) - before
    drawing.join(10)
    assert not drawing.is_alive()
    text = terminal.getvalue()
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")
    assert "2,000/12,345 rows" in text
    assert "12,345/12,345 rows" not in text
