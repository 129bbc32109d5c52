"""Events to and from their rows: the append, idempotent by id and fenced by generation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from hearth.memory.errors import BadInput, PrivateSession, StaleGeneration, UnderHold, UnknownEvent
from hearth.memory.events import views
from hearth.memory.events.archive import payload_of
from hearth.memory.events.codec import Encoded, encode, micros, moment
from hearth.memory.events.folds import common
from hearth.memory.events.kinds import (
    UNKNOWN,
    Event,
    MemoryForgotten,
    PageForgotten,
    SessionForgotten,
    SessionSwitched,
    StepCaptured,
    TenantErased,
    UserErased,
)
from hearth.memory.events.seal import Content, Envelope, seal_content, seal_envelope
from hearth.memory.events.sql import NAMED, Database, Encrypts, Row, marks, number_of, tenant_key
from hearth.memory.events.texts import secret_of
from hearth.memory.types import OFFICE

EVENTS = (
    "SELECT e.seq, e.id, u.tenant, u.name, e.agent, e.session, e.generation, e.occurred, e.parent,"
    " e.recorded, e.kind, p.version, p.body, e.user_id"
    " FROM events e JOIN payloads p USING (seq) JOIN users u ON u.id = e.user_id"
)
"""Whole events, redacted ones left out; add conditions and an order."""


def event_of(db: Database, row: Row) -> Event:
    """The event of a row of `EVENTS`. Raises UnknownEvent, LogUnavailable for an archive out of reach."""
    return Event(
        seq=row[0],
        id=row[1],
        tenant=row[2],
        user=row[3],
        agent=row[4],
        session=row[5],
        generation=row[6],
        occurred_at=moment(row[7]),
        parent=row[8],
        recorded_at=moment(row[9]),
        payload=payload_of(db, row[10], row[11], row[12], row[13], row[1]),
    )


def events_of(db: Database, rows: Iterable[Row]) -> list[Event]:
    """The events of the rows before the first unreadable one. Raises UnknownEvent if that is the first."""
    events: list[Event] = []
    for row in rows:
        try:
            events.append(event_of(db, row))
        except UnknownEvent:
            if not events:
                raise
            break
    return events


def user_row(db: Database, tenant: str, user: str) -> tuple[int, int] | None:
    """The user's row id and generation, or None for a user that the log never saw."""
    row = db.execute(
        "SELECT id, generation FROM users WHERE tenant = ? AND name = ?", (tenant, user)
    ).fetchone()
    return None if row is None else (row[0], row[1])


class _User(NamedTuple):
    """Who an event is of; `id` is None for a user that the log never saw."""

    id: int | None
    generation: int
    base: int = 1
    """The least generation of the tenant's users."""

    @property
    def closed(self) -> bool:
        """True while the tenant's erasure has yet to come to the user."""
        return self.id is not None and self.generation < self.base


class Known:
    """What the log already holds of the users, ids and subjects that some events name.

    It holds for the open transaction and is kept up to date with what that appends.
    """

    def __init__(self, db: Database, events: Sequence[Event], *, holds: bool = False) -> None:
        """`holds`: whether holds are looked at. Their place in the log is taken too, so that none is placed
        meanwhile.
        """
        offices = {(event.tenant, OFFICE) for event in events if holds}
        self.places = db.places({(event.tenant, event.user) for event in events} | offices)
        self.users: dict[tuple[str, str], _User] = {}
        self.ids: set[str] = set()
        self.forgotten: dict[tuple[str, str, str], int] = {}
        """By (tenant, user, subject): when it was forgotten, in microseconds."""
        asked = {
            who: db.execute(_LAST_ERASED, who)
            for who in {(e.tenant, e.user) for e in events if e.generation == UNKNOWN}
        }
        tenants = sorted({event.tenant for event in events})
        keyed = db.execute(f"SELECT tenant, secret FROM secrets WHERE tenant IN ({marks(tenants)})", tenants)
        keys = db.keys.newest(db, {(e.tenant, e.user) for e in events})
        self.private: set[tuple[str, str, str]] = set()
        """(tenant, user, session) of which nothing is captured."""
        named = [
            (e.id, e.tenant, e.user, subject, e.session)
            for e in events
            for subject in {views.subject_of(e.payload), common.session_mark(e)}
        ]
        for at in range(0, len(named), _NAMED_AT_ONCE):
            self._look_up(db, named[at : at + _NAMED_AT_ONCE])
        self.erased = {who: number_of(answer) for who, answer in asked.items()}
        """By (tenant, user): when the user was last erased, in microseconds of the log's clock."""
        self.secrets = {tenant: db.keys.unwrap_secret(tenant, bytes(stored)) for tenant, stored in keyed}
        """By tenant, made where there was none."""
        self.keys = dict(keys())
        """By (tenant, user): by what payloads are encrypted, where they are and the user has a key."""
        # in one order, so that of two appends at once none waits for the other
        self.secrets |= {tenant: secret_of(db, tenant) for tenant in tenants if tenant not in self.secrets}

    def forgotten_at(self, event: Event, subject: str) -> int | None:
        """When what the event is about, or the session that a step is in, was forgotten."""
        who = (event.tenant, event.user)
        marked = (self.forgotten.get((*who, name)) for name in (subject, common.session_mark(event)))
        return max((at for at in marked if at is not None), default=None)

    def began_after_erasure(self, event: Event) -> bool:
        """Whether the event is of the user's present generation by its time, with clocks that differ."""
        erased = self.erased[event.tenant, event.user]
        return erased == 0 or micros(event.occurred_at - common.CLOCK_SKEW) > erased

    def key(self, db: Database, user: int, who: tuple[str, str]) -> Encrypts:
        """By what the user's payloads are encrypted, made at first use."""
        if who not in self.keys:
            self.keys[who] = db.keys.made(db, user, who, self.users[who].generation)
        return self.keys[who]

    def renew_key(self, db: Database, user: int, who: tuple[str, str], generation: int) -> None:
        """Destroy the user's keys, and what they encrypted in every copy with them; the new generation has
        its own.
        """
        db.keys.destroy(db, user)
        if db.keys.on:
            self.keys[who] = db.keys.made(db, user, who, generation)

    def _look_up(self, db: Database, named: Sequence[tuple[str, str, str, str, str]]) -> None:
        values = ", ".join(["(?, ?, ?, ?, ?)"] * len(named))
        found = db.execute(
            f"WITH named (id, tenant, name, subject, session) AS (VALUES {values})"
            " SELECT n.id, n.tenant, n.name, n.subject, u.id, u.generation, b.generation, e.seq, f.at,"
            " n.session, w.mode"
            " FROM named n"
            " LEFT JOIN users u ON u.tenant = n.tenant AND u.name = n.name"
            " LEFT JOIN bases b ON b.tenant = n.tenant"
            " LEFT JOIN events e ON e.id = n.id"
            " LEFT JOIN forgotten f ON f.user_id = u.id AND f.id = n.subject"
            " LEFT JOIN switched w ON w.user_id = u.id AND w.session = n.session",
            [value for row in named for value in row],
        )
        for event, tenant, name, subject, user, generation, base, seq, forgotten, session, mode in found:
            self.users[tenant, name] = _User(user, generation or base or 1, base or 1)
            if seq is not None:
                self.ids.add(event)
            if forgotten is not None:
                self.forgotten[tenant, name, subject] = forgotten
            if mode not in (None, "on"):
                self.private.add((tenant, name, session))


_LAST_ERASED = (
    f"SELECT coalesce(max(recorded), 0) FROM events WHERE user_id = {NAMED} AND kind = 'user.erased'"
)
_NAMED_AT_ONCE = 250
"""Events looked up by one statement; five values each."""


def append(
    db: Database, events: Sequence[Event], *, drop_stale: bool = False, unless_held: bool = False
) -> None:
    """Add the events and fold them, in the open transaction.

    Raises UnderHold with `unless_held`, as `EventLog.append` has it; StaleGeneration, unless `drop_stale`:
    then such events are left out; PrivateSession for a call of a private session, BadInput for a generation
    that the user never had. Whatever it raises, nothing was added.
    """
    known = Known(db, events, holds=unless_held)
    append_known(db, known, events, drop_stale=drop_stale, unless_held=unless_held)


def append_known(
    db: Database,
    known: Known,
    events: Sequence[Event],
    *,
    drop_stale: bool = False,
    unless_held: bool = False,
) -> None:
    """`append` for some of the events that `known` was made for."""
    if unless_held and (held := _held(db, events)):
        raise UnderHold(held)
    counts: Counter[tuple[str, str]] = Counter()
    told = [_told_whose(db, event) for event in events]
    for event, encoded in _taken(known, told, drop_stale=drop_stale):
        _write(db, known, event, encoded)
        counts[event.tenant, event.user] += 1
    for who, more in sorted(counts.items()):
        db.execute("UPDATE users SET events = events + ? WHERE id = ?", (more, known.users[who].id))


def _told_whose(db: Database, event: Event) -> Event:
    """A tombstone with the isolated agent whose own the record is: once that is gone nothing else tells."""
    match event.payload:
        case MemoryForgotten(memory=record, own_agent=""):
            view = "memories"
        case PageForgotten(page=record, own_agent=""):
            view = "exchanges"
        case _:
            return event
    sql = f"SELECT own_agent FROM {view} WHERE user_id = {NAMED} AND id = ?"
    row = db.execute(sql, (event.tenant, event.user, record)).fetchone()
    if row is None or not row[0]:
        return event
    return msgspec.structs.replace(event, payload=msgspec.structs.replace(event.payload, own_agent=row[0]))


def _held(db: Database, events: Sequence[Event]) -> tuple[str, ...]:
    """Users of the events on whom a hold is."""
    held: set[str] = set()
    for tenant in {event.tenant for event in events}:
        mine = [event for event in events if event.tenant == tenant]
        names = {event.user for event in mine}
        found = db.execute(f"SELECT name FROM holds WHERE user_id = {NAMED}", (tenant, OFFICE))
        every = any(isinstance(event.payload, TenantErased) for event in mine)
        held |= {row[0] for row in found if every or row[0] in names}
    return tuple(sorted(held))


def _taken(known: Known, events: Sequence[Event], *, drop_stale: bool) -> list[tuple[Event, Encoded]]:
    """The events that are new and of their user's generation, with their stored forms."""
    taken: list[tuple[Event, Encoded]] = []
    ids: set[str] = set()
    users = dict(known.users)
    private = set(known.private)
    for event in events:
        who = (event.tenant, event.user)
        user = users[who]
        if event.id in known.ids or event.id in ids:
            continue
        if event.generation == UNKNOWN and known.began_after_erasure(event):
            event = msgspec.structs.replace(event, generation=user.generation)
        if _outdated(event, user):
            if drop_stale:
                continue
            raise StaleGeneration
        if _is_private(event, private):
            raise PrivateSession
        if isinstance(event.payload, UserErased):
            users[who] = user._replace(generation=event.payload.generation)
        ids.add(event.id)
        taken.append((event, encode(event.payload)))
    return taken


def _is_private(event: Event, private: set[tuple[str, str, str]]) -> bool:
    """Whether it is a call of a private session; `private` follows what is switched before it."""
    session = (event.tenant, event.user, event.session)
    match event.payload:
        case SessionSwitched(mode="on"):
            private.discard(session)
        case SessionSwitched():
            private.add(session)
        case StepCaptured(step=step):
            return session in private and step.source == "live"
        case _:
            pass
    return False


def _outdated(event: Event, user: _User) -> bool:
    """An erasure must raise the generation: of two at once the second is outdated like anything else."""
    generation = user.generation
    if isinstance(event.payload, UserErased):
        return event.payload.generation <= generation
    if user.closed:
        return True
    if event.generation > generation:
        raise BadInput("generation", event.generation, f"at most the user's own, {generation}")
    return event.generation < generation


def _write(db: Database, known: Known, event: Event, encoded: Encoded) -> None:
    now, who = known.places.now, (event.tenant, event.user)
    user = known.users[who].id
    if user is None:
        user = _add_user(db, event, known.users[who].generation)
        known.users[who] = known.users[who]._replace(id=user)
    seq = known.places.following(*who)
    occurred = min(event.occurred_at, now + common.CLOCK_SKEW)
    subject = views.subject_of(event.payload)
    refused = views.refused(event, occurred, known.forgotten_at(event, subject))
    named = (event.id, *who, encoded.kind, event.agent, event.generation)
    times = (micros(occurred), micros(now))
    secret = known.secrets[event.tenant]
    db.execute(
        "INSERT INTO events"
        " (seq, id, user_id, kind, agent, session, generation, occurred, recorded, parent, subject,"
        " tenant_key, seal, redacted) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(seq, event.id, user, encoded.kind, event.agent, event.session, event.generation),
            *(*times, event.parent, subject, tenant_key(event.tenant)),
            *(seal_envelope(secret, Envelope(*named, *times)), int(refused)),
        ),
    )
    known.ids.add(event.id)
    if refused:
        return
    about = Content(event.id, encoded.kind, encoded.version, event.session, event.parent, subject)
    event = msgspec.structs.replace(
        event, seq=seq, payload=encoded.payload, occurred_at=occurred, recorded_at=now
    )
    if isinstance(event.payload, UserErased):
        known.renew_key(db, user, who, event.payload.generation)
    body = encoded.body
    if db.keys.on:
        body = known.key(db, user, who).encrypt(body, "event", event.id)
    db.execute(
        "INSERT INTO payloads (seq, version, body, seal) VALUES (?, ?, ?, ?)",
        (seq, encoded.version, body, seal_content(secret, about, encoded.raw)),
    )
    views.fold(db, user, event)
    _remember(known, event)


def _add_user(db: Database, event: Event, generation: int) -> int:
    row = db.execute(
        "INSERT INTO users (tenant, name, generation) VALUES (?, ?, ?) RETURNING id",
        (event.tenant, event.user, generation),
    ).fetchone()
    return int(row[0]) if row else 0


def _remember(known: Known, event: Event) -> None:
    """Let the rest of the transaction know what this event changed."""
    tenant, name = who = (event.tenant, event.user)
    match event.payload:
        case UserErased(generation=generation):
            known.users[who] = known.users[who]._replace(generation=generation)
            known.forgotten = {key: at for key, at in known.forgotten.items() if key[:2] != who}
        case MemoryForgotten(memory=subject) | PageForgotten(page=subject):
            known.forgotten[tenant, name, subject] = micros(event.occurred_at)
        case SessionForgotten():
            known.forgotten[tenant, name, common.session_mark(event)] = micros(event.occurred_at)
        case TenantErased(generation=base):
            known.users = {
                (of, user): had._replace(base=base) if of == tenant else had
                for (of, user), had in known.users.items()
            }
            known.users[who] = known.users[who]._replace(generation=base)
        case StepCaptured(step=step):
            known.forgotten.pop((tenant, name, step.exchange), None)
        case SessionSwitched():
            _is_private(event, known.private)
        case _:
            pass
