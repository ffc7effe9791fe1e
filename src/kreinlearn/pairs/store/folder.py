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

from kreinlearn._system import BINARY, lock_file
from kreinlearn._warnings import warn
from kreinlearn.data.writing import replacing

FORMAT = 1
OWN_FILES = ("lock", ".run.json.")  # how files begin in a store that has no run.json yet
Entry: TypeAlias = dict[str, Any]


class StoreInUse(RuntimeError):
    """Another process holds the lock of a store."""


class Folder:
    """A folder that one process at a time writes to.

    ``run.json`` describes the kernel and the rows; it is written first and never changed.
    ``done.jsonl`` is the log: it names the values that have reached the disk, and only these are
    read.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock = _locked(self.path)
        except OSError as error:
            raise _opening(error, self.path) from error
        self._log = -1

    def description(self, fresh: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """The description of the kernel and the rows; ``fresh()`` is written to a new store."""
        if not (self.path / "run.json").exists():
            self._require_empty()
            text = json.dumps({"format": FORMAT, **fresh()}, indent=1)
            try:
                with replacing(self.path / "run.json") as new:
                    new.write_text(text, encoding="utf8")
            except OSError as error:
                raise _opening(error, self.path) from error
        try:
            text = (self.path / "run.json").read_text(encoding="utf8")
            recorded: dict[str, Any] = json.loads(text)
            version = int(recorded["format"])
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"{self.path / 'run.json'} is damaged ({error}): it is unknown which kernel and "
                "rows the values belong to; pass another path as store"
            ) from error
        if version > FORMAT:
            raise ValueError(
                f"the store {str(self.path)!r} was written by a newer version of kreinlearn "
                f"(format {version}, and this one reads up to {FORMAT}); update kreinlearn, or "
                "pass another path"
            )
        return recorded

    def _require_empty(self) -> None:
        """Raise ValueError for a folder with files that do not belong to a store."""
        others = sorted(p.name for p in self.path.iterdir() if not p.name.startswith(OWN_FILES))
        if others:
            raise ValueError(
                f"store={str(self.path)!r} holds {others[0]!r} and no run.json: it is no store; "
                "pass a folder that is empty or does not exist"
            )

    def entries(self) -> list[Entry]:
        """The entries of the log, without damaged lines and without an incomplete last line."""
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | BINARY
        self._log = os.open(self.path / "done.jsonl", flags, 0o666)
        text = (self.path / "done.jsonl").read_bytes()
        whole = text.rfind(b"\n") + 1
        os.ftruncate(self._log, whole)
        entries = [_entry(line) for line in text[:whole].splitlines()]
        if damaged := entries.count(None):
            warn(
                f"{damaged} lines of {self.path / 'done.jsonl'} are damaged; the kernel values "
                "they name will be evaluated again"
            )
        return [entry for entry in entries if entry is not None]

    def append(self, entries: Iterable[Entry]) -> None:
        """Write entries to the log: when this returns all are on the disk, if it fails none."""
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
        os.close(self._lock)  # which releases the lock


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


def _locked(path: Path) -> int:
    """A handle that holds the lock of the folder until it is closed or the process ends."""
    handle = os.open(path / "lock", os.O_RDWR | os.O_CREAT | BINARY, 0o666)
    try:
        lock_file(handle)
    except BlockingIOError:
        holder = os.read(handle, 200).decode("utf8", "replace").strip() or "another process"
        os.close(handle)
        raise StoreInUse(
            f"the store {str(path)!r} is in use by {holder}; wait until that fit ends, or pass "
            "another path as store"
        ) from None
    os.ftruncate(handle, 0)
    os.write(handle, f"process {os.getpid()} on {socket.gethostname()}\n".encode())
    return handle


def _opening(error: OSError, path: Path) -> OSError:
    """The same error, with the path of the store and a remedy."""
    what = f"store={str(path)!r} cannot be written ({error.strerror}); pass a folder that can be"
    return type(error)(error.errno, what, str(path))
