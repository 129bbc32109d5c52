"""Who may work when in the vector child: searches before records, and no embedding that comes too late."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext

from hearth.memory.embed.load import holds_gil
from hearth.memory.ports import Embedder
from hearth.memory.types import Vector

_log = logging.getLogger(__name__)

Turn = Callable[[], AbstractContextManager[None]]
"""Waits for one's turn and holds it."""


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


class Turns:
    """The turn that each part of a search and of a write takes.

    An index in this process is behind the gate, and with it an embedder that holds the interpreter's lock,
    whose turn is then that of the whole search. An index in a server waits for nobody: there queries are
    embedded one at a time, and before records by an embedder that holds the lock.
    """

    def __init__(self, embedder: Embedder, gate: Gate, *, remote: bool) -> None:
        held = holds_gil(embedder)
        self.whole: Turn = gate.search if held and not remote else nullcontext
        self.query: Turn = gate.search if remote else nullcontext
        self.document: Turn = gate.slice if held else nullcontext
        self.read: Turn = nullcontext if remote else gate.search
        self.find: Turn = nullcontext if held else self.read
        self.write: Turn = nullcontext if remote else gate.slice


class QueryEmbedder:
    """Embeds queries one by one on a thread of its own, so that one that takes too long is left behind.

    Any thread may call. `turn` is held while the embedder works.
    """

    def __init__(self, embedder: Embedder, turn: Turn) -> None:
        self._embedder, self._turn = embedder, turn
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="hearth-embed")
        self._overdue: Future[Vector | None] | None = None

    def embed(self, text: str, *, by: float) -> Vector | None:
        """The vector, or None if it can't be had by then (CLOCK_MONOTONIC).

        An embedder's error is logged and gives None too: the search goes on by words.
        """
        if self._overdue is not None and not self._overdue.done():
            return None
        future = self._thread.submit(self._embed, text, by)
        try:
            return future.result(timeout=max(by - time.monotonic(), 0.0))
        except TimeoutError:
            if not future.cancel():
                self._overdue = future
        except Exception:  # noqa: BLE001 (boundary: the embedder is foreign code, words alone still answer)
            _log.exception("the query could not be embedded")
        return None

    def _embed(self, text: str, by: float) -> Vector | None:
        with self._turn():
            return self._embedder.embed_queries([text])[0] if time.monotonic() < by else None
