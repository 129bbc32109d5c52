"""An earlier recall told from the log, once no process has its trace: what was recorded, and what is rebuilt.

Recorded are the block's words, which records it showed, and the signals of those and of the best of the rest.
All else is computed anew, over what memory knew then and with the weights of now.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import msgspec

from hearth.memory.engine import Engine
from hearth.memory.errors import NotFound
from hearth.memory.events.kinds import StepCaptured, scope_of
from hearth.memory.past import past
from hearth.memory.recall.explain import before_of
from hearth.memory.types import Conditions, Query, Ranked, Record, Scope, Scored, Step


class ToldItem(msgspec.Struct, frozen=True, kw_only=True):
    """One candidate, as it was then."""

    id: str
    verdict: str
    recorded: bool
    """Whether the log has that it was a candidate, and its signals; its scores are rebuilt in any case."""
    score: float
    relevance: float
    signals: Mapping[str, float]
    tokens: int
    record: Record | None
    """None where it was forgotten since."""


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """An earlier recall."""

    trace: str
    exchange: str
    """Into which it went."""
    scope: Scope
    at: datetime
    query: Query
    conditions: Conditions
    block: str | None
    """The words that stood in the prompt; None where something that they show was forgotten since."""
    tokens: int
    items: tuple[ToldItem, ...]


async def told(engine: Engine, tenant: str, user: str, trace: str) -> Told:
    """The recall of that trace by the log. Raises NotFound where no captured step had it, LogUnavailable."""
    events = await engine.log.traced(tenant, user, trace)
    steps = [(event, event.payload.step) for event in events if isinstance(event.payload, StepCaptured)]
    if not steps:
        raise NotFound
    event, step = steps[0]
    scope = scope_of(event, step)
    exchange = await engine.log.exchange(tenant, user, step.exchange)
    query = Query(
        text=step.user_text,
        before=await before_of(engine.log, exchange) if exchange else "",
        at=step.started_at,
        timezone=step.timezone,
    )
    again = await engine.recall_then(scope, query, model=step.model)
    (known,) = await past(engine.log, tenant, user, step.started_at)
    scored = {one.record.id: one for one in again.scored}
    block = next((step.block for _, step in steps if step.block is not None), None)
    return Told(
        trace=trace,
        exchange=step.exchange,
        scope=scope,
        at=step.started_at,
        query=query,
        conditions=again.conditions,
        block=block.text if block else None,
        tokens=block.tokens if block else 0,
        items=tuple(
            _item(id, step, scored.get(id), known.find(id))
            for id in dict.fromkeys((*_recorded(step), *scored))
        ),
    )


def _recorded(step: Step) -> list[str]:
    """The candidates that the log has of the recall, the best first; then what was shown besides."""
    ranked = [one.id for one in step.ranking.items] if step.ranking else []
    return [*ranked, *step.injected]


def _item(id: str, step: Step, again: Scored | None, record: Record | None) -> ToldItem:
    ranked = next((one for one in step.ranking.items if one.id == id), None) if step.ranking else None
    return ToldItem(
        id=id,
        verdict=_verdict(id, step, again),
        recorded=ranked is not None or id in step.injected,
        score=again.score if again else 0.0,
        relevance=again.relevance if again else 0.0,
        signals=_signals(step, ranked) if ranked else (again.signals if again else {}),
        tokens=again.tokens if again else 0,
        record=record,
    )


def _verdict(id: str, step: Step, again: Scored | None) -> str:
    if id in step.injected:
        return "in"
    return "left out" if again is None or again.verdict == "in" else again.verdict


def _signals(step: Step, ranked: Ranked) -> dict[str, float]:
    names = step.ranking.signals if step.ranking else ()
    return dict(zip(names, ranked.values, strict=True))
