"""What the log answers of the documents that are for all users of a tenant."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from hearth.memory.events import texts
from hearth.memory.events.archive import payload_of
from hearth.memory.events.codec import micros
from hearth.memory.events.kinds import MemoryAdded, MemoryChanged
from hearth.memory.events.sql import GENERATION, STORED, USER, Database, marks, number_of
from hearth.memory.extract.attributes import value_key
from hearth.memory.knowledge.records import chunk_memory, chunk_place, version_prefix
from hearth.memory.ports import KnownDocument
from hearth.memory.types import EVERYBODY, Chunk, Common, Document, DocumentKind, Memory, Shelf

_DOCUMENT = msgspec.json.Decoder(Document)
_CHUNK = msgspec.json.Decoder(Chunk)


def document(db: Database, tenant: str, document_id: str) -> KnownDocument | None:
    """What is known of a document, one that was removed too."""
    row = db.execute(
        f"SELECT version, last, about FROM documents WHERE user_id = {USER} AND id = ?",
        (tenant, EVERYBODY, document_id),
    ).fetchone()
    if row is None:
        return None
    return KnownDocument(
        version=row[0], last=row[1], document=about_of(db, tenant, document_id, row[2]) if row[2] else None
    )


def documents(db: Database, tenant: str, kind: DocumentKind, *, after: str, limit: int) -> list[Document]:
    """The tenant's documents of that kind by name."""
    found = db.execute(
        f"SELECT id, about FROM documents WHERE user_id = {USER} AND about <> '' AND kind = ? AND name > ?"
        " ORDER BY name LIMIT ?",
        (tenant, EVERYBODY, kind, after, max(limit, 0)),
    )
    return [about_of(db, tenant, *row) for row in found]


def about_of(db: Database, tenant: str, document_id: str, stored: str) -> Document:
    """The document of that id, of what its view holds."""
    return _DOCUMENT.decode(texts.read(db, (tenant, EVERYBODY), stored, "document", document_id))


def chunk_of(db: Database, tenant: str, document_id: str, position: int, stored: str) -> Chunk:
    """The chunk at that place of the document, of what its view holds."""
    return _CHUNK.decode(texts.read(db, (tenant, EVERYBODY), stored, "chunk", document_id, str(position)))


def chunks(
    db: Database, tenant: str, document_id: str, *, version: int, after: int, limit: int
) -> list[Memory]:
    """Chunks of that version behind a position, in order; none where another version is in force."""
    return _chunks(
        db,
        "d.id = ? AND d.version = ? AND c.position > ? ORDER BY c.position LIMIT ?",
        (tenant, EVERYBODY, document_id, version, after, max(limit, 0)),
        tenant,
    )


def chunk(db: Database, tenant: str, record_id: str) -> Memory | None:
    """The chunk of that id, if its version is in force."""
    place = chunk_place(record_id)
    if place is None:
        return None
    start, position = place
    found = _chunks(
        db,
        "d.id >= ? AND d.id < ? AND c.position = ?",
        (tenant, EVERYBODY, start, f"{start}g", position),
        tenant,
    )
    return next((one for one in found if one.id == record_id), None)


def _chunks(db: Database, where: str, values: Sequence[object], tenant: str) -> list[Memory]:
    found = db.execute(
        "SELECT u.generation, d.id, d.about, c.position, c.body FROM documents d"
        " JOIN users u ON u.id = d.user_id JOIN chunks c ON c.user_id = d.user_id AND c.document = d.id"
        f" WHERE d.user_id = {USER} AND d.about <> '' AND {where}",
        values,
    )
    return [
        chunk_memory(
            about_of(db, tenant, id, about),
            chunk_of(db, tenant, id, position, body),
            position,
            tenant=tenant,
            generation=generation,
        )
        for generation, id, about, position, body in found
    ]


def shelf(db: Database, tenant: str) -> Shelf:
    """Which of the tenant's documents may be recalled; an empty one for a tenant without any."""
    generation = db.execute(GENERATION, (tenant, EVERYBODY))
    found = db.execute(
        f"SELECT id, version, seq, about <> '' FROM documents WHERE user_id = {USER}", (tenant, EVERYBODY)
    ).fetchall()
    return Shelf(
        tenant=tenant,
        generation=number_of(generation),
        versions={row[0]: row[1] for row in found if row[3]},
        changed=max((row[2] for row in found), default=0),
    )


def shelf_changes(db: Database, tenants: Sequence[str]) -> dict[str, int]:
    """The position of the last change of each tenant's documents; those without any are left out."""
    if not tenants:
        return {}
    found = db.execute(
        "SELECT u.tenant, (SELECT max(d.seq) FROM documents d WHERE d.user_id = u.id) FROM users u"
        f" WHERE u.name = ? AND u.tenant IN ({marks(tenants)})",
        (EVERYBODY, *tenants),
    )
    return {tenant: seq for tenant, seq in found if seq is not None}


def shown_to(db: Database, tenant: str, document_id: str, *, version: int) -> list[str]:
    """Users in whose blocks a chunk of that version stood, by name."""
    found = db.execute(
        "SELECT DISTINCT u.name FROM injections i JOIN users u ON u.id = i.user_id"
        " WHERE u.tenant = ? AND instr(i.records, ?) > 0 ORDER BY u.name",
        (tenant, f'"{version_prefix(document_id, version)}'),
    )
    return [row[0] for row in found]


def common(
    db: Database, tenant: str, *, attributes: Sequence[str], least: int, now: datetime, limit: int
) -> list[Common]:
    """See `Documents.common`."""
    if not attributes:
        return []
    found = db.execute(
        "SELECT m.attribute, m.value, count(DISTINCT m.user_id), min(m.seq) FROM memories m"
        " JOIN users u ON u.id = m.user_id"
        f" WHERE u.tenant = ? AND m.attribute IN ({marks(attributes)}) AND m.value <> ''"
        " AND length(m.value) <= ? AND m.type = 'fact' AND m.subject = 'user' AND m.successor IS NULL"
        " AND (m.closed IS NULL OR m.closed > ?) AND (m.expires IS NULL OR m.expires > ?)"
        " GROUP BY m.attribute, m.value HAVING count(DISTINCT m.user_id) >= ?"
        " ORDER BY count(DISTINCT m.user_id) DESC, m.attribute, m.value LIMIT ?",
        (tenant, *attributes, texts.VALUE_CHARACTERS, micros(now), micros(now), least, max(limit, 0)),
    )
    return [Common(attribute=row[0], value=_value(db, *row[1::2]), users=row[2]) for row in found.fetchall()]


def _value(db: Database, value: str, seq: int) -> str:
    """The value that a row of memories is counted by; of a digest, what the memory of that event says."""
    if not value.startswith(texts.MARK):
        return value
    row = db.execute(
        f"SELECT {STORED} FROM events e JOIN payloads p USING (seq) WHERE seq = ?", (seq,)
    ).fetchone()
    told = None if row is None else payload_of(db, *row)
    return value_key(told.memory.value) if isinstance(told, MemoryAdded | MemoryChanged) else ""


def refusals(db: Database, tenant: str) -> list[str]:
    """Topics that an operator of the tenant refused."""
    found = db.execute(
        f"SELECT topic FROM refusals WHERE user_id = {USER} ORDER BY topic", (tenant, EVERYBODY)
    )
    return [row[0] for row in found]
