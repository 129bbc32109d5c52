"""The event log in one SQLite file: appends by group commit, reads that never wait for them."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import IO, Literal, TypeVar

from hearth.memory.encryption.master import MasterKeys
from hearth.memory.errors import LogUnavailable
from hearth.memory.events import reads, rows
from hearth.memory.events.archive import NO_ARCHIVE, ArchiveMoved
from hearth.memory.events.database import (
    Synchronous,
    connect_reader,
    connect_writer,
    prepare_schema,
    refuse_other_form,
    sync_directory,
    take_lock,
    translated,
)
from hearth.memory.events.kinds import Event
from hearth.memory.events.sql import Archive, Database
from hearth.memory.events.sql_log import LogHealth, SqlLog, rebuild, refuse_unfinished
from hearth.memory.events.sqlite import SqliteDatabase
from hearth.memory.events.writer import Writer
from hearth.memory.ports import Clock

T = TypeVar("T")

READERS = 2
"""Threads that read lists and histories. The look-ups of the request path do without."""

_PROBES = 5
"""Commits at start that measure the disk, so that `health` knows it before the first append."""

_SYNCHRONOUS: dict[str, Synchronous] = {"power": "FULL", "process": "NORMAL"}


class SqliteLog(SqlLog):
    """`EventLog` and `Consumers` over one file that belongs to one process.

    Start it, use it from event loops of that process, close it. `durability` says what an acknowledged
    append survives: `power` a power cut (one sync of the disk each commit), `process` a killed process.
    """

    def __init__(
        self,
        path: Path,
        *,
        durability: Literal["power", "process"] = "power",
        clock: Clock,
        copying: bool = False,
        reading: bool = False,
        archive: Archive = NO_ARCHIVE,
        masters: MasterKeys | None = None,
    ) -> None:
        """`copying`: for a copy from it or into it, which may be unfinished. `reading`: beside the process
        that has it, which alone writes; the file must be there, in this program's form.

        `archive`: where old payloads are. `masters`: what users' payloads are encrypted by; None: nothing.
        """
        self._path = path
        self._copying = copying
        self._reading = reading
        self._synchronous = _SYNCHRONOUS[durability]
        super().__init__(clock, archive, masters)
        self._lock: IO[str] | None = None
        self._writer: Writer | None = None
        self._near: sqlite3.Connection | None = None
        self._connections: list[sqlite3.Connection] = []
        self._local = threading.local()
        self._pool: ThreadPoolExecutor | None = None

    async def start(self) -> None:
        """Open the file, making it where there is none, and fold the views again where this program's differ.

        Raises LogUnavailable for a path that can't be written, a file of a newer program or of another
        kind, an unfinished copy, one whose master key is missing, and while another process has it.
        """
        await asyncio.to_thread(self._open)
        if self._reading:
            return
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
            events = await self._read(reads.last_seq)
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

    async def compact(self) -> None:
        """See `SqlLog.compact`. Writes the file anew, which appends wait for."""
        await self._running().vacuum()

    async def append(self, events: Sequence[Event], *, unless_held: bool = False) -> None:
        """See `EventLog.append`."""
        if events:
            await self._write(lambda db: rows.append(db, events, unless_held=unless_held))

    @property
    def partitions(self) -> int:
        """See `Consumers.partitions`."""
        return 1

    # -- inside ------------------------------------------------------------------------------------------

    def _open(self) -> None:
        with translated(f"the event log at {self._path} can't be opened"):
            try:
                if self._reading:
                    self._open_beside()
                else:
                    self._path.parent.mkdir(parents=True, exist_ok=True)
                    self._lock = take_lock(self._path.with_name(self._path.name + ".lock"))
                    self._open_database()
            except BaseException:
                self._release()
                raise

    def _open_database(self) -> None:
        db = connect_writer(self._path, self._synchronous)
        self._connections.append(db)
        refold = prepare_schema(db, self._path)
        self.keys.check(self._database(db))
        if refold:
            db.execute("BEGIN IMMEDIATE")
            rebuild(self._database(db))
            db.execute("COMMIT")
        if not self._copying:
            refuse_unfinished(self._database(db))
        sync_directory(self._path.parent)
        side = connect_writer(self._path, self._synchronous)
        self._connections.append(side)
        self._read_by_threads()
        wal = self._path.with_name(self._path.name + "-wal")
        self._writer = Writer(db, wal=wal, synchronous=self._synchronous, side=side)
        self._writer.start()

    def _open_beside(self) -> None:
        if not self._path.is_file():
            raise LogUnavailable(f"there is no event log at {self._path}")
        db = self._read_by_threads()
        refuse_other_form(db, self._path)
        self.keys.check(self._database(db))

    def _read_by_threads(self) -> sqlite3.Connection:
        self._near = self._reader()
        self._pool = ThreadPoolExecutor(READERS, thread_name_prefix="hearth-log-reader")
        return self._near

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

    async def _write(self, run: Callable[[Database], T], *, relaxed: bool = False) -> T:
        return await self._running().do(lambda db: run(self._database(db)), relaxed=relaxed)

    async def _look_up(self, run: Callable[[Database], T]) -> T:
        """On the caller's thread: a few indexed rows, no lock to wait for."""
        if self._near is None:
            raise LogUnavailable("the event log is not open")
        with translated("the event log can't be read"):
            return run(self._database(self._near))

    async def _read(self, run: Callable[[Database], T]) -> T:
        """On a thread of the pool, in one short transaction."""
        if self._pool is None:
            raise LogUnavailable("the event log is not open")
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._pool, self._read_far, run)
        except ArchiveMoved:
            return await loop.run_in_executor(self._pool, self._read_far, run)

    def _read_far(self, run: Callable[[Database], T]) -> T:
        with translated("the event log can't be read"):
            db: sqlite3.Connection | None = getattr(self._local, "db", None)
            if db is None:
                db = self._local.db = self._reader()
            db.execute("BEGIN")
            try:
                return run(self._database(db))
            finally:
                db.execute("ROLLBACK")

    def _database(self, connection: sqlite3.Connection) -> SqliteDatabase:
        return SqliteDatabase(connection, self._clock, self.archive, self.keys)
