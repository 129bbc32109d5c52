"""The views: what the events of a user add up to, folded inside the append's own transaction.

Every fold is a function of the event and of what was folded before, so dropping the views and folding the
log again gives the same rows, for everything that was not redacted meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import msgspec

from hearth.memory.events.codec import micros
from hearth.memory.events.folds.common import VIEWS, as_json
from hearth.memory.events.folds.exchanges import (
    fold_enriched,
    fold_page_closed,
    fold_page_forgotten,
    fold_page_moved,
    fold_page_outdated,
    fold_page_segmented,
    fold_step,
    fold_summarised,
    fold_switched,
)
from hearth.memory.events.folds.knowledge import fold_loaded, fold_refused, fold_removed
from hearth.memory.events.folds.memories import fold_memory, fold_memory_forgotten, fold_withdrawn
from hearth.memory.events.folds.operators import (
    fold_erased,
    fold_erasure,
    fold_lifted,
    fold_placed,
    fold_policy,
    fold_session_forgotten,
    fold_tenant_erased,
)
from hearth.memory.events.folds.readings import (
    fold_asked,
    fold_asked_ends,
    fold_drawn,
    fold_judged,
    fold_read,
    fold_replied,
)
from hearth.memory.events.folds.segments import fold_evicted, fold_segment, fold_visited
from hearth.memory.events.kinds import (
    ActDone,
    ErasureChanged,
    Event,
    ExchangeEnriched,
    ExtractionReplied,
    ForgetAsked,
    ForgetDone,
    ForgetUndone,
    HoldLifted,
    HoldPlaced,
    KnowledgeLoaded,
    KnowledgeRemoved,
    MemoryAdded,
    MemoryChanged,
    MemoryForgotten,
    MemoryWithdrawn,
    PageClosed,
    PageForgotten,
    PageMoved,
    PageOutdated,
    PageRead,
    PageSegmented,
    Payload,
    PolicyChanged,
    RecallDrawn,
    RecallJudged,
    SegmentChanged,
    SegmentDue,
    SegmentEvicted,
    SegmentPinned,
    SegmentPromoted,
    SegmentVisited,
    SessionForgotten,
    SessionSummarised,
    SessionSwitched,
    StepCaptured,
    SystemRefused,
    TenantErased,
    UserErased,
)
from hearth.memory.events.sql import Database
from hearth.memory.types import Metadata

_REBUILD_ROWS = 500
_TOMBSTONES = (
    *(MemoryForgotten, PageForgotten, SessionForgotten, ForgetUndone, ForgetDone),
    *(UserErased, TenantErased),
)
"""What can be said of a record that is forgotten."""


def subject_of(payload: Payload) -> str:
    """The exchange, page, memory or other record that an event is about; empty where it is none or many."""
    match payload:
        case StepCaptured(step=step):
            return step.exchange
        case (
            ExchangeEnriched(exchange=exchange)
            | RecallDrawn(exchange=exchange)
            | ForgetAsked(exchange=exchange)
            | ForgetUndone(exchange=exchange)
            | ForgetDone(exchange=exchange)
        ):
            return exchange
        case PageClosed(page=page):
            return page.id
        case (
            PageMoved(page=page_id)
            | PageOutdated(page=page_id)
            | PageSegmented(page=page_id)
            | PageForgotten(page=page_id)
            | PageRead(page=page_id)
        ):
            return page_id
        case SegmentChanged(segment=whole) | KnowledgeLoaded(document=whole):
            return whole.id
        case (
            SegmentVisited(segment=id)
            | SegmentPromoted(segment=id)
            | SegmentPinned(segment=id)
            | SegmentDue(segment=id)
            | SegmentEvicted(segment=id)
            | KnowledgeRemoved(document=id)
        ):
            return id
        case MemoryAdded(memory=memory) | MemoryChanged(memory=memory):
            return memory.id
        case MemoryForgotten(memory=memory_id) | MemoryWithdrawn(memory=memory_id):
            return memory_id
        case _:
            return _managed(payload)


def _managed(payload: Payload) -> str:
    """What something that an operator did is about."""
    match payload:
        case ErasureChanged(receipt=receipt):
            return receipt.id
        case HoldPlaced(user=user) | HoldLifted(user=user):
            return user
        case _:
            return ""


def refused(event: Event, occurred: datetime, forgotten: int | None) -> bool:
    """True if the event is about something `forgotten` at that moment (in microseconds), so that its content
    must not be stored.

    A new step of a forgotten exchange whose request began after the forgetting is a new exchange of that id.
    """
    if forgotten is None or isinstance(event.payload, _TOMBSTONES):
        return False
    return not (isinstance(event.payload, StepCaptured) and micros(occurred) > forgotten)


def fold(db: Database, user: int, event: Event) -> None:
    """Bring the views up to date with an event that has its `seq` and `recorded_at`."""
    db.execute("UPDATE users SET seen = 1 WHERE id = ? AND seen = 0", (user,))
    _FOLDS[type(event.payload)](db, user, event, event.payload)
    if any(labels := labels_of(event.payload)):
        trace, tags, metadata = labels
        db.execute(
            "INSERT INTO labels VALUES (?, ?, ?, ?, ?)",
            (event.seq, user, trace, as_json(tags), as_json(metadata)),
        )


def labels_of(payload: Payload) -> tuple[str, Sequence[str], Metadata]:
    """By what an event is found beside its envelope: the recall that it is about, tags and metadata."""
    match payload:
        case StepCaptured(step=step):
            return step.trace, step.tags, {}
        case RecallJudged(trace=trace) | RecallDrawn(trace=trace):
            return trace, (), {}
        case MemoryAdded(memory=memory) | MemoryChanged(memory=memory):
            return "", memory.tags, memory.metadata
        case _:
            return "", (), {}


def rebuild(db: Database, events: Callable[[int, int], Sequence[tuple[int, Event]]]) -> None:
    """Empty the views and fold the log again, `events(after, limit)` at a time, in the open transaction."""
    db.reset_views(VIEWS)
    db.execute("UPDATE users SET generation = 1, seen = 0")
    after = 0
    while batch := events(after, _REBUILD_ROWS):
        for user, event in batch:
            fold(db, user, event)
        after = batch[-1][1].seq
    fold_tombstones(db)


def fold_tombstones(db: Database) -> None:
    """Keep the place of each forgotten exchange in its session's tree: last, since an erasure on the way
    removes all of its user's.
    """
    db.execute(
        "INSERT INTO exchanges"
        " SELECT user_id, subject, session, parent, 'forgotten', occurred, 0, 0, seq, ''"
        " FROM events e WHERE kind = 'step.captured' AND subject <> ''"
        " AND NOT EXISTS (SELECT 1 FROM payloads p WHERE p.seq = e.seq) ORDER BY seq"
        " ON CONFLICT (user_id, id) DO NOTHING"
    )


def _fold_nothing(
    db: Database, user: int, event: Event, payload: SegmentPromoted | SegmentPinned | SegmentDue | ActDone
) -> None:
    """The state that comes with it, or follows, says so; or it is for whoever reads the log."""


_FOLDS: dict[type[msgspec.Struct], Callable[[Database, int, Event, Any], None]] = {
    StepCaptured: fold_step,
    ExchangeEnriched: fold_enriched,
    PageClosed: fold_page_closed,
    PageMoved: fold_page_moved,
    PageOutdated: fold_page_outdated,
    PageSegmented: fold_page_segmented,
    SegmentChanged: fold_segment,
    SegmentVisited: fold_visited,
    SegmentPromoted: _fold_nothing,
    SegmentPinned: _fold_nothing,
    SegmentDue: _fold_nothing,
    SegmentEvicted: fold_evicted,
    PageForgotten: fold_page_forgotten,
    SessionSwitched: fold_switched,
    SessionSummarised: fold_summarised,
    ForgetAsked: fold_asked,
    ForgetUndone: fold_asked_ends,
    ForgetDone: fold_asked_ends,
    RecallJudged: fold_judged,
    RecallDrawn: fold_drawn,
    MemoryAdded: fold_memory,
    MemoryChanged: fold_memory,
    MemoryForgotten: fold_memory_forgotten,
    MemoryWithdrawn: fold_withdrawn,
    KnowledgeLoaded: fold_loaded,
    KnowledgeRemoved: fold_removed,
    PolicyChanged: fold_policy,
    ExtractionReplied: fold_replied,
    PageRead: fold_read,
    SystemRefused: fold_refused,
    UserErased: fold_erased,
    SessionForgotten: fold_session_forgotten,
    TenantErased: fold_tenant_erased,
    ErasureChanged: fold_erasure,
    HoldPlaced: fold_placed,
    HoldLifted: fold_lifted,
    ActDone: _fold_nothing,
}
