"""A population in Qdrant Edge: files of a data folder, and what the engine itself answers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

import msgspec
import qdrant_edge as qdrant
from filled import DIMENSION, NAME, filled
from raw_asks import LIMIT, Result, Search

from hearth.memory.opening import LONG_TERM
from hearth.memory.stores.edge_index import EdgeIndex, _query
from hearth.memory.stores.points import RECORD


class EdgeFiles(msgspec.Struct, frozen=True, tag="files"):
    """Where the population is: everything in one data folder."""

    data: str
    qdrant: ClassVar[None] = None
    connections: ClassVar[int] = 1
    """The shard takes one thread at a time."""

    def opened(self) -> RawEdge:
        """For this process alone."""
        return RawEdge(Path(self.data) / LONG_TERM)


class RawEdge:
    """The engine without anything of Hearth's around it."""

    def __init__(self, directory: Path) -> None:
        self.index = EdgeIndex(directory, embedder=NAME, dimension=DIMENSION)

    def search(self, ask: Search) -> list[list[Result]]:
        """See RawIndex."""
        only = qdrant.Filter(must=[qdrant.FieldCondition("owner", match=qdrant.MatchAny([ask.owner]))])
        payload = [RECORD] if ask.records else None
        requests = [
            qdrant.QueryRequest(limit=LIMIT, query=_query(near), filter=only, with_payload=payload)
            for near in ask.queries
        ]
        answers = self.index.collection.shard.query_batch(qdrant.QueryBatchRequest(requests))
        return [
            [(one.id, one.score, (one.payload or {}).get(RECORD)) for one in answer] for answer in answers
        ]

    def close(self) -> None:
        """See RawIndex."""
        self.index.close()


@contextmanager
def in_files(pages: int) -> Iterator[EdgeFiles]:
    """The kept folder of so many pages, made if it is not there."""
    yield EdgeFiles(str(filled(pages)))
