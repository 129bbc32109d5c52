"""What a user's request to forget means, among what is known of them, and what is decided because of it.

What is meant is out of recall at once and can be brought back for a day. Only what can be told for sure is
forgotten: where the words fit too much, nothing is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

import msgspec

from hearth.memory.events.kinds import (
    ForgetAsked,
    ForgetDone,
    ForgetUndone,
    MemoryAdded,
    MemoryChanged,
    MemoryForgotten,
    MemoryWithdrawn,
    PageForgotten,
    PageMoved,
    PageOutdated,
    Payload,
)
from hearth.memory.extract.forgetting import ForgetRequest
from hearth.memory.outdating import unsaid_pages
from hearth.memory.ports import EventLog, Extractor, MemoryFilter
from hearth.memory.reading import latest_memories
from hearth.memory.tiers.forgetting import meant, said_about, topic_stems
from hearth.memory.types import (
    AskedOutcome,
    CandidateFact,
    Forgetting,
    Memory,
    Outdated,
    Page,
    PageState,
)

UNDOABLE: Final = timedelta(days=1)
"""How long a request to forget can be taken back."""
REASON: Final = "its user asked to forget it"
_PAGES: Final = 400
"""Latest exchanges looked through for the words that are to be forgotten."""
_FACTS: Final = 2_000
"""Latest facts looked through."""
_ROWS: Final = 200
_MOST: Final = 12
"""Facts, or exchanges, that one request can mean: of more nobody could say what was meant."""


class _Meant(NamedTuple):
    """What is to be forgotten."""

    outcome: AskedOutcome
    facts: Sequence[Memory] = ()
    marks: Sequence[tuple[Page, Sequence[Outdated]]] = ()
    pages: Sequence[Page] = ()


async def decide(
    log: EventLog, extractor: Extractor, page: Page, request: ForgetRequest, *, now: datetime
) -> list[Payload]:
    """The decisions because of a request that `page` makes. Raises LogUnavailable."""
    found = await _meant(log, extractor, page, request)
    if found.outcome != "forgotten":
        return [ForgetAsked(exchange=page.id, understood=request.kind, outcome=found.outcome)]
    pages = {one.id: one for one in (*found.pages, *([page] if _is_whole(request) else []))}
    facts = {fact.id: fact for fact in [*found.facts, *await _resting(log, page, pages)]}
    marked = await _marked(log, page, request, list(facts.values()), found.marks, set(pages))
    hidden: dict[str, PageState] = {one.id: one.state for one in pages.values()}
    return [
        *(MemoryWithdrawn(memory=id) for id in facts),
        *marked,
        *(PageMoved(page=id, state="hidden", reason=REASON) for id in hidden),
        ForgetAsked(
            exchange=page.id,
            understood=request.kind,
            outcome="forgotten",
            about=tuple(dict.fromkeys(fact.attribute for fact in facts.values() if fact.attribute)),
            memories=tuple(facts),
            pages=hidden,
            marked=tuple(one.page for one in marked),
            until=now + UNDOABLE,
        ),
    ]


async def undo(log: EventLog, asked: Forgetting) -> list[Payload]:
    """What brings back what the request took out of recall. The request itself stays out, unless its own
    message was what it was about. Raises LogUnavailable.
    """
    tenant, user = asked.scope.tenant, asked.scope.user
    ours = {*asked.memories, asked.exchange}
    itself = (asked.exchange, asked.exchange)
    unmarked: list[Payload] = []
    for id in asked.marked:
        page = await log.record(tenant, user, id)
        if isinstance(page, Page):
            kept = tuple(
                one
                for one in page.outdated
                if one.fact not in ours or one.until is not None or (id, one.fact) == itself
            )
            unmarked.append(PageOutdated(page=id, outdated=kept))
    return [
        ForgetUndone(exchange=asked.exchange),
        *unmarked,
        *(
            PageMoved(page=id, state=state, reason="undone")
            for id, state in asked.pages.items()
            if id != asked.exchange or asked.understood == "this"
        ),
        *[MemoryAdded(memory=memory) for memory in await _as_they_were(log, asked)],
    ]


def for_good(asked: Forgetting) -> list[Payload]:
    """What carries the request out once it can't be undone: the same as forgetting each by hand."""
    return [
        ForgetDone(exchange=asked.exchange),
        *(MemoryForgotten(memory=id, reason=REASON) for id in asked.memories),
        *(PageForgotten(page=id, reason=REASON) for id in asked.pages),
    ]


async def _as_they_were(log: EventLog, asked: Forgetting) -> list[Memory]:
    """The memories as they stood before they were withdrawn."""
    if not asked.memories:
        return []
    events = await log.read(
        tenant=asked.scope.tenant,
        user=asked.scope.user,
        kinds=("memory.added", "memory.changed"),
        subjects=asked.memories,
        limit=_ROWS * _MOST,
    )
    latest = {
        event.payload.memory.id: event.payload.memory
        for event in events
        if isinstance(event.payload, MemoryAdded | MemoryChanged)
    }
    return list(latest.values())


def _is_whole(request: ForgetRequest) -> bool:
    """Whether the message that asks has nothing else in it that is worth keeping."""
    return request.alone or request.kind == "this"


async def _meant(log: EventLog, extractor: Extractor, page: Page, request: ForgetRequest) -> _Meant:
    match request.kind:
        case "all":
            return _Meant("too much")
        case "this":
            return _Meant("forgotten")
        case "before":
            before = await log.previous_page(page)
            live = before is not None and before.state in ("active", "evicted")
            return _Meant("forgotten", pages=[before]) if before and live else _Meant("nothing found")
        case _:
            return await _told(log, extractor, page, request)


async def _told(log: EventLog, extractor: Extractor, page: Page, request: ForgetRequest) -> _Meant:
    """The facts and the words that a statement or a topic means."""
    stems = topic_stems(request.about)
    said: Sequence[CandidateFact] = ()
    if request.kind == "statement":
        about = msgspec.structs.replace(page, user_text=f"{request.about}.", outdated=())
        said = await asyncio.to_thread(extractor.extract, about)
    facts = meant(request.kind, said, stems, await _facts(log, page))
    marks = [
        (one, quotes)
        for one in await log.pages(page.scope.tenant, page.scope.user, limit=_PAGES)
        if one.id != page.id and one.scope.owner == page.scope.owner
        if (quotes := said_about(one, stems, request=page.id))
    ]
    if len(facts) > _MOST or len(marks) > _MOST:
        return _Meant("ambiguous")
    return _Meant("forgotten" if facts or marks else "nothing found", facts=facts, marks=marks)


async def _facts(log: EventLog, page: Page) -> list[Memory]:
    """The user's facts that the page's agent shares, the latest first, closed ones among them."""
    where, scope = MemoryFilter(types=("fact", "persona"), include_superseded=True), page.scope
    return await latest_memories(
        log,
        scope.tenant,
        scope.user,
        where,
        most=_FACTS,
        wanted=lambda fact: fact.scope.owner == scope.owner,
    )


async def _resting(log: EventLog, page: Page, pages: Iterable[str]) -> list[Memory]:
    """Facts that rest on those pages alone."""
    gone = set(pages)
    user = (page.scope.tenant, page.scope.user)
    found = [fact for id in gone for fact in await log.facts_of(*user, id)]
    return [
        fact
        for fact in found
        if fact.source != "api" and fact.evidence and {one.id for one in fact.evidence} <= gone
    ]


async def _marked(
    log: EventLog,
    page: Page,
    request: ForgetRequest,
    facts: Sequence[Memory],
    quoted: Sequence[tuple[Page, Sequence[Outdated]]],
    hidden: set[str],
) -> list[PageOutdated]:
    """All new marks, a page's own together; of pages that are hidden whole none."""
    marks: dict[str, dict[Outdated, None]] = {}
    for told in await unsaid_pages(log, facts):
        marks.setdefault(told.page, {}).update(dict.fromkeys(told.outdated))
    for one, quotes in quoted:
        marks.setdefault(one.id, {}).update(dict.fromkeys([*one.outdated, *quotes]))
    if page.id not in hidden:
        quote = page.user_text[request.start : request.end]
        own = Outdated(role="user", quote=quote, fact=page.id, until=None)
        marks.setdefault(page.id, {}).update(dict.fromkeys([*page.outdated, own]))
    return [PageOutdated(page=id, outdated=tuple(made)) for id, made in marks.items() if id not in hidden]
