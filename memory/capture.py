"""The reply path: make a step durable before its reply ends, or spool it, or count it lost."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec

from hearth.memory import metrics
from hearth.memory.errors import HearthError, PrivateSession, StaleGeneration, Unavailable
from hearth.memory.events.kinds import UNKNOWN, Event
from hearth.memory.events.spool import Spool
from hearth.memory.ports import EventLog, ShortTerm
from hearth.memory.types import Embedding, Page, PlacedBlock

logger = logging.getLogger(__name__)

BEAT_SECONDS = 0.25
"""How long an event that can wait does so, for others that go by the same commit."""
SPOOL_SECONDS = 2.0
"""Between two looks at the spool."""
MOST_UNWRITTEN = 1000
"""Steps that are remembered while the log takes none; older ones no longer name their session."""


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a capture: `log` and `spool` are durable, `stale` and `private` were refused, `lost` is
    neither.
    """

    place: str
    milliseconds: float


class Capture:
    """Appends captured steps; runs in tasks of its own, so that no request's cancellation reaches them."""

    def __init__(
        self,
        *,
        log: EventLog,
        spool: Spool,
        short_term: ShortTerm,
        ack_seconds: float,
        appended: Callable[[], None],
    ) -> None:
        self._log = log
        self._spool = spool
        self._short_term = short_term
        self._ack_seconds = ack_seconds
        self._appended = appended
        self._tasks: set[asyncio.Task[Any]] = set()
        self._waiting: list[Event] = []
        self._unwritten: dict[str, Event] = {}
        self._spooled: list[str] = []
        self._lost = 0
        self._pushes = True
        """Whether short-term memory took the last page in time; else no reply's end waits for it."""

    async def write(
        self, event: Event, *, page: Page | None, vector: Embedding | None, block: PlacedBlock | None
    ) -> Receipt:
        """Make `event` durable and push `page` to short-term memory, both at once. Never raises.

        Waits at most the acknowledgement limit for the log, then writes the spool; at once where the log
        could not be asked for the user's generation. A cancelled caller does not stop it.
        """
        self._unwritten[event.id] = event
        if len(self._unwritten) > MOST_UNWRITTEN:
            del self._unwritten[next(iter(self._unwritten))]
        return await asyncio.shield(self._spawn(self._write(event, page, vector, block)))

    async def empty_spool(self) -> None:
        """Bring what waits in the spool into the log, again and again, until cancelled."""
        while True:
            await asyncio.sleep(SPOOL_SECONDS)
            if self._spool.pending():
                try:
                    await self._empty_spool()
                except HearthError:
                    logger.warning("the spool waits; the event log takes nothing yet", exc_info=True)

    async def empty_spool_now(self) -> int:
        """Bring what waits in the spool into the log; how many events are left. Raises LogUnavailable."""
        if self._spool.pending():
            await self._empty_spool()
        return self._spool.pending()

    def later(self, event: Event) -> None:
        """Append `event` in a quarter of a second. A killed process may lose it; failures are counted."""
        self._waiting.append(event)
        if len(self._waiting) == 1:
            self._spawn(self._append_waiting())

    def beside(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run `work` in a task that `drain` waits for; it goes on where nobody waits for what is returned."""
        return self._spawn(work)

    async def drain(self) -> None:
        """Wait for every write in flight, the slow appends behind a spooled event included."""
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def unwritten(self) -> tuple[Event, ...]:
        """Steps whose reply may be out already and which the log has not got yet, oldest first."""
        return tuple(self._unwritten.values())

    def count_lost(self) -> None:
        """A capture is lost, here or on its way here: shown in health until the process ends."""
        self._lost += 1
        metrics.CAPTURE_LOST.inc()

    @property
    def lost(self) -> int:
        """Captures lost since the start."""
        return self._lost

    def spooled(self) -> int:
        """How many events wait in the spool. Blocks, as `Spool.pending` does."""
        return self._spool.pending()

    def _spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _write(
        self, event: Event, page: Page | None, vector: Embedding | None, block: PlacedBlock | None
    ) -> Receipt:
        started = time.perf_counter()
        if event.generation == UNKNOWN:
            place = "failed"
        else:
            append = self._spawn(self._append(event))
            push = self._spawn(self._push(page, vector, block)) if page is not None else None
            awaited = [append, push] if push is not None and self._pushes else [append]
            await asyncio.wait(awaited, timeout=self._ack_seconds)
            if push is not None and not push.done():
                self._pushes = False
            place = append.result() if append.done() else "slow"
        if place in ("slow", "failed"):
            place = await self._to_spool(event)
        if place == "private" and page is not None:
            await self._take_back(page)
        seconds = time.perf_counter() - started
        metrics.CAPTURE_SECONDS.observe(seconds)
        return Receipt(place=place, milliseconds=seconds * 1000)

    async def _empty_spool(self) -> None:
        spooled = self._spooled[:]
        await self._spool.drain(self._log)
        del self._spooled[: len(spooled)]
        for event_id in spooled:
            self._unwritten.pop(event_id, None)
        self._appended()

    async def _append(self, event: Event) -> str:
        try:
            await self._log.append([event])
        except StaleGeneration:
            self._unwritten.pop(event.id, None)
            metrics.CAPTURE_STALE.inc()
            return "stale"
        except PrivateSession:
            self._unwritten.pop(event.id, None)
            return "private"
        except Unavailable:
            logger.warning("the event log did not take a capture", exc_info=True)
            metrics.FAILURES.labels("log.append").inc()
            return "failed"
        self._unwritten.pop(event.id, None)
        self._appended()
        return "log"

    async def _append_waiting(self) -> None:
        """In order, and by one commit: the log groups what comes at the same time."""
        await asyncio.sleep(BEAT_SECONDS)
        waiting, self._waiting = self._waiting, []
        await asyncio.gather(*map(self._append, waiting))

    async def _push(self, page: Page, vector: Embedding | None, block: PlacedBlock | None) -> None:
        try:
            await self._short_term.push(page, vector=vector, block=block)
            self._pushes = True
        except HearthError:
            logger.warning("short-term memory did not take a page; it comes back from the log", exc_info=True)
            metrics.FAILURES.labels("short_term.push").inc()
            self._pushes = False

    async def _take_back(self, page: Page) -> None:
        """Out of short-term memory with what its session, switched meanwhile, must not leave there."""
        try:
            await self._short_term.drop(page.scope, [page.id])
        except HearthError:
            logger.warning("a page of a private session waits in short-term memory", exc_info=True)
            metrics.FAILURES.labels("short_term.drop").inc()

    async def _to_spool(self, event: Event) -> str:
        try:
            await asyncio.to_thread(self._spool.write, [event])
        except OSError:
            logger.exception("neither the event log nor the spool took a capture; it is lost")
            self._unwritten.pop(event.id, None)
            self.count_lost()
            return "lost"
        self._spooled.append(event.id)
        metrics.CAPTURE_SPOOLED.inc()
        return "spool"
