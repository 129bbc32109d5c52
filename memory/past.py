"""What memory knew at a moment: its records as the events that were recorded until then had made them.

What was forgotten since stays forgotten: its events have no content any more.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import msgspec

from hearth.memory.events.kinds import (
    Event,
    MemoryAdded,
    MemoryChanged,
    MemoryForgotten,
    MemoryWithdrawn,
    PageClosed,
    PageForgotten,
    PageMoved,
    PageOutdated,
    PageSegmented,
    Payload,
    SegmentEvicted,
)
from hearth.memory.filters import is_live, meets
from hearth.memory.ports import EventLog, MemoryFilter
from hearth.memory.reading import batches
from hearth.memory.types import Memory, Page, Record, Scope

KINDS = (
    "page.closed",
    "page.moved",
    "page.outdated",
    "page.segmented",
    "page.forgotten",
    "segment.evicted",
    "memory.added",
    "memory.changed",
    "memory.withdrawn",
    "memory.forgotten",
)
"""What records are made of."""
TOMBSTONES = ("memory.forgotten", "page.forgotten")
"""What tells that a record was forgotten."""
_ROWS = 1_000


class Past:
    """The records of one user at a moment, folded event by event."""

    def __init__(self, at: datetime) -> None:
        self.at = at
        self.pages: dict[str, Page] = {}
        self.memories: dict[str, Memory] = {}
        self.forgotten: set[str] = set()
        """Pages and memories that had been forgotten by then."""
        self._segments: dict[str, str | None] = {}

    def fold(self, events: Iterable[Event]) -> None:
        """Take in events of the user, in the order of the log; what was recorded later is passed over."""
        for event in events:
            if event.recorded_at is not None and event.recorded_at <= self.at:
                self._fold(event)

    def find(self, id: str) -> Record | None:
        """The record of that id, as it was."""
        return self.pages.get(id) or self.memories.get(id)

    def held(self, where: MemoryFilter) -> list[Memory]:
        """The memories that held then and meet the conditions, newest first."""
        then = msgspec.structs.replace(where, as_of=self.at)
        latest = list(self.memories.values())[::-1]
        found = [one for one in latest if is_live(one, self.at, then) and meets(one, where)]
        return sorted(found, key=lambda one: one.created_at, reverse=True)

    def recallable(self, scope: Scope) -> list[Record]:
        """What a recall of the scope could look among."""
        records: list[Record] = [*self.pages.values(), *self.memories.values()]
        mine = [one for one in records if one.scope.owner == scope.owner]
        everything = MemoryFilter(include_superseded=True)
        return [one for one in mine if is_live(one, self.at, everything)]

    def _fold(self, event: Event) -> None:
        match event.payload:
            case MemoryAdded(memory=memory) | MemoryChanged(memory=memory):
                self.memories[memory.id] = memory
            case MemoryWithdrawn(memory=id):
                self.memories.pop(id, None)
            case MemoryForgotten(memory=id) | PageForgotten(page=id):
                self.memories.pop(id, None)
                self.pages.pop(id, None)
                self.forgotten.add(id)
            case _:
                self._fold_page(event.payload)

    def _fold_page(self, payload: Payload) -> None:
        match payload:
            case PageClosed(page=page):
                self.pages[page.id] = page
            case PageMoved(page=id, state=state):
                self._set(id, state=state)
            case PageOutdated(page=id, outdated=outdated):
                self._set(id, outdated=outdated)
            case PageSegmented(page=id, segment=segment):
                self._segments[id] = segment
            case SegmentEvicted(segment=segment):
                for id in [id for id, of in self._segments.items() if of == segment]:
                    self._set(id, state="evicted")
            case _:
                pass

    def _set(self, id: str, **changes: object) -> None:
        if id in self.pages:
            self.pages[id] = msgspec.structs.replace(self.pages[id], **changes)


async def past(log: EventLog, tenant: str, user: str, *moments: datetime) -> list[Past]:
    """The user's records at each of the moments. Reads all events of the user's records; LogUnavailable."""
    found = [Past(at) for at in moments]
    async for events in batches(log, tenant=tenant, user=user, kinds=KINDS, rows=_ROWS):
        for one in found:
            one.fold(events)
    return found


async def tombstones(log: EventLog, tenant: str, user: str) -> list[Event]:
    """The user's records that were forgotten, one event each. Raises LogUnavailable."""
    read = batches(log, tenant=tenant, user=user, kinds=TOMBSTONES, rows=_ROWS)
    return [event async for events in read for event in events]


def whose(tombstone: Event) -> str:
    """The isolated agent whose own the forgotten record was; empty for what a user's agents share."""
    match tombstone.payload:
        case MemoryForgotten(own_agent=own) | PageForgotten(own_agent=own):
            return own
        case _:
            return ""


class Diff(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a user's memories between two moments. Of what was forgotten it has the number alone."""

    learned: tuple[Memory, ...]
    changed: tuple[tuple[Memory, Memory], ...]
    """Before and after."""
    ended: tuple[Memory, ...]
    """Held at the first moment, or from a later one on, and not at the second, as they were then."""
    withdrawn: tuple[Memory, ...]
    """What they were read from left the conversation's live branch."""
    filed: tuple[Page, ...]
    """Exchanges that became pages."""
    forgotten_memories: int
    forgotten_exchanges: int


_TOLD = ("text", "value", "type", "tags", "metadata", "importance", "pinned", "valid_from", "expires_at")
"""Fields whose difference is a change; evidence and confidence come with what is said again."""


def difference(before: Past, after: Past, forgotten: Iterable[Event]) -> Diff:
    """What is other at the second moment. `forgotten`: the user's tombstones."""
    ends = {id for id, one in after.memories.items() if not _holds(one, after.at)}
    learned = tuple(one for id, one in after.memories.items() if id not in before.memories)
    both = [(before.memories[id], one) for id, one in after.memories.items() if id in before.memories]
    gone = before.memories.keys() - after.memories.keys() - after.forgotten
    told = [e for e in forgotten if e.recorded_at is not None and before.at < e.recorded_at <= after.at]
    return Diff(
        learned=learned,
        changed=tuple((old, new) for old, new in both if _differs(old, new)),
        ended=(
            *(new for old, new in both if _holds(old, before.at) and new.id in ends),
            *(one for one in learned if one.id in ends and _ended_since(one, before.at)),
        ),
        withdrawn=tuple(one for id, one in before.memories.items() if id in gone),
        filed=tuple(page for id, page in after.pages.items() if id not in before.pages),
        forgotten_memories=sum(isinstance(event.payload, MemoryForgotten) for event in told),
        forgotten_exchanges=sum(isinstance(event.payload, PageForgotten) for event in told),
    )


def _differs(old: Memory, new: Memory) -> bool:
    return any(getattr(old, name) != getattr(new, name) for name in _TOLD)


def _ended_since(memory: Memory, moment: datetime) -> bool:
    return any(end is not None and end > moment for end in (memory.valid_to, memory.expires_at))


def _holds(memory: Memory, at: datetime) -> bool:
    return is_live(memory, at, MemoryFilter(as_of=at))
