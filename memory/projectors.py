"""Projectors: consumers that copy what the log holds into the stores that recall reads."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

import msgspec

from hearth.memory.events.kinds import (
    Event,
    KnowledgeLoaded,
    KnowledgeRemoved,
    MemoryAdded,
    MemoryChanged,
    MemoryForgotten,
    MemoryWithdrawn,
    PageClosed,
    PageForgotten,
    PageMoved,
    PageOutdated,
    SegmentEvicted,
    UserErased,
)
from hearth.memory.knowledge.projection import KnowledgeProjection
from hearth.memory.ports import EventLog, Indexed, MidTerm, Projected, ShortTerm
from hearth.memory.reading import indexed
from hearth.memory.tiers.indexed import as_stored, is_recallable
from hearth.memory.types import Page, Scope

TOGETHER = 32
"""Records of one batch; bounds what a crash repeats and how long a flush is put off."""


_ALONE = (UserErased, KnowledgeLoaded, KnowledgeRemoved)
"""What is about no single record."""


class _Key(NamedTuple):
    """A record's address, whichever agent's it is: a tombstone does not say whether that one was isolated."""

    tenant: str
    user: str
    id: str


class _Target(msgspec.Struct, frozen=True):
    """A record that some event was about."""

    scope: Scope
    is_page: bool
    is_new: bool = False
    """True for a memory that no block can show yet."""


class _Changes(msgspec.Struct):
    """What one batch does to the stores."""

    upserts: list[Indexed] = []
    deletes: defaultdict[str, list[str]] = msgspec.field(default_factory=lambda: defaultdict(list))
    """Ids by owner."""
    settled: defaultdict[Scope, list[Page]] = msgspec.field(default_factory=lambda: defaultdict(list))
    dropped: defaultdict[Scope, list[str]] = msgspec.field(default_factory=lambda: defaultdict(list))


class IndexProjector:
    """Brings long-term memory to what the log says of each record that events name.

    It reads the record's present state instead of trusting the event's, so handling an event twice, late or
    out of order ends in the same index.
    """

    name = "index"
    kinds = (
        "page.closed",
        "page.moved",
        "page.outdated",
        "page.forgotten",
        "segment.evicted",
        "memory.added",
        "memory.changed",
        "memory.forgotten",
        "memory.withdrawn",
        "knowledge.loaded",
        "knowledge.removed",
        "user.erased",
    )

    def __init__(
        self, *, log: EventLog, mid_term: MidTerm, short_term: ShortTerm, long_term: Projected
    ) -> None:
        self._log = log
        self._mid_term = mid_term
        self._short_term = short_term
        self._long_term = long_term
        self._knowledge = KnowledgeProjection(log=log, short_term=short_term, long_term=long_term)

    def together(self, events: Sequence[Event]) -> int:
        """How many of the head may be handled at once."""
        return min(len(events), TOGETHER)

    async def probe(self, event: Event) -> None:
        """Ask each store something small. Raises StoreUnavailable where one is down."""
        scope = Scope(tenant=event.tenant, user=event.user)
        await self._long_term.count(scope.owner)
        await self._short_term.latest(scope, limit=1)

    async def handle(self, events: Sequence[Event]) -> list[Event]:
        """Copy, make durable, settle. When it returns the cursor may move. Raises StoreUnavailable."""
        for alone, group in groupby(events, key=lambda event: isinstance(event.payload, _ALONE)):
            if alone:
                for event in group:
                    await self._erase(event)
                    await self._knowledge.project(event)
            else:
                await self._apply(await self._changes(await self._targets(list(group))))
        return []

    async def _targets(self, events: Sequence[Event]) -> dict[_Key, _Target]:
        """The records that the events are about; the last event about one gives its scope."""
        targets: dict[_Key, _Target] = {}
        for event in events:
            if isinstance(event.payload, SegmentEvicted):
                pages = await self._mid_term.pages_in(event.tenant, event.user, event.payload.segment)
                for page in pages:
                    targets[_Key(event.tenant, event.user, page.id)] = _Target(page.scope, is_page=True)
            elif (target := _target(event)) is not None:
                targets[target[0]] = target[1]
                await self._add_concepts(targets, *target)
            if isinstance(event.payload, PageForgotten):
                targets |= await self._following(event, event.payload.page)
        return targets

    async def _following(self, event: Event, page: str) -> dict[_Key, _Target]:
        """The pages after a forgotten one, whose context vectors had its words in them."""
        scope = Scope(tenant=event.tenant, user=event.user, agent=event.agent)
        ids = await self._log.following_pages(event.tenant, event.user, page)
        return {_Key(event.tenant, event.user, id): _Target(scope, is_page=True) for id in ids}

    async def _add_concepts(self, targets: dict[_Key, _Target], key: _Key, target: _Target) -> None:
        """A memory that changed or went takes the concepts that it is in along."""
        if not (target.is_page or target.is_new):
            for concept in await self._log.concepts_on(key.tenant, key.user, [key.id]):
                targets[_Key(key.tenant, key.user, concept)] = target

    async def _erase(self, event: Event) -> None:
        if isinstance(event.payload, UserErased):
            await self._long_term.clear(event.tenant, event.user)
            await self._long_term.flush()
            await self._short_term.clear(event.tenant, event.user, before=event.payload.generation)

    async def _changes(self, targets: dict[_Key, _Target]) -> _Changes:
        changes = _Changes()
        for key, target in targets.items():
            record = await self._log.record(key.tenant, key.user, key.id)
            if isinstance(record, Page):
                record = as_stored(record)
            if record is not None and is_recallable(record):
                changes.upserts.append(await indexed(self._log, record))
            else:
                for owner in _owners(target.scope if record is None else record.scope):
                    changes.deletes[owner].append(key.id)
            if target.is_page:
                if isinstance(record, Page) and record.state == "active":
                    changes.settled[target.scope].append(record)
                else:
                    changes.dropped[target.scope].append(key.id)
            elif not target.is_new:
                changes.dropped[target.scope].append(key.id)
        return changes

    async def _apply(self, changes: _Changes) -> None:
        """Settling comes before the cursor: a crash in between repeats it instead of leaving it out."""
        if changes.upserts:
            await self._long_term.upsert(changes.upserts)
        for owner, ids in changes.deletes.items():
            await self._long_term.delete(owner, ids)
        await self._long_term.flush()
        for scope, pages in changes.settled.items():
            await self._short_term.settle(scope, pages)
        for scope, ids in changes.dropped.items():
            await self._short_term.drop(scope, ids)


def _target(event: Event) -> tuple[_Key, _Target] | None:
    """The one record that the event is about."""
    scope = Scope(tenant=event.tenant, user=event.user, agent=event.agent)
    is_page, is_new = True, isinstance(event.payload, MemoryAdded)
    match event.payload:
        case PageClosed(page=page):
            record = page.id
        case PageMoved(page=record) | PageOutdated(page=record) | PageForgotten(page=record):
            pass
        case MemoryAdded(memory=memory) | MemoryChanged(memory=memory):
            record, is_page = memory.id, False
        case MemoryForgotten(memory=record) | MemoryWithdrawn(memory=record):
            is_page = False
        case _:
            return None
    return _Key(event.tenant, event.user, record), _Target(scope, is_page, is_new)


def _owners(scope: Scope) -> set[str]:
    return {msgspec.structs.replace(scope, isolated=isolated).owner for isolated in (False, True)}
