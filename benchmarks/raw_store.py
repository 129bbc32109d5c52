"""The vector store and nothing else, in a child process: a ready query in, the store's own answer out.

    python benchmarks/raw_store.py SOCKET DIRECTORY      (used by `RawStore` below)

It opens the same collection as Hearth's own child does, and is reached the same way, over a socket pair. What
it is asked is one batch of the three queries of a recall (nearest by `text`, by `context`, by the words), a
hundred results each, filtered by the owner: with ids and scores alone, or with the stored records as well,
without which a search is of no use to anybody. Nothing is embedded, fused, ranked or decoded. The weights of
the words come from the collection's own statistics, beforehand (`words`).
"""

from __future__ import annotations

import asyncio
import socket
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import qdrant_edge as qdrant
from filled import DIMENSION, NAME

from hearth.memory.ports import SearchRequest
from hearth.memory.stores.edge_index import EdgeIndex
from hearth.memory.types import Vector

LIMIT = 100
"""Results of each query: what a recall asks for."""
_LENGTH = struct.Struct(">I")


class Words(msgspec.Struct, frozen=True, tag="words"):
    """What are the text's words worth to the owner?"""

    owner: str
    text: str


class Search(msgspec.Struct, frozen=True, tag="search"):
    """The batch of a recall, ready made."""

    owner: str
    vector: Vector
    terms: list[int]
    weights: list[float]
    records: bool
    """Whether the answer holds the records."""


Ask = Words | Search


class RawStore:
    """The other process, as the benchmark sees it; one question at a time, others wait for their turn."""

    def __init__(self, data: Path) -> None:
        self._directory = data / "long_term"
        self._turn = asyncio.Lock()

    async def start(self) -> None:
        """Start it; it answers when the collection is open."""
        ours, theirs = socket.socketpair()
        with theirs:
            self.process = self._spawn(theirs.fileno())
        self._from, self._to = await asyncio.open_connection(sock=ours, limit=1 << 24)

    async def words(self, owner: str, text: str) -> tuple[list[int], list[float]]:
        """Terms and their weights, as a recall would look them up."""
        terms, weights = await self._ask(Words(owner, text))
        return terms, weights

    async def search(self, ask: Search) -> int:
        """Results in all; they are received and not looked at."""
        return sum(map(len, await self._ask(ask)))

    async def close(self) -> None:
        """End it."""
        self._to.close()
        await self._to.wait_closed()
        await asyncio.to_thread(self.process.wait, 60)

    def _spawn(self, descriptor: int) -> subprocess.Popen[bytes]:
        command = [sys.executable, __file__, str(descriptor), str(self._directory)]
        return subprocess.Popen(command, pass_fds=(descriptor,))

    async def _ask(self, ask: Ask) -> Any:
        raw = msgspec.msgpack.encode(ask)
        async with self._turn:
            self._to.write(_LENGTH.pack(len(raw)) + raw)
            (length,) = _LENGTH.unpack(await self._from.readexactly(_LENGTH.size))
            return msgspec.msgpack.decode(await self._from.readexactly(length))


def _serve(connection: socket.socket, directory: Path) -> None:
    index = EdgeIndex(directory, embedder=NAME, dimension=DIMENSION)
    decode = msgspec.msgpack.Decoder(Ask).decode
    with connection, connection.makefile("rwb") as pipe:
        while header := pipe.read(_LENGTH.size):
            ask = decode(pipe.read(_LENGTH.unpack(header)[0]))
            answer = _weigh(index, ask) if isinstance(ask, Words) else _search(index, ask)
            raw = msgspec.msgpack.encode(answer)
            pipe.write(_LENGTH.pack(len(raw)) + raw)
            pipe.flush()
    index.close()


def _weigh(index: EdgeIndex, ask: Words) -> Any:
    request = SearchRequest(owners=(ask.owner,), text=ask.text)
    held = index.weigh(request.owners, index.terms_of(request)).held
    return list(held), list(held.values())


def _search(index: EdgeIndex, ask: Search) -> Any:
    only = qdrant.Filter(must=[qdrant.FieldCondition("owner", match=qdrant.MatchAny([ask.owner]))])
    queries = [qdrant.Query.Nearest(ask.vector, using=name) for name in ("text", "context")]
    if ask.terms:
        queries.append(qdrant.Query.Nearest(qdrant.SparseVector(ask.terms, ask.weights), using="lexical"))
    payload = ["record"] if ask.records else None
    requests = [
        qdrant.QueryRequest(limit=LIMIT, query=query, filter=only, with_payload=payload) for query in queries
    ]
    answers = index.collection.shard.query_batch(qdrant.QueryBatchRequest(requests))
    return [[(one.id, one.score, (one.payload or {}).get("record")) for one in answer] for answer in answers]


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])), Path(sys.argv[2]))
