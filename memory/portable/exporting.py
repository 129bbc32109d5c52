"""Export: a user's events in their order, as one file, read from the log a few at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Final

from hearth.memory.errors import StaleGeneration
from hearth.memory.events.codec import encode_line
from hearth.memory.events.kinds import Event
from hearth.memory.portable.checks import CARRIED
from hearth.memory.portable.form import FORMAT, VERSION, Header, Writer
from hearth.memory.portable.parcel import packed
from hearth.memory.ports import Clock, EventLog
from hearth.memory.reading import batches
from hearth.memory.types import Scope

READ_ROWS: Final = 100
"""Events that are held at once."""
Deciders = Mapping[str, Sequence[str]]
"""The kinds that each decider reads, by its name."""


async def exported(log: EventLog, scope: Scope, *, clock: Clock, deciders: Deciders) -> AsyncIterator[bytes]:
    """The lines of the file, some at a time. What was forgotten is in it as its tombstone alone.

    An isolated scope exports its own agent's events. Raises LogUnavailable, UnknownEvent where another
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
    async for found in batches(log, tenant=scope.tenant, user=scope.user, rows=READ_ROWS):
        own = [event for event in found if _belongs(event, scope)]
        yield await asyncio.to_thread(_lines, writer, own, handled, deciders)
    if await log.generation(scope.tenant, scope.user) != generation:
        raise StaleGeneration
    yield writer.footer()


def _belongs(event: Event, scope: Scope) -> bool:
    if not isinstance(event.payload, CARRIED):
        return False
    return not scope.isolated or event.agent == scope.agent


def _lines(writer: Writer, events: Sequence[Event], handled: Mapping[str, int], deciders: Deciders) -> bytes:
    return b"".join([_line(writer, event, handled, deciders) for event in events])


def _line(writer: Writer, event: Event, handled: Mapping[str, int], deciders: Deciders) -> bytes:
    """What a decider has not come to yet is decided where the file goes."""
    decided = all(event.seq <= handled[name] for name, kinds in deciders.items() if event.kind in kinds)
    return writer.event(event.kind, encode_line(packed(event, decided=decided)))
