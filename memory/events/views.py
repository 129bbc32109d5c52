"""The views: what the events of a user add up to, folded inside the append's own transaction.

Every fold is a function of the event and of what was folded before, so dropping the views and folding the
log again gives the same rows, for everything that was not redacted meanwhile.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from hearth.memory.events.codec import decode, encode, micros
from hearth.memory.events.database import VIEWS_VERSION, run_script
from hearth.memory.events.kinds import (
    Event,
    ExchangeEnriched,
    MemoryAdded,
    MemoryChanged,
    MemoryForgotten,
    PageClosed,
    PageForgotten,
    PageMoved,
    Payload,
    StepCaptured,
    UserErased,
)
from hearth.memory.filters import fold_text
from hearth.memory.types import SEVEN_DAYS, Step

CLOCK_SKEW = timedelta(seconds=2)
"""How far ahead of the log's clock a gateway's stamp may be before it is clamped."""

_TAIL_LIFE = SEVEN_DAYS // timedelta(microseconds=1)
_REBUILD_ROWS = 500
_VIEWS = ("forgotten", "step_keys", "exchanges", "sessions", "pages", "injections", "memories")


def subject_of(payload: Payload) -> str:
    """The exchange, page or memory that an event is about; empty for one about the user as a whole."""
    match payload:
        case StepCaptured(step=step):
            return step.exchange
        case ExchangeEnriched(exchange=exchange):
            return exchange
        case PageClosed(page=page):
            return page.id
        case PageMoved(page=page_id) | PageForgotten(page=page_id):
            return page_id
        case MemoryAdded(memory=memory) | MemoryChanged(memory=memory):
            return memory.id
        case MemoryForgotten(memory=memory_id):
            return memory_id
        case UserErased():
            return ""


def refused(db: sqlite3.Connection, user: int, event: Event) -> bool:
    """True if the event is about something forgotten, so that its content must not be stored.

    A new step of a forgotten exchange whose request began after the forgetting is a new exchange of that id.
    """
    if isinstance(event.payload, MemoryForgotten | PageForgotten | UserErased):
        return False
    row = db.execute(
        "SELECT at FROM forgotten WHERE user = ? AND id = ?", (user, subject_of(event.payload))
    ).fetchone()
    if row is None:
        return False
    return not (isinstance(event.payload, StepCaptured) and micros(event.occurred_at) > row[0])


def fold(db: sqlite3.Connection, user: int, event: Event) -> None:
    """Bring the views up to date with an event that has its `seq` and `recorded_at`."""
    db.execute("UPDATE users SET seen = 1 WHERE id = ? AND seen = 0", (user,))
    _FOLDS[type(event.payload)](db, user, event, event.payload)


def rebuild(db: sqlite3.Connection, events: Callable[[int, int], Sequence[tuple[int, Event]]]) -> None:
    """Drop the views and fold the log again, `events(after, limit)` at a time, in the open transaction."""
    for view in _VIEWS:
        db.execute(f"DROP TABLE IF EXISTS {view}")
    run_script(db, "views.sql")
    db.execute("UPDATE users SET generation = 1, seen = 0")
    _fold_tombstones(db)
    after = 0
    while batch := events(after, _REBUILD_ROWS):
        for user, event in batch:
            fold(db, user, event)
        after = batch[-1][1].seq
    db.execute("INSERT OR REPLACE INTO meta VALUES ('views', ?)", (VIEWS_VERSION,))


def _fold_tombstones(db: sqlite3.Connection) -> None:
    """Keep the place of each forgotten exchange in its session's tree."""
    db.execute(
        "INSERT OR IGNORE INTO exchanges"
        " SELECT user, subject, session, parent, 'forgotten', occurred, 0, 0, seq"
        " FROM events e WHERE kind = 'step.captured' AND subject <> ''"
        " AND NOT EXISTS (SELECT 1 FROM payloads p WHERE p.seq = e.seq) ORDER BY seq"
    )


# -- exchanges ---------------------------------------------------------------------------------------------


def _fold_step(db: sqlite3.Connection, user: int, event: Event, payload: StepCaptured) -> None:
    step = payload.step
    at = micros(min(step.finished_at, (event.recorded_at or event.occurred_at) + CLOCK_SKEW))
    new = _fold_exchange(db, user, event, step, at)
    _fold_session(db, user, event, step, at, new=new)
    _fold_keys(db, user, event, step, at)
    if step.block is not None:
        records = _json({*step.injected, *step.block.items})
        db.execute("INSERT INTO injections VALUES (?, ?, ?)", (user, event.seq, records))


def _fold_keys(db: sqlite3.Connection, user: int, event: Event, step: Step, at: int) -> None:
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
    # two a step, oldest first: the table stays at a week's length and no append pays for a long clean-up
    db.execute(
        "DELETE FROM step_keys WHERE seq IN (SELECT seq FROM step_keys ORDER BY seq LIMIT 2) AND at < ?",
        (at - _TAIL_LIFE,),
    )


def _json(value: object) -> str:
    return msgspec.json.encode(value, order="sorted").decode()


def _dead(step: Step) -> bool:
    """True for a step that can never make a page: failed, or cut off before anything was visible."""
    return step.outcome == "failed" or (step.outcome == "partial" and not step.reply_text and not step.tools)


def _fold_exchange(db: sqlite3.Connection, user: int, event: Event, step: Step, at: int) -> bool:
    """Returns True for the exchange's first step, also after it was forgotten."""
    row = db.execute(
        "SELECT state FROM exchanges WHERE user = ? AND id = ?", (user, step.exchange)
    ).fetchone()
    if row is not None and row[0] == "forgotten":
        db.execute("DELETE FROM exchanges WHERE user = ? AND id = ?", (user, step.exchange))
        db.execute("DELETE FROM forgotten WHERE user = ? AND id = ?", (user, step.exchange))
        row = None
    parent = event.parent if event.parent != step.exchange else None
    state = "failed" if _dead(step) else "open"
    started = micros(event.occurred_at)
    if row is None:
        values = (user, step.exchange, event.session, parent, state, started, at, event.seq, event.seq)
        db.execute("INSERT INTO exchanges VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
        return True
    db.execute(
        "UPDATE exchanges SET parent = coalesce(parent, ?),"
        " state = CASE ? WHEN 'failed' THEN state ELSE 'open' END,"
        " started = min(started, ?), last_step = CASE WHEN ? >= finished THEN ? ELSE last_step END,"
        " finished = max(finished, ?) WHERE user = ? AND id = ?",
        (parent, state, started, at, event.seq, at, user, step.exchange),
    )
    return False


def _fold_session(db: sqlite3.Connection, user: int, event: Event, step: Step, at: int, *, new: bool) -> None:
    db.execute(
        "INSERT INTO sessions VALUES (?, ?, ?, ?, 1, ?, ?, ?) ON CONFLICT (user, id) DO UPDATE SET"
        " exchanges = exchanges + ?,"
        " started = min(started, excluded.started), last = max(last, excluded.last)",
        (user, event.session, event.agent, step.isolated, micros(event.occurred_at), at, event.seq, new),
    )


def _fold_enriched(db: sqlite3.Connection, user: int, event: Event, payload: ExchangeEnriched) -> None:
    """Read with its exchange, by subject; there is nothing to fold."""


def _fold_page_closed(db: sqlite3.Connection, user: int, event: Event, payload: PageClosed) -> None:
    page = payload.page
    db.execute(
        "INSERT INTO pages VALUES (?, ?, ?, ?, ?) ON CONFLICT (user, id) DO UPDATE SET"
        " seq = excluded.seq, state = excluded.state, occurred = excluded.occurred",
        (user, page.id, event.seq, page.state, micros(page.occurred_at)),
    )
    state = "closed" if page.state == "active" else "inactive"
    db.execute("UPDATE exchanges SET state = ? WHERE user = ? AND id = ?", (state, user, page.id))


def _fold_page_moved(db: sqlite3.Connection, user: int, event: Event, payload: PageMoved) -> None:
    db.execute("UPDATE pages SET state = ? WHERE user = ? AND id = ?", (payload.state, user, payload.page))
    state = "closed" if payload.state == "active" else "inactive"
    db.execute(
        "UPDATE exchanges SET state = ? WHERE user = ? AND id = ? AND state IN ('closed', 'inactive')",
        (state, user, payload.page),
    )


def _fold_page_forgotten(db: sqlite3.Connection, user: int, event: Event, payload: PageForgotten) -> None:
    _forget(db, user, event, payload.page)
    db.execute("DELETE FROM pages WHERE user = ? AND id = ?", (user, payload.page))
    row = db.execute(
        "UPDATE exchanges SET state = 'forgotten', finished = 0, last_step = 0"
        " WHERE user = ? AND id = ? AND state <> 'forgotten' RETURNING session",
        (user, payload.page),
    ).fetchone()
    if row is not None:
        _recount_session(db, user, row[0])


def _recount_session(db: sqlite3.Connection, user: int, session: str) -> None:
    live = "FROM exchanges WHERE user = ?1 AND session = ?2 AND state <> 'forgotten'"
    db.execute(
        f"UPDATE sessions SET (exchanges, started, last) = (SELECT count(*), coalesce(min(started), 0),"
        f" coalesce(max(finished), 0) {live}) WHERE user = ?1 AND id = ?2",
        (user, session),
    )
    db.execute("DELETE FROM sessions WHERE user = ? AND id = ? AND exchanges = 0", (user, session))


# -- memories ----------------------------------------------------------------------------------------------


def _fold_memory(
    db: sqlite3.Connection, user: int, event: Event, payload: MemoryAdded | MemoryChanged
) -> None:
    m = payload.memory
    place = (m.scope.agent, m.scope.session)
    times = (micros(m.created_at), micros(m.occurred_at), _optional(m.expires_at), _optional(m.valid_to))
    matched = (fold_text(m.text), _json(m.tags), _json(m.metadata))
    db.execute(
        "INSERT OR REPLACE INTO memories VALUES (?1, ?2, ?3, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,"
        " coalesce((SELECT first FROM memories WHERE user = ?1 AND id = ?2), ?3))",
        (user, m.id, event.seq, m.type, *place, *times, m.successor, *matched),
    )


def _optional(moment: datetime | None) -> int | None:
    return None if moment is None else micros(moment)


def _fold_memory_forgotten(db: sqlite3.Connection, user: int, event: Event, payload: MemoryForgotten) -> None:
    _forget(db, user, event, payload.memory)
    db.execute("DELETE FROM memories WHERE user = ? AND id = ?", (user, payload.memory))


# -- forgetting --------------------------------------------------------------------------------------------


def _forget(db: sqlite3.Connection, user: int, event: Event, record: str) -> None:
    """Refuse later content of the record, redact its earlier payloads and the blocks that showed it."""
    db.execute("INSERT OR REPLACE INTO forgotten VALUES (?, ?, ?)", (user, record, micros(event.occurred_at)))
    rows = db.execute(
        "SELECT seq FROM events WHERE user = ? AND subject = ? AND seq < ?"
        " AND kind NOT IN ('page.forgotten', 'memory.forgotten')",
        (user, record, event.seq),
    ).fetchall()
    redact(db, user, [seq for (seq,) in rows])
    # a quoted id can't be found inside another one: JSON would have escaped its quotes
    shown = db.execute(
        "SELECT seq FROM injections WHERE user = ? AND instr(records, ?) > 0", (user, _json(record))
    ).fetchall()
    for (seq,) in shown:
        _strip_block(db, user, seq)


def redact(db: sqlite3.Connection, user: int, seqs: Sequence[int]) -> None:
    """Delete the content of those events everywhere in the log; their envelopes stay."""
    rows = [(seq,) for seq in seqs]
    db.executemany("DELETE FROM payloads WHERE seq = ?", rows)
    db.executemany("DELETE FROM step_keys WHERE seq = ?", rows)
    db.executemany("DELETE FROM parked WHERE seq = ?", rows)
    db.executemany("DELETE FROM injections WHERE user = ? AND seq = ?", [(user, seq) for seq in seqs])


def _strip_block(db: sqlite3.Connection, user: int, seq: int) -> None:
    row = db.execute(
        "SELECT kind, version, body FROM events JOIN payloads USING (seq) WHERE seq = ?", (seq,)
    ).fetchone()
    payload = decode(*row)
    if isinstance(payload, StepCaptured):
        bare = encode(StepCaptured(step=msgspec.structs.replace(payload.step, block=None)))
        db.execute("UPDATE payloads SET version = ?, body = ? WHERE seq = ?", (bare.version, bare.body, seq))
    db.execute("DELETE FROM injections WHERE user = ? AND seq = ?", (user, seq))


def _fold_erased(db: sqlite3.Connection, user: int, event: Event, payload: UserErased) -> None:
    """Raise the generation and redact everything before; sessions and parents go from the envelopes too."""
    db.execute("UPDATE users SET generation = ?, seen = 0 WHERE id = ?", (payload.generation, user))
    earlier = "(SELECT seq FROM events WHERE user = ? AND seq < ?)"
    for table in ("payloads", "parked", "step_keys"):
        db.execute(f"DELETE FROM {table} WHERE seq IN {earlier}", (user, event.seq))
    for view in set(_VIEWS) - {"step_keys"}:
        db.execute(f"DELETE FROM {view} WHERE user = ?", (user,))
    db.execute(
        "UPDATE events SET session = '', parent = NULL, subject = '' WHERE user = ? AND seq < ?",
        (user, event.seq),
    )


_FOLDS: dict[type[msgspec.Struct], Callable[[sqlite3.Connection, int, Event, Any], None]] = {
    StepCaptured: _fold_step,
    ExchangeEnriched: _fold_enriched,
    PageClosed: _fold_page_closed,
    PageMoved: _fold_page_moved,
    PageForgotten: _fold_page_forgotten,
    MemoryAdded: _fold_memory,
    MemoryChanged: _fold_memory,
    MemoryForgotten: _fold_memory_forgotten,
    UserErased: _fold_erased,
}
