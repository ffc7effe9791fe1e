"""The ZIP file of a model: members without compression, in one canonical form.

Every byte is either content or follows from the names, sizes and checksums of the members, and is
compared with what ``write`` would write for these: no field is left that could say two things.
Sizes have 64 bits. Nothing is ever extracted to disk.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from hashlib import sha256
from typing import BinaryIO, NamedTuple

from kreinlearn.persist.errors import ModelFormatError, require

MOST_MEMBERS = 10_000
LONGEST_NAME = 200
ALL_16, ALL_32 = 0xFFFF, 0xFFFF_FFFF  # say that the number is in the field of 64 bits
VERSION, MADE_BY = 45, 3 << 8 | 45  # of the ZIP format with 64 bits; on Unix
DATE = 1 << 5 | 1  # 1 January 1980: the same model gives the same file
MODE = 0o100644 << 16
CENTRAL = struct.Struct("<4s6H3L5H2L")
TAIL = struct.Struct("<4sQ2H2L4Q4sLQL4s4H2LH")
CHUNK = 2**20
Buffer = bytes | bytearray | memoryview


class Member(NamedTuple):
    """A member of the file by its name, size, checksum and the place where its header starts."""

    name: str
    size: int
    crc: int
    start: int

    @property
    def local(self) -> bytes:
        """The header before the content of the member."""
        sizes = struct.pack("<2H2Q", 1, 16, self.size, self.size)
        fixed = struct.pack(
            "<4s5H3L2H", b"PK\3\4", VERSION, 0, 0, 0, DATE, self.crc, ALL_32, ALL_32,
            len(self.name), len(sizes),
        )  # fmt: skip
        return fixed + self.name.encode("ascii") + sizes

    @property
    def central(self) -> bytes:
        """The entry of the member in the directory at the end of the file."""
        sizes = struct.pack("<2H3Q", 1, 24, self.size, self.size, self.start)
        fixed = CENTRAL.pack(
            b"PK\1\2", MADE_BY, VERSION, 0, 0, 0, DATE, self.crc, ALL_32, ALL_32,
            len(self.name), len(sizes), 0, 0, 0, MODE, ALL_32,
        )  # fmt: skip
        return fixed + self.name.encode("ascii") + sizes

    @property
    def stop(self) -> int:
        """The place after the content of the member."""
        return self.start + len(self.local) + self.size


def _tail(n: int, size: int, start: int) -> bytes:
    """The end of a file whose directory has n entries in ``size`` bytes from ``start`` on."""
    return TAIL.pack(
        b"PK\6\6", 44, MADE_BY, VERSION, 0, 0, n, n, size, start,
        b"PK\6\7", 0, start + size, 1,
        b"PK\5\6", 0, 0, ALL_16, ALL_16, ALL_32, ALL_32, 0,
    )  # fmt: skip


def write(file: BinaryIO, members: Sequence[tuple[str, Sequence[Buffer]]]) -> None:
    """Write a file of members, each given by its name and the parts of its content."""
    directory, start = b"", 0
    for name, parts in members:
        size, crc = sum(memoryview(part).nbytes for part in parts), 0
        for part in parts:
            crc = zlib.crc32(part, crc)
        member = Member(name, size, crc, start)
        file.write(member.local)
        for part in parts:
            file.write(part)
        directory, start = directory + member.central, member.stop
    file.write(directory + _tail(len(members), len(directory), start))


def read_directory(file: BinaryIO, size: int) -> dict[str, Member]:
    """The members of a file of this size, which must fill it without gaps."""
    require(size >= TAIL.size, "it is too short to be one")
    file.seek(size - TAIL.size)
    tail = _read(file, TAIL.size)
    n, length, start = TAIL.unpack(tail)[7:10]
    whole = start + length == size - TAIL.size and tail == _tail(n, length, start)
    require(whole, "its end is not as save writes it: it was cut short, changed or packed anew")
    require(0 < n <= MOST_MEMBERS, f"it has {n} members, and 1 to {MOST_MEMBERS} are allowed")
    most = n * (CENTRAL.size + LONGEST_NAME + 28)
    require(length <= most, f"the directory of its {n} members has {length} bytes")
    file.seek(start)
    return _parsed(_read(file, length), n, start)


def _parsed(directory: bytes, n: int, end: int) -> dict[str, Member]:
    """The members of a directory of n entries; their contents end where it starts."""
    members: dict[str, Member] = {}
    at = start = 0
    for _ in range(n):
        member = _entry(directory[at:], start)
        require(member.name not in members, f"it has two members {member.name!r}")
        require(member.stop <= end, f"member {member.name!r} says that it is larger than the file")
        members[member.name] = member
        at, start = at + len(member.central), member.stop
    require(at == len(directory) and start == end, "its members do not fill the file")
    return members


def _entry(text: bytes, start: int) -> Member:
    """The first entry of a directory, for a member that starts at ``start``."""
    damaged = "its directory is not as save writes it"
    require(len(text) >= CENTRAL.size, damaged)
    fields = CENTRAL.unpack_from(text)
    crc, length = fields[7], fields[10]
    raw, sizes = text[CENTRAL.size :][:length], text[CENTRAL.size + length :][:28]
    require(len(sizes) == 28 and 0 < length <= LONGEST_NAME and raw.isascii(), damaged)
    member = Member(raw.decode("ascii"), struct.unpack_from("<Q", sizes, 4)[0], crc, start)
    require(text.startswith(member.central), damaged)
    return member


class Content:
    """The content of one member, which is read once from beginning to end and then checked."""

    def __init__(self, file: BinaryIO, member: Member) -> None:
        self.file, self.name, self.left, self.crc = file, member.name, member.size, member.crc
        file.seek(member.start)
        header = _read(file, len(member.local))
        require(header == member.local, f"the two headers of member {member.name!r} differ")
        self.sha256, self._crc = sha256(), 0

    def read(self, size: int) -> bytes:
        """The next bytes of the content."""
        part = bytearray(size)
        self.fill(part)
        return bytes(part)

    def fill(self, part: Buffer) -> None:
        """Read as much as there is room for, one chunk at a time."""
        view = memoryview(part)
        require(view.nbytes <= self.left, f"member {self.name!r} is too short")
        for at in range(0, view.nbytes, CHUNK):
            here = view[at : at + CHUNK]
            read = self.file.readinto(here)  # type: ignore[attr-defined]
            require(read == len(here), "the file ended while it was read")
            self._crc = zlib.crc32(here, self._crc)
            self.sha256.update(here)
        self.left -= view.nbytes
        right = self.left or self._crc == self.crc
        require(right, f"member {self.name!r} is damaged: its checksum is wrong")


def _read(file: BinaryIO, size: int) -> bytes:
    text = file.read(size)
    if len(text) != size:
        raise ModelFormatError("the file ended while it was read")
    return text
