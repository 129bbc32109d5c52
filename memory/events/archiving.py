"""Old payloads go from the log to archives, and what was redacted since goes from those.

A file is entered in the log before it is written and taken out after it is removed, so that a process that
is killed in between leaves nothing that the next one does not find. One process at a time does either.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import NamedTuple
from uuid import uuid4

import msgspec

from hearth.memory.errors import LogUnavailable
from hearth.memory.events import cursors
from hearth.memory.events.archive import in_archive
from hearth.memory.events.codec import content, micros
from hearth.memory.events.data_keys import is_encrypted
from hearth.memory.events.sql import Database, marks, tenant_key
from hearth.memory.events.sql_log import SqlLog

logger = logging.getLogger(__name__)

FILE_BYTES = 8_000_000
"""Stored payloads of one file, which an erasure writes anew as a whole."""
FILE_EVENTS = 4_000
"""And how many there are at most, which one transaction moves."""
LEAST_BYTES = 1_000_000
"""Less is left in the log by what runs by itself, so that small files don't pile up."""
STAY = ("segment.changed",)
"""Kinds that are replaced and redacted all the time while they count."""
CONSUMER = "archive"
"""The lease of the process that writes archives."""
LEASE_SECONDS = 300.0


class Archived(msgspec.Struct, frozen=True, kw_only=True):
    """What went to archives."""

    events: int = 0
    files: int = 0
    before: int = 0
    """Bytes of their payloads in the log."""
    after: int = 0
    """Bytes of the files."""

    def __add__(self, other: Archived) -> Archived:
        return Archived(
            **{name: getattr(self, name) + getattr(other, name) for name in self.__struct_fields__}
        )


class ArchivesBusy(LogUnavailable):
    """Another process is at the archives; it is done or gone within five minutes."""


class _Payload(NamedTuple):
    seq: int
    body: bytes
    raw: bytes


class _File(NamedTuple):
    id: int
    name: str
    state: str
    events: int
    held: int
    """Payloads of the log that are in it."""


class Archiving:
    """Moves payloads of one log; `owner` names this process."""

    def __init__(self, log: SqlLog, *, owner: str) -> None:
        self._log = log
        self._owner = owner

    async def archive(
        self,
        tenant: str,
        before: datetime,
        *,
        least: int = 1,
        watch: Callable[[int], None] = lambda _: None,
    ) -> Archived:
        """Move the payloads of the tenant's events that were recorded before that moment.

        Less than `least` bytes stay where they are. `watch` is told how many are moved so far. What memories
        in force say stays in the log. Raises LogUnavailable; ArchivesBusy while another process is at it.
        """
        done, after = Archived(), 0
        while True:
            await self._hold()
            query = partial(_candidates, tenant=tenant, before=micros(before), after=after)
            found, last = await self._log.ask(query)
            size = sum(len(one.body) for one in found)
            if last is None or (found and size < least and last == _END):
                return done
            if found:
                taken = await self._move(found)
                done += Archived(events=len(found), files=1, before=size, after=taken)
                watch(done.events)
            if last == _END:
                return done
            after = last

    async def purge(self) -> int:
        """Write every archive anew that holds more than the log says, and remove those that hold nothing.

        How many that were. Raises LogUnavailable; ArchivesBusy while another process is at it.
        """
        stale = [one for one in await self._log.ask(_files) if one.state != "live" or one.held < one.events]
        if not stale:
            return 0
        await self._hold()
        for one in await self._log.ask(_files):
            if one.state == "live" and one.held == one.events:
                continue
            if one.held:
                held = await self._log.ask(partial(_held, archive=one.id))
                await self._move(held)
            await asyncio.to_thread(self._log.archive.remove, one.name)
            await self._log.change(partial(_drop, archive=one.id), relaxed=False)
        return len(stale)

    async def release(self) -> None:
        """Let others at it."""
        take = partial(cursors.lease, owner=self._owner, seconds=0.0)
        await self._log.change(lambda db: take(db, CONSUMER, 0))

    async def _hold(self) -> None:
        lease = await self._log.lease(CONSUMER, 0, owner=self._owner, seconds=LEASE_SECONDS)
        if lease is None:
            raise ArchivesBusy

    async def _move(self, found: Sequence[_Payload]) -> int:
        """Write a file and put the places in it where the payloads were, unless they changed meanwhile."""
        name = uuid4().hex
        id = await self._log.change(partial(_enter, name=name), relaxed=False)
        places = await asyncio.to_thread(self._log.archive.write, name, [one.raw for one in found])
        size = await asyncio.to_thread(self._log.archive.size, name)
        moved = list(zip(found, places, strict=True))
        await self._log.change(partial(_put, archive=id, moved=moved, size=size), relaxed=False)
        return size


_END = -1
"""There is nothing behind what was found."""


def _candidates(db: Database, *, tenant: str, before: int, after: int) -> tuple[list[_Payload], int | None]:
    """The payloads of one file behind a position, and where the next one's begin."""
    rows = db.execute(
        "SELECT e.seq, p.body, u.tenant FROM events e JOIN payloads p ON p.seq = e.seq"
        " JOIN users u ON u.id = e.user_id"
        " WHERE e.tenant_key = ? AND e.seq > ? AND e.recorded < ? AND p.archive IS NULL"
        f" AND e.kind NOT IN ({marks(STAY)})"
        " AND NOT EXISTS (SELECT 1 FROM memories m WHERE m.user_id = e.user_id AND m.id = e.subject"
        " AND m.seq = e.seq) ORDER BY e.seq LIMIT ?",
        (tenant_key(tenant), after, before, *STAY, FILE_EVENTS),
    ).fetchall()
    found: list[_Payload] = []
    size = 0
    for seq, body, owner in rows:
        raw = _readable(bytes(body)) if owner == tenant else None
        if raw is not None:
            found.append(_Payload(seq, bytes(body), raw))
            size += len(body)
        if size >= FILE_BYTES:
            return found, int(seq)
    if len(rows) == FILE_EVENTS:
        return found, int(rows[-1][0])
    return found, _END if found else None


def _readable(body: bytes) -> bytes | None:
    """What goes to the archive: the content, or the body itself where it is encrypted and so can't be
    compressed together with others.

    None of a body that this program can't unpack, which stays as it is.
    """
    if is_encrypted(body):
        return body
    try:
        return content(body)
    except ValueError:
        return None


def _files(db: Database) -> list[_File]:
    found = db.execute(
        "SELECT a.id, a.name, a.state, a.events,"
        " (SELECT count(*) FROM payloads p WHERE p.archive = a.id) FROM archives a ORDER BY a.id"
    )
    return [_File._make(row) for row in found]


def _held(db: Database, *, archive: int) -> list[_Payload]:
    found = db.execute("SELECT seq, body FROM payloads WHERE archive = ? ORDER BY seq", (archive,)).fetchall()
    return [_Payload(seq, bytes(body), in_archive(db, bytes(body))) for seq, body in found]


def _enter(db: Database, *, name: str) -> int:
    row = db.execute(
        "INSERT INTO archives (name, state, events, bytes) VALUES (?, 'writing', 0, 0) RETURNING id", (name,)
    ).fetchone()
    return int(row[0]) if row else 0


def _put(db: Database, *, archive: int, moved: Sequence[tuple[_Payload, bytes]], size: int) -> None:
    for one, place in moved:
        db.execute(
            "UPDATE payloads SET body = ?, archive = ? WHERE seq = ? AND body = ?",
            (place, archive, one.seq, one.body),
        )
    db.execute(
        "UPDATE archives SET state = 'live', events = ?, bytes = ? WHERE id = ?", (len(moved), size, archive)
    )


def _drop(db: Database, *, archive: int) -> None:
    db.execute("DELETE FROM archives WHERE id = ?", (archive,))
