"""Events to and from their rows: the append, idempotent by id and fenced by generation."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, TypeAlias

import msgspec

from hearth.memory.errors import BadInput, StaleGeneration, UnknownEvent
from hearth.memory.events import views
from hearth.memory.events.codec import decode, encode, micros, moment
from hearth.memory.events.kinds import Event, UserErased

Row: TypeAlias = tuple[Any, ...]

EVENTS = (
    "SELECT e.seq, e.id, u.tenant, u.name, e.agent, e.session, e.generation, e.occurred, e.parent,"
    " e.recorded, e.kind, p.version, p.body, e.user"
    " FROM events e JOIN payloads p USING (seq) JOIN users u ON u.id = e.user"
)
"""Whole events, redacted ones left out; add conditions and an order."""


def event_of(row: Row) -> Event:
    """The event of a row of `EVENTS`. Raises UnknownEvent."""
    return Event(
        seq=row[0],
        id=row[1],
        tenant=row[2],
        user=row[3],
        agent=row[4],
        session=row[5],
        generation=row[6],
        occurred_at=moment(row[7]),
        parent=row[8],
        recorded_at=moment(row[9]),
        payload=decode(row[10], row[11], row[12]),
    )


def events_of(rows: Iterable[Row]) -> list[Event]:
    """The events of the rows before the first unreadable one. Raises UnknownEvent if that is the first."""
    events: list[Event] = []
    for row in rows:
        try:
            events.append(event_of(row))
        except UnknownEvent:
            if not events:
                raise
            break
    return events


def user_row(db: sqlite3.Connection, tenant: str, user: str) -> tuple[int, int] | None:
    """The user's row id and generation, or None for a user that the log never saw."""
    found: tuple[int, int] | None = db.execute(
        "SELECT id, generation FROM users WHERE tenant = ? AND name = ?", (tenant, user)
    ).fetchone()
    return found


def append(
    db: sqlite3.Connection, events: Sequence[Event], now: datetime, *, drop_stale: bool = False
) -> None:
    """Add the events and fold them, in the open transaction.

    Raises StaleGeneration, unless `drop_stale`: then such events are left out. Raises BadInput for a
    generation that the user never had.
    """
    for event in events:
        try:
            _append_one(db, event, now)
        except StaleGeneration:
            if not drop_stale:
                raise


def _append_one(db: sqlite3.Connection, event: Event, now: datetime) -> None:
    user, generation = user_row(db, event.tenant, event.user) or _add_user(db, event)
    if _outdated(event, generation):
        if db.execute("SELECT 1 FROM events WHERE id = ?", (event.id,)).fetchone():
            return
        raise StaleGeneration
    encoded = encode(event.payload)
    occurred = min(event.occurred_at, now + views.CLOCK_SKEW)
    event = msgspec.structs.replace(event, payload=encoded.payload, occurred_at=occurred, recorded_at=now)
    about = (micros(occurred), micros(now), event.parent, views.subject_of(event.payload))
    inserted = db.execute(
        "INSERT INTO events (id, user, kind, agent, session, generation, occurred, recorded, parent, subject)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING",
        (event.id, user, encoded.kind, event.agent, event.session, event.generation, *about),
    )
    if inserted.rowcount == 0 or views.refused(db, user, event):
        return
    event = msgspec.structs.replace(event, seq=inserted.lastrowid)
    db.execute("INSERT INTO payloads VALUES (?, ?, ?)", (event.seq, encoded.version, encoded.body))
    views.fold(db, user, event)


def _add_user(db: sqlite3.Connection, event: Event) -> tuple[int, int]:
    row = db.execute("INSERT INTO users (tenant, name) VALUES (?, ?)", (event.tenant, event.user))
    return int(row.lastrowid or 0), 1


def _outdated(event: Event, generation: int) -> bool:
    """An erasure must raise the generation: of two at once the second is outdated like anything else."""
    if isinstance(event.payload, UserErased):
        return event.payload.generation <= generation
    if event.generation > generation:
        raise BadInput("generation", event.generation, f"at most the user's own, {generation}")
    return event.generation < generation
