"""The event log in one SQLite file: appends by group commit, reads that never wait for them."""

from __future__ import annotations

import asyncio
import secrets
import sqlite3
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import IO, Literal, TypeVar

import msgspec

from hearth.memory.errors import LogUnavailable
from hearth.memory.events import cursors, lookup, reads, rows, views
from hearth.memory.events.database import (
    Synchronous,
    connect_reader,
    connect_writer,
    prepare_schema,
    sync_directory,
    take_lock,
    translated,
)
from hearth.memory.events.kinds import Event
from hearth.memory.events.writer import Writer
from hearth.memory.ports import CallState, Clock, ExchangeState, Lease, MemoryFilter
from hearth.memory.types import Exchange, Memory, Page, Record, Scope, SessionInfo, Tails

T = TypeVar("T")

READERS = 2
"""Threads that read lists and histories. The look-ups of the request path do without."""

_PROBES = 5
"""Commits at start that measure the disk, so that `health` knows it before the first append."""

_SYNCHRONOUS: dict[str, Synchronous] = {"power": "FULL", "process": "NORMAL"}


class LogHealth(msgspec.Struct, frozen=True, kw_only=True):
    """How the log does."""

    wal_bytes: int
    """Size of the write-ahead log; it grows while a long reader holds it up."""
    fsync_p50_ms: float
    """Median of the last synced commits: what an append costs on this disk."""
    writable: bool
    """False when closed and after a failed commit, until one succeeds."""
    events: int
    """Events ever appended, redacted ones included."""
    last_error: str
    """Why the last commit failed; empty after a good one."""


class SqliteLog:
    """`EventLog` and `Consumers` over one file that belongs to one process.

    Start it, use it from event loops of that process, close it. `durability` says what an acknowledged
    append survives: `power` a power cut (one sync of the disk each commit), `process` a killed process.
    """

    def __init__(
        self, path: Path, *, durability: Literal["power", "process"] = "power", clock: Clock
    ) -> None:
        self._path = path
        self._synchronous = _SYNCHRONOUS[durability]
        self._clock = clock
        self._lock: IO[str] | None = None
        self._writer: Writer | None = None
        self._near: sqlite3.Connection | None = None
        self._connections: list[sqlite3.Connection] = []
        self._local = threading.local()
        self._pool: ThreadPoolExecutor | None = None
        self._secrets: dict[str, bytes] = {}
        self._kinds: dict[str, tuple[str, ...]] = {}

    async def start(self) -> None:
        """Open the file, making it where there is none, and fold the views again where this program's differ.

        Raises LogUnavailable for a path that can't be written, a file of a newer program or of another
        kind, and while another process has it.
        """
        await asyncio.to_thread(self._open)
        for _ in range(_PROBES):
            await self._write(lambda db: db.execute("INSERT OR REPLACE INTO meta VALUES ('probe', random())"))

    async def close(self) -> None:
        """Finish the appends under way and let go of the file. Closing twice is no error."""
        await asyncio.to_thread(self._close)

    async def health(self) -> LogHealth:
        """How the log does; never raises for a log that is closed or broken."""
        writer = self._writer
        if writer is None:
            return LogHealth(
                wal_bytes=0, fsync_p50_ms=0.0, writable=False, events=0, last_error="the log is closed"
            )
        error, events = writer.last_error, 0
        try:
            events = await self._read(
                lambda db: int(db.execute("SELECT coalesce(max(seq), 0) FROM events").fetchone()[0])
            )
        except LogUnavailable as unreadable:
            error = error or str(unreadable)
        return LogHealth(
            wal_bytes=writer.wal_bytes(),
            fsync_p50_ms=writer.fsync_p50_ms(),
            writable=not error,
            events=events,
            last_error=error,
        )

    async def truncate(self) -> bool:
        """Empty the write-ahead log, so that no file holds redacted content; False while a reader bars it."""
        return await self._running().truncate()

    async def rebuild_views(self) -> None:
        """Drop the views and fold the log again. Appends wait meanwhile."""
        await self._write(_rebuild)

    # -- EventLog ----------------------------------------------------------------------------------------

    async def append(self, events: Sequence[Event]) -> None:
        """See `EventLog.append`."""
        if events:
            await self._write(lambda db: rows.append(db, events, self._clock.now()))

    async def read(
        self,
        *,
        after: int = 0,
        limit: int = 500,
        kinds: Sequence[str] = (),
        tenant: str | None = None,
        user: str | None = None,
        session: str | None = None,
    ) -> list[Event]:
        """See `EventLog.read`. Ends before an unreadable event; raises UnknownEvent if that is the first."""
        query = partial(
            reads.events, after=after, limit=limit, kinds=kinds, tenant=tenant, user=user, session=session
        )
        return await self._read(query)

    async def open_call(
        self,
        scope: Scope,
        *,
        tails: Tails,
        retry_key: str,
        response_id: str,
        now: datetime,
        unwritten: Sequence[Event] = (),
    ) -> CallState:
        """See `EventLog.open_call`. Read on the caller's thread: a few indexed rows, no lock to wait for."""
        query = partial(lookup.open_call, tails=tails, retry_key=retry_key, response_id=response_id, now=now)
        return self._read_near(lambda db: query(db, scope, unwritten=unwritten))

    async def secret(self, tenant: str) -> bytes:
        """See `EventLog.secret`."""
        if tenant not in self._secrets:
            self._secrets[tenant] = await self._write(lambda db: _secret(db, tenant))
        return self._secrets[tenant]

    async def generation(self, tenant: str, user: str) -> int:
        """See `EventLog.generation`."""
        return self._read_near(lambda db: reads.generation(db, tenant, user))

    async def memory(self, tenant: str, user: str, memory_id: str) -> Memory | None:
        """See `EventLog.memory`."""
        return await self._read(lambda db: reads.memory(db, tenant, user, memory_id, now=self._clock.now()))

    async def memories(
        self, tenant: str, user: str, *, where: MemoryFilter, after: tuple[datetime, str] | None, limit: int
    ) -> list[Memory]:
        """See `EventLog.memories`."""
        query = partial(reads.memories, where=where, after=after, limit=limit, now=self._clock.now())
        return await self._read(lambda db: query(db, tenant, user))

    async def count_memories(self, tenant: str, user: str, *, where: MemoryFilter) -> int:
        """See `EventLog.count_memories`."""
        now = self._clock.now()
        return await self._read(lambda db: reads.count_memories(db, tenant, user, where=where, now=now))

    async def exchange(self, tenant: str, user: str, exchange_id: str) -> Exchange | None:
        """See `EventLog.exchange`."""
        return await self._read(lambda db: reads.exchange(db, tenant, user, exchange_id))

    async def exchanges(
        self, tenant: str, user: str, *, session: str | None, after: tuple[datetime, str] | None, limit: int
    ) -> list[Exchange]:
        """See `EventLog.exchanges`."""
        query = partial(reads.exchanges, session=session, after=after, limit=limit)
        return await self._read(lambda db: query(db, tenant, user))

    async def sessions(
        self, tenant: str, user: str, *, after: tuple[datetime, str] | None, limit: int
    ) -> list[SessionInfo]:
        """See `EventLog.sessions`."""
        return await self._read(lambda db: reads.sessions(db, tenant, user, after=after, limit=limit))

    async def users(self, tenant: str, *, after: str, limit: int) -> list[str]:
        """See `EventLog.users`."""
        return await self._read(lambda db: reads.users(db, tenant, after=after, limit=limit))

    async def pages(self, tenant: str, user: str, *, limit: int) -> list[Page]:
        """See `EventLog.pages`."""
        return await self._read(lambda db: reads.latest_pages(db, tenant, user, limit=limit))

    async def previous_page(self, page: Page) -> Page | None:
        """See `EventLog.previous_page`."""
        previous, scope = page.previous, page.scope
        if previous is None:
            return None
        return await self._read(lambda db: reads.page(db, scope.tenant, scope.user, previous))

    async def record(self, tenant: str, user: str, record_id: str) -> Record | None:
        """See `EventLog.record`."""
        return await self._read(lambda db: reads.record(db, tenant, user, record_id, now=self._clock.now()))

    # -- Consumers ---------------------------------------------------------------------------------------

    @property
    def partitions(self) -> int:
        """See `Consumers.partitions`."""
        return 1

    async def lease(self, consumer: str, partition: int, *, owner: str, seconds: float) -> Lease | None:
        """See `Consumers.lease`. Raises BadInput for a partition other than 0."""
        take = partial(cursors.lease, owner=owner, seconds=seconds, now=self._clock.now())
        return await self._write(lambda db: take(db, consumer, partition), relaxed=True)

    async def pending(self, lease: Lease, *, limit: int, kinds: Sequence[str]) -> list[Event]:
        """See `Consumers.pending`. Ends before an unreadable event; raises UnknownEvent if that is next."""
        self._kinds[lease.consumer] = tuple(kinds)
        return await self._read(partial(reads.events, after=lease.seq, limit=limit, kinds=kinds))

    async def advance(self, lease: Lease, *, seq: int, decisions: Sequence[Event] = ()) -> Lease:
        """See `Consumers.advance`. A power cut may set back a cursor that moved alone: events come again."""
        move = partial(cursors.advance, seq=seq, decisions=decisions, now=self._clock.now())
        return await self._write(lambda db: move(db, lease), relaxed=not decisions)

    async def exchange_state(self, event: Event) -> ExchangeState:
        """See `Consumers.exchange_state`. Exchanges without a parent are nobody's siblings."""
        return await self._read(lambda db: reads.exchange_state(db, event))

    async def idle_exchanges(self, *, before: datetime, limit: int) -> list[Event]:
        """See `Consumers.idle_exchanges`."""
        return await self._read(lambda db: reads.idle_exchanges(db, before=before, limit=limit))

    async def start_attempt(self, consumer: str, event: Event) -> int:
        """See `Consumers.start_attempt`. Survives a killed process, which is what it is for."""
        return await self._write(lambda db: cursors.start_attempt(db, consumer, event), relaxed=True)

    async def park(self, consumer: str, event: Event, error: str) -> None:
        """See `Consumers.park`."""
        await self._write(lambda db: cursors.park(db, consumer, event, error))

    async def parked(self) -> list[tuple[str, Event, str]]:
        """See `Consumers.parked`."""
        return await self._read(cursors.parked)

    async def retry(self, consumer: str, event_id: str) -> Event | None:
        """See `Consumers.retry`."""
        return await self._write(lambda db: cursors.retry(db, consumer, event_id))

    async def lag(self) -> dict[str, int]:
        """See `Consumers.lag`. Counts the kinds that the consumer last asked this log for, else all."""
        return await self._read(lambda db: cursors.lag(db, self._kinds))

    # -- inside ------------------------------------------------------------------------------------------

    def _open(self) -> None:
        with translated(f"the event log at {self._path} can't be opened"):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = take_lock(self._path.with_name(self._path.name + ".lock"))
            try:
                self._open_database()
            except BaseException:
                self._release()
                raise

    def _open_database(self) -> None:
        db = connect_writer(self._path, self._synchronous)
        self._connections.append(db)
        if prepare_schema(db, self._path):
            db.execute("BEGIN IMMEDIATE")
            _rebuild(db)
            db.execute("COMMIT")
        sync_directory(self._path.parent)
        side = connect_writer(self._path, self._synchronous)
        self._connections.append(side)
        self._near = self._reader()
        self._pool = ThreadPoolExecutor(READERS, thread_name_prefix="hearth-log-reader")
        wal = self._path.with_name(self._path.name + "-wal")
        self._writer = Writer(db, wal=wal, synchronous=self._synchronous, side=side)
        self._writer.start()

    def _reader(self) -> sqlite3.Connection:
        connection = connect_reader(self._path)
        self._connections.append(connection)
        return connection

    def _close(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.stop()
        if self._pool is not None:
            self._pool.shutdown()
        self._release()

    def _release(self) -> None:
        """Close readers before the writer, whose close then empties the write-ahead log."""
        self._near = self._pool = None
        self._local = threading.local()
        while self._connections:
            with suppress(sqlite3.Error):
                self._connections.pop().close()
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _running(self) -> Writer:
        if self._writer is None:
            raise LogUnavailable("the event log is not open")
        return self._writer

    async def _write(self, run: Callable[[sqlite3.Connection], T], *, relaxed: bool = False) -> T:
        return await self._running().do(run, relaxed=relaxed)

    def _read_near(self, run: Callable[[sqlite3.Connection], T]) -> T:
        """Read on the caller's thread."""
        if self._near is None:
            raise LogUnavailable("the event log is not open")
        with translated("the event log can't be read"):
            return run(self._near)

    async def _read(self, run: Callable[[sqlite3.Connection], T]) -> T:
        """Read on a thread of the pool, in one short transaction."""
        if self._pool is None:
            raise LogUnavailable("the event log is not open")
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._read_far, run)

    def _read_far(self, run: Callable[[sqlite3.Connection], T]) -> T:
        with translated("the event log can't be read"):
            db: sqlite3.Connection | None = getattr(self._local, "db", None)
            if db is None:
                db = self._local.db = self._reader()
            db.execute("BEGIN")
            try:
                return run(db)
            finally:
                db.execute("ROLLBACK")


def _secret(db: sqlite3.Connection, tenant: str) -> bytes:
    db.execute("INSERT OR IGNORE INTO secrets VALUES (?, ?)", (tenant, secrets.token_bytes(32)))
    return bytes(db.execute("SELECT secret FROM secrets WHERE tenant = ?", (tenant,)).fetchone()[0])


def _rebuild(db: sqlite3.Connection) -> None:
    def batch(after: int, limit: int) -> list[tuple[int, Event]]:
        found = db.execute(f"{rows.EVENTS} WHERE e.seq > ? ORDER BY e.seq LIMIT ?", (after, limit)).fetchall()
        return [(row[13], rows.event_of(row)) for row in found]

    views.rebuild(db, batch)
