"""The rank score: a weighted sum of named, scaled signals of each side and of those around it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hearth.memory.knowledge.records import is_knowledge
from hearth.memory.recall.cues import concerns_self
from hearth.memory.recall.pieces import NONE, Pieces
from hearth.memory.recall.policy import Weights
from hearth.memory.recall.pool import Numbers, Pool, margins
from hearth.memory.recall.speakers import named_among
from hearth.memory.recall.time_signals import time_signals
from hearth.memory.types import Page, Query, Record

_COVERED: Final = 0.4
"""Share of the question's idf mass that some record must hold for words to count in full: a question in
another language shares its function words alone, and with the wrong pages.
"""
_DEVIATIONS: Final = 5.0
"""Standard deviations that are scaled to 1."""


def signals(pool: Pool, pieces: Pieces, query: Query, weights: Weights) -> Mapping[str, Numbers]:
    """One array a signal with a number a piece, under the names of `Weights`' fields."""
    of = pieces.record
    words = min(float(pool.coverage.max(initial=0.0)) / _COVERED, 1.0)
    text, near, page_lexical = _scaled(pool.text), _scaled(pool.context), words * _share_of_best(pool.lexical)
    own = (text + near + page_lexical) / 3
    context = near[of]
    lexical = words * _share_of_best(pool.sides[pieces.side, of])
    previous_context, next_context = pieces.around(context)
    next_context = np.where(_are_memories(pool.records)[of], context, next_context)
    previous_lexical, _ = pieces.around(lexical)
    return {
        "text": text[of],
        "context": context,
        "standout": (margins(pool.context) / _DEVIATIONS)[of],
        "lexical": lexical,
        "page_lexical": page_lexical[of],
        "related": pool.related[pieces.side, of],
        "previous_context": previous_context,
        "next_context": next_context,
        "previous_lexical": previous_lexical,
        "speaker": _speaker(pool.speakers, pieces, query.text),
        **{name: numbers[of] for name, numbers in time_signals(pool.records, own, query).items()},
        "asks": pieces.asks,
        "number": pieces.number,
        "length": pieces.length,
        "names": pieces.names,
        "opens": (pieces.previous == NONE).astype(np.float64),
        "recency": _recency(pool.records, query.at, weights.recency_days)[of],
        "importance": np.array([0.5 if isinstance(r, Page) else r.importance for r in pool.records])[of],
    }


def _are_memories(records: Sequence[Record]) -> NDArray[np.bool_]:
    """True for those that no page follows: what was replied there lies no nearer than they do."""
    return np.array(
        [not isinstance(record, Page) and not is_knowledge(record) for record in records], np.bool_
    )


def combine(values: Mapping[str, Numbers], weights: Weights) -> Numbers:
    """The weighted sum: one rank score a piece, higher is better."""
    return np.asarray(np.sum([getattr(weights, name) * numbers for name, numbers in values.items()], axis=0))


def _scaled(numbers: Numbers) -> Numbers:
    """Min-max over those that have a number; 0 for those that have none, 1 for all where all are equal."""
    known = ~np.isnan(numbers)
    if not known.any():
        return np.zeros_like(numbers)
    low, high = numbers[known].min(), numbers[known].max()
    scaled = (numbers - low) / (high - low) if high > low else np.ones_like(numbers)
    return np.where(known, scaled, 0.0)


def _share_of_best(numbers: Numbers) -> Numbers:
    best = numbers.max(initial=0.0)
    return numbers / best if best > 0 else np.zeros_like(numbers)


def _speaker(speakers: frozenset[str], pieces: Pieces, question: str) -> Numbers:
    """1 for the words of whom the question is about, -1 for the other's, 0 where it is about neither or both.

    Where speakers have names, the question names one; where they have none, it is about the user's self.
    """
    asked_of = named_among(speakers, question)
    of_self = float(concerns_self(question))
    if len(asked_of) != 1 and not of_self:
        return np.zeros(len(pieces.all))
    return np.array(
        [
            (1.0 if piece.speaker in asked_of else -1.0) * (len(asked_of) == 1)
            if piece.speaker
            else of_self * (1.0 - piece.side) * (not is_knowledge(piece.record))
            for piece in pieces.all
        ],
        dtype=np.float64,
    )


def _recency(records: Sequence[Record], now: datetime, half_life: float) -> Numbers:
    days = np.array([max((now - record.occurred_at).total_seconds(), 0.0) for record in records]) / 86_400
    return np.exp2(-days / half_life)
