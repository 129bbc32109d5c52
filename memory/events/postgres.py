"""PostgreSQL as the database of the log's shared queries."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, TypeVar, cast

import msgspec
import psycopg
from psycopg.abc import Buffer
from psycopg.rows import TupleRow
from psycopg.types.string import StrDumperUnknown, TextLoader

from hearth.memory.events.archive import NO_ARCHIVE
from hearth.memory.events.codec import micros, moment
from hearth.memory.events.data_keys import NO_KEYS
from hearth.memory.events.sql import Archive, Condition, Database, DataKeys, Row, Rows, partition_of
from hearth.memory.ports import Clock

T = TypeVar("T")


class Connection(psycopg.Connection[TupleRow]):
    """A connection that stays in pipeline mode: statements wait until an answer is wanted."""

    stream: psycopg.Pipeline
    _kept: AbstractContextManager[psycopg.Pipeline] | None = None

    def prepare(self) -> None:
        """Begin pipeline mode, with the texts of `_TextDumper`."""
        self.adapters.register_dumper(str, _TextDumper)
        self.adapters.register_loader("text", _TextLoader)
        self._kept = self.pipeline()
        self.stream = self._kept.__enter__()

    def close(self) -> None:
        """Hang up."""
        super().close()
        kept, self._kept = self._kept, None
        if kept is not None:
            with suppress(psycopg.Error):
                kept.__exit__(None, None, None)


SCHEMA = "hearth"
"""Where the tables are, in whatever database an address names."""
PARTITIONS = 16
"""Of the log: events of one user are in one of them, in the order of their commits."""

SEQ_BITS = 10
"""Of a position below its millisecond: six count within it, four are the partition. A position thus tells
its time, which the monthly tables of payloads go by, and fits the 53 bits that JSON readers keep until 2248.
"""

_PARTITION_BITS = 4
_LOCK_CLASS = 0x48727468
"""`Hrth`, so that the locks meet no other program's."""

_PLACEHOLDER = re.compile(r"\?(\d*)")


class PostgresPlaces:
    """Positions behind the last one of each partition and never before the clock.

    The answers are read at the first use, so that the statements that follow go out with the question.
    """

    def __init__(self, asked: Rows, clock: Clock | None) -> None:
        self._asked = asked
        self._clock = clock
        self._last: dict[int, int] = {}
        self._now: datetime | None = None

    @property
    def now(self) -> datetime:
        """See `Places.now`."""
        if self._now is None:
            self._read()
        return cast("datetime", self._now)

    def following(self, tenant: str, user: str) -> int:
        """See `Places.following`."""
        place = partition_of(tenant, user, PARTITIONS)
        least = first_seq(self.now) >> _PARTITION_BITS
        self._last[place] = max(self._last[place] + 1, least)
        return self._last[place] << _PARTITION_BITS | place

    def _read(self) -> None:
        for place, last, now in self._asked:
            self._last[place] = last >> _PARTITION_BITS
            self._now = self._clock.now() if self._clock else moment(now)


class PostgresPastPlaces:
    """See `PastPlaces`: positions of the events' own time, behind the last one of their partition.

    The table that the payloads of such a position go to is made with the first of its month.
    """

    def __init__(self, db: Database) -> None:
        self._db = db
        self._months: set[tuple[int, int]] = set()
        self.ends: dict[int, int] = dict(
            db.execute(
                "SELECT p, coalesce((SELECT max(seq) FROM events WHERE partition = p), 0)"
                f" FROM generate_series(0, {PARTITIONS - 1}) AS places (p)"
            )
        )

    def following(self, tenant: str, user: str, recorded: int) -> int:
        """See `PastPlaces.following`."""
        place = partition_of(tenant, user, PARTITIONS)
        least = first_seq(moment(recorded)) >> _PARTITION_BITS
        number = max((self.ends[place] >> _PARTITION_BITS) + 1, least)
        seq = self.ends[place] = number << _PARTITION_BITS | place
        at = moment((seq >> SEQ_BITS) * 1000)
        if (at.year, at.month) not in self._months:
            self._months.add((at.year, at.month))
            make_months(self._db, at, 1)
        return seq


class _Answer:
    """The rows of a statement, which is sent with all others that wait when they are first wanted."""

    def __init__(self, cursor: psycopg.RawCursor[TupleRow], send: Callable[[], None]) -> None:
        self._cursor = cursor
        self._send = send

    def fetchone(self) -> Row | None:
        """See `Rows.fetchone`."""
        self._send()
        return self._cursor.fetchone()

    def fetchall(self) -> list[Row]:
        """See `Rows.fetchall`."""
        self._send()
        return self._cursor.fetchall()

    def __iter__(self) -> Iterator[Row]:
        """See `Rows.__iter__`."""
        return iter(self.fetchall())


class PostgresDatabase:
    """See `Database`. A round trip is paid where rows are first read, and at the end for what still waits."""

    def __init__(
        self,
        connection: Connection,
        clock: Clock | None,
        archive: Archive = NO_ARCHIVE,
        keys: DataKeys = NO_KEYS,
    ) -> None:
        """`clock` stands in for the server's own."""
        self.archive = archive
        self.keys = keys
        self._connection = connection
        self._clock = clock
        self._waiting = False

    def execute(self, sql: str, values: Sequence[Any] = ()) -> Rows:
        """See `Database.execute`."""
        self._waiting = True
        cursor = psycopg.RawCursor(self._connection)
        return _Answer(cursor.execute(_numbered(sql).encode(), values), self.send)

    def send(self) -> None:
        """Send what waits, if anything, and take all answers. Raises the first error among them."""
        if self._waiting:
            self._waiting = False
            self._connection.stream.sync()

    def plain(self, run: Callable[[PostgresDatabase], T]) -> T:
        """What `run` returns, each statement for itself: an end would be one more round trip."""
        return self._run(run)

    def snapshot(self, run: Callable[[PostgresDatabase], T]) -> T:
        """What `run` returns, which reads all of one moment."""
        return self._run(run, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", end="ROLLBACK")

    def transact(self, run: Callable[[PostgresDatabase], T], *, relaxed: bool = False) -> T:
        """What `run` returns, in one transaction, which a power cut may undo where it is `relaxed`.

        A connection that is given back amid a transaction is rolled back by the pool.
        """
        lax = ("SET LOCAL synchronous_commit = off",) if relaxed else ()
        return self._run(run, "BEGIN", *lax, end="COMMIT")

    def _run(self, run: Callable[[PostgresDatabase], T], *begin: str, end: str = "") -> T:
        for statement in begin:
            self.execute(statement)
        done = run(self)
        if end:
            self.execute(end)
        self.send()
        return done

    def now(self) -> datetime:
        """See `Database.now`."""
        if self._clock is not None:
            return self._clock.now()
        return moment(int(self.execute(f"SELECT {_NOW}").fetchall()[0][0]))

    def places(self, users: set[tuple[str, str]]) -> PostgresPlaces:
        """See `Database.places`. Locks are taken in one order, so two appends never wait for each other."""
        places = sorted({partition_of(tenant, user, PARTITIONS) for tenant, user in users})
        for place in places:
            self.execute("SELECT pg_advisory_xact_lock(?, ?)", (_LOCK_CLASS, place))
        asked = self.execute(
            f"SELECT p, coalesce((SELECT max(seq) FROM events WHERE partition = p), 0), {_NOW}"
            f" FROM (VALUES {', '.join(['(?::integer)'] * len(places))}) AS asked (p)",
            places,
        )
        return PostgresPlaces(asked, self._clock)

    def past_places(self) -> PostgresPastPlaces:
        """See `Database.past_places`."""
        return PostgresPastPlaces(self)

    def trim_step_keys(self, before: int) -> None:
        """Left to `tidy`: appends in two partitions would wait for each other."""

    def has_tag(self, column: str, tag: str) -> Condition:
        """See `Database.has_tag`."""
        return f"{_AS_JSON.format(column)} @> ?::jsonb", [_json(tag)]

    def has_entry(self, column: str, key: str, value: str | float | bool | None) -> Condition:
        """See `Database.has_entry`."""
        return f"{_AS_JSON.format(column)} @> ?::jsonb", [_json({key: value})]

    def reset_views(self, views: Sequence[str]) -> None:
        """See `Database.reset_views`. Their form is the migrations' matter."""
        for place in range(PARTITIONS):
            self.execute("SELECT pg_advisory_xact_lock(?, ?)", (_LOCK_CLASS, place))
        self.execute(f"TRUNCATE {', '.join(views)}")


_AS_JSON = r"replace({}, '\u0000', U&'\FFFD')::jsonb"
"""A column of JSON that is compared by value; PostgreSQL's JSON has no NUL."""
_NOW = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"


def first_seq(at: datetime) -> int:
    """The lowest position of that moment."""
    return micros(at) // 1000 << SEQ_BITS


def make_months(db: Database, now: datetime, count: int) -> None:
    """Make the tables that hold the payloads of this month and of the next ones, `count` in all."""
    start = datetime(now.year, now.month, 1, tzinfo=UTC)
    for _ in range(count):
        end = (start + timedelta(days=32)).replace(day=1)
        db.execute(
            f"CREATE TABLE IF NOT EXISTS payloads_{start:%Y_%m} PARTITION OF payloads"
            f" FOR VALUES FROM ({first_seq(start)}) TO ({first_seq(end)})"
        )
        start = end


def tidy(db: Database, before: datetime) -> None:
    """Remove the step keys of what was appended before that moment."""
    db.execute("DELETE FROM step_keys WHERE seq < ?", (first_seq(before),))


@lru_cache(maxsize=512)
def _numbered(sql: str) -> str:
    """The statement with PostgreSQL's `$1` in place of `?` and `?1`."""
    at = 0

    def number(found: re.Match[str]) -> str:
        nonlocal at
        at += 1
        return f"${found[1] or at}"

    return _PLACEHOLDER.sub(number, sql)


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode().replace(r"\u0000", "\ufffd")


class _TextDumper(StrDumperUnknown):
    """Text with a NUL, which PostgreSQL can't hold, stands for itself all the same."""

    def dump(self, obj: str) -> Buffer | None:
        if "\0" in obj or _ESCAPE in obj:
            obj = obj.replace(_ESCAPE, _ESCAPE + "1").replace("\0", _ESCAPE + "0")
        return super().dump(obj)


class _TextLoader(TextLoader):
    """The inverse of `_TextDumper`."""

    def load(self, data: Buffer) -> bytes | str:
        text = super().load(data)
        if isinstance(text, str) and _ESCAPE in text:
            return text.replace(_ESCAPE + "0", "\0").replace(_ESCAPE + "1", _ESCAPE)
        return text


_ESCAPE = "\x1a"
"""Substitute: the control character for what can't be shown."""
