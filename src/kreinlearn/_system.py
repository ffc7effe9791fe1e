"""What differs between operating systems."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

BINARY = getattr(os, "O_BINARY", 0)  # for os.open: Windows would write "\n" as two bytes
LOCKED_BYTE = 2**30  # Windows locks bytes, which nobody can read; this one is behind every text


def lock_file(handle: int) -> None:
    """Lock an open file until it is closed or the process ends, however it ends.

    Raises BlockingIOError if another process, or another handle of this one, holds the lock.
    """
    if sys.platform == "win32":
        import msvcrt

        place = os.lseek(handle, 0, os.SEEK_CUR)
        os.lseek(handle, LOCKED_BYTE, os.SEEK_SET)
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError as error:  # EACCES, and on some systems EDEADLK
            raise BlockingIOError(error.errno, error.strerror) from error
        finally:
            os.lseek(handle, place, os.SEEK_SET)
    else:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def nobody_reads(error: OSError) -> bool:
    """Tell whether a write failed because the reader of stdout has gone away.

    Windows says EINVAL then, as of other faults; what is left to write fails once more.
    """
    if sys.platform == "win32" and error.errno == errno.EINVAL:
        try:
            sys.stdout.flush()
        except OSError:
            return True
    return isinstance(error, BrokenPipeError)


def sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, have reached the disk."""
    folder = path.is_dir()
    if folder and sys.platform == "win32":
        return  # folders cannot be opened there, and names are written with the files
    handle = os.open(path, os.O_RDONLY if folder else os.O_RDWR)  # Windows asks for the latter
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
