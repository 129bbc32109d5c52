"""Whether a user's events are as they were written: each checksum is made again and compared."""

from __future__ import annotations

import hmac
from collections.abc import Sequence

from hearth.memory.errors import LogUnavailable
from hearth.memory.events.archive import ArchiveMoved, stored_body
from hearth.memory.events.codec import content
from hearth.memory.events.reads import memories_named, pages_named
from hearth.memory.events.seal import Content, Envelope, seal_content, seal_envelope
from hearth.memory.events.sql import USER, Database, number_of
from hearth.memory.events.texts import known_secret
from hearth.memory.ports import Damaged, EventsChecked
from hearth.memory.types import Record

_EVENTS = (
    "SELECT e.seq, e.id, e.kind, e.agent, e.session, e.generation, e.occurred, e.recorded, e.parent,"
    " e.subject, e.seal, e.redacted, p.version, p.body, p.seal, e.user_id FROM events e"
    f" LEFT JOIN payloads p ON p.seq = e.seq WHERE e.user_id = {USER} AND e.seq > ? ORDER BY e.seq LIMIT ?"
)


def check(db: Database, tenant: str, user: str, *, after: int, limit: int) -> EventsChecked:
    """See `EventLog.check`."""
    secret = known_secret(db, tenant)
    damaged: list[Damaged] = []
    redacted = unsealed = events = 0
    last = None
    for row in db.execute(_EVENTS, (tenant, user, after, limit)):
        seq, id, kind, agent, session, generation, occurred, recorded, parent, subject = row[:10]
        seal, gone, version, body, content_seal, owner = row[10:]
        last, events = int(seq), events + 1
        redacted += gone
        if not seal:
            unsealed += 1
            continue
        envelope = Envelope(id, tenant, user, kind, agent, generation, occurred, recorded)
        about = Content(id, kind, version or 0, session, parent, subject)
        if not hmac.compare_digest(bytes(seal), seal_envelope(secret, envelope)):
            reason = "its envelope was altered"
        elif body is None:
            reason = "" if gone else "its payload is missing"
        else:
            reason = _content(db, secret, about, bytes(content_seal), bytes(body), owner)
        if reason:
            damaged.append(Damaged(seq=int(seq), id=id, kind=kind, reason=reason))
    following = last if events == limit else None
    return EventsChecked(
        events=events,
        redacted=redacted,
        unsealed=unsealed,
        missing=_missing(db, tenant, user) if following is None else 0,
        damaged=tuple(damaged),
        next=following,
    )


def _missing(db: Database, tenant: str, user: str) -> int:
    """Events that were appended, by the count that each append raises, and are there no more."""
    there = "(SELECT count(*) FROM events e WHERE e.user_id = u.id)"
    return number_of(
        db.execute(
            f"SELECT u.events - {there} FROM users u WHERE u.tenant = ? AND u.name = ?", (tenant, user)
        )
    )


def _content(db: Database, secret: bytes, about: Content, seal: bytes, body: bytes, user: int) -> str:
    """What is wrong with the payload; empty where nothing is."""
    try:
        raw = content(stored_body(db, body, user, about.id))
    except ArchiveMoved:
        raise
    except (LogUnavailable, ValueError) as error:
        return f"its payload can't be read ({error})"
    same = hmac.compare_digest(seal, seal_content(secret, about, raw))
    return "" if same else "its payload, session, parent or subject was altered"


def records(db: Database, tenant: str, user: str, *, after: str, limit: int) -> list[Record]:
    """See `EventLog.records`."""
    found = db.execute(
        f"SELECT id FROM (SELECT id FROM pages WHERE user_id = {USER} AND id > ?"
        f" UNION SELECT id FROM memories WHERE user_id = {USER} AND id > ?) AS known ORDER BY id LIMIT ?",
        (tenant, user, after, tenant, user, after, limit),
    ).fetchall()
    ids = [row[0] for row in found]
    if not ids:
        return []
    whole: Sequence[Record] = [*pages_named(db, tenant, user, ids), *memories_named(db, tenant, user, ids)]
    return sorted(whole, key=lambda record: record.id)
