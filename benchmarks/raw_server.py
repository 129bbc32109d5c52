"""A population in a collection of its own in a Qdrant server, and what the server itself answers by REST.

The log is that of the population's kept folder, where the words' statistics lie for as long as the collection
exists: as long as `in_server`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import msgspec
from filled import DIMENSION, NAME, fill, filled
from population import Population
from qdrant_client import QdrantClient, models
from raw_asks import LIMIT, Result, Search

from hearth.memory.opening import LONG_TERM
from hearth.memory.stores.hybrid import Near, Sparse
from hearth.memory.stores.points import RECORD
from hearth.memory.stores.qdrant_calls import QdrantCalls
from hearth.memory.stores.qdrant_index import open_index
from hearth.memory.stores.qdrant_names import collection_name, collections_of, remove
from hearth.memory.stores.qdrant_server import QdrantServer

TOGETHER = 200
"""Pages of one request, 5 MB; a server takes 32."""
SECONDS = 60.0
"""For a request that is not measured."""
SETTLE_SECONDS = 3 * 3600.0
"""For the server's optimizer, once everything is there."""
LOOK_SECONDS = 0.5
"""Between two looks at whether it has ended."""


class ServerCollection(msgspec.Struct, frozen=True, tag="server"):
    """Where the population is: the log in a data folder, the vectors in the server's collection."""

    data: str
    qdrant: QdrantServer

    @property
    def connections(self) -> int:
        """As many as Hearth's own searches have."""
        return self.qdrant.connections

    @property
    def name(self) -> str:
        """By which the collection is addressed."""
        return collection_name(self.qdrant.prefix, NAME, DIMENSION)

    def opened(self) -> RawServer:
        """For this process; others may open it too."""
        return RawServer(self)

    def remove(self) -> None:
        """Delete the collection, and the statistics with it."""
        for path in (Path(self.data) / LONG_TERM).glob(f"{self.name}.*"):
            path.unlink()
        with closing(QdrantCalls(self.qdrant)) as calls:
            for one in collections_of(calls, self.qdrant, by=time.monotonic() + SECONDS):
                remove(calls, one.name, by=time.monotonic() + SECONDS)

    def settle(self) -> None:
        """Wait until the server has optimized what it was given.

        Seen twice in a row, since it begins a moment after the last write. Raises RuntimeError.
        """
        until = time.monotonic() + SETTLE_SECONDS
        seen = 0
        with closing(QdrantCalls(self.qdrant)) as calls:
            while seen < 2:
                info = calls(
                    lambda client, _: client.get_collection(self.name), by=time.monotonic() + SECONDS
                )
                if info.status == models.CollectionStatus.RED or time.monotonic() > until:
                    raise RuntimeError(f"the collection is {info.status.value}: {info.optimizer_status}")
                seen = seen + 1 if info.status == models.CollectionStatus.GREEN else 0
                time.sleep(LOOK_SECONDS)


class RawServer:
    """The server by its REST interface, without the client's models of requests and answers."""

    def __init__(self, place: ServerCollection) -> None:
        server, directory = place.qdrant, Path(place.data) / LONG_TERM
        self.index = open_index(server, directory, embedder=NAME, dimension=DIMENSION)
        self._path = {"collection_name": place.name}
        self._client = QdrantClient(
            url=server.url,
            api_key=server.api_key or None,
            check_compatibility=False,
            timeout=math.ceil(SECONDS),
            limits=httpx.Limits(
                max_connections=server.connections, max_keepalive_connections=server.connections
            ),
        )

    def search(self, ask: Search) -> list[list[Result]]:
        """See RawIndex."""
        answer: dict[str, Any] = self._client.http.client.request(
            type_=dict,
            method="POST",
            url="/collections/{collection_name}/points/query/batch",
            path_params=self._path,
            headers={"content-type": "application/json"},
            content=msgspec.json.encode({"searches": _requests(ask)}),
        )
        return [
            [(one["id"], one["score"], (one.get("payload") or {}).get(RECORD)) for one in found["points"]]
            for found in answer["result"]
        ]

    def close(self) -> None:
        """See RawIndex."""
        self._client.close()
        self.index.close()


@contextmanager
def in_server(server: QdrantServer, pages: int) -> Iterator[ServerCollection]:
    """A new collection with so many pages, of a prefix of its own, which is deleted at the end."""
    own = msgspec.structs.replace(server, prefix=f"load-{uuid4().hex[:8]}-")
    place = ServerCollection(str(filled(pages)), own)
    try:
        with closing(place.opened()) as raw:
            fill(raw.index, Population(pages), together=TOGETHER)
        place.settle()
        yield place
    finally:
        place.remove()


def _requests(ask: Search) -> list[dict[str, Any]]:
    only = {"must": [{"key": "owner", "match": {"any": [ask.owner]}}]}
    payload = [RECORD] if ask.records else False
    return [
        {
            "query": {"nearest": _nearest(near)},
            "using": near.using,
            "filter": only,
            "limit": LIMIT,
            "with_payload": payload,
        }
        for near in ask.queries
    ]


def _nearest(near: Near) -> Any:
    to = near.to
    return {"indices": to.indices, "values": to.values} if isinstance(to, Sparse) else to
