"""Documents and chunks as the records that stores hold, and their ids."""

from __future__ import annotations

from typing import Final
from uuid import NAMESPACE_URL, uuid5

from hearth.memory.types import EVERYBODY, Chunk, Document, Memory, Record, Scope

MAX_NAME: Final = 128
"""Characters of a document's name."""
DOCUMENT, VERSION, AGENT = "document", "version", "agent"
"""Entries of a chunk's metadata that say which version of which document it is of, and for whose users."""
_DOCUMENT_DIGITS: Final = 20
_DIGITS: Final = 6
_HEADING_CHARACTERS: Final = 120


def everybody(tenant: str) -> Scope:
    """Whose a tenant's documents are."""
    return Scope(tenant=tenant, user=EVERYBODY)


def is_knowledge(record: Record) -> bool:
    """True for reference text: nobody's own words."""
    return isinstance(record, Memory) and record.type in ("knowledge", "system")


def is_everybodys(record: Record) -> bool:
    """True for what is for all users of a tenant."""
    return record.scope.user == EVERYBODY


def document_id(tenant: str, name: str) -> str:
    """The id of a tenant's document of that name."""
    return uuid5(NAMESPACE_URL, f"hearth:document:{everybody(tenant).owner}:{name}").hex


def system_id(tenant: str, name: str) -> str:
    """The id of a tenant's text of system memory of that name."""
    return uuid5(NAMESPACE_URL, f"hearth:system:{everybody(tenant).owner}:{name}").hex


def version_prefix(document: str, version: int) -> str:
    """What the ids of all chunks of a version begin with, and no other id does."""
    return f"{document[:_DOCUMENT_DIGITS]}{version:0{_DIGITS}x}"


def chunk_id(document: str, version: int, position: int) -> str:
    """32 hexadecimal digits that name document, version and position."""
    return f"{version_prefix(document, version)}{position:0{_DIGITS}x}"


def chunk_ids(document: str, version: int, count: int) -> list[str]:
    """The ids of all chunks of a version."""
    return [chunk_id(document, version, position) for position in range(count)]


def chunk_place(record: str) -> tuple[str, int] | None:
    """Of a chunk's id what its document's id begins with, and its position; None for what can't be one."""
    digits = record[_DOCUMENT_DIGITS + _DIGITS :]
    if len(digits) != _DIGITS or not digits.isascii() or not digits.isalnum():
        return None
    try:
        return record[:_DOCUMENT_DIGITS], int(digits, 16)
    except ValueError:
        return None


def chunk_memory(document: Document, chunk: Chunk, position: int, *, tenant: str, generation: int) -> Memory:
    """The chunk as it is indexed, recalled and shown: its headings stand before its text."""
    text = chunk.text[chunk.overlap :].lstrip()
    path = [one for one in _headings(document, chunk) if not text.startswith(one)]
    front = " > ".join(one[:_HEADING_CHARACTERS] for one in path)
    return Memory(
        id=chunk_id(document.id, document.version, position),
        scope=everybody(tenant),
        generation=generation,
        type="system" if document.kind == "system" else "knowledge",
        text=f"{front}\n{chunk.text}" if front else chunk.text,
        metadata={
            "source": f"{document.name}, {chunk.place}" if chunk.place else document.name,
            "title": document.title,
            "path": " > ".join(chunk.path),
            "position": position,
            DOCUMENT: document.id,
            VERSION: document.version,
            **({AGENT: document.agent} if document.agent else {}),
        },
        occurred_at=document.loaded_at,
        created_at=document.loaded_at,
        updated_at=document.loaded_at,
    )


def _headings(document: Document, chunk: Chunk) -> list[str]:
    """The document's title and the headings above the chunk, each once."""
    return list(dict.fromkeys(one for one in (document.title, *chunk.path) if one))
