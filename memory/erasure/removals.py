"""What has to be appended so that a memory, an exchange or a session is gone."""

from __future__ import annotations

import msgspec

from hearth.memory.erasure.office import Office
from hearth.memory.errors import NotFound
from hearth.memory.events.kinds import (
    MemoryForgotten,
    PageForgotten,
    PageOutdated,
    Payload,
    SessionForgotten,
)
from hearth.memory.outdating import unsaid_pages
from hearth.memory.ports import EventLog, MidTerm
from hearth.memory.types import Exchange, Scope


class Removal(msgspec.Struct, frozen=True, kw_only=True):
    """What goes, and the events that say so; the first one is the tombstone of what was named."""

    scope: Scope
    generation: int
    payloads: tuple[Payload, ...]
    concepts: tuple[str, ...] = ()
    """Those that rest on what goes: the log takes them out with it, and the worker makes them anew."""

    @property
    def gone(self) -> tuple[str, ...]:
        """Ids of the exchanges, memories and concepts that go."""
        exchanges = [one.page for one in self.payloads if isinstance(one, PageForgotten)]
        memories = [one.memory for one in self.payloads if isinstance(one, MemoryForgotten)]
        return tuple(dict.fromkeys([*exchanges, *memories, *self.concepts]))

    @property
    def marked(self) -> tuple[str, ...]:
        """Pages of which some words are recalled no more."""
        return tuple(one.page for one in self.payloads if isinstance(one, PageOutdated))


async def of_memory(log: EventLog, scope: Scope, id: str) -> Removal:
    """A memory, and the words that it was read from. Raises NotFound, LogUnavailable."""
    memory = await log.memory(scope.tenant, scope.user, id)
    if memory is None:
        raise NotFound
    payloads: tuple[Payload, ...] = (MemoryForgotten(memory=id), *await unsaid_pages(log, [memory]))
    return Removal(
        scope=memory.scope,
        generation=memory.generation,
        payloads=payloads,
        concepts=tuple(await log.concepts_on(scope.tenant, scope.user, [id])),
    )


async def of_exchange(log: EventLog, mid_term: MidTerm, scope: Scope, id: str) -> Removal:
    """An exchange, and what rests on it alone or sums it up. Raises NotFound, LogUnavailable."""
    exchange = await log.exchange(scope.tenant, scope.user, id)
    if exchange is None:
        raise NotFound
    made = await _made_of(log, mid_term, exchange)
    return Removal(
        scope=exchange.scope,
        generation=await log.generation(scope.tenant, scope.user),
        payloads=(PageForgotten(page=id), *_unmade(made, "its exchange was forgotten")),
        concepts=tuple(await log.concepts_on(scope.tenant, scope.user, made)),
    )


async def of_session(log: EventLog, office: Office, mid_term: MidTerm, scope: Scope) -> Removal:
    """`scope.session`: its exchanges, what rests on them alone, and what was added in it.

    Raises NotFound where there is nothing of it, LogUnavailable.
    """
    exchanges, added = await office.of_session(scope.tenant, scope.user, scope.session)
    if not (exchanges or added):
        raise NotFound
    made: list[str] = []
    whose = scope
    for id in exchanges:
        exchange = await log.exchange(scope.tenant, scope.user, id)
        whose = whose if exchange is None else exchange.scope
        made += [] if exchange is None else await _made_of(log, mid_term, exchange, gone=set(exchanges))
    reason = "its session was forgotten"
    return Removal(
        scope=whose,
        generation=await log.generation(scope.tenant, scope.user),
        payloads=(
            SessionForgotten(session=scope.session),
            *(PageForgotten(page=id, reason=reason) for id in exchanges),
            *_unmade([*added, *made], reason),
        ),
        concepts=tuple(await log.concepts_on(scope.tenant, scope.user, [*added, *made])),
    )


def _unmade(ids: list[str], reason: str) -> list[MemoryForgotten]:
    return [MemoryForgotten(memory=id, reason=reason) for id in dict.fromkeys(ids)]


async def _made_of(
    log: EventLog, mid_term: MidTerm, exchange: Exchange, gone: set[str] | None = None
) -> list[str]:
    """Memories that rest on what goes alone, and the episode that has it; the worker makes it anew."""
    user, gone = (exchange.scope.tenant, exchange.scope.user), gone or {exchange.id}
    resting = [
        fact.id
        for fact in await log.facts_of(*user, exchange.id)
        if fact.source != "api" and all(one.id in gone for one in fact.evidence)
    ]
    of = await mid_term.segments_of(*user, [exchange.id])
    known = await mid_term.segments_named(*user, list(of.values())) if of else []
    return [*resting, *(one.episode for one in known if one.episode)]
