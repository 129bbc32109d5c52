"""The ledger: who and what was erased, without a word of it, outside the log and its backups.

A backup from before an erasure brings back what was erased. So each erasure is written down here too, and
what a log does not know of is erased again before anybody can reach it.
"""

from __future__ import annotations

import asyncio
import fcntl
import hmac
import logging
import os
import secrets
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import msgspec

from hearth.memory.erasure.receipt import What
from hearth.memory.errors import LogUnavailable
from hearth.memory.events.database import sync_directory

logger = logging.getLogger(__name__)

VERSION = 1


class _Head(msgspec.Struct, frozen=True, kw_only=True):
    """The first line of a ledger."""

    ledger: int
    """Version of the format."""
    key: str
    """Keys the digests, hexadecimal."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One erasure: digests of names, and no name."""

    event: str
    """Id of the event that erased it: a log that has it needs nothing."""
    what: What
    who: str
    """Digest of tenant and user, of a tenant's erasure of the tenant alone."""
    record: str = ""
    """Digest of the record with its user; empty where all of a user went."""
    generation: int
    """Of the user from then on."""
    at: datetime


class Ledger:
    """One file that only grows; several processes may write to it. Blocking: call it in a thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._key = b""

    @property
    def path(self) -> Path:
        """Where it is."""
        return self._path

    async def add(self, entries: Sequence[Entry]) -> None:
        """Write the entries and sync them to the disk, those that it lacks. Raises LogUnavailable."""
        await asyncio.to_thread(self._add, entries)

    async def entries(self) -> list[Entry]:
        """All that was erased, in the order in which it was. Raises LogUnavailable for a damaged ledger."""
        return await asyncio.to_thread(self._read)

    async def start(self) -> None:
        """Make the file where there is none, so that it is known to be writable. Raises LogUnavailable."""
        await self.add([])

    def digest(self, *names: str) -> str:
        """What stands for those names in this ledger; after `start`."""
        message = msgspec.json.encode(names)
        return hmac.digest(self._key, message, "sha256").hex()

    def _add(self, entries: Sequence[Entry]) -> None:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
            with os.fdopen(descriptor, "r+b", buffering=0) as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                held = file.read()
                lines = self._head(held) + _missing(held, entries)
                if lines:
                    file.write(lines)
                    os.fsync(file.fileno())
                    sync_directory(self._path.parent)
        except OSError as error:
            raise LogUnavailable(f"the ledger of erasures {self._path} can't be written: {error}") from error

    def _head(self, held: bytes) -> bytes:
        """What has to stand before new lines: the head of an empty file, the end of a line that was cut."""
        if held:
            self._key = bytes.fromhex(_head_of(held, self._path).key)
            return b"" if held.endswith(b"\n") else b"\n"
        self._key = secrets.token_bytes(32)
        return msgspec.json.encode(_Head(ledger=VERSION, key=self._key.hex())) + b"\n"

    def _read(self) -> list[Entry]:
        try:
            held = self._path.read_bytes()
        except OSError as error:
            raise LogUnavailable(f"the ledger of erasures {self._path} can't be read: {error}") from error
        self._key = bytes.fromhex(_head_of(held, self._path).key)
        return _entries(held)


def _head_of(held: bytes, path: Path) -> _Head:
    with suppress(msgspec.DecodeError, msgspec.ValidationError):
        head = msgspec.json.decode(held.split(b"\n", 1)[0], type=_Head)
        if head.ledger == VERSION:
            return head
    raise LogUnavailable(f"{path} is no ledger of erasures that this program knows: name another file")


def _entries(held: bytes) -> list[Entry]:
    """Its entries; a line that was cut off was never acknowledged."""
    entries = []
    for number, line in enumerate(held.split(b"\n")[1:], start=2):
        if line:
            try:
                entries.append(msgspec.json.decode(line, type=Entry))
            except msgspec.DecodeError:
                logger.warning("line %d of the ledger of erasures can't be read", number)
    return entries


def _missing(held: bytes, entries: Sequence[Entry]) -> bytes:
    known = {(one.event, one.what) for one in _entries(held)}
    new = (one for one in entries if (one.event, one.what) not in known)
    return b"".join(msgspec.json.encode(one) + b"\n" for one in new)
