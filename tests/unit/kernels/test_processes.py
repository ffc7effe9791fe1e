"""Functions in other processes: what travels how often, the same values, nothing left behind."""

from __future__ import annotations

import copy
import copyreg
import gc
import os
import pickle
import signal
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from kreinlearn import KreinNystroem, KreinRidgeClassifier, SpectrumSVC, dissimilarity, pairwise
from kreinlearn.kernels import Field, processes, remembering, resolve
from kreinlearn.kernels.combine import LinearCombination
from kreinlearn.kernels.processes import PART, Processes, Shelf, _sendable, chunks
from tests.systems import KILL, posix_only

N = 40


class Parcel:
    """An object that tells when it is packed and unpacked."""

    def __init__(self, number: int, log: str) -> None:
        self.number, self.log = number, log

    def __getstate__(self) -> dict[str, Any]:
        self._note("packed")
        return vars(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._note("unpacked")

    def _note(self, what: str) -> None:
        with open(self.log, "a", encoding="ascii") as file:
            file.write(f"{what} {self.number} {os.getpid()}\n")

    def __repr__(self) -> str:
        return f"Parcel {self.number}"


class Gap(Parcel):
    """A function of two objects that tells the same of itself."""

    def __call__(self, a: Parcel, b: Parcel, power: float = 1.0) -> float:
        return float(abs(a.number - b.number) % 11) ** power


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where objects are written; nothing is there at the end of a test."""
    (tmp_path / "objects").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "objects"))
    yield tmp_path / "objects"
    gc.collect()  # an error and what it holds
    assert list((tmp_path / "objects").iterdir()) == []


class Log:
    def __init__(self, path: Path) -> None:
        self.path = path

    def parcels(self, n: int, first: int = 0) -> list[Parcel]:
        return [Parcel(i, str(self.path)) for i in range(first, first + n)]

    def taken(self) -> tuple[Counter[str], Counter[tuple[str, str]]]:
        """How often each number was packed, and unpacked by each process, since the last call."""
        lines = self.path.read_text("ascii").split("\n")[:-1] if self.path.exists() else []
        self.path.unlink(missing_ok=True)
        events = [line.split() for line in lines]
        packed = Counter(number for what, number, _ in events if what == "packed")
        return packed, Counter((n, pid) for what, n, pid in events if what == "unpacked")


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path / "log")


# What travels


def test_objects_and_function_of_a_fit_travel_once(log: Log, folder: Path) -> None:
    X, y = log.parcels(N), np.arange(N) % 2
    gap = Gap(-1, str(log.path))
    model = KreinRidgeClassifier(
        dissimilarity(pairwise(gap)), landmarks=12, n_jobs=2, random_state=0
    )
    model.fit(X, y)
    packed, unpacked = log.taken()
    assert {packed[str(i)] for i in range(N)} == {1}
    assert once_elsewhere(unpacked)
    assert list(folder.iterdir()) == []  # the fit is over

    model.predict(log.parcels(20, first=N))
    model.predict(log.parcels(20, first=2 * N))
    packed, unpacked = log.taken()
    landmarks = {str(z.number) for z in model.landmarks_}
    del packed["-1"]
    assert packed == Counter([*landmarks, *map(str, [*range(N, N + 20), *range(80, 100)])])
    assert once_elsewhere(unpacked)
    assert len(list(folder.iterdir())) == 2  # landmarks and function, while the model lives


def once_elsewhere(unpacked: Counter[tuple[str, str]]) -> bool:
    """In two other processes at most, in each once; here functions are copied with estimators."""
    there = {(i, pid): n for (i, pid), n in unpacked.items() if pid != str(os.getpid())}
    return set(there.values()) == {1} and len({pid for _, pid in there}) <= 2


def test_kernels_of_one_fit_share_its_objects(log: Log) -> None:
    """Parts of a combination, and kernels among which the fit chooses."""
    X, y = log.parcels(N), np.arange(N) % 2
    one, two = Gap(-1, str(log.path)), Gap(-2, str(log.path))
    kernel = LinearCombination([pairwise(one), pairwise(two)], [1.0, -0.5])
    choices = [{"weights": [1.0, -0.5]}, {"weights": [1.0, 0.2]}]
    KreinRidgeClassifier(kernel, kernel_params=choices, landmarks=8, n_jobs=2, random_state=0).fit(
        X, y
    )
    packed, _ = log.taken()
    assert {packed[str(i)] for i in range(N)} == {1}


def test_objects_in_several_fields_of_records_travel_once(log: Log, folder: Path) -> None:
    left, right, y = log.parcels(N), log.parcels(N, first=N), np.arange(N) % 2
    X = [{"left": a, "right": b, "more": object()} for a, b in zip(left, right, strict=True)]
    kernel = Field("left", pairwise(near)) + Field("right", pairwise(near))
    KreinRidgeClassifier(kernel, landmarks=12, n_jobs=2, random_state=0).fit(X, y)
    packed, unpacked = log.taken()
    assert packed == Counter(map(str, range(2 * N)))
    assert once_elsewhere(unpacked)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("make", [KreinNystroem, SpectrumSVC])
def test_other_estimators_end_their_fit_too(make: Any, log: Log, folder: Path) -> None:
    X = log.parcels(N)
    make(dissimilarity(pairwise(gap)), n_jobs=2, random_state=0).fit(X, np.arange(N) % 2)
    packed, _ = log.taken()
    assert set(packed.values()) == {1}
    assert list(folder.iterdir()) == []


def gap(a: Parcel, b: Parcel, power: float = 1.0) -> float:
    return float(abs(a.number - b.number) % 11) ** power


def near(a: Parcel, b: Parcel) -> float:
    return 5.0 - gap(a, b)


def test_only_what_is_not_remembered_travels(log: Log) -> None:
    X, y = log.parcels(N), np.arange(N) % 2
    model = KreinRidgeClassifier(dissimilarity(pairwise(gap)), n_jobs=2, random_state=0)
    with remembering():
        model.fit(X, y)
        assert log.taken()[0]
        again = model.fit(X, y).decision_function(X)
        assert not log.taken()[0]
    assert_array_equal(again, model.fit(X, y).decision_function(X))


def test_in_line_nothing_is_written(monkeypatch: pytest.MonkeyPatch, log: Log) -> None:
    monkeypatch.setattr(Shelf, "_folder", None)
    X = log.parcels(N)
    for n_jobs in (1, None):
        model = KreinNystroem(pairwise(near), landmarks=9, n_jobs=n_jobs, random_state=0)
        model.fit(X).transform(X)
    assert log.taken() == (Counter(), Counter())


def test_objects_are_found_by_identity() -> None:
    shelf = Shelf([[i] for i in range(3 * PART)])
    chosen = [shelf.objects[i] for i in (700, 3, 3, 255, 256)]
    ticket = shelf.find(chosen)
    assert ticket is not None
    assert ticket.objects() == chosen
    assert shelf.find([*chosen, [3]]) is None  # equal, but another
    assert shelf.find(np.ones((2, 2))) is None
    assert [shelf.holds(X) for X in (chosen, shelf.objects, [[3]], np.eye(2))] == [
        True, True, False, False,
    ]  # fmt: skip
    assert shelf.ticket().objects() == shelf.objects
    table = Shelf(np.eye(3))
    assert_array_equal(table.ticket().objects(), np.eye(3))


def test_classes_and_functions_of_no_module() -> None:
    """As in a notebook, or in the code of a README that a test runs."""
    space: dict[str, Any] = {"__name__": "of_no_module"}
    code = """
class Point:
    def __init__(self, x): self.x = x
def product(a, b):
    assert isinstance(a, Point) and isinstance(b, Point)
    return a.x * b.x - 0.2
"""
    exec(code, space)
    X = [space["Point"](float(x)) for x in range(12)]
    models = [
        KreinNystroem(pairwise(space["product"]), landmarks=4, n_jobs=n, random_state=0).fit(X)
        for n in (1, 2)
    ]
    assert_array_equal(*(model.transform(X) for model in models))


def test_a_copy_has_sent_nothing(log: Log) -> None:
    X = log.parcels(12)
    model = KreinNystroem(pairwise(near), landmarks=4, n_jobs=2, random_state=0).fit(X)
    expected = model.transform(X)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert other.kernel_.processes.jobs == 2
        assert_array_equal(other.transform(X), expected)


# The same values, however many processes and parts


def products(A: Any, B: Any) -> Any:
    A, B = np.float32(np.atleast_2d(A)), np.float32(np.atleast_2d(B))
    return np.tanh(A @ B.T - 0.1)


def far(a: Any, b: Any) -> float:
    return float(np.sqrt(np.sum((a - b) ** 2)) + 0.1 * abs(np.sin(a[0] + b[0])) * any(a != b))


@pytest.mark.parametrize("as_list", [True, False])
@pytest.mark.parametrize("kernel", [products, pairwise(far), dissimilarity(pairwise(far))])
def test_the_same_bits_in_any_number_of_parts(
    kernel: Any, as_list: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    A = np.random.default_rng(0).normal(size=(140, 7))
    X = list(A) if as_list else A
    seen = []
    for jobs, parts in ((1, 4), (2, 4), (2, 1), (2, 7)):
        for name in ("CHUNKS_PER_JOB", "CHUNKS"):
            monkeypatch.setattr(processes, name, parts)
        k = resolve(kernel)
        k.processes = None if jobs == 1 else Processes(jobs)
        k.fit(X, np.random.default_rng(0))
        seen.append([k(X, X[:20]), k(X[:30]), k(X[3:4], X[:20]), k(X, X[:1])])
        del k
    for other in seen[1:]:
        for K, L in zip(seen[0], other, strict=True):
            assert K.dtype == L.dtype
            assert_array_equal(K, L)


def test_rows_in_parts_of_as_many_pairs() -> None:
    """By the sums of a list, not of an array."""
    for n, jobs, fewest in [(0, 2, 1), (1, 2, 1), (3, 2, 1), (40, 2, 32), (200, 2, 1), (900, 3, 9)]:
        for pairs in (np.arange(n, 0, -1), np.full(n, 7), np.full(n, 0)):
            spans = chunks(pairs, jobs, fewest)
            assert [i for span in spans for i in range(*span)] == list(range(n))
            most = max(64, 4 * jobs) if fewest == 1 else max(n // fewest, 4 * jobs)
            assert len(spans) <= most
            sizes = [sum(pairs.tolist()[slice(*span)]) for span in spans]
            fair = sum(sizes) / max(len(spans), 1)
            assert all(abs(size - fair) <= max(pairs) for size in sizes[: n and -1])
    assert len(chunks(np.arange(200, 0, -1), 2)) > 50
    assert len(chunks(np.full(200, 1), 2)) == 8


def molecules(n: int) -> list[Any]:
    rng = np.random.default_rng(5)
    sizes = rng.integers(1, 7, n)
    edges = [[(i, int(rng.integers(i))) for i in range(1, size)] for size in sizes]
    return [(rng.integers(3, size=len(e) + 1).tolist(), e) for e in edges]


def point_sets(n: int) -> list[Any]:
    rng = np.random.default_rng(6)
    return [rng.normal(size=(size, 2)) for size in rng.integers(1, 5, n)]


def series(n: int) -> list[Any]:
    """Their shortest decides the window, which the processes must be told."""
    rng = np.random.default_rng(7)
    return [rng.normal(size=size) for size in rng.integers(8, 12, n)]


SLOW = {"graph_edit": molecules, "earth_mover": point_sets, "wtk": series}


@pytest.mark.parametrize("name", SLOW)
def test_kernels_that_hold_the_gil_are_evaluated_elsewhere(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name in ("earth_mover", "wtk"):
        pytest.importorskip("ot")
    X = SLOW[name](90)
    kinds = [KreinNystroem(name, landmarks=m, random_state=0) for m in (None, 25)]
    in_line = [model.fit(X).transform(X) for model in kinds]
    here = type(resolve(name))
    values = here.values
    most = 16 * 16

    def few(self: Any, A: Any, Z: Any) -> Any:
        K = values(self, A, Z)
        assert K.size <= most, "evaluated in this process"
        return K

    monkeypatch.setattr(here, "values", few)
    for model, expected in zip(kinds, in_line, strict=True):
        model.set_params(n_jobs=2)
        assert_array_equal(model.fit(X).transform(X), expected)
        assert model.kernel_.processes.jobs == 2
        assert_array_equal(pickle.loads(pickle.dumps(model)).transform(X), expected)


def test_an_object_that_is_unsound_has_its_number_elsewhere_too() -> None:
    X = molecules(80)
    model = KreinNystroem("graph_edit", landmarks=20, n_jobs=2, random_state=0).fit(X)
    X[70] = (["C"], [(0, 4)])
    with pytest.raises(ValueError, match=r"(object|graph) 70 \(of 80\)"):
        model.transform(X)
    with pytest.raises(ValueError, match=r"(object|graph) 70 \(of 80\)"):
        model.fit(X)


def test_parts_of_a_combination_in_the_same_processes() -> None:
    X = point_sets(60)
    pytest.importorskip("ot")
    kernel = LinearCombination([dissimilarity(pairwise(spread)), resolve("earth_mover")], [1, 0.5])
    models = [KreinNystroem(kernel, landmarks=20, n_jobs=n, random_state=0) for n in (1, 2)]
    assert_array_equal(*(model.fit(X).transform(X) for model in models))


def spread(a: Any, b: Any) -> float:
    return float(abs(np.ptp(a) - np.ptp(b)))


# Faults


class Broken(Exception):
    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"{text} ({code})")  # so it cannot be unpickled


class Doubled(Exception):
    def __init__(self, text: str) -> None:
        super().__init__(f"there: {text}")  # so it comes back as "there: there: ..."


class Forgetful(Exception):
    def __reduce__(self) -> Any:
        return Forgetful, self.args  # without its notes


def no_such_thing(kind: Any, *args: Any) -> None:
    raise kind(*args)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (Broken(7, "no such thing"), "Broken: no such thing (7)"),
        (Doubled("not"), "Doubled: there: not"),
        (Forgetful("not"), "Forgetful: not"),
    ],
)
def test_an_error_that_would_not_come_back(
    error: Exception, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By pickle itself: distributed, once it is imported, teaches pickle any error there is."""
    monkeypatch.delitem(copyreg.dispatch_table, type(error), raising=False)
    error.add_note("of these two")
    other = _sendable(error)
    assert type(other) is RuntimeError
    assert str(other).startswith(f"the kernel raised {said}; ")
    assert "of these two" in str(other)


def test_an_error_that_comes_back() -> None:
    kept = KeyError("here")
    kept.add_note("of these two")
    assert _sendable(kept) is kept


def broken(a: Parcel, b: Parcel) -> float:
    if {a.number, b.number} == {17, 30}:
        no_such_thing(Broken, 7, "no such thing")
    return float(a.number == b.number)


def test_its_traceback_and_objects_are_told(log: Log) -> None:
    with pytest.raises(RuntimeError) as caught:
        KreinNystroem(pairwise(broken), landmarks=None, n_jobs=2).fit(log.parcels(N))
    text = str(caught.value)
    assert "the kernel raised Broken: no such thing (7)" in text
    assert "in no_such_thing" in text
    assert "raise kind(*args)" in text
    assert "the function was given Parcel 17 and Parcel 30" in text


def fault(a: Parcel, b: Parcel, kind: str, n: int = 17) -> float:
    if n in (a.number, b.number):
        if kind == "raises":
            raise KeyError("no such thing")
        if kind == "dies":
            os.kill(os.getpid(), KILL)
        os.kill(os.getppid(), signal.SIGINT)
        threading.Event().wait(20)
    return float(a.number == b.number)


def run(kind: str, X: Any) -> KreinNystroem:
    kernel = pairwise(fault, kind=kind)
    return KreinNystroem(kernel, landmarks=5, n_jobs=2, random_state=0).fit(X)


def test_an_error_of_the_function(log: Log, folder: Path) -> None:
    with pytest.raises(KeyError, match="no such thing") as caught:
        run("raises", log.parcels(N))
    pair, rows = caught.value.__notes__
    assert pair.startswith("the function was given Parcel ")
    assert "Parcel 17" in pair
    assert rows.startswith("while evaluating the kernel on rows")
    assert list(folder.iterdir()) == []
    model = run("raises", log.parcels(N, first=50))
    assert model.transform(log.parcels(3)).shape == (3, model.rank_)
    assert len(list(folder.iterdir())) == 2
    with pytest.raises(KeyError, match="no such thing"):
        model.transform(log.parcels(20))
    assert list(folder.iterdir()) == []
    assert model.transform(log.parcels(3)).shape == (3, model.rank_)


def test_objects_that_cannot_be_sent(folder: Path) -> None:
    calls = []
    X: list[Any] = [[i] for i in range(N)]
    X[20].append(threading.Lock())
    with pytest.raises(TypeError, match=r"the objects cannot be sent .*; pass n_jobs=1, or"):
        KreinNystroem(pairwise(lambda a, b: calls.append(a)), n_jobs=2).fit(X)
    assert not calls
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("call", ["mkdir", "getpid"])
def test_the_folder_is_removed_also_if_a_signal_comes_as_it_is_made(
    folder: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """The signal comes right after a call; the objects can be written afterwards."""
    done, shelf = getattr(os, call), Shelf([[0], [1]])
    with monkeypatch.context() as patch:

        def interrupted(*given: Any) -> None:
            done(*given)
            patch.undo()
            raise KeyboardInterrupt

        patch.setattr(os, call, interrupted)
        with pytest.raises(KeyboardInterrupt):
            shelf.ticket()
    assert list(folder.iterdir()) == []
    assert shelf.ticket().objects() == [[0], [1]]
    (made,) = folder.iterdir()
    if os.name == "posix":
        assert made.stat().st_mode & 0o777 == 0o700  # others cannot read the objects


def test_a_process_that_dies(log: Log, folder: Path) -> None:
    with pytest.raises(BrokenProcessPool, match="terminated"):
        run("dies", log.parcels(N))
    assert list(folder.iterdir()) == []


@posix_only("a way to interrupt one other process")
@pytest.mark.usefixtures("heard")
def test_ctrl_c(log: Log, folder: Path) -> None:
    """In new processes, as others have died."""
    with pytest.raises(KeyboardInterrupt) as caught:
        run("interrupts", log.parcels(N))
    assert caught.traceback  # with all that the fit held
    assert list(folder.iterdir()) == []
