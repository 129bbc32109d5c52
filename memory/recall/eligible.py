"""What may not be recalled whatever its score: stale, filtered, already in the request, said twice."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
from heapq import nsmallest
from typing import Final, Literal

from hearth.memory.knowledge.records import AGENT, DOCUMENT, VERSION, is_everybodys, is_knowledge
from hearth.memory.recall.asked_time import asked_time
from hearth.memory.recall.cues import ends_asking
from hearth.memory.recall.query import about_the_past
from hearth.memory.recall.time_signals import held_then
from hearth.memory.tiers.persona import is_of
from hearth.memory.types import Memory, Page, Query, Record, Scope, Shelf

Reason = Literal["already present", "duplicate", "stale", "filtered"]

_SAME: Final = 0.85
"""Jaccard overlap of words from which two texts say the same."""
_CONTAINED_CHARACTERS: Final = 12
"""A shorter text is present only where it is a whole text of the request: `yes` stands inside too many."""
_WORDS: Final = re.compile(r"\w+")


class Gate:
    """Refuses records by their own fields alone, for one query of one user."""

    def __init__(self, query: Query, scope: Scope, generation: int, shelf: Shelf | None = None) -> None:
        """`shelf`: the documents of the user's tenant that may be shown; None: none."""
        self.query = query
        self._shelf = shelf
        self._scope = scope
        self._generation = generation
        self._past = about_the_past(query)
        self._asked = asked_time(query.text, query.at, query.timezone)

    def refuses(self, record: Record) -> Reason | None:
        """Why this record may not be recalled; None if it may."""
        if is_everybodys(record):
            return self._knowledge(record)
        # The stores filter by owner; should one fail in that, one user's words must still not reach another.
        if (record.scope.tenant, record.scope.user) != (self._scope.tenant, self._scope.user):
            return "filtered"
        if record.generation != self._generation:
            return "stale"
        if record.id in self.query.present_ids:
            return "already present"
        return self._page(record) if isinstance(record, Page) else self._memory(record)

    def _page(self, page: Page) -> Reason | None:
        wanted = self.query.kinds is None or "page" in self.query.kinds
        return None if wanted and page.state == "active" and page.kind == "dialogue" else "filtered"

    def _memory(self, memory: Memory) -> Reason | None:
        if not is_of(memory, self._scope):
            return "filtered"
        if self.query.kinds is not None and memory.type not in self.query.kinds:
            return "filtered"
        expired = memory.expires_at is not None and memory.expires_at <= self.query.at
        closed = memory.valid_to is not None and memory.valid_to <= self.query.at
        then = self._past or held_then(memory, self._asked)
        return "stale" if expired or (closed and not then) else None

    def _knowledge(self, record: Record) -> Reason | None:
        """Of what is for all users of a tenant only documents and system memory are shown, each in the
        version in force, and what is for one agent's users to that agent.
        """
        shelf = self._shelf
        if shelf is None or not record.scope.tenant == shelf.tenant == self._scope.tenant:
            return "filtered"
        if not isinstance(record, Memory) or not is_knowledge(record):
            return "filtered"
        if record.metadata.get(AGENT, self._scope.agent) != self._scope.agent:
            return "filtered"
        version = shelf.versions.get(str(record.metadata.get(DOCUMENT)))
        if record.generation != shelf.generation or version != record.metadata.get(VERSION):
            return "stale"
        return "already present" if record.id in self.query.present_ids else self._memory(record)


class Present:
    """What the request already says."""

    def __init__(self, texts: Sequence[str]) -> None:
        normalised = [normal(text) for text in texts]
        self._whole = frozenset(normalised)
        self._all = "\x00".join(normalised)

    def has(self, record: Record) -> bool:
        """True if every part of `record` stands in the request."""
        return bool(self._all) and all(map(self._has, _parts(record)))

    def _has(self, part: str) -> bool:
        if any(word.casefold() not in self._all for word in part.split(maxsplit=1)[:1]):
            return False  # the first word alone tells, in nearly every case
        text = normal(part)
        return text in self._whole or (len(text) >= _CONTAINED_CHARACTERS and text in self._all)


class Shown:
    """What the block says so far."""

    def __init__(self) -> None:
        self._texts: set[str] = set()
        self._words: defaultdict[str, list[frozenset[str]]] = defaultdict(list)

    def admits(self, said: str) -> bool:
        """Take `said` in, unless an earlier one says the same, in the same words or nearly: then False."""
        text, words, telling = _said(said)
        if text in self._texts or any(_same(words, other) for word in telling for other in self._words[word]):
            return False
        self._texts.add(text)
        for word in telling:
            self._words[word].append(words)
        return True


def asks_the_same(text: str, question: str) -> bool:
    """True for the question itself, and for one in nearly the same words; a statement in them answers it."""
    return normal(text) == normal(question) or (
        ends_asking(text) and _same(_said(text)[1], _said(question)[1])
    )


def normal(text: str) -> str:
    """Folded case, one space between words: the form in which texts are compared."""
    return " ".join(text.casefold().split())


@lru_cache(maxsize=4096)
def _said(text: str) -> tuple[str, frozenset[str], tuple[str, ...]]:
    """The normal form, its words, and those that tell; kept, for a user's memories come up again and again.

    Two texts that say the same share one of the words that tell: the first, in one order for all, of which
    not all can be missing from the other (prefix filtering; Chaudhuri, Ganti and Kaushik, ICDE 2006). Long
    words come first, which few texts share.
    """
    folded = normal(text)
    words = frozenset(_WORDS.findall(folded))
    telling = len(words) - int(_SAME * len(words)) + 1  # one more than needed where that is no whole number
    return folded, words, tuple(nsmallest(telling, words, key=lambda word: (-len(word), word)))


def _parts(record: Record) -> list[str]:
    if isinstance(record, Page):
        return [text for text in (record.user_text, record.reply_text) if text.strip()]
    return [record.text]


def _same(one: frozenset[str], other: frozenset[str]) -> bool:
    """Jaccard's index of at least `_SAME`; texts without any word are not the same."""
    both = len(one & other)
    return both > 0 and both / (len(one) + len(other) - both) >= _SAME
