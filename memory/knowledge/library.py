"""The documents of all tenants: loaded, replaced, removed, listed, and which of them recall may show."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable, Sequence
from typing import Final
from uuid import NAMESPACE_URL, uuid5

import msgspec

from hearth.memory import metrics
from hearth.memory.errors import BadInput, HearthError, LogUnavailable, NotFound, StoreUnavailable
from hearth.memory.events.kinds import Event, KnowledgeLoaded, KnowledgeRemoved
from hearth.memory.extract.personal import Mask, MaskFor, masked_by, secrets_alone
from hearth.memory.knowledge.chunking import chunks_of
from hearth.memory.knowledge.reading import read_document
from hearth.memory.knowledge.records import MAX_NAME, chunk_ids, document_id, everybody
from hearth.memory.ports import Clock, EventLog, KnownDocument, LongTerm
from hearth.memory.types import Chunk, Document, Memory, Shelf

logger = logging.getLogger(__name__)

RECIPE: Final = "1"
"""Of reading and chunking: raised where the same document is cut otherwise, so that a load does that."""
MAX_TITLE: Final = 256
"""Characters of a title."""
_TRIES: Final = 8
"""Against others that load or remove the same document at the same moment."""
_UNKNOWN: Final = "This tenant has no document of that name. Check the name."
FOLLOW_SECONDS: Final = 1.0
"""Between two looks at what other processes load and remove."""
_AT_ONCE: Final = 500
"""Tenants asked for by one look-up."""


class Loaded(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a load."""

    document: Document
    changed: bool
    """False where this very document was loaded already."""


class Library:
    """One instance serves all tenants of a process."""

    def __init__(
        self,
        *,
        log: EventLog,
        long_term: LongTerm,
        clock: Clock,
        appended: Callable[[], None],
        mask: MaskFor = secrets_alone,
    ) -> None:
        """`mask`: what is done to a document's texts, by tenant and the key that loads it."""
        self._mask = mask
        self._log = log
        self._long_term = long_term
        self._clock = clock
        self._appended = appended
        self._shelves: dict[str, Shelf] = {}

    async def load(
        self, tenant: str, name: str, raw: bytes, media_type: str, *, title: str = "", by: str = ""
    ) -> Loaded:
        """Load a document, in place of the one of that name. Durable when it returns, and then nothing of the
        old version is recalled any more; the new one is, chunk by chunk, as fast as the index takes them.
        `by` says who does it.

        Raises BadInput for what can't be read, LogUnavailable.
        """
        _check_name(name)
        if len(title) > MAX_TITLE:
            raise BadInput("title", title, f"at most {MAX_TITLE} characters")
        mask = self._mask(tenant, by)
        digest = _digest(raw, media_type, title, "".join(f"+{kind}" for kind in masked_by(mask)))
        known = await self._log.document(tenant, document_id(tenant, name))
        if known is not None and known.document is not None and known.document.digest == digest:
            return Loaded(document=known.document, changed=False)
        told = Document(
            id=document_id(tenant, name),
            version=0,
            name=name,
            title=title,
            media_type=media_type,
            digest=digest,
            by=by,
            loaded_at=self._clock.now(),
        )
        document, chunks = await asyncio.to_thread(_read, told, raw, mask)
        return await self.put(tenant, document, chunks)

    async def remove(self, tenant: str, document: str, *, by: str = "") -> tuple[str, ...]:
        """Remove a document by its id: unreachable when this returns. Names the stores that are down, which
        the worker clears when they are back. `by` says who does it. Raises NotFound, LogUnavailable.
        """
        for _ in range(_TRIES):
            known = await self._log.document(tenant, document)
            if known is None or known.document is None:
                raise NotFound(_UNKNOWN)
            gone = known.document
            payload = KnowledgeRemoved(document=gone.id, version=gone.version, chunks=gone.chunks, by=by)
            after = await self._append(tenant, gone.id, known, payload)
            if after is not None and after.document is None:
                return await self._unindexed(tenant, gone)
        raise LogUnavailable(f"others load the document {document} again and again")

    async def document(self, tenant: str, name: str) -> Document:
        """The version in force. Raises NotFound, LogUnavailable."""
        known = await self._log.document(tenant, document_id(tenant, name))
        if known is None or known.document is None:
            raise NotFound(_UNKNOWN)
        return known.document

    async def documents(self, tenant: str, *, after: str = "", limit: int = 50) -> list[Document]:
        """The tenant's documents in order of name, after `after`."""
        return await self._log.documents(tenant, "document", after=after, limit=limit)

    async def chunks(self, tenant: str, document: Document, *, after: int, limit: int) -> list[Memory]:
        """Chunks of a document behind a position, in order."""
        return await self._log.chunks(tenant, document.id, version=document.version, after=after, limit=limit)

    # -- for recall ------------------------------------------------------------------------------------

    def shelf(self, tenant: str) -> Shelf | None:
        """Which documents may be recalled, as of the last look; None for a tenant not looked at yet."""
        return self._shelves.get(tenant)

    async def look(self, tenant: str) -> Shelf:
        """Look, and keep what is seen. Raises LogUnavailable."""
        found = await self._log.shelf(tenant)
        known = self._shelves.get(tenant)
        if known is None or (known.generation, known.changed) <= (found.generation, found.changed):
            self._shelves[tenant] = found
        return self._shelves[tenant]

    async def refresh(self) -> None:
        """Look at what has changed, of all tenants looked at before. Raises LogUnavailable."""
        tenants = list(self._shelves)
        for start in range(0, len(tenants), _AT_ONCE):
            some = tenants[start : start + _AT_ONCE]
            changes = await self._log.shelf_changes(some)
            for tenant in some:
                if changes.get(tenant, 0) != self._shelves[tenant].changed:
                    await self.look(tenant)

    async def follow(self) -> None:
        """Refresh again and again, until cancelled. While the log is away what was seen last counts."""
        while True:
            await asyncio.sleep(FOLLOW_SECONDS)
            try:
                await self.refresh()
            except HearthError:
                logger.warning("changes of documents are not seen for now", exc_info=True)
                metrics.FAILURES.labels("knowledge.follow").inc()

    async def put(self, tenant: str, document: Document, chunks: Sequence[Chunk]) -> Loaded:
        """Put a document with its chunks in the place of the version before. Raises LogUnavailable."""
        for _ in range(_TRIES):
            known = await self._log.document(tenant, document.id)
            now = known.document if known is not None else None
            if now is not None and now.digest == document.digest:
                return Loaded(document=now, changed=False)
            new = msgspec.structs.replace(document, version=known.version + 1 if known else 1)
            payload = KnowledgeLoaded(document=new, chunks=tuple(chunks), before=now.chunks if now else 0)
            after = await self._append(tenant, new.id, known, payload)
            if after is not None and after.document == new:
                return Loaded(document=new, changed=True)
        raise LogUnavailable(f"others load the document {document.name} again and again")

    # -- inside ----------------------------------------------------------------------------------------

    async def _append(
        self,
        tenant: str,
        document: str,
        known: KnownDocument | None,
        payload: KnowledgeLoaded | KnowledgeRemoved,
    ) -> KnownDocument | None:
        """Append what follows the last event about a document; returns what is known of that afterwards.

        Of two that follow the same one the log takes the first, since both have one id: then the other sees
        that what is known is not its own.
        """
        scope, last = everybody(tenant), known.last if known else ""
        event = Event(
            id=uuid5(NAMESPACE_URL, f"hearth:knowledge:{document}:{last}").hex,
            tenant=tenant,
            user=scope.user,
            generation=await self._log.generation(tenant, scope.user),
            occurred_at=self._clock.now(),
            parent=last or None,
            payload=payload,
        )
        await self._log.append([event])
        self._appended()
        await self.look(tenant)
        return await self._log.document(tenant, document)

    async def _unindexed(self, tenant: str, gone: Document) -> tuple[str, ...]:
        try:
            ids = chunk_ids(gone.id, gone.version, gone.chunks)
            await self._long_term.delete(everybody(tenant).owner, ids)
        except StoreUnavailable:
            logger.warning("long-term memory is down; the worker completes the removal", exc_info=True)
            metrics.FAILURES.labels("long_term.delete").inc()
            return ("long_term",)
        return ()


def _check_name(name: str) -> None:
    if not name.strip() or name != name.strip() or len(name) > MAX_NAME or not name.isprintable():
        raise BadInput("name", name, f"1 to {MAX_NAME} printable characters without blanks around them")


def _digest(raw: bytes, media_type: str, title: str, kinds: str) -> str:
    about = f"{RECIPE}{kinds}\0{media_type}\0{title}\0".encode()
    return hashlib.sha256(about + raw).hexdigest()


def _read(told: Document, raw: bytes, mask: Mask) -> tuple[Document, tuple[Chunk, ...]]:
    parsed = read_document(raw, told.media_type, mask)
    chunks = chunks_of(parsed.blocks)
    document = msgspec.structs.replace(
        told,
        title=mask(told.title) or parsed.title[:MAX_TITLE],
        characters=sum(len(block.text) for block in parsed.blocks),
        chunks=len(chunks),
    )
    return document, chunks
