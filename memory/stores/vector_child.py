"""Long-term memory by way of one child process with the embedder and the index: one message in, one out."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from urllib.parse import quote

import msgspec
from tenacity import AsyncRetrying, before_sleep_log, retry_if_exception_type, wait_exponential

from hearth.memory.embed.text import clean
from hearth.memory.errors import BadInput, StoreUnavailable
from hearth.memory.ports import Indexed, SearchRequest
from hearth.memory.stores import vector_child_wire as wire
from hearth.memory.stores.cleanup import AFTER_REMOVAL
from hearth.memory.stores.hits import decode_hits
from hearth.memory.stores.packed import pack_embedding, unpack_embedding, unpack_vectors
from hearth.memory.stores.qdrant_server import QdrantServer
from hearth.memory.stores.vector_child_link import PART, Link, open_link
from hearth.memory.types import Embedding, Record, SearchResult, Vector

_log = logging.getLogger(__name__)

EMBED_SHARE = 0.6
"""Of a search's deadline; afterwards it goes on by words alone."""
CACHED_QUERIES = 2048
"""Query vectors kept: 25 MB at 512 dimensions."""
LOOK_SECONDS = 15.0
_SMOOTHING = 0.1
_FIRST_GUESS = 5.0
"""Milliseconds a search takes the child, until some have been timed."""
_BACKOFF = wait_exponential(multiplier=0.2, max=30.0)
_NOTHING = SearchResult(missing=("dense", "lexical"))


class ChildHealth(msgspec.Struct, frozen=True, kw_only=True):
    """What an operator wants to know of the child; counts are since the parent's start."""

    running: bool
    state: wire.State | None
    """The child's own account; None where it gave none."""
    restarts: int
    in_flight: int
    late: int
    """Searches that had no answer by their deadline."""
    refused: int
    """Searches not even sent, because those before them take longer than the deadline."""
    lexical_only: int
    """Searches sent without a wish for an embedding, because of those before them."""
    failed: int
    """Calls that failed because the child ended or its store refused them."""
    search_milliseconds: float
    """Smoothed time that a search takes the child."""


class QueryVectors:
    """The latest query vectors, apart for each tenant. What was asked is kept as a digest alone."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._vectors: OrderedDict[tuple[str, bytes], bytes] = OrderedDict()
        self._salt = os.urandom(32)

    def get(self, tenant: str, text: str) -> bytes:
        """The packed vector, or empty."""
        key = (tenant, self._digest(text))
        if (found := self._vectors.get(key)) is None:
            return b""
        self._vectors.move_to_end(key)
        return found

    def put(self, tenant: str, text: str, vector: bytes) -> None:
        """Keep it, in place of the one unused for longest."""
        self._vectors[tenant, self._digest(text)] = vector
        if len(self._vectors) > self._size:
            self._vectors.popitem(last=False)

    def forget(self, tenant: str) -> None:
        """Drop the tenant's: a user of it was erased."""
        for key in [key for key in self._vectors if key[0] == tenant]:
            del self._vectors[key]

    def _digest(self, text: str) -> bytes:
        return blake2b(text.encode("utf-8", "surrogatepass"), key=self._salt, digest_size=16).digest()


class VectorChild:
    """The LongTerm port over a child process that is restarted when it ends.

    `embedder` is a name or import path that `load_embedder` takes; the collection, below `directory` or in
    the server `qdrant`, is named by it. `start` first, `close` last; both on the event loop that makes the
    calls. While the child is down every call raises StoreUnavailable at once.
    """

    def __init__(
        self,
        directory: Path,
        embedder: str,
        *,
        qdrant: QdrantServer | None = None,
        postgres_url: str = "",
        clean_after: float = AFTER_REMOVAL,
    ) -> None:
        """`qdrant`: the server that has the collection, `postgres_url`: the one that has its term statistics
        where several processes share it. `clean_after`: seconds at most until the files are rewritten
        without what was removed.
        """
        self._what = wire.Open(
            directory=str(directory),
            embedder=embedder,
            clean_after=clean_after,
            qdrant=qdrant,
            postgres_url=postgres_url,
        )
        self._link: Link | None = None
        self._state: wire.State | None = None
        self._unfilled = ""
        self._tasks: list[asyncio.Task[None]] = []
        self._vectors = QueryVectors(CACHED_QUERIES)
        self._searches = 0
        self._milliseconds = _FIRST_GUESS
        self._counts = dict.fromkeys(("restarts", "late", "refused", "lexical_only", "failed"), 0)

    async def start(self) -> None:
        """Start the child and return when it is ready, after a second or so.

        Raises StoreUnavailable if it can't: no such embedder, or another process has the folder's
        collection. A server that is down is no reason: the child tries again.
        """
        await self._connect()
        self._tasks = [asyncio.create_task(self._keep(), name="hearth-vector-child")]
        if self._what.qdrant is not None:
            self._tasks.append(asyncio.create_task(self._look(), name="hearth-vector-server"))

    async def close(self) -> None:
        """Let the child flush and end."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._link is not None:
            link, self._link = self._link, None
            await link.close()

    @property
    def needs_rebuild(self) -> bool:
        """True while the collection is new or was made anew, and not yet filled from the log."""
        return bool(self._unfilled)

    @property
    def embedder(self) -> str:
        """Name of the embedder, model and version. Raises StoreUnavailable before `start`."""
        if self._state is None:
            raise StoreUnavailable(PART, "it was never started")
        return self._state.embedder

    @property
    def dimension(self) -> int:
        """Of the embedder's vectors. Raises StoreUnavailable before `start`."""
        if self._state is None:
            raise StoreUnavailable(PART, "it was never started")
        return self._state.dimension

    async def mark_rebuilt(self) -> None:
        """The collection holds all that the log says it should.

        One that was lost and made anew since `needs_rebuild` turned true needs it still.
        """
        reply = await self._call(wire.Rebuilt(id=self._id(), collection=self._unfilled))
        self._unfilled = reply.unfilled

    async def search(self, request: SearchRequest) -> SearchResult:
        """See LongTerm. What the deadline does not leave time for is named in `missing`.

        Raises BadInput without owners, StoreUnavailable while the child is down.
        """
        if not request.owners:
            raise BadInput("owners", request.owners, "at least one owner")
        ask = self._admit(request)
        if ask is None:
            return _NOTHING
        self._searches += 1
        try:
            return self._found(request, ask, await self._call(ask, seconds=request.deadline))
        except TimeoutError:
            self._counts["late"] += 1
            return _NOTHING
        finally:
            self._searches -= 1

    async def upsert(self, records: Sequence[Indexed]) -> None:
        """See LongTerm. Durable after `flush`. Takes 10 to 40 ms a page; searches go in between."""
        if records:
            await self._call(wire.Upsert(id=self._id(), records=tuple(records)))

    async def flush(self) -> None:
        """See LongTerm."""
        await self._call(wire.Flush(id=self._id()))

    async def get(self, owner: str, ids: Sequence[str]) -> list[Record]:
        """See LongTerm."""
        reply = await self._call(wire.Get(id=self._id(), owner=owner, ids=tuple(ids)))
        return msgspec.json.decode(reply.body, type=list[Record])

    async def walk(self, owner: str, *, after: str = "", limit: int) -> tuple[list[Record], str]:
        """See LongTerm."""
        ask = wire.Walk(id=self._id(), owner=owner, after=after, limit=limit)
        reply = await self._call(ask)
        return msgspec.json.decode(reply.body, type=tuple[list[Record], str])

    async def vectors(self, owner: str, ids: Sequence[str]) -> dict[str, Embedding]:
        """See LongTerm. In turn with what is written."""
        if not ids:
            return {}
        reply = await self._call(wire.Vectors(id=self._id(), owner=owner, ids=tuple(ids)))
        # A thousand take 20 ms, for which the loop's other calls need not wait.
        found = await asyncio.to_thread(unpack_vectors, reply.body)
        return {one: Embedding(self.embedder, vector) for one, vector in found.items()}

    async def delete(self, owner: str, ids: Sequence[str]) -> None:
        """See LongTerm. Durable after `flush`."""
        await self._call(wire.Delete(id=self._id(), owner=owner, ids=tuple(ids)))

    async def clear(self, tenant: str, user: str) -> None:
        """See LongTerm. Durable after `flush`."""
        self._vectors.forget(quote(tenant, safe=""))
        await self._call(wire.Clear(id=self._id(), tenant=tenant, user=user))

    async def purge(self) -> None:
        """See LongTerm. About a millisecond a stored record; searches go in between, writes do not."""
        await self._call(wire.Purge(id=self._id()))

    async def count(self, owner: str) -> int:
        """See LongTerm."""
        reply = await self._call(wire.Count(id=self._id(), owner=owner))
        return msgspec.json.decode(reply.body, type=int)

    async def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        """One vector a text, in order, by the child's embedder."""
        if not texts:
            return []
        reply = await self._call(wire.Embed(id=self._id(), texts=tuple(map(clean, texts))))
        return msgspec.json.decode(reply.body, type=list[Vector])

    async def health(self, *, seconds: float = 1.0) -> ChildHealth:
        """The child's state and what has gone wrong so far. Raises nothing."""
        running = self._link is not None
        try:
            async with asyncio.timeout(seconds):
                state = await self._report()
        except (StoreUnavailable, TimeoutError):
            running, state = False, None
        return ChildHealth(
            running=running,
            state=state,
            in_flight=self._link.waiting if self._link else 0,
            search_milliseconds=self._milliseconds,
            **self._counts,
        )

    def _id(self) -> int:
        if self._link is None:
            raise StoreUnavailable(PART, "it is being restarted")
        return self._link.next_id()

    def _admit(self, request: SearchRequest) -> wire.Search | None:
        """The ask that fits what is under way: whole, by words alone, or None where nothing fits."""
        tenant = request.owners[0].partition("/")[0]
        text = clean(request.text)
        vector = pack_embedding(request.vector) if request.vector else self._vectors.get(tenant, text)
        wait = self._searches // (self._state.readers if self._state else 1) * self._milliseconds / 1e3
        if wait > request.deadline:
            self._counts["refused"] += 1
            return None
        dense = bool(vector) or wait <= request.deadline * EMBED_SHARE
        self._counts["lexical_only"] += not dense
        now = time.monotonic()
        return wire.Search(
            id=self._id(),
            owners=request.owners,
            text=text,
            lexical=clean(request.lexical),
            vector=vector,
            dense=dense,
            limit=request.limit,
            where=request.where,
            embed_by=now + request.deadline * EMBED_SHARE,
            deadline=now + request.deadline,
        )

    def _found(self, request: SearchRequest, ask: wire.Search, reply: wire.Reply) -> SearchResult:
        if reply.fault == "late":
            self._counts["late"] += 1
            return _NOTHING
        self._milliseconds += (reply.milliseconds - self._milliseconds) * _SMOOTHING
        if reply.vector:
            self._vectors.put(ask.owners[0].partition("/")[0], ask.text, reply.vector)
        packed = reply.vector or ask.vector
        return SearchResult(
            candidates=decode_hits(reply.body),
            vector=unpack_embedding(packed) if packed and "dense" not in reply.missing else None,
            missing=reply.missing,
        )

    async def _call(self, ask: wire.Ask, *, seconds: float | None = None) -> wire.Reply:
        if (link := self._link) is None:
            raise StoreUnavailable(PART, "it is being restarted")
        try:
            future = link.post(ask)
            async with asyncio.timeout(seconds):
                reply = await future
        except StoreUnavailable:
            self._counts["failed"] += 1
            raise
        finally:
            link.drop(ask.id)
        self._note(reply.unfilled)
        if reply.fault == "input":
            raise BadInput("request", type(ask).__name__, reply.error)
        if reply.fault == "store":
            self._counts["failed"] += 1
            raise StoreUnavailable(PART, reply.error)
        return reply

    async def _report(self) -> wire.State:
        reply = await self._call(wire.Report(id=self._id()))
        return msgspec.json.decode(reply.body, type=wire.State)

    def _note(self, unfilled: str) -> None:
        """Keep which collection was found unfilled first, so that a filling that began then counts for it."""
        if not (self._unfilled and unfilled):
            self._unfilled = unfilled

    async def _connect(self) -> None:
        self._link, self._state = await open_link(self._what)
        self._note(self._state.unfilled)

    async def _look(self) -> None:
        """Hear now and then of a server's collection what no call of ours would tell."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            with suppress(StoreUnavailable):
                await self._report()

    async def _keep(self) -> None:
        """Start the child again whenever it ends, with longer and longer pauses while it can't start."""
        while self._link is not None:
            await self._link.closed.wait()
            status = await asyncio.to_thread(self._link.process.wait)
            self._link = None
            _log.error("the vector child ended with status %s and is started again", status)
            async for attempt in AsyncRetrying(
                wait=_BACKOFF,
                retry=retry_if_exception_type(StoreUnavailable),
                before_sleep=before_sleep_log(_log, logging.WARNING),
            ):
                with attempt:
                    await self._connect()
            self._counts["restarts"] += 1
