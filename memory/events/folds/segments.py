"""Folds of segments and their heat."""

from __future__ import annotations

from hearth.memory.events.folds.common import micros_or_none
from hearth.memory.events.folds.stripping import redact
from hearth.memory.events.kinds import (
    Event,
    SegmentChanged,
    SegmentEvicted,
    SegmentVisited,
)
from hearth.memory.events.sql import Database


def fold_segment(db: Database, user: int, event: Event, payload: SegmentChanged) -> None:
    """The newest state is all that counts, and may lack what an older one knew of a forgotten page."""
    segment, heat = payload.segment, payload.heat
    older = (
        "SELECT seq FROM events WHERE user_id = ? AND subject = ? AND seq < ? AND kind = 'segment.changed'"
    )
    redact(db, older, (user, segment.id, event.seq))
    db.execute(
        "INSERT INTO segments VALUES (?, ?, ?, ?, 'live', ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (user_id, id) DO UPDATE SET"
        " seq = excluded.seq, state = excluded.state, level = excluded.level, touched = excluded.touched,"
        " fade = excluded.fade, episode = excluded.episode, changed = excluded.changed,"
        " counted_by = excluded.counted_by",
        (
            *(user, segment.id, event.seq, segment.owner),
            *(heat.level, micros_or_none(heat.touched), heat.fade_hours, segment.episode, event.seq),
            heat.counted_by,
        ),
    )


def spoil_segment(db: Database, user: int, event: Event, page: str) -> None:
    """The state of a segment says something of each of its pages: without it until it is made anew."""
    of_page = "(SELECT segment FROM pages WHERE user_id = ? AND id = ? AND segment IS NOT NULL)"
    states = f"SELECT seq FROM segments WHERE user_id = ? AND id IN {of_page}"
    redact(db, states, (user, user, page))
    db.execute(
        "UPDATE segments SET state = CASE state WHEN 'live' THEN 'spoiled' WHEN 'evicted' THEN 'lost'"
        f" ELSE state END, changed = ? WHERE user_id = ? AND id IN {of_page}",
        (event.seq, user, user, page),
    )


def fold_visited(db: Database, user: int, event: Event, payload: SegmentVisited) -> None:
    """The heat of a segment with a visit."""
    heat = payload.heat
    db.execute(
        "UPDATE segments SET level = ?, touched = ?, fade = ?, counted_by = ?, changed = ?"
        " WHERE user_id = ? AND id = ?",
        (
            *(heat.level, micros_or_none(heat.touched), heat.fade_hours, heat.counted_by, event.seq),
            *(user, payload.segment),
        ),
    )


def fold_evicted(db: Database, user: int, event: Event, payload: SegmentEvicted) -> None:
    """A segment left mid-term memory, its pages with it."""
    named = (user, payload.segment)
    db.execute(
        "UPDATE segments SET state = 'evicted', changed = ? WHERE user_id = ? AND id = ?", (event.seq, *named)
    )
    db.execute(
        "UPDATE pages SET state = 'evicted' WHERE user_id = ? AND segment = ? AND state = 'active'", named
    )
