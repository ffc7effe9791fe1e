"""Faults of the block store: kills, damage, a full disk. What the log names is never lost.

The numbers in the names of the tests are rows of the table in docs/bad_inputs.rst.
"""

from __future__ import annotations

import errno
import gc
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from kreinlearn import KreinRidge, Resources
from kreinlearn.cli.main import main
from kreinlearn.kernels import pairwise
from kreinlearn.pairs.store import blocks, evaluation
from tests import systems
from tests.reliability.slow_fit import Slow, X, Y, mark, model
from tests.systems import KILL, posix_only

pytest.importorskip("zarr")
pytestmark = pytest.mark.slow

Pair = tuple[float, float]
CHUNK = 256


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Many small blocks, each written at once."""
    monkeypatch.setattr(blocks, "WAIT", (0.0, 0.0))
    monkeypatch.setattr(blocks, "CHUNK", CHUNK)
    monkeypatch.setattr(evaluation, "PIECE", 1e-9)
    monkeypatch.setattr(evaluation, "grain_of", lambda kernel: 16)
    monkeypatch.setattr(Slow, "met", tmp_path / "met")


def fit(store: Any = None, **others: Any) -> tuple[str, list[Pair]]:
    """A mark of the coefficients, and the pairs that were evaluated."""
    Slow.met.write_text("")
    found = mark(model(store, **others).fit(X, Y))
    return found, pairs_in(Slow.met)


def pairs_in(met: Path) -> list[Pair]:
    lines = met.read_text().splitlines()
    return [(float(a), float(z)) for a, z in (line.split() for line in lines)]


def log_of(store: Path) -> list[Any]:
    """Whole lines of the log, read without the library."""
    text = (store / "done.jsonl").read_text() if (store / "done.jsonl").exists() else ""
    return [json.loads(line)[1] for line in text.splitlines(keepends=True) if line[-1] == "\n"]


def numbers(runs: list[Any]) -> list[int]:
    return [i for run in runs for i in (range(*run) if isinstance(run, list) else [run])]


def chunks_of(store: Path, objects: list[Any] = X) -> dict[int, set[Any]]:
    """Pairs of different objects in every chunk that the log names."""
    found: dict[int, set[Any]] = {}
    log = log_of(store)
    columns = {e["columns"]: numbers(e["numbers"]) for e in log if "numbers" in e}
    for entry in (e for e in log if "block" in e):
        both = [(i, j) for i in numbers(entry["rows"]) for j in columns[entry["columns"]]]
        for place, (i, j) in enumerate(both):
            chunk = found.setdefault(entry["block"] + place // CHUNK, set())
            if j >= 0 and i != j:
                chunk.add(tuple(sorted((objects[i], objects[j]))))
    return found


def logged(store: Path, objects: list[Any] = X) -> set[Any]:
    return set().union(*chunks_of(store, objects).values())


@pytest.fixture(scope="module")
def alone() -> str:
    return mark(model(None).fit(X, Y))


# Kills


@contextmanager
def process(store: Path, met: Path, seconds: float) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A fit that has begun, and its number, which is not that of Popen in a venv of Windows."""
    call = f"run({str(store)!r}, {str(met)!r}, {seconds})"
    running = subprocess.Popen(
        [sys.executable, "-c", f"from tests.reliability.slow_fit import run; {call}"],
        stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    try:
        assert running.stdout is not None
        ready, pid = running.stdout.readline().split()
        assert ready == "ready"
        yield running, int(pid)
    finally:
        running.kill()
        running.communicate(timeout=60)


def wait_for_more(store: Path, lines: int, running: subprocess.Popen[str]) -> None:
    end = time.monotonic() + 120
    while len(log_of(store)) < lines:
        assert running.poll() is None, "it was done before it could be killed"
        assert time.monotonic() < end
        time.sleep(0.01)


def test_killed_three_times_every_logged_block_is_used(
    tmp_path: Path, alone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "CHUNK", 2**17)
    store, chance, before = tmp_path / "store", random.Random(), 0
    for k in range(3):
        kept, met = logged(store) if k else set(), tmp_path / f"met{k}"
        with process(store, met, 1e-3) as (running, pid):
            wait_for_more(store, before + 3, running)
            if k == 0:  # bad input 65: a second process
                with pytest.raises(RuntimeError, match=f"in use by process {pid} on") as e:
                    model(store).fit(X, Y)
                assert repr(str(store)) in str(e.value)
            time.sleep(chance.random() * 0.2)
            running.kill()
            running.wait(60)
        assert kept.isdisjoint(pairs_in(met))
        assert len(logged(store)) > len(kept)
        before = len(log_of(store))
    kept = logged(store)
    found, met_now = fit(store)
    assert found == alone
    assert kept.isdisjoint(met_now)
    assert met_now  # or nothing was left to do after the kills
    assert fit(store) == (alone, [])


def test_killed_while_it_writes(tmp_path: Path, alone: str) -> None:
    store = tmp_path / "store"
    fit(store)
    chunks, kept = store / "values" / "c", logged(store)
    last = max(chunks_of(store))
    (chunks / f"{last + 1}").write_bytes(b"of a block that is not in the log")
    (chunks / f"{last + 2}.abc.partial").write_bytes(b"half")
    with (store / "done.jsonl").open("a") as log:
        log.write('[123,{"block":' + str(last + 1))
    (store / "run.json.partial").write_text("{")
    found, met = fit(store, landmarks=20)
    assert kept.isdisjoint(met)
    assert met
    assert found == fit(None, landmarks=20)[0]
    assert fit(store) == (alone, [])
    assert not list(chunks.glob("*.partial"))


@pytest.mark.usefixtures("heard")
def test_bad_input_64_control_c(
    tmp_path: Path, alone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "WAIT", (1e9, 1e9))  # all is written at the end, if at all
    store, calls, evaluate = tmp_path / "store", [0], Slow.values

    def interrupted(self: Any, A: Any, Z: Any) -> Any:
        calls[0] += 1
        if calls[0] == 30:
            signal.raise_signal(signal.SIGINT)
        return evaluate(self, A, Z)

    started = model(store)
    with monkeypatch.context() as patch:
        patch.setattr(Slow, "values", interrupted)
        with pytest.raises(KeyboardInterrupt):
            started.fit(X, Y)
    with pytest.raises(NotFittedError):
        started.predict(X)
    kept = logged(store)
    assert len(kept) > 100
    found, met = fit(store)
    assert found == alone
    assert kept.isdisjoint(met)


# Damage


def flip(path: Path, place: int = -40) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 16
    path.write_bytes(content)


DAMAGE = {
    "flipped": flip,
    "truncated": lambda path: os.truncate(path, path.stat().st_size // 2),
    "empty": lambda path: os.truncate(path, 0),
    "removed": lambda path: path.unlink(),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_damaged_blocks_and_no_other_are_evaluated_again(
    kind: str, tmp_path: Path, alone: str
) -> None:
    store = tmp_path / "store"
    fit(store)
    chunks = chunks_of(store)
    chosen = sorted(chunks, key=lambda chunk: -len(chunks[chunk]))[1:4:2]
    for chunk in chosen:
        DAMAGE[kind](store / "values" / "c" / str(chunk))
    elsewhere = set().union(*(chunks[chunk] for chunk in chunks if chunk not in chosen))
    with pytest.warns(UserWarning, match=r"block \d+ of the store .* is damaged or gone") as said:
        found, met = fit(store)
    assert sorted(int(str(one.message).split()[1]) for one in said) == sorted(chosen)
    assert set(met) == set().union(*(chunks[chunk] for chunk in chosen)) - elsewhere
    assert met
    assert found == alone
    assert fit(store) == (alone, [])  # and no warning any more


def test_a_damaged_line_of_the_log(tmp_path: Path, alone: str) -> None:
    store = tmp_path / "store"
    fit(store)
    before, lines = logged(store), (store / "done.jsonl").read_bytes().splitlines()
    place = [i for i, line in enumerate(lines) if b'"block"' in line][2]
    lines[place] = lines[place].replace(b'"rows":[', b'"rows":[1,')
    (store / "done.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    with pytest.warns(UserWarning, match=r"1 lines of .*done.jsonl are damaged"):
        found, met = fit(store)
    assert found == alone
    assert 0 < len(set(met)) < len(before) / 2


def test_run_json(tmp_path: Path) -> None:
    store = tmp_path / "store"
    fit(store)
    text = (store / "run.json").read_text()
    for changed, why in (
        (text[:100], "run.json is damaged"),
        (text.replace('"format": 1', '"format": 2'), "written by a newer version"),
        (text.replace('"1.', '"0.') if '"1.' in text else text.replace('"0.', '"9.'), "version of"),
    ):
        (store / "run.json").write_text(changed)
        with pytest.raises(ValueError, match=why):
            fit(store)
    (store / "run.json").write_text(text)
    (store / "values" / "zarr.json").unlink()
    assert fit(store)[1] == []


def test_rows_whose_fingerprints_are_lost(tmp_path: Path) -> None:
    store = tmp_path / "store"
    model(store, landmarks=np.arange(5)).fit(X[:100], Y[:100])
    model(store, landmarks=np.arange(5)).fit(X, Y)
    text = (store / "done.jsonl").read_text().splitlines()
    kept = [line for line in text if '"data"' not in line]
    assert len(kept) == len(text) - 1
    (store / "done.jsonl").write_text("\n".join(kept) + "\n")
    with pytest.raises(ValueError, match="lost the fingerprints of rows from 100 on"):
        fit(store)


def test_folders_that_are_no_store(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("...")
    with pytest.raises(ValueError, match=r"holds 'thesis.txt' and no run.json: it is no store"):
        fit(tmp_path / "other")
    assert (tmp_path / "other" / "thesis.txt").exists()
    with pytest.raises(OSError, match=r"cannot be written .*pass a folder that can be"):
        fit(tmp_path / "other" / "thesis.txt")


# The disk


@contextmanager
def small_files(folder: Path) -> Iterator[None]:
    """Files of at most 1.5 kB."""
    with systems.small_files(1500):
        yield


@contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """A file that fills a disk of its own but for a few blocks, while inside."""
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", folder], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("no disk can be mounted here")
    free = os.statvfs(folder)
    (folder / "ballast").write_bytes(b"x" * (free.f_bavail * free.f_frsize - 50_000))
    yield
    (folder / "ballast").unlink()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "disk").mkdir()
    yield tmp_path / "disk"
    for _ in range(50):  # threads of zarr may have a file open for a moment
        if not os.path.ismount(tmp_path / "disk"):
            return
        gc.collect()
        subprocess.run(["umount", tmp_path / "disk"], capture_output=True)
        time.sleep(0.2)
    subprocess.run(["umount", "-l", tmp_path / "disk"], check=True)
    pytest.fail("a file on the disk is still open")


@posix_only("limits on the size of files, and small disks")
@pytest.mark.parametrize("limit", [small_files, small_disk])
def test_bad_input_63_a_full_disk(
    limit: Any, folder: Path, alone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("mount") is None and limit is small_disk:
        pytest.skip("no mount here")
    store = folder / "store"
    with limit(folder):
        monkeypatch.setattr(Slow, "met", Path(os.devnull))
        with pytest.raises(OSError, match=r"File too large|No space left") as caught:
            model(store).fit(X, Y)
        assert caught.value.errno in (errno.EFBIG, errno.ENOSPC)
        assert "written before is kept in the store" in caught.value.__notes__[0]
    kept = logged(store)
    assert kept
    monkeypatch.setattr(Slow, "met", folder.parent / "met")
    found, met = fit(store)
    assert found == alone
    assert kept.isdisjoint(met)
    assert met


@posix_only("limits on the size of files, and small disks")
@pytest.mark.parametrize("limit", [small_files, small_disk])
def test_bad_input_63_a_full_disk_under_a_store_is_not_blamed_on_the_model(
    limit: Any, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if shutil.which("mount") is None and limit is small_disk:
        pytest.skip("no mount here")
    table, store, output = tmp_path / "words.csv", folder / "store", tmp_path / "m.krein"
    rows = "".join(f"x{'ab' * (i % 9)}{'c' * (i % 7)},{i % 2}\n" for i in range(200))
    table.write_text(f"text,label\n{rows}")
    words = ["fit", table, "--target", "label", "--kernel", "levenshtein", "--quiet"]
    with limit(folder):
        assert main([*map(str, words), "--store", str(store), "-o", str(output)]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"kreinlearn: {store}")
    assert any(text in error for text in ("File too large", "No space left"))
    assert str(output) not in error


@posix_only("folders that their mode closes")
def test_a_folder_that_is_not_ours(tmp_path: Path) -> None:
    closed, user = tmp_path / "closed", os.geteuid()
    closed.mkdir(mode=0o500)
    if user == 0:
        os.seteuid(65534)
    try:
        with pytest.raises(PermissionError, match=r"store='.*closed/store' cannot be written"):
            model(closed / "store").fit(X, Y)
    finally:
        os.seteuid(user)
    assert not (closed / "store").exists()


# A person's function


class Licence(RuntimeError):
    pass


WORDS = ["a" * (1 + i % 7) + "b" * (i % 4) + str(i) for i in range(50)]


def test_bad_input_30_a_function_that_raises_midway(tmp_path: Path) -> None:
    failing, calls = [True], list[Any]()

    def similarity(a: str, b: str) -> float:
        if failing[0] and WORDS[40] in (a, b):
            raise Licence("no licence", 7)
        calls.append((a, b))
        return -float(abs(len(a) - len(b)))

    def start() -> Any:
        given = {"landmarks": [3, 4, 5], "lambda_plus": 1.0, "lambda_minus": 1.0}
        learner = KreinRidge(pairwise(similarity), **given, resources=Resources(store=tmp_path))
        return learner.fit(WORDS, np.arange(50.0))

    with pytest.raises(Licence, match="no licence") as caught:
        start()
    said = "\n".join(caught.value.__notes__)
    assert "against 3 landmarks" in said
    assert f"what was finished is kept in the store {str(tmp_path)!r}; fit again" in said
    assert "nothing of this fit was kept" not in said
    kept = logged(tmp_path, WORDS)
    assert len(kept) > 60
    failing[0] = False
    calls.clear()
    start()
    met = {tuple(sorted(pair)) for pair in calls if pair[0] != pair[1]}
    assert len(met - kept) == 3 * 47 + 3 - len(kept)
    assert len(met & kept) <= 8 + 3  # stored pairs and those among landmarks are looked at again


def test_bad_input_32_a_function_that_is_not_deterministic(tmp_path: Path) -> None:
    draw = random.Random(0)

    def similarity(a: str, b: str) -> float:
        return draw.random()

    def start() -> Any:
        return KreinRidge(pairwise(similarity), landmarks=5, resources=Resources(store=tmp_path))

    with pytest.warns(UserWarning, match="not deterministic"):
        start().fit(WORDS, np.arange(50.0))
    with pytest.raises(ValueError, match=r"gives 0\.\d+ now, and 0\.\d+ is stored; it is not det"):
        start().fit(WORDS, np.arange(50.0))


def dies(a: str, b: str, flag: str = "") -> float:
    if b == WORDS[3] and a == WORDS[45] and os.path.exists(flag):
        os.kill(os.getpid(), KILL)
    return -float(abs(len(a) - len(b)))


def test_bad_input_66_a_worker_is_killed(tmp_path: Path) -> None:
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    flag, store = tmp_path / "flag", tmp_path / "store"
    flag.touch()
    given = {"landmarks": [3, 4, 5], "lambda_plus": 1.0, "lambda_minus": 1.0, "n_jobs": 2}
    kernel, resources = pairwise(dies, flag=str(flag)), Resources(store=store)
    start = KreinRidge(kernel, **given, resources=resources)
    with pytest.raises(TerminatedWorkerError):
        start.fit(WORDS, np.arange(50.0))
    kept = [entry for entry in log_of(store) if "block" in entry]
    assert kept
    flag.unlink()
    found = mark(start.fit(WORDS, np.arange(50.0)))
    rows = [numbers(e["rows"]) for e in log_of(store) if "block" in e]
    assert rows[: len(kept)] == [numbers(e["rows"]) for e in kept]
    assert len({i for part in rows for i in part}) == sum(map(len, rows))  # no row twice
    assert found == mark(start.set_params(resources=None, n_jobs=1).fit(WORDS, np.arange(50.0)))
