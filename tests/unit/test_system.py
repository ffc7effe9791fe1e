"""Locks and files as every operating system has them."""

from __future__ import annotations

import errno
import io
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from kreinlearn._system import BINARY, LOCKED_BYTE, lock_file, nobody_reads, sync

HOLDING = """
import os, sys, time
from kreinlearn._system import lock_file
lock_file(os.open(sys.argv[1], os.O_RDWR))
print("held", flush=True)
time.sleep(600)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "lock"
    path.write_bytes(b"process 7\n")
    return path


def opened(path: Path) -> int:
    return os.open(path, os.O_RDWR | BINARY)


def test_a_second_handle_has_to_wait_for_the_first(path: Path) -> None:
    first, second = opened(path), opened(path)
    lock_file(first)
    with pytest.raises(BlockingIOError):
        lock_file(second)
    assert os.read(second, 99) == b"process 7\n"  # who holds it can be read
    os.close(first)
    lock_file(second)
    os.close(second)


def test_the_lock_of_a_killed_process_is_free(path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDING, str(path)], stdout=subprocess.PIPE, text=True
    )
    handle = opened(path)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(BlockingIOError):
            lock_file(handle)
        holder.kill()
        assert holder.stdout.read() == ""  # in a venv of Windows another process holds the lock
        holder.wait()
        lock_file(handle)
    finally:
        holder.kill()
        holder.communicate()
        os.close(handle)


@pytest.mark.parametrize("refused", [None, errno.EACCES, errno.EDEADLK])
def test_windows_locks_a_byte_behind_the_text(
    path: Path, monkeypatch: pytest.MonkeyPatch, refused: int | None
) -> None:
    locked = []

    def locking(handle: int, mode: int, size: int) -> None:
        locked.append((os.lseek(handle, 0, os.SEEK_CUR), mode, size))
        if refused is not None:
            raise OSError(refused, "no")

    handle = opened(path)
    os.lseek(handle, 3, os.SEEK_SET)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "platform", "win32")
        patch.setitem(sys.modules, "msvcrt", SimpleNamespace(locking=locking, LK_NBLCK=2))
        patch.setitem(sys.modules, "fcntl", None)
        if refused is None:
            lock_file(handle)
        else:
            with pytest.raises(BlockingIOError):
                lock_file(handle)
    assert locked == [(LOCKED_BYTE, 2, 1)]
    assert os.read(handle, 99) == b"cess 7\n"  # the place is as it was
    assert path.stat().st_size == 10
    os.close(handle)


class Pipe(io.StringIO):
    """An output to which nothing more can be written if nobody reads it."""

    def __init__(self, read: bool) -> None:
        super().__init__()
        self.read_on = read

    def flush(self) -> None:
        if not self.read_on:
            raise OSError(errno.EINVAL, "Invalid argument")


@pytest.mark.parametrize(
    ("platform", "error", "read", "expected"),
    [
        ("linux", BrokenPipeError(errno.EPIPE, "Broken pipe"), False, True),
        ("linux", OSError(errno.EINVAL, "Invalid argument"), False, False),
        ("win32", BrokenPipeError(errno.EPIPE, "Broken pipe"), False, True),
        ("win32", OSError(errno.EINVAL, "Invalid argument"), False, True),
        ("win32", OSError(errno.EINVAL, "Invalid argument"), True, False),  # of another file
        ("win32", OSError(errno.ENOSPC, "No space left"), False, False),
    ],
)
def test_windows_says_something_else_of_a_reader_that_goes_away(
    platform: str, error: OSError, read: bool, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(sys, "platform", platform)
        patch.setattr(sys, "stdout", Pipe(read))
        found = nobody_reads(error)
    assert found is expected


def test_files_are_synced_by_a_handle_that_may_write(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Windows refuses to sync a file that is open for reading, and to open a folder."""
    flags: dict[Path, int] = {}
    really = os.open

    def open_(path: Path, how: int) -> int:
        flags[path] = how
        return really(path, how)

    monkeypatch.setattr(os, "open", open_)
    sync(path)
    sync(path.parent)
    folders = {path.parent: os.O_RDONLY} if os.name == "posix" else {}
    assert flags == {path: os.O_RDWR, **folders}
    flags.clear()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "platform", "win32")
        sync(path)
        sync(path.parent)
    assert flags == {path: os.O_RDWR}
