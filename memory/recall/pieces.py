"""The sides of the candidates one by one: what was said and what was replied compete for the budget apart."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import log1p
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from hearth.memory.recall.capitals import names_in
from hearth.memory.recall.cues import ends_asking
from hearth.memory.recall.pool import Numbers
from hearth.memory.types import Page, Record

_LONGEST: Final = 4.0
"""Scales the logarithm of a side's words to about 0 to 1: 54 words are 1."""
_DIGIT: Final = re.compile(r"\d")
_WORD: Final = re.compile(r"\w+")
_MOST_NAMES: Final = 3
_USUAL_NAMES: Final = 1
_LOOKED_AT: Final = 2048

NONE: Final = -1
"""Stands for a side that is not there."""


class Piece(msgspec.Struct, frozen=True, gc=False):
    """One side of a record."""

    record: Record
    side: int
    """0: what the user said, or a memory's text; 1: the reply."""
    text: str
    speaker: str = ""
    """Whose words they are; empty where the source gives no name."""


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
    names: Numbers
    """Names in it, of three at most, as a share; a third where its language doesn't tell."""

    def around(self, scores: Numbers) -> tuple[Numbers, Numbers]:
        """The scores of the sides before and after each, 0 where there is none."""
        padded = np.append(scores, 0.0)
        return padded[self.previous], padded[self.next]


def pieces_of(records: Sequence[Record]) -> Pieces:
    """The pieces of those records."""
    pieces: list[Piece] = []
    of: list[int] = []
    for place, record in enumerate(records):
        sides = _sides(record)
        pieces += sides
        of += [place] * len(sides)
    previous, following = _neighbours(pieces)
    facts = np.array([_facts(piece.text) for piece in pieces], dtype=np.float64).reshape(-1, 4)
    return Pieces(
        all=pieces,
        record=np.array(of, dtype=np.intp),
        side=np.array([piece.side for piece in pieces], dtype=np.intp),
        previous=previous,
        next=following,
        asks=facts[:, 0],
        number=facts[:, 1],
        length=facts[:, 2],
        names=facts[:, 3],
    )


def _sides(record: Record) -> list[Piece]:
    if not isinstance(record, Page):
        return [Piece(record, 0, record.text)]
    sides = ((0, record.user_text, record.user_name), (1, record.reply_text, record.reply_name))
    return [Piece(record, side, text, name) for side, text, name in sides if text.strip()]


def _neighbours(pieces: Sequence[Piece]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    last = {piece.record.id: place for place, piece in enumerate(pieces)}
    previous, following = [NONE] * len(pieces), [NONE] * len(pieces)
    for place, piece in enumerate(pieces):
        record = piece.record
        if place and pieces[place - 1].record is record:
            before = place - 1
        elif isinstance(record, Page) and record.previous:
            before = last.get(record.previous, NONE)
        else:
            continue
        if before != NONE:
            previous[place], following[before] = before, place
    return np.array(previous, dtype=np.intp), np.array(following, dtype=np.intp)


@lru_cache(maxsize=4096)
def _facts(text: str) -> tuple[float, float, float, float]:
    """What the words of a side tell by themselves: asks, number, length, names."""
    head = text[:_LOOKED_AT]
    named = names_in(head)
    return (
        float(ends_asking(text)),
        float(_DIGIT.search(text) is not None),
        log1p(len(_WORD.findall(head))) / _LONGEST,
        (_USUAL_NAMES if named is None else min(len(named), _MOST_NAMES)) / _MOST_NAMES,
    )
