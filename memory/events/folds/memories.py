"""Folds of memories, their evidence and the concepts over them."""

from __future__ import annotations

from hearth.memory.events import texts
from hearth.memory.events.archive import payload_of
from hearth.memory.events.codec import micros
from hearth.memory.events.folds.common import as_json, micros_or_none
from hearth.memory.events.folds.stripping import forget, redact, strip, strip_answers, strip_readings
from hearth.memory.events.kinds import (
    Event,
    MemoryAdded,
    MemoryChanged,
    MemoryForgotten,
    MemoryWithdrawn,
)
from hearth.memory.events.sql import STORED, Database, marks
from hearth.memory.extract.attributes import AGENT, subject_key, value_key
from hearth.memory.filters import fold_text
from hearth.memory.types import Memory

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


def fold_memory(db: Database, user: int, event: Event, payload: MemoryAdded | MemoryChanged) -> None:
    """A memory as it is now, what it rests on, and what it replaced."""
    m = payload.memory
    if isinstance(payload, MemoryChanged) and payload.says_otherwise:
        _spoil_concepts(db, user, event, m.id)
    place = (m.scope.agent, m.scope.session)
    times = (micros(m.created_at), micros(m.occurred_at), micros_or_none(m.expires_at))
    held = (micros(m.valid_from or m.occurred_at), micros_or_none(m.valid_to))
    subject, said, value = _compared(db, event.tenant, m)
    about = (subject, m.attribute)
    matched = (said, as_json(m.tags), as_json(m.metadata))
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


def fold_memory_forgotten(db: Database, user: int, event: Event, payload: MemoryForgotten) -> None:
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
        strip_answers(db, user, page)
        if isinstance(told, MemoryAdded | MemoryChanged):
            strip_readings(db, user, page, told.memory)
    forget(db, user, event, payload.memory)
    _strip_concepts(db, user, payload.memory)
    _spoil_concepts(db, user, event, payload.memory)
    _drop_memory(db, user, payload.memory)


def fold_withdrawn(db: Database, user: int, event: Event, payload: MemoryWithdrawn) -> None:
    """A memory that its page does not give any more."""
    _spoil_concepts(db, user, event, payload.memory)
    _drop_memory(db, user, payload.memory)


_CONCEPTS = "(SELECT v.memory FROM evidence v WHERE v.user_id = ? AND v.page = ?)"
"""Those that rest on a memory: nothing else has a memory's id for evidence."""


def _spoil_concepts(db: Database, user: int, event: Event, member: str) -> None:
    """A concept says what its members say: once one has changed it is out, until it is made anew."""
    told = f"SELECT seq FROM events WHERE user_id = ? AND seq < ? AND subject IN {_CONCEPTS}"
    redact(db, f"{told} AND kind IN ('memory.added', 'memory.changed')", (user, event.seq, user, member))
    db.execute(f"DELETE FROM memories WHERE user_id = ? AND id IN {_CONCEPTS}", (user, user, member))


def _strip_concepts(db: Database, user: int, member: str) -> None:
    """Take out the blocks that show a concept of a memory."""
    shown = (
        "SELECT i.seq FROM injections i JOIN evidence v ON v.user_id = i.user_id"
        " WHERE i.user_id = ? AND v.page = ? AND instr(i.records, '\"' || v.memory || '\"') > 0"
    )
    for (seq,) in db.execute(shown, (user, member)).fetchall():
        strip(db, seq)


def _drop_memory(db: Database, user: int, memory: str) -> None:
    db.execute("DELETE FROM memories WHERE user_id = ? AND id = ?", (user, memory))
    _drop_evidence(db, user, memory)
