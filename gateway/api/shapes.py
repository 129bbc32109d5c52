"""What the API answers with: one model a record, made from the engine's records."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from hearth.memory import types
from hearth.memory.engine import Forgotten
from hearth.memory.recall.explain import Analysis
from hearth.memory.types import (
    Asked,
    AskedOutcome,
    BudgetFrom,
    JsonScalar,
    MemoryType,
    Record,
    SessionMode,
    Status,
)

MEMORY_ID = "018f6b1c2d3e4f5061728394a5b6c7d8"
EXCHANGE_ID = "7d3c1a9b5e8f40218a6b4c2d0e1f3a5b"
TRACE_ID = "c0ffee00c0ffee00c0ffee00c0ffee00"
WHEN = "2026-11-28T09:30:00Z"


def example(**fields: Any) -> ConfigDict:
    """The configuration of a model with one example for the OpenAPI document."""
    return ConfigDict(json_schema_extra={"examples": [fields]})


MEMORY = {
    "id": MEMORY_ID,
    "user": "alice",
    "agent": "default",
    "session": "",
    "type": "fact",
    "text": "I am allergic to kiwi.",
    "subject": "user",
    "attribute": "allergy",
    "value": "kiwi",
    "tags": ["health"],
    "metadata": {"source": "intake form"},
    "confidence": 0.95,
    "importance": 0.9,
    "pinned": False,
    "occurred_at": WHEN,
    "created_at": WHEN,
    "updated_at": WHEN,
    "valid_from": None,
    "valid_to": None,
    "successor": None,
    "happens_at": None,
    "expires_at": None,
    "evidence": [{"exchange": EXCHANGE_ID, "role": "user", "quote": "I'm allergic to kiwi", "at": WHEN}],
    "source": "extraction",
}

RECORD: dict[str, Any] = {
    "id": MEMORY_ID,
    "type": "fact",
    "text": "Alice is allergic to kiwi.",
    "reply": None,
    "agent": "default",
    "session": "",
    "occurred_at": WHEN,
    "tags": ["health"],
    "metadata": {},
}

SCORES = {
    "id": MEMORY_ID,
    "verdict": "in",
    "score": 0.91,
    "relevance": 0.84,
    "signals": {"text": 0.88, "lexical": 0.4},
    "tokens": 14,
    "forgotten": False,
    "record": RECORD,
}


ANALYSIS: dict[str, Any] = {
    "text": "What should I cook in May?",
    "words": ["what", "should", "i", "cook", "in", "may"],
    "before": False,
    "time": ["2024-05-01 to 2024-05-31"],
    "timezone": "Europe/Zurich",
    "model": "gpt-4o-mini",
    "budget": 1024,
    "budget_from": "settings",
    "floor": 0.5,
    "floor_from": "embedder",
}


class EvidenceOut(BaseModel):
    """Words on which a memory rests."""

    exchange: str
    role: Literal["user", "assistant"]
    quote: str
    at: datetime


class MemoryOut(BaseModel):
    """One long-term memory."""

    model_config = example(**MEMORY)

    id: str
    user: str
    agent: str
    session: str = Field(description="Empty where none was named.")
    type: MemoryType
    text: str
    subject: str = Field(description="Whom or what it is about; empty where that is not known.")
    attribute: str = Field(description="What of the subject it says; empty for a free statement.")
    value: str
    tags: list[str]
    metadata: dict[str, JsonScalar]
    confidence: float = Field(description="0 to 1: how surely its evidence says it.")
    importance: float
    pinned: bool
    occurred_at: datetime = Field(description="When it was said or happened.")
    created_at: datetime
    updated_at: datetime
    valid_from: datetime | None
    valid_to: datetime | None = Field(description="Set when a newer fact closed this one.")
    successor: str | None = Field(description="Id of the memory that superseded this one.")
    happens_at: datetime | None = Field(description="When what it tells of takes or took place.")
    expires_at: datetime | None
    evidence: list[EvidenceOut] = Field(description="What it was read from.")
    source: Literal["api", "extraction", "correction"] = Field(
        description="Added or changed by hand, read from the user's words, or set right by them."
    )

    @classmethod
    def of(cls, memory: types.Memory) -> MemoryOut:
        """The memory as the API shows it."""
        return cls(
            id=memory.id,
            user=memory.scope.user,
            agent=memory.scope.agent,
            session=memory.scope.session,
            type=memory.type,
            text=memory.text,
            subject=memory.subject,
            attribute=memory.attribute,
            value=memory.value,
            tags=list(memory.tags),
            metadata=memory.metadata,
            confidence=memory.confidence,
            importance=memory.importance,
            pinned=memory.pinned,
            occurred_at=memory.occurred_at,
            created_at=memory.created_at,
            updated_at=memory.updated_at,
            valid_from=memory.valid_from,
            valid_to=memory.valid_to,
            successor=memory.successor,
            happens_at=memory.happens_at,
            expires_at=memory.expires_at,
            evidence=[
                EvidenceOut(exchange=one.id, role=one.role, quote=one.quote, at=one.at)
                for one in memory.evidence
            ],
            source=memory.source,
        )


class HistoryOut(BaseModel):
    """What was said of the same, oldest first."""

    model_config = example(items=[MEMORY])

    items: list[MemoryOut]


class MemoryPage(BaseModel):
    """One page of a list of memories, newest first."""

    model_config = example(items=[MEMORY], total=257, next="WyJtZW1vcmllcyIs…")

    items: list[MemoryOut]
    total: int = Field(description="How many memories match, over all pages.")
    next: str | None = Field(description="The `cursor` of the next page; null at the end.")


class RecordOut(BaseModel):
    """A record of any kind, as search and recall find it."""

    model_config = example(**RECORD)

    id: str
    type: Literal["page"] | MemoryType = Field(
        description="`page` is an exchange, word for word; all else is a memory."
    )
    text: str = Field(description="The memory's text; of a page, what the user said.")
    reply: str | None = Field(description="Of a page, what the assistant answered.")
    agent: str
    session: str
    occurred_at: datetime
    tags: list[str]
    metadata: dict[str, JsonScalar]

    @classmethod
    def of(cls, record: Record | types.Exchange) -> RecordOut:
        """The record as the API shows it; an exchange as the page that it becomes."""
        memory = record if isinstance(record, types.Memory) else None
        return cls(
            id=record.id,
            type="page" if not isinstance(record, types.Memory) else record.type,
            text=record.text if isinstance(record, types.Memory) else record.user_text,
            reply=None if isinstance(record, types.Memory) else record.reply_text,
            occurred_at=record.started_at if isinstance(record, types.Exchange) else record.occurred_at,
            agent=record.scope.agent,
            session=record.scope.session,
            tags=list(memory.tags) if memory else [],
            metadata=memory.metadata if memory else {},
        )


class Found(BaseModel):
    """One result of a search, with each query's own score; null where it was not among that query's best."""

    model_config = example(
        record=RECORD, text_score=0.88, context_score=0.86, lexical_score=4.2, coverage=0.67
    )

    record: RecordOut
    text_score: float | None = Field(description="Cosine of the query with the text, -1 to 1.")
    context_score: float | None = Field(description="The same, with the exchange before it.")
    lexical_score: float | None = Field(description="Weighted word matches, 0 upwards.")
    coverage: float = Field(description="Share of the query's rare words that it holds, 0 to 1.")

    @classmethod
    def of(cls, candidate: types.Candidate) -> Found:
        """The candidate as the API shows it."""
        return cls(
            record=RecordOut.of(candidate.record),
            text_score=candidate.text_score,
            context_score=candidate.context_score,
            lexical_score=candidate.lexical_score,
            coverage=candidate.coverage,
        )


class SearchOut(BaseModel):
    """Results of a search, best first."""

    items: list[Found]


FORGETTING: dict[str, Any] = {
    "exchange": EXCHANGE_ID,
    "at": WHEN,
    "understood": "statement",
    "outcome": "forgotten",
    "about": ["residence"],
    "memories": [MEMORY_ID],
    "exchanges": [EXCHANGE_ID],
    "marked": [],
    "state": "waiting",
    "until": "2026-11-29T09:30:00Z",
}


class ForgettingOut(BaseModel):
    """What a user asked to forget in a conversation, and what became of it."""

    model_config = example(**FORGETTING)

    exchange: str = Field(description="In which it was asked; the id to undo it by.")
    at: datetime
    understood: Asked = Field(
        description="What was said `before`, `this` message, a `statement`, a `topic`, or `all` of the user."
    )
    outcome: AskedOutcome = Field(description="Of `ambiguous` and `too much` nothing is forgotten.")
    about: list[str] = Field(description="Attributes of the facts that were meant.")
    memories: list[str]
    exchanges: list[str] = Field(description="That are forgotten whole, the one that asked among them.")
    marked: list[str] = Field(description="Exchanges of which some words are no more recalled.")
    state: Literal["waiting", "undone", "done", "nothing"] = Field(
        description="`waiting`: out of recall, and can be undone until `until`; `done`: forgotten for good."
    )
    until: datetime | None

    @classmethod
    def of(cls, asked: types.Forgetting) -> ForgettingOut:
        """The request as the API shows it."""
        return cls(
            exchange=asked.exchange,
            at=asked.at,
            understood=asked.understood,
            outcome=asked.outcome,
            about=list(asked.about),
            memories=list(asked.memories),
            exchanges=list(asked.pages),
            marked=list(asked.marked),
            state=asked.state,
            until=asked.until,
        )


class ExchangeOut(BaseModel):
    """One request's new user content and its reply."""

    model_config = example(
        id=EXCHANGE_ID,
        user="alice",
        agent="default",
        session="5a1c",
        user_text="What should I cook?",
        reply_text="Soup.",
        outcome="complete",
        state="closed",
        started_at=WHEN,
        finished_at=WHEN,
        model="gpt-4o-mini",
        route="chat",
        steps=1,
        injected=[MEMORY_ID],
        usage={"input": 210, "output": 7, "cached_input": 0, "cache_write": 0, "memory": 31},
        trace=TRACE_ID,
        forgetting=None,
    )

    id: str
    user: str
    agent: str
    session: str
    user_text: str
    reply_text: str
    outcome: Literal["complete", "partial", "failed"]
    state: Literal["open", "closed", "inactive", "failed"]
    started_at: datetime
    finished_at: datetime
    model: str
    route: str
    steps: int
    injected: list[str] = Field(description="Ids of the records that were recalled into it.")
    usage: dict[str, int] | None = Field(
        description="Tokens as the provider counted them; null until known, a moment after some replies."
    )
    trace: str = Field(description="Id for GET /memory/v1/recalls/{id}; empty where nothing was recalled.")
    forgetting: ForgettingOut | None = Field(
        default=None, description="What it asked to forget; null where nothing, and in lists."
    )

    @classmethod
    def of(cls, exchange: types.Exchange, asked: types.Forgetting | None = None) -> ExchangeOut:
        """The exchange as the API shows it."""
        usage = exchange.usage
        return cls(
            id=exchange.id,
            user=exchange.scope.user,
            agent=exchange.scope.agent,
            session=exchange.scope.session,
            user_text=exchange.user_text,
            reply_text=exchange.reply_text,
            outcome=exchange.outcome,
            state=exchange.state,
            started_at=exchange.started_at,
            finished_at=exchange.finished_at,
            model=exchange.model,
            route=exchange.route,
            steps=exchange.steps,
            injected=list(exchange.injected),
            usage={name: getattr(usage, name) for name in usage.__struct_fields__} if usage else None,
            trace=exchange.trace,
            forgetting=ForgettingOut.of(asked) if asked else None,
        )


class ExchangePage(BaseModel):
    """One page of a list of exchanges, newest first."""

    items: list[ExchangeOut]
    next: str | None = Field(description="The `cursor` of the next page; null at the end.")


class SummaryLineOut(BaseModel):
    """A sentence of a session's running summary, as its user said it."""

    model_config = example(exchange=EXCHANGE_ID, at=WHEN, text="I am allergic to peanuts.")

    exchange: str = Field(description="In which it was said.")
    at: datetime
    text: str


class SessionOut(BaseModel):
    """One conversation."""

    model_config = example(
        id="5a1c",
        user="alice",
        agent="default",
        exchanges=12,
        started_at=WHEN,
        last_at=WHEN,
        memory="on",
        summary=[],
    )

    id: str
    user: str
    agent: str
    exchanges: int
    started_at: datetime
    last_at: datetime
    memory: SessionMode = Field(description="`read` and `off`: it is private, nothing of it is captured.")
    summary: list[SummaryLineOut] = Field(description="What has left short-term memory of it, summed up.")

    @classmethod
    def of(cls, session: types.SessionInfo) -> SessionOut:
        """The session as the API shows it."""
        return cls(
            id=session.id,
            user=session.scope.user,
            agent=session.scope.agent,
            exchanges=session.exchanges,
            started_at=session.started_at,
            last_at=session.last_at,
            memory=session.memory,
            summary=[SummaryLineOut(exchange=one.page, at=one.at, text=one.text) for one in session.summary],
        )


class SessionPage(BaseModel):
    """One page of a list of sessions, the latest first."""

    items: list[SessionOut]
    next: str | None = Field(description="The `cursor` of the next page; null at the end.")


class ItemOut(BaseModel):
    """One candidate of a recall: every number that decided it, and what became of it."""

    model_config = example(**SCORES)

    id: str
    verdict: str = Field(description="`in`, or why it was left out.")
    score: float = Field(description="What the candidates were ranked by.")
    relevance: float = Field(description="Calibrated probability that it helps to answer, 0 to 1.")
    signals: dict[str, float]
    tokens: int
    recorded: bool = Field(
        default=True,
        description="False of a candidate that an explanation by the log rebuilds; its scores are rebuilt "
        "of all.",
    )
    forgotten: bool = Field(description="True if the record is gone; then `record` is null.")
    record: RecordOut | None


class AnalysisOut(BaseModel):
    """How a question was read, and what its recall went by."""

    model_config = example(**ANALYSIS)

    text: str | None = Field(
        description="What was looked up by meaning, after the turn before where that was needed. Null, as "
        "`words` and `time`, of an earlier recall whose exchange was not captured or is forgotten."
    )
    words: list[str] | None = Field(description="What was looked up by words, as the index has them.")
    before: bool = Field(description="Whether the turn before was looked up with the question.")
    time: list[str] | None = Field(description="The times that are asked about, in the user's own days.")
    timezone: str
    model: str = Field(description="Whose tokens were counted; empty where none was named.")
    budget: int = Field(description="Most tokens of the block.")
    budget_from: BudgetFrom = Field(description="The smallest bound's origin.")
    floor: float = Field(description="Relevance that the best candidate had to reach.")
    floor_from: Literal["settings", "embedder"] = Field(
        description="`embedder`: the value that its relevance model was fitted to."
    )

    @classmethod
    def of(cls, conditions: types.Conditions, read: Analysis | None) -> AnalysisOut:
        """What the recall went by, and the question where it is known."""
        fields = {name: getattr(conditions, name) for name in conditions.__struct_fields__}
        return cls(
            text=read.text if read else None,
            words=list(read.words) if read else None,
            time=list(read.time) if read else None,
            **fields,
        )


class RecallOut(BaseModel):
    """What a recall would put into a prompt, and why."""

    model_config = example(
        id=TRACE_ID,
        status="ok",
        reasons=[],
        milliseconds=6.1,
        tokens=31,
        block="…",
        analysis=ANALYSIS,
        items=[SCORES],
    )

    id: str = Field(description="For GET /memory/v1/recalls/{id}, for 24 hours at most.")
    status: Status
    reasons: list[str] = Field(description="Why the status is not `ok`.")
    milliseconds: float
    tokens: int = Field(description="Of the block.")
    block: str = Field(
        description="The text that goes into the prompt; empty where nothing was worth recalling."
    )
    analysis: AnalysisOut
    items: list[ItemOut]


class TraceOut(BaseModel):
    """An earlier recall, explained; what was forgotten meanwhile shows no text.

    By its trace texts are those of now. By the log, once there is no trace any more, they are those of then;
    recorded are the block, what was shown, and the signals of that and of the best of the rest. All else is
    rebuilt over what memory knew then, with the weights of now.
    """

    model_config = example(
        id=TRACE_ID,
        at=WHEN,
        user="alice",
        agent="default",
        session="5a1c",
        status="ok",
        reasons=[],
        milliseconds=6.1,
        tokens=31,
        source="trace",
        block="…",
        analysis=ANALYSIS,
        items=[SCORES],
        forgetting=None,
    )

    id: str
    at: datetime
    user: str
    agent: str
    session: str
    status: Status
    reasons: list[str]
    milliseconds: float
    tokens: int
    source: Literal["trace", "log"] = Field(description="What it is told by.")
    block: str | None = Field(
        description="The words that stood in the prompt; null where no call had them, and where something "
        "that they show is forgotten."
    )
    analysis: AnalysisOut
    items: list[ItemOut]
    forgetting: ForgettingOut | None = Field(
        description="What the exchange asked to forget; null where nothing, and until the worker has read it."
    )


class FeedbackOut(BaseModel):
    """What somebody thinks of a recall is in the log."""

    model_config = example(id=MEMORY_ID, recall=TRACE_ID)

    id: str = Field(description="Of the event; the same where the same was said before.")
    recall: str


class ForgottenOut(BaseModel):
    """What became of a deletion."""

    model_config = example(id=MEMORY_ID, done=True, pending=[], receipt=MEMORY_ID)

    id: str
    done: bool = Field(description="True if it is gone everywhere.")
    pending: list[str] = Field(
        description="Stores that are down: it is unreachable already, and the worker removes it there later."
    )
    receipt: str = Field(description="Id of its receipt, `GET /erasures/{id}`.")

    @classmethod
    def of(cls, id: str, forgotten: Forgotten) -> ForgottenOut:
        """The engine's answer as the API shows it."""
        pending = list(forgotten.pending)
        return cls(id=id, done=forgotten.done, pending=pending, receipt=forgotten.receipt)
