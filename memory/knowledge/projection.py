"""Brings long-term and short-term memory to what the log says of a document."""

from __future__ import annotations

from hearth.memory.events.kinds import Event, KnowledgeLoaded, KnowledgeRemoved
from hearth.memory.knowledge.records import chunk_ids, everybody
from hearth.memory.ports import EventLog, Projected, ShortTerm
from hearth.memory.tiers.indexed import index_record
from hearth.memory.types import Scope

TOGETHER = 32
"""Chunks of one write."""
DELETED = 500
"""Ids of one removal."""


class KnowledgeProjection:
    """A part of the index projector. It reads which version is in force, so that a repeat changes nothing."""

    def __init__(self, *, log: EventLog, short_term: ShortTerm, long_term: Projected) -> None:
        self._log = log
        self._short_term = short_term
        self._long_term = long_term

    async def project(self, event: Event) -> None:
        """Copy the chunks of what was loaded, remove those of what is gone. Durable when it returns."""
        match event.payload:
            case KnowledgeLoaded(document=document, before=before):
                if not await self._index(event.tenant, document.id, document.version):
                    await self._retire(event.tenant, document.id, document.version, document.chunks)
                await self._retire(event.tenant, document.id, document.version - 1, before)
            case KnowledgeRemoved(document=document_id, version=version, chunks=chunks):
                await self._retire(event.tenant, document_id, version, chunks)
            case _:
                return
        await self._long_term.flush()

    async def _index(self, tenant: str, document: str, version: int) -> bool:
        """False where that version is not in force, or no longer."""
        after = -1
        while chunks := await self._log.chunks(
            tenant, document, version=version, after=after, limit=TOGETHER
        ):
            await self._long_term.upsert([index_record(chunk, None) for chunk in chunks])
            after += len(chunks)
        known = await self._log.document(tenant, document)
        return known is not None and known.document is not None and known.document.version == version

    async def _retire(self, tenant: str, document: str, version: int, chunks: int) -> None:
        if not chunks:
            return
        owner, gone = everybody(tenant).owner, chunk_ids(document, version, chunks)
        for start in range(0, chunks, DELETED):
            await self._long_term.delete(owner, gone[start : start + DELETED])
        for user in await self._log.shown_to(tenant, document, version=version):
            await self._short_term.drop(Scope(tenant=tenant, user=user), gone)
