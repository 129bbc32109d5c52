"""What is taken out of older events once it is forgotten, and what of them stays."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from hearth.memory.events import texts
from hearth.memory.events.archive import payload_of
from hearth.memory.events.codec import encode, micros
from hearth.memory.events.data_keys import key_of
from hearth.memory.events.folds.common import as_json
from hearth.memory.events.kinds import (
    Event,
    ExtractionReplied,
    KnowledgeLoaded,
    PageRead,
    Payload,
    Reading,
    RecallJudged,
    SessionSummarised,
    StepCaptured,
)
from hearth.memory.events.seal import Content, seal_content
from hearth.memory.events.sql import STORED, Database, marks
from hearth.memory.events.texts import secret_of
from hearth.memory.extract.attributes import subject_key, value_key
from hearth.memory.types import CandidateFact, Document, Memory


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
    told = summary(db, user, (tenant, name), left)
    db.execute("UPDATE summaries SET lines = ? WHERE seq = ?", (told, seq))
    return left


def summary(db: Database, user: int, who: tuple[str, str], payload: SessionSummarised) -> str:
    """The lines as their view has them; what is empty says so."""
    told = as_json(payload.lines)
    if not payload.lines:
        return told
    return texts.writing(db, user, who)(told, "summary", payload.owner, payload.session)


def is_forgotten(db: Database, user: int, record: str) -> bool:
    """Whether the record of that id is forgotten."""
    row = db.execute("SELECT 1 FROM forgotten WHERE user_id = ? AND id = ?", (user, record)).fetchone()
    return row is not None


def strip_answers(db: Database, user: int, page: str) -> None:
    """Take out the text of what a model answered about the page, and about others beside it."""
    found = db.execute(
        "SELECT i.seq FROM injections i JOIN events e USING (seq)"
        " WHERE i.user_id = ? AND e.kind = 'extraction.replied' AND instr(i.records, ?) > 0",
        (user, as_json(page)),
    ).fetchall()
    for (seq,) in found:
        strip(db, seq)


def strip_readings(db: Database, user: int, page: str, memory: Memory) -> None:
    """Take out what the page states of the same thing as the memory."""

    def says_other(one: Reading) -> bool:
        said = one.said
        return one.fact != memory.id and (subject_key(said.subject), said.attribute, _told(said)) != (
            *(subject_key(memory.subject), memory.attribute),
            value_key(memory.value or memory.text),
        )

    read = "SELECT seq FROM events WHERE user_id = ? AND subject = ? AND kind = 'page.read'"
    for (seq,) in db.execute(read, (user, page)).fetchall():
        keep_readings(db, seq, says_other)


def _told(said: CandidateFact) -> str:
    return value_key(said.value or said.statement)


def keep_readings(db: Database, seq: int, keeps: Callable[[Reading], bool]) -> None:
    """Leave of what a page was read as only what is kept."""
    row = db.execute(
        f"SELECT {STORED} FROM events e JOIN payloads p USING (seq) WHERE seq = ?", (seq,)
    ).fetchone()
    payload = None if row is None else payload_of(db, *row)
    if isinstance(payload, PageRead):
        said = tuple(one for one in payload.said if keeps(one))
        _replace(db, seq, msgspec.structs.replace(payload, said=said))


def forget(db: Database, user: int, event: Event, record: str) -> None:
    """Refuse later content of the record, redact its earlier payloads, and the blocks and notes around it."""
    db.execute(
        "INSERT INTO forgotten VALUES (?, ?, ?) ON CONFLICT (user_id, id) DO UPDATE SET at = excluded.at",
        (user, record, micros(event.occurred_at)),
    )
    redact(
        db,
        "SELECT seq FROM events WHERE user_id = ? AND subject = ? AND seq < ?"
        " AND kind NOT IN ('page.forgotten', 'memory.forgotten', 'forget.asked')",
        (user, record, event.seq),
    )
    # a quoted id can't be found inside another one: JSON would have escaped its quotes
    shown = db.execute(
        "SELECT seq FROM injections WHERE user_id = ? AND instr(records, ?) > 0", (user, as_json(record))
    ).fetchall()
    for (seq,) in shown:
        strip(db, seq)


def redact(db: Database, seqs: str, values: Sequence[object]) -> None:
    """Delete the content of those events everywhere in the log; their envelopes stay.

    An archive that holds more than the log says is written anew by `archiving.purge`.
    """
    db.execute(f"UPDATE events SET redacted = 1 WHERE seq IN ({seqs})", values)
    for table in ("payloads", "step_keys", "parked", "injections", "labels"):
        db.execute(f"DELETE FROM {table} WHERE seq IN ({seqs})", values)


def strip(db: Database, seq: int) -> None:
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
        db.execute("UPDATE injections SET records = ? WHERE seq = ?", (as_json({*left}), seq))
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
