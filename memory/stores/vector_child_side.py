"""A side of the vector child: one collection and the embedder of its vectors, each at its turn."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import msgspec

from hearth.memory.errors import StoreUnavailable
from hearth.memory.ports import Embedder, Indexed, SearchRequest
from hearth.memory.stores import vector_child_wire as wire
from hearth.memory.stores.hits import encode_hits
from hearth.memory.stores.packed import pack_embedding, unpack_embedding
from hearth.memory.stores.telling import mean
from hearth.memory.stores.terms import QueryTerms, neutral
from hearth.memory.stores.vector_child_turns import Gate, QueryEmbedder, Turns
from hearth.memory.stores.vector_index import Embedded, VectorIndex
from hearth.memory.types import Embedding, Vector

_log = logging.getLogger(__name__)

_encode = msgspec.json.Encoder().encode


class Side:
    """Any thread may call, but only one may write."""

    def __init__(self, embedder: Embedder, index: VectorIndex, gate: Gate, *, dense: bool = True) -> None:
        """`dense`: False where the embedder can't embed questions any more."""
        self.embedder, self.index = embedder, index
        self.turns = Turns(embedder, gate, remote=index.readers > 1)
        self._dense = dense
        self._query = QueryEmbedder(embedder, self.turns.query)
        self._weights = _Weights(index)
        self._searches = threading.Semaphore(index.readers)

    def search(self, ask: wire.Search) -> wire.Reply:
        """The best candidates. Raises StoreUnavailable."""
        request = SearchRequest(
            owners=ask.owners,
            text=ask.text,
            lexical=ask.lexical,
            vector=unpack_embedding(ask.vector) if ask.vector else None,
            limit=ask.limit,
            where=ask.where,
        )
        given = request.vector_by(self.embedder.name)
        began = time.perf_counter()
        with self._searches, self.turns.whole():
            weights = self._weights.begin(request, by=ask.embed_by)
            vector = given or self._embed(ask, ask.text)
            with self.turns.find():
                words = weights()
                telling = self.index.telling(request, words) if words and vector and not given else ""
            if vector and telling:
                vector = self._with_telling(ask, vector, telling)
            with self.turns.find():
                sure = words or neutral(self.index.terms_of(request))
                hits = self.index.search(request, vector, sure, by=ask.deadline)
        made = None if given else vector
        return wire.Reply(
            id=ask.id,
            body=encode_hits(hits),
            vector=pack_embedding(Embedding(self.embedder.name, made)) if made else b"",
            missing=_missing(vector, words),
            milliseconds=(time.perf_counter() - began) * 1e3,
        )

    def upsert(self, records: Sequence[Indexed], piece: Callable[[], None], *, changed: bool = False) -> None:
        """Embed and store the records; `changed`: only those that are not here as they are. `piece` is called
        before each embedding.
        """
        wanted = self._changed(records) if changed else records
        size = self.index.together
        for start in range(0, len(wanted), size):
            points = [self._embedded(item, piece) for item in wanted[start : start + size]]
            with self.turns.write():
                self.index.put(points)

    def close(self) -> None:
        """Close the index once the searches under way have ended; none may begin any more."""
        for _ in range(self.index.readers):
            self._searches.acquire()
        self.index.close()

    def _embed(self, ask: wire.Search, text: str) -> Vector | None:
        return self._query.embed(text, by=ask.embed_by) if ask.dense and self._dense else None

    def _with_telling(self, ask: wire.Search, vector: Vector, text: str) -> Vector:
        """The mean of the question's vector and that of its telling words, if there is time for it."""
        telling = self._embed(ask, text)
        return mean([vector, telling]) if telling else vector

    def _changed(self, records: Sequence[Indexed]) -> list[Indexed]:
        held: set[bytes] = set()
        by_owner: dict[str, list[str]] = {}
        for item in records:
            by_owner.setdefault(item.record.scope.owner, []).append(item.record.id)
        for owner, ids in by_owner.items():
            with self.turns.write():
                held.update(bytes(raw) for raw in self.index.get(owner, ids))
        return [item for item in records if _encode(item.record) not in held]

    def _embedded(self, item: Indexed, piece: Callable[[], None]) -> Embedded:
        piece()
        text = self._document(item.text)
        context = text if item.context == item.text else self._document(item.context)
        return Embedded(item=item, text=text, context=context)

    def _document(self, text: str) -> Vector:
        with self.turns.document():
            return self.embedder.embed_documents([text])[0]


class _Weights:
    """What a search's words are worth: looked up on the spot, or beside the embedding where others share the
    statistics, since they may then be far away.
    """

    def __init__(self, index: VectorIndex) -> None:
        self._index = index
        self._threads = ThreadPoolExecutor(index.readers, "hearth-terms") if index.readers > 1 else None

    def begin(self, request: SearchRequest, *, by: float) -> Callable[[], QueryTerms | None]:
        """Begin; the result waits until `by` (CLOCK_MONOTONIC) and gives None where nobody can tell."""
        if self._threads is None:
            return lambda: self._index.weigh(request.owners, self._index.terms_of(request))
        terms = self._index.terms_of(request)
        future = self._threads.submit(self._index.weigh, request.owners, terms)
        return lambda: _in_time(future, by)


def _in_time(future: Future[QueryTerms], by: float) -> QueryTerms | None:
    try:
        return future.result(max(by - time.monotonic(), 0.0))
    except TimeoutError:
        future.cancel()
    except StoreUnavailable as error:
        _log.warning("words count alike, however rare: %s", error)
    return None


def _missing(vector: Vector | None, words: QueryTerms | None) -> tuple[str, ...]:
    said = {"dense": vector is None, "lexical weights": words is None}
    return tuple(name for name, missing in said.items() if missing)
