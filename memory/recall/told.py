"""Which facts and pages of a block say the same: a fact stands for the words that it was read from."""

from __future__ import annotations

from collections import defaultdict
from typing import Final

from hearth.memory.recall.pieces import Piece
from hearth.memory.types import Memory

_MOST: Final = 0.6
"""Part of what the user said, in characters, that facts must quote to stand for all of it."""
_LEAST: Final = 16
"""Characters that say nothing more beside such quotes: `By the way, `."""


class Told:
    """What the block's facts quote, and which pages it has."""

    def __init__(self) -> None:
        self._quotes: defaultdict[str, set[str]] = defaultdict(set)
        self._texts: dict[str, str] = {}

    def has(self, piece: Piece) -> bool:
        """True for a fact whose words the block has, and for words of which it has the facts."""
        if isinstance(piece.record, Memory):
            return any(one.quote in self._texts.get(one.id, "") for one in piece.record.evidence)
        if piece.side:
            return False
        quoted = sum(len(quote) for quote in self._quotes[piece.record.id] if quote in piece.text)
        return quoted >= min(_MOST * len(piece.text), max(len(piece.text) - _LEAST, 1))

    def add(self, piece: Piece, shown: str) -> None:
        """The block has the piece, as `shown`: sentences of it may be left out."""
        if isinstance(piece.record, Memory):
            for one in piece.record.evidence:
                self._quotes[one.id].add(one.quote)
        elif not piece.side:
            self._texts[piece.record.id] = shown
