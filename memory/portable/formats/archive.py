"""Archives of exported data: what is read of one is bounded, whatever its directory claims."""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import RawIOBase
from typing import IO, Final, cast

from hearth.memory.errors import BadInput
from hearth.memory.portable.form import Limits

MAGIC: Final = b"PK"
_WANTED: Final = re.compile(r"(?:.*/)?conversations(?:-\d+)?\.json")
_END: Final = b"PK\x05\x06"
_END_BYTES: Final = 65_557
_DIRECTORY_BYTES: Final = 32_000_000
"""Most of an archive's own list of what it holds, which is read whole."""


class _Bounded(RawIOBase):
    """A member of an archive that ends in an error where it holds more than it may."""

    def __init__(self, member: IO[bytes], name: str, most: int) -> None:
        self._member, self._name, self._most, self._read = member, name, most, 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        try:
            part = self._member.read(min(size, 1 << 20) if size >= 0 else 1 << 20)
        except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError) as error:
            raise BadInput(self._name, str(error), "a file that can be unpacked") from error
        self._read += len(part)
        if self._read > self._most:
            raise BadInput(self._name, f"more than {self._most} bytes", "a file that unpacks to less")
        return part


def is_archive(file: IO[bytes]) -> bool:
    """Whether the file begins as an archive does."""
    file.seek(0)
    return file.read(2) == MAGIC


@contextmanager
def unpacked(file: IO[bytes], limits: Limits) -> Iterator[list[IO[bytes]]]:
    """The conversations of an exported archive, each a file to be read once, from its start.

    Raises BadInput for what is no archive, for one without conversations, and where one unpacks to more than
    the limits allow: in all, or for its packed size.
    """
    _check_directory(file)
    try:
        archive = zipfile.ZipFile(file)
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError) as error:
        raise BadInput("archive", str(error), "a zip file") from error
    with archive:
        members = [one for one in archive.infolist() if _WANTED.fullmatch(one.filename)]
        if not members:
            raise BadInput("archive", f"{len(archive.infolist())} other files", "conversations.json in it")
        total = sum(one.file_size for one in members)
        if total > limits.unpacked_bytes:
            raise BadInput("archive", f"{total} bytes unpacked", f"at most {limits.unpacked_bytes}")
        yield [_opened(archive, one, limits) for one in sorted(members, key=lambda one: one.filename)]


def _opened(archive: zipfile.ZipFile, member: zipfile.ZipInfo, limits: Limits) -> IO[bytes]:
    most = limits.ratio * max(member.compress_size, 1_000)
    if member.file_size > most:
        raise BadInput(
            member.filename,
            f"{member.file_size} bytes unpacked",
            f"at most {limits.ratio} times its packed size",
        )
    try:
        opened = archive.open(member)
    except (RuntimeError, NotImplementedError, zipfile.BadZipFile) as error:
        raise BadInput(member.filename, str(error), "a file that can be unpacked") from error
    return cast("IO[bytes]", _Bounded(opened, member.filename, min(most, limits.unpacked_bytes)))


def _check_directory(file: IO[bytes]) -> None:
    """Refuse an archive whose directory is a burden by itself."""
    size = file.seek(0, 2)
    file.seek(max(size - _END_BYTES, 0))
    tail = file.read()
    at = tail.rfind(_END)
    listed = int.from_bytes(tail[at + 12 : at + 16], "little") if at >= 0 else 0
    if listed > _DIRECTORY_BYTES:
        raise BadInput("archive", f"a directory of {listed} bytes", f"at most {_DIRECTORY_BYTES}")
