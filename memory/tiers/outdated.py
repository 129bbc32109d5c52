"""Which words of a page say facts that hold no more, and what is left of the page without them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from msgspec import structs

from hearth.memory.recall.abridge import ELLIPSIS, sentences
from hearth.memory.recall.dates import local_day
from hearth.memory.recall.function_words import FUNCTION
from hearth.memory.recall.nothing_words import NOTHING
from hearth.memory.types import Memory, Outdated, Page, Role

_WORD: Final = re.compile(r"\w+")
_TELLS: Final = 3
"""Letters of a word that tells something, at least."""
_SHORTEST: Final = 3
"""Characters of a value by which a reply's sentence is found: shorter ones stand in everything."""


def outdated(page: Page, turned: Sequence[Memory]) -> tuple[Outdated, ...]:
    """The page's marks after those facts ended or hold again; what it says of other facts stays marked."""
    facts = {fact.id for fact in turned}
    kept = [mark for mark in page.outdated if mark.fact not in facts or mark.until is None]
    ended = [fact for fact in turned if fact.valid_to is not None]
    return (*kept, *(mark for fact in ended for mark in marks(page, fact, until=fact.valid_to)))


def marks(page: Page, fact: Memory, *, until: datetime | None) -> Iterator[Outdated]:
    """The words that the fact rests on, and the sentences of the reply that name its value."""
    quotes: list[tuple[Role, str]] = [(one.role, one.quote) for one in fact.evidence if one.id == page.id]
    if len(fact.value) >= _SHORTEST:
        value = re.compile(rf"(?<!\w){re.escape(fact.value)}(?!\w)", re.IGNORECASE)
        told = (sentence.strip() for sentence in sentences(page.reply_text))
        quotes += [("assistant", sentence) for sentence in told if value.search(sentence)]
    return (Outdated(role=role, quote=quote, fact=fact.id, until=until) for role, quote in quotes if quote)


def as_of(page: Page, at: datetime, *, past: bool, timezone: str) -> Page:
    """The page as it may be shown: without words that hold no more, or where the past is asked for with the
    day on which they ended. What was forgotten is left out in any case, and a reply without its question.
    """
    if not page.outdated:
        return page
    user = _shown(page.user_text, "user", page.outdated, at, past, timezone)
    reply = _shown(page.reply_text, "assistant", page.outdated, at, past, timezone)
    if page.user_text.strip() and not user:
        reply = ""
    return structs.replace(page, user_text=user, reply_text=reply, outdated=())


def _shown(text: str, role: Role, told: Sequence[Outdated], at: datetime, past: bool, timezone: str) -> str:
    for mark in told:
        if mark.role != role or mark.quote not in text:
            continue
        if mark.until is None or (mark.until <= at and not past):
            text = text.replace(mark.quote, ELLIPSIS)
        elif mark.until <= at:
            day = local_day(mark.until, timezone).isoformat()
            text = text.replace(mark.quote, f"{mark.quote} (until {day})", 1)
    return text if ELLIPSIS not in text or any(map(_tells, _WORD.findall(text.casefold()))) else ""


def _tells(word: str) -> bool:
    """True for a word worth showing a text for, of which the rest was taken out."""
    return len(word) >= _TELLS and word not in FUNCTION and word not in NOTHING
