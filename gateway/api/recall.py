"""Recall: what would go into a prompt, the explanation of earlier recalls, and what people think of them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Header
from pydantic import AfterValidator, Field

from hearth.config.settings import MAX_ID, known_timezone
from hearth.gateway.api.access import Reader, TheEngine, TheGateway, Writer, note_write, reached
from hearth.gateway.api.door import KeyedRoute
from hearth.gateway.api.fields import (
    MAX_LIMIT,
    MAX_NOTE,
    MAX_QUERY,
    Body,
    Identifier,
    Moment,
    Question,
    check_past,
)
from hearth.gateway.api.shapes import (
    MEMORY_ID,
    AnalysisOut,
    FeedbackOut,
    ForgettingOut,
    ItemOut,
    RecallOut,
    RecordOut,
    TraceOut,
    example,
)
from hearth.gateway.budgets import asked_budget
from hearth.gateway.identity import TIMEZONE_HEADER
from hearth.memory.engine import Engine
from hearth.memory.errors import BadInput, NotFound
from hearth.memory.events.kinds import Event, StepCaptured
from hearth.memory.explaining import told
from hearth.memory.recall.explain import analysis, exchange_of, question_of
from hearth.memory.recall.traces import Trace, TracedItem
from hearth.memory.types import EVERYBODY, Exchange, Judgement, Query, Record, Scope, Scored

router = APIRouter(tags=["recall"], route_class=KeyedRoute)


class RecallIn(Body):
    """What a prompt is about, and how much room there is."""

    model_config = example(query="What should I cook tonight?", budget=512)

    query: Question = Field(description="The new user content.")
    budget: int | None = Field(
        default=None, ge=0, description="Tokens of the block; null: the key's setting."
    )
    model: str = Field(default="", max_length=256, description="Whose tokens are counted.")
    before: str = Field(
        default="", max_length=MAX_QUERY, description="The turn before, for a short question."
    )
    timezone: Annotated[str, AfterValidator(known_timezone)] | None = Field(
        default=None, description="IANA name of the user's zone; null: the key's."
    )
    as_of: Moment | None = Field(
        default=None,
        description="A moment that is over: what would have been recalled then, with what was known then.",
    )
    agent: Identifier | None = None
    session: Identifier | None = None
    user: Identifier | None = Field(default=None, description="The same as the header x-hearth-user.")


@router.post("/recall")
async def recall(
    caller: Reader,
    engine: TheEngine,
    gateway: TheGateway,
    body: RecallIn,
    x_hearth_timezone: Annotated[str | None, Header(description="The same as `timezone`.")] = None,
) -> RecallOut:
    """Recall as a model call would. A store that is late or down is named in `reasons`, the rest is used."""
    scope = caller.scope(body.user, agent=body.agent, session=body.session)
    budget, budget_from = asked_budget(gateway, caller.key, scope.agent, body.model, body.budget)
    query = Query(
        text=body.query,
        before=body.before,
        at=body.as_of or engine.clock.now(),
        timezone=body.timezone or _zone(x_hearth_timezone) or caller.key.timezone,
    )
    if body.as_of is None:
        found = await engine.recall(scope, query, budget=budget, budget_from=budget_from, model=body.model)
    else:
        check_past("as_of", body.as_of, engine.clock.now())
        found = await engine.recall_then(scope, query, budget=budget, model=body.model)
    return RecallOut(
        id=found.trace,
        status=found.status,
        reasons=list(found.reasons),
        milliseconds=round(found.milliseconds, 3),
        tokens=found.block.tokens,
        block=found.block.text,
        analysis=AnalysisOut.of(found.conditions, analysis(query, engine.policy)),
        items=[_item(scored, scored.record) for scored in found.scored],
    )


def _zone(named: str | None) -> str:
    """The zone that the header names; empty without one. Raises BadInput."""
    if not named:
        return ""
    try:
        return known_timezone(named)
    except ValueError as error:
        raise BadInput(TIMEZONE_HEADER, named, "an IANA time zone such as Europe/Zurich") from error


@router.get("/recalls/{id}")
async def explain_recall(id: str, caller: Reader, engine: TheEngine) -> TraceOut:
    """Explain an earlier recall: every candidate's scores, and why it was in or out.

    Its trace is kept for 24 hours at most, the latest 3,000 or more; where gateways share a Redis, an hour
    in it. After that one that went into a captured call is told by the log.
    """
    scope = caller.scope()
    try:
        trace = await _reachable(engine, scope, id)
    except NotFound:
        return await _told(engine, scope, id)
    exchange = await exchange_of(engine.log, trace)
    query = await question_of(engine.log, trace, exchange) if exchange else None
    asked = await engine.forgetting(scope.tenant, scope.user, exchange.id) if exchange else None
    steps = await engine.log.traced(scope.tenant, scope.user, id)
    records = await asyncio.gather(*(_record(engine, scope, item.id) for item in trace.items))
    return TraceOut(
        id=trace.id,
        at=trace.at,
        user=trace.scope.user,
        agent=trace.scope.agent,
        session=trace.scope.session,
        status=trace.status,
        reasons=list(trace.reasons),
        milliseconds=trace.milliseconds,
        tokens=trace.tokens,
        source="trace",
        block=_block(steps),
        analysis=AnalysisOut.of(trace.conditions, analysis(query, engine.policy) if query else None),
        items=[_item(item, record) for item, record in zip(trace.items, records, strict=True)],
        forgetting=ForgettingOut.of(asked) if asked else None,
    )


async def _told(engine: Engine, scope: Scope, id: str) -> TraceOut:
    """By the log. Raises NotFound."""
    found = await told(engine, scope.tenant, scope.user, id)
    if not reached(scope, found.scope):
        raise NotFound
    asked = await engine.forgetting(scope.tenant, scope.user, found.exchange)
    return TraceOut(
        id=id,
        at=found.at,
        user=found.scope.user,
        agent=found.scope.agent,
        session=found.scope.session,
        status="ok",
        reasons=[],
        milliseconds=0.0,
        tokens=found.tokens,
        source="log",
        block=found.block,
        analysis=AnalysisOut.of(found.conditions, analysis(found.query, engine.policy)),
        items=[
            ItemOut(
                id=item.id,
                verdict=item.verdict,
                score=item.score,
                relevance=item.relevance,
                signals=dict(item.signals),
                tokens=item.tokens,
                recorded=item.recorded,
                forgotten=item.record is None,
                record=RecordOut.of(item.record) if item.record is not None else None,
            )
            for item in found.items
        ],
        forgetting=ForgettingOut.of(asked) if asked else None,
    )


def _block(steps: Sequence[Event]) -> str | None:
    payloads = (event.payload for event in steps)
    blocks = (one.step.block for one in payloads if isinstance(one, StepCaptured))
    return next((block.text for block in blocks if block is not None), None)


class ItemFeedback(Body):
    """What somebody thinks of one candidate."""

    id: str = Field(max_length=MAX_ID)
    verdict: Judgement


class FeedbackIn(Body):
    """What somebody thinks of a recall: of the whole, of some of its candidates, or both."""

    model_config = example(judgement="useful", items=[{"id": MEMORY_ID, "verdict": "wrong"}])

    judgement: Judgement | None = Field(
        default=None, description="Of the whole: it helped, was of no use, or misled."
    )
    items: list[ItemFeedback] = Field(
        default=[], max_length=MAX_LIMIT, description="Candidates, shown or not; each once."
    )
    note: str = Field(
        default="", max_length=MAX_NOTE, description="Secrets, and what `redact` says, are masked."
    )
    user: Identifier | None = Field(default=None, description="The same as the header x-hearth-user.")


@router.post("/recalls/{id}/feedback")
async def judge_recall(id: str, caller: Writer, engine: TheEngine, body: FeedbackIn) -> FeedbackOut:
    """Keep what somebody thinks of an earlier recall, for as long as it can be explained.

    It is an event of the user's. The same sent again changes nothing.
    """
    scope = caller.scope(body.user)
    trace = await _reachable(engine, scope, id)
    await note_write(engine, caller, scope, f"judge the recall {id}")
    event = await engine.judge(
        trace, body.judgement, items=_each_once(body.items), note=body.note, key=caller.key.name
    )
    return FeedbackOut(id=event, recall=trace.id)


def _each_once(items: Sequence[ItemFeedback]) -> dict[str, Judgement]:
    """The judgements by id. Raises BadInput."""
    judged: dict[str, Judgement] = {}
    for place, item in enumerate(items):
        if item.id in judged:
            raise BadInput(f"items.{place}.id", item.id, "every item once")
        judged[item.id] = item.verdict
    return judged


async def _reachable(engine: Engine, scope: Scope, id: str) -> Trace:
    trace = await engine.trace(scope.tenant, scope.user, id)
    if not reached(scope, trace.scope):
        raise NotFound
    return trace


async def _record(engine: Engine, scope: Scope, id: str) -> Record | Exchange | None:
    """What a trace's id stands for now; an exchange where the worker has not made its page yet."""
    record = await engine.log.record(scope.tenant, scope.user, id)
    record = record or await engine.log.record(scope.tenant, EVERYBODY, id)
    return record or await engine.log.exchange(scope.tenant, scope.user, id)


def _item(item: Scored | TracedItem, record: Record | Exchange | None) -> ItemOut:
    return ItemOut(
        id=item.record.id if isinstance(item, Scored) else item.id,
        verdict=item.verdict,
        score=item.score,
        relevance=item.relevance,
        signals=item.signals,
        tokens=item.tokens,
        forgotten=record is None,
        record=RecordOut.of(record) if record is not None else None,
    )
