"""Explanations of past recalls: ids and numbers in a bounded ring; texts are joined when one is read."""

from __future__ import annotations

from collections import OrderedDict
from datetime import datetime, timedelta
from itertools import takewhile

import msgspec

from hearth.memory.types import Recall, Scope, Status

KEEP = timedelta(hours=24)
CAPACITY = 10_000
"""Traces kept at most; at 2 kB each the ring stays near 20 MB."""


class TracedItem(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one candidate, and every number that decided it."""

    id: str
    verdict: str
    score: float
    relevance: float
    signals: dict[str, float]
    tokens: int


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """One recall as it happened."""

    id: str
    scope: Scope
    at: datetime
    status: Status
    reasons: tuple[str, ...]
    milliseconds: float
    tokens: int
    items: tuple[TracedItem, ...]


def trace_of(recall: Recall) -> Trace:
    """The part of a recall that is worth explaining, without any text."""
    return Trace(
        id=recall.trace,
        scope=recall.scope,
        at=recall.at,
        status=recall.status,
        reasons=recall.reasons,
        milliseconds=round(recall.milliseconds, 3),
        tokens=recall.block.tokens,
        items=tuple(
            TracedItem(
                id=item.record.id,
                verdict=item.verdict,
                score=item.score,
                relevance=item.relevance,
                signals=item.signals,
                tokens=item.tokens,
            )
            for item in recall.scored
        ),
    )


class TraceRing:
    """The latest traces by id; the oldest leave first, by count and by age."""

    def __init__(self, *, capacity: int = CAPACITY, keep: timedelta = KEEP) -> None:
        self._traces: OrderedDict[str, Trace] = OrderedDict()
        self._capacity = capacity
        self._keep = keep

    def add(self, trace: Trace) -> None:
        """Keep `trace`; drop what is too old or too many."""
        self._traces[trace.id] = trace
        while self._traces:
            oldest = next(iter(self._traces.values()))
            if len(self._traces) <= self._capacity and trace.at - oldest.at <= self._keep:
                break
            self._traces.popitem(last=False)

    def get(self, trace: str) -> Trace | None:
        """The trace of that id, or None."""
        return self._traces.get(trace)

    def since(self, moment: datetime) -> list[Trace]:
        """The traces of recalls at or after that moment, the latest first."""
        return list(takewhile(lambda trace: trace.at >= moment, reversed(self._traces.values())))

    def drop(self, tenant: str, user: str) -> None:
        """Remove every trace of the user."""
        gone = [t.id for t in self._traces.values() if (t.scope.tenant, t.scope.user) == (tenant, user)]
        for trace in gone:
            del self._traces[trace]
