"""Whether two logs hold the same: counts and digests that depend on no position and no row id."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import msgspec

from hearth.memory.events import copy_tables as tables
from hearth.memory.events.sql_log import SqlLog

_EVENTS = "events"
_SIZE = 1 << 256


class Tally:
    """How many rows a log holds of each sort, and the sum of their digests, modulo 2^256.

    The same rows have the same sum in whatever order they are read. An event counts with the id of the one
    before it, so that each user's order is in it too.
    """

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], int] = defaultdict(int)
        self._sums: dict[tuple[str, str], int] = defaultdict(int)
        self.redacted = 0

    def add(self, table: str, kind: str, row: Iterable[Any]) -> None:
        """Count a row; `kind` is an event's."""
        digest = hashlib.sha256(msgspec.msgpack.encode(tuple(row))).digest()
        self._counts[table, kind] += 1
        self._sums[table, kind] = (self._sums[table, kind] + int.from_bytes(digest)) % _SIZE

    def kinds(self) -> dict[str, int]:
        """Events by kind."""
        return {kind: count for (table, kind), count in sorted(self._counts.items()) if table == _EVENTS}

    def rows(self) -> dict[str, int]:
        """Rows by table, events left out."""
        return {table: count for (table, _), count in sorted(self._counts.items()) if table != _EVENTS}

    @property
    def digest(self) -> str:
        """Of all events."""
        total = sum(value for (table, _), value in self._sums.items() if table == _EVENTS)
        return f"{total % _SIZE:064x}"

    def of(self, sort: tuple[str, str]) -> tuple[int, int]:
        """Count and sum of one sort."""
        return self._counts.get(sort, 0), self._sums.get(sort, 0)

    def sorts(self) -> set[tuple[str, str]]:
        """What there is."""
        return set(self._counts)


async def tally(log: SqlLog, done: Callable[[int], None]) -> Tally:
    """Read all of a log, page by page; `done` is told how many events were read. Raises LogUnavailable."""
    found = Tally()
    for table in (tables.USERS, tables.SECRETS, *tables.OTHERS):
        await _add_rows(log, table, found)
    await _add_events(log, found, done)
    return found


async def _add_rows(log: SqlLog, table: tables.Table, found: Tally) -> None:
    after: tuple[Any, ...] = ()
    while True:
        page = await log.ask(partial(tables.read, table=table, after=after))
        if not page.rows:
            return
        for row in page.rows:
            found.add(table.name, "", row)
        after = page.keys[-1]


async def _add_events(log: SqlLog, found: Tally, done: Callable[[int], None]) -> None:
    after = count = 0
    while True:
        page = await log.ask(partial(tables.read_events, after=after))
        if not page:
            return
        for event in page:
            found.add(_EVENTS, event.kind, event[2:])
            found.redacted += event.body is None
        after, count = page[-1].seq, count + len(page)
        done(count)


def differences(source: Tally, target: Tally) -> list[str]:
    """What is not the same, in words."""
    said = []
    for table, kind in sorted(source.sorts() | target.sorts()):
        here, there = source.of((table, kind)), target.of((table, kind))
        what = f"events {kind}" if kind else table
        if here[0] != there[0]:
            said.append(f"{what}: {here[0]} in the source, {there[0]} in the target")
        elif here != there:
            said.append(f"{what}: {here[0]} on both sides, but not the same")
    return said
