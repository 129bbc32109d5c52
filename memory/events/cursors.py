"""The consumers' places in the log: leases with epochs, cursors, attempts, parked events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta

import msgspec

from hearth.memory.errors import LeaseLost
from hearth.memory.events import rows, texts
from hearth.memory.events.codec import micros
from hearth.memory.events.kinds import Event
from hearth.memory.events.sql import Database, Row, marks
from hearth.memory.ports import Lag, Lease


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


def handled(db: Database, consumers: Sequence[str], partition: int) -> dict[str, int]:
    """How far each of those consumers is in the partition."""
    found = db.execute(
        f"SELECT name, seq FROM consumers WHERE partition = ? AND name IN ({marks(consumers)})",
        (partition, *consumers),
    )
    return dict.fromkeys(consumers, 0) | {row[0]: row[1] for row in found}


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
    who = (event.tenant, event.user)
    if db.keys.on and (user := rows.user_row(db, *who)) is not None:
        error = texts.writing(db, user[0], who)(error, "parked", consumer, event.id)
    db.execute(
        "INSERT INTO parked SELECT ?, seq, ? FROM events JOIN payloads USING (seq) WHERE id = ?"
        " ON CONFLICT (consumer, seq) DO UPDATE SET error = excluded.error",
        (consumer, error, event.id),
    )


def parked(db: Database) -> list[tuple[str, Event, str]]:
    """What is set aside, in log order."""
    found = db.execute("SELECT consumer, error, seq FROM parked ORDER BY seq, consumer").fetchall()
    return [
        (consumer, event, _told(db, consumer, event, error))
        for consumer, error, seq in found
        for row in db.execute(f"{rows.EVENTS} WHERE e.seq = ?", (seq,))
        for event in [rows.event_of(db, row)]
    ]


def _told(db: Database, consumer: str, event: Event, error: str) -> str:
    """Why the event is set aside, which may repeat what was said."""
    return texts.read(db, (event.tenant, event.user), error, "parked", consumer, event.id)


def unpark(db: Database, consumer: str, event_id: str) -> bool:
    """Forget that the event was parked, and its attempts."""
    gone = db.execute(
        "DELETE FROM parked WHERE consumer = ? AND seq = (SELECT seq FROM events WHERE id = ?) RETURNING seq",
        (consumer, event_id),
    ).fetchone()
    db.execute("DELETE FROM attempts WHERE consumer = ? AND event = ?", (consumer, event_id))
    return gone is not None


def behind(db: Database, consumer: str, kinds: Sequence[str], partitions: int) -> list[int]:
    """The partitions with an event of those kinds after the consumer's cursor."""
    sql = f"{_places(partitions)} SELECT p FROM places WHERE EXISTS (SELECT 1 {_pending(kinds)}) ORDER BY p"
    return [row[0] for row in db.execute(sql, (*range(partitions), consumer, *kinds))]


def lag(db: Database, kinds: Mapping[str, Sequence[str]], partitions: int) -> dict[str, Lag]:
    """How many events follow each consumer's cursors, and how old the oldest of them is."""
    counted = "sum((SELECT count(*) {0})), min((SELECT min(e.recorded) {0}))"
    asked = {
        name: db.execute(
            f"{_places(partitions)} SELECT {counted.format(_pending(wanted))} FROM places",
            (*range(partitions), *(name, *wanted) * 2),
        )
        for name, wanted in kinds.items()
    }
    now = micros(db.now())
    return {name: _lag(answer.fetchone(), now) for name, answer in asked.items()}


def _lag(row: Row | None, now: int) -> Lag:
    events, oldest = row or (0, None)
    seconds = 0.0 if oldest is None else max(now - oldest, 0) / 1e6
    return Lag(events=int(events or 0), seconds=seconds)


def _places(partitions: int) -> str:
    return f"WITH places (p) AS (VALUES {', '.join(['(CAST(? AS integer))'] * partitions)})"


def _pending(kinds: Sequence[str]) -> str:
    """The events that wait for a consumer, named first, in the partition `places.p`."""
    return (
        "FROM events e JOIN payloads USING (seq) WHERE e.partition = places.p AND e.seq > coalesce("
        "(SELECT c.seq FROM consumers c WHERE c.name = ? AND c.partition = places.p), 0)"
        f" AND e.kind IN ({marks(kinds)})"
    )
