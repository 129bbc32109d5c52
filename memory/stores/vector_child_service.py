"""The vector child's work: searches at once, records in slices between them."""

from __future__ import annotations

import logging
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from typing import TypeVar, assert_never

from hearth.memory.embed.load import holds_gil
from hearth.memory.errors import BadInput, StoreUnavailable
from hearth.memory.ports import Embedder, Indexed, SearchRequest
from hearth.memory.stores import vector_child_wire as wire
from hearth.memory.stores.cleanup import Cleanup
from hearth.memory.stores.edge_collection import PART
from hearth.memory.stores.edge_hits import encode_hits
from hearth.memory.stores.edge_index import EdgeIndex
from hearth.memory.types import Vector

_log = logging.getLogger(__name__)

A = TypeVar("A", bound=wire.Ask)

PANIC_EXIT = 70
"""Exit status after the engine panicked: its locks can't be trusted any more."""


class Gate:
    """One piece of work at a time; a waiting search goes before any waiting slice of indexing."""

    def __init__(self) -> None:
        self._free = threading.Condition()
        self._busy = False
        self._searches = 0

    @contextmanager
    def search(self) -> Iterator[None]:
        """Hold the gate for a search."""
        with self._free:
            self._searches += 1
            self._free.wait_for(lambda: not self._busy)
            self._searches -= 1
            self._busy = True
        yield from self._held()

    @contextmanager
    def slice(self) -> Iterator[None]:
        """Hold the gate for a slice of indexing."""
        with self._free:
            self._free.wait_for(lambda: not self._busy and not self._searches)
            self._busy = True
        yield from self._held()

    def _held(self) -> Iterator[None]:
        try:
            yield
        finally:
            with self._free:
                self._busy = False
                self._free.notify_all()


class QueryEmbedder:
    """Embeds a query on a thread of its own, so that one that takes too long is left behind."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="hearth-embed")
        self._overdue: Future[Vector] | None = None

    def embed(self, text: str, *, by: float) -> Vector | None:
        """The vector, or None if it can't be had by then (CLOCK_MONOTONIC).

        An embedder's error is logged and gives None too: the search goes on by words.
        """
        if self._overdue is not None and not self._overdue.done():
            return None
        future = self._thread.submit(lambda: self._embedder.embed_queries([text])[0])
        try:
            return future.result(timeout=max(by - time.monotonic(), 0.0))
        except TimeoutError:
            self._overdue = future
        except Exception:  # noqa: BLE001 (boundary: the embedder is foreign code, words alone still answer)
            _log.exception("the query could not be embedded")
        return None


class Service:
    """Answers asks: reads in order, writes in order, reads first. Any thread may call `send`."""

    def __init__(
        self, embedder: Embedder, index: EdgeIndex, send: Callable[[wire.Reply], None], cleanup: Cleanup
    ) -> None:
        self._embedder, self._index, self._send, self._cleanup = embedder, index, send, cleanup
        self._gate = Gate()
        self._beside = not holds_gil(embedder)
        self._query = QueryEmbedder(embedder)
        self._reads: queue.SimpleQueue[wire.Read | None] = queue.SimpleQueue()
        self._writes: queue.SimpleQueue[wire.Write | None] = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=self._serve, args=(self._reads.get, self._read), daemon=True),
            threading.Thread(target=self._serve, args=(self._next_write, self._write), daemon=True),
        ]
        self._stopping = False

    def start(self) -> None:
        """Begin to answer."""
        for thread in self._threads:
            thread.start()

    def accept(self, ask: wire.Ask) -> None:
        """Queue one ask."""
        if isinstance(ask, wire.Upsert | wire.Delete | wire.Clear | wire.Flush | wire.Rebuilt):
            self._writes.put(ask)
        else:
            self._reads.put(ask)

    def stop(self, *, seconds: float) -> None:
        """Leave what is queued, finish what is begun (a record, not a batch), flush and close."""
        self._stopping = True
        self._reads.put(None)
        self._writes.put(None)
        for thread in self._threads:
            thread.join(seconds)
        self._index.close()

    def state(self) -> wire.State:
        """What `Report` answers."""
        collection = self._index.collection
        return wire.State(
            pid=os.getpid(),
            embedder=self._embedder.name,
            dimension=self._embedder.dimension,
            points=self._index.points(),
            needs_rebuild=collection.needs_rebuild,
            set_aside=collection.set_aside,
            unclean=collection.unclean,
        )

    def _serve(self, following: Callable[[], A | None], answer: Callable[[A], wire.Reply]) -> None:
        while (ask := following()) is not None and not self._stopping:
            self._send(self._guarded(ask, answer))

    def _next_write(self) -> wire.Write | None:
        """The next ask; while there is none, files are cleaned once that is due."""
        while True:
            try:
                return self._writes.get(timeout=self._cleanup.left())
            except queue.Empty:
                self._clean()

    def _clean(self) -> None:
        """Write the collection anew: about 1 ms a record, between searches, before further writes."""
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
        with self._gate.slice():
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
                vectors = self._embedder.embed_queries(ask.texts)
                return wire.Reply(id=ask.id, body=wire.encode_json(vectors))
            case wire.Get():
                with self._gate.search():
                    return wire.Reply(id=ask.id, body=wire.encode_json(self._index.get(ask.owner, ask.ids)))
            case wire.Count():
                with self._gate.search():
                    return wire.Reply(id=ask.id, body=wire.encode_json(self._index.count(ask.owner)))
            case wire.Report():
                with self._gate.search():
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
        # An embedder that releases the GIL works while a slice of indexing goes on.
        with nullcontext() if self._beside else self._gate.search():
            vector = self._vector(ask, given)
            with self._gate.search() if self._beside else nullcontext():
                hits = self._index.search(request, vector)
        return wire.Reply(
            id=ask.id,
            body=encode_hits(hits),
            vector=b"" if vector is None or given else wire.pack_vector(vector),
            missing=() if vector else ("dense",),
            milliseconds=(time.perf_counter() - began) * 1e3,
        )

    def _vector(self, ask: wire.Search, given: Vector | None) -> Vector | None:
        if given or not ask.dense:
            return given
        return self._query.embed(ask.text, by=ask.embed_by)

    def _write(self, ask: wire.Write) -> wire.Reply:
        match ask:
            case wire.Upsert():
                self._upsert(ask.records)
                self._note_removal()
            case wire.Delete():
                with self._gate.slice():
                    self._index.delete(ask.owner, ask.ids)
                self._note_removal()
            case wire.Clear():
                with self._gate.slice():
                    self._index.clear(ask.tenant, ask.user)
                if self._index.collection.unclean:
                    self._cleanup.erased()
            case wire.Flush():
                with self._gate.slice():
                    self._index.commit()
                self._index.sync()
            case wire.Rebuilt():
                self._index.collection.mark_rebuilt()
            case _:
                assert_never(ask)
        return wire.Reply(id=ask.id)

    def _note_removal(self) -> None:
        if not self._cleanup.waiting and self._index.collection.unclean:
            self._cleanup.removed()

    def _upsert(self, records: Sequence[Indexed]) -> None:
        for item in records:
            if self._stopping:
                raise StoreUnavailable(PART, "it is closing")
            text = self._document(item.text)
            context = text if item.context == item.text else self._document(item.context)
            with self._gate.slice():
                self._index.put(item, text=text, context=context)

    def _document(self, text: str) -> Vector:
        with nullcontext() if self._beside else self._gate.slice():
            return self._embedder.embed_documents([text])[0]


def _end_if_panicked(error: StoreUnavailable) -> None:
    """A panic of the engine is no Exception; whatever it had locked stays so, and the parent starts anew."""
    if not isinstance(error.__cause__, Exception | None):
        _log.critical("the vector engine panicked", exc_info=error)
        os._exit(PANIC_EXIT)
