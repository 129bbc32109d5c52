"""The episode of a segment: what happened, when and with whom, in the user's own words. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from hearth.memory.recall.abridge import sentences
from hearth.memory.recall.capitals import names_in
from hearth.memory.recall.cues import asks, speaks_of_self
from hearth.memory.recall.dates import local_day
from hearth.memory.tiers.keywords import keywords
from hearth.memory.types import Page, Segment

_SENTENCES: Final = 4
"""Sentences of an episode at most."""
_LONGEST: Final = 240
"""Characters of one sentence at most."""


class _Sentence(NamedTuple):
    text: str
    order: int
    worth: float


def episode_text(segment: Segment, pages: Sequence[Page]) -> str:
    """The days, and the sentences of the user's that say most of the topic, in their order.

    `pages` oldest first. Empty where nothing was told, but only asked.
    """
    told = _sentences(segment, pages)
    best = sorted(told, key=lambda one: (-one.worth, one.order))[:_SENTENCES]
    words = " ".join(one.text for one in sorted(best, key=lambda one: one.order))
    return f"{_days(pages)}: {words}" if words else ""


def _sentences(segment: Segment, pages: Sequence[Page]) -> list[_Sentence]:
    found: dict[str, _Sentence] = {}
    for page in pages:
        for sentence in sentences(page.user_text):
            text = " ".join(sentence.split())
            if 0 < len(text) <= _LONGEST and not asks(text):
                found.setdefault(text.casefold(), _Sentence(text, len(found), _worth(segment, text)))
    return list(found.values())


def _worth(segment: Segment, text: str) -> float:
    """More for words of the topic, for names, and for what the user says of themselves; less for length."""
    own = keywords(text)
    topic = sum(segment.keywords.get(word, 0) for word in own) / segment.pages
    names = len(names_in(text) or ())
    return (topic + names + 2.0 * speaks_of_self(text)) / (4 + len(own))


def _days(pages: Sequence[Page]) -> str:
    first, last = pages[0], pages[-1]
    begin = local_day(first.occurred_at, first.timezone).isoformat()
    end = local_day(last.occurred_at, last.timezone).isoformat()
    return begin if begin == end else f"{begin} to {end}"
