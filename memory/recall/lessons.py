"""What the log says of earlier recalls, as pairs of candidates of which one should have ranked higher.

Judgements of people count in full. That a reply drew on an item counts half, that it did not a quarter: an
item may have helped unseen. Of candidates that were not shown nothing is known, unless they were judged: so
only a judgement of the whole recall sets what was shown against the best of the rest, and counts little.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hearth.memory.events.kinds import Event, RecallDrawn, RecallJudged
from hearth.memory.ports import EventLog
from hearth.memory.reading import batches
from hearth.memory.types import Judgement, Ranked, Ranking

Numbers: TypeAlias = NDArray[np.float64]

KINDS: Final = ("recall.judged", "recall.drawn")
_SAID: Final = 1.0
_DRAWN: Final = 0.5
_NOT_DRAWN: Final = 0.25
_WHOLE: Final = 0.1
_READ_ROWS: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """One recall of which something can be learnt."""

    key: str
    """Of its exchange, or of the recall where none is known."""
    judged: bool
    """By somebody, and not by its reply alone."""
    differences: Numbers
    """A row a pair: the signals of the better candidate less those of the worse."""
    weights: Numbers
    """How much each pair counts; of a recall with many pairs each counts less."""


async def read_told(log: EventLog, tenant: str) -> list[Event]:
    """All events of the tenant that tell what was of use, in log order. Raises LogUnavailable."""
    read = batches(log, tenant=tenant, kinds=KINDS, rows=_READ_ROWS)
    return [event async for batch in read for event in batch]


def signals_in(events: Iterable[Event]) -> frozenset[str]:
    """The names of all signals that their recalls had."""
    rankings = (
        event.payload.ranking for event in events if isinstance(event.payload, RecallDrawn | RecallJudged)
    )
    return frozenset(name for ranking in rankings if ranking is not None for name in ranking.signals)


def lessons_of(events: Iterable[Event], names: Sequence[str]) -> list[Lesson]:
    """One lesson a recall that has a pair, in the order of the log; what is said later of the same counts.

    A signal that a recall did not have counts as equal for all its candidates.
    """
    told: dict[str, _Told] = {}
    for event in events:
        match event.payload:
            case RecallDrawn(trace=trace) | RecallJudged(trace=trace) as payload:
                told.setdefault(f"{event.user}/{trace}", _Told(trace)).take(payload)
            case _:
                pass
    lessons = (one.lesson(names) for one in told.values())
    return [lesson for lesson in lessons if lesson is not None]


@dataclass(slots=True)
class _Told:
    """All that is known of one recall."""

    key: str
    drawn: dict[str, bool] = field(default_factory=dict)
    said: dict[str, Judgement] = field(default_factory=dict)
    whole: Judgement | None = None
    signals: tuple[str, ...] = ()
    ranked: dict[str, Ranked] = field(default_factory=dict)

    def take(self, payload: RecallDrawn | RecallJudged) -> None:
        """Add what the event says."""
        if payload.ranking is not None:
            self._rank(payload.ranking)
        if isinstance(payload, RecallDrawn):
            self.key = payload.exchange
            self.drawn = {item.id: item.used for item in payload.items}
        else:
            self.said |= payload.items
            self.whole = payload.judgement or self.whole

    def lesson(self, names: Sequence[str]) -> Lesson | None:
        """Its pairs; None where there is none."""
        pairs = [*self._between_graded(), *self._of_whole()]
        if not pairs:
            return None
        rows = {id: self._row(one, names) for id, one in self.ranked.items()}
        weights = np.array([weight for _, _, weight in pairs])
        return Lesson(
            key=self.key,
            judged=bool(self.said) or self.whole is not None,
            differences=np.array([rows[better] - rows[worse] for better, worse, _ in pairs]),
            weights=weights * weights.max() / weights.sum(),
        )

    def _rank(self, ranking: Ranking) -> None:
        self.signals = ranking.signals
        self.ranked |= {item.id: item for item in ranking.items}

    def _row(self, one: Ranked, names: Sequence[str]) -> Numbers:
        values = dict(zip(self.signals, one.values, strict=True))
        return np.array([values.get(name, 0.0) for name in names])

    def _grades(self) -> dict[str, tuple[Literal[1, -1], float]]:
        """Whether each candidate helped, as far as something tells, and how much that counts."""
        grades: dict[str, tuple[Literal[1, -1], float]] = {
            id: (1, _DRAWN) if used else (-1, _NOT_DRAWN) for id, used in self.drawn.items()
        }
        for id, judgement in self.said.items():
            grades[id] = (1 if judgement == "useful" else -1, _SAID)
        return {id: grade for id, grade in grades.items() if id in self.ranked}

    def _between_graded(self) -> Iterator[tuple[str, str, float]]:
        grades = self._grades()
        for better, (up, sure) in grades.items():
            for worse, (down, as_sure) in grades.items():
                if up > down:
                    yield better, worse, sure * as_sure

    def _of_whole(self) -> Iterator[tuple[str, str, float]]:
        if self.whole is None:
            return
        shown = [id for id, one in self.ranked.items() if one.shown and id not in self.said]
        rest = [id for id, one in self.ranked.items() if not one.shown and id not in self.said]
        for first in shown:
            for second in rest:
                yield (first, second, _WHOLE) if self.whole == "useful" else (second, first, _WHOLE)
