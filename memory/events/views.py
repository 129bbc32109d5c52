"""The views: what the events of a user add up to, folded inside the append's own transaction.

Every fold is a function of the event and of what was folded before, so dropping the views and folding the
log again gives the same rows, for everything that was not redacted meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from hearth.memory.events import texts
from hearth.memory.events.archive import payload_of
from hearth.memory.events.codec import encode, micros
from hearth.memory.events.data_keys import key_of
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
    Reading,
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
    scope_of,
)
from hearth.memory.events.seal import Content, seal_content
from hearth.memory.events.sql import STORED, Database, marks
from hearth.memory.events.texts import secret_of
from hearth.memory.extract.attributes import AGENT, subject_key, value_key
from hearth.memory.filters import fold_text
from hearth.memory.knowledge.records import version_prefix
from hearth.memory.tiers.short_term import text_size
from hearth.memory.types import SEVEN_DAYS, CandidateFact, Document, Memory, Metadata, Step

CLOCK_SKEW = timedelta(seconds=2)
"""How far ahead of the log's clock a gateway's stamp may be before it is clamped."""

NO_SEGMENT = ""
"""The segment of a page that never has one."""
_TAIL_LIFE = SEVEN_DAYS // timedelta(microseconds=1)
_REBUILD_ROWS = 500
VIEWS = (
    "forgotten",
    "step_keys",
    "exchanges",
    "sessions",
    "pages",
    "injections",
    "memories",
    "evidence",
    "segments",
    "documents",
    "chunks",
    "labels",
    "policies",
    "bases",
    "erasures",
    "holds",
    "spending",
    "forgettings",
    "switched",
    "summaries",
    "refusals",
)
"""The tables of views.sql."""
_NOBODYS = frozenset({"step_keys", "injections", "labels", "bases", "spending"})
"""Views whose rows go with their events, or are no user's."""


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


def session_mark(event: Event) -> str:
    """What `forgotten` names a session by that is forgotten or that a step is in; no record is named so."""
    match event.payload:
        case SessionForgotten(session=session):
            return f"session:{session}"
        case StepCaptured():
            return f"session:{event.session}"
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
            (event.seq, user, trace, _json(tags), _json(metadata)),
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


# -- exchanges ---------------------------------------------------------------------------------------------


def _fold_step(db: Database, user: int, event: Event, payload: StepCaptured) -> None:
    step = payload.step
    at = micros(min(step.finished_at, (event.recorded_at or event.occurred_at) + CLOCK_SKEW))
    _fold_exchange(db, user, event, step, at)
    _fold_session(db, user, event, step, at)
    _fold_keys(db, user, event, step, at)
    if records := {*step.injected, *(step.block.items if step.block else ())}:
        db.execute("INSERT INTO injections VALUES (?, ?, ?)", (event.seq, user, _json(records)))


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


def _fold_switched(db: Database, user: int, event: Event, payload: SessionSwitched) -> None:
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


def _fold_summarised(db: Database, user: int, event: Event, payload: SessionSummarised) -> None:
    """The newest one is all that counts. Found by each of its pages, without those forgotten meanwhile."""
    named = (user, payload.owner, payload.session)
    older = "SELECT seq FROM summaries WHERE user_id = ? AND owner = ? AND session = ?"
    _redact(db, older, named)
    db.execute(
        "INSERT INTO summaries VALUES (?, ?, ?, ?, ?) ON CONFLICT (user_id, owner, session) DO UPDATE SET"
        " seq = excluded.seq, lines = excluded.lines",
        (*named, event.seq, _summary(db, user, (event.tenant, event.user), payload)),
    )
    if not payload.lines:
        return
    pages = {line.page for line in payload.lines}
    db.execute("INSERT INTO injections VALUES (?, ?, ?)", (event.seq, user, _json(pages)))
    if any(_is_forgotten(db, user, page) for page in pages):
        _strip(db, event.seq)


def _without_forgotten(db: Database, seq: int, payload: SessionSummarised) -> SessionSummarised:
    """The summary of that event without lines of forgotten exchanges, in its view too."""
    gone = {
        page
        for (page,) in db.execute(
            "SELECT f.id FROM forgotten f JOIN events e ON e.user_id = f.user_id"
            f" WHERE e.seq = ? AND f.id IN ({marks(payload.lines)})",
            (seq, *(line.page for line in payload.lines)),
        ).fetchall()
    }
    lines = tuple(line for line in payload.lines if line.page not in gone)
    left = msgspec.structs.replace(payload, lines=lines)
    user, tenant, name = db.execute(
        "SELECT u.id, u.tenant, u.name FROM events e JOIN users u ON u.id = e.user_id WHERE e.seq = ?", (seq,)
    ).fetchall()[0]
    told = _summary(db, user, (tenant, name), left)
    db.execute("UPDATE summaries SET lines = ? WHERE seq = ?", (told, seq))
    return left


def _summary(db: Database, user: int, who: tuple[str, str], payload: SessionSummarised) -> str:
    """The lines as their view has them; what is empty says so."""
    told = _json(payload.lines)
    if not payload.lines:
        return told
    return texts.writing(db, user, who)(told, "summary", payload.owner, payload.session)


def _json(value: object) -> str:
    return msgspec.json.encode(value, order="sorted").decode()


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


def _fold_enriched(db: Database, user: int, event: Event, payload: ExchangeEnriched) -> None:
    """Read with its exchange, by subject; there is nothing to fold."""


def _fold_page_closed(db: Database, user: int, event: Event, payload: PageClosed) -> None:
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


def _fold_page_moved(db: Database, user: int, event: Event, payload: PageMoved) -> None:
    db.execute("UPDATE pages SET state = ? WHERE user_id = ? AND id = ?", (payload.state, user, payload.page))
    state = "closed" if payload.state == "active" else "inactive"
    db.execute(
        "UPDATE exchanges SET state = ? WHERE user_id = ? AND id = ? AND state IN ('closed', 'inactive')",
        (state, user, payload.page),
    )


def _fold_page_outdated(db: Database, user: int, event: Event, payload: PageOutdated) -> None:
    db.execute("UPDATE pages SET outdated = ? WHERE user_id = ? AND id = ?", (event.seq, user, payload.page))


def _fold_page_segmented(db: Database, user: int, event: Event, payload: PageSegmented) -> None:
    db.execute(
        "UPDATE pages SET segment = ? WHERE user_id = ? AND id = ?", (payload.segment, user, payload.page)
    )


def _fold_page_forgotten(db: Database, user: int, event: Event, payload: PageForgotten) -> None:
    _forget(db, user, event, payload.page)
    _spoil_segment(db, user, event, payload.page)
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


# -- memories ----------------------------------------------------------------------------------------------


_REPLACED = ", ".join(
    f"{column} = excluded.{column}"
    for column in (
        *(
            "seq",
            "type",
            "agent",
            "own_agent",
            "session",
            "created",
            "occurred",
            "expires",
            "starts",
            "closed",
        ),
        *("successor", "subject", "attribute", "folded", "tags", "metadata", "value"),
    )
)
"""All of a memory's row but where the log first told of it."""


def _fold_memory(db: Database, user: int, event: Event, payload: MemoryAdded | MemoryChanged) -> None:
    m = payload.memory
    if isinstance(payload, MemoryChanged) and payload.says_otherwise:
        _spoil_concepts(db, user, event, m.id)
    place = (m.scope.agent, m.scope.session)
    times = (micros(m.created_at), micros(m.occurred_at), _optional(m.expires_at))
    held = (micros(m.valid_from or m.occurred_at), _optional(m.valid_to))
    subject, said, value = _compared(db, event.tenant, m)
    about = (subject, m.attribute)
    matched = (said, _json(m.tags), _json(m.metadata))
    db.execute(
        f"INSERT INTO memories VALUES ({marks(range(20))})"
        f" ON CONFLICT (user_id, id) DO UPDATE SET {_REPLACED}",
        (
            user,
            m.id,
            event.seq,
            m.type,
            *place,
            *times,
            *held,
            m.successor,
            *about,
            *matched,
            event.seq,
            value,
            m.scope.own_agent,
        ),
    )
    _drop_evidence(db, user, m.id)
    for page in {*(one.id for one in m.evidence), m.ended_by} - {""}:
        db.execute("INSERT INTO evidence VALUES (?, ?, ?)", (user, page, m.id))


def _compared(db: Database, tenant: str, memory: Memory) -> tuple[str, str, str]:
    """Subject, words and value as they are looked up: where payloads are encrypted they can't be read, and
    words are looked for in the payloads.
    """
    subject, value = subject_key(memory.subject), value_key(memory.value)
    if not db.keys.on:
        return subject, fold_text(memory.text), value
    known = subject in ("user", AGENT)
    countable = 0 < len(value) <= texts.VALUE_CHARACTERS
    return (
        subject if known else texts.digest(db, tenant, subject),
        "",
        texts.digest(db, tenant, value) if countable else "",
    )


def _drop_evidence(db: Database, user: int, memory: str) -> None:
    db.execute("DELETE FROM evidence WHERE user_id = ? AND memory = ?", (user, memory))


def _optional(moment: datetime | None) -> int | None:
    return None if moment is None else micros(moment)


def _fold_memory_forgotten(db: Database, user: int, event: Event, payload: MemoryForgotten) -> None:
    """What a model made out of its pages goes too, where it says the same."""
    pages = db.execute(
        "SELECT page FROM evidence WHERE user_id = ? AND memory = ?", (user, payload.memory)
    ).fetchall()
    row = db.execute(
        f"SELECT {STORED} FROM memories m JOIN events e USING (seq)"
        " JOIN payloads p USING (seq) WHERE m.user_id = ? AND m.id = ?",
        (user, payload.memory),
    ).fetchone()
    told = None if row is None else payload_of(db, *row)
    for (page,) in pages:
        _strip_answers(db, user, page)
        if isinstance(told, MemoryAdded | MemoryChanged):
            _strip_readings(db, user, page, told.memory)
    _forget(db, user, event, payload.memory)
    _strip_concepts(db, user, payload.memory)
    _spoil_concepts(db, user, event, payload.memory)
    _drop_memory(db, user, payload.memory)


def _fold_withdrawn(db: Database, user: int, event: Event, payload: MemoryWithdrawn) -> None:
    _spoil_concepts(db, user, event, payload.memory)
    _drop_memory(db, user, payload.memory)


_CONCEPTS = "(SELECT v.memory FROM evidence v WHERE v.user_id = ? AND v.page = ?)"
"""Those that rest on a memory: nothing else has a memory's id for evidence."""


def _spoil_concepts(db: Database, user: int, event: Event, member: str) -> None:
    """A concept says what its members say: once one has changed it is out, until it is made anew."""
    told = f"SELECT seq FROM events WHERE user_id = ? AND seq < ? AND subject IN {_CONCEPTS}"
    _redact(db, f"{told} AND kind IN ('memory.added', 'memory.changed')", (user, event.seq, user, member))
    db.execute(f"DELETE FROM memories WHERE user_id = ? AND id IN {_CONCEPTS}", (user, user, member))


def _strip_concepts(db: Database, user: int, member: str) -> None:
    """Take out the blocks that show a concept of a memory."""
    shown = (
        "SELECT i.seq FROM injections i JOIN evidence v ON v.user_id = i.user_id"
        " WHERE i.user_id = ? AND v.page = ? AND instr(i.records, '\"' || v.memory || '\"') > 0"
    )
    for (seq,) in db.execute(shown, (user, member)).fetchall():
        _strip(db, seq)


def _drop_memory(db: Database, user: int, memory: str) -> None:
    db.execute("DELETE FROM memories WHERE user_id = ? AND id = ?", (user, memory))
    _drop_evidence(db, user, memory)


# -- segments ----------------------------------------------------------------------------------------------


def _fold_segment(db: Database, user: int, event: Event, payload: SegmentChanged) -> None:
    """The newest state is all that counts, and may lack what an older one knew of a forgotten page."""
    segment, heat = payload.segment, payload.heat
    older = (
        "SELECT seq FROM events WHERE user_id = ? AND subject = ? AND seq < ? AND kind = 'segment.changed'"
    )
    _redact(db, older, (user, segment.id, event.seq))
    db.execute(
        "INSERT INTO segments VALUES (?, ?, ?, ?, 'live', ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (user_id, id) DO UPDATE SET"
        " seq = excluded.seq, state = excluded.state, level = excluded.level, touched = excluded.touched,"
        " fade = excluded.fade, episode = excluded.episode, changed = excluded.changed,"
        " counted_by = excluded.counted_by",
        (
            *(user, segment.id, event.seq, segment.owner),
            *(heat.level, _optional(heat.touched), heat.fade_hours, segment.episode, event.seq),
            heat.counted_by,
        ),
    )


def _spoil_segment(db: Database, user: int, event: Event, page: str) -> None:
    """The state of a segment says something of each of its pages: without it until it is made anew."""
    of_page = "(SELECT segment FROM pages WHERE user_id = ? AND id = ? AND segment IS NOT NULL)"
    states = f"SELECT seq FROM segments WHERE user_id = ? AND id IN {of_page}"
    _redact(db, states, (user, user, page))
    db.execute(
        "UPDATE segments SET state = CASE state WHEN 'live' THEN 'spoiled' WHEN 'evicted' THEN 'lost'"
        f" ELSE state END, changed = ? WHERE user_id = ? AND id IN {of_page}",
        (event.seq, user, user, page),
    )


def _fold_visited(db: Database, user: int, event: Event, payload: SegmentVisited) -> None:
    heat = payload.heat
    db.execute(
        "UPDATE segments SET level = ?, touched = ?, fade = ?, counted_by = ?, changed = ?"
        " WHERE user_id = ? AND id = ?",
        (
            *(heat.level, _optional(heat.touched), heat.fade_hours, heat.counted_by, event.seq),
            *(user, payload.segment),
        ),
    )


def _fold_nothing(
    db: Database, user: int, event: Event, payload: SegmentPromoted | SegmentPinned | SegmentDue | ActDone
) -> None:
    """The state that comes with it, or follows, says so; or it is for whoever reads the log."""


def _fold_evicted(db: Database, user: int, event: Event, payload: SegmentEvicted) -> None:
    named = (user, payload.segment)
    db.execute(
        "UPDATE segments SET state = 'evicted', changed = ? WHERE user_id = ? AND id = ?", (event.seq, *named)
    )
    db.execute(
        "UPDATE pages SET state = 'evicted' WHERE user_id = ? AND segment = ? AND state = 'active'", named
    )


# -- feedback ----------------------------------------------------------------------------------------------


def _fold_judged(db: Database, user: int, event: Event, payload: RecallJudged) -> None:
    """A note may speak of any item of its recall, and is found by each of them."""
    if payload.note and payload.ranking is not None:
        records = _json({item.id for item in payload.ranking.items})
        db.execute("INSERT INTO injections VALUES (?, ?, ?)", (event.seq, user, records))


def _fold_drawn(db: Database, user: int, event: Event, payload: RecallDrawn) -> None:
    """Visits of pages that have no segment yet, for the heat of the one that they will join."""
    for item in payload.items:
        db.execute(
            "UPDATE pages SET drawn = drawn + ?, seen = seen + ?, visited = ?"
            " WHERE user_id = ? AND id = ? AND segment IS NULL",
            (int(item.used), int(not item.used), micros(event.occurred_at), user, item.id),
        )


# -- knowledge ---------------------------------------------------------------------------------------------


def _fold_loaded(db: Database, user: int, event: Event, payload: KnowledgeLoaded) -> None:
    """A version that was replaced since has no chunks any more, but still counts."""
    document = payload.document
    _retire(db, user, event, document.id, document.version - 1)
    write = texts.writing(db, user, (event.tenant, event.user))
    about = write(_json(document), "document", document.id) if payload.chunks else ""
    db.execute(
        f"INSERT INTO documents VALUES ({marks(range(8))}) ON CONFLICT (user_id, id) DO UPDATE SET"
        " seq = excluded.seq, name = excluded.name, version = excluded.version, last = excluded.last,"
        " about = excluded.about",
        (
            *(user, document.id, event.seq, document.name),
            *(document.version, event.id, about, document.kind),
        ),
    )
    for position, chunk in enumerate(payload.chunks):
        body = write(_json(chunk), "chunk", document.id, str(position))
        db.execute("INSERT INTO chunks VALUES (?, ?, ?, ?)", (user, document.id, position, body))


def _fold_removed(db: Database, user: int, event: Event, payload: KnowledgeRemoved) -> None:
    _retire(db, user, event, payload.document, payload.version)
    db.execute(
        "UPDATE documents SET seq = ?, name = '', last = ?, about = '' WHERE user_id = ? AND id = ?",
        (event.seq, event.id, user, payload.document),
    )


def _retire(db: Database, user: int, event: Event, document: str, version: int) -> None:
    """Take the text of the version in force out of the log: its own, and all users' blocks that show it.

    What an envelope says and how many chunks there were stays, so that stores can be told what is gone.
    """
    in_force = "SELECT seq FROM documents WHERE user_id = ? AND id = ? AND about <> ''"
    shown = (
        "SELECT i.seq FROM injections i JOIN users u ON u.id = i.user_id"
        " WHERE u.tenant = ? AND instr(i.records, ?) > 0"
    )
    loaded = db.execute(in_force, (user, document)).fetchall()
    # a quoted id can't be found inside another one: JSON would have escaped its quotes
    blocks = db.execute(shown, (event.tenant, f'"{version_prefix(document, version)}')) if loaded else ()
    for (seq,) in (*loaded, *blocks):
        _strip(db, seq)
    db.execute("DELETE FROM chunks WHERE user_id = ? AND document = ?", (user, document))


def _fold_refused(db: Database, user: int, event: Event, payload: SystemRefused) -> None:
    db.execute(
        "INSERT INTO refusals VALUES (?, ?, ?) ON CONFLICT (user_id, topic) DO UPDATE SET seq = excluded.seq",
        (user, payload.topic, event.seq),
    )


# -- policy ------------------------------------------------------------------------------------------------


def _fold_policy(db: Database, user: int, event: Event, payload: PolicyChanged) -> None:
    """A value that was lifted keeps its row, so that others see that something changed."""
    for name, value in payload.values.items():
        told = "" if value is None else _json(value)
        db.execute(
            f"INSERT INTO policies VALUES ({marks(range(8))})"
            " ON CONFLICT (user_id, level, whose, name) DO UPDATE SET"
            " seq = excluded.seq, value = excluded.value, set_by = excluded.set_by, at = excluded.at",
            (
                *(user, payload.level, payload.whose, name),
                *(event.seq, told, payload.by, micros(event.occurred_at)),
            ),
        )


# -- extraction --------------------------------------------------------------------------------------------


def _fold_replied(db: Database, user: int, event: Event, payload: ExtractionReplied) -> None:
    """Found by each of its pages; without text where one was forgotten while the model was asked."""
    _spend(db, event, payload)
    if not payload.text:
        return
    db.execute("INSERT INTO injections VALUES (?, ?, ?)", (event.seq, user, _json({*payload.pages})))
    if any(_is_forgotten(db, user, page) for page in payload.pages):
        _strip(db, event.seq)


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


def _fold_read(db: Database, user: int, event: Event, payload: PageRead) -> None:
    """Read with its page, by subject; what was forgotten before goes."""
    gone = {one.fact for one in payload.said if _is_forgotten(db, user, one.fact)}
    if gone:
        _keep_readings(db, event.seq, lambda one: one.fact not in gone)
        _strip_answers(db, user, payload.page)


def _is_forgotten(db: Database, user: int, record: str) -> bool:
    row = db.execute("SELECT 1 FROM forgotten WHERE user_id = ? AND id = ?", (user, record)).fetchone()
    return row is not None


def _strip_answers(db: Database, user: int, page: str) -> None:
    """Take out the text of what a model answered about the page, and about others beside it."""
    found = db.execute(
        "SELECT i.seq FROM injections i JOIN events e USING (seq)"
        " WHERE i.user_id = ? AND e.kind = 'extraction.replied' AND instr(i.records, ?) > 0",
        (user, _json(page)),
    ).fetchall()
    for (seq,) in found:
        _strip(db, seq)


def _strip_readings(db: Database, user: int, page: str, memory: Memory) -> None:
    """Take out what the page states of the same thing as the memory."""

    def says_other(one: Reading) -> bool:
        said = one.said
        return one.fact != memory.id and (subject_key(said.subject), said.attribute, _told(said)) != (
            *(subject_key(memory.subject), memory.attribute),
            value_key(memory.value or memory.text),
        )

    read = "SELECT seq FROM events WHERE user_id = ? AND subject = ? AND kind = 'page.read'"
    for (seq,) in db.execute(read, (user, page)).fetchall():
        _keep_readings(db, seq, says_other)


def _told(said: CandidateFact) -> str:
    return value_key(said.value or said.statement)


def _keep_readings(db: Database, seq: int, keeps: Callable[[Reading], bool]) -> None:
    row = db.execute(
        f"SELECT {STORED} FROM events e JOIN payloads p USING (seq) WHERE seq = ?", (seq,)
    ).fetchone()
    payload = None if row is None else payload_of(db, *row)
    if isinstance(payload, PageRead):
        said = tuple(one for one in payload.said if keeps(one))
        _replace(db, seq, msgspec.structs.replace(payload, said=said))


# -- forgetting --------------------------------------------------------------------------------------------


def _forget(db: Database, user: int, event: Event, record: str) -> None:
    """Refuse later content of the record, redact its earlier payloads, and the blocks and notes around it."""
    db.execute(
        "INSERT INTO forgotten VALUES (?, ?, ?) ON CONFLICT (user_id, id) DO UPDATE SET at = excluded.at",
        (user, record, micros(event.occurred_at)),
    )
    _redact(
        db,
        "SELECT seq FROM events WHERE user_id = ? AND subject = ? AND seq < ?"
        " AND kind NOT IN ('page.forgotten', 'memory.forgotten', 'forget.asked')",
        (user, record, event.seq),
    )
    # a quoted id can't be found inside another one: JSON would have escaped its quotes
    shown = db.execute(
        "SELECT seq FROM injections WHERE user_id = ? AND instr(records, ?) > 0", (user, _json(record))
    ).fetchall()
    for (seq,) in shown:
        _strip(db, seq)


def _fold_asked(db: Database, user: int, event: Event, payload: ForgetAsked) -> None:
    """A later one of the same exchange replaces it, unless that one is being waited for."""
    state = "nothing" if payload.until is None else "waiting"
    db.execute(
        "INSERT INTO forgettings AS f VALUES (?, ?, ?, ?, ?) ON CONFLICT (user_id, id) DO UPDATE SET"
        " seq = excluded.seq, until = excluded.until, state = excluded.state WHERE f.state <> 'waiting'",
        (user, payload.exchange, event.seq, _optional(payload.until), state),
    )


def _fold_asked_ends(db: Database, user: int, event: Event, payload: ForgetUndone | ForgetDone) -> None:
    state = "undone" if isinstance(payload, ForgetUndone) else "done"
    db.execute(
        "UPDATE forgettings SET state = ? WHERE user_id = ? AND id = ? AND state = 'waiting'",
        (state, user, payload.exchange),
    )


def _redact(db: Database, seqs: str, values: Sequence[object]) -> None:
    """Delete the content of those events everywhere in the log; their envelopes stay.

    An archive that holds more than the log says is written anew by `archiving.purge`.
    """
    db.execute(f"UPDATE events SET redacted = 1 WHERE seq IN ({seqs})", values)
    for table in ("payloads", "step_keys", "parked", "injections", "labels"):
        db.execute(f"DELETE FROM {table} WHERE seq IN ({seqs})", values)


def _strip(db: Database, seq: int) -> None:
    """Take out the block, note or answer that shows a record or may speak of it; the text of a document."""
    row = db.execute(
        f"SELECT {STORED} FROM events e JOIN payloads p USING (seq) WHERE seq = ?", (seq,)
    ).fetchone()
    payload = None if row is None else payload_of(db, *row)
    left: Sequence[str] = ()
    if isinstance(payload, StepCaptured):
        left = payload.step.injected
        payload = StepCaptured(step=msgspec.structs.replace(payload.step, block=None))
    elif isinstance(payload, RecallJudged):
        payload = msgspec.structs.replace(payload, note="")
    elif isinstance(payload, KnowledgeLoaded):
        payload = _without_text(payload)
    elif isinstance(payload, ExtractionReplied):
        payload = msgspec.structs.replace(payload, text="")
    elif isinstance(payload, SessionSummarised):
        payload = _without_forgotten(db, seq, payload)
        left = [line.page for line in payload.lines]
    if payload is not None:
        _replace(db, seq, payload)
    if left:
        db.execute("UPDATE injections SET records = ? WHERE seq = ?", (_json({*left}), seq))
    else:
        db.execute("DELETE FROM injections WHERE seq = ?", (seq,))


def _replace(db: Database, seq: int, payload: Payload) -> None:
    """Put the payload in the place of an event's, wherever that is."""
    bare = encode(payload)
    user, tenant, name, *about = db.execute(
        "SELECT u.id, u.tenant, u.name, e.id, e.session, e.parent, e.subject FROM events e"
        " JOIN users u ON u.id = e.user_id WHERE e.seq = ?",
        (seq,),
    ).fetchall()[0]
    content = Content(about[0], bare.kind, bare.version, *about[1:])
    body = bare.body
    if db.keys.on:
        body = key_of(db, user, (tenant, name)).encrypt(body, "event", about[0])
    db.execute(
        "UPDATE payloads SET version = ?, body = ?, seal = ?, archive = NULL WHERE seq = ?",
        (bare.version, body, seal_content(secret_of(db, tenant), content, bare.raw), seq),
    )


def _without_text(payload: KnowledgeLoaded) -> KnowledgeLoaded:
    told = payload.document
    bare = Document(
        kind=told.kind,
        id=told.id,
        version=told.version,
        chunks=told.chunks,
        by=told.by,
        loaded_at=told.loaded_at,
    )
    return msgspec.structs.replace(payload, document=bare, chunks=())


def _fold_erased(db: Database, user: int, event: Event, payload: UserErased) -> None:
    """Raise the generation and redact everything before; sessions and parents go from the envelopes too."""
    db.execute("UPDATE users SET generation = ?, seen = 0 WHERE id = ?", (payload.generation, user))
    before = (user, event.seq)
    _redact(db, "SELECT seq FROM events WHERE user_id = ? AND seq < ?", before)
    for view in set(VIEWS) - _NOBODYS:
        db.execute(f"DELETE FROM {view} WHERE user_id = ?", (user,))
    db.execute(
        "UPDATE events SET session = '', parent = NULL, subject = '' WHERE user_id = ? AND seq < ?", before
    )


def _fold_session_forgotten(db: Database, user: int, event: Event, payload: SessionForgotten) -> None:
    db.execute(
        "INSERT INTO forgotten VALUES (?, ?, ?) ON CONFLICT (user_id, id) DO UPDATE SET at = excluded.at",
        (user, session_mark(event), micros(event.occurred_at)),
    )
    summed = "FROM summaries WHERE user_id = ? AND session = ?"
    _redact(db, f"SELECT seq {summed}", (user, payload.session))
    db.execute(f"DELETE {summed}", (user, payload.session))


def _fold_tenant_erased(db: Database, user: int, event: Event, payload: TenantErased) -> None:
    """Users from before are unreachable until they are erased one by one; new ones begin with the base.

    In a log that is folded again those who came later are there already: no event of theirs is older.
    """
    db.execute(
        "INSERT INTO bases VALUES (?, ?) ON CONFLICT (tenant) DO UPDATE SET generation = excluded.generation",
        (event.tenant, payload.generation),
    )
    db.execute(
        "UPDATE users SET generation = ? WHERE tenant = ? AND (id = ? OR NOT EXISTS"
        " (SELECT 1 FROM events e WHERE e.user_id = users.id AND e.generation < ?))",
        (payload.generation, event.tenant, user, payload.generation),
    )


# -- what operators do -------------------------------------------------------------------------------------


def _fold_erasure(db: Database, user: int, event: Event, payload: ErasureChanged) -> None:
    receipt = payload.receipt
    older = "SELECT seq FROM events WHERE user_id = ? AND subject = ? AND seq < ?"
    _redact(db, older, (user, receipt.id, event.seq))
    db.execute(
        "INSERT INTO erasures VALUES (?, ?, ?, ?)"
        " ON CONFLICT (user_id, id) DO UPDATE SET seq = excluded.seq, state = excluded.state",
        (user, receipt.id, event.seq, receipt.state),
    )


def _fold_placed(db: Database, user: int, event: Event, payload: HoldPlaced) -> None:
    db.execute(
        "INSERT INTO holds VALUES (?, ?, ?) ON CONFLICT (user_id, name) DO UPDATE SET seq = excluded.seq",
        (user, payload.user, event.seq),
    )


def _fold_lifted(db: Database, user: int, event: Event, payload: HoldLifted) -> None:
    db.execute("DELETE FROM holds WHERE user_id = ? AND name = ?", (user, payload.user))


_FOLDS: dict[type[msgspec.Struct], Callable[[Database, int, Event, Any], None]] = {
    StepCaptured: _fold_step,
    ExchangeEnriched: _fold_enriched,
    PageClosed: _fold_page_closed,
    PageMoved: _fold_page_moved,
    PageOutdated: _fold_page_outdated,
    PageSegmented: _fold_page_segmented,
    SegmentChanged: _fold_segment,
    SegmentVisited: _fold_visited,
    SegmentPromoted: _fold_nothing,
    SegmentPinned: _fold_nothing,
    SegmentDue: _fold_nothing,
    SegmentEvicted: _fold_evicted,
    PageForgotten: _fold_page_forgotten,
    SessionSwitched: _fold_switched,
    SessionSummarised: _fold_summarised,
    ForgetAsked: _fold_asked,
    ForgetUndone: _fold_asked_ends,
    ForgetDone: _fold_asked_ends,
    RecallJudged: _fold_judged,
    RecallDrawn: _fold_drawn,
    MemoryAdded: _fold_memory,
    MemoryChanged: _fold_memory,
    MemoryForgotten: _fold_memory_forgotten,
    MemoryWithdrawn: _fold_withdrawn,
    KnowledgeLoaded: _fold_loaded,
    KnowledgeRemoved: _fold_removed,
    PolicyChanged: _fold_policy,
    ExtractionReplied: _fold_replied,
    PageRead: _fold_read,
    SystemRefused: _fold_refused,
    UserErased: _fold_erased,
    SessionForgotten: _fold_session_forgotten,
    TenantErased: _fold_tenant_erased,
    ErasureChanged: _fold_erasure,
    HoldPlaced: _fold_placed,
    HoldLifted: _fold_lifted,
    ActDone: _fold_nothing,
}
