"""The vector child's work: searches at once, records in slices between them."""

from __future__ import annotations

import logging
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar, assert_never

import msgspec

from hearth.memory.errors import BadInput, StoreUnavailable
from hearth.memory.ports import Indexed
from hearth.memory.stores import vector_child_wire as wire
from hearth.memory.stores.cleanup import Cleanup
from hearth.memory.stores.packed import pack_vectors
from hearth.memory.stores.succession import Succession
from hearth.memory.stores.vector_child_side import Side
from hearth.memory.stores.vector_child_turns import Gate
from hearth.memory.stores.vector_index import PART

_log = logging.getLogger(__name__)

A = TypeVar("A", bound=wire.Ask)

PANIC_EXIT = 70
"""Exit status after the engine panicked: its locks can't be trusted any more."""


class Service:
    """Answers asks: reads in order, all else in order, reads first. Any thread may call `send`."""

    def __init__(
        self, succession: Succession, send: Callable[[wire.Reply], None], *, clean_after: float
    ) -> None:
        """`clean_after`: seconds at most until files are rewritten without what was removed."""
        gate = Gate()
        self._succession, self._send = succession, send
        self._now = Side(succession.embedder, succession.index, gate)
        self._gate = gate
        self._before: Side | None = None
        self._looked_back = False
        self._began, self._began_with = time.monotonic(), succession.index.points()
        self._look_back()
        self._turns = self._now.turns
        self._cleanup = Cleanup(waiting=self._unclean, longest=clean_after)
        self._reads: queue.SimpleQueue[wire.Read | None] = queue.SimpleQueue()
        self._background: queue.SimpleQueue[wire.Background | None] = queue.SimpleQueue()
        reader = (self._reads.get, self._read)
        self._threads = [
            *(
                threading.Thread(target=self._serve, args=reader, daemon=True)
                for _ in range(succession.index.readers)
            ),
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
        for _ in range(self._now.index.readers):
            self._reads.put(None)
        self._background.put(None)
        until = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(until - time.monotonic(), 0.0))
        for side in self._sides:
            side.index.close()

    def state(self) -> wire.State:
        """What `Report` answers."""
        index, embedder = self._now.index, self._now.embedder
        return wire.State(
            pid=os.getpid(),
            embedder=embedder.name,
            dimension=embedder.dimension,
            readers=index.readers,
            points=index.points(),
            unfilled=index.unfilled,
            set_aside=index.set_aside,
            unclean=self._unclean,
            problem=index.problem.cause if index.problem else "",
            refused=bool(index.problem and index.problem.refused),
            answering=self._answering.embedder.name,
            **self._filling(),
        )

    def _filling(self) -> dict[str, Any]:
        before = self._before
        if before is None or not self._now.index.unfilled:
            return {}
        points, wanted = self._now.index.points(), before.index.points()
        gained, seconds = points - self._began_with, time.monotonic() - self._began
        left = max(wanted - points, 0) * seconds / gained if gained > 0 else None
        return {"wanted": wanted, "seconds_left": left}

    @property
    def _sides(self) -> list[Side]:
        """All that is written to."""
        return [self._now] if self._before is None else [self._now, self._before]

    @property
    def _answering(self) -> Side:
        """What is asked: an older embedder's collection while the present one's is not filled."""
        before = self._before
        return before if before is not None and self._now.index.unfilled else self._now

    @property
    def _unclean(self) -> bool:
        return any(side.index.unclean for side in self._sides)

    def _serve(self, following: Callable[[], A | None], answer: Callable[[A], wire.Reply]) -> None:
        while (ask := following()) is not None and not self._stopping:
            reply = self._guarded(ask, answer)
            self._send(msgspec.structs.replace(reply, unfilled=self._now.index.unfilled))

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
            self._compact()
        except StoreUnavailable as error:
            _end_if_panicked(error)
            if not self._stopping:
                _log.exception("removed records are still in the files")
            self._cleanup.failed()

    def _compact(self) -> None:
        for side in self._sides:
            side.index.compact(self._piece)
        self._cleanup.done()

    @contextmanager
    def _piece(self) -> Iterator[None]:
        self._stay()
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
                    vectors = self._now.embedder.embed_queries(ask.texts)
                return wire.Reply(id=ask.id, body=wire.encode_json(vectors))
            case wire.Get():
                with self._turns.read():
                    return wire.Reply(
                        id=ask.id, body=wire.encode_json(self._answering.index.get(ask.owner, ask.ids))
                    )
            case wire.Walk():
                with self._turns.read():
                    found = self._answering.index.walk(ask.owner, ask.after, ask.limit)
                return wire.Reply(id=ask.id, body=wire.encode_json(found))
            case wire.Count():
                with self._turns.read():
                    return wire.Reply(
                        id=ask.id, body=wire.encode_json(self._answering.index.count(ask.owner))
                    )
            case wire.Report():
                with self._turns.read():
                    return wire.Reply(id=ask.id, body=wire.encode_json(self.state()))
            case _:
                assert_never(ask)

    def _search(self, ask: wire.Search) -> wire.Reply:
        if time.monotonic() >= ask.deadline:
            return wire.Reply(id=ask.id, fault="late", error="expired before it began")
        answering = self._answering
        try:
            return answering.search(ask)
        except StoreUnavailable as error:
            if answering is self._now:
                raise
            _log.warning("the collection of %s does not answer: %s", answering.embedder.name, error)
            return self._now.search(ask)

    def _do_in_background(self, ask: wire.Background) -> wire.Reply:
        if not isinstance(ask, wire.Vectors):
            return self._write(ask)
        found = self._now.index.vectors(ask.owner, ask.ids, self._piece)
        return wire.Reply(id=ask.id, body=pack_vectors(found))

    def _write(self, ask: wire.Write) -> wire.Reply:
        match ask:
            case wire.Upsert():
                self._upsert(ask.records)
                self._note_removal()
            case wire.Delete() | wire.Clear() | wire.Purge():
                self._remove(ask)
            case wire.Flush():
                for side in self._sides:
                    with self._turns.write():
                        side.index.commit()
                    side.index.sync()
            case wire.Rebuilt():
                self._filled(ask.collection)
            case _:
                assert_never(ask)
        return wire.Reply(id=ask.id)

    def _remove(self, ask: wire.Delete | wire.Clear | wire.Purge) -> None:
        match ask:
            case wire.Delete():
                for side in self._sides:
                    with self._turns.write():
                        side.index.delete(ask.owner, ask.ids)
                self._note_removal()
            case wire.Clear():
                for side in self._sides:
                    with self._turns.write():
                        side.index.clear(ask.tenant, ask.user)
                if self._unclean:
                    self._cleanup.erased()
            case wire.Purge():
                if self._unclean:
                    self._compact()
                self._succession.reach_all()
            case _:
                assert_never(ask)

    def _note_removal(self) -> None:
        if not self._cleanup.waiting and self._unclean:
            self._cleanup.removed()

    def _upsert(self, records: Sequence[Indexed]) -> None:
        """What fills a collection again after an interruption is not embedded twice, and what an older one
        has already not once more.
        """
        self._look_back()
        self._now.upsert(records, self._stay, changed=bool(self._now.index.unfilled))
        if self._before is not None:
            self._before.upsert(records, self._stay, changed=True)

    def _look_back(self) -> None:
        """Open the collection before, once it is known that the present one is not filled."""
        if self._looked_back or not self._now.index.unfilled:
            return
        before = self._succession.before()
        self._looked_back = True
        if before is not None:
            name, dense = before.embedder.name, "" if before.dense else ", by words alone"
            _log.info(
                "%s answers until the collection of %s is filled%s", name, self._now.embedder.name, dense
            )
            self._before = Side(before.embedder, before.index, self._gate, dense=before.dense)

    def _filled(self, collection: str) -> None:
        self._now.index.mark_rebuilt(collection)
        if self._now.index.unfilled:
            return
        before, self._before = self._before, None
        if before is not None:
            _log.info("%s answers in place of %s", self._now.embedder.name, before.embedder.name)
            before.close()
        self._succession.retire()

    def _stay(self) -> None:
        if self._stopping:
            raise StoreUnavailable(PART, "it is closing")


def _end_if_panicked(error: StoreUnavailable) -> None:
    """A panic of the engine is no Exception; whatever it had locked stays so, and the parent starts anew."""
    if not isinstance(error.__cause__, Exception | None):
        _log.critical("the vector engine panicked", exc_info=error)
        os._exit(PANIC_EXIT)
