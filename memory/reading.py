"""Reads of the log that go over many rows: some at a time, each in a short transaction."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from datetime import datetime
from typing import Final

from hearth.memory.events.kinds import Event
from hearth.memory.ports import EventLog, Indexed, MemoryFilter
from hearth.memory.tiers.indexed import as_stored, index_record
from hearth.memory.types import Memory, Page, Record

EVENT_ROWS: Final = 500
MEMORY_ROWS: Final = 200


async def batches(
    log: EventLog,
    *,
    tenant: str,
    user: str | None = None,
    session: str | None = None,
    kinds: Sequence[str] = (),
    subjects: Sequence[str] = (),
    rows: int = EVENT_ROWS,
) -> AsyncIterator[list[Event]]:
    """All events that `EventLog.read` finds, in log order, up to `rows` of them at once.

    Raises LogUnavailable, UnknownEvent.
    """
    after = 0
    while events := await log.read(
        after=after,
        limit=rows,
        kinds=kinds,
        tenant=tenant,
        user=user,
        session=session,
        subjects=subjects,
    ):
        yield events
        after = events[-1].seq


async def latest_memories(
    log: EventLog,
    tenant: str,
    user: str,
    where: MemoryFilter,
    *,
    most: int,
    wanted: Callable[[Memory], bool],
) -> list[Memory]:
    """The latest memories that match and are wanted, newest first; no more are read once there are `most`.

    Raises LogUnavailable.
    """
    found: list[Memory] = []
    after: tuple[datetime, str] | None = None
    while len(found) < most:
        rows = await log.memories(tenant, user, where=where, after=after, limit=MEMORY_ROWS)
        found += filter(wanted, rows)
        if len(rows) < MEMORY_ROWS:
            break
        after = (rows[-1].created_at, rows[-1].id)
    return found


async def indexed(log: EventLog, record: Record) -> Indexed:
    """A record as the stores hold it, with the page before it, as long-term memory takes it.

    Raises LogUnavailable.
    """
    before = await log.previous_page(record) if isinstance(record, Page) else None
    return index_record(record, None if before is None else as_stored(before))
