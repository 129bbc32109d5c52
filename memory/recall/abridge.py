"""Leaves out sentences that say least, where a budget can't hold every word."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from hearth.memory.recall.cues import ends_asking
from hearth.memory.recall.function_words import FUNCTION

KEPT: Final = 0.74
"""Part of a text's words that always stays: with less answers begin to be lost, and with more there is room
for fewer texts (0.73 to 0.76 find the same).
"""
SENTENCE_END: Final = re.compile(r"[.!?…][\"'»”’)\]]*(?=\s)|[。！？]|\n")
ELLIPSIS: Final = "…"
_LONG: Final = 60
"""Characters of a text that is worth abridging."""
_LOOKED_AT: Final = 4096
_TOKEN: Final = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7ff]|[^\W_]+")
_ASKED: Final = 0.5
"""What a question counts beside a statement: it says what somebody wants to know, not what is so."""
_EVEN: Final = 2
"""Tokens added to a sentence's, so that a single word is not the densest of all."""


@lru_cache(maxsize=4096)
def abridged(text: str) -> str:
    """`text` with an ellipsis for the sentences that say least for their length, down to `KEPT` of it.

    A sentence says as much as it has different words that are no function words. Pure.
    """
    if len(text) < _LONG:
        return text
    parts = sentences(text[:_LOOKED_AT])
    if len(parts) < 2:
        return text
    words = [_TOKEN.findall(part.casefold()) for part in parts]
    spare = (1 - KEPT) * sum(map(len, words))
    left_out = set[int]()
    for place in sorted(range(len(parts)), key=lambda i: (_telling(parts[i], words[i]), -i)):
        if len(words[place]) <= spare:
            spare -= len(words[place])
            left_out.add(place)
    return _joined(parts, left_out) + text[_LOOKED_AT:] if left_out else text


def sentences(text: str) -> list[str]:
    """The text's sentences in order, each with the white space around it; blank ones left out."""
    ends = [found.end() for found in SENTENCE_END.finditer(text)]
    parts = [text[start:end] for start, end in zip([0, *ends], [*ends, len(text)], strict=True)]
    return [part for part in parts if part.strip()]


def _telling(sentence: str, words: Sequence[str]) -> float:
    said = len(set(words) - FUNCTION) / (len(words) + _EVEN)
    return said * _ASKED if ends_asking(sentence) else said


def _joined(said: Sequence[str], left_out: set[int]) -> str:
    """What stays, with one ellipsis for each gap."""
    parts: list[str] = []
    for place, sentence in enumerate(said):
        if place not in left_out:
            parts.append(sentence)
        elif not parts or parts[-1] != ELLIPSIS:
            parts.append(ELLIPSIS)
    return " ".join(part.strip(" ") for part in parts)
