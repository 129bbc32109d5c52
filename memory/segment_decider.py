"""The segment decider: moves pages beyond short-term memory into segments, keeps heat, promotes, evicts, and
sums up what left of each session.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

from msgspec import structs

from hearth.memory import metrics
from hearth.memory.events.kinds import (
    Event,
    PageClosed,
    PageForgotten,
    PageMoved,
    PageOutdated,
    Payload,
    RecallDrawn,
    SegmentDue,
    SegmentEvicted,
    SegmentPinned,
    SegmentPromoted,
    SessionSummarised,
    is_decided,
)
from hearth.memory.policies import PolicyOf
from hearth.memory.ports import Clock, EventLog, LongTerm, MidTerm
from hearth.memory.runner import all_different
from hearth.memory.segmenting import Known, Segmenting
from hearth.memory.summarising import summaries
from hearth.memory.tiers.pages import decisions
from hearth.memory.types import DrawnItem, Memory, Page, Scope

_OWNERS: Final = 256
"""Owners whose segments are kept in memory between events."""


class SegmentDecider:
    """Turns pages beyond short-term memory into segments, by topic, and lets the coldest go.

    Each decision is an event that carries its outcome, heat included, so that nothing is ever computed again.
    """

    name = "segments"
    kinds = (
        *("page.closed", "page.moved", "page.forgotten", "page.outdated"),
        *("recall.drawn", "segment.pinned", "segment.due"),
    )

    def __init__(
        self,
        *,
        log: EventLog,
        mid_term: MidTerm,
        long_term: LongTerm,
        clock: Clock,
        policy: PolicyOf,
    ) -> None:
        self._log = log
        self._mid_term = mid_term
        self._long_term = long_term
        self._clock = clock
        self._policy = policy
        self._known: OrderedDict[tuple[str, int], Known] = OrderedDict()

    def together(self, events: Sequence[Event]) -> int:
        """How many of the head may be handled at once: one a user, whose segments rest on one another."""
        return all_different((event.tenant, event.user) for event in events)

    async def probe(self, event: Event) -> None:
        """Raise StoreUnavailable if long-term memory, which has the vectors, is down."""
        await self._long_term.count(Scope(tenant=event.tenant, user=event.user).owner)

    async def handle(self, events: Sequence[Event]) -> list[Event]:
        """Decide for each page that came, moved or went, and for each recall. Raises StoreUnavailable.

        Ids name this decider: another one decides of memories because of the same events.
        """
        return [
            decision
            for event in events
            if not is_decided(event.payload)
            for decision in decisions(event, await self._decide(event), cause=self.name)
        ]

    async def _decide(self, event: Event) -> list[Payload]:
        made: list[Payload] = []
        for scope in await self._scopes(event):
            work = await self._work(event, scope)
            await work.mend()
            await work.recount()
            match event.payload:
                case PageMoved(page=page, state="inactive" | "hidden"):
                    await work.take_out(page)
                case PageOutdated(page=page):
                    await work.resay(page)
                case SegmentPinned(segment=segment, pinned=pinned):
                    work.pin(segment, pinned=pinned)
                case SegmentDue(segment=segment, reason=reason):
                    work.let_go(segment, reason)
                case RecallDrawn(items=items, exchange=exchange):
                    work.visit(await self._visited(event, items), exchange)
            await work.fill()
            made += await work.end()
            made += await self._summaries(event, scope, work)
        for payload in made:
            if isinstance(payload, SegmentPromoted | SegmentEvicted):
                metrics.SEGMENTS.labels(str(payload.__struct_config__.tag)).inc()
        return made

    async def _scopes(self, event: Event) -> list[Scope]:
        """Whose segments the event may change; where it is about none of the pages that are left
        all that its agent can have.
        """
        shared = Scope(tenant=event.tenant, user=event.user, agent=event.agent)
        match event.payload:
            case PageClosed(page=page):
                return [page.scope]
            case PageMoved(page=id) | PageOutdated(page=id) | RecallDrawn(exchange=id):
                found = await self._log.record(event.tenant, event.user, id)
                return [found.scope] if isinstance(found, Page) else []
            case SegmentDue():
                return [structs.replace(shared, isolated=bool(event.agent))]
            case PageForgotten() | SegmentPinned():
                isolated = Scope(tenant=event.tenant, user=event.user, agent=event.agent, isolated=True)
                return [shared, isolated]
            case _:
                return []

    async def _work(self, event: Event, scope: Scope) -> Segmenting:
        return Segmenting(
            log=self._log,
            mid_term=self._mid_term,
            long_term=self._long_term,
            policy=self._policy(event.tenant, "", ""),
            scope=scope,
            generation=event.generation,
            cause=event.id,
            at=event.occurred_at,
            now=self._clock.now(),
            known=await self._segments(event, scope.owner),
        )

    async def _summaries(self, event: Event, scope: Scope, work: Segmenting) -> list[SessionSummarised]:
        return await summaries(
            event,
            scope,
            work.gone,
            work.outliving,
            log=self._log,
            mid_term=self._mid_term,
            tokens=self._policy(event.tenant, "", "").short_term.summary_tokens,
            now=self._clock.now(),
        )

    async def _segments(self, event: Event, owner: str) -> Known:
        """The owner's segments, of which only those that changed meanwhile are read."""
        key = (owner, event.generation)
        known = self._known.setdefault(key, Known())
        self._known.move_to_end(key)
        while len(self._known) > _OWNERS:
            self._known.popitem(last=False)
        known.take(await self._mid_term.segments(event.tenant, event.user, owner, after=known.seq))
        return known

    async def _visited(self, event: Event, items: Sequence[DrawnItem]) -> dict[str, bool]:
        """The segments of the recalled pages, and of the pages that recalled memories rest on."""
        used: dict[str, bool] = {}
        rests = await self._rests(event, [item.id for item in items])
        for item in items:
            for page in rests[item.id]:
                used[page] = used.get(page, False) or item.used
        of = await self._mid_term.segments_of(event.tenant, event.user, list(used))
        visited: dict[str, bool] = {}
        for page, segment in of.items():
            visited[segment] = visited.get(segment, False) or used[page]
        return visited

    async def _rests(self, event: Event, ids: Sequence[str]) -> dict[str, list[str]]:
        """The pages that each record rests on: itself where it is no memory, those of a concept's parts."""
        found = await self._log.records_named(event.tenant, event.user, ids)
        memories = {id: one for id, one in found.items() if isinstance(one, Memory)}
        on = {id: [id] for id in ids}
        on |= {id: [part.id for part in one.evidence] for id, one in memories.items()}
        concepts = [id for id, one in memories.items() if one.type == "concept"]
        if concepts:
            parts = await self._rests(event, [part for id in concepts for part in on[id]])
            on |= {id: [page for part in on[id] for page in parts[part]] for id in concepts}
        return on
