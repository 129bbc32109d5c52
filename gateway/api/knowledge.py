"""Knowledge: documents that an operator loads for all users of a tenant."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, ClassVar

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel, Field

from hearth.gateway.api.access import AdminKey, TheEngine
from hearth.gateway.api.cursor import read_name_cursor, write_cursor
from hearth.gateway.api.door import MEGABYTE, KeyedRoute
from hearth.gateway.api.fields import MAX_LIMIT
from hearth.gateway.api.problems import FieldError, invalid, shown
from hearth.gateway.api.shapes import WHEN, example
from hearth.memory.knowledge.library import MAX_TITLE
from hearth.memory.knowledge.reading import MEDIA_TYPES
from hearth.memory.knowledge.records import document_id
from hearth.memory.types import Document, Memory


class DocumentRoute(KeyedRoute):
    """A keyed route that takes documents."""

    body_limit: ClassVar[int] = 32 * MEGABYTE


router = APIRouter(tags=["knowledge"], route_class=DocumentRoute)

DOCUMENT: dict[str, Any] = {
    "name": "handbook.md",
    "title": "Handbook",
    "version": 2,
    "media_type": "text/markdown",
    "characters": 8120,
    "chunks": 11,
    "loaded_at": WHEN,
}


class DocumentOut(BaseModel):
    """A document, in the version that is in force."""

    model_config = example(**DOCUMENT)

    name: str
    title: str = Field(description="As given, or as the document says; empty where neither does.")
    version: int = Field(description="Counts from 1, over removals too.")
    media_type: str
    characters: int = Field(description="Of its text.")
    chunks: int = Field(description="Parts that are found and shown as one.")
    loaded_at: datetime

    @classmethod
    def of(cls, document: Document) -> DocumentOut:
        """The document as the API shows it."""
        return cls(**_fields(document))


class LoadedOut(DocumentOut):
    """What became of a load."""

    model_config = example(**DOCUMENT, changed=True)

    changed: bool = Field(description="False where this very document was loaded already.")


class ChunkOut(BaseModel):
    """A part of a document."""

    id: str
    position: int
    path: str = Field(description="The headings above it.")
    source: str = Field(description="What a block cites it by.")
    text: str = Field(description="As it is found and shown.")

    @classmethod
    def of(cls, chunk: Memory) -> ChunkOut:
        """The chunk as the API shows it."""
        told = chunk.metadata
        return cls(
            id=chunk.id,
            position=int(told["position"] or 0),
            path=str(told["path"]),
            source=str(told["source"]),
            text=chunk.text,
        )


class DocumentShown(DocumentOut):
    """A document with some of its parts."""

    model_config = example(
        **DOCUMENT,
        items=[{"id": "…", "position": 0, "path": "", "source": "handbook.md", "text": "Handbook\n…"}],
        next=None,
    )

    items: list[ChunkOut] = Field(description="Parts in the document's order.")
    next: int | None = Field(description="`after` of the next page; null at the end.")


class DocumentPage(BaseModel):
    """One page of the tenant's documents, in order of name."""

    items: list[DocumentOut]
    next: str | None = Field(description="The `cursor` of the next page; null at the end.")


class RemovedOut(BaseModel):
    """What became of a removal."""

    model_config = example(name="handbook.md", done=True, pending=[])

    name: str
    done: bool = Field(description="True if it is gone everywhere.")
    pending: list[str] = Field(
        description="Stores that are down: it is unreachable already, and the worker removes it there later."
    )


EXAMPLES = {
    "text/markdown": "# Handbook\n\n## Returns\n\nLamps can be returned within thirty days.\n",
    "text/plain": "Lamps can be returned within thirty days.\n",
    "text/html": "<h1>Handbook</h1><p>Lamps can be returned within thirty days.</p>",
    "application/pdf": "%PDF-1.7 …",
}
BODY = {
    "requestBody": {
        "required": True,
        "content": {kind: {"schema": {"type": "string"}, "example": text} for kind, text in EXAMPLES.items()},
    }
}
Name = Annotated[
    str, Path(description="By which it is loaded again, removed and cited; slashes may be in it.")
]


@router.put("/knowledge/{name:path}", openapi_extra=BODY)
async def load_document(
    name: Name,
    request: Request,
    key: AdminKey,
    engine: TheEngine,
    title: Annotated[
        str, Query(max_length=MAX_TITLE, description="In place of what the document says.")
    ] = "",
) -> LoadedOut:
    """Load a document for all users of the key's tenant, in place of the one of that name.

    It is durable when this answers, and found within seconds. The same document once more changes nothing.
    """
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if kind not in MEDIA_TYPES:
        accepted = ", ".join(MEDIA_TYPES)
        raise invalid(
            [FieldError(field="content-type", value=shown(kind), expected=f"one of {accepted}")],
            status=415,
            kind="media-type",
        )
    await engine.note(key.tenant, "load", by=key.name, about=document_id(key.tenant, name))
    loaded = await engine.knowledge.load(
        key.tenant, name, await request.body(), kind, title=title.strip(), by=key.name
    )
    return LoadedOut(**_fields(loaded.document), changed=loaded.changed)


@router.get("/knowledge")
async def list_documents(
    key: AdminKey,
    engine: TheEngine,
    limit: Annotated[int, Query(ge=1, le=MAX_LIMIT)] = 50,
    cursor: Annotated[str | None, Query(description="`next` of the page before.")] = None,
) -> DocumentPage:
    """List the documents of the key's tenant."""
    after = read_name_cursor("knowledge", cursor)
    found = await engine.knowledge.documents(key.tenant, after=after, limit=limit + 1)
    more = write_cursor("knowledge", found[limit - 1].name) if len(found) > limit else None
    return DocumentPage(items=[DocumentOut.of(document) for document in found[:limit]], next=more)


@router.get("/knowledge/{name:path}")
async def show_document(
    name: Name,
    key: AdminKey,
    engine: TheEngine,
    limit: Annotated[int, Query(ge=1, le=MAX_LIMIT)] = 50,
    after: Annotated[int, Query(ge=-1, le=2**31, description="Parts behind this position.")] = -1,
) -> DocumentShown:
    """Show a document and its parts, as they are found and shown."""
    document = await engine.knowledge.document(key.tenant, name)
    found = await engine.knowledge.chunks(key.tenant, document, after=after, limit=limit + 1)
    items = [ChunkOut.of(chunk) for chunk in found[:limit]]
    more = items[-1].position if len(found) > limit else None
    return DocumentShown(**_fields(document), items=items, next=more)


@router.delete(
    "/knowledge/{name:path}", responses={202: {"model": RemovedOut, "description": "Pending in a store"}}
)
async def remove_document(name: Name, key: AdminKey, engine: TheEngine, response: Response) -> RemovedOut:
    """Remove a document: nothing of it is recalled any more, and its text leaves the log."""
    await engine.note(key.tenant, "remove", by=key.name, about=document_id(key.tenant, name))
    pending = await engine.knowledge.remove(key.tenant, document_id(key.tenant, name), by=key.name)
    response.status_code = 202 if pending else 200
    return RemovedOut(name=name, done=not pending, pending=list(pending))


def _fields(document: Document) -> dict[str, Any]:
    return {name: getattr(document, name) for name in DOCUMENT}
