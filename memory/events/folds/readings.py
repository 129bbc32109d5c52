"""Folds of what models read, what recalls showed, and what was asked to be forgotten."""

from __future__ import annotations

from hearth.memory.events.codec import micros
from hearth.memory.events.folds.common import as_json, micros_or_none
from hearth.memory.events.folds.stripping import is_forgotten, keep_readings, strip, strip_answers
from hearth.memory.events.kinds import (
    Event,
    ExtractionReplied,
    ForgetAsked,
    ForgetDone,
    ForgetUndone,
    PageRead,
    RecallDrawn,
    RecallJudged,
)
from hearth.memory.events.sql import Database


def fold_judged(db: Database, user: int, event: Event, payload: RecallJudged) -> None:
    """A note may speak of any item of its recall, and is found by each of them."""
    if payload.note and payload.ranking is not None:
        records = as_json({item.id for item in payload.ranking.items})
        db.execute("INSERT INTO injections VALUES (?, ?, ?)", (event.seq, user, records))


def fold_drawn(db: Database, user: int, event: Event, payload: RecallDrawn) -> None:
    """Visits of pages that have no segment yet, for the heat of the one that they will join."""
    for item in payload.items:
        db.execute(
            "UPDATE pages SET drawn = drawn + ?, seen = seen + ?, visited = ?"
            " WHERE user_id = ? AND id = ? AND segment IS NULL",
            (int(item.used), int(not item.used), micros(event.occurred_at), user, item.id),
        )


def fold_replied(db: Database, user: int, event: Event, payload: ExtractionReplied) -> None:
    """Found by each of its pages; without text where one was forgotten while the model was asked."""
    _spend(db, event, payload)
    if not payload.text:
        return
    db.execute("INSERT INTO injections VALUES (?, ?, ?)", (event.seq, user, as_json({*payload.pages})))
    if any(is_forgotten(db, user, page) for page in payload.pages):
        strip(db, event.seq)


def _spend(db: Database, event: Event, payload: ExtractionReplied) -> None:
    """By the day in UTC on which it was recorded. It says nothing of any user, and so outlives an erasure."""
    day = (event.recorded_at or event.occurred_at).date().isoformat()
    db.execute(
        "INSERT INTO spending AS s VALUES (?, ?, ?, 1, ?, ?, ?)"
        " ON CONFLICT (tenant, day, model) DO UPDATE SET"
        " calls = s.calls + 1, input = s.input + excluded.input, output = s.output + excluded.output,"
        " cost = s.cost + excluded.cost",
        (event.tenant, day, payload.model, payload.usage.input, payload.usage.output, payload.cost or 0.0),
    )


def fold_read(db: Database, user: int, event: Event, payload: PageRead) -> None:
    """Read with its page, by subject; what was forgotten before goes."""
    gone = {one.fact for one in payload.said if is_forgotten(db, user, one.fact)}
    if gone:
        keep_readings(db, event.seq, lambda one: one.fact not in gone)
        strip_answers(db, user, payload.page)


def fold_asked(db: Database, user: int, event: Event, payload: ForgetAsked) -> None:
    """A later one of the same exchange replaces it, unless that one is being waited for."""
    state = "nothing" if payload.until is None else "waiting"
    db.execute(
        "INSERT INTO forgettings AS f VALUES (?, ?, ?, ?, ?) ON CONFLICT (user_id, id) DO UPDATE SET"
        " seq = excluded.seq, until = excluded.until, state = excluded.state WHERE f.state <> 'waiting'",
        (user, payload.exchange, event.seq, micros_or_none(payload.until), state),
    )


def fold_asked_ends(db: Database, user: int, event: Event, payload: ForgetUndone | ForgetDone) -> None:
    """What was asked to be forgotten was brought back, or is forgotten for good."""
    state = "undone" if isinstance(payload, ForgetUndone) else "done"
    db.execute(
        "UPDATE forgettings SET state = ? WHERE user_id = ? AND id = ? AND state = 'waiting'",
        (state, user, payload.exchange),
    )
