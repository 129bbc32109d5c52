"""An index that is filled from the log, and then takes the place of the one in use."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from hearth.memory.ports import Embedder, Indexed
from hearth.memory.stores.points import text_key
from hearth.memory.stores.vector_index import Embedded, VectorIndex
from hearth.memory.types import Vector


class Fresh(Protocol):
    """The two indexes, and how far the filling is. Every method may raise StoreUnavailable."""

    @property
    def source(self) -> VectorIndex:
        """The one in use: its vectors are used again."""
        ...

    @property
    def target(self) -> VectorIndex:
        """The one that is filled."""
        ...

    def place(self) -> bytes:
        """What `keep_place` was given last; empty where the filling begins."""
        ...

    def keep_place(self, place: bytes) -> None:
        """Remember it, once what was written before is durable."""
        ...

    def held(self) -> int:
        """How many records the target holds, counted one by one."""
        ...

    def hand_over(self) -> None:
        """What others ask and write goes to the target from now on, where there are others. What they wrote
        until now, the events before this, is to be written into it once more before `switch`.
        """
        ...

    def switch(self) -> None:
        """The target is used from now on, and the source goes. Killed meanwhile, one of both is used."""
        ...

    def close(self) -> None:
        """Let go of both; what was filled stays, to be gone on with."""
        ...


class Filling:
    """Writes records into the target, and embeds only texts that the source has no vectors of.

    What an index projector needs of a long-term memory. Blocking work runs in threads.
    """

    def __init__(self, fresh: Fresh, embedder: Embedder) -> None:
        self._fresh = fresh
        self._embedder = embedder
        self.embedded = 0
        """Texts that were embedded."""

    async def upsert(self, records: Sequence[Indexed]) -> None:
        """Add or replace the records."""
        await asyncio.to_thread(self._put, records)

    async def delete(self, owner: str, ids: Sequence[str]) -> None:
        """Remove those of the ids that the owner has."""
        await asyncio.to_thread(self._fresh.target.delete, owner, ids)

    async def clear(self, tenant: str, user: str) -> None:
        """Remove everything of the user."""
        await asyncio.to_thread(self._fresh.target.clear, tenant, user)

    async def count(self, owner: str) -> int:
        """How many records the owner has."""
        return await asyncio.to_thread(self._fresh.target.count, owner)

    async def flush(self) -> None:
        """Make what was written durable."""
        await asyncio.to_thread(self._fresh.target.commit)
        await asyncio.to_thread(self._fresh.target.sync)

    def _put(self, records: Sequence[Indexed]) -> None:
        kept = self._fresh.source.kept([(one.record.scope.owner, one.record.id) for one in records])
        points = []
        for item in records:
            known = kept.get((item.record.scope.owner, item.record.id))
            vectors: dict[str, Vector] = {}
            if known is not None:
                vectors = dict(zip(known.made_of, (known.text, known.context), strict=True))
            text, context = (self._vector(vectors, one, item.digest_key) for one in (item.text, item.context))
            points.append(Embedded(item=item, text=text, context=context))
        self._fresh.target.put(points)

    def _vector(self, known: dict[str, Vector], text: str, digest_key: bytes) -> Vector:
        key = text_key(text, digest_key)
        if key not in known:
            known[key] = self._embedder.embed_documents([text])[0]
            self.embedded += 1
        return known[key]
