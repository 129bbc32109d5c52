"""What the log answers from its views: memories, pages, exchanges, sessions, users."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from hearth.memory.events import documents, rows, texts
from hearth.memory.events.archive import payload_of
from hearth.memory.events.codec import micros, moment
from hearth.memory.events.kinds import (
    Event,
    ExchangeEnriched,
    MemoryAdded,
    MemoryChanged,
    PageClosed,
    PageOutdated,
    StepCaptured,
)
from hearth.memory.events.mid_term import lines_of
from hearth.memory.events.sql import (
    GENERATION,
    REACHED,
    SESSION_MODE,
    STORED,
    TOLD,
    USER,
    Database,
    Row,
    marks,
    number_of,
)
from hearth.memory.extract.attributes import subject_key
from hearth.memory.filters import fold_text, meets
from hearth.memory.ports import ExchangeState, MemoryFilter, Outlived
from hearth.memory.types import (
    EVERYBODY,
    OFFICE,
    Exchange,
    Memory,
    Page,
    Record,
    Scope,
    SessionInfo,
    SessionMode,
    Step,
    Usage,
)

_STORED = "JOIN events e USING (seq) JOIN payloads p USING (seq)"

PAGES = (
    f"SELECT {STORED}, g.state, o.version, o.body, oe.user_id, oe.id FROM pages g {_STORED}"
    " LEFT JOIN payloads o ON o.seq = g.outdated LEFT JOIN events oe ON oe.seq = o.seq"
)
"""Whole pages; add conditions and an order."""

_LONGEST_CHAIN = 10_000
"""Ancestors at most: a bound for a damaged chain, not a limit that a conversation meets."""


def events(
    db: Database,
    *,
    after: int,
    limit: int,
    kinds: Sequence[str] = (),
    tenant: str | None = None,
    user: str | None = None,
    session: str | None = None,
    subjects: Sequence[str] = (),
    partition: int | None = None,
) -> list[Event]:
    """Events in log order; see `EventLog.read`. `partition` narrows to one of a log that has several."""
    asked = {"u.tenant": tenant, "u.name": user, "e.session": session, "e.partition": partition}
    where, values = ["e.seq > ?"], [after]
    for column, value in asked.items():
        if value is not None:
            where.append(f"{column} = ?")
            values.append(value)  # type: ignore[arg-type]
    if tenant is not None:
        where.append(REACHED)
    if kinds:
        where.append(f"e.kind IN ({marks(kinds)})")
    order = "e.seq"
    if subjects:
        where.append(f"e.subject IN ({marks(subjects)})")
        order = "+e.seq"  # else SQLite walks all of the user's events, which are in order already
    sql = f"{rows.EVENTS} WHERE {' AND '.join(where)} ORDER BY {order} LIMIT ?"
    return rows.events_of(db, db.execute(sql, (*values, *kinds, *subjects, max(limit, 0))))


def present(db: Database, ids: Sequence[str]) -> dict[str, tuple[str, str, int]]:
    """Whose those of the event ids are that the log has; see `EventLog.present`."""
    if not ids:
        return {}
    found = db.execute(
        "SELECT e.id, u.tenant, u.name, e.generation FROM events e JOIN users u ON u.id = e.user_id"
        f" WHERE e.id IN ({marks(ids)})",
        list(ids),
    )
    return {row[0]: (row[1], row[2], row[3]) for row in found}


def generation(db: Database, tenant: str, user: str) -> int:
    """The user's generation; 1 for a user that the log never saw."""
    return number_of(db.execute(GENERATION, (tenant, user)))


def last_seq(db: Database) -> int:
    """Position of the newest event; 0 in an empty log."""
    return number_of(db.execute("SELECT coalesce(max(seq), 0) FROM events"))


# -- memories ----------------------------------------------------------------------------------------------


def memory(db: Database, tenant: str, user: str, memory_id: str, *, now: datetime) -> Memory | None:
    """One memory that is neither forgotten nor expired."""
    where = f"WHERE m.user_id = {USER} AND m.id = ? AND (m.expires IS NULL OR m.expires > ?)"
    found = _memories(db, where, (tenant, user, memory_id, micros(now)))
    return found[0] if found else None


def memories(
    db: Database,
    tenant: str,
    user: str,
    *,
    where: MemoryFilter,
    after: tuple[datetime, str] | None,
    limit: int,
    now: datetime,
) -> list[Memory]:
    """A page of live memories, newest first."""
    if where.words and db.keys.on:
        return _saying(db, tenant, user, where=where, after=after, limit=limit, now=now)
    condition, values = _condition(db, tenant, user, where, now)
    if after is not None:
        end, at = _end_of_page("memories", "subject", tenant, user, after)
        condition, values = f"{condition} AND (m.created, m.first) < {end}", [*values, *at]
    order = "ORDER BY m.created DESC, m.first DESC LIMIT ?"
    return _memories(db, f"WHERE {condition} {order}", (*values, max(limit, 0)))


_READ = 500
"""Memories read at a time to find words in them."""
_FACTS = 200
"""Facts of one subject and attribute that are compared with a new one: the latest."""


def facts_about(db: Database, tenant: str, user: str, about: Sequence[tuple[str, str]]) -> list[Memory]:
    """Memories of those subjects and attributes, closed and expired ones among them."""
    found: list[Memory] = []
    for subject, attribute in dict.fromkeys((subject_key(subject), name) for subject, name in about):
        forms = (subject, texts.digest(db, tenant, subject)) if db.keys.on else (subject,)
        where = f"m.user_id = {USER} AND m.subject IN ({marks(forms)}) AND m.attribute = ?"
        latest = f"WHERE {where} ORDER BY m.occurred DESC, m.first DESC LIMIT {_FACTS}"
        found += _memories(db, latest, (tenant, user, *forms, attribute))
    return found


def facts_of(db: Database, tenant: str, user: str, page: str) -> list[Memory]:
    """Memories that rest on the page or were ended by it, closed and expired ones among them."""
    shown = f"SELECT v.memory FROM evidence v WHERE v.user_id = {USER} AND v.page = ?"
    where = f"WHERE m.user_id = {USER} AND m.id IN ({shown}) ORDER BY m.occurred, m.first"
    return _memories(db, where, (tenant, user, tenant, user, page))


def concepts_on(db: Database, tenant: str, user: str, memories: Sequence[str]) -> list[str]:
    """Concepts that rest on those memories. No page has the id of a memory."""
    if not memories:
        return []
    found = db.execute(
        f"SELECT DISTINCT memory FROM evidence WHERE user_id = {USER} AND page IN ({marks(memories)})"
        " ORDER BY memory",
        (tenant, user, *memories),
    )
    return [row[0] for row in found]


def shown_in(db: Database, tenant: str, user: str, records: Sequence[str], *, limit: int) -> list[str]:
    """Exchanges in whose blocks one of the records stood, the latest first."""
    if not records:
        return []
    shows = " OR ".join(["instr(i.records, ?) > 0"] * len(records))
    found = db.execute(
        f"SELECT e.subject FROM injections i JOIN events e USING (seq) WHERE i.user_id = {USER} AND ({shows})"
        " AND e.kind = 'step.captured' ORDER BY i.seq DESC LIMIT ?",
        (tenant, user, *(f'"{record}"' for record in records), limit),
    )
    return list(dict.fromkeys(row[0] for row in found))


def count_memories(db: Database, tenant: str, user: str, *, where: MemoryFilter, now: datetime) -> int:
    """How many live memories match."""
    if where.words and db.keys.on:
        return len(_saying(db, tenant, user, where=where, after=None, limit=sys.maxsize, now=now))
    condition, values = _condition(db, tenant, user, where, now)
    return number_of(db.execute(f"SELECT count(*) FROM memories m WHERE {condition}", values))


def _saying(
    db: Database,
    tenant: str,
    user: str,
    *,
    where: MemoryFilter,
    after: tuple[datetime, str] | None,
    limit: int,
    now: datetime,
) -> list[Memory]:
    """`memories` with words, which stand in the payloads alone: all are read until there are enough."""
    found: list[Memory] = []
    rest, said = msgspec.structs.replace(where, words=""), MemoryFilter(words=where.words)
    while len(found) < limit:
        some = memories(db, tenant, user, where=rest, after=after, limit=_READ, now=now)
        found += [one for one in some if meets(one, said)]
        if len(some) < _READ:
            break
        after = (some[-1].created_at, some[-1].id)
    return found[:limit]


def _memories(db: Database, rest: str, values: Sequence[Any]) -> list[Memory]:
    sql = f"SELECT {STORED} FROM memories m {_STORED} {rest}"
    return [_memory_of(payload_of(db, *row)) for row in db.execute(sql, values)]


def _memory_of(payload: object) -> Memory:
    if not isinstance(payload, MemoryAdded | MemoryChanged):
        raise TypeError(f"a memory's row names a {type(payload).__name__}")
    return payload.memory


def _condition(
    db: Database, tenant: str, user: str, where: MemoryFilter, now: datetime
) -> tuple[str, list[Any]]:
    """The filter as SQL over `memories m`, with its values."""
    parts: list[tuple[str, list[Any]]] = [
        (f"m.user_id = {USER}", [tenant, user]),
        ("(m.expires IS NULL OR m.expires > ?)", [micros(now)]),
    ]
    if where.as_of is not None:
        parts.append(("m.starts <= ? AND (m.closed IS NULL OR m.closed > ?)", [micros(where.as_of)] * 2))
    elif not where.include_superseded:
        parts.append(("(m.closed IS NULL OR m.closed > ?)", [micros(now)]))
    if where.types:
        parts.append((f"m.type IN ({marks(where.types)})", [*where.types]))
    else:
        parts.append(("m.type <> 'concept'", []))
    asked = (("agent", where.agent), ("own_agent", where.own_agent), ("session", where.session))
    for column, value in asked:
        if value is not None:
            parts.append((f"m.{column} = ?", [value]))
    if where.since is not None:
        parts.append(("m.occurred >= ?", [micros(where.since)]))
    if where.until is not None:
        parts.append(("m.occurred < ?", [micros(where.until)]))
    parts += [("instr(m.folded, ?) > 0", [word]) for word in fold_text(where.words).split()]
    parts += [db.has_tag("m.tags", tag) for tag in where.tags]
    parts += [db.has_entry("m.metadata", key, value) for key, value in where.metadata.items()]
    return " AND ".join(sql for sql, _ in parts), [value for _, values in parts for value in values]


# -- pages -------------------------------------------------------------------------------------------------


def page(db: Database, tenant: str, user: str, page_id: str) -> Page | None:
    """One page, whatever its state, unless it was forgotten."""
    found = _pages(db, f"WHERE g.user_id = {USER} AND g.id = ?", (tenant, user, page_id))
    return found[0] if found else None


def pages_named(db: Database, tenant: str, user: str, ids: Sequence[str]) -> list[Page]:
    """Those of the ids that are pages, whatever their state."""
    return _pages(db, f"WHERE g.user_id = {USER} AND g.id IN ({marks(ids)})", (tenant, user, *ids))


def memories_named(db: Database, tenant: str, user: str, ids: Sequence[str]) -> list[Memory]:
    """Those of the ids that are memories, expired ones among them."""
    return _memories(db, f"WHERE m.user_id = {USER} AND m.id IN ({marks(ids)})", (tenant, user, *ids))


def latest_pages(db: Database, tenant: str, user: str, *, limit: int) -> list[Page]:
    """The latest active pages, oldest first."""
    order = "ORDER BY g.occurred DESC, g.seq DESC LIMIT ?"
    return _pages(
        db, f"WHERE g.user_id = {USER} AND g.state = 'active' {order}", (tenant, user, max(limit, 0))
    )[::-1]


def pages_in(db: Database, tenant: str, user: str, segment: str) -> list[Page]:
    """The pages of a segment that are on the live branch, oldest first."""
    order = f"AND {TOLD} ORDER BY g.occurred, g.seq"
    return _pages(db, f"WHERE g.user_id = {USER} AND g.segment = ? {order}", (tenant, user, segment))


def latest_in(
    db: Database, tenant: str, user: str, segments: Sequence[str], *, each: int
) -> dict[str, list[Page]]:
    """See `MidTerm.latest_in`."""
    if not segments:
        return {}
    newest = "row_number() OVER (PARTITION BY g.segment ORDER BY g.occurred DESC, g.seq DESC)"
    of = f"g.user_id = {USER} AND {TOLD} AND g.segment IN ({marks(segments)})"
    ids = db.execute(
        f"SELECT id, segment FROM (SELECT g.id, g.segment, {newest} AS place FROM pages g WHERE {of}) AS n"
        " WHERE place <= ?",
        (tenant, user, *segments, each),
    )
    segment_of: dict[str, str] = dict(ids.fetchall())
    found: dict[str, list[Page]] = {}
    if segment_of:
        where = f"WHERE g.user_id = {USER} AND g.id IN ({marks(segment_of)}) ORDER BY g.occurred, g.seq"
        for one in _pages(db, where, (tenant, user, *segment_of)):
            found.setdefault(segment_of[one.id], []).append(one)
    return found


def following_pages(db: Database, tenant: str, user: str, page_id: str) -> list[str]:
    """Pages whose exchanges follow that one's."""
    following = f"SELECT id FROM exchanges WHERE user_id = {USER} AND parent = ?"
    sql = f"SELECT g.id FROM pages g WHERE g.user_id = {USER} AND g.id IN ({following}) ORDER BY g.seq"
    return [row[0] for row in db.execute(sql, (tenant, user, tenant, user, page_id))]


def record(db: Database, tenant: str, user: str, record_id: str, *, now: datetime) -> Record | None:
    """The page or memory of that id; of what is for everybody, the chunk of a document."""
    if user == EVERYBODY:
        return documents.chunk(db, tenant, record_id)
    return page(db, tenant, user, record_id) or memory(db, tenant, user, record_id, now=now)


def records_named(
    db: Database, tenant: str, user: str, ids: Sequence[str], *, now: datetime
) -> dict[str, Record]:
    """Those of the records that there are, by id."""
    found = ((id, record(db, tenant, user, id, now=now)) for id in ids)
    return {id: one for id, one in found if one is not None}


def _pages(db: Database, rest: str, values: Sequence[Any]) -> list[Page]:
    return [page_of(db, row) for row in db.execute(f"{PAGES} {rest}", values)]


def page_of(db: Database, row: Row) -> Page:
    """The page of a row of `PAGES`."""
    payload, state = payload_of(db, *row[:5]), row[5]
    if not isinstance(payload, PageClosed):
        raise TypeError(f"a page's row names a {type(payload).__name__}")
    outdated = payload_of(db, "page.outdated", *row[6:]) if row[6] is not None else None
    told = outdated.outdated if isinstance(outdated, PageOutdated) else ()
    return msgspec.structs.replace(payload.page, state=state, outdated=told)


# -- exchanges ---------------------------------------------------------------------------------------------

_EXCHANGES = (
    "SELECT x.id, x.session, x.state, x.started, x.finished FROM exchanges x"
    f" WHERE x.user_id = {USER} AND x.state <> 'forgotten'"
)


def exchange(db: Database, tenant: str, user: str, exchange_id: str) -> Exchange | None:
    """One exchange, unless it was forgotten."""
    found = _exchanges(db, tenant, user, f"{_EXCHANGES} AND x.id = ?", (tenant, user, exchange_id))
    return found[0] if found else None


def steps_of(db: Database, tenant: str, user: str, exchange_id: str) -> list[Event]:
    """The captured steps of one exchange."""
    about = _events_about(db, tenant, user, [exchange_id]).get(exchange_id, [])
    return [event for event in about if isinstance(event.payload, StepCaptured)]


def last_exchange(db: Database, scope: Scope) -> str | None:
    """The last one of the scope's session by its first event."""
    where = f"user_id = {USER} AND session = ? AND own_agent = ? AND state <> 'forgotten'"
    sql = f"SELECT id FROM exchanges WHERE {where} ORDER BY first DESC LIMIT 1"
    row = db.execute(sql, (scope.tenant, scope.user, scope.session, scope.own_agent)).fetchone()
    return row[0] if row else None


def traced(db: Database, tenant: str, user: str, trace: str) -> list[Event]:
    """The captured steps with the recall of that trace."""
    if not trace:
        return []
    sql = (
        f"{rows.EVENTS} JOIN labels l ON l.seq = e.seq WHERE l.trace = ? AND u.tenant = ? AND u.name = ?"
        " AND e.kind = 'step.captured' ORDER BY e.seq"
    )
    return rows.events_of(db, db.execute(sql, (trace, tenant, user)))


def exchanges(
    db: Database,
    tenant: str,
    user: str,
    *,
    session: str | None,
    after: tuple[datetime, str] | None,
    limit: int,
) -> list[Exchange]:
    """A page of exchanges, newest first."""
    sql, values = _EXCHANGES, [tenant, user]
    if session is not None:
        sql += " AND x.session = ?"
        values += [session]
    at: list[Any] = []
    if after is not None:
        end, at = _end_of_page("exchanges", "subject", tenant, user, after)
        sql += f" AND (x.started, x.first) < {end}"
    sql += " ORDER BY x.started DESC, x.first DESC LIMIT ?"
    return _exchanges(db, tenant, user, sql, (*values, *at, max(limit, 0)))


def _exchanges(db: Database, tenant: str, user: str, sql: str, values: Sequence[Any]) -> list[Exchange]:
    found = db.execute(sql, values).fetchall()
    about = _events_about(db, tenant, user, [row[0] for row in found])
    return [_exchange_of(row, about[row[0]]) for row in found if row[0] in about]


def _events_about(db: Database, tenant: str, user: str, ids: Sequence[str]) -> dict[str, list[Event]]:
    """The readable events of each exchange, in the order in which they happened."""
    about: dict[str, list[Event]] = {}
    kinds = "('step.captured', 'exchange.enriched', 'page.closed')"
    for exchange_id in ids:
        found = db.execute(
            f"{rows.EVENTS} WHERE e.user_id = {USER} AND e.subject = ? AND e.kind IN {kinds}"
            " ORDER BY e.occurred, e.seq",
            (tenant, user, exchange_id),
        )
        if events := [rows.event_of(db, row) for row in found]:
            about[exchange_id] = events
    return about


def _exchange_of(row: Row, about: Sequence[Event]) -> Exchange:
    """An exchange from its row and events: the page's texts where it has a page, else those of its steps."""
    exchange_id, session, state, started, finished = row
    steps = [payload.step for payload in _payloads(about, StepCaptured)]
    enriched = _payloads(about, ExchangeEnriched)
    pages = _payloads(sorted(about, key=lambda event: event.seq), PageClosed)
    last = next((step for step in reversed(steps) if step.outcome != "failed"), steps[-1])
    return Exchange(
        id=exchange_id,
        scope=_scope_of(about, session, isolated=last.isolated),
        user_text=pages[-1].page.user_text if pages else last.user_text,
        reply_text=pages[-1].page.reply_text if pages else _reply(steps),
        outcome=last.outcome,
        state=state,
        started_at=moment(started),
        finished_at=moment(finished),
        model=next((e.model for e in reversed(enriched) if e.model), last.model),
        route=last.route,
        steps=len(steps),
        injected=tuple(dict.fromkeys(record for step in steps for record in step.injected)),
        usage=_usage([step.usage for step in steps]) or _usage([e.usage for e in enriched]),
        trace=next((step.trace for step in reversed(steps) if step.trace), ""),
    )


def _scope_of(about: Sequence[Event], session: str, *, isolated: bool) -> Scope:
    step = next(event for event in about if isinstance(event.payload, StepCaptured))
    return Scope(tenant=step.tenant, user=step.user, agent=step.agent, session=session, isolated=isolated)


def _payloads(events: Iterable[Event], kind: type[Any]) -> list[Any]:
    return [event.payload for event in events if isinstance(event.payload, kind)]


def _reply(steps: Sequence[Step]) -> str:
    """What the assistant has shown so far: of each request, sent once or again, its last answer."""
    shown = [step for step in steps if step.outcome != "failed"]
    answers = {step.retry_key or str(n): step.reply_text for n, step in enumerate(shown)}
    return "\n\n".join(text for text in answers.values() if text)


def _usage(parts: Sequence[Usage | None]) -> Usage | None:
    known = [part for part in parts if part is not None]
    if not known:
        return None
    return Usage(**{name: sum(getattr(part, name) for part in known) for name in Usage.__struct_fields__})


def exchange_state(db: Database, event: Event) -> ExchangeState:
    """What the page decider knows of the exchange of a captured step; see `Consumers.exchange_state`.

    Exchanges without a parent are nobody's siblings: a client may send each turn alone under one session.
    """
    user = rows.user_row(db, event.tenant, event.user)
    step = event.payload.step if isinstance(event.payload, StepCaptured) else None
    if user is None or step is None:
        return ExchangeState(steps=(), page=None, siblings=(), ancestors=(), descendants=())
    siblings = _siblings(db, user[0], step.exchange)
    return ExchangeState(
        steps=tuple(steps_of(db, event.tenant, event.user, step.exchange)),
        page=page(db, event.tenant, event.user, step.exchange),
        siblings=tuple(
            found for name in siblings if (found := page(db, event.tenant, event.user, name)) is not None
        ),
        ancestors=_ancestors(db, user[0], step.exchange),
        descendants=_descendants(db, user[0], siblings),
    )


def _siblings(db: Database, user: int, exchange_id: str) -> list[str]:
    own = "SELECT parent, session FROM exchanges WHERE user_id = ? AND id = ? AND parent IS NOT NULL"
    place = db.execute(own, (user, exchange_id)).fetchone()
    if place is None:
        return []
    others = "user_id = ? AND parent = ? AND session = ? AND id <> ?"
    sql = f"SELECT id FROM exchanges WHERE {others} ORDER BY started, first"
    return [row[0] for row in db.execute(sql, (user, *place, exchange_id))]


def _ancestors(db: Database, user: int, exchange_id: str) -> tuple[str, ...]:
    sql = (
        "WITH RECURSIVE up (id, depth) AS (SELECT parent, 1 FROM exchanges WHERE user_id = ?1 AND id = ?2"
        " UNION ALL SELECT x.parent, depth + 1 FROM up JOIN exchanges x ON x.user_id = ?1 AND x.id = up.id"
        " WHERE up.id IS NOT NULL AND depth < ?3) SELECT id FROM up WHERE id IS NOT NULL ORDER BY depth"
    )
    return tuple(dict.fromkeys(row[0] for row in db.execute(sql, (user, exchange_id, _LONGEST_CHAIN))))


def _descendants(db: Database, user: int, siblings: Sequence[str]) -> tuple[str, ...]:
    """Pages below the siblings, in order of time."""
    sql = (
        "WITH RECURSIVE down (id) AS"
        f" (SELECT id FROM exchanges WHERE user_id = ? AND parent IN ({marks(siblings)})"
        " UNION SELECT x.id FROM down JOIN exchanges x ON x.user_id = ? AND x.parent = down.id)"
        " SELECT id FROM down JOIN pages USING (id) WHERE user_id = ? ORDER BY occurred, id"
    )
    return tuple(row[0] for row in db.execute(sql, (user, *siblings, user, user))) if siblings else ()


def idle_exchanges(db: Database, *, before: datetime, limit: int) -> list[Event]:
    """The last step of each exchange that is open and quiet since `before`, longest quiet first."""
    sql = (
        f"{rows.EVENTS} JOIN exchanges x ON x.last_step = e.seq AND x.user_id = e.user_id"
        " WHERE x.state = 'open' AND x.finished < ? ORDER BY x.finished LIMIT ?"
    )
    return rows.events_of(db, db.execute(sql, (micros(before), max(limit, 0))))


# -- sessions and users ------------------------------------------------------------------------------------


def sessions(
    db: Database, tenant: str, user: str, *, after: tuple[datetime, str] | None, limit: int
) -> list[SessionInfo]:
    """A page of sessions, newest first."""
    sql = (
        "SELECT s.id, s.agent, s.own_agent, s.exchanges, s.started, s.last, coalesce(w.mode, 'on')"
        " FROM sessions s LEFT JOIN switched w ON w.user_id = s.user_id AND w.session = s.id"
        f" WHERE s.user_id = {USER}"
    )
    values: list[Any] = [tenant, user]
    if after is not None:
        end, at = _end_of_page("sessions", "session", tenant, user, after)
        sql, values = f"{sql} AND (s.last, s.first) < {end}", [*values, *at]
    order = "ORDER BY s.last DESC, s.first DESC LIMIT ?"
    found = db.execute(f"{sql} {order}", (*values, max(limit, 0))).fetchall()
    summaries = _summaries(db, tenant, user, [row[0] for row in found])
    return [_session_of(db, row, tenant, user, summaries) for row in found]


def _summaries(db: Database, tenant: str, user: str, sessions: Sequence[str]) -> dict[tuple[str, str], str]:
    """The rows of summaries, by owner and session."""
    if not sessions:
        return {}
    among = f"user_id = {USER} AND session IN ({marks(sessions)})"
    sql = f"SELECT owner, session, lines FROM summaries WHERE {among}"
    return {(row[0], row[1]): row[2] for row in db.execute(sql, (tenant, user, *sessions))}


def _session_of(
    db: Database, row: Row, tenant: str, user: str, summaries: Mapping[tuple[str, str], str]
) -> SessionInfo:
    scope = Scope(tenant=tenant, user=user, agent=row[1], session=row[0], isolated=bool(row[2]))
    lines = summaries.get((scope.owner, row[0]))
    return SessionInfo(
        id=row[0],
        scope=scope,
        exchanges=row[3],
        started_at=moment(row[4]),
        last_at=moment(row[5]),
        memory=row[6],
        summary=lines_of(db, (tenant, user), lines, scope.owner, row[0]),
    )


def session_mode(db: Database, tenant: str, user: str, session: str) -> SessionMode:
    """What memory does in a session; `on` in one that was never switched."""
    mode: SessionMode = (db.execute(SESSION_MODE, (tenant, user, session)).fetchone() or ("on",))[0]
    return mode


LISTED = f"u.name NOT IN ('{EVERYBODY}', '{OFFICE}') AND u.seen = 1 AND {REACHED}"
"""Whether the user `u` is a person with any event since the last erasure."""


def users(db: Database, tenant: str, *, after: str, limit: int) -> list[str]:
    """Users with any event since they were last erased, by name."""
    sql = f"SELECT u.name FROM users u WHERE u.tenant = ? AND u.name > ? AND {LISTED} ORDER BY u.name LIMIT ?"
    return [row[0] for row in db.execute(sql, (tenant, after, max(limit, 0)))]


def tenants(db: Database) -> list[str]:
    """Tenants by name."""
    return [row[0] for row in db.execute("SELECT DISTINCT tenant FROM users ORDER BY tenant")]


_NOT_HELD = (
    "u.name NOT IN (SELECT h.name FROM holds h JOIN users o ON o.id = h.user_id"
    " WHERE o.tenant = u.tenant AND o.name = ?)"
)
"""Whether no legal hold is on the user `u`; one value, `OFFICE`."""


def outlived(
    db: Database, tenant: str, *, now: datetime, before: Mapping[str, datetime], limit: int
) -> list[Outlived]:
    """See `EventLog.outlived`."""
    of = f"u.tenant = ? AND {REACHED} AND {_NOT_HELD}"
    memories = (
        "SELECT u.name, m.agent, u.generation, m.id, m.type, {} FROM users u"
        f" JOIN memories m ON m.user_id = u.id WHERE {of} AND {{}} LIMIT ?"
    )
    exchanges = (
        "SELECT u.name, s.agent, u.generation, x.id, 'dialogue', 0 FROM users u"
        " JOIN exchanges x ON x.user_id = u.id JOIN sessions s ON s.user_id = x.user_id AND s.id = x.session"
        " AND s.own_agent = x.own_agent"
        f" WHERE {of} AND x.started < ? AND x.state <> 'forgotten' ORDER BY x.started LIMIT ?"
    )
    asked: list[tuple[str, tuple[object, ...]]] = [
        (memories.format(1, "m.expires <= ? ORDER BY m.expires"), (micros(now),))
    ]
    for kind, over in before.items():
        if kind == "dialogue":
            asked.append((exchanges, (micros(over),)))
        else:
            held = (
                "m.type = ? AND m.occurred < ? AND (m.expires IS NULL OR m.expires > ?) ORDER BY m.occurred"
            )
            asked.append((memories.format(0, held), (kind, micros(over), micros(now))))
    rows: list[Row] = []
    for sql, values in asked:
        if len(rows) < limit:
            rows += db.execute(sql, (tenant, OFFICE, *values, limit - len(rows))).fetchall()
    return [
        Outlived(user=user, agent=agent, generation=generation, id=id, kind=kind, expired=bool(expired))
        for user, agent, generation, id, kind, expired in rows
    ]


def _end_of_page(
    view: str, column: str, tenant: str, user: str, after: tuple[datetime, str]
) -> tuple[str, list[Any]]:
    """Moment and place in the log of the record that a page ended with, as SQL and its values.

    The place is found where the record was forgotten meanwhile too: by the first event that names it in
    `column`, since envelopes stay.
    """
    first = f"SELECT min(first) FROM {view} WHERE user_id = {USER} AND id = ?"
    told = f"SELECT min(seq) FROM events WHERE user_id = {USER} AND {column} = ?"
    return f"(?, coalesce(({first}), ({told})))", [micros(after[0]), *(tenant, user, after[1]) * 2]
