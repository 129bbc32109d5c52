"""One event's work on an owner's segments: pages move in, heat rises, topics end, the coldest go."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final
from uuid import NAMESPACE_URL, uuid5

import msgspec
from msgspec import structs

from hearth.memory.errors import StoreUnavailable
from hearth.memory.events.kinds import (
    MemoryAdded,
    MemoryForgotten,
    PageSegmented,
    Payload,
    SegmentChanged,
    SegmentEvicted,
    SegmentPromoted,
    SegmentVisited,
)
from hearth.memory.ports import EventLog, KnownSegment, LongTerm, MemoryFilter, MidTerm, WaitingPage
from hearth.memory.reading import batches
from hearth.memory.summarising import Gone
from hearth.memory.tiers.episodes import episode_of
from hearth.memory.tiers.fading import Left, fading
from hearth.memory.tiers.heat import Heat, touch, warmth, with_page
from hearth.memory.tiers.indexed import as_stored, record_text
from hearth.memory.tiers.keywords import keywords
from hearth.memory.tiers.life import LifePolicy
from hearth.memory.tiers.outdated import as_of
from hearth.memory.tiers.overflow import Leaving, Waiting, overflow
from hearth.memory.tiers.segments import PageShape, begun, begun_by, joined, leaving, over, place
from hearth.memory.tiers.short_term import text_size
from hearth.memory.types import Embedding, Memory, Page, Scope, Segment

_NAMESPACE: Final = uuid5(NAMESPACE_URL, "hearth:segment")
_WAITING: Final = 400
"""Pages that are looked at, of those that wait; more do only after an import."""
_AT_ONCE: Final = 64
"""Pages that one event moves at most."""
_IMPORTANT: Final = 0.8
"""Importance of a page on which a fact rests."""
_USUAL: Final = 0.5
"""Of another."""
_RECOUNTED: Final = 100
"""Segments whose visits are read together."""
_EPISODES: Final = 10_000
"""Episodes that are looked at for those that have to go: the newest."""


class Known(msgspec.Struct, kw_only=True):
    """An owner's segments as of a position in the log."""

    seq: int = 0
    segments: dict[str, Segment] = {}
    heats: dict[str, Heat] = {}
    damaged: dict[str, KnownSegment] = {}
    """Those that lost a page, and have to be summed up anew."""

    def take(self, found: Iterable[KnownSegment]) -> None:
        """Take over what changed."""
        for one in found:
            self.seq = max(self.seq, one.changed)
            for held in (self.segments, self.heats, self.damaged):
                held.pop(one.id, None)
            if one.segment is not None:
                self.segments[one.id], self.heats[one.id] = one.segment, one.heat
            elif one.state in ("spoiled", "lost"):
                self.damaged[one.id] = one


class Segmenting:
    """What one event does to the segments of one owner. `made` has the decisions, in order, after `end`;
    `gone` the pages that left short-term memory, `outliving` older ones of the same sessions that did not.
    """

    def __init__(
        self,
        *,
        log: EventLog,
        mid_term: MidTerm,
        long_term: LongTerm,
        policy: LifePolicy,
        scope: Scope,
        generation: int,
        cause: str,
        at: datetime,
        now: datetime,
        known: Known,
    ) -> None:
        """`cause`: the event's id. `at`: when it happened; `now`: the clock's time, for ages."""
        self._log, self._mid_term, self._long_term = log, mid_term, long_term
        self._policy, self._scope, self._generation = policy, scope, generation
        self._cause, self._at, self._now = cause, at, now
        self._segments, self._heats = dict(known.segments), dict(known.heats)
        self._damaged = dict(known.damaged)
        self._changed: set[str] = set()
        self._due: list[tuple[str, str]] = []
        self._after: list[Payload] = []
        self.made: list[Payload] = []
        self.gone: list[Gone] = []
        self.outliving: list[WaitingPage] = []

    # -- what can happen -------------------------------------------------------------------------------

    async def fill(self) -> None:
        """Move the pages that short-term memory has no room for, oldest first."""
        waiting = await self._mid_term.waiting_pages(*self._user, self._scope.owner, limit=_WAITING)
        leaving_now = self._leaving(waiting)
        if not leaving_now:
            return
        by_id = {page.id: page for page in waiting}
        ids = [one.id for one in leaving_now]
        vectors = await self._long_term.vectors(self._scope.owner, ids)
        records = await self._log.records_named(*self._user, vectors)
        for one in leaving_now:
            if isinstance(page := records.get(one.id), Page):
                self._move(page, by_id[one.id], vectors[one.id], one.reason)
        latest = {one.page.scope.session: one.page.occurred_at for one in self.gone}
        staying = (page for page in waiting if page.id not in ids)
        self.outliving = [page for page in staying if page.at < latest.get(page.session, page.at)]

    async def take_out(self, page: str) -> None:
        """A page left the live branch: its segment is made anew without it."""
        of = await self._mid_term.segments_of(*self._user, [page])
        if page in of:
            self.made.append(PageSegmented(page=page, segment=None, reason="left its branch"))
            await self._remake(of[page], without=page)

    async def mend(self) -> None:
        """Make anew what lost a forgotten page."""
        for id, one in self._damaged.items():
            if one.state == "lost":
                await self._resum(id, one, "lost a page")
            else:
                self._heats[id] = one.heat
                await self._remake(id, episode=one.episode)

    async def recount(self) -> None:
        """Count heat anew that was counted by another policy: of all its pages and visits by this one."""
        by = self._policy.heat.counts
        stale = sorted(id for id, heat in self._heats.items() if heat.counted_by != by)
        for start in range(0, len(stale), _RECOUNTED):
            some = stale[start : start + _RECOUNTED]
            heats = {id: await self._of_pages(id) for id in some}
            await self._add_visits(heats)
            self._heats |= heats
            self._changed |= heats.keys()

    def pin(self, id: str, *, pinned: bool) -> None:
        """Somebody wants the segment kept whatever its heat, or no longer."""
        if id in self._segments and self._segments[id].pinned != pinned:
            self._set(structs.replace(self._segments[id], pinned=pinned))

    def let_go(self, id: str, reason: str) -> None:
        """The tenant has no room for the segment, unless it was pinned since. Of age `end` judges anew."""
        if reason != "age" and id in self._segments and not self._segments[id].pinned:
            self._due.append((id, reason))

    async def resay(self, page: str) -> None:
        """What the page says of a fact holds no more, or again: its segment's episode has to say the same."""
        id = (await self._mid_term.segments_of(*self._user, [page])).get(page, "")
        known = await self._mid_term.segments_named(*self._user, [id]) if id else []
        there = await self._log.memory(*self._user, known[0].episode) if known else None
        if there is None or there.source == "api":
            return
        segment = self._segments.get(id)
        pages = await self._all_pages(id)
        if episode_of(self._current(pages)).text == there.text:
            return
        if segment is None:
            await self._resum(id, known[0], "a fact ended")
        else:
            await self._promote(id)

    def visit(self, segments: Mapping[str, bool], exchange: str) -> None:
        """A recall showed something of those segments; True where the reply drew on it. One visit each."""
        heat = self._policy.heat
        for id, used in segments.items():
            if id in self._segments:
                weight = heat.worth(used=used)
                now = self._heats[id] = touch(self._heats[id], weight, self._at, heat)
                self.made.append(
                    SegmentVisited(segment=id, exchange=exchange, weight=weight, used=used, heat=now)
                )

    async def end(self) -> list[Payload]:
        """Close what has rested, promote what is hot, evict what there is no room for; all decisions."""
        for closed in over(self._segments.values(), self._at, self._policy.segments):
            self._set(closed)
            if closed.promoted < closed.pages:
                await self._promote(closed.id)
        for id in list(self._segments):
            await self._promote_if_hot(id)
        for id, reason in self._due:
            await self._evict(id, reason)
        gone = leaving(
            list(self._segments.values()), self._heats, self._now, self._policy.limits, self._policy.heat
        )
        for one in gone:
            await self._evict(one.segment.id, one.reason)
        if gone or self._due:
            await self._fade()
        states = (
            SegmentChanged(segment=self._segments[id], heat=self._heats[id])
            for id in sorted(self._changed & self._segments.keys())
        )
        return [*self.made, *states, *self._after]

    # -- how -------------------------------------------------------------------------------------------

    @property
    def _user(self) -> tuple[str, str]:
        return self._scope.tenant, self._scope.user

    def _set(self, segment: Segment) -> None:
        self._segments[segment.id] = segment
        self._changed.add(segment.id)

    def _leaving(self, waiting: Sequence[WaitingPage]) -> list[Leaving]:
        if len(waiting) == _WAITING:
            return [Leaving(page.id, "pages") for page in waiting[:_AT_ONCE]]
        pages = [
            Waiting(page.id, page.session, page.at, page.size, _IMPORTANT if page.facts else _USUAL)
            for page in waiting
        ]
        return overflow(pages, self._now, self._policy.short_term)[:_AT_ONCE]

    def _move(self, page: Page, waiting: WaitingPage, vector: Embedding, reason: str) -> None:
        self.gone.append(Gone(page, waiting.facts > 0))
        shape = shape_of(page, vector)
        found = place(shape, list(self._segments.values()), self._policy.segments)
        if found.segment is None:
            segment = begun(begun_by(page.id), self._scope.owner, shape)
        else:
            segment = joined(found.segment, shape)
        self._set(segment)
        self._heats[segment.id] = self._warmed(self._heats.get(segment.id, Heat()), waiting)
        self.made.append(
            PageSegmented(page=page.id, segment=segment.id, reason=reason, affinity=found.affinity)
        )

    async def _of_pages(self, id: str) -> Heat:
        heat = Heat()
        for page in await self._mid_term.members(*self._user, id):
            heat = self._warmed(heat, page)
        return heat

    async def _add_visits(self, heats: dict[str, Heat]) -> None:
        policy = self._policy.heat
        tenant, user = self._user
        kinds = ("segment.visited",)
        async for events in batches(self._log, tenant=tenant, user=user, subjects=list(heats), kinds=kinds):
            for event in events:
                if isinstance(event.payload, SegmentVisited):
                    id, worth = event.payload.segment, policy.worth(used=event.payload.used)
                    heats[id] = touch(heats[id], worth, event.occurred_at, policy)

    def _warmed(self, heat: Heat, page: WaitingPage) -> Heat:
        said, policy = min(page.at, self._at), self._policy.heat
        return with_page(heat, said, drawn=page.drawn, seen=page.seen, visited=page.visited, policy=policy)

    async def _remake(self, id: str, *, without: str = "", episode: str = "") -> None:
        """The segment from the pages that it has left, with the heat that it had; gone without any."""
        old = self._segments.pop(id, None)
        episode = old.episode if old else episode
        self._drop_episode(episode)
        pages = [page for page in await self._mid_term.pages_in(*self._user, id) if page.id != without]
        vectors = await self._long_term.vectors(self._scope.owner, [page.id for page in pages])
        if pages and not vectors:
            raise StoreUnavailable(
                "long-term memory", f"it has no vector of the {len(pages)} pages of a segment"
            )
        shapes = [shape_of(page, vectors[page.id]) for page in pages if page.id in vectors]
        if not shapes:
            self.made.append(SegmentEvicted(segment=id, reason="empty", warmth=0.0))
            self._heats.pop(id, None)
            return
        segment = begun(id, self._scope.owner, shapes[0])
        for shape in shapes[1:]:
            segment = joined(segment, shape)
        self._set(structs.replace(segment, pinned=old.pinned if old else False))

    async def _resum(self, id: str, lost: KnownSegment, reason: str) -> None:
        """An evicted segment's episode by what its pages say now."""
        self._drop_episode(lost.episode)
        pages = await self._mid_term.pages_in(*self._user, id)
        if pages:
            rest = self._rest(id, pages)
            rest = structs.replace(rest, episode=self._add_episode(rest, pages, live=False))
            self._after.append(SegmentChanged(segment=rest, heat=lost.heat))
        self._after.append(SegmentEvicted(segment=id, reason=reason, warmth=0.0))

    def _rest(self, id: str, pages: Sequence[Page]) -> Segment:
        """What is known of an evicted segment that has those pages."""
        words = keywords("\n".join(record_text(page) for page in pages))
        return Segment(
            id=id,
            owner=self._scope.owner,
            pages=len(pages),
            size=0,
            centroid=b"",
            keywords=dict.fromkeys(words, 1),
            opened_at=pages[0].occurred_at,
            last_at=pages[-1].occurred_at,
        )

    def _current(self, pages: Sequence[Page]) -> list[Page]:
        """The pages without what holds no more."""
        return [as_of(page, self._now, past=False, timezone=page.timezone) for page in pages]

    async def _promote_if_hot(self, id: str) -> None:
        segment, policy = self._segments[id], self._policy.heat
        gained = segment.pages - segment.promoted
        if gained < (self._policy.segments.gain if segment.promoted else 1):
            return
        heat = warmth(self._heats.get(id, Heat()), self._at, policy)
        if heat >= policy.promotion:
            self.made.append(SegmentPromoted(segment=id, pages=segment.pages, warmth=round(heat, 4)))
            await self._promote(id)

    async def _promote(self, id: str, *, live: bool = True) -> None:
        """Sum up what the segment has gained; the episode of before gives way."""
        segment = self._segments[id]
        pages = await self._all_pages(id)
        self._drop_episode(segment.episode)
        episode = self._add_episode(segment, pages, live=live)
        self._set(structs.replace(segment, promoted=segment.pages, episode=episode))

    async def _all_pages(self, id: str) -> list[Page]:
        """The segment's pages, those that this very event moves in among them."""
        pages = {page.id: page for page in await self._mid_term.pages_in(*self._user, id)}
        moved = [one.page for one in self.made if isinstance(one, PageSegmented) and one.segment == id]
        found = await self._log.records_named(*self._user, moved)
        pages |= {page.id: page for page in found.values() if isinstance(page, Page)}
        return sorted(pages.values(), key=lambda page: (page.occurred_at, page.id))

    def _drop_episode(self, id: str) -> None:
        """An episode that another one replaces: none of it stays in the log."""
        if id:
            self._after.append(MemoryForgotten(memory=id, reason="summed up anew"))

    def _add_episode(self, segment: Segment, pages: Sequence[Page], *, live: bool) -> str:
        """The memory that sums the segment up; its id, empty where there is nothing to say."""
        told = episode_of(self._current(pages))
        if not told.text:
            return ""
        memory = Memory(
            id=uuid5(_NAMESPACE, f"{segment.id}/{self._cause}/{live}").hex,
            scope=structs.replace(self._scope, session=""),
            generation=self._generation,
            type="episode",
            text=told.text,
            metadata={"segment": segment.id, "live": live},
            confidence=1.0,
            importance=told.importance,
            occurred_at=pages[-1].occurred_at,
            created_at=self._now,
            updated_at=self._now,
            valid_from=pages[0].occurred_at,
            source="extraction",
        )
        self._after.append(MemoryAdded(memory=memory))
        return memory.id

    async def _evict(self, id: str, reason: str) -> None:
        """The segment and its pages leave, and their episode stays."""
        await self._promote(id, live=False)
        heat = warmth(self._heats[id], self._now, self._policy.heat)
        last = SegmentChanged(segment=self._segments.pop(id), heat=self._heats.pop(id))
        self._after += [last, SegmentEvicted(segment=id, reason=reason, warmth=round(heat, 4))]

    async def _fade(self) -> None:
        """Let episodes of evicted segments go that there is no room for."""
        where = MemoryFilter(types=("episode",), metadata={"live": False})
        known = await self._log.memories(*self._user, where=where, after=None, limit=_EPISODES)
        new = [one.memory for one in self._after if isinstance(one, MemoryAdded)]
        out = {one.memory for one in self._after if isinstance(one, MemoryForgotten)}
        own = [
            one
            for one in (*known, *new)
            if one.id not in out
            and one.metadata.get("live") is False
            and one.scope.own_agent == self._scope.own_agent
        ]
        heats = {one.segment.id: one.heat for one in self._after if isinstance(one, SegmentChanged)}
        of = {one.id: str(one.metadata.get("segment")) for one in own}
        before = await self._mid_term.segments_named(*self._user, list({*of.values()} - heats.keys()))
        heats |= {one.id: one.heat for one in before}
        left = (
            Left(
                id=one.id,
                importance=one.importance,
                size=len(one.text.encode()),
                heat=heats.get(of[one.id], Heat()),
                pinned=one.pinned,
            )
            for one in own
        )
        for faded in fading(left, self._policy.limits, self._policy.heat):
            self._after.append(MemoryForgotten(memory=faded.id, reason=f"no room: {faded.reason}"))


def shape_of(page: Page, vector: Embedding) -> PageShape:
    """What of a page its segment depends on."""
    text = record_text(as_stored(page))
    return PageShape(page.id, page.scope.session, page.occurred_at, text_size(page), vector, keywords(text))
