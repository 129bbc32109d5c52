"""What a request asks of memory: its new text, read with the turn before where it can't stand alone."""

from __future__ import annotations

import re
from typing import Final

from hearth.memory.ports import MemoryFilter, SearchRequest
from hearth.memory.recall import cues
from hearth.memory.recall.abridge import sentences
from hearth.memory.recall.policy import RecallPolicy
from hearth.memory.types import Query

_BEFORE_CHARACTERS: Final = 240
"""Of the turn before: enough for its topic, too little to drown the question."""

_DEFAULT: Final = RecallPolicy()
_LONGEST_SPLIT: Final = 8192
"""Characters of a text whose sentences are looked at."""
_ASIDE: Final = 30
"""Characters of a sentence that says more of the question than of something else: `Mind my allergy.`"""
_MOST_ASKING: Final = 4
"""Sentences that ask, beyond which a text is no question but holds some."""
_REFERS_WORDS: Final = 12
"""A longer question says itself what it is about, pronoun or not."""

_YEAR: Final = re.compile(r"\b(?:19|20)\d\d\b")


def search_request(
    query: Query, *, owners: tuple[str, ...], deadline: float, policy: RecallPolicy = _DEFAULT
) -> SearchRequest:
    """The one search that a query needs; `deadline` in seconds from now."""
    return SearchRequest(
        owners=owners,
        text=search_text(query, policy),
        lexical=lexical_text(query, policy),
        limit=policy.limit,
        deadline=deadline,
        where=MemoryFilter(types=tuple(sorted(query.kinds))) if query.kinds else MemoryFilter(),
    )


def search_text(query: Query, policy: RecallPolicy) -> str:
    """The text to embed: what asks in it, after the turn before where it is short or refers back."""
    text = shorten(asking_part(query.text), policy.embed_characters)
    if not query.before.strip() or not needs_before(query.text, policy):
        return text
    return f"{shorten(query.before, _BEFORE_CHARACTERS)}\n{text}"


def asking_part(text: str) -> str:
    """What asks in `text`, with short sentences beside it; all of it where nothing does, or too much.

    What else stands around a question, as a pasted letter, moves its vector away from the answer's.
    """
    parts = _parted(text)
    if not 0 < sum(asking for _, asking in parts) <= _MOST_ASKING:
        return text
    return " ".join(part for part, asking in parts if asking or len(part) <= _ASIDE)


def told_part(text: str) -> str:
    """What `text` states: a question says nothing of what it asks for, in whatever words."""
    return "\n".join(part for part, asking in _parted(text) if not asking)


def _parted(text: str) -> list[tuple[str, bool]]:
    """The sentences in order, and whether each asks."""
    return [(part, cues.asks(part)) for part in _sentences(text)]


def _sentences(text: str) -> list[str]:
    """Trimmed; a text too long to be looked through is one."""
    return [text] if len(text) > _LONGEST_SPLIT else [part.strip() for part in sentences(text)]


def lexical_text(query: Query, policy: RecallPolicy) -> str:
    """The text whose words are looked up: as `search_text`, with more of a long question."""
    text = shorten(query.text, policy.lexical_characters)
    if not query.before.strip() or not needs_before(query.text, policy):
        return text
    return f"{shorten(query.before, _BEFORE_CHARACTERS)}\n{text}"


def needs_before(text: str, policy: RecallPolicy) -> bool:
    """True if `text` is too short to be looked up alone or refers to something said before."""
    words = len(text.split())
    if words <= 1 and len(text.encode()) > 2 * len(text):  # scripts without spaces: three bytes a character
        words = len(text) // 2
    return words <= policy.short_words or (words <= _REFERS_WORDS and cues.refers_back(text))


def about_the_past(query: Query) -> bool:
    """True if the question asks for what was, so that facts since replaced belong in the answer."""
    years = {int(year) for year in _YEAR.findall(query.text)}
    return cues.asks_about_past(query.text) or any(year < query.at.year for year in years)


def shorten(text: str, characters: int) -> str:
    """`text` with its middle left out where it is longer than `characters`: of something pasted with a
    question, the question stands at its head or its end. Cut at white space where there is some near.
    """
    text = text.strip()
    if len(text) <= characters:
        return text
    half = characters // 2
    head, tail = text[:half], text[-half:]
    space = max(head.rfind(" "), head.rfind("\n"))
    head = head[:space] if space > half // 2 else head
    space = min((at for at in (tail.find(" "), tail.find("\n")) if at >= 0), default=-1)
    tail = tail[space + 1 :] if 0 <= space < half // 2 else tail
    return f"{head.rstrip()}\n{tail.lstrip()}"
