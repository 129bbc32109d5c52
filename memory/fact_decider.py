"""The fact decider: reads each page's statements and decides what they do to the facts that are known."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import reduce
from typing import Final

from hearth.memory import metrics
from hearth.memory.events.kinds import (
    Event,
    PageClosed,
    PageForgotten,
    PageMoved,
    PageRead,
    Payload,
    is_decided,
)
from hearth.memory.extract.agreements import agreements
from hearth.memory.extract.attributes import AGENT
from hearth.memory.extract.confirming import confirmation, confirmed
from hearth.memory.extract.forgetting import forget_request
from hearth.memory.forgetting import decide
from hearth.memory.outdating import outdated_pages
from hearth.memory.policies import PolicyOf
from hearth.memory.ports import Clock, EventLog, Extractor
from hearth.memory.runner import all_different
from hearth.memory.tiers.facts import (
    Facts,
    Told,
    bearing_on,
    chain_of,
    chains_of,
    changes,
    fact_id,
    is_late,
    pages_of,
    retold,
    tell,
)
from hearth.memory.tiers.indexed import as_stored
from hearth.memory.tiers.pages import decisions
from hearth.memory.types import CandidateFact, Memory, Page, Role

_UNNAMED: Final = ("ends", "corrects")
"""Acts whose words may leave open which fact they are about."""


class FactDecider:
    """Turns what users say into facts, and takes back what was said on a branch that is left.

    A page that comes a second time, that left its branch or was forgotten loses its facts before they are
    read again, so that what stands is what the live pages say. What was made out of a page before stands in
    its `page.read`; while a model is yet to read it, it states nothing.
    """

    name = "facts"
    kinds = ("page.closed", "page.moved", "page.forgotten", "page.read")

    def __init__(self, *, log: EventLog, extractor: Extractor, clock: Clock, policy: PolicyOf) -> None:
        self._policy = policy
        self._log = log
        self._extractor = extractor
        self._clock = clock

    def together(self, events: Sequence[Event]) -> int:
        """How many of the head may be handled at once: one a user, whose facts rest on one another."""
        return all_different((event.tenant, event.user) for event in events)

    async def probe(self, event: Event) -> None:
        """There is no store to be down."""

    async def handle(self, events: Sequence[Event]) -> list[Event]:
        """Decide for each page that came, moved or went."""
        return [
            decision
            for event in events
            if not is_decided(event.payload)
            for decision in decisions(event, await self._decide(event))
        ]

    async def _decide(self, event: Event) -> list[Payload]:
        id = page_of(event)
        page = await self._live(event, id)
        asked = [] if page is None else await self._asked(event, page)
        if any(isinstance(one, PageMoved) and one.page == id for one in asked):
            page = None
        if page is not None and await self._is_left(page):
            return [PageRead(page=id), *asked]
        return [*await self._of_facts(event, id, page), *asked]

    async def _asked(self, event: Event, page: Page) -> list[Payload]:
        """What the page's user asks to forget, once."""
        if not isinstance(event.payload, PageClosed):
            return []
        request = None if page.by_other else forget_request(as_stored(page).user_text)
        if request is None or await self._log.forgetting(event.tenant, event.user, page.id) is not None:
            return []
        return await decide(self._log, self._extractor, page, request, now=event.occurred_at)

    async def _of_facts(self, event: Event, id: str, page: Page | None) -> list[Payload]:
        said = [] if page is None else await self._read(page)
        touched = await self._log.facts_of(event.tenant, event.user, id)
        if not (said or touched):
            return []
        before = await self._known(event, page, said, touched)
        if touched or any(is_late(before, one) for one in said):
            after = await self._retold(event, before, [*touched, *(one.said for one in said)], said)
        else:
            after = reduce(tell, said, before)
        forgotten = isinstance(event.payload, PageForgotten)
        made = changes(before, after, now=self._clock.now(), forgotten=forgotten)
        for payload in made:
            metrics.FACTS.labels(str(payload.__struct_config__.tag)).inc()
        return [*made, *await outdated_pages(self._log, event.tenant, event.user, before, after)]

    async def _retold(
        self, event: Event, before: Facts, about: Sequence[Memory | CandidateFact], said: Sequence[Told]
    ) -> Facts:
        """The facts with the chains that something is about built anew from what their live pages say."""
        chains = {chain for one in about for chain in chains_of(one)}
        inside = {id: fact for id, fact in before.items() if chain_of(fact) in chains}
        told = list(said)
        for id in pages_of(inside.values()):
            page = await self._live(event, id) if id != page_of(event) else None
            told += [] if page is None else await self._read(page)
        concerned = [one for one in told if one.said.act in _UNNAMED or chain_of(one.said) in chains]
        outside = {id: fact for id, fact in before.items() if id not in inside}
        return {**outside, **retold(inside, concerned)}

    async def _is_left(self, page: Page) -> bool:
        """Whether a model is to read the page, and nobody has said so yet."""
        if self._way(page) != "model" or await reading_of(self._log, page) is not None:
            return False
        return not await self._log.facts_of(page.scope.tenant, page.scope.user, page.id)

    def _way(self, page: Page) -> str:
        return self._policy(page.scope.tenant, page.scope.agent, page.key).facts

    async def _read(self, page: Page) -> list[Told]:
        """What the page states: as it is written down, else by the rules, which had read it before."""
        if self._way(page) == "off":
            return []
        stored, read = as_stored(page), await reading_of(self._log, page)
        told = [one.said for one in read.said] if read is not None else await self._by_rules(stored)
        said = await asyncio.to_thread(agreements, told, stored)
        gone = [(mark.role, mark.quote) for mark in page.outdated if mark.until is None]
        kept = [one for one in said if not any(_is_in(one, *mark) for mark in gone)]
        return [Told(page, one, fact_id(page, one)) for one in kept]

    async def _by_rules(self, stored: Page) -> list[CandidateFact]:
        said = await asyncio.to_thread(self._extractor.extract, stored)
        if said or stored.by_other or confirmation(stored) is None:
            return said
        before = await self._log.previous_page(stored)
        return [] if before is None else await asyncio.to_thread(confirmed, stored, before.reply_text)

    async def _live(self, event: Event, id: str) -> Page | None:
        """The page as it stands now, if its words are the user's and on the live branch, evicted or not."""
        found = await self._log.record(event.tenant, event.user, id)
        return found if isinstance(found, Page) and found.is_told else None

    async def _known(
        self, event: Event, page: Page | None, said: Sequence[Told], touched: Sequence[Memory]
    ) -> dict[str, Memory]:
        """All facts that what was said may bear on, of those that the page's agent shares."""
        found = list(touched)
        if page is not None and page.previous and any(one.said.act == "corrects" for one in said):
            found += await self._log.facts_of(event.tenant, event.user, page.previous)
        about = [(one.said.subject, one.said.attribute) for one in said]
        about += [(fact.subject, fact.attribute) for fact in found]
        about += [(subject, other) for subject, attribute in about for other in bearing_on(attribute)]
        found += await self._log.facts_about(event.tenant, event.user, about)
        owner = page.scope.owner if page is not None else next(fact.scope.owner for fact in touched)
        agent = page.scope.agent if page is not None else event.agent
        shared = (fact for fact in found if fact.subject != AGENT or fact.scope.agent == agent)
        return {fact.id: fact for fact in shared if fact.scope.owner == owner}


def page_of(event: Event) -> str:
    """The page that an event of the deciders' is about. Raises TypeError for one about no page."""
    match event.payload:
        case PageClosed(page=page):
            return page.id
        case PageMoved(page=id) | PageForgotten(page=id) | PageRead(page=id):
            return id
        case _:
            raise TypeError(f"{event.kind} is about no page")


async def reading_of(log: EventLog, page: Page) -> PageRead | None:
    """What was made out of the page last; None where nothing is written down. Raises LogUnavailable."""
    scope = page.scope
    found = await log.read(kinds=["page.read"], tenant=scope.tenant, user=scope.user, subjects=[page.id])
    told = [event.payload for event in found if isinstance(event.payload, PageRead)]
    return next((one for one in reversed(told) if one.by), told[-1] if told else None)


def _is_in(said: CandidateFact, role: Role, quote: str) -> bool:
    """Whether words that are forgotten say it."""
    return said.role == role and (said.quote in quote or quote in said.quote)
