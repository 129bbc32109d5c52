"""One event's work on the running summaries of sessions: what left comes in, what is outdated goes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from hearth.memory.events.kinds import Event, PageMoved, PageOutdated, SessionSummarised
from hearth.memory.ports import EventLog, MidTerm, WaitingPage
from hearth.memory.tiers.running import lines_from, summed_up
from hearth.memory.types import Page, Scope, SummaryLine


class Gone(NamedTuple):
    """A page that left short-term memory."""

    page: Page
    important: bool
    """A fact rests on it."""


async def summaries(
    event: Event,
    scope: Scope,
    gone: Sequence[Gone],
    outliving: Sequence[WaitingPage],
    *,
    log: EventLog,
    mid_term: MidTerm,
    tokens: int,
    now: datetime,
) -> list[SessionSummarised]:
    """The summaries that are others now. Raises LogUnavailable.

    `gone` left because of the event; `outliving` are older and stay, since they matter more: told with these.
    """
    turned = await _turned(event, log)
    pages = [*(one.page for one in gone), *([turned] if turned else [])]
    sessions = sorted({page.scope.session for page in pages} - {""})
    if not sessions:
        return []
    known = await mid_term.summaries(scope.tenant, scope.user, scope.owner, sessions)
    there = {line.page for lines in known.values() for line in lines}
    late = {one.id: one for one in outliving if one.id not in there}
    more = (await log.records_named(scope.tenant, scope.user, late)).items()
    new = [*gone, *(Gone(page, late[id].facts > 0) for id, page in more if isinstance(page, Page))]
    changed = {page.id for page in pages}
    made = []
    for session in sessions:
        before = known.get(session, ())
        lines = [line for line in before if line.page not in changed]
        for one in (*new, *_again(turned, before)):
            if one.page.scope.session == session:
                lines += lines_from(one.page, now, important=one.important)
        after = summed_up(lines, tokens)
        if after != before:
            made.append(SessionSummarised(session=session, owner=scope.owner, lines=after))
    return made


async def _turned(event: Event, log: EventLog) -> Page | None:
    """The page that left its branch, or of which something holds no more or again."""
    match event.payload:
        case PageMoved(page=id, state="inactive" | "hidden") | PageOutdated(page=id):
            found = await log.record(event.tenant, event.user, id)
            return found if isinstance(found, Page) else None
        case _:
            return None


def _again(turned: Page | None, before: Sequence[SummaryLine]) -> list[Gone]:
    """The page once more where it is still live and its lines stand in the summary."""
    mine = [line for line in before if turned is not None and line.page == turned.id]
    live = turned is not None and turned.state in ("active", "evicted")
    return [Gone(turned, mine[0].important)] if turned is not None and live and mine else []
