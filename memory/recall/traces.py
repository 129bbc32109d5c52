"""Explanations of past recalls: ids and numbers in a bounded ring; texts are joined when one is read."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import takewhile

import msgspec
import numpy as np

from hearth.memory.types import Conditions, Recall, Scope, Scored, Status

KEEP = timedelta(hours=24)
CAPACITY = 32 << 20
"""Bytes of all traces together; one of 150 candidates takes 10 kB, so 3,000 of them and more are kept."""
FIXED = 800
"""Bytes of a trace without its candidates: its objects, ids and place in the ring."""


class TracedItem(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one candidate, and every number that decided it."""

    id: str
    verdict: str
    score: float
    relevance: float
    signals: dict[str, float]
    tokens: int


class Packed(msgspec.Struct, frozen=True, kw_only=True):
    """The candidates' ids and numbers in three objects: as one object a number they would fill gigabytes,
    which the garbage collector would walk through again and again.
    """

    ids: str = ""
    """With a space between two."""
    verdicts: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    """Of the signals."""
    numbers: bytes = b""
    """A row a candidate, 32-bit: score, relevance, tokens, then its signals."""

    @property
    def size(self) -> int:
        """Bytes of memory, nearly."""
        return len(self.ids) + 8 * len(self.verdicts) + len(self.numbers)

    def items(self) -> tuple[TracedItem, ...]:
        """The candidates, numbers with six digits."""
        flat = np.frombuffer(self.numbers, np.float32).astype(float).round(6)
        rows = flat.reshape(-1, len(self.names) + 3)
        return tuple(
            TracedItem(
                id=id,
                verdict=verdict,
                score=row[0],
                relevance=row[1],
                tokens=int(row[2]),
                signals=dict(zip(self.names, row[3:], strict=True)),
            )
            for id, verdict, row in zip(self.ids.split(), self.verdicts, rows.tolist(), strict=True)
        )


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """One recall as it happened."""

    id: str
    scope: Scope
    at: datetime
    status: Status
    reasons: tuple[str, ...]
    milliseconds: float
    tokens: int
    packed: Packed
    generation: int = 1
    """The user's generation that it saw; an erasure since then makes it nobody's."""
    conditions: Conditions = Conditions()

    @property
    def size(self) -> int:
        """Bytes of memory, nearly."""
        return FIXED + self.packed.size

    @property
    def items(self) -> tuple[TracedItem, ...]:
        """Every candidate, best first; made anew at each reading."""
        return self.packed.items()


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
        packed=_packed(recall.scored),
        generation=recall.generation,
        conditions=recall.conditions,
    )


def _packed(scored: Sequence[Scored]) -> Packed:
    if not scored:
        return Packed()
    rows = [[one.score, one.relevance, one.tokens, *one.signals.values()] for one in scored]
    return Packed(
        ids=" ".join([one.record.id for one in scored]),
        verdicts=tuple([one.verdict for one in scored]),
        names=tuple(scored[0].signals),
        numbers=np.array(rows, np.float32).tobytes(),
    )


class TraceRing:
    """The latest traces by id; the oldest leave first, by bytes and by age."""

    def __init__(self, *, capacity: int = CAPACITY, keep: timedelta = KEEP) -> None:
        self._traces: OrderedDict[str, Trace] = OrderedDict()
        self._capacity = capacity
        self._keep = keep
        self._size = 0

    def add(self, trace: Trace) -> None:
        """Keep `trace`; drop what is too old or too many."""
        self._remove(trace.id)
        self._traces[trace.id] = trace
        self._size += trace.size
        while self._traces:
            oldest = next(iter(self._traces.values()))
            if self._size <= self._capacity and trace.at - oldest.at <= self._keep:
                break
            self._remove(oldest.id)

    def get(self, trace: str) -> Trace | None:
        """The trace of that id, or None."""
        return self._traces.get(trace)

    def since(self, moment: datetime) -> list[Trace]:
        """The traces of recalls at or after that moment, the latest first."""
        return list(takewhile(lambda trace: trace.at >= moment, reversed(self._traces.values())))

    def drop(self, tenant: str, user: str | None = None) -> None:
        """Remove every trace of the user, or of all of the tenant's."""
        of = (t.scope for t in self._traces.values())
        mine = [scope.tenant == tenant and user in (None, scope.user) for scope in of]
        gone = [id for id, is_mine in zip(self._traces, mine, strict=True) if is_mine]
        for trace in gone:
            self._remove(trace)

    def _remove(self, trace: str) -> None:
        if (found := self._traces.pop(trace, None)) is not None:
            self._size -= found.size
