"""Long-term memory in Qdrant Edge inside the calling process, on a thread of its own.

For tools, tests and programs without a latency aim: Qdrant Edge holds the GIL in every call. A gateway uses
`VectorChild`, which keeps it in another process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import TypeVar

from hearth.memory.errors import BadInput
from hearth.memory.ports import Embedder, Indexed, SearchRequest
from hearth.memory.stores.edge_fresh import settle
from hearth.memory.stores.edge_index import EdgeIndex
from hearth.memory.stores.hits import decode_hits, decode_record, encode_hits
from hearth.memory.stores.telling import embed_telling
from hearth.memory.stores.terms import QueryTerms
from hearth.memory.stores.vector_index import Embedded
from hearth.memory.types import Embedding, Record, SearchResult, Vector

T = TypeVar("T")


class EdgeLongTerm:
    """The LongTerm port over one collection, named by the embedder and its dimension, below `directory`.

    The deadline is not kept: there is nobody else to answer meanwhile. Raises StoreUnavailable if the
    collection is in use by another process.
    """

    def __init__(self, directory: Path, embedder: Embedder) -> None:
        self._embedder = embedder
        settle(directory)
        self._index = EdgeIndex(directory, embedder=embedder.name, dimension=embedder.dimension)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="hearth-edge")

    @property
    def needs_rebuild(self) -> bool:
        """True while the collection is new or was made anew, and not yet filled from the log."""
        return bool(self._index.unfilled)

    async def mark_rebuilt(self) -> None:
        """The collection holds all that the log says it should."""
        await self._run(lambda: self._index.mark_rebuilt(self._index.unfilled))

    async def purge(self) -> None:
        """See LongTerm: writes the collection anew."""
        await self._run(lambda: self._index.compact(nullcontext))

    async def search(self, request: SearchRequest) -> SearchResult:
        """See LongTerm. Raises BadInput without owners."""
        if not request.owners:
            raise BadInput("owners", request.owners, "at least one owner")
        return await self._run(lambda: self._search(request))

    async def upsert(self, records: Sequence[Indexed]) -> None:
        """See LongTerm. Durable after `flush`."""
        await self._run(lambda: self._upsert(records))

    async def flush(self) -> None:
        """See LongTerm."""
        await self._run(self._index.commit)
        await self._run(self._index.sync)

    async def get(self, owner: str, ids: Sequence[str]) -> list[Record]:
        """See LongTerm."""
        raw = await self._run(lambda: self._index.get(owner, ids))
        return [decode_record(bytes(one)) for one in raw]

    async def walk(self, owner: str, *, after: str = "", limit: int) -> tuple[list[Record], str]:
        """See LongTerm."""
        raw, following = await self._run(lambda: self._index.walk(owner, after, limit))
        return [decode_record(bytes(one)) for one in raw], following

    async def vectors(self, owner: str, ids: Sequence[str]) -> dict[str, Embedding]:
        """See LongTerm."""
        found = await self._run(lambda: self._index.vectors(owner, ids, nullcontext)) if ids else {}
        return {one: Embedding(self._embedder.name, vector) for one, vector in found.items()}

    async def delete(self, owner: str, ids: Sequence[str]) -> None:
        """See LongTerm. Durable after `flush`."""
        await self._run(lambda: self._index.delete(owner, ids))

    async def clear(self, tenant: str, user: str) -> None:
        """See LongTerm. Durable after `flush`."""
        await self._run(lambda: self._index.clear(tenant, user))

    async def count(self, owner: str) -> int:
        """See LongTerm."""
        return await self._run(lambda: self._index.count(owner))

    async def close(self) -> None:
        """Flush and close; the object is of no use afterwards."""
        await self._run(self._index.close)
        self._thread.shutdown()

    async def _run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _search(self, request: SearchRequest) -> SearchResult:
        words = self._index.weigh(request.owners, self._index.terms_of(request))
        vector = request.vector_by(self._embedder.name) or self._embed(request, words)
        hits = self._index.search(request, vector, words)
        return SearchResult(
            candidates=decode_hits(encode_hits(hits)), vector=Embedding(self._embedder.name, vector)
        )

    def _embed(self, request: SearchRequest, words: QueryTerms) -> Vector:
        return embed_telling(self._embedder, request.text, self._index.telling(request, words))

    def _upsert(self, records: Sequence[Indexed]) -> None:
        for item in records:
            text, context = embed_item(self._embedder, item)
            self._index.put([Embedded(item=item, text=text, context=context)])


def embed_item(embedder: Embedder, item: Indexed) -> tuple[Vector, Vector]:
    """The vectors of the item's text and context; one embedding where both are the same."""
    if item.context == item.text:
        vector = embedder.embed_documents([item.text])[0]
        return vector, vector
    text, context = embedder.embed_documents([item.text, item.context])
    return text, context
