"""The rank score: a weighted sum of named, scaled signals of each side and of those around it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

import numpy as np

from hearth.memory.recall.cues import concerns_self
from hearth.memory.recall.dates import date_parts, day_parts
from hearth.memory.recall.pieces import NONE, Pieces
from hearth.memory.recall.policy import Weights
from hearth.memory.recall.pool import Numbers, Pool
from hearth.memory.types import Page, Query, Record

_DEVIATIONS: Final = 5.0
"""Standard deviations that are scaled to 1."""


def signals(pool: Pool, pieces: Pieces, query: Query, weights: Weights) -> Mapping[str, Numbers]:
    """One array a signal with a number a piece, under the names of `Weights`' fields."""
    of = pieces.record
    context = _scaled(pool.context)[of]
    lexical = _share_of_best(pool.sides[pieces.side, of])
    previous_context, next_context = pieces.around(context)
    previous_lexical, next_lexical = pieces.around(lexical)
    return {
        "text": _scaled(pool.text)[of],
        "context": context,
        "standout": _standout(pool.context)[of],
        "lexical": lexical,
        "page_lexical": _share_of_best(pool.lexical)[of],
        "previous_context": previous_context,
        "next_context": next_context,
        "previous_lexical": previous_lexical,
        "next_lexical": next_lexical,
        "speaker": _speaker(pieces, query.text),
        "date": _dates(pool.records, query)[of],
        "asks": pieces.asks,
        "number": pieces.number,
        "length": pieces.length,
        "opens": (pieces.previous == NONE).astype(np.float64),
        "recency": _recency(pool.records, query.at, weights.recency_days)[of],
        "importance": np.array([0.5 if isinstance(r, Page) else r.importance for r in pool.records])[of],
    }


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


def _standout(numbers: Numbers) -> Numbers:
    """How far each stands out from the mean; 0 for those that have no number, and where all are equal."""
    known = ~np.isnan(numbers)
    deviation = numbers[known].std() if known.any() else 0.0
    if deviation <= 0:
        return np.zeros_like(numbers)
    return np.where(known, (numbers - numbers[known].mean()) / (deviation * _DEVIATIONS), 0.0)


def _share_of_best(numbers: Numbers) -> Numbers:
    best = numbers.max(initial=0.0)
    return numbers / best if best > 0 else np.zeros_like(numbers)


def _speaker(pieces: Pieces, question: str) -> Numbers:
    """1 for the words of whom the question is about, -1 for the other's, 0 where it is about neither or both.

    Where speakers have names, the question names one; where they have none, it is about the user's self.
    """
    folded = question.casefold()
    names = {piece.speaker for piece in pieces.all if piece.speaker}
    named = {name for name in names if name.casefold() in folded}
    of_self = float(concerns_self(question))
    return np.array(
        [
            (1.0 if piece.speaker in named else -1.0) * (len(named) == 1)
            if piece.speaker
            else of_self * (1.0 - piece.side)
            for piece in pieces.all
        ],
        dtype=np.float64,
    )


def _dates(records: Sequence[Record], query: Query) -> Numbers:
    asked = date_parts(query.text, query.at, query.timezone)
    if not asked:
        return np.zeros(len(records))
    return np.array([len(asked & day_parts(r.occurred_at, query.timezone)) / len(asked) for r in records])


def _recency(records: Sequence[Record], now: datetime, half_life: float) -> Numbers:
    days = np.array([max((now - record.occurred_at).total_seconds(), 0.0) for record in records]) / 86_400
    return np.exp2(-days / half_life)
