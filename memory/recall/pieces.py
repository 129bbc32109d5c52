"""The sides of the candidates one by one: what was said and what was replied compete for the budget apart."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import log1p
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hearth.memory.recall.pool import Numbers
from hearth.memory.types import Page, Record

_LONGEST: Final = 4.0
"""Scales the logarithm of a side's words to about 0 to 1: 54 words are 1."""
_DIGIT: Final = re.compile(r"\d")
_WORD: Final = re.compile(r"\w+")
_ASKING: Final = ("?", "？", "؟")

NONE: Final = -1
"""Stands for a side that is not there."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One side of a record."""

    record: Record
    side: int
    """0: what the user said, or a memory's text; 1: the reply."""

    @property
    def text(self) -> str:
        """Its words."""
        if not isinstance(self.record, Page):
            return self.record.text
        return self.record.reply_text if self.side else self.record.user_text

    @property
    def speaker(self) -> str:
        """Whose words they are; empty where the source gives no name."""
        if not isinstance(self.record, Page):
            return ""
        return self.record.reply_name if self.side else self.record.user_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Pieces:
    """All sides that have words, in the order of their records. Arrays have one entry a piece."""

    all: Sequence[Piece]
    record: NDArray[np.intp]
    """Place of its record among the candidates."""
    side: NDArray[np.intp]
    previous: NDArray[np.intp]
    """Place of the side that was said before it, `NONE` where that is no candidate's."""
    next: NDArray[np.intp]
    asks: Numbers
    """1 where it ends with a question."""
    number: Numbers
    """1 where it holds a digit."""
    length: Numbers
    """Logarithm of its words, about 0 to 1."""

    def around(self, scores: Numbers) -> tuple[Numbers, Numbers]:
        """The scores of the sides before and after each, 0 where there is none."""
        padded = np.append(scores, 0.0)
        return padded[self.previous], padded[self.next]


def pieces_of(records: Sequence[Record]) -> Pieces:
    """The pieces of those records."""
    made = [(i, piece) for i, record in enumerate(records) for piece in _sides(record)]
    pieces = [piece for _, piece in made]
    previous, following = _neighbours(records, made)
    facts = np.array([_facts(piece.text) for piece in pieces], dtype=np.float64).reshape(-1, 3)
    return Pieces(
        all=pieces,
        record=np.array([i for i, _ in made], dtype=np.intp),
        side=np.array([piece.side for piece in pieces], dtype=np.intp),
        previous=previous,
        next=following,
        asks=facts[:, 0],
        number=facts[:, 1],
        length=facts[:, 2],
    )


def _sides(record: Record) -> list[Piece]:
    if not isinstance(record, Page):
        return [Piece(record, 0)]
    texts = (record.user_text, record.reply_text)
    return [Piece(record, side) for side, text in enumerate(texts) if text.strip()]


def _neighbours(
    records: Sequence[Record], made: Sequence[tuple[int, Piece]]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    first, last = dict[str, int](), dict[str, int]()
    for place, (_, piece) in enumerate(made):
        first.setdefault(piece.record.id, place)
        last[piece.record.id] = place
    previous = np.full(len(made), NONE, dtype=np.intp)
    following = np.full(len(made), NONE, dtype=np.intp)
    for place, (_, piece) in enumerate(made):
        before = place - 1 if place > first[piece.record.id] else _last_of_previous(piece.record, last)
        if before != NONE:
            previous[place], following[before] = before, place
    return previous, following


def _last_of_previous(record: Record, last: dict[str, int]) -> int:
    known = isinstance(record, Page) and record.previous is not None
    return last.get(record.previous, NONE) if known and isinstance(record, Page) and record.previous else NONE


@lru_cache(maxsize=4096)
def _facts(text: str) -> tuple[float, float, float]:
    """What the words of a side tell by themselves: asks, number, length."""
    asks = text.rstrip().endswith(_ASKING)
    words = len(_WORD.findall(text[:2048]))
    return float(asks), float(_DIGIT.search(text) is not None), log1p(words) / _LONGEST
