"""Taking in: events from a file become the user's own, each at most once, and nothing that is gone here."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import IO, Final
from uuid import NAMESPACE_URL, uuid5

import msgspec
from msgspec.structs import replace

from hearth.memory.events.codec import micros
from hearth.memory.events.kinds import (
    Event,
    MemoryAdded,
    MemoryChanged,
    PageOutdated,
    PageSegmented,
    RecallJudged,
    SegmentChanged,
    SegmentEvicted,
    SegmentPinned,
    SegmentPromoted,
    SegmentVisited,
)
from hearth.memory.events.views import refused, subject_of
from hearth.memory.past import tombstones
from hearth.memory.portable.form import Limits, Reading
from hearth.memory.portable.parcel import Mask, addressed
from hearth.memory.ports import EventLog
from hearth.memory.types import Page, Scope

_NAMESPACE: Final = uuid5(NAMESPACE_URL, "hearth:carried")
BATCH_EVENTS: Final = 500
"""Events of one append: a short transaction."""
_BATCH_BYTES: Final = 8_000_000
_OF_SEGMENTS: Final = (SegmentChanged, SegmentVisited, SegmentPromoted, SegmentPinned, SegmentEvicted)


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the records of a file."""

    read: int = 0
    added: int = 0
    skipped: dict[str, int] = {}
    """By reason: `known`, `forgotten`, `erased` and `older`, and what a format's reader says."""

    def plus(self, other: Taken) -> Taken:
        """Both together."""
        skipped = Counter(self.skipped)
        skipped.update(other.skipped)
        return Taken(read=self.read + other.read, added=self.added + other.added, skipped=dict(skipped))


class Here(msgspec.Struct, frozen=True, kw_only=True):
    """What the log holds of the user that a file must respect."""

    scope: Scope
    generation: int
    erased: datetime | None
    """When the user was erased last, if that counts."""
    forgotten: dict[str, int]
    """When each exchange and memory was forgotten, in microseconds, by id."""
    empty: bool
    """True where there is nothing of the user yet."""


class _Spoiled(msgspec.Struct, frozen=True, kw_only=True):
    """What of a file tells of pages that are forgotten here."""

    segments: frozenset[str]
    episodes: frozenset[str]


async def here(log: EventLog, scope: Scope, *, anew: bool) -> Here:
    """What stands of the user. `anew`: what is from before an erasure counts too. Raises LogUnavailable."""
    read = partial(log.read, tenant=scope.tenant, user=scope.user)
    generation = await log.generation(scope.tenant, scope.user)
    erasures = [] if anew else await read(kinds=("user.erased",))
    gone = await tombstones(log, scope.tenant, scope.user)
    return Here(
        scope=scope,
        generation=generation,
        erased=max((event.occurred_at for event in erasures), default=None),
        forgotten={subject_of(event.payload): micros(event.occurred_at) for event in gone},
        empty=not await read(limit=1),
    )


class Taking:
    """Takes events in for one user."""

    def __init__(self, log: EventLog, known: Here, *, mask: Mask, appended: Callable[[], None]) -> None:
        self._log, self._here, self._mask, self._appended = log, known, mask, appended

    async def file(self, file: IO[bytes], *, limits: Limits, now: datetime) -> Taken:
        """Take an export in. It is read whole before anything is kept.

        A second import, or one that goes on where another was cut short, adds what is missing and nothing
        else. Raises BadInput that names the line, StaleGeneration, LogUnavailable.
        """
        spoiled = await asyncio.to_thread(self._survey, Reading(file, limits, now))
        events, taken = iter(Reading(file, limits, now)), Taken()
        while batch := await asyncio.to_thread(_batch, events):
            taken = taken.plus(await self._take(batch, spoiled))
        return taken

    async def events(self, events: Sequence[Event]) -> Taken:
        """Take in what was made of another program's file, for the user and generation here."""
        known = await self._log.present([event.id for event in events])
        reasons: Counter[str] = Counter()
        new: list[Event] = []
        for event in events:
            if event.id in known:
                reasons["known"] += 1
            elif self._is_forgotten(event):
                reasons["forgotten"] += 1
            else:
                new.append(event)
        await self._append(new)
        return Taken(read=len(events), added=len(new), skipped=dict(reasons))

    def _survey(self, reading: Reading) -> _Spoiled:
        """Read the whole file, and find what tells of pages that are forgotten here."""
        segments: set[str] = set()
        episodes: dict[str, str] = {}
        for _, event in reading:
            match event.payload:
                case PageSegmented(page=page, segment=str(segment)) if page in self._here.forgotten:
                    segments.add(segment)
                case SegmentChanged(segment=segment) if segment.episode:
                    episodes[segment.episode] = segment.id
                case _:
                    pass
        gone = frozenset(episode for episode, segment in episodes.items() if segment in segments)
        return _Spoiled(segments=frozenset(segments), episodes=gone)

    async def _take(self, batch: Sequence[Event], spoiled: _Spoiled) -> Taken:
        ids = await self._ids([event.id for event in batch])
        reasons: Counter[str] = Counter()
        new: list[Event] = []
        for event in batch:
            id = ids[event.id]
            if reason := "known" if id is None else await self._reason(event, spoiled):
                reasons[reason] += 1
                continue
            event = await self._fitted(replace(event, id=id))
            new.append(addressed(event, self._here.scope, self._here.generation, self._mask))
        await self._append(new)
        return Taken(read=len(batch), added=len(new), skipped=dict(reasons))

    async def _ids(self, ids: Sequence[str]) -> dict[str, str | None]:
        """The id that each event gets: None where it is here already; another one where somebody else's
        event, or one from before the user's erasure, has its own.
        """
        scope, present = self._here.scope, await self._log.present(ids)
        place = (scope.tenant, scope.user, self._here.generation)
        owner = f"{scope.person} {self._here.generation}"
        others = {id: uuid5(_NAMESPACE, f"{owner} {id}").hex for id, of in present.items() if of != place}
        known = await self._log.present(list(others.values()))
        chosen: dict[str, str | None] = {id: None if id in present else id for id in ids}
        return chosen | {id: None if other in known else other for id, other in others.items()}

    async def _reason(self, event: Event, spoiled: _Spoiled) -> str:
        """Why the event is left out; empty where it is not."""
        if self._here.erased is not None and event.occurred_at <= self._here.erased:
            return "erased"
        if self._is_forgotten(event) or _is_spoiled(event, spoiled):
            return "forgotten"
        if isinstance(event.payload, MemoryAdded | MemoryChanged) and not self._here.empty:
            memory = event.payload.memory
            own = await self._log.record(self._here.scope.tenant, self._here.scope.user, memory.id)
            if own is not None and not isinstance(own, Page) and own.updated_at > memory.updated_at:
                return "older"
        return ""

    def _is_forgotten(self, event: Event) -> bool:
        return refused(event, event.occurred_at, self._here.forgotten.get(subject_of(event.payload)))

    async def _fitted(self, event: Event) -> Event:
        """The event as it fits here: without words of what is forgotten."""
        match event.payload:
            case RecallJudged(note=note, ranking=ranking) if note and ranking is not None:
                if any(item.id in self._here.forgotten for item in ranking.items):
                    return replace(event, payload=replace(event.payload, note=""))
            case PageOutdated(page=id, outdated=outdated) if self._here.forgotten:
                page = await self._log.record(self._here.scope.tenant, self._here.scope.user, id)
                unsaid = [] if not isinstance(page, Page) else [o for o in page.outdated if o.until is None]
                kept = (*outdated, *(one for one in unsaid if one not in outdated))
                return replace(event, payload=replace(event.payload, outdated=kept))
            case _:
                pass
        return event

    async def _append(self, events: Sequence[Event]) -> None:
        for start in range(0, len(events), BATCH_EVENTS):
            await self._log.append(events[start : start + BATCH_EVENTS])
        if events:
            self._appended()


def _is_spoiled(event: Event, spoiled: _Spoiled) -> bool:
    match event.payload:
        case PageSegmented(segment=segment):
            return segment in spoiled.segments
        case MemoryAdded(memory=memory) | MemoryChanged(memory=memory):
            return memory.id in spoiled.episodes
        case _ if isinstance(event.payload, _OF_SEGMENTS):
            return subject_of(event.payload) in spoiled.segments
        case _:
            return False


def _batch(events: Iterator[tuple[int, Event]]) -> list[Event]:
    """The next events, as many as one append takes."""
    batch: list[Event] = []
    size = 0
    for bytes_, event in events:
        batch.append(event)
        size += bytes_
        if len(batch) == BATCH_EVENTS or size >= _BATCH_BYTES:
            break
    return batch
