"""The views of one user folded anew from the events, beside those in use, and compared with them row by row.

They are folded in a temporary database, which goes to the disk as far as it has no room in a few megabytes.
Of the views in use a sum for each of some buckets is compared first, so that no user's rows are all held at
once. Not compared is what no user's events alone make: `step_keys`, which end after a week, what was spent,
and the least generations of tenants.
"""

from __future__ import annotations

import asyncio
import hashlib
import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec

from hearth.memory.errors import UnknownEvent
from hearth.memory.events import rows, texts, views
from hearth.memory.events.copy_tables import OTHERS, Table
from hearth.memory.events.data_keys import Keyring
from hearth.memory.events.database import DATA_KEYS, SCHEMA, run_script, translated
from hearth.memory.events.folds import common
from hearth.memory.events.sql import Database, Row, marks, number_of
from hearth.memory.events.sqlite import SqliteDatabase
from hearth.memory.ports import Clock, ViewsCompared

T = TypeVar("T")

COMPARED = tuple(
    table
    for table in OTHERS
    if "user_id" in table.columns and table.name in common.VIEWS and table.name != "step_keys"
)
"""The views that a user's events alone make."""
TRIES = 3
"""How often a user is folded who goes on talking meanwhile, or whose views differ at the first look."""
_ROWS = 400
"""Of one question."""
_REPAIRED = 500
"""Rows that one transaction puts right."""
_BUCKETS = 64
_MODULUS = 1 << 128
_COUNTS = {
    "segments": " AND EXISTS (SELECT 1 FROM payloads p WHERE p.seq = t.seq)",
    "evidence": " AND EXISTS (SELECT 1 FROM memories m WHERE m.user_id = t.user_id AND m.id = t.memory)",
}
"""Which rows are compared: a segment whose state went with a forgotten page is told by no event any more, nor
is on what a concept rests that waits to be made anew.
"""
_UNTOLD = {"pages": frozenset({"drawn", "seen", "visited"})}
"""Columns that are not compared: visits stay counted where their exchange was forgotten since."""
_TEXTS = {"summaries": "lines", "documents": "about", "chunks": "body"}
"""Columns that are encrypted where payloads are, each time otherwise."""
_EVENTS = (
    "SELECT e.seq, e.id, e.user_id, e.kind, e.agent, e.session, e.generation, e.occurred, e.recorded,"
    " e.parent, e.subject, e.tenant_key, e.seal, e.redacted, p.version, p.body, p.seal"
    " FROM events e LEFT JOIN payloads p ON p.seq = e.seq WHERE e.user_id = ? AND e.seq > ?"
    f" ORDER BY e.seq LIMIT {_ROWS}"
)
_LAST = "SELECT coalesce(max(seq), 0) FROM events WHERE user_id = ?"


class Log(Protocol):
    """What of a log is asked for."""

    @property
    def keys(self) -> Any:
        """See `Database.keys`."""
        ...

    @property
    def archive(self) -> Any:
        """See `Database.archive`."""
        ...

    async def ask(self, run: Callable[[Database], T]) -> T:
        """See `SqlLog.ask`."""
        ...

    async def change(self, run: Callable[[Database], T], *, relaxed: bool = True) -> T:
        """See `SqlLog.change`."""
        ...


class _Whose(NamedTuple):
    row: int
    tenant: str
    user: str


class _Tally(NamedTuple):
    """Where the log was, and of each view and bucket how many rows, and the sum of their digests."""

    last: int
    sums: dict[str, list[tuple[int, int]]]

    @property
    def rows(self) -> int:
        return sum(count for buckets in self.sums.values() for count, _ in buckets)


async def compare_views(
    log: Log, clock: Clock, tenant: str, user: str, *, repair: bool = False
) -> ViewsCompared:
    """See `EventLog.compare_views`."""
    found = await log.ask(lambda db: rows.user_row(db, tenant, user))
    if found is None:
        return ViewsCompared()
    whose = _Whose(found[0], tenant, user)
    compared = ViewsCompared(unfolded=True)
    for again in range(TRIES):
        with closing(_Scratch(log, clock, whose)) as scratch:
            try:
                compared = await _compared(log, scratch, whose, repair=repair and again > 0)
            except UnknownEvent:
                return ViewsCompared(unfolded=True)
        if not compared.unfolded and (again or not compared.drift):
            break
    return compared


async def _compared(log: Log, scratch: _Scratch, whose: _Whose, *, repair: bool) -> ViewsCompared:
    await scratch.fill()
    await asyncio.to_thread(scratch.fold)
    here = await log.ask(partial(_tally, whose=whose))
    anew = await asyncio.to_thread(_tally, scratch.db, whose=whose)
    if here.last != anew.last:
        return ViewsCompared(unfolded=True)
    done = ViewsCompared(rows=anew.rows)
    for table in COMPARED:
        sums = zip(here.sums[table.name], anew.sums[table.name], strict=True)
        if buckets := {at for at, (mine, other) in enumerate(sums) if mine != other}:
            done += await _differing(log, scratch, whose, table, buckets, repair=repair)
    return done


async def _differing(
    log: Log, scratch: _Scratch, whose: _Whose, table: Table, buckets: Collection[int], *, repair: bool
) -> ViewsCompared:
    query = partial(_digests, whose=whose, table=table, buckets=buckets)
    here = await log.ask(query)
    anew = await asyncio.to_thread(query, scratch.db)
    wrong = [key for key in here.keys() | anew.keys() if here.get(key) != anew.get(key)]
    repaired = 0
    for at in range(0, len(wrong) if repair else 0, _REPAIRED):
        some = wrong[at : at + _REPAIRED]
        right = await asyncio.to_thread(_rows_of, scratch.db, whose, table, some)
        put = partial(_put_right, whose=whose, table=table, keys=some, right=right, last=scratch.last)
        repaired += await log.change(put, relaxed=False)
    return ViewsCompared(
        missing=len(anew.keys() - here.keys()),
        extra=len(here.keys() - anew.keys()),
        different=len(wrong) - len(here.keys() ^ anew.keys()),
        repaired=repaired,
    )


class _Scratch:
    """A log of one user's events in a temporary database, with row ids and positions as in the whole one."""

    def __init__(self, log: Log, clock: Clock, whose: _Whose) -> None:
        self._log = log
        self._whose = whose
        self._connection = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        for pragma in ("journal_mode=OFF", "synchronous=OFF", "cache_size=-16000"):
            self._connection.execute(f"PRAGMA {pragma}")
        keys = Keyring(log.keys.masters) if isinstance(log.keys, Keyring) else log.keys
        self.db = SqliteDatabase(self._connection, clock, log.archive, keys)
        self.last = 0
        for script in SCHEMA:
            run_script(self.db, script)
        for statement in DATA_KEYS:
            self.db.execute(statement)
        run_script(self.db, "views.sql")

    async def fill(self) -> None:
        """Copy what is to be folded. Raises LogUnavailable."""
        row, tenant = self._whose.row, self._whose.tenant
        known: Sequence[tuple[str, str, str, object]] = (
            ("users", "id, tenant, name", "id", row),
            ("secrets", "tenant, secret", "tenant", tenant),
            ("data_keys", "number, user_id, generation, version, master, wrapped", "user_id", row),
        )
        for table, columns, by, value in known:
            found = await self._log.ask(partial(_known, what=f"{columns} FROM {table}", by=by, value=value))
            self._insert(f"INSERT INTO {table} ({columns}) VALUES", found)
        while found := await self._log.ask(self._next):
            await asyncio.to_thread(self._take, found)

    def fold(self) -> None:
        """Fold what was copied. Raises UnknownEvent, LogUnavailable."""
        with translated("a user's views can't be folded anew"):
            after = 0
            while batch := self._batch(after):
                for event in rows.events_of(self.db, batch):
                    views.fold(self.db, self._whose.row, event)
                    after = event.seq
            views.fold_tombstones(self.db)

    def close(self) -> None:
        """Remove it."""
        self._connection.close()

    def _next(self, db: Database) -> list[Row]:
        return db.execute(_EVENTS, (self._whose.row, self.last)).fetchall()

    def _take(self, found: Sequence[Row]) -> None:
        with translated("a user's events can't be copied for their views"):
            self._insert(
                "INSERT INTO events (seq, id, user_id, kind, agent, session, generation, occurred, recorded,"
                " parent, subject, tenant_key, seal, redacted) VALUES",
                [row[:14] for row in found],
            )
            held = [(row[0], *row[14:]) for row in found if row[14] is not None]
            self._insert("INSERT INTO payloads (seq, version, body, seal) VALUES", held)
            self.last = int(found[-1][0])

    def _insert(self, sql: str, found: Sequence[Row]) -> None:
        for row in found:
            self.db.execute(f"{sql} ({marks(row)})", row)

    def _batch(self, after: int) -> list[Row]:
        sql = f"{rows.EVENTS} WHERE e.seq > ? ORDER BY e.seq LIMIT {_ROWS}"
        return self.db.execute(sql, (after,)).fetchall()


def _known(db: Database, *, what: str, by: str, value: object) -> list[Row]:
    return db.execute(f"SELECT {what} WHERE {by} = ?", (value,)).fetchall()


def _tally(db: Database, *, whose: _Whose) -> _Tally:
    sums = {}
    for table in COMPARED:
        buckets = [(0, 0)] * _BUCKETS
        for key, digest in _each(db, whose, table):
            count, total = buckets[at := _bucket(key)]
            buckets[at] = (count + 1, (total + digest) % _MODULUS)
        sums[table.name] = buckets
    return _Tally(number_of(db.execute(_LAST, (whose.row,))), sums)


def _digests(
    db: Database, *, whose: _Whose, table: Table, buckets: Collection[int]
) -> Mapping[tuple[Any, ...], int]:
    return {key: digest for key, digest in _each(db, whose, table) if _bucket(key) in buckets}


def _each(db: Database, whose: _Whose, table: Table) -> Iterator[tuple[tuple[Any, ...], int]]:
    """The key of each row, but for its user, and a digest of the row."""
    columns = _columns(table)
    at = [columns.index(name) for name in _key(table)]
    told = [place for place, name in enumerate(columns) if name not in _UNTOLD.get(table.name, ())]
    sql = f"SELECT {', '.join(columns)} FROM {table.name} t WHERE user_id = ?{_COUNTS.get(table.name, '')}"
    for row in db.execute(sql, (whose.row,)):
        plain = _plain(db, whose, table, row)
        digest = _number(msgspec.msgpack.encode([plain[place] for place in told]))
        yield tuple(plain[place] for place in at), digest


def _columns(table: Table) -> list[str]:
    return [name for name in table.columns if name != "user_id"]


def _key(table: Table) -> list[str]:
    return [name for name in table.key if name != "user_id"]


def _bucket(key: tuple[Any, ...]) -> int:
    return _number(msgspec.msgpack.encode(key)) % _BUCKETS


def _number(raw: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(raw, digest_size=16).digest())


def _plain(db: Database, whose: _Whose, table: Table, row: Row) -> tuple[Any, ...]:
    """The row with its text readable; one that can't be read is what it is, and differs."""
    if (column := _TEXTS.get(table.name)) is None:
        return tuple(row)
    columns = _columns(table)
    at, place = columns.index(column), _place(table, columns, row)
    try:
        told = texts.read(db, (whose.tenant, whose.user), row[at], *place)
    except ValueError:
        return tuple(row)
    return (*row[:at], told, *row[at + 1 :])


def _place(table: Table, columns: Sequence[str], row: Row) -> tuple[str, ...]:
    """Where its text is, as the folds name that."""
    kind = {"summaries": "summary", "documents": "document", "chunks": "chunk"}[table.name]
    return (kind, *(str(row[columns.index(name)]) for name in _key(table)))


def _rows_of(
    db: Database, whose: _Whose, table: Table, keys: Collection[tuple[Any, ...]]
) -> list[tuple[Any, ...]]:
    """The rows of those keys that there are, readable."""
    where = " AND ".join(f"{name} = ?" for name in _key(table))
    sql = f"SELECT {', '.join(_columns(table))} FROM {table.name} WHERE user_id = ? AND {where}"
    found = [row for key in keys for row in db.execute(sql, (whose.row, *key))]
    return [_plain(db, whose, table, row) for row in found]


def _put_right(
    db: Database,
    *,
    whose: _Whose,
    table: Table,
    keys: Sequence[tuple[Any, ...]],
    right: Sequence[tuple[Any, ...]],
    last: int,
) -> int:
    """Put the rows of the keys as they are to be; none where the user said something since."""
    db.places({(whose.tenant, whose.user)})
    if number_of(db.execute(_LAST, (whose.row,))) != last:
        return 0
    where = " AND ".join(f"{name} = ?" for name in _key(table))
    for key in keys:
        db.execute(f"DELETE FROM {table.name} WHERE user_id = ? AND {where}", (whose.row, *key))
    columns = _columns(table)
    write = texts.writing(db, whose.row, (whose.tenant, whose.user)) if table.name in _TEXTS else None
    for row in right:
        if write is not None:
            at = columns.index(_TEXTS[table.name])
            told = _stored(write, table, row[at], _place(table, columns, row))
            row = (*row[:at], told, *row[at + 1 :])
        db.execute(
            f"INSERT INTO {table.name} (user_id, {', '.join(columns)}) VALUES ({marks((0, *row))})",
            (whose.row, *row),
        )
    return len(keys)


def _stored(write: Callable[..., str], table: Table, text: str, place: Sequence[str]) -> str:
    """The stored form, as the folds have it: what is empty says so."""
    return text if text in ("", "[]") else write(text, *place)
