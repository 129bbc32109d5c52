"""The consumers' places in the log: leases with epochs, cursors, attempts, parked events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta

import msgspec

from hearth.memory.errors import LeaseLost
from hearth.memory.events import rows
from hearth.memory.events.codec import micros
from hearth.memory.events.kinds import Event
from hearth.memory.events.sql import Database, Rows, marks, number_of
from hearth.memory.ports import Lease


def lease(db: Database, consumer: str, partition: int, *, owner: str, seconds: float) -> Lease | None:
    """Take or renew; a change of owner raises the epoch, so that the last owner's writes are refused."""
    now = db.now()
    until = micros(now + timedelta(seconds=seconds))
    row = db.execute(
        "INSERT INTO consumers AS c VALUES (?, ?, 0, ?, ?, 1) ON CONFLICT (name, partition) DO UPDATE SET"
        " epoch = c.epoch + CASE WHEN c.owner = excluded.owner THEN 0 ELSE 1 END,"
        " owner = excluded.owner, lease_until = excluded.lease_until"
        " WHERE c.owner = excluded.owner OR c.lease_until <= ? RETURNING seq, epoch",
        (consumer, partition, owner, until, micros(now)),
    ).fetchone()
    if row is None:
        return None
    return Lease(consumer=consumer, partition=partition, owner=owner, seq=row[0], epoch=row[1])


def advance(db: Database, held: Lease, *, seq: int, decisions: Sequence[Event]) -> Lease:
    """Append the decisions and move the cursor, if the lease is still the consumer's."""
    moved = db.execute(
        "UPDATE consumers SET seq = CASE WHEN seq < ?1 THEN ?1 ELSE seq END"
        " WHERE name = ?2 AND partition = ?3 AND owner = ?4 AND epoch = ?5 RETURNING seq",
        (seq, held.consumer, held.partition, held.owner, held.epoch),
    ).fetchone()
    if moved is None:
        raise LeaseLost
    if decisions:
        rows.append(db, decisions, drop_stale=True)
    db.execute(
        "DELETE FROM attempts WHERE consumer = ? AND partition = ? AND seq <= ?",
        (held.consumer, held.partition, moved[0]),
    )
    return msgspec.structs.replace(held, seq=moved[0])


def start_attempt(db: Database, consumer: str, partition: int, event: Event) -> int:
    """Count one more start of the event."""
    row = db.execute(
        "INSERT INTO attempts AS a VALUES (?, ?, ?, ?, 1)"
        " ON CONFLICT (consumer, event) DO UPDATE SET count = a.count + 1 RETURNING count",
        (consumer, event.id, partition, event.seq),
    ).fetchone()
    return int(row[0]) if row else 0


def park(db: Database, consumer: str, event: Event, error: str) -> None:
    """Set the event aside, unless it was redacted meanwhile."""
    db.execute(
        "INSERT INTO parked SELECT ?, seq, ? FROM events JOIN payloads USING (seq) WHERE id = ?"
        " ON CONFLICT (consumer, seq) DO UPDATE SET error = excluded.error",
        (consumer, error, event.id),
    )


def parked(db: Database) -> list[tuple[str, Event, str]]:
    """What is set aside, in log order."""
    found = db.execute("SELECT consumer, error, seq FROM parked ORDER BY seq, consumer").fetchall()
    return [
        (consumer, rows.event_of(row), error)
        for consumer, error, seq in found
        for row in db.execute(f"{rows.EVENTS} WHERE e.seq = ?", (seq,))
    ]


def retry(db: Database, consumer: str, event_id: str) -> Event | None:
    """Bring a parked event back, its attempts forgotten."""
    row = db.execute(f"{rows.EVENTS} WHERE e.id = ?", (event_id,)).fetchone()
    if row is None:
        return None
    gone = db.execute(
        "DELETE FROM parked WHERE consumer = ? AND seq = ? RETURNING seq", (consumer, row[0])
    ).fetchone()
    db.execute("DELETE FROM attempts WHERE consumer = ? AND event = ?", (consumer, event_id))
    return rows.event_of(row) if gone else None


def lag(db: Database, kinds: Mapping[str, Iterable[str]], partitions: int) -> dict[str, int]:
    """Events after each cursor, of the kinds that its consumer asks for where those are known."""
    cursors = db.execute("SELECT name, partition, seq FROM consumers ORDER BY name").fetchall()
    names = dict.fromkeys(name for name, _, _ in cursors)
    places = {(name, partition): seq for name, partition, seq in cursors}
    counts = [
        (name, _after(db, partition, places.get((name, partition), 0), tuple(kinds.get(name, ()))))
        for name in names
        for partition in range(partitions)
    ]
    return {name: sum(number_of(answer) for owner, answer in counts if owner == name) for name in names}


def _after(db: Database, partition: int, seq: int, kinds: tuple[str, ...]) -> Rows:
    chosen = f" AND kind IN ({marks(kinds)})" if kinds else ""
    sql = f"SELECT count(*) FROM events JOIN payloads USING (seq) WHERE partition = ? AND seq > ?{chosen}"
    return db.execute(sql, (partition, seq, *kinds))
