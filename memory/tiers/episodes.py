"""The episode of a segment: what happened, when and with whom, in the user's own words. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from hearth.memory.extract.attributes import is_place
from hearth.memory.recall.abridge import sentences
from hearth.memory.recall.capitals import names_in
from hearth.memory.recall.cues import asks, speaks_of_self
from hearth.memory.recall.dates import local_day
from hearth.memory.recall.time_words import fold, time_words
from hearth.memory.tiers.keywords import keywords
from hearth.memory.types import Page, Segment

_SENTENCES: Final = 4
"""Sentences of an episode at most."""
_LONGEST: Final = 240
"""Characters of one sentence at most."""
_PEOPLE: Final = 4
"""Names beside the days at most."""
_OFTEN: Final = 2
"""Sentences that a name stands in, for somebody who was part of it: one may be anything with a capital."""


class _Sentence(NamedTuple):
    text: str
    order: int
    worth: float


class Tells(NamedTuple):
    """What a sentence tells, in numbers and words."""

    words: tuple[str, ...]
    """Its keywords."""
    own: float
    """More for each name in it, and where the user speaks of themselves."""


def episode_text(segment: Segment, pages: Sequence[Page]) -> str:
    """The days, who else the user kept speaking of, and the sentences of the user's that say most of the
    topic, in their order.

    `pages` oldest first. Empty where nothing was told, but only asked.
    """
    found = _sentences(segment, pages)
    best = sorted(found, key=lambda one: (-one.worth, one.order))[:_SENTENCES]
    words = " ".join(one.text for one in sorted(best, key=lambda one: one.order))
    others = ", ".join(name for name in people(pages) if name not in words)
    when = f"{_days(pages)} ({others})" if others else _days(pages)
    return f"{when}: {words}" if words else ""


def people(pages: Sequence[Page]) -> list[str]:
    """Whom the user named again and again, as far as capitals tell, most often first: no place, no day."""
    own = {part for page in pages for part in page.user_name.split()}
    counts: Counter[str] = Counter()
    for text in (text for page in pages for text in told(page)):
        counts.update(name for name in set(names_in(text) or ()) if name not in own and _is_somebody(name))
    ordered = sorted(counts, key=lambda name: (-counts[name], name))
    return [name for name in ordered if counts[name] >= _OFTEN][:_PEOPLE]


def _is_somebody(name: str) -> bool:
    time_or_place = fold(name) in time_words().anchors or is_place(name)
    return name.isalpha() and not name.isupper() and not time_or_place


def _sentences(segment: Segment, pages: Sequence[Page]) -> list[_Sentence]:
    found: dict[str, _Sentence] = {}
    for text in (text for page in pages for text in told(page)):
        value = worth(tells(text), segment.keywords, segment.pages)
        found.setdefault(text.casefold(), _Sentence(text, len(found), value))
    return list(found.values())


def told(page: Page) -> Iterator[str]:
    """The user's own sentences of a page that can be told again: none that asks, and no long one."""
    for sentence in sentences(page.user_text):
        text = " ".join(sentence.split())
        if 0 < len(text) <= _LONGEST and not asks(text):
            yield text


def tells(text: str) -> Tells:
    """What of a sentence its worth depends on."""
    return Tells(keywords(text), len(names_in(text) or ()) + 2.0 * speaks_of_self(text))


def worth(tells: Tells, topic: Mapping[str, int], of: int) -> float:
    """More for words of the topic, for names, and for what the user says of themselves; less for length.

    `topic`: in how many of `of` texts each keyword stands.
    """
    topical = sum(topic.get(word, 0) for word in tells.words) / of
    return (topical + tells.own) / (4 + len(tells.words))


def _days(pages: Sequence[Page]) -> str:
    first, last = pages[0], pages[-1]
    begin = local_day(first.occurred_at, first.timezone).isoformat()
    end = local_day(last.occurred_at, last.timezone).isoformat()
    return begin if begin == end else f"{begin} to {end}"
