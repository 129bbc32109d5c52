"""The story of a memory, an exchange or a segment: what happened to it, as the log tells. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final, Literal, TypeAlias

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
    RecallDrawn,
    SegmentEvicted,
    SegmentPromoted,
    SegmentVisited,
)
from hearth.memory.tiers.segments import begun_by
from hearth.memory.types import Evidence, Memory, Page

What: TypeAlias = Literal[
    "said",
    "read",
    "added",
    "confirmed",
    "ended",
    "replaced",
    "corrected",
    "holds again",
    "changed",
    "withdrawn",
    "returned",
    "forgotten",
    "left its branch",
    "hidden",
    "moved",
    "left its segment",
    "visited",
    "promoted",
    "evicted",
    "outdated",
    "drew",
    "summed up",
]
"""What can happen."""

Subject: TypeAlias = Literal["memory", "exchange", "segment"]

_FIRST: Final = {"said": 0, "read": 1}
"""Of what has the same moment: the worker's parts do not wait for each other."""
_QUOTED: Final = 300
"""Characters of an exchange's words."""
_BY_HAND: Final = frozenset(
    ("text", "value", "type", "tags", "metadata", "importance", "pinned", "valid_from", "expires_at")
)
"""Fields that are the statement's own, or set by hand."""
_MOVES: Final[dict[str, What]] = {"active": "returned", "hidden": "hidden"}
"""What a page's new state is called; any other one says that it left its branch."""
_PLACES: Final = {
    "pages": "short-term memory had more pages than it may",
    "session pages": "its session had more pages than short-term memory may have",
    "tokens": "short-term memory had more tokens than it may",
    "session tokens": "its session had more tokens than short-term memory may have",
    "age": "it was too old for short-term memory",
}
"""Why a page leaves short-term memory."""
_LIMITS: Final = {
    "segments": "there were more segments than may be, and it was the coldest",
    "pages": "there were more pages than may be, and it was the coldest",
    "bytes": "there was more text than may be, and it was the coldest",
    "age": "nothing had touched it for too long",
    "session segments": "its session had more segments than one may have, and it was the coldest",
    "a fact ended": "something that its episode told holds no more, and its episode was made anew",
    "empty": "it has no page any more",
    "lost a page": "a page of it was forgotten after it had left, and its episode was made anew",
}
"""Why a segment is evicted."""


class Chapter(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that happened."""

    at: datetime
    what: What
    text: str
    """In one sentence."""
    of: str = ""
    """The other record in it: an exchange, a memory or a segment."""
    quote: str = ""
    """Words that were said, or that the other memory has."""
    event: str = ""
    """Id of the event that tells it; of several the last one."""


class Story(msgspec.Struct, frozen=True, kw_only=True):
    """What the log tells of one record, oldest first."""

    id: str
    subject: Subject
    chapters: tuple[Chapter, ...]
    shown: int = 0
    """Exchanges in whose prompts it stood, up to a bound."""
    drawn: int = 0
    """Of these, those whose replies drew on it."""


def subject_in(events: Iterable[Event]) -> Subject:
    """What events that are about one record are about."""
    kinds = {event.kind.partition(".")[0] for event in events}
    return "memory" if "memory" in kinds else "segment" if "segment" in kinds else "exchange"


def chapters(id: str, events: Sequence[Event]) -> list[Chapter]:
    """The record's story, oldest first. `events`: its own, and those of the records around it."""
    ordered = sorted(events, key=lambda event: (event.occurred_at, event.seq))
    told = _Teller(id, ordered)
    found = [chapter for event in ordered for chapter in told.tell(event)]
    return _visits_together(sorted(found, key=lambda one: (one.at, _FIRST.get(one.what, len(_FIRST)))))


class _Teller:
    """Tells event by event what it means for one record."""

    def __init__(self, id: str, events: Sequence[Event]) -> None:
        self._id = id
        self._memory: Memory | None = None
        self._gone = False
        self._said = False
        self._marks: frozenset[tuple[str, str]] = frozenset()
        self._texts = {
            event.payload.memory.id: event.payload.memory.text
            for event in events
            if isinstance(event.payload, MemoryAdded | MemoryChanged)
        }

    def tell(self, event: Event) -> Iterator[Chapter]:
        """The chapters of one event; most have one."""
        match event.payload:
            case MemoryAdded(memory=memory) | MemoryChanged(memory=memory):
                yield from self._of_memory(event, memory)
            case MemoryForgotten(memory=id, reason=reason) | PageForgotten(page=id, reason=reason):
                if id == self._id:
                    yield _chapter(event, "forgotten", f"forgotten: {reason}")
            case MemoryWithdrawn(memory=id):
                if id == self._id:
                    self._gone = True
                    yield _chapter(
                        event, "withdrawn", "what said it left the branch that is followed, or its user asked"
                    )
            case PageClosed(page=page):
                if page.id == self._id and not self._said:
                    self._said = True
                    yield _said(event, page)
            case RecallDrawn(exchange=exchange, items=items):
                if exchange == self._id:
                    used = sum(item.used for item in items)
                    yield _chapter(
                        event, "drew", f"its reply drew on {used} of {len(items)} recalled records"
                    )
            case _:
                yield from self._of_tiers(event)

    def _of_tiers(self, event: Event) -> Iterator[Chapter]:
        match event.payload:
            case PageMoved(page=page, state=state, reason=reason):
                what: What = _MOVES.get(state, "left its branch")
                yield _chapter(event, what, reason, of=page)
            case PageOutdated():
                yield from self._outdated(event, event.payload)
            case PageSegmented(page=page, segment=None, reason=reason):
                yield _chapter(event, "left its segment", reason, of=page)
            case PageSegmented():
                yield self._moved(event, event.payload)
            case SegmentVisited(segment=segment, exchange=exchange, weight=weight):
                of = exchange if segment == self._id else segment
                yield _chapter(event, "visited", f"a recall warmed the segment by {weight:g}", of=of)
            case SegmentPromoted(segment=segment, warmth=warmth, pages=pages):
                text = f"the segment was hot ({warmth:.1f}) and was summed up with its {_pages(pages)}"
                yield _chapter(event, "promoted", text, of=segment)
            case SegmentEvicted(segment=segment, warmth=warmth, reason=reason):
                why = _LIMITS.get(reason, reason)
                yield _chapter(event, "evicted", f"the segment left ({warmth:.1f}): {why}", of=segment)
            case _:
                pass

    def _moved(self, event: Event, moved: PageSegmented) -> Chapter:
        segment = moved.segment or ""
        if segment == begun_by(moved.page):
            how = f"began a segment (affinity {moved.affinity:.2f} with the nearest)"
        else:
            how = f"joined a segment (affinity {moved.affinity:.2f})"
        who = "" if self._id in (moved.page, segment) else "what said it "
        why = _PLACES.get(moved.reason, moved.reason)
        of = moved.page if segment == self._id else segment
        return _chapter(event, "moved", f"{who}{how}: {why}", of=of)

    def _outdated(self, event: Event, told: PageOutdated) -> Iterator[Chapter]:
        """What is marked now and was not before; a page's marks come whole each time."""
        for one in told.outdated:
            mark = (one.fact, one.quote)
            if mark in self._marks or self._id not in (told.page, one.fact):
                continue
            of = one.fact if told.page == self._id else told.page
            until = f"since {one.until:%Y-%m-%d}" if one.until else "since it was forgotten"
            yield _chapter(event, "outdated", f"says what holds no more, {until}", of=of, quote=one.quote)
        if told.page == self._id:
            self._marks = frozenset((one.fact, one.quote) for one in told.outdated)
        else:
            self._marks |= {(one.fact, one.quote) for one in told.outdated}

    # -- memories --------------------------------------------------------------------------------------

    def _of_memory(self, event: Event, memory: Memory) -> Iterator[Chapter]:
        """All of the record's own; of another one that it was read from it, or sums it up."""
        if memory.id != self._id:
            if isinstance(event.payload, MemoryAdded):
                yield from self._beside(event, memory)
            return
        before, self._memory = self._memory, memory
        if before is None:
            yield from _begun(event, memory)
        elif self._gone:
            yield _chapter(event, "returned", "what said it is on the branch that is followed again")
        else:
            yield from self._changed(event, before, memory)
        self._gone = False

    def _beside(self, event: Event, memory: Memory) -> Iterator[Chapter]:
        quote = next((one.quote for one in memory.evidence if one.id == self._id), None)
        if quote is not None:
            yield _chapter(
                event, "read", f"read as a {memory.type}: {memory.text}", of=memory.id, quote=quote
            )
        elif memory.metadata.get("segment") == self._id:
            yield _chapter(event, "summed up", "what it tells became an episode", memory.id, memory.text)

    def _changed(self, event: Event, before: Memory, after: Memory) -> Iterator[Chapter]:
        known = {one.id for one in before.evidence}
        for one in after.evidence:
            if one.id not in known:
                sure = f"said again, which makes it {after.confidence:.0%} sure"
                yield _evidence(event, one, "confirmed", sure)
        by_hand = [name for name in _BY_HAND if getattr(before, name) != getattr(after, name)]
        if by_hand and after.source == "api":
            yield _chapter(event, "changed", f"changed by hand: {', '.join(sorted(by_hand))}")
        if (before.valid_to, before.successor) == (after.valid_to, after.successor):
            return
        if after.valid_to is None:
            yield _chapter(event, "holds again", "nothing that was said ends it any more")
        elif after.successor:
            yield self._replaced(event, after, after.valid_to)
        else:
            text = f"ended by what was said, on {after.valid_to:%Y-%m-%d}"
            by_words = after.ended_by != before.ended_by and after.ended_by
            yield _chapter(
                event, "ended", text if by_words else f"ended by hand, on {after.valid_to:%Y-%m-%d}"
            )

    def _replaced(self, event: Event, after: Memory, until: datetime) -> Chapter:
        successor = after.successor or ""
        quote = self._texts.get(successor, "")
        if until <= (after.valid_from or after.occurred_at):
            return _chapter(event, "corrected", "set right: it never was so", successor, quote)
        return _chapter(event, "replaced", f"replaced, on {until:%Y-%m-%d}", successor, quote)


def _begun(event: Event, memory: Memory) -> Iterator[Chapter]:
    for one in memory.evidence:
        yield _evidence(event, one, "said", f"said by the {one.role}")
    if memory.source == "api":
        yield _chapter(event, "added", f"added by hand as a {memory.type}: {memory.text}")
    elif memory.type == "episode":
        of = str(memory.metadata.get("segment") or "")
        yield _chapter(event, "summed up", f"sums a segment up: {memory.text}", of)
    else:
        how = "from a correction" if memory.source == "correction" else "from the user's words"
        sure = f"{memory.confidence:.0%} sure"
        yield _chapter(event, "read", f"read {how} as a {memory.type}, {sure}: {memory.text}")


def _said(event: Event, page: Page) -> Chapter:
    text = " ".join(page.user_text.split())
    quote = text if len(text) <= _QUOTED else text[:_QUOTED] + "…"
    where = f" in session {page.scope.session}" if page.scope.session else ""
    return Chapter(at=page.occurred_at, what="said", text=f"said{where}", quote=quote, event=event.id)


def _evidence(event: Event, one: Evidence, what: What, text: str) -> Chapter:
    return Chapter(at=one.at, what=what, text=text, of=one.id, quote=one.quote, event=event.id)


def _chapter(event: Event, what: What, text: str, of: str = "", quote: str = "") -> Chapter:
    return Chapter(at=event.occurred_at, what=what, text=text, of=of, quote=quote, event=event.id)


def _visits_together(found: Sequence[Chapter]) -> list[Chapter]:
    """Visits with nothing between them as one chapter, at the last one's time."""
    told: list[Chapter] = []
    run: list[Chapter] = []
    for chapter in found:
        run = [*run, chapter] if chapter.what == "visited" else []
        if len(run) > 1:
            since = f"{run[0].at:%Y-%m-%d}"
            told[-1] = msgspec.structs.replace(
                chapter, text=f"{len(run)} recalls warmed the segment, since {since}"
            )
        else:
            told.append(chapter)
    return told


def _pages(count: int) -> str:
    return f"{count} page{'' if count == 1 else 's'}"
