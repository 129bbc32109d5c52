"""The vector child's work: searches at once, records in slices between them."""

from __future__ import annotations

import logging
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar, assert_never

import msgspec

from hearth.memory.errors import BadInput, StoreUnavailable
from hearth.memory.ports import Embedder, Indexed, SearchRequest
from hearth.memory.stores import vector_child_wire as wire
from hearth.memory.stores.cleanup import Cleanup
from hearth.memory.stores.hits import encode_hits
from hearth.memory.stores.telling import mean
from hearth.memory.stores.terms import QueryTerms, neutral
from hearth.memory.stores.vector_child_turns import QueryEmbedder, Turns
from hearth.memory.stores.vector_index import PART, Embedded, VectorIndex
from hearth.memory.types import Vector

_log = logging.getLogger(__name__)

A = TypeVar("A", bound=wire.Ask)

PANIC_EXIT = 70
"""Exit status after the engine panicked: its locks can't be trusted any more."""


class Service:
    """Answers asks: reads in order, all else in order, reads first. Any thread may call `send`."""

    def __init__(
        self, embedder: Embedder, index: VectorIndex, send: Callable[[wire.Reply], None], cleanup: Cleanup
    ) -> None:
        self._embedder, self._index, self._send, self._cleanup = embedder, index, send, cleanup
        self._turns = Turns(embedder, remote=index.readers > 1)
        self._query = QueryEmbedder(embedder, self._turns.query)
        self._weights = _Weights(index)
        self._reads: queue.SimpleQueue[wire.Read | None] = queue.SimpleQueue()
        self._background: queue.SimpleQueue[wire.Background | None] = queue.SimpleQueue()
        reader = (self._reads.get, self._read)
        self._threads = [
            *(threading.Thread(target=self._serve, args=reader, daemon=True) for _ in range(index.readers)),
            threading.Thread(
                target=self._serve, args=(self._next_in_background, self._do_in_background), daemon=True
            ),
        ]
        self._stopping = False

    def start(self) -> None:
        """Begin to answer."""
        for thread in self._threads:
            thread.start()

    def accept(self, ask: wire.Ask) -> None:
        """Queue one ask."""
        if isinstance(ask, wire.Background):
            self._background.put(ask)
        else:
            self._reads.put(ask)

    def stop(self, *, seconds: float) -> None:
        """Leave what is queued, finish what is begun (a slice, not a batch), flush and close."""
        self._stopping = True
        for _ in range(self._index.readers):
            self._reads.put(None)
        self._background.put(None)
        until = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(until - time.monotonic(), 0.0))
        self._index.close()

    def state(self) -> wire.State:
        """What `Report` answers."""
        index = self._index
        return wire.State(
            pid=os.getpid(),
            embedder=self._embedder.name,
            dimension=self._embedder.dimension,
            readers=index.readers,
            points=index.points(),
            unfilled=index.unfilled,
            set_aside=index.set_aside,
            unclean=index.unclean,
            problem=index.problem,
        )

    def _serve(self, following: Callable[[], A | None], answer: Callable[[A], wire.Reply]) -> None:
        while (ask := following()) is not None and not self._stopping:
            reply = self._guarded(ask, answer)
            self._send(msgspec.structs.replace(reply, unfilled=self._index.unfilled))

    def _next_in_background(self) -> wire.Background | None:
        """The next ask; while there is none, files are cleaned once that is due."""
        while True:
            try:
                return self._background.get(timeout=self._cleanup.left())
            except queue.Empty:
                self._clean()

    def _clean(self) -> None:
        """Write the files anew: about 1 ms a record, between searches, before further writes."""
        try:
            self._index.compact(self._piece)
        except StoreUnavailable as error:
            _end_if_panicked(error)
            if not self._stopping:
                _log.exception("removed records are still in the files")
            self._cleanup.failed()
        else:
            self._cleanup.done()

    @contextmanager
    def _piece(self) -> Iterator[None]:
        if self._stopping:
            raise StoreUnavailable(PART, "it is closing")
        with self._turns.write():
            yield

    def _guarded(self, ask: A, answer: Callable[[A], wire.Reply]) -> wire.Reply:
        # Boundary: whatever one ask does must not end the thread that answers the others.
        try:
            return answer(ask)
        except BadInput as error:
            return wire.Reply(id=ask.id, fault="input", error=str(error))
        except StoreUnavailable as error:
            _end_if_panicked(error)
            return wire.Reply(id=ask.id, fault="store", error=error.cause)
        except Exception as error:  # noqa: BLE001 (the boundary named above)
            _log.exception("%s failed", type(ask).__name__)
            return wire.Reply(id=ask.id, fault="store", error=repr(error))

    def _read(self, ask: wire.Read) -> wire.Reply:
        match ask:
            case wire.Search():
                return self._search(ask)
            case wire.Embed():
                with self._turns.query():
                    vectors = self._embedder.embed_queries(ask.texts)
                return wire.Reply(id=ask.id, body=wire.encode_json(vectors))
            case wire.Get():
                with self._turns.read():
                    return wire.Reply(id=ask.id, body=wire.encode_json(self._index.get(ask.owner, ask.ids)))
            case wire.Count():
                with self._turns.read():
                    return wire.Reply(id=ask.id, body=wire.encode_json(self._index.count(ask.owner)))
            case wire.Report():
                with self._turns.read():
                    return wire.Reply(id=ask.id, body=wire.encode_json(self.state()))
            case _:
                assert_never(ask)

    def _search(self, ask: wire.Search) -> wire.Reply:
        if time.monotonic() >= ask.deadline:
            return wire.Reply(id=ask.id, fault="late", error="expired before it began")
        given = wire.unpack_vector(ask.vector) if ask.vector else None
        request = SearchRequest(
            owners=ask.owners, text=ask.text, lexical=ask.lexical, limit=ask.limit, where=ask.where
        )
        began = time.perf_counter()
        with self._turns.whole():
            weights = self._weights.begin(request, by=ask.embed_by)
            vector = given or self._embed(ask, ask.text)
            with self._turns.find():
                words = weights()
                telling = self._index.telling(request, words) if words and vector and not given else ""
            if vector and telling:
                vector = self._with_telling(ask, vector, telling)
            with self._turns.find():
                sure = words or neutral(self._index.terms_of(request))
                hits = self._index.search(request, vector, sure, by=ask.deadline)
        return wire.Reply(
            id=ask.id,
            body=encode_hits(hits),
            vector=b"" if vector is None or given else wire.pack_vector(vector),
            missing=_missing(vector, words),
            milliseconds=(time.perf_counter() - began) * 1e3,
        )

    def _embed(self, ask: wire.Search, text: str) -> Vector | None:
        return self._query.embed(text, by=ask.embed_by) if ask.dense else None

    def _with_telling(self, ask: wire.Search, vector: Vector, text: str) -> Vector:
        """The mean of the question's vector and that of its telling words, if there is time for it."""
        telling = self._embed(ask, text)
        return mean([vector, telling]) if telling else vector

    def _do_in_background(self, ask: wire.Background) -> wire.Reply:
        if not isinstance(ask, wire.Vectors):
            return self._write(ask)
        found = self._index.vectors(ask.owner, ask.ids, self._piece)
        return wire.Reply(id=ask.id, body=wire.pack_vectors(found))

    def _write(self, ask: wire.Write) -> wire.Reply:
        match ask:
            case wire.Upsert():
                self._upsert(ask.records)
                self._note_removal()
            case wire.Delete():
                with self._turns.write():
                    self._index.delete(ask.owner, ask.ids)
                self._note_removal()
            case wire.Clear():
                with self._turns.write():
                    self._index.clear(ask.tenant, ask.user)
                if self._index.unclean:
                    self._cleanup.erased()
            case wire.Flush():
                with self._turns.write():
                    self._index.commit()
                self._index.sync()
            case wire.Rebuilt():
                self._index.mark_rebuilt(ask.collection)
            case _:
                assert_never(ask)
        return wire.Reply(id=ask.id)

    def _note_removal(self) -> None:
        if not self._cleanup.waiting and self._index.unclean:
            self._cleanup.removed()

    def _upsert(self, records: Sequence[Indexed]) -> None:
        size = self._index.together
        for start in range(0, len(records), size):
            points = [self._embedded(item) for item in records[start : start + size]]
            with self._turns.write():
                self._index.put(points)

    def _embedded(self, item: Indexed) -> Embedded:
        if self._stopping:
            raise StoreUnavailable(PART, "it is closing")
        text = self._document(item.text)
        context = text if item.context == item.text else self._document(item.context)
        return Embedded(item=item, text=text, context=context)

    def _document(self, text: str) -> Vector:
        with self._turns.document():
            return self._embedder.embed_documents([text])[0]


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


def _end_if_panicked(error: StoreUnavailable) -> None:
    """A panic of the engine is no Exception; whatever it had locked stays so, and the parent starts anew."""
    if not isinstance(error.__cause__, Exception | None):
        _log.critical("the vector engine panicked", exc_info=error)
        os._exit(PANIC_EXIT)
