"""Old payloads in compressed files: a body in the log is then the place of its content in one of them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import msgspec
import zstandard

from hearth.memory.errors import LogUnavailable, UnknownEvent
from hearth.memory.events.codec import MAX_BYTES, decode
from hearth.memory.events.data_keys import is_encrypted
from hearth.memory.events.kinds import Payload
from hearth.memory.events.sql import Archive, Database

FRAME_BYTES = 128 << 10
"""Content compressed together: what is alike is stored once, and reading one event stays cheap."""
LEVEL = 12
"""Of compression: written once and read seldom."""

_MARK = b"\0A"
"""No JSON and no compressed frame begins so."""
_CACHED = 8
"""Frames kept in memory for events that are read one after another."""


class ArchiveMoved(LogUnavailable):
    """The file was written anew meanwhile; the log has the new place."""


class _Place(NamedTuple):
    """Where a content is: the file, its frame there, and its bytes in that."""

    file: str
    frame: int
    size: int
    start: int
    length: int


def is_place(body: bytes) -> bool:
    """Whether a stored body is a place in an archive."""
    return body.startswith(_MARK)


def in_archive(db: Database, body: bytes) -> bytes:
    """A stored body, or what an archive holds in its place, encrypted or not.

    Raises LogUnavailable for an archive that can't be read.
    """
    return db.archive.read(body) if is_place(body) else body


def stored_body(db: Database, body: bytes, user: int, id: str) -> bytes:
    """What `decode` reads of the stored body of the event of that id and row of a user.

    Raises ValueError where it can't be decrypted; LogUnavailable for an archive that can't be read and for a
    master key that is not configured.
    """
    held = in_archive(db, body)
    return db.keys.decrypt(db, user, held, "event", id) if is_encrypted(held) else held


def payload_of(db: Database, kind: str, version: int, body: bytes, user: int, id: str) -> Payload:
    """The payload of a stored body, from the columns `STORED`.

    Raises UnknownEvent, and LogUnavailable as `stored_body` does.
    """
    try:
        held = stored_body(db, bytes(body), user, id)
    except ValueError as error:
        raise UnknownEvent(kind, version, f"it can't be decrypted ({error})") from error
    return decode(kind, version, held)


class NoArchive:
    """Stands for an archive where no folder is named."""

    def write(self, name: str, contents: Sequence[bytes]) -> list[bytes]:
        """See `Archive.write`."""
        raise _no_folder()

    def read(self, place: bytes) -> bytes:
        """See `Archive.read`."""
        raise _no_folder()

    def size(self, name: str) -> int:
        """See `Archive.size`."""
        raise _no_folder()

    def remove(self, name: str) -> None:
        """See `Archive.remove`."""
        raise _no_folder()


NO_ARCHIVE: Archive = NoArchive()


def _no_folder() -> LogUnavailable:
    return LogUnavailable("old payloads are in archives, whose folder is not named: set hearth.archive_dir")


class ArchiveFolder:
    """Archives as files of one folder, which all processes over the log share."""

    def __init__(self, folder: Path) -> None:
        """The folder is made with the first file."""
        self._folder = folder
        self._frame = lru_cache(maxsize=_CACHED)(self._read_frame)

    def write(self, name: str, contents: Sequence[bytes]) -> list[bytes]:
        """See `Archive.write`."""
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with os.fdopen(
                os.open(self._path(name), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb"
            ) as file:
                places = [
                    msgspec.msgpack.encode(_Place(name, *frame, start, length))
                    for group in _groups(contents)
                    for frame in [_append(file.fileno(), b"".join(group))]
                    for start, length in _spans(group)
                ]
                os.fsync(file.fileno())
            self._sync()
        except OSError as error:
            raise LogUnavailable(f"the archive {self._path(name)} can't be written: {error}") from error
        return [_MARK + place for place in places]

    def read(self, place: bytes) -> bytes:
        """See `Archive.read`."""
        try:
            at = msgspec.msgpack.decode(place[len(_MARK) :], type=_Place)
            return self._frame(at.file, at.frame, at.size)[at.start : at.start + at.length]
        except FileNotFoundError as error:
            raise ArchiveMoved(
                f"an archive is missing: {error.filename}; hearth.archive_dir is one folder for all processes"
            ) from error
        except (OSError, zstandard.ZstdError, msgspec.MsgspecError) as error:
            raise LogUnavailable(f"an archive in {self._folder} can't be read: {error}") from error

    def size(self, name: str) -> int:
        """See `Archive.size`."""
        try:
            return self._path(name).stat().st_size
        except OSError as error:
            raise LogUnavailable(f"the archive {self._path(name)} can't be read: {error}") from error

    def remove(self, name: str) -> None:
        """See `Archive.remove`. Nothing of the file stays in memory."""
        try:
            self._path(name).unlink(missing_ok=True)
            if self._folder.exists():
                self._sync()
        except OSError as error:
            raise LogUnavailable(f"the archive {self._path(name)} can't be removed: {error}") from error
        self._frame.cache_clear()

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.zst"

    def _sync(self) -> None:
        descriptor = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _read_frame(self, name: str, start: int, size: int) -> bytes:
        with self._path(name).open("rb") as file:
            packed = os.pread(file.fileno(), size, start)
        return zstandard.ZstdDecompressor().decompress(packed, max_output_size=MAX_BYTES)


def _groups(contents: Sequence[bytes]) -> list[list[bytes]]:
    """The contents of one frame each."""
    groups: list[list[bytes]] = []
    held = FRAME_BYTES
    for content in contents:
        if held + len(content) > FRAME_BYTES:
            groups.append([])
            held = 0
        groups[-1].append(content)
        held += len(content)
    return groups


def _spans(group: Sequence[bytes]) -> list[tuple[int, int]]:
    spans, start = [], 0
    for content in group:
        spans.append((start, len(content)))
        start += len(content)
    return spans


def _append(descriptor: int, raw: bytes) -> tuple[int, int]:
    """Write a frame at the end; where it begins and how long it is."""
    packed = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True).compress(raw)
    start = os.lseek(descriptor, 0, os.SEEK_CUR)
    left = memoryview(packed)
    while left:
        left = left[os.write(descriptor, left) :]
    return start, len(packed)
