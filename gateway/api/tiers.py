"""Tiers: what stands in each tier of a user's memory, and what moved between them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Self

from fastapi import APIRouter, Query
from msgspec import structs
from pydantic import BaseModel, Field

from hearth.gateway.api.access import AdminKey, Caller, Reader, TheEngine, Writer, note_write
from hearth.gateway.api.door import KeyedRoute
from hearth.gateway.api.fields import MAX_LIMIT
from hearth.gateway.api.shapes import MEMORY_ID, WHEN, example
from hearth.memory import crowding, look
from hearth.memory.engine import Engine
from hearth.memory.tiers.heat import warmth
from hearth.memory.tiers.life import LifePolicy
from hearth.memory.tiers.limits import Limits
from hearth.memory.tiers.overflow import BYTES_PER_TOKEN
from hearth.memory.types import Segment

router = APIRouter(tags=["tiers"], route_class=KeyedRoute)

SEGMENT_ID = "5e2f0c1d7a9b45d88c3e6f7081920a3b"

SEGMENT: dict[str, Any] = {
    "id": SEGMENT_ID,
    "heat": 3.21,
    "words": ["soup", "leek", "potatoes", "recipe", "salt"],
    "pages": 4,
    "bytes": 1184,
    "opened_at": WHEN,
    "last_at": WHEN,
    "closed": False,
    "pinned": False,
    "promoted": 3,
    "episode": MEMORY_ID,
}
SHORT_TERM: dict[str, Any] = {
    "pages": 6,
    "pages_limit": 10,
    "bytes": 4410,
    "tokens": 1102,
    "tokens_limit": 8000,
    "sessions": 2,
    "summaries": 1,
    "oldest": WHEN,
}
MID_TERM: dict[str, Any] = {
    "segments": 17,
    "segments_limit": 2000,
    "pages": 61,
    "bytes": 40210,
    "evicted": 0,
    "promotion": 5.0,
    "items": [SEGMENT],
}
LONG_TERM = {"fact": 12, "persona": 5, "episode": 4, "knowledge": 0, "superseded": 3}
FLOW = {
    "days": 7,
    "pages_moved": 9,
    "visits": 14,
    "promoted": 1,
    "evicted": 0,
    "memories_added": 5,
    "pages_moved_ever": 61,
}


class ShortTermOut(BaseModel):
    """Short-term memory: the latest pages, which no segment has yet."""

    model_config = example(**SHORT_TERM)

    pages: int
    pages_limit: int = Field(description="Of the policy: beyond it the oldest move on.")
    bytes: int = Field(description="Of their texts.")
    tokens: int = Field(description="About as many, by four bytes each.")
    tokens_limit: int
    sessions: int = Field(description="Conversations that they are of.")
    summaries: int = Field(description="Conversations of which something has left, summed up.")
    oldest: datetime | None = Field(description="When the first of them was said; null where there is none.")


class SegmentOut(BaseModel):
    """A segment of mid-term memory: pages on one topic."""

    model_config = example(**SEGMENT)

    id: str
    heat: float = Field(description="Now: of recalls, pages and the last touch, all of which fade.")
    words: list[str] = Field(description="Its leading keywords, as its pages write them.")
    pages: int
    bytes: int
    opened_at: datetime = Field(description="When its first page was said.")
    last_at: datetime = Field(description="When its latest page was said.")
    closed: bool = Field(description="True once its topic has rested; a page on it opens it again.")
    pinned: bool
    promoted: int = Field(description="Pages that it had when it was summed up last; 0: it never was.")
    episode: str | None = Field(description="Id of the memory that sums it up.")


class MidTermOut(BaseModel):
    """Mid-term memory: the live segments, the hottest first."""

    model_config = example(**MID_TERM)

    segments: int
    segments_limit: int | None = Field(description="Of the policy: beyond it the coldest leave. Null: none.")
    pages: int
    bytes: int
    evicted: int = Field(description="Segments that have left.")
    promotion: float = Field(description="Heat from which a segment is summed up.")
    items: list[SegmentOut] = Field(description="The hottest ones, up to `limit`.")


class LongTermOut(BaseModel):
    """Long-term memory: what holds, by kind, and what has been closed or replaced."""

    model_config = example(**LONG_TERM)

    fact: int
    persona: int
    episode: int
    knowledge: int
    superseded: int


class FlowOut(BaseModel):
    """What moved between the tiers in the last days; of a very busy user only the latest is counted."""

    model_config = example(**FLOW)

    days: int
    pages_moved: int = Field(description="From short-term memory into segments.")
    visits: int = Field(description="Recalls that warmed a segment.")
    promoted: int = Field(description="Segments that were hot, and so were summed up.")
    evicted: int = Field(description="Segments that left.")
    memories_added: int
    pages_moved_ever: int = Field(description="Pages in segments, those of evicted ones included.")


class TiersOut(BaseModel):
    """All tiers of one user's memory."""

    model_config = example(
        user="alice",
        agent="default",
        at=WHEN,
        short_term=SHORT_TERM,
        mid_term=MID_TERM,
        long_term=LONG_TERM,
        flow=FLOW,
    )

    user: str
    agent: str
    at: datetime
    short_term: ShortTermOut
    mid_term: MidTermOut
    long_term: LongTermOut
    flow: FlowOut


@router.get("/tiers")
async def get_tiers(
    caller: Reader,
    engine: TheEngine,
    limit: Annotated[int, Query(ge=1, le=MAX_LIMIT, description="Segments to show.")] = 20,
    days: Annotated[int, Query(ge=1, le=366, description="Of the flow.")] = 7,
) -> TiersOut:
    """Say what stands in short-term, mid-term and long-term memory, and what moved between them lately.

    Pages and segments are the caller's: those that a user's isolated agents have of their own are shown to
    these agents' keys.
    """
    scope = caller.scope()
    policy = engine.policies.of(scope.tenant)
    now = engine.clock.now()
    found = await look.tiers(engine.mid_term, scope, policy.heat, now, limit=limit, days=days)
    standing = found.standing
    return TiersOut(
        user=scope.user,
        agent=scope.agent,
        at=now,
        short_term=_short_term(found, policy),
        mid_term=MidTermOut(
            segments=len(standing.heats),
            segments_limit=policy.limits.segments,
            pages=standing.pages,
            bytes=standing.pages_bytes,
            evicted=standing.evicted,
            promotion=policy.heat.promotion,
            items=[_segment(topic) for topic in found.topics],
        ),
        long_term=LongTermOut(
            **{name: standing.memories.get(name, (0, 0))[0] for name in LONG_TERM if name != "superseded"},
            superseded=sum(closed for _, closed in standing.memories.values()),
        ),
        flow=_flow(found, days),
    )


class PinOut(BaseModel):
    """What was asked of a segment."""

    model_config = example(id=SEGMENT_ID, pinned=True)

    id: str
    pinned: bool = Field(description="Of the segment within a moment, when the worker has seen to it.")


@router.put("/segments/{id}/pin")
async def pin_segment(id: str, caller: Writer, engine: TheEngine) -> PinOut:
    """Keep a live segment whatever its heat: it counts among the segments, but is never evicted."""
    return await _pin(caller, engine, id, pinned=True)


@router.delete("/segments/{id}/pin")
async def unpin_segment(id: str, caller: Writer, engine: TheEngine) -> PinOut:
    """Let a segment's heat decide again."""
    return await _pin(caller, engine, id, pinned=False)


async def _pin(caller: Caller, engine: Engine, id: str, *, pinned: bool) -> PinOut:
    scope = caller.scope()
    await note_write(engine, caller, scope, f"{'pin' if pinned else 'unpin'} the segment {id}")
    await engine.pin_segment(scope, id, pinned=pinned)
    return PinOut(id=id, pinned=pinned)


class EvictionOut(BaseModel):
    """A segment that would be evicted now, and why."""

    model_config = example(id=SEGMENT_ID, heat=0.02, pages=4, bytes=1184, last_at=WHEN, reason="segments")

    id: str
    heat: float
    pages: int
    bytes: int
    last_at: datetime
    reason: str = Field(description="The limit for which it would go.")

    @classmethod
    def of(cls, segment: Segment, heat: float, reason: str, **whose: str) -> Self:
        """The segment as the API shows it."""
        return cls(
            id=segment.id,
            heat=heat,
            pages=segment.pages,
            bytes=segment.size,
            last_at=segment.last_at,
            reason=reason,
            **whose,
        )


class EvictionsOut(BaseModel):
    """What the limits would let go of now; nothing is."""

    items: list[EvictionOut] = Field(description="The coldest first.")


class TenantEvictionOut(EvictionOut):
    """A segment of any user that would be evicted now, and why."""

    model_config = example(
        user="alice", id=SEGMENT_ID, heat=0.02, pages=4, bytes=1184, last_at=WHEN, reason="tenant bytes"
    )

    user: str


class TenantEvictionsOut(BaseModel):
    """What age and the limits over all users would let go of now; nothing is."""

    items: list[TenantEvictionOut] = Field(description="The longest untouched first, then the coldest.")


def _with(limits: Limits, **given: float | None) -> Limits:
    """The limits with those that are given in place of theirs."""
    return structs.replace(limits, **{name: one for name, one in given.items() if one is not None})


@router.get("/tenant/evictions")
async def try_tenant_evictions(
    key: AdminKey,
    engine: TheEngine,
    segments: Annotated[int | None, Query(ge=1, description="In place of `limits.tenant_segments`.")] = None,
    pages: Annotated[int | None, Query(ge=1, description="In place of `limits.tenant_pages`.")] = None,
    bytes: Annotated[int | None, Query(ge=1, description="In place of `limits.tenant_bytes`.")] = None,
    days: Annotated[float | None, Query(gt=0, le=36_500, description="In place of `limits.days`.")] = None,
) -> TenantEvictionsOut:
    """Say which segments of all users would be evicted now by age and the limits over all users, or by
    others, and why: 2,000 at most. Nothing is evicted.
    """
    policy, now = engine.policies.of(key.tenant), engine.clock.now()
    limits = _with(policy.limits, tenant_segments=segments, tenant_pages=pages, tenant_bytes=bytes, days=days)
    found = await crowding.due(engine.mid_term, key.tenant, limits, policy.heat, now)
    return TenantEvictionsOut(
        items=[
            TenantEvictionOut.of(
                one.segment, round(warmth(one.heat, now, policy.heat), 4), reason, user=one.user
            )
            for one, reason in found
        ]
    )


@router.get("/evictions")
async def try_evictions(
    caller: Reader,
    engine: TheEngine,
    segments: Annotated[int | None, Query(ge=1, description="In place of `limits.segments`.")] = None,
    pages: Annotated[int | None, Query(ge=1, description="In place of `limits.pages`.")] = None,
    bytes: Annotated[int | None, Query(ge=1, description="In place of `limits.bytes`.")] = None,
    days: Annotated[float | None, Query(gt=0, le=36_500, description="In place of `limits.days`.")] = None,
    session_segments: Annotated[
        int | None, Query(ge=1, description="In place of `limits.session_segments`.")
    ] = None,
) -> EvictionsOut:
    """Say which segments the policy's limits, or others, would evict now, and why. Nothing is evicted."""
    scope = caller.scope()
    policy = engine.policies.of(scope.tenant)
    limits = _with(
        policy.limits,
        segments=segments,
        pages=pages,
        bytes=bytes,
        days=days,
        session_segments=session_segments,
    )
    found = await look.evictions(engine.mid_term, scope, limits, policy.heat, engine.clock.now())
    return EvictionsOut(items=[EvictionOut.of(one.segment, heat, one.reason) for one, heat in found])


def _short_term(found: look.Tiers, policy: LifePolicy) -> ShortTermOut:
    standing = found.standing
    return ShortTermOut(
        pages=standing.waiting,
        pages_limit=policy.short_term.pages,
        bytes=standing.waiting_bytes,
        tokens=standing.waiting_bytes // BYTES_PER_TOKEN,
        tokens_limit=policy.short_term.tokens,
        sessions=standing.sessions,
        summaries=standing.summaries,
        oldest=standing.oldest,
    )


def _segment(topic: look.Topic) -> SegmentOut:
    segment = topic.segment
    return SegmentOut(
        id=segment.id,
        heat=topic.heat,
        words=list(topic.words),
        pages=segment.pages,
        bytes=segment.size,
        opened_at=segment.opened_at,
        last_at=segment.last_at,
        closed=segment.closed,
        pinned=segment.pinned,
        promoted=segment.promoted,
        episode=segment.episode or None,
    )


def _flow(found: look.Tiers, days: int) -> FlowOut:
    lately = found.standing.lately
    return FlowOut(
        days=days,
        pages_moved=lately.get("page.segmented", 0),
        visits=lately.get("segment.visited", 0),
        promoted=lately.get("segment.promoted", 0),
        evicted=lately.get("segment.evicted", 0),
        memories_added=lately.get("memory.added", 0),
        pages_moved_ever=found.standing.moved,
    )
