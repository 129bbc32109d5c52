"""Export: a user's events in their order, as one file, read from the log a few at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Final

from hearth.memory.errors import StaleGeneration, UnknownEvent
from hearth.memory.events.codec import encode_line
from hearth.memory.events.kinds import Event
from hearth.memory.portable.checks import CARRIED
from hearth.memory.portable.form import FORMAT, VERSION, Header, Writer
from hearth.memory.portable.parcel import packed
from hearth.memory.ports import Clock, EventFilter, EventLog
from hearth.memory.reading import batches
from hearth.memory.types import Scope

READ_ROWS: Final = 100
"""Events that are held at once."""
Deciders = Mapping[str, Sequence[str]]
"""The kinds that each decider reads, by its name."""


async def exported(log: EventLog, scope: Scope, *, clock: Clock, deciders: Deciders) -> AsyncIterator[bytes]:
    """The lines of the file, some at a time. What was forgotten is in it as its tombstone alone.

    An isolated scope exports what is its agent's own. Raises LogUnavailable, UnknownEvent where another
    version wrote an event, and StaleGeneration where the user was erased meanwhile: what has come until then
    has no footer, and so nobody takes it for a whole file.
    """
    generation = await log.generation(scope.tenant, scope.user)
    handled = await log.handled(scope.tenant, scope.user, list(deciders))
    writer = Writer()
    yield writer.header(
        Header(
            format=FORMAT,
            version=VERSION,
            tenant=scope.tenant,
            user=scope.user,
            exported_at=clock.now(),
        )
    )
    async for found in _own(log, scope) if scope.isolated else _all(log, scope):
        own = [event for event in found if isinstance(event.payload, CARRIED)]
        yield await asyncio.to_thread(_lines, writer, own, handled, deciders)
    if await log.generation(scope.tenant, scope.user) != generation:
        raise StaleGeneration
    yield writer.footer()


def _all(log: EventLog, scope: Scope) -> AsyncIterator[Sequence[Event]]:
    return batches(log, tenant=scope.tenant, user=scope.user, rows=READ_ROWS)


async def _own(log: EventLog, scope: Scope) -> AsyncIterator[Sequence[Event]]:
    """By the owner, not by the agent's name: what others say to an agent of that name is shared."""
    where = EventFilter(tenant=scope.tenant, user=scope.user, agent=scope.agent, owner=scope.owner)
    after, ended = 0, False
    while not ended:
        found = await log.find(where, after=after, limit=READ_ROWS)
        if found.unreadable:
            raise UnknownEvent(found.unreadable[0].kind, 0, found.unreadable[0].reason)
        yield found.events
        after, ended = found.next, found.ended


def _lines(writer: Writer, events: Sequence[Event], handled: Mapping[str, int], deciders: Deciders) -> bytes:
    return b"".join([_line(writer, event, handled, deciders) for event in events])


def _line(writer: Writer, event: Event, handled: Mapping[str, int], deciders: Deciders) -> bytes:
    """What a decider has not come to yet is decided where the file goes."""
    decided = all(event.seq <= handled[name] for name, kinds in deciders.items() if event.kind in kinds)
    return writer.event(event.kind, encode_line(packed(event, decided=decided)))
