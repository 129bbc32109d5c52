"""The words that tell what a text is about, without any other text to compare it with. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Final

from hearth.memory.recall.function_words import FUNCTION_WORDS
from hearth.memory.recall.lexical import occurrences
from hearth.memory.recall.nothing_words import NOTHING
from hearth.memory.stores.analyzer import is_unspaced

OF_PAGE: Final = 16
"""Keywords of one page at most."""
OF_SEGMENT: Final = 24
"""Keywords that a segment is compared by: its most frequent."""
KEPT: Final = 96
"""Keywords counted of a segment: what is rare now may be frequent later."""
_LOOKED_AT: Final = 8_192
"""Characters of a text."""
_NUMBER: Final = re.compile(r"\d{1,2}")
_SPOKEN: Final = re.compile(r"[^\W_][\w'’.-]*(?<![.'’-])")
"""A word as it is written."""


def keywords(text: str) -> tuple[str, ...]:
    """Stems (pairs of characters, where a script parts no words) that are no function words, in order of how
    often they stand in the text, then of their length.
    """
    found = Counter(word for word in occurrences(text[:_LOOKED_AT]) if _tells(word))
    ranked = sorted(found, key=lambda word: (-found[word], -len(word), word))
    return tuple(ranked[:OF_PAGE])


def counted(known: Mapping[str, int], more: Iterable[str]) -> dict[str, int]:
    """The counts with those of one more page, the rarest left out where there are too many."""
    counts = Counter(known)
    counts.update(more)
    return dict(sorted(counts.items(), key=lambda one: (-one[1], one[0]))[:KEPT])


def leading(counts: Mapping[str, int]) -> frozenset[str]:
    """The keywords that a segment is compared by."""
    return frozenset(sorted(counts, key=lambda word: (-counts[word], word))[:OF_SEGMENT])


def overlap(one: frozenset[str], other: frozenset[str]) -> float:
    """Jaccard's index, 0 to 1."""
    both = len(one & other)
    return both / (len(one) + len(other) - both) if both else 0.0


def readable(stems: Sequence[str], texts: Iterable[str]) -> list[str]:
    """Those keywords as words that a person reads: each in the form that is most frequent in the texts, or
    as it is where none of them has it.
    """
    forms: dict[str, Counter[str]] = {stem: Counter() for stem in stems}
    for text in texts:
        for word, count in Counter(_SPOKEN.findall(text[:_LOOKED_AT])).items():
            for stem in set(() if is_unspaced(word) else occurrences(word)):
                if stem in forms:
                    forms[stem][word] += count
    return [_most_usual(forms[stem]) or stem for stem in stems]


def _most_usual(forms: Counter[str]) -> str:
    """The most frequent form; of equally frequent ones the shortest, in lower case where it is ever so."""
    return min(forms, key=lambda word: (-forms[word], len(word), word.swapcase()), default="")


def _tells(word: str) -> bool:
    short = len(word) < 2 or (len(word) < 3 and word.isascii())
    return not (short or word in _function_stems() or word in NOTHING or _NUMBER.fullmatch(word))


@cache
def _function_stems() -> frozenset[str]:
    return frozenset(occurrences(FUNCTION_WORDS))
