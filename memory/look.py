"""Looking into memory: how full its tiers are, what became of one record, how warm a segment was.

Each answer takes a fixed number of calls to the log, however much there is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec

from hearth.memory.errors import NotFound
from hearth.memory.events.kinds import (
    Event,
    MemoryAdded,
    MemoryChanged,
    PageClosed,
    PageSegmented,
    RecallDrawn,
    StepCaptured,
    scope_of,
)
from hearth.memory.ports import EventLog, KnownSegment, MidTerm, Standing
from hearth.memory.story import Story, Subject, chapters, subject_in
from hearth.memory.tiers.heat import HeatPolicy, order, warmth
from hearth.memory.tiers.keywords import readable
from hearth.memory.tiers.limits import Limits
from hearth.memory.tiers.segments import Evicted, leaving
from hearth.memory.timeline import HeatPoint, heat_points
from hearth.memory.types import Page, Scope, Segment

MOST_EVENTS: Final = 5_000
"""Events read of one record and of those around it; beyond that the oldest are told."""
MOST_SHOWN: Final = 1_000
"""Exchanges looked at for whether a record was shown and drawn on: the latest."""
WORDS: Final = 5
"""Leading keywords of a segment."""
_READ_FOR_WORDS: Final = 3
"""Latest pages of a segment, whose words its keywords are shown in."""
_AROUND: Final = ("page.moved", "page.segmented", "page.outdated", "memory.added")
_OF_SEGMENT: Final = ("segment.visited", "segment.promoted", "segment.evicted")


class Topic(msgspec.Struct, frozen=True, kw_only=True):
    """A live segment as a person reads it."""

    segment: Segment
    heat: float
    """Now."""
    words: tuple[str, ...]
    """Its leading keywords."""


class Tiers(msgspec.Struct, frozen=True, kw_only=True):
    """All tiers of one owner."""

    standing: Standing
    topics: tuple[Topic, ...]
    """The hottest segments, hottest first."""


class HeatLine(msgspec.Struct, frozen=True, kw_only=True):
    """The heat of a segment over time."""

    id: str
    live: bool
    words: tuple[str, ...]
    points: tuple[HeatPoint, ...]
    whole: bool
    """False where there was more than is read."""


async def tiers(
    mid_term: MidTerm, scope: Scope, policy: HeatPolicy, now: datetime, *, limit: int, days: float
) -> Tiers:
    """The scope's tiers, with so many segments and what moved in the last days. Raises LogUnavailable."""
    standing = await mid_term.standing(scope, since=now - timedelta(days=days))
    hottest = sorted(standing.heats, key=lambda id: (-order(standing.heats[id], policy), id))[:limit]
    known = await mid_term.segments_named(scope.tenant, scope.user, hottest)
    pages = await mid_term.latest_in(scope.tenant, scope.user, hottest, each=_READ_FOR_WORDS)
    segments = {one.id: one.segment for one in known if one.segment is not None}
    words = await asyncio.to_thread(_words, segments, pages)
    topics = (
        Topic(
            segment=segments[id],
            heat=round(warmth(standing.heats[id], now, policy), 4),
            words=words[id],
        )
        for id in hottest
        if id in segments
    )
    return Tiers(standing=standing, topics=tuple(topics))


async def evictions(
    mid_term: MidTerm, scope: Scope, limits: Limits, policy: HeatPolicy, now: datetime
) -> list[tuple[Evicted, float]]:
    """The segments that those limits would evict now, with their heat. Raises LogUnavailable."""
    known = await mid_term.segments(scope.tenant, scope.user, scope.owner)
    segments = [one.segment for one in known if one.segment is not None]
    heats = {one.id: one.heat for one in known}
    gone = leaving(segments, heats, now, limits, policy)
    return [(one, round(warmth(heats[one.segment.id], now, policy), 4)) for one in gone]


async def heat(
    log: EventLog, mid_term: MidTerm, scope: Scope, id: str, policy: HeatPolicy, now: datetime
) -> HeatLine:
    """How warm the segment was and is. Raises NotFound, LogUnavailable."""
    known = await _segment(mid_term, scope, id)
    pages = await mid_term.members(scope.tenant, scope.user, id)
    events = await _read(log, scope, [id, *(page.id for page in pages)], ("page.segmented", *_OF_SEGMENT))
    latest = await mid_term.latest_in(scope.tenant, scope.user, [id], each=_READ_FOR_WORDS)
    own = _of_segment(events, id)
    segments = {} if known.segment is None else {id: known.segment}
    words = await asyncio.to_thread(_words, segments, latest)
    live = known.state == "live"
    return HeatLine(
        id=id,
        live=live,
        words=words.get(id, ()),
        points=tuple(heat_points(own, pages, policy, now=(now, known.heat) if live else None)),
        whole=len(events) < MOST_EVENTS,
    )


async def story(log: EventLog, mid_term: MidTerm, scope: Scope, id: str) -> Story:
    """What became of a memory, an exchange or a segment. Raises NotFound, LogUnavailable.

    Of what was forgotten it tells that alone.
    """
    own = await _read(log, scope, [id])
    subject = subject_in(own)
    if not own or not await _reached(mid_term, scope, id, subject, own):
        raise NotFound
    around = await _around(log, mid_term, scope, id, subject, own)
    segments = _segments_of([*own, *around]) - {id}
    kinds = _OF_SEGMENT if subject == "exchange" else _OF_SEGMENT[1:]
    later = await _read(log, scope, sorted(segments), kinds)
    shown, drawn = await _shown(log, scope, id, subject)
    return Story(
        id=id,
        subject=subject,
        chapters=tuple(chapters(id, [*own, *around, *later])),
        shown=shown,
        drawn=drawn,
    )


async def _around(
    log: EventLog, mid_term: MidTerm, scope: Scope, id: str, subject: Subject, own: Sequence[Event]
) -> list[Event]:
    """Events of the records that have to do with it."""
    match subject:
        case "memory":
            beside = _pages_and_successors(own)
        case "exchange":
            facts = await log.facts_of(scope.tenant, scope.user, id)
            beside = {fact.id for fact in facts}
        case "segment":
            pages = await mid_term.members(scope.tenant, scope.user, id)
            (known,) = await mid_term.segments_named(scope.tenant, scope.user, [id])
            beside = {*(page.id for page in pages), known.episode} - {""}
    kinds = ("page.segmented", "memory.added") if subject == "segment" else _AROUND
    events = await _read(log, scope, sorted(beside - {id}), kinds)
    if subject != "segment":
        return events
    return _of_segment(events, id)


def _of_segment(events: Sequence[Event], id: str) -> list[Event]:
    """Without the moves of its pages to other segments."""
    return [e for e in events if not isinstance(e.payload, PageSegmented) or e.payload.segment == id]


def _pages_and_successors(own: Sequence[Event]) -> set[str]:
    named: set[str] = set()
    for event in own:
        if isinstance(event.payload, MemoryAdded | MemoryChanged):
            memory = event.payload.memory
            named |= {*(one.id for one in memory.evidence), memory.successor or ""}
    return named - {""}


def _segments_of(events: Sequence[Event]) -> set[str]:
    """Where each page went last."""
    places: dict[str, str | None] = {}
    for event in sorted(events, key=lambda event: event.seq):
        if isinstance(event.payload, PageSegmented):
            places[event.payload.page] = event.payload.segment
    return {segment for segment in places.values() if segment}


async def _shown(log: EventLog, scope: Scope, id: str, subject: Subject) -> tuple[int, int]:
    """In how many prompts the record stood, and how many replies drew on it."""
    if subject == "segment":
        return 0, 0
    exchanges = await log.shown_in(scope.tenant, scope.user, [id], limit=MOST_SHOWN)
    told = await _read(log, scope, exchanges, ("recall.drawn",))
    drew = {
        event.payload.exchange
        for event in told
        if isinstance(event.payload, RecallDrawn)
        and any(item.id == id and item.used for item in event.payload.items)
    }
    return len(exchanges), len(drew)


async def _read(
    log: EventLog, scope: Scope, subjects: Sequence[str], kinds: Sequence[str] = ()
) -> list[Event]:
    if not subjects:
        return []
    return await log.read(
        tenant=scope.tenant, user=scope.user, subjects=subjects, kinds=kinds, limit=MOST_EVENTS
    )


async def _reached(mid_term: MidTerm, scope: Scope, id: str, subject: Subject, own: Sequence[Event]) -> bool:
    """Whether the scope's agent may see the record: an isolated agent sees its own alone."""
    if not scope.isolated:
        return True
    if subject == "segment":
        return any(
            one.owner == scope.owner for one in await mid_term.segments_named(scope.tenant, scope.user, [id])
        )
    return any(_owner_of(event) == scope.owner for event in own)


def _owner_of(event: Event) -> str | None:
    """Whose the record is, where the event tells of it."""
    match event.payload:
        case MemoryAdded(memory=record) | MemoryChanged(memory=record) | PageClosed(page=record):
            return record.scope.owner
        case StepCaptured(step=step):
            return scope_of(event, step).owner
        case _:
            return None


async def _segment(mid_term: MidTerm, scope: Scope, id: str) -> KnownSegment:
    found = await mid_term.segments_named(scope.tenant, scope.user, [id])
    if not found or (scope.isolated and found[0].owner != scope.owner):
        raise NotFound
    return found[0]


def _words(
    segments: Mapping[str, Segment], pages: Mapping[str, Sequence[Page]]
) -> dict[str, tuple[str, ...]]:
    """The leading keywords of each segment, as its latest pages write them."""
    return {
        id: tuple(
            readable(
                list(segment.keywords)[:WORDS],
                (text for page in pages.get(id, ()) for text in (page.user_text, page.reply_text)),
            )
        )
        for id, segment in segments.items()
    }
