"""The consumers' places in the log: leases with epochs, cursors, attempts, parked events."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

import msgspec

from hearth.memory.errors import BadInput, LeaseLost
from hearth.memory.events import rows
from hearth.memory.events.codec import micros
from hearth.memory.events.kinds import Event
from hearth.memory.ports import Lease


def lease(
    db: sqlite3.Connection, consumer: str, partition: int, *, owner: str, seconds: float, now: datetime
) -> Lease | None:
    """Take or renew; a change of owner raises the epoch, so that the last owner's writes are refused."""
    if partition != 0:
        raise BadInput("partition", partition, "0: this log has one partition")
    until = micros(now + timedelta(seconds=seconds))
    row = db.execute(
        "INSERT INTO consumers VALUES (?1, 0, 0, ?2, ?3, 1) ON CONFLICT (name, partition) DO UPDATE SET"
        " epoch = epoch + (owner <> ?2), owner = ?2, lease_until = ?3 WHERE owner = ?2 OR lease_until <= ?4"
        " RETURNING seq, epoch",
        (consumer, owner, until, micros(now)),
    ).fetchone()
    return row and Lease(consumer=consumer, partition=0, owner=owner, seq=row[0], epoch=row[1])


def advance(
    db: sqlite3.Connection, held: Lease, *, seq: int, decisions: Sequence[Event], now: datetime
) -> Lease:
    """Append the decisions and move the cursor, if the lease is still the consumer's."""
    moved = db.execute(
        "UPDATE consumers SET seq = max(seq, ?)"
        " WHERE name = ? AND partition = ? AND owner = ? AND epoch = ? RETURNING seq",
        (seq, held.consumer, held.partition, held.owner, held.epoch),
    ).fetchone()
    if moved is None:
        raise LeaseLost
    rows.append(db, decisions, now, drop_stale=True)
    db.execute("DELETE FROM attempts WHERE consumer = ? AND seq <= ?", (held.consumer, moved[0]))
    return msgspec.structs.replace(held, seq=moved[0])


def start_attempt(db: sqlite3.Connection, consumer: str, event: Event) -> int:
    """Count one more start of the event."""
    row = db.execute(
        "INSERT INTO attempts VALUES (?, ?, ?, 1)"
        " ON CONFLICT (consumer, event) DO UPDATE SET count = count + 1 RETURNING count",
        (consumer, event.id, event.seq),
    ).fetchone()
    return int(row[0])


def park(db: sqlite3.Connection, consumer: str, event: Event, error: str) -> None:
    """Set the event aside, unless it was redacted meanwhile."""
    db.execute(
        "INSERT OR REPLACE INTO parked SELECT ?, seq, ? FROM events JOIN payloads USING (seq) WHERE id = ?",
        (consumer, error, event.id),
    )


def parked(db: sqlite3.Connection) -> list[tuple[str, Event, str]]:
    """What is set aside, in log order."""
    found = db.execute("SELECT consumer, error, seq FROM parked ORDER BY seq, consumer").fetchall()
    return [
        (consumer, rows.event_of(row), error)
        for consumer, error, seq in found
        for row in db.execute(f"{rows.EVENTS} WHERE e.seq = ?", (seq,))
    ]


def retry(db: sqlite3.Connection, consumer: str, event_id: str) -> Event | None:
    """Bring a parked event back, its attempts forgotten."""
    row = db.execute(f"{rows.EVENTS} WHERE e.id = ?", (event_id,)).fetchone()
    if row is None:
        return None
    gone = db.execute("DELETE FROM parked WHERE consumer = ? AND seq = ?", (consumer, row[0])).rowcount
    db.execute("DELETE FROM attempts WHERE consumer = ? AND event = ?", (consumer, event_id))
    return rows.event_of(row) if gone else None


def lag(db: sqlite3.Connection, kinds: Mapping[str, Iterable[str]]) -> dict[str, int]:
    """Events after each cursor, of the kinds that its consumer asks for where those are known."""
    consumers = db.execute("SELECT name, seq FROM consumers ORDER BY name").fetchall()
    return {name: _after(db, seq, tuple(kinds.get(name, ()))) for name, seq in consumers}


def _after(db: sqlite3.Connection, seq: int, kinds: tuple[str, ...]) -> int:
    chosen = f" AND kind IN ({', '.join('?' * len(kinds))})" if kinds else ""
    sql = f"SELECT count(*) FROM events JOIN payloads USING (seq) WHERE seq > ?{chosen}"
    return int(db.execute(sql, (seq, *kinds)).fetchone()[0])
