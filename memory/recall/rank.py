"""The rank score: a weighted sum of named, scaled signals of each candidate and of those around it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime

import numpy as np

from hearth.memory.recall.policy import Weights
from hearth.memory.recall.pool import Numbers, Pool
from hearth.memory.recall.time_signals import time_signals
from hearth.memory.types import Page, Query, Record

BEST_OF_SESSION = 3


def signals(pool: Pool, query: Query, weights: Weights) -> Mapping[str, Numbers]:
    """One array a signal, each scaled to 0..1, under the names of `Weights`' fields."""
    text, context, lexical = _scaled(pool.text), _scaled(pool.context), _share_of_best(pool.lexical)
    own = weights.text * text + weights.context * context + weights.lexical * lexical
    previous, following = _neighbours(pool.records, own)
    return {
        "text": text,
        "context": context,
        "lexical": lexical,
        "previous": previous,
        "next": following,
        "session": _sessions(pool.records, own),
        "speaker": _speaker(pool.records, query.text),
        **time_signals(pool.records, own, query),
        "recency": _recency(pool.records, query.at, weights.recency_days),
        "importance": np.array([0.5 if isinstance(r, Page) else r.importance for r in pool.records]),
    }


def combine(values: Mapping[str, Numbers], weights: Weights) -> Numbers:
    """The weighted sum: one rank score a candidate, higher is better."""
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


def _neighbours(records: Sequence[Record], own: Numbers) -> tuple[Numbers, Numbers]:
    """Own scores of the page before and after, 0 where that is no candidate. A memory stands for itself."""
    place = {record.id: i for i, record in enumerate(records)}
    scores: list[float] = own.tolist()
    previous, following = [0.0] * len(scores), [0.0] * len(scores)
    for i, record in enumerate(records):
        if not isinstance(record, Page):
            previous[i] = following[i] = scores[i]
        elif record.previous is not None and (before := place.get(record.previous)) is not None:
            previous[i] = scores[before]
            following[before] = max(following[before], scores[i])
    return np.array(previous), np.array(following)


def _sessions(records: Sequence[Record], own: Numbers) -> Numbers:
    """Mean of the session's best three own scores; its own for a record that belongs to no session."""
    members: dict[str, list[int]] = defaultdict(list)
    for i, record in enumerate(records):
        if record.scope.session and isinstance(record, Page):
            members[record.scope.session].append(i)
    scores: list[float] = own.tolist()
    for places in members.values():
        best = sorted((scores[i] for i in places), reverse=True)[:BEST_OF_SESSION]
        mean = sum(best) / len(best)
        for i in places:
            scores[i] = mean
    return np.array(scores)


def _speaker(records: Sequence[Record], question: str) -> Numbers:
    """1 where the question names one speaker and only that one speaks on the page."""
    names = {name for r in records if isinstance(r, Page) for name in (r.user_name, r.reply_name) if name}
    folded = question.casefold()
    named = {name for name in names if name.casefold() in folded}
    if len(named) != 1:
        return np.zeros(len(records))
    return np.array([float(isinstance(r, Page) and _speakers(r) == named) for r in records])


def _speakers(page: Page) -> set[str]:
    sides = ((page.user_name, page.user_text), (page.reply_name, page.reply_text))
    return {name for name, text in sides if name and text}


def _recency(records: Sequence[Record], now: datetime, half_life: float) -> Numbers:
    days = np.array([max((now - record.occurred_at).total_seconds(), 0.0) for record in records]) / 86_400
    return np.exp2(-days / half_life)
