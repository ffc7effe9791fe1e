"""The limit of one BLAS thread, set and lifted by several threads of a program."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from kreinlearn import KreinClassifier, _native
from kreinlearn.sums import parallel
from kreinlearn.sums.parallel import (
    _blas,
    _libraries,
    _limited,
    _restore,
    _SerialBlas,
    map_blocks,
    map_in_threads,
    serial_blas,
    threaded_blas,
)

SHARED, OWN = _libraries()


def numbers(libraries):
    return [lib.num_threads for lib in libraries]


@pytest.fixture
def two_threads():
    """All libraries may use two threads, whatever the machine and the tests before allow."""
    before = _limited(2, [*SHARED, *OWN])
    yield
    _restore(before)


def in_thread(work):
    """What ``work`` returns in a thread of its own."""
    found = []
    thread = threading.Thread(target=lambda: found.append(work()))
    thread.start()
    thread.join(30)
    return found[0]


def test_there_is_a_library_to_limit():
    assert {lib.user_api for lib in _blas()} == {"blas"}


def test_no_matrix_of_a_small_fit_has_several_threads(two_threads, monkeypatch):
    """Also after the session of the fit, where everything is found anew without some objects."""
    decompose, found = _native.eigh, list[int]()

    def noted(A):
        found.extend(numbers(_blas()))
        return decompose(A)

    monkeypatch.setattr(_native, "eigh", noted)
    X = np.random.default_rng(0).standard_normal((30, 2))
    KreinClassifier("gaussian", n_jobs=2, random_state=0).fit(X, X[:, 0] > 0)
    assert set(found) == {1}
    assert set(numbers(_blas())) == {2}


def test_the_limit_is_lifted_by_whoever_leaves_last(two_threads):
    entered, may_leave = threading.Event(), threading.Event()

    def other():
        with serial_blas():
            entered.set()
            may_leave.wait(30)
            return numbers(SHARED)

    found = []
    thread = threading.Thread(target=lambda: found.append(other()))
    with serial_blas():
        thread.start()
        entered.wait(30)
        assert set(numbers(SHARED)) <= {1}
    assert set(numbers(SHARED)) <= {1}  # the other thread is still inside
    assert set(numbers(OWN)) <= {2}  # a limit of this thread alone
    may_leave.set()
    thread.join(30)
    assert set(found[0]) <= {1}
    assert set(numbers(SHARED)) <= {2}


def test_the_limit_holds_in_any_thread(two_threads):
    with serial_blas():  # this thread is the first to set a limit
        pass

    def inside():
        with serial_blas():
            return numbers([*SHARED, *OWN])

    assert set(in_thread(inside)) == {1}
    assert set(numbers([*SHARED, *OWN])) == {2}


def test_libraries_of_both_kinds_are_set_to_one_and_back(monkeypatch):
    """Asked of the libraries themselves, as OpenMP may take other numbers for one."""

    class Library:
        def __init__(self, count):
            self.num_threads, self.numbers = count, []

        def set_num_threads(self, count):
            self.num_threads = count
            self.numbers.append(count)

    shared, own = Library(4), Library(3)
    monkeypatch.setattr(parallel, "_libraries", lambda: ([shared], [own]))
    limit = _SerialBlas()
    with limit, limit:
        assert (shared.numbers, own.numbers) == ([1], [1])
    assert (shared.numbers, own.numbers) == ([1, 4], [1, 3])


def test_a_limit_inside_of_another_changes_nothing(two_threads):
    with serial_blas():
        with serial_blas():
            assert set(numbers([*SHARED, *OWN])) == {1}
        assert set(numbers([*SHARED, *OWN])) == {1}
    assert set(numbers([*SHARED, *OWN])) == {2}


def test_workers_are_limited_too(two_threads):
    """OpenMP has one number of threads for each thread: the limit of the caller is not theirs."""
    found = map_in_threads(lambda _: numbers([*SHARED, *OWN]), range(4), 2)
    assert {number for one in found for number in one} <= {1}
    seen = []
    map_blocks(lambda _: seen.append(numbers([*SHARED, *OWN])), range(4), workers=2)
    assert len(seen) == 4
    assert {number for one in seen for number in one} <= {1}


def test_the_limit_is_not_lifted_beside_others(two_threads):
    entered, may_leave = threading.Event(), threading.Event()

    def other():
        with serial_blas():
            entered.set()
            may_leave.wait(30)

    thread = threading.Thread(target=other)
    thread.start()
    entered.wait(30)
    with serial_blas(), threaded_blas(2):
        assert set(numbers(SHARED)) == {1}
    may_leave.set()
    thread.join(30)
    with serial_blas():
        with threaded_blas(2):
            assert set(numbers(_blas())) == {2}
        assert set(numbers(SHARED)) == {1}


def test_others_wait_while_the_limit_is_lifted(two_threads):
    found, inside = [], threading.Event()

    def other():
        inside.set()
        with serial_blas():
            found.append(numbers(SHARED))

    thread = threading.Thread(target=other)
    with serial_blas(), threaded_blas(2):
        thread.start()
        inside.wait(30)
        thread.join(0.2)
        assert thread.is_alive()
        with serial_blas():  # the same thread may go on
            assert not found
    thread.join(30)
    assert set(found[0]) <= {1}
