"""The episode of a segment: what happened, when and with whom, in the user's own words. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from functools import lru_cache
from math import sqrt
from typing import Final, NamedTuple

from hearth.memory.extract.attributes import is_place
from hearth.memory.recall.abridge import sentences
from hearth.memory.recall.capitals import names_in
from hearth.memory.recall.cues import asks, speaks_of_self
from hearth.memory.recall.dates import local_day
from hearth.memory.recall.time_words import fold, time_words
from hearth.memory.tiers.keywords import keywords
from hearth.memory.types import Page

_SENTENCES: Final = 4
"""Sentences of an episode, of a few pages, at most."""
_A_ROOT: Final = 2
"""Sentences for each root of the pages, where those are more."""
_LONGEST: Final = 240
"""Characters of one sentence at most."""
_PEOPLE: Final = 4
"""Names beside the days at most."""
_SELF: Final = 2.0
"""What it is worth that a sentence speaks of the user, in telling words."""
_LEVEL: Final = 8
"""Words added to a sentence's, so that a short one is not worth most for its shortness."""
_MUCH: Final = 0.7
"""Worth of sentences than which none have to tell more."""
_NUMBER: Final = re.compile(r"\d")
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
    """More for each name in it, for a number, and where the user speaks of themselves."""
    length: int
    """Its words."""


class Told(NamedTuple):
    """What an episode says."""

    text: str
    """Empty where nothing was told, but only asked."""
    importance: float
    """How much its sentences tell for their length, on average: 0 to 1, in tenths."""


def episode_of(pages: Sequence[Page]) -> Told:
    """The days, who else the user kept speaking of, and the sentences of the user's that tell most, in their
    order. `pages` oldest first.
    """
    most = max(_SENTENCES, round(_A_ROOT * sqrt(len(pages))))
    best = sorted(_sentences(pages), key=lambda one: (-one.worth, one.order))[:most]
    if not best:
        return Told("", 0.0)
    words = " ".join(one.text for one in sorted(best, key=lambda one: one.order))
    others = ", ".join(name for name in people(pages) if name not in words)
    when = f"{_days(pages)} ({others})" if others else _days(pages)
    telling = sum(one.worth for one in best) / len(best)
    return Told(f"{when}: {words}", round(min(telling / _MUCH, 1.0), 1))


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


def _sentences(pages: Sequence[Page]) -> list[_Sentence]:
    found: dict[str, _Sentence] = {}
    for text in (text for page in pages for text in told(page)):
        found.setdefault(text.casefold(), _Sentence(text, len(found), worth(tells(text))))
    return list(found.values())


def told(page: Page) -> Iterator[str]:
    """The user's own sentences of a page that can be told again: none that asks, and no long one."""
    for sentence in sentences(page.user_text):
        text = " ".join(sentence.split())
        if 0 < len(text) <= _LONGEST and not asks(text):
            yield text


@lru_cache(maxsize=4096)  # a segment that grows is summed up again and again
def tells(text: str) -> Tells:
    """What of a sentence its worth depends on."""
    words = keywords(text)
    numbers = _NUMBER.search(text) is not None
    own = len(names_in(text) or ()) + numbers + _SELF * speaks_of_self(text)
    return Tells(words, own, max(len(text.split()), len(words)))


def worth(tells: Tells, known: Container[str] = ()) -> float:
    """More for each telling word that is not known yet, for names and numbers, and for what the user says of
    themselves; less for length.

    Of what all sentences are about it is not worth more: what is asked for later was mostly said in passing.
    """
    new = sum(word not in known for word in tells.words)
    return (new + tells.own) / (_LEVEL + tells.length)


def _days(pages: Sequence[Page]) -> str:
    first, last = pages[0], pages[-1]
    begin = local_day(first.occurred_at, first.timezone).isoformat()
    end = local_day(last.occurred_at, last.timezone).isoformat()
    return begin if begin == end else f"{begin} to {end}"
