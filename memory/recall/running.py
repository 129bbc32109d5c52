"""What a session's running summary adds to a block: its earlier words that the client sends no more.

It is context for a follow-up and answers nothing by itself, so that no relevance is asked of it: it is shown
where the question can't stand alone or points back, and where what was recalled is of the same session. A
request that does neither gets none of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import groupby
from typing import Final

from hearth.memory.recall.cues import concerns_work, is_small_talk
from hearth.memory.recall.eligible import Gate, Present
from hearth.memory.recall.pieces import Piece
from hearth.memory.recall.policy import RecallPolicy
from hearth.memory.recall.query import about_the_past, needs_before
from hearth.memory.tiers.outdated import as_of
from hearth.memory.types import Page, Query, Record, Scope, ShortTermView, SummaryLine

SHARE: Final = 0.25
"""Of the conversation's own share of a block: tokens at most."""


def context(
    view: ShortTermView,
    shown: Collection[Record],
    query: Query,
    scope: Scope,
    generation: int,
    gate: Gate,
    present: Present,
    policy: RecallPolicy,
) -> list[Piece]:
    """Lines of the summary that may be shown, each exchange's as one piece, what matters most first.

    `shown`: what may be shown anyhow; no exchange of these is told twice. Under the same rules as any page.
    """
    ties = any(isinstance(one, Page) and one.scope.session == scope.session for one in shown)
    if not (view.summary and (ties or _follows(query, policy))):
        return []
    known = {one.id for one in shown}
    pages = (page for page in _pages(view.summary, query, scope, generation) if page.id not in known)
    fit = [page for page in pages if gate.refuses(page) is None and not present.has(page)]
    ranked = sorted(view.summary, key=lambda line: -line.rank)
    rank = {line.page: line.rank for line in ranked}  # of a page's lines the best one's
    return [Piece(page, 0, page.user_text) for page in sorted(fit, key=lambda page: rank[page.id])]


def _follows(query: Query, policy: RecallPolicy) -> bool:
    text = query.text
    return needs_before(text, policy) and not is_small_talk(text) and not concerns_work(text)


def _pages(summary: tuple[SummaryLine, ...], query: Query, scope: Scope, generation: int) -> Iterator[Page]:
    """The exchanges of the summary, with the words that it has of each and that hold at that moment."""
    past = about_the_past(query)
    for id, lines in groupby(sorted(summary, key=lambda one: (one.at, one.page)), lambda one: one.page):
        told = list(lines)
        page = Page(
            id=id,
            scope=scope,
            generation=generation,
            user_text=" ".join(line.text for line in told),
            reply_text="",
            occurred_at=told[0].at,
            outdated=tuple(mark for line in told for mark in line.outdated),
        )
        page = as_of(page, query.at, past=past, timezone=query.timezone)
        if page.user_text:
            yield page
