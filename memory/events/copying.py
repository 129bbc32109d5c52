"""Copies a whole log into another one, of whatever form each is, a page of rows a transaction.

How far it is stands in the target, in the page's own transaction. So a copy that was killed goes on where it
was, and until it is whole no gateway or worker opens the target.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import msgspec

from hearth.memory.errors import LogUnavailable
from hearth.memory.events import copy_tables as tables
from hearth.memory.events.copy_check import Tally, differences, tally
from hearth.memory.events.sql import COPIED, Database, Row, marks, number_of, partition_of
from hearth.memory.events.sql_log import SqlLog

Kinds: TypeAlias = "Mapping[str, Sequence[str]]"
"""What each consumer reads, by its name. The first one's cursors are kept exactly; see `_rest`."""
Bounds: TypeAlias = dict[str, dict[int, int]]
"""By consumer and partition: the position of the first event that it has not handled."""
Watch: TypeAlias = Callable[[str, int, int], None]
"""Is told what is under way, how much of it is done, and of how much."""

_END = 1 << 62
"""Behind every position."""


class Copied(msgspec.Struct, frozen=True, kw_only=True):
    """What a copy moved, and whether both sides hold the same."""

    kinds: dict[str, int]
    """Events by kind."""
    redacted: int
    """Of them, those whose content was redacted."""
    rows: dict[str, int]
    """Everything else by its table."""
    digest: str
    """Of all events: the same for the same events, wherever they are."""
    differences: list[str]
    """What is not the same, in words; empty if all is."""


class _Origin(NamedTuple):
    """The source, in the state in which it is copied."""

    log: str
    """Names the log: its first event."""
    state: str
    """Names the state."""
    bounds: Bounds
    events: int

    @property
    def name(self) -> str:
        return f"{self.log} {self.state}"


class _State(NamedTuple):
    """How far the copy is."""

    source: str
    stage: int
    place: str
    """The key of the last row that was copied, as JSON."""
    moved: int
    """Events copied."""

    @property
    def after(self) -> list[Any]:
        return list(msgspec.json.decode(self.place))

    def at(self, key: Sequence[object]) -> _State:
        """The same stage, further."""
        return self._replace(place=msgspec.json.encode(key).decode())

    def next_stage(self) -> _State:
        """The next stage, at its beginning."""
        return self._replace(stage=self.stage + 1, place="[]")


_STAGES: tuple[tables.Table | None, ...] = (tables.USERS, tables.SECRETS, None, None, *tables.OTHERS)
"""In their order; None is events: first those that the first consumer has handled, then the rest."""
_HANDLED, _REST = (at for at, table in enumerate(_STAGES) if table is None)


async def copy(source: SqlLog, target: SqlLog, kinds: Kinds, watch: Watch) -> Copied:
    """Copy what `source` holds into the empty `target`, or go on with that; compare both at the end.

    Nobody can open the target before `finish`.

    Events, users, secrets, views and what is set aside are the same then, as is what each consumer has yet
    to handle. Both logs are open for copying, and nobody else has them. Raises LogUnavailable where the
    target holds something else, the source is empty or has been written to meanwhile, or a log fails.
    """
    for log, what in ((source, "source"), (target, "target")):
        if await log.in_use():
            raise LogUnavailable(f"gateways or workers are connected to the {what}: stop them first")
    origin = await source.ask(partial(_origin, kinds=kinds, partitions=source.partitions))
    state = await target.change(partial(_begin, origin=origin))
    if state.stage != COPIED:
        await _Copying(source, target, origin, watch).run(state)
    found = await _compared(source, target, kinds, watch, origin.events)
    if await source.ask(partial(_origin, kinds=kinds, partitions=source.partitions)) != origin:
        raise LogUnavailable("the source was written to meanwhile: stop gateways and workers, and copy again")
    return found


async def finish(target: SqlLog) -> None:
    """Open a copy that was found the same to everybody, durably. Raises LogUnavailable."""
    await target.change(_finish, relaxed=False)


def begun(db: Database) -> bool:
    """Whether the log is a copy, whole or not."""
    return db.execute("SELECT 1 FROM copies").fetchone() is not None


# -- where it begins ---------------------------------------------------------------------------------------


def _origin(db: Database, *, kinds: Kinds, partitions: int) -> _Origin:
    first = db.execute("SELECT id FROM events ORDER BY seq LIMIT 1").fetchone()
    if first is None:
        raise LogUnavailable("the source holds nothing")
    bounds = {name: _bounds(db, name, kinds.get(name, ()), partitions) for name in _consumers(db, kinds)}
    seen = [sorted(db.past_places().ends.items()), sorted((name, *at.items()) for name, at in bounds.items())]
    state = hashlib.sha256(msgspec.json.encode(seen)).hexdigest()
    return _Origin(first[0], state, bounds, number_of(db.execute("SELECT count(*) FROM events")))


def _consumers(db: Database, kinds: Kinds) -> list[str]:
    found = db.execute("SELECT DISTINCT name FROM consumers ORDER BY name").fetchall()
    return [*kinds, *(name for (name,) in found if name not in kinds)]


def _bounds(db: Database, consumer: str, kinds: Sequence[str], partitions: int) -> dict[int, int]:
    wanted = f" AND e.kind IN ({marks(kinds)})" if kinds else ""
    sql = (
        "SELECT min(e.seq) FROM events e JOIN payloads p ON p.seq = e.seq WHERE e.partition = ?"
        " AND e.seq > coalesce((SELECT c.seq FROM consumers c WHERE c.name = ? AND c.partition = ?), 0)"
    )
    asked = [db.execute(sql + wanted, (at, consumer, at, *kinds)) for at in range(partitions)]
    return {at: _number_or(answer.fetchone(), _END) for at, answer in enumerate(asked)}


def _number_or(row: Row | None, otherwise: int) -> int:
    """The row's only number, or the other one where it is null."""
    return otherwise if row is None or row[0] is None else int(row[0])


def _begin(db: Database, *, origin: _Origin) -> _State:
    """How far the target is, an empty one marked as the copy that it becomes."""
    row = db.execute("SELECT source, stage, place, moved FROM copies").fetchone()
    known = None if row is None else _State._make(row)
    if known is not None and known.source == origin.name:
        return known
    if known is not None and known.stage != COPIED:
        if known.source.split()[0] != origin.log:
            raise LogUnavailable("the target is the unfinished copy of another log: name an empty one")
        _empty(db)
    elif db.execute("SELECT 1 FROM events LIMIT 1").fetchone() is not None:
        raise LogUnavailable(
            "the target holds events already, of another memory or because a gateway or worker was started"
            " on it: name an empty one"
        )
    fresh = _State(origin.name, 0, "[]", 0)
    db.execute("DELETE FROM copies")
    db.execute("INSERT INTO copies VALUES (?, ?, ?, ?)", fresh)
    return fresh


def _empty(db: Database) -> None:
    """Drop the unfinished copy of an earlier state: what was redacted since must not stay in it."""
    for table in tables.EMPTIED:
        db.execute(f"DELETE FROM {table}")


def _finish(db: Database) -> None:
    db.execute("UPDATE copies SET stage = ?", (COPIED,))


# -- page by page ------------------------------------------------------------------------------------------


class _Copying:
    """One copy under way."""

    def __init__(self, source: SqlLog, target: SqlLog, origin: _Origin, watch: Watch) -> None:
        self._source = source
        self._target = target
        self._origin = origin
        self._watch = watch
        self._first = next(iter(origin.bounds.values()))

    async def run(self, state: _State) -> None:
        """Copy what is missing."""
        self._watch("Copying", state.moved, self._origin.events)
        while state.stage < len(_STAGES):
            table = _STAGES[state.stage]
            further = await (self._events(state) if table is None else self._rows(state, table))
            if further is None:
                further = await self._target.change(partial(_move, old=state, new=state.next_stage()))
            state = further
            self._watch("Copying", state.moved, self._origin.events)

    async def _rows(self, state: _State, table: tables.Table) -> _State | None:
        page = await self._source.ask(lambda db: tables.read(db, table, state.after))
        if not page.rows:
            return None
        new = state.at(page.keys[-1])

        def put(db: Database) -> _State:
            tables.write(db, table, page.rows)
            return _move(db, old=state, new=new)

        return await self._target.change(put)

    async def _events(self, state: _State) -> _State | None:
        (after,) = state.after or [0]
        chosen = self._handled() if state.stage == _HANDLED else self._rest()
        found = await self._source.ask(lambda db: tables.read_events(db, after, chosen))
        if not found:
            return None
        new = state.at([found[-1].seq])._replace(moved=state.moved + len(found))

        def put(db: Database) -> _State:
            self._write(db, found)
            return _move(db, old=state, new=new)

        return await self._target.change(put)

    def _handled(self) -> str:
        """The events that the first consumer has handled: they come first, so that one cursor of a log with
        fewer partitions can say so of all of them. Each user's stay in their order.
        """
        cases = " ".join(f"WHEN {at} THEN {bound}" for at, bound in self._first.items())
        return f" AND e.seq < CASE e.partition {cases} END"

    def _rest(self) -> str:
        return self._handled().replace(" < ", " >= ")

    def _write(self, db: Database, found: Sequence[tables.Stored]) -> None:
        places = db.past_places()
        cursors = _Cursors(db, self._origin.bounds, self._target.partitions)
        for event in found:
            end = places.ends[cursors.partition(event)]
            seq = places.following(event.tenant, event.user, event.recorded)
            tables.write_event(db, event, seq)
            cursors.follow(event, end, seq)
        cursors.write(db)


def _move(db: Database, *, old: _State, new: _State) -> _State:
    moved = db.execute(
        "UPDATE copies SET stage = ?, place = ?, moved = ? WHERE source = ? AND stage = ? AND place = ?"
        " RETURNING stage",
        (*new[1:], *old[:3]),
    ).fetchone()
    if moved is None:
        raise LogUnavailable("another process copies to the target")
    return new


class _Cursors:
    """The consumers' cursors in the target: each follows the copied events as far as all are handled."""

    def __init__(self, db: Database, bounds: Bounds, partitions: int) -> None:
        self._bounds = bounds
        self._partitions = partitions
        found = db.execute("SELECT name, partition, seq FROM consumers").fetchall()
        self._seqs = {(name, at): seq for name, at, seq in found}
        self._moved: set[tuple[str, int]] = set()

    def partition(self, event: tables.Stored) -> int:
        """The event's partition in the target."""
        return partition_of(event.tenant, event.user, self._partitions)

    def follow(self, event: tables.Stored, end: int, seq: int) -> None:
        """The event came to `seq`, where `end` was the last position of its partition."""
        for name, bound in self._bounds.items():
            place = (name, self.partition(event))
            if event.seq < bound[event.partition] and self._seqs.get(place, 0) == end:
                self._seqs[place] = seq
                self._moved.add(place)

    def write(self, db: Database) -> None:
        """Keep what moved; no lease is held."""
        for name, at in sorted(self._moved):
            db.execute(
                "INSERT INTO consumers VALUES (?, ?, ?, '', 0, 0)"
                " ON CONFLICT (name, partition) DO UPDATE SET seq = excluded.seq",
                (name, at, self._seqs[name, at]),
            )


# -- whether it is the same --------------------------------------------------------------------------------


async def _compared(source: SqlLog, target: SqlLog, kinds: Kinds, watch: Watch, events: int) -> Copied:
    def done(of: int) -> Callable[[int], None]:
        return lambda count: watch("Comparing", of * events + count, 2 * events)

    here: Tally = await tally(source, done(0))
    there: Tally = await tally(target, done(1))
    decider = next(iter(kinds))
    waiting = [(await log.lag({decider: kinds[decider]}))[decider].events for log in (source, target)]
    return Copied(
        kinds=there.kinds(),
        redacted=there.redacted,
        rows=there.rows(),
        digest=there.digest,
        differences=differences(here, there)
        + (["what waits for the worker: {} and {} events".format(*waiting)] if len(set(waiting)) > 1 else []),
    )
