"""The event log in a PostgreSQL server that many processes share."""

from __future__ import annotations

import asyncio
import logging
import statistics
import time
from collections import deque
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import Literal, TypeVar

from tenacity import AsyncRetrying, retry_if_exception_type, wait_exponential_jitter

from hearth.memory.encryption.master import MasterKeyMissing, MasterKeys
from hearth.memory.errors import HearthError, LogUnavailable
from hearth.memory.events import rows
from hearth.memory.events.archive import NO_ARCHIVE, ArchiveMoved
from hearth.memory.events.codec import micros
from hearth.memory.events.kinds import Event
from hearth.memory.events.postgres import PARTITIONS, SCHEMA, Connection, PostgresDatabase, make_months, tidy
from hearth.memory.events.postgres_pool import PostgresPool, check_address
from hearth.memory.events.postgres_schema import upgrade
from hearth.memory.events.sql import Archive, Database, number_of
from hearth.memory.events.sql_log import LogHealth, SqlLog, refuse_unfinished
from hearth.memory.ports import Clock
from hearth.memory.types import SEVEN_DAYS

T = TypeVar("T")
logger = logging.getLogger(__name__)

MONTHS = 3
"""Tables for payloads that are made ahead."""
MAX_BATCH = 256
"""Appends of one commit: bounds how long the first waits for the last."""
TIDY_SECONDS = 3_600.0
"""Between two looks at what is to be made ahead or removed."""
COPY_SECONDS = 3_600.0
"""For a statement of a copy, which may look at all there is."""
COPYING = "hearth migrate"
"""How the server lists the connections of a copy."""

_COMMITS = 256
_OTHERS = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'hearth'"
)


class _Append:
    """Events that are to be appended together, and who waits for it."""

    __slots__ = ("error", "events", "future", "unless_held")

    def __init__(self, events: Sequence[Event], *, unless_held: bool) -> None:
        self.events = events
        self.unless_held = unless_held
        self.error: HearthError | None = None
        self.future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def settle(self, error: HearthError | None) -> None:
        if self.future.done():
            return
        if error is None:
            self.future.set_result(None)
        else:
            self.future.set_exception(error)


class PostgresLog(SqlLog):
    """`EventLog` and `Consumers` over tables that many gateways and workers share.

    Start it, use it from one event loop, close it. A server that is down is no error of `start`: it is asked
    again until it answers, and until then every call raises LogUnavailable. `durability`: `power` waits for
    the server's disk, `process` leaves that to the server (a crash of it may take the last moments).
    """

    def __init__(
        self,
        url: str,
        *,
        durability: Literal["power", "process"] = "power",
        clock: Clock,
        server_clock: Clock | None = None,
        connections: int = 12,
        schema: str = SCHEMA,
        copying: bool = False,
        archive: Archive = NO_ARCHIVE,
        masters: MasterKeys | None = None,
    ) -> None:
        """`clock` tells what has expired when something is read; what is written goes by the server's clock
        unless `server_clock` stands in for it. At most so many `connections`, two at least. `copying`: for a
        copy from it or into it, which may be unfinished and is left untidied. `archive`: where old payloads
        are. `masters`: what users' payloads are encrypted by; None: nothing. Raises BadInput for a `url`
        that no server can be asked by.
        """
        super().__init__(clock, archive, masters)
        check_address(url)
        self._url, self._schema = url, schema
        self._server_clock = server_clock
        self._copying = copying
        settings = {
            "search_path": schema,
            "synchronous_commit": "on" if durability == "power" else "off",
            "lock_timeout": "4s",
            "timezone": "UTC",
        }
        pool = partial(PostgresPool, url, settings=settings)
        if copying:
            pool = partial(pool, name=COPYING, seconds=COPY_SECONDS)
        self._pool, self._appends = pool(size=connections - 1), pool(size=1)
        self._waiting: deque[_Append] = deque()
        self._committing: asyncio.Task[None] | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._ready = False
        self._commit_seconds: deque[float] = deque(maxlen=_COMMITS)
        self._last_error = "the event log was never reached"

    async def start(self) -> None:
        """Reach the server, bringing its tables to this program's form; go on asking where it is down.

        Raises MasterKeyMissing.
        """
        self._pool.open()
        self._appends.open()
        try:
            await self._prepare()
        except MasterKeyMissing:
            await self.close()
            raise
        except LogUnavailable:
            pass
        if not self._ready:
            logger.warning("the event log can't be reached yet: %s", self._last_error)
        self._keeper = asyncio.create_task(self._keep(), name="hearth-postgres-log")

    async def close(self) -> None:
        """Finish the appends under way and hang up. Closing twice is no error."""
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)
            self._keeper = None
        if self._committing is not None:
            await asyncio.gather(self._committing, return_exceptions=True)
        await asyncio.to_thread(self._appends.close)
        await asyncio.to_thread(self._pool.close)
        self._ready = False

    async def health(self) -> LogHealth:
        """How the log does; never raises for a server that is down."""
        events = 0
        try:
            events = await self._read(_count)
            if self._last_error:
                await self._write(_probe)
                self._last_error = ""
        except LogUnavailable as error:
            if self._ready:  # else what kept it from that is told already
                self._last_error = str(error)
        return LogHealth(
            wal_bytes=0,
            fsync_p50_ms=statistics.median(self._commit_seconds) * 1000 if self._commit_seconds else 0.0,
            writable=not self._last_error,
            events=events,
            last_error=self._last_error,
        )

    async def truncate(self) -> bool:
        """Nothing to do: the server's vacuum removes what was redacted."""
        return True

    async def compact(self) -> None:
        """Nothing to do: see `truncate`."""

    @property
    def partitions(self) -> int:
        """See `Consumers.partitions`."""
        return PARTITIONS

    async def in_use(self) -> bool:
        """See `SqlLog.in_use`: whether the server lists connections of others than copies."""
        return await self.ask(lambda db: number_of(db.execute(_OTHERS)) > 0)

    async def append(self, events: Sequence[Event], *, unless_held: bool = False) -> None:
        """See `EventLog.append`. Appends that come while a commit is under way share the next one."""
        if not events:
            return
        self._check_ready()
        one = _Append(events, unless_held=unless_held)
        self._waiting.append(one)
        if self._committing is None or self._committing.done():
            self._committing = asyncio.create_task(self._commit_all(), name="hearth-postgres-commit")
        await asyncio.shield(one.future)

    async def note(self, name: str) -> bytes:
        """What all processes noted under that name; empty where nothing is. Raises LogUnavailable."""
        return await self._look_up(lambda db: _note(db, name))

    async def change_note(self, name: str, change: Callable[[bytes], bytes]) -> bytes:
        """Put what `change` makes of a note in its place, and return it; changes come one after another.

        Raises LogUnavailable.
        """

        def run(db: Database) -> bytes:
            db.execute("LOCK TABLE notes IN SHARE ROW EXCLUSIVE MODE")
            body = change(_note(db, name))
            db.execute(
                "INSERT INTO notes VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET body = excluded.body",
                (name, body),
            )
            return body

        return await self._write(run)

    # -- inside ------------------------------------------------------------------------------------------

    async def _write(self, run: Callable[[Database], T], *, relaxed: bool = False) -> T:
        self._check_ready()
        return await self._pool.run(lambda one: self._database(one).transact(run, relaxed=relaxed))

    async def _read(self, run: Callable[[Database], T]) -> T:
        self._check_ready()
        try:
            return await self._pool.run(lambda one: self._database(one).snapshot(run))
        except ArchiveMoved:
            return await self._pool.run(lambda one: self._database(one).snapshot(run))

    async def _look_up(self, run: Callable[[Database], T]) -> T:
        self._check_ready()
        return await self._pool.run(lambda one: self._database(one).plain(run))

    def _check_ready(self) -> None:
        if not self._ready:
            raise LogUnavailable(f"the event log is not ready: {self._last_error}")

    def _database(self, connection: Connection) -> PostgresDatabase:
        return PostgresDatabase(connection, self._server_clock, self.archive, self.keys)

    async def _commit_all(self) -> None:
        while self._waiting:
            batch = [self._waiting.popleft() for _ in range(min(len(self._waiting), MAX_BATCH))]
            try:
                await self._commit(batch)
            except HearthError as error:
                await self._commit_alone(batch, error)

    async def _commit(self, batch: Sequence[_Append]) -> None:
        started = time.perf_counter()
        await self._appends.run(lambda one: self._database(one).transact(lambda db: _append_all(db, batch)))
        self._commit_seconds.append(time.perf_counter() - started)
        self._last_error = ""
        for one in batch:
            one.settle(one.error)

    async def _commit_alone(self, batch: Sequence[_Append], error: HearthError) -> None:
        """Find out whose the failure is, unless it is the server's."""
        if isinstance(error, LogUnavailable) or len(batch) == 1:
            if isinstance(error, LogUnavailable):
                self._last_error = str(error)
                logger.error(
                    "a commit of the event log failed; %d writes were refused: %s", len(batch), error
                )
            for one in batch:
                one.settle(error)
            return
        for one in batch:
            try:
                await self._commit([one])
            except HearthError as own:
                await self._commit_alone([one], own)

    async def _keep(self) -> None:
        """Reach the server where it was down, then look after its tables."""
        async for attempt in AsyncRetrying(
            wait=wait_exponential_jitter(multiplier=0.5, max=15.0),
            retry=retry_if_exception_type(LogUnavailable),
        ):
            with attempt:
                if not self._ready:
                    await self._prepare()
        while True:
            await asyncio.sleep(TIDY_SECONDS)
            await self._tidy()

    async def _prepare(self) -> None:
        try:
            await asyncio.to_thread(upgrade, self._url, self._schema)
            await self._pool.run(lambda one: self._database(one).plain(self.keys.check))
            if not self._copying:
                await self._pool.run(lambda one: self._database(one).plain(refuse_unfinished))
        except LogUnavailable as error:
            self._last_error = str(error)
            raise
        self._ready, self._last_error = True, ""
        await self._tidy()

    async def _tidy(self) -> None:
        """Make the next months' tables; without the right to, payloads go to the one for all other months."""
        if self._copying:
            return
        try:
            await self._write(self._tidy_tables)
        except LogUnavailable:
            logger.warning("the event log was not tidied; the next look does it", exc_info=True)

    @staticmethod
    def _tidy_tables(db: Database) -> None:
        now = db.now()
        make_months(db, now, MONTHS)
        tidy(db, now - SEVEN_DAYS - timedelta(days=1))


def _append_all(db: PostgresDatabase, batch: Sequence[_Append]) -> None:
    """Append what can be; the others learn why not, and nothing of them is written."""
    events = [event for one in batch for event in one.events]
    known = rows.Known(db, events, holds=any(one.unless_held for one in batch))
    for one in batch:
        one.error = None
        try:
            rows.append_known(db, known, one.events, unless_held=one.unless_held)
        except LogUnavailable:
            raise
        except HearthError as error:
            one.error = error


def _count(db: Database) -> int:
    """By the server's own statistics: a count would read the whole table."""
    return max(number_of(db.execute("SELECT reltuples FROM pg_class WHERE oid = 'events'::regclass")), 0)


def _probe(db: Database) -> None:
    """Write something: after a failure another process may have brought the lost appends into the log."""
    db.execute(
        "INSERT INTO probes VALUES ('health', ?) ON CONFLICT (name) DO UPDATE SET at = excluded.at",
        (micros(db.now()),),
    )


def _note(db: Database, name: str) -> bytes:
    row = db.execute("SELECT body FROM notes WHERE name = ?", (name,)).fetchone()
    return bytes(row[0]) if row else b""
