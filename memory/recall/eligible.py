"""What may not be recalled whatever its score: stale, filtered, already in the request, said twice."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Final, Literal

from hearth.memory.recall.query import about_the_past
from hearth.memory.types import Memory, Page, Query, Record, Scope

Reason = Literal["already present", "duplicate", "stale", "filtered"]

_SAME: Final = 0.85
"""Jaccard overlap of words from which two texts say the same."""
_CONTAINED_CHARACTERS: Final = 12
"""A shorter text is present only where it is a whole text of the request: `yes` stands inside too many."""
_WORDS: Final = re.compile(r"\w+")


class Gate:
    """Refuses records by their own fields alone, for one query of one user."""

    def __init__(self, query: Query, scope: Scope, generation: int) -> None:
        self.query = query
        self._scope = scope
        self._generation = generation
        self._past = about_the_past(query)

    def refuses(self, record: Record) -> Reason | None:
        """Why this record may not be recalled; None if it may."""
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
        if self.query.kinds is not None and memory.type not in self.query.kinds:
            return "filtered"
        expired = memory.expires_at is not None and memory.expires_at <= self.query.at
        closed = memory.valid_to is not None and memory.valid_to <= self.query.at and not self._past
        return "stale" if expired or closed else None


class Repetitions:
    """Tells what the request or an earlier item already says. Ask in order of rank: the better one stays."""

    def __init__(self, present: Sequence[str]) -> None:
        texts = [normal(text) for text in present]
        self._whole = set(texts)
        self._present = "\x00".join(texts)
        self._seen: set[str] = set()
        self._by_word: dict[str, list[frozenset[str]]] = defaultdict(list)

    def check(self, record: Record) -> Reason | None:
        """Why `record` would only repeat; None if it doesn't, and then it is remembered as shown."""
        parts = [normal(part) for part in _parts(record)]
        if all(map(self._is_present, parts)):
            return "already present"
        return "duplicate" if self._is_duplicate(" ".join(parts)) else None

    def _is_present(self, text: str) -> bool:
        return text in self._whole or (len(text) >= _CONTAINED_CHARACTERS and text in self._present)

    def _is_duplicate(self, text: str) -> bool:
        if text in self._seen:
            return True
        words = frozenset(_WORDS.findall(text)) or frozenset((text,))
        keys = sorted(words, key=lambda word: (-len(word), word))[
            :2
        ]  # texts that nearly agree share one of these
        for key in keys:
            if any(_overlap(words, other) >= _SAME for other in self._by_word[key]):
                return True
        self._seen.add(text)
        for key in keys:
            self._by_word[key].append(words)
        return False


def normal(text: str) -> str:
    """Folded case, one space between words: the form in which texts are compared."""
    return " ".join(text.casefold().split())


def _parts(record: Record) -> list[str]:
    if isinstance(record, Page):
        return [text for text in (record.user_text, record.reply_text) if text.strip()]
    return [record.text]


def _overlap(one: frozenset[str], other: frozenset[str]) -> float:
    if not _SAME <= len(one) / len(other) <= 1 / _SAME:
        return 0.0
    both = len(one & other)
    return both / (len(one) + len(other) - both)
