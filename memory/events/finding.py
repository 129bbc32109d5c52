"""Events of one tenant found by what they are about, in steps of bounded work; and how many there are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from hearth.memory.errors import UnknownEvent
from hearth.memory.events import rows
from hearth.memory.events.codec import micros, moment
from hearth.memory.events.kinds import (
    Event,
    MemoryForgotten,
    PageForgotten,
    Payload,
    SessionSummarised,
    SessionSwitched,
)
from hearth.memory.events.sql import USER, Condition, Database, Row, marks, tenant_key
from hearth.memory.filters import fold_text
from hearth.memory.ports import EventCount, EventFilter, EventsFound, Unreadable

LOOKED_AT = 20_000
"""Envelopes that one call looks at: milliseconds, however large the log is and rare what is wanted."""
READ = 1_000
"""Payloads that one call reads to find words in them."""
COUNTED = 50_000
"""Events counted in one step."""
_DAY = 86_400_000_000
_NEVER_SEARCHED = frozenset({"scope", "id", "tenant", "user", "session", "exchange"})
"""Fields that say where something is and not what."""


def find(db: Database, where: EventFilter, *, after: int, before: int | None, limit: int) -> EventsFound:
    """See `EventLog.find`."""
    down = before is not None
    ahead = ("e.seq < ?", [before]) if down else ("e.seq > ?", [after])
    order = "e.seq DESC" if down else "e.seq"
    edge = _edge(db, [_place(where), ahead], order, READ if where.words else LOOKED_AT)
    conditions = [_place(where), ahead, *_conditions(db, where)]
    if edge is not None:
        conditions.append(("e.seq >= ?" if down else "e.seq <= ?", [edge]))
    events, unreadable, last = _read(db, where, conditions, order, limit)
    if len(events) + len(unreadable) < limit:
        last = edge if edge is not None else last
        ended = edge is None
    else:
        ended = False
    return EventsFound(
        events=tuple(events),
        unreadable=tuple(unreadable),
        next=last if last is not None else (before if before is not None else after),
        ended=ended,
    )


OWN = (
    "(e.kind IN ('session.summarised', 'session.switched', 'memory.forgotten', 'page.forgotten') OR "
    + " OR ".join(
        f"EXISTS (SELECT 1 FROM {view} o WHERE o.user_id = e.user_id AND o.id = e.subject AND o.{column} = ?)"
        for view, column in (("exchanges", "own_agent"), ("memories", "own_agent"), ("segments", "owner"))
    )
    + ")"
)
"""Whether an event is of an isolated agent's own, or its payload tells; two times its name, and its owner."""


def _place(where: EventFilter) -> Condition:
    """What an index finds: the events of the user or, with few others', of the tenant."""
    if where.user is not None:
        return f"e.user_id = {USER}", [where.tenant, where.user]
    return "e.tenant_key = ?", [tenant_key(where.tenant)]


def _edge(db: Database, conditions: Sequence[Condition], order: str, most: int) -> int | None:
    """The position of the last event that is looked at; None where that is the log's end."""
    sql = f"SELECT e.seq FROM events e WHERE {_all(conditions)} ORDER BY {order} LIMIT 1 OFFSET {most - 1}"
    row = db.execute(sql, _values(conditions)).fetchone()
    return None if row is None else int(row[0])


def _conditions(db: Database, where: EventFilter) -> Iterator[Condition]:
    if where.kinds:
        yield f"e.kind IN ({marks(where.kinds)})", [*where.kinds]
    for column, value in (("agent", where.agent), ("session", where.session)):
        if value is not None:
            yield f"e.{column} = ?", [value]
    if where.owner is not None:
        yield OWN, [where.agent, where.agent, where.owner]
    if where.since is not None:
        yield "e.occurred >= ?", [micros(where.since)]
    if where.until is not None:
        yield "e.occurred < ?", [micros(where.until)]
    if where.trace:
        yield _labelled(("l.trace = ?", [where.trace]))
    for tag in where.tags:
        yield _labelled(db.has_tag("l.tags", tag))
    for key, wanted in where.metadata.items():
        yield _labelled(db.has_entry("l.metadata", key, wanted))


def _is_own(payload: Payload, where: EventFilter) -> bool:
    """False for what is told of another owner's session, or of a record that was forgotten: that has none."""
    match payload:
        case SessionSummarised(owner=owner):
            return where.owner in (None, owner)
        case SessionSwitched(isolated=isolated):
            return where.owner is None or isolated
        case MemoryForgotten(own_agent=own) | PageForgotten(own_agent=own):
            return where.owner is None or own == where.agent
        case _:
            return True


def _labelled(condition: Condition) -> Condition:
    sql, values = condition
    return f"EXISTS (SELECT 1 FROM labels l WHERE l.seq = e.seq AND {sql})", values


def _read(
    db: Database, where: EventFilter, conditions: Sequence[Condition], order: str, limit: int
) -> tuple[list[Event], list[Unreadable], int | None]:
    """Up to `limit` events that meet everything, and where the last one that was looked at is."""
    most = "" if where.words else f" LIMIT {max(limit, 0)}"
    found = db.execute(f"{rows.EVENTS} WHERE {_all(conditions)} ORDER BY {order}{most}", _values(conditions))
    words = fold_text(where.words).split()
    events: list[Event] = []
    unreadable: list[Unreadable] = []
    last = None
    for row in found:
        last = int(row[0])
        if row[2] != where.tenant:
            continue
        try:
            event = rows.event_of(db, row)
        except UnknownEvent as error:
            unreadable.append(Unreadable(seq=row[0], id=row[1], kind=row[10], reason=error.reason))
        else:
            if _is_own(event.payload, where) and (not words or says(event.payload, words)):
                events.append(event)
        if len(events) + len(unreadable) >= limit:
            break
    return events, unreadable, last


def says(payload: Payload, words: Sequence[str]) -> bool:
    """Whether all of the folded words stand in the texts of the payload."""
    text = fold_text("\n".join(_texts(msgspec.to_builtins(payload, str_keys=True))))
    return all(word in text for word in words)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, inner in value.items():
            if name not in _NEVER_SEARCHED:
                yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)


def count(db: Database, tenant: str, user: str | None, *, after: int) -> tuple[list[Row], int | None]:
    """Events behind a position by kind, day and form, and where the next step begins; None at the end."""
    place = _place(EventFilter(tenant=tenant, user=user))
    ahead = ("e.seq > ?", [after])
    edge = _edge(db, [place, ahead], "e.seq", COUNTED)
    conditions: list[Condition] = [place, ahead, ("u.tenant = ?", [tenant])]
    if edge is not None:
        conditions.append(("e.seq <= ?", [edge]))
    found = db.execute(
        f"SELECT e.kind, e.occurred / {_DAY}, count(*), sum(e.redacted), count(p.archive),"
        " coalesce(sum(length(p.body)), 0) FROM events e JOIN users u ON u.id = e.user_id"
        f" LEFT JOIN payloads p ON p.seq = e.seq WHERE {_all(conditions)} GROUP BY 1, 2",
        _values(conditions),
    ).fetchall()
    return found, edge


def by_month(counted: Sequence[Row]) -> list[EventCount]:
    """The rows of `count` added up by month and kind."""
    sums: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for kind, day, *numbers in counted:
        month = f"{moment(int(day) * _DAY):%Y-%m}"
        sums[month, kind] = [held + int(more) for held, more in zip(sums[month, kind], numbers, strict=True)]
    return [
        EventCount(month=month, kind=kind, events=n, redacted=gone, archived=away, bytes=size)
        for (month, kind), (n, gone, away, size) in sorted(sums.items())
    ]


def _all(conditions: Sequence[Condition]) -> str:
    return " AND ".join(sql for sql, _ in conditions)


def _values(conditions: Sequence[Condition]) -> list[Any]:
    return [value for _, values in conditions for value in values]
