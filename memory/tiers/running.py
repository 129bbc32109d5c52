"""The running summary of a session: what left short-term memory, in the user's own words. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from msgspec import structs

from hearth.memory.recall.cues import is_small_talk
from hearth.memory.tiers.episodes import tells, told, worth
from hearth.memory.tiers.keywords import keywords
from hearth.memory.tiers.outdated import as_of
from hearth.memory.tiers.overflow import BYTES_PER_TOKEN
from hearth.memory.types import Page, SummaryLine

_DATED = 8
"""Tokens, about, of the day and the speaker beside a line."""


def lines_from(page: Page, now: datetime, *, important: bool) -> list[SummaryLine]:
    """What the page tells that can stand in a summary, without words that hold no more at that moment."""
    told_now = as_of(page, now, past=False, timezone=page.timezone)
    ending = [mark for mark in page.outdated if mark.until is not None and mark.until > now]
    return [
        SummaryLine(
            page=page.id,
            at=page.occurred_at,
            text=text,
            important=important,
            outdated=tuple(mark for mark in ending if mark.role == "user" and mark.quote in text),
        )
        for text in told(told_now)
        if keywords(text) and not is_small_talk(text)
    ]


def summed_up(lines: Sequence[SummaryLine], tokens: int) -> tuple[SummaryLine, ...]:
    """The lines that matter most, of about so many tokens, oldest first; what repeats is told once."""
    once: dict[str, SummaryLine] = {}
    for line in sorted(lines, key=lambda one: one.at):
        once.setdefault(line.text.casefold(), line)
    kept: list[SummaryLine] = []
    left = tokens
    for line in _by_worth(list(once.values())):
        size = _DATED + len(line.text.encode()) // BYTES_PER_TOKEN
        if size <= left:
            kept.append(structs.replace(line, rank=len(kept)))
            left -= size
    return tuple(sorted(kept, key=lambda one: one.at))


def _by_worth(lines: Sequence[SummaryLine]) -> list[SummaryLine]:
    """Those first on which facts rest, then those that tell most that no line before them tells; of equal
    ones the later.
    """
    left = {line.text: (line, tells(line.text)) for line in lines}
    known: set[str] = set()
    ordered: list[SummaryLine] = []
    while left:
        best, told = max(
            left.values(),
            key=lambda one: (one[0].important, worth(one[1], known), one[0].at, one[0].text),
        )
        ordered.append(best)
        del left[best.text]
        known.update(told.words)
    return ordered
