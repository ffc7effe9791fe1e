"""Progress: silent unless asked for and on a terminal; what is announced is what is evaluated."""

from __future__ import annotations

import io
import os
import re
import sys
import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest
import rich.progress

from kreinlearn import (
    KreinNystroem,
    KreinRidge,
    KreinSVC,
    Landmarks,
    Resources,
    SpectrumSVC,
    progress,
)
from kreinlearn.kernels import pairwise
from kreinlearn.kernels.base import ObjectKernel
from kreinlearn.progress import (
    Progress,
    cost_in_words,
    count_in_words,
    name_of,
    part_done,
    seconds_a_pair,
    state_in_words,
    time_in_words,
)
from tests.bounds import least_cpu_seconds
from tests.systems import posix_only


class Terminal(io.StringIO):
    def isatty(self):
        return True


def open_terminal(monkeypatch, stream=None):
    """Stderr from here on; not in a fixture, because pytest puts its own there for each call."""
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(sys, "stderr", Terminal() if stream is None else stream)
    return sys.stderr


def in_steps(shows, count=4):
    """A step of 1000 rows and 10 pairs a row, done in equal parts."""
    with shows.step("kernel rows", 1000, 10_000):
        for _ in range(count):
            shows.add(1000 // count, 10_000 // count)


# Silence


@pytest.mark.parametrize("verbose", [0, False])
def test_verbose_0_says_nothing_on_a_terminal(verbose, monkeypatch):
    terminal = open_terminal(monkeypatch)
    silent = Progress(verbose)
    in_steps(silent)
    silent.announce(10**9, 1e5, 2)
    assert terminal.getvalue() == ""


@pytest.mark.parametrize("verbose", [1, True, 10])
def test_no_bar_where_there_is_no_terminal(verbose, capfd):
    in_steps(Progress(verbose))
    assert capfd.readouterr() == ("", "")


def test_no_stderr_at_all(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    in_steps(Progress(1))
    Progress(1).announce(10**9, 1e5, 2)


def test_silence_costs_next_to_nothing():
    """No more than ten times an empty block and the call of an empty function."""
    silent = Progress()

    @contextmanager
    def empty_step(*_):
        yield

    def steps(step, add):
        for _ in range(10_000):
            with step("kernel rows", 1, 1):
                add(1, 1)

    nothing = least_cpu_seconds(lambda: steps(empty_step, lambda *_: None))
    assert least_cpu_seconds(lambda: steps(silent.step, silent.add)) < 10 * nothing


# The bar


class PseudoTerminal:
    """A terminal of the system's, and what is written to it."""

    def __init__(self):
        import pty

        self.master, slave = pty.openpty()
        self.stream, self.said = os.fdopen(slave, "w"), b""
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self):
        while True:
            try:
                part = os.read(self.master, 4096)
            except OSError:  # Linux says so when the other end is closed
                return
            if not part:
                return
            self.said += part

    def text(self):
        self.stream.close()
        self.reader.join(10)
        os.close(self.master)
        return self.said.decode()


@posix_only("pseudo-terminals that Python can open")
def test_a_real_terminal_shows_rows_pairs_rate_and_time_left(monkeypatch, capfd):
    def slow(a, b):
        time.sleep(1e-4)
        return float(min(a[0], b[0]))

    real = PseudoTerminal()
    open_terminal(monkeypatch, real.stream)
    with monkeypatch.context() as until_read:
        until_read.setattr(progress, "LONG_RUN", 0.05)
        model = KreinNystroem(pairwise(slow), landmarks=10, verbose=1, random_state=0)
        model.fit(np.arange(1, 601.0)[:, None]).transform(np.arange(1, 301.0)[:, None])
    monkeypatch.undo()
    text = real.text()
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text)
    assert re.search(r"slow: 6,\d{3} pairs, about \d+ \w+ on 1 core", plain)
    assert re.search(r"slow: 3,000 pairs, about \d+ \w+ on 1 core", plain)  # transform
    state = r"landmarks .*/\d+ rows, [\d,]+/[\d,]+ pairs, [\d,]+ pairs/s, \d+ \w+ left"
    assert re.search(state, plain)
    assert "new rows" in plain
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")  # the cursor is back
    assert capfd.readouterr() == ("", "")


def test_a_step_within_a_step_is_part_of_it(monkeypatch):
    terminal, shows = open_terminal(monkeypatch), Progress(1)
    with shows.step("outer", 10, 100):
        with shows.step("inner", 5, 50):
            shows.add(5, 50)
        shows.add(1, 10)
    text = terminal.getvalue()
    assert "inner" not in text
    assert "6/10 rows, 60/100 pairs" in text


def test_rows_alone_are_counted_where_there_are_no_pairs(monkeypatch):
    terminal, shows = open_terminal(monkeypatch), Progress(1)
    with shows.step("tested", 12_000):
        shows.add(6000)
    assert re.search(r"tested .*6,000/12,000 rows, [\d,.e]+ rows/s, 0 s left", terminal.getvalue())


def test_threads_may_report_at_once(monkeypatch):
    terminal, shows = open_terminal(monkeypatch), Progress(1)

    def report():
        for _ in range(500):
            shows.add(1, 2)

    with shows.step("kernel rows", 2000, 4000):
        threads = [threading.Thread(target=report) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert "2,000/2,000 rows, 4,000/4,000 pairs" in terminal.getvalue()


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
def test_a_step_that_is_given_up_leaves_no_thread_and_shows_the_cursor(error, monkeypatch):
    terminal, before = open_terminal(monkeypatch), set(threading.enumerate())
    shows, drawing = Progress(1), []

    def given_up():
        with shows.step("kernel rows", 10, 10):
            drawing.extend(set(threading.enumerate()) - before)
            raise error

    with pytest.raises(error):
        given_up()
    (drawing,) = drawing
    drawing.join(10)
    assert not drawing.is_alive()
    text = terminal.getvalue()
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")
    in_steps(shows)  # the next step is one of its own
    assert terminal.getvalue() != text


def test_what_is_printed_to_a_file_goes_there(monkeypatch):
    open_terminal(monkeypatch)
    file = io.StringIO()
    monkeypatch.setattr(sys, "stdout", file)
    with Progress(1).step("kernel rows", 10, 10):
        print("a result")
    assert file.getvalue() == "a result\n"


# In words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.2, "0 s"),
        (40, "40 s"),
        (119.4, "119 s"),
        (120, "2 min"),
        (185, "3 min"),
        (7199, "120 min"),
        (7200, "2 h"),
        (100_000, "28 h"),
        (432_000, "5 days"),
    ],
)
def test_time_in_words(seconds, words):
    assert time_in_words(seconds) == words


@pytest.mark.parametrize(
    ("count", "words"),
    [(0, "0"), (45_150, "45,150"), (999_999, "999,999"), (10**6, "1.0e6"), (1.24e9, "1.2e9")],
)
def test_count_in_words(count, words):
    assert count_in_words(count) == words


def test_cost_in_words():
    assert cost_in_words(1_200_000_000, 180.0, 2) == "1.2e9 pairs, about 3 min on 2 cores"
    assert cost_in_words(45_150, 40.0, 1) == "45,150 pairs, about 40 s on 1 core"


def test_state_in_words():
    assert state_in_words(0, 50, 0, 100, 3.0) == "0/50 rows, 0/100 pairs"
    said = "10/50 rows, 20/100 pairs, 5 pairs/s, 16 s left"
    assert state_in_words(10, 50, 20, 100, 4.0) == said
    assert state_in_words(10, 50, 10, 0, 1.0) == "10/50 rows, 10 rows/s, 4 s left"
    assert state_in_words(50, 50, 120, 100, 1.0).endswith(" 0 s left")


def test_a_kernel_has_a_name():
    def mine(a, b):
        return 1.0

    class Counted(ObjectKernel):
        pass

    assert name_of("levenshtein") == "levenshtein"
    assert name_of(mine) == name_of(pairwise(mine)) == "mine"
    assert name_of(Counted()) == "Counted"


# What a pair takes


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still unless somebody moves it: one number."""
    now = [0.0]
    monkeypatch.setattr(progress.time, "perf_counter", lambda: now[0])
    return now


def test_the_time_of_a_pair_is_found_by_few_of_them(clock):
    evaluated = []

    def columns(k):
        def row(i):
            evaluated.append(k)
            clock[0] += k * 1e-4

        return row

    assert seconds_a_pair(columns, 10**6) == pytest.approx(1e-4)
    assert sum(evaluated) < 1000  # 0.1 s


def test_a_slow_pair_is_evaluated_twice_only(clock):
    calls = []

    def columns(k):
        def row(i):
            calls.append(k)
            clock[0] += 1.5

        return row

    assert seconds_a_pair(columns, 10**6) == pytest.approx(1.5)
    assert calls == [1, 1]


def test_a_pair_that_has_to_wait_its_turn_does_not_count(clock):
    def columns(k):
        def row(i):
            clock[0] += 0.048 if i == 2 else 1e-3 * k

        return row

    assert seconds_a_pair(columns, 10**6) == pytest.approx(1e-3)


def test_the_price_of_a_call_is_not_that_of_a_pair(clock):
    """Rows of a table are prepared for 14 ms, whatever they are compared with."""
    evaluated = []

    def columns(k):
        def row(i):
            evaluated.append(k)
            clock[0] += 0.014 + 5e-6 * k

        return row

    assert seconds_a_pair(columns, 10**5) == pytest.approx(5e-6, rel=1e-6)
    assert sum(evaluated) < 10**5


@pytest.mark.parametrize("most", [0, 7, 100, 1000])
def test_no_more_pairs_than_allowed_are_timed(most):
    evaluated = [0]
    found = seconds_a_pair(lambda k: lambda i: evaluated.append(k), most)
    assert (found is None) == (most < 10)
    assert sum(evaluated) <= max(most, 1)


# Parts of what processes evaluate


def states(text):
    """Rows, pairs and rates of a bar, as they were drawn."""
    found = re.findall(r"([\d,]+)/[\d,]+ rows, ([\d,]+)/[\d,]+ pairs(, [\d,.e]+ pairs/s)?", text)
    return [(int(r.replace(",", "")), int(p.replace(",", "")), bool(rate)) for r, p, rate in found]


def test_parts_are_shown_and_counted_once(monkeypatch):
    terminal, shows = open_terminal(monkeypatch), Progress(1)
    part_done(1, 1)  # to nobody
    with shows.step("kernel rows", 100, 1000):
        for _ in range(2):
            part_done(20, 200)
            part_done(25, 250)
            shows.add(50, 500)
        part_done(5, 5)  # given up
    assert states(terminal.getvalue())[-1][:2] == (105, 1005)
    with shows.step("kernel rows", 100, 1000):
        shows.add(100, 1000)
    assert states(terminal.getvalue())[-1][:2] == (100, 1000)


def smaller(a, b):
    return float(min(a[0], b[0]))


@pytest.mark.parametrize("landmarks", [None, 40])
def test_a_function_in_processes_moves_the_bar(landmarks, monkeypatch):
    terminal = open_terminal(monkeypatch)
    drawn = []
    add = Progress.add
    monkeypatch.setattr(Progress, "add", lambda self, *n: (drawn.append(n), add(self, *n)))
    monkeypatch.setattr(rich.progress.Progress, "update", eagerly(rich.progress.Progress.update))
    given = {"landmarks": Landmarks(landmarks, "uniform"), "random_state": 0}
    KreinNystroem(pairwise(smaller), n_jobs=2, verbose=1, **given).fit(numbers(200))
    seen = states(terminal.getvalue())
    pairs = 200 * 201 // 2 if landmarks is None else 40 * 41 // 2 + 160 * 40
    assert len(drawn) <= 3  # blocks
    assert len({done for _, done, _ in seen}) > 10
    assert max(done for _, done, _ in seen) == pairs
    assert any(rate for _, done, rate in seen if 0 < done < pairs)


def eagerly(update):
    """Draws at once, not some times a second."""

    def updated(self, *args, **more):
        update(self, *args, **more)
        self.refresh()

    return updated


# Steps of estimators


@pytest.mark.parametrize(
    ("learner", "params", "steps"),
    [
        (
            KreinSVC,
            {"resources": Resources(memory_budget="12MB")},
            {"landmarks", "kernel rows", "rows again"},
        ),
        (SpectrumSVC, {}, {"landmarks", "tested"}),
    ],
)
def test_every_long_step_is_shown(learner, params, steps, monkeypatch):
    seen = set()
    step = Progress.step

    def recorded(self, what, rows, pairs=0):
        assert self.verbose == 1
        seen.add(what)
        return step(self, what, rows, pairs)

    monkeypatch.setattr(Progress, "step", recorded)
    n = 90_000 if "resources" in params else 100
    X = np.random.default_rng(0).normal(size=(n, 2))
    few = {} if learner is SpectrumSVC else {"landmarks": 20}
    learner("delta_gauss", verbose=1, random_state=0, **few, **params).fit(X, X[:, 0] > 0)
    assert steps <= seen


# What is announced, and what is evaluated


class Tally:
    pairs = 0


def counting(tally, of_blocks=False):
    """min(a, b) of two numbers, or of blocks of them; a function, which a clone does not copy."""

    def counted(a, b):
        if not of_blocks:
            tally.pairs += 1
            return float(min(a[0], b[0]))
        tally.pairs += len(a) * len(b)
        return np.minimum(np.asarray(a)[:, :1], np.asarray(b)[:, 0])

    return counted


class Objects(ObjectKernel):
    """The same as a kernel on objects."""

    pairs = 0

    def packed(self, X, first=0, n=0, like=None):
        return np.array(X, dtype=np.float64).reshape(len(X), -1)[:, 0]

    def values(self, A, Z):
        type(self).pairs += len(A) * len(Z)
        return np.minimum(A[:, None], Z)


def numbers(n):
    return list(np.random.default_rng(3).random((n, 1)) + 0.1)


def announced(capfd):
    """Pairs of all announcements, said on a stderr that is no terminal."""
    out, err = capfd.readouterr()
    assert out == ""
    found = re.findall(r"^\S+: ([\d,]+) pairs, about \d+ \w+ on \d cores?$", err, re.MULTILINE)
    assert len(found) == len(err.splitlines())
    return [int(text.replace(",", "")) for text in found]


KINDS = ("pairwise", "block", "objects")
FITS = {
    "greedy": (400, {"landmarks": Landmarks(40, "greedy_kmeans++")}),
    "uniform": (400, {"landmarks": Landmarks(40, "uniform", core="plain")}),
    "leverage": (600, {"landmarks": Landmarks(30, "leverage", core="plain"), "rank": 20}),
    "rows": (400, {"landmarks": Landmarks(np.arange(0, 400, 10), core="plain")}),
    "outside": (400, {"landmarks": Landmarks(numbers(40), core="plain")}),
    "streamed": (4096 + 2500, {"landmarks": 8}),
    "exact": (250, {"landmarks": None}),
}


def counted_kernel(kind):
    if kind == "objects":
        Objects.pairs = 0
        return Objects(), Objects
    tally = Tally()
    function = counting(tally, of_blocks=kind == "block")
    return (pairwise(function) if kind == "pairwise" else function), tally


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", FITS)
def test_a_fit_evaluates_what_it_announces(name, kind, monkeypatch, capfd):
    monkeypatch.setattr(progress, "LONG_RUN", 0.0)
    n, params = FITS[name]
    kernel, counted = counted_kernel(kind)
    X = numbers(n)
    model = KreinNystroem(kernel, random_state=0, n_jobs=1, verbose=1, **params).fit(X)
    (said,) = announced(capfd)
    assert said == pytest.approx(counted.pairs, rel=0.08 if kind == "objects" else 0.05)
    counted.pairs = 0
    model.transform(X[:200])
    (said,) = announced(capfd)
    assert said == 200 * model.n_landmarks_
    assert said <= counted.pairs <= 1.02 * said


@pytest.mark.parametrize("learner", [KreinRidge, KreinSVC, SpectrumSVC])
def test_learners_announce_too(learner, monkeypatch, capfd):
    monkeypatch.setattr(progress, "LONG_RUN", 0.0)
    kernel, counted = counted_kernel("pairwise")
    X = numbers(150)
    learner(kernel, verbose=1, random_state=0, n_jobs=1).fit(X, np.arange(150) % 2)
    (said,) = announced(capfd)
    assert said == 150 * 151 // 2
    assert counted.pairs == pytest.approx(said, rel=0.03)


def test_landmarks_that_grow_to_a_tolerance_are_the_least(monkeypatch, capfd):
    monkeypatch.setattr(progress, "LONG_RUN", 0.0)
    kernel, counted = counted_kernel("pairwise")
    KreinNystroem(kernel, landmarks=5, tol=5e-3, verbose=1, random_state=0).fit(numbers(300))
    (said,) = re.findall(r": at least ([\d,]+) pairs", capfd.readouterr().err)
    assert 300 * 4 < int(said.replace(",", "")) < counted.pairs


def test_a_dissimilarity_is_announced_with_its_reference_set(monkeypatch, capfd):
    """The columns of a sketch, on which leverage scores centre distances, are evaluated too."""
    monkeypatch.setattr(progress, "LONG_RUN", 0.0)
    counted = Tally()
    smaller = counting(counted)
    kernel = pairwise(lambda a, b: float(a[0] + b[0] - 2 * smaller(a, b)) ** 0.4)
    kernel.set_params(is_dissimilarity=True)
    params = {"landmarks": Landmarks(40, "leverage", core="plain"), "rank": 30}
    model = KreinNystroem(kernel, verbose=1, random_state=0, **params).fit(numbers(400))
    announced(capfd)
    counted.pairs = 0
    model.transform(numbers(300))
    (said,) = announced(capfd)
    assert said > 300 * 50
    assert said <= counted.pairs <= 1.02 * said


@pytest.mark.parametrize("verbose", [0, 1])
def test_a_short_run_is_not_announced_and_nothing_is_timed(verbose, capfd):
    kernel, counted = counted_kernel("pairwise")
    KreinNystroem(kernel, landmarks=5, verbose=verbose, random_state=0).fit(numbers(60))
    assert capfd.readouterr() == ("", "")
    silent, other = counted_kernel("pairwise")
    KreinNystroem(silent, landmarks=5, verbose=0, random_state=0).fit(numbers(60))
    assert counted.pairs - other.pairs <= verbose * other.pairs / 50 + verbose


def test_what_is_said_changes_nothing(monkeypatch):
    monkeypatch.setattr(progress, "LONG_RUN", 0.0)
    X, features = numbers(400), []
    for verbose in (0, 1):
        model = KreinNystroem(counted_kernel("pairwise")[0], verbose=verbose, random_state=0)
        features.append(model.fit(X).transform(X))
    np.testing.assert_array_equal(*features)


def test_an_error_in_the_first_pairs_names_its_row_all_the_same():
    def broken(a, b):
        raise ZeroDivisionError("of the person's own")

    with pytest.raises(ZeroDivisionError) as caught:
        KreinNystroem(pairwise(broken), landmarks=5, verbose=1).fit(numbers(200))
    assert any("while evaluating the kernel on rows" in note for note in caught.value.__notes__)
