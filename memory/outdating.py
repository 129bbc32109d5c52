"""Which pages must be marked, or marked no more, when facts end, hold again, or are forgotten."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Final

from msgspec import structs

from hearth.memory.events.kinds import PageOutdated
from hearth.memory.ports import EventLog
from hearth.memory.tiers.facts import Facts
from hearth.memory.tiers.outdated import marks, outdated
from hearth.memory.types import Memory, Page

_REPLIES: Final = 1_000
"""Replies that were given a fact, looked through for its value: the latest."""


async def outdated_pages(
    log: EventLog, tenant: str, user: str, before: Facts, after: Facts
) -> list[PageOutdated]:
    """New marks of the pages that say facts whose end is another one now. Raises LogUnavailable."""
    turned = [fact for id, fact in before.items() if id not in after or after[id].valid_to != fact.valid_to]
    turned += [fact for id, fact in after.items() if id not in before and fact.valid_to is not None]
    standing = [after[fact.id] for fact in turned if fact.id in after]
    gone = {fact.id for fact in turned} - {fact.id for fact in standing}
    return [
        PageOutdated(page=page.id, outdated=made)
        async for page in _pages(log, tenant, user, turned)
        if (made := outdated(_without(page, gone), standing)) != page.outdated
    ]


async def unsaid_pages(log: EventLog, memories: Sequence[Memory]) -> list[PageOutdated]:
    """New marks of the pages that say what forgotten memories of one user say. Raises LogUnavailable."""
    if not memories:
        return []
    scope = memories[0].scope
    return [
        PageOutdated(page=page.id, outdated=(*page.outdated, *made))
        async for page in _pages(log, scope.tenant, scope.user, memories)
        if (made := [mark for memory in memories for mark in marks(page, memory, until=None)])
    ]


async def _pages(log: EventLog, tenant: str, user: str, facts: Sequence[Memory]) -> AsyncIterator[Page]:
    """The live pages that the facts rest on, and those whose replies were given one of either."""
    told = [one.id for fact in facts for one in fact.evidence]
    shown = await log.shown_in(tenant, user, [*(fact.id for fact in facts), *told], limit=_REPLIES)
    for id in dict.fromkeys([*told, *shown]):
        page = await log.record(tenant, user, id)
        if isinstance(page, Page):
            yield page


def _without(page: Page, facts: set[str]) -> Page:
    """The page without marks for those facts."""
    return structs.replace(page, outdated=tuple(one for one in page.outdated if one.fact not in facts))
