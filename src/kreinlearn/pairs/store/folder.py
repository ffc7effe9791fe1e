"""The folder of a store: its lock, the description of its values, and its log."""

from __future__ import annotations

import errno
import json
import os
import socket
import zlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

from kreinlearn._warnings import warn
from kreinlearn.data.files import sync

FORMAT = 1
OWN_FILES = ("lock", "run.json.partial")  # of a store that has no run.json yet
Entry: TypeAlias = dict[str, Any]


class Folder:
    """A folder that one process at a time writes to.

    ``run.json`` says what the values are of; it is written first and never changed.
    ``done.jsonl`` is the log: it names what has reached the disk, and nothing else counts.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock = _locked(self.path)
        except OSError as error:
            raise _opening(error, self.path) from error
        self._log = -1

    def run(self, fresh: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """The description of the values; in a new store it is ``fresh()``, and written now."""
        if not (self.path / "run.json").exists():
            self._require_empty()
            text = json.dumps({"format": FORMAT, **fresh()}, indent=1)
            write_whole(self.path / "run.json", text)
        try:
            run: dict[str, Any] = json.loads((self.path / "run.json").read_text(encoding="utf8"))
            version = int(run["format"])
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"{self.path / 'run.json'} is damaged ({error}): what the values are of is lost; "
                "pass another path as store"
            ) from error
        if version > FORMAT:
            raise ValueError(
                f"the store {str(self.path)!r} was written by a newer version of kreinlearn "
                f"(format {version}, this one knows {FORMAT}); update it, or pass another path"
            )
        return run

    def _require_empty(self) -> None:
        """Refuse a folder that holds something else."""
        others = sorted(p.name for p in self.path.iterdir() if p.name not in OWN_FILES)
        if others:
            raise ValueError(
                f"store={str(self.path)!r} holds {others[0]!r} and no run.json: it is no store; "
                "pass a folder that is empty or does not exist"
            )

    def entries(self) -> list[Entry]:
        """The entries of the log, without a last line that is incomplete and damaged lines."""
        self._log = os.open(self.path / "done.jsonl", os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        text = (self.path / "done.jsonl").read_bytes()
        whole = text.rfind(b"\n") + 1
        os.ftruncate(self._log, whole)
        entries = [_entry(line) for line in text[:whole].splitlines()]
        if damaged := entries.count(None):
            warn(
                f"{damaged} lines of {self.path / 'done.jsonl'} are damaged; the kernel values "
                "they name are evaluated again"
            )
        return [entry for entry in entries if entry is not None]

    def append(self, entries: Iterable[Entry]) -> None:
        """Write entries to the log: all are on the disk when this returns, none if it fails."""
        lines = b"".join(map(_line, entries))
        size = os.fstat(self._log).st_size
        try:
            written = os.write(self._log, lines)
            if written < len(lines):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))
            os.fsync(self._log)
        except BaseException:
            os.ftruncate(self._log, size)
            raise

    def close(self) -> None:
        if self._log >= 0:
            os.close(self._log)
        os.close(self._lock)  # and with it the lock


def _line(entry: Entry) -> bytes:
    """A line of the log, with a checksum."""
    text = json.dumps(entry, separators=(",", ":"))
    return b"[%d,%s]\n" % (zlib.crc32(text.encode()), text.encode())


def _entry(line: bytes) -> Entry | None:
    """The entry of a line of the log; None if the line is damaged."""
    check, _, text = line[1:-1].partition(b",")
    with suppress(ValueError):
        if zlib.crc32(text) == int(check):
            return dict(json.loads(text))
    return None


def write_whole(path: Path, text: str) -> None:
    """Write a file so that it exists as a whole or not at all, whatever happens."""
    partial = path.with_name(f"{path.name}.partial")
    try:
        with partial.open("w", encoding="utf8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    sync(path.parent)


def _locked(path: Path) -> int:
    """A handle that holds the lock of the folder until it is closed or the process ends."""
    import fcntl

    handle = os.open(path / "lock", os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.read(handle, 200).decode("utf8", "replace").strip() or "another process"
        os.close(handle)
        raise RuntimeError(
            f"the store {str(path)!r} is in use by {holder}; wait until that fit ends, or pass "
            "another path as store"
        ) from None
    os.ftruncate(handle, 0)
    os.write(handle, f"process {os.getpid()} on {socket.gethostname()}\n".encode())
    return handle


def _opening(error: OSError, path: Path) -> OSError:
    what = f"store={str(path)!r} cannot be written ({error.strerror}); pass a folder that can be"
    return type(error)(error.errno, what)
