"""Folds of what was said: steps, exchanges, sessions and pages."""

from __future__ import annotations

from datetime import timedelta

from hearth.memory.events.codec import micros
from hearth.memory.events.folds.common import CLOCK_SKEW, NO_SEGMENT, as_json
from hearth.memory.events.folds.segments import spoil_segment
from hearth.memory.events.folds.stripping import forget, is_forgotten, redact, strip, summary
from hearth.memory.events.kinds import (
    Event,
    ExchangeEnriched,
    PageClosed,
    PageForgotten,
    PageMoved,
    PageOutdated,
    PageSegmented,
    SessionSummarised,
    SessionSwitched,
    StepCaptured,
    scope_of,
)
from hearth.memory.events.sql import Database
from hearth.memory.tiers.short_term import text_size
from hearth.memory.types import SEVEN_DAYS, Step

_TAIL_LIFE = SEVEN_DAYS // timedelta(microseconds=1)


def fold_step(db: Database, user: int, event: Event, payload: StepCaptured) -> None:
    """A step makes or goes on with its exchange, its session, and the keys that find the next call."""
    step = payload.step
    at = micros(min(step.finished_at, (event.recorded_at or event.occurred_at) + CLOCK_SKEW))
    _fold_exchange(db, user, event, step, at)
    _fold_session(db, user, event, step, at)
    _fold_keys(db, user, event, step, at)
    if records := {*step.injected, *(step.block.items if step.block else ())}:
        db.execute("INSERT INTO injections VALUES (?, ?, ?)", (event.seq, user, as_json(records)))


def _fold_keys(db: Database, user: int, event: Event, step: Step, at: int) -> None:
    tails = step.tails
    ends = (tails.last_pair, tails.last_two_pairs, tails.user_texts, tails.chain)
    keys = (step.retry_key, step.response_id, *ends)
    if not any(keys):
        return
    place = (event.session, step.exchange, event.agent, step.isolated)
    db.execute(
        "INSERT INTO step_keys VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (event.seq, user, *place, at, step.outcome, *keys),
    )
    db.trim_step_keys(at - _TAIL_LIFE)


def fold_switched(db: Database, user: int, event: Event, payload: SessionSwitched) -> None:
    """Its tails lead later calls to the session, as those of a captured step do."""
    db.execute(
        "INSERT INTO switched VALUES (?, ?, ?, ?) ON CONFLICT (user_id, session) DO UPDATE SET"
        " mode = excluded.mode, seq = excluded.seq",
        (user, event.session, payload.mode, event.seq),
    )
    tails, at = payload.tails, micros(event.occurred_at)
    ends = (tails.last_pair, tails.last_two_pairs, tails.user_texts, tails.chain)
    if any((payload.response_id, *ends)):
        place = (event.session, payload.exchange, event.agent, payload.isolated)
        db.execute(
            "INSERT INTO step_keys VALUES (?, ?, ?, ?, ?, ?, ?, 'complete', '', ?, ?, ?, ?, ?)",
            (event.seq, user, *place, at, payload.response_id, *ends),
        )


def fold_summarised(db: Database, user: int, event: Event, payload: SessionSummarised) -> None:
    """The newest one is all that counts. Found by each of its pages, without those forgotten meanwhile."""
    named = (user, payload.owner, payload.session)
    older = "SELECT seq FROM summaries WHERE user_id = ? AND owner = ? AND session = ?"
    redact(db, older, named)
    db.execute(
        "INSERT INTO summaries VALUES (?, ?, ?, ?, ?) ON CONFLICT (user_id, owner, session) DO UPDATE SET"
        " seq = excluded.seq, lines = excluded.lines",
        (*named, event.seq, summary(db, user, (event.tenant, event.user), payload)),
    )
    if not payload.lines:
        return
    pages = {line.page for line in payload.lines}
    db.execute("INSERT INTO injections VALUES (?, ?, ?)", (event.seq, user, as_json(pages)))
    if any(is_forgotten(db, user, page) for page in pages):
        strip(db, event.seq)


def _dead(step: Step) -> bool:
    """True for a step that can never make a page: failed, or cut off before anything was visible."""
    return step.outcome == "failed" or (step.outcome == "partial" and not step.reply_text and not step.tools)


def _fold_exchange(db: Database, user: int, event: Event, step: Step, at: int) -> None:
    """A step of an exchange that was forgotten before begins it anew."""
    named = (user, step.exchange)
    db.execute("DELETE FROM exchanges WHERE user_id = ? AND id = ? AND state = 'forgotten'", named)
    db.execute("DELETE FROM forgotten WHERE user_id = ? AND id = ?", named)
    parent = event.parent if event.parent != step.exchange else None
    state = "failed" if _dead(step) else "open"
    started = micros(event.occurred_at)
    db.execute(
        "INSERT INTO exchanges AS x VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (user_id, id) DO UPDATE SET"
        " parent = coalesce(x.parent, excluded.parent),"
        " state = CASE excluded.state WHEN 'failed' THEN x.state ELSE excluded.state END,"
        " started = CASE WHEN excluded.started < x.started THEN excluded.started ELSE x.started END,"
        " last_step = CASE WHEN excluded.finished < x.finished THEN x.last_step ELSE excluded.last_step END,"
        " finished = CASE WHEN excluded.finished < x.finished THEN x.finished ELSE excluded.finished END",
        (
            *(*named, event.session, parent, state, started, at, event.seq, event.seq),
            scope_of(event, step).own_agent,
        ),
    )


def _fold_session(db: Database, user: int, event: Event, step: Step, at: int) -> None:
    """The session has one exchange more where this is the first step of one."""
    db.execute(
        "INSERT INTO sessions AS s (user_id, id, agent, exchanges, started, last, first, own_agent)"
        " VALUES (?1, ?2, ?3, 1, ?4, ?5, ?6, ?7)"
        " ON CONFLICT (user_id, id, own_agent) DO UPDATE SET exchanges = s.exchanges"
        " + (SELECT count(*) FROM exchanges x WHERE x.user_id = ?1 AND x.id = ?8 AND x.first = ?6),"
        " started = CASE WHEN excluded.started < s.started THEN excluded.started ELSE s.started END,"
        " last = CASE WHEN excluded.last < s.last THEN s.last ELSE excluded.last END",
        (
            *(user, event.session, event.agent, micros(event.occurred_at), at, event.seq),
            *(scope_of(event, step).own_agent, step.exchange),
        ),
    )


def fold_enriched(db: Database, user: int, event: Event, payload: ExchangeEnriched) -> None:
    """Read with its exchange, by subject; there is nothing to fold."""


def fold_page_closed(db: Database, user: int, event: Event, payload: PageClosed) -> None:
    """The page of an exchange, whole; it takes the place of the one before."""
    page = payload.page
    db.execute(
        "INSERT INTO pages VALUES (?, ?, ?, ?, ?, NULL, ?, ?, ?, ?, 0, 0, NULL)"
        " ON CONFLICT (user_id, id) DO UPDATE SET"
        " seq = excluded.seq, state = excluded.state, occurred = excluded.occurred, size = excluded.size",
        (
            *(user, page.id, event.seq, page.state, micros(page.occurred_at)),
            *(page.scope.owner, page.scope.session, text_size(page)),
            None if page.kind == "dialogue" and text_size(page) else NO_SEGMENT,
        ),
    )
    state = "closed" if page.state == "active" else "inactive"
    db.execute("UPDATE exchanges SET state = ? WHERE user_id = ? AND id = ?", (state, user, page.id))


def fold_page_moved(db: Database, user: int, event: Event, payload: PageMoved) -> None:
    """A page left or re-entered the live branch."""
    db.execute("UPDATE pages SET state = ? WHERE user_id = ? AND id = ?", (payload.state, user, payload.page))
    state = "closed" if payload.state == "active" else "inactive"
    db.execute(
        "UPDATE exchanges SET state = ? WHERE user_id = ? AND id = ? AND state IN ('closed', 'inactive')",
        (state, user, payload.page),
    )


def fold_page_outdated(db: Database, user: int, event: Event, payload: PageOutdated) -> None:
    """Where the words are that hold no more."""
    db.execute("UPDATE pages SET outdated = ? WHERE user_id = ? AND id = ?", (event.seq, user, payload.page))


def fold_page_segmented(db: Database, user: int, event: Event, payload: PageSegmented) -> None:
    """Which segment a page is in."""
    db.execute(
        "UPDATE pages SET segment = ? WHERE user_id = ? AND id = ?", (payload.segment, user, payload.page)
    )


def fold_page_forgotten(db: Database, user: int, event: Event, payload: PageForgotten) -> None:
    """An exchange is forgotten, with all that its words stand in."""
    forget(db, user, event, payload.page)
    spoil_segment(db, user, event, payload.page)
    db.execute("DELETE FROM pages WHERE user_id = ? AND id = ?", (user, payload.page))
    named = (user, payload.page)
    of = "SELECT session, own_agent FROM exchanges WHERE user_id = ? AND id = ? AND state <> 'forgotten'"
    session = db.execute(of, named).fetchone()
    db.execute(
        "UPDATE exchanges SET state = 'forgotten', finished = 0, last_step = 0, own_agent = ''"
        " WHERE user_id = ? AND id = ?",
        named,
    )
    if session is None:
        return
    live = (
        "FROM exchanges x WHERE x.user_id = ?1 AND x.session = s.id AND x.own_agent = s.own_agent"
        " AND x.state <> 'forgotten'"
    )
    here = "user_id = ?1 AND id = ?2 AND own_agent = ?3"
    db.execute(
        "UPDATE sessions AS s SET (exchanges, started, last, first) ="
        " (SELECT count(*), coalesce(min(x.started), 0), coalesce(max(x.finished), 0),"
        f" coalesce(min(x.first), 0) {live}) WHERE {here}",
        (user, *session),
    )
    db.execute(f"DELETE FROM sessions WHERE {here} AND exchanges = 0", (user, *session))
