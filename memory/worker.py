"""The worker: the deciders and the index projector at work beside the gateway."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from datetime import timedelta
from typing import Protocol, TypedDict, runtime_checkable

import msgspec

from hearth.memory import metrics
from hearth.memory.alone import PURGING, alone
from hearth.memory.archival import Archival
from hearth.memory.concept_decider import ConceptDecider
from hearth.memory.crowding import Crowding
from hearth.memory.deciders import DrawnDecider, PageDecider
from hearth.memory.erasure.purger import Purger
from hearth.memory.errors import BadAnswer, LeaseLost, ModelUnavailable, Unavailable
from hearth.memory.events.archiving import Archiving
from hearth.memory.extract.rules import RuleExtractor
from hearth.memory.extraction import ExtractionDecider
from hearth.memory.fact_decider import FactDecider
from hearth.memory.knowledge.library import Library
from hearth.memory.nightly import Nightly
from hearth.memory.parked import Parked
from hearth.memory.policies import PolicyOf
from hearth.memory.ports import (
    ChatModel,
    Clock,
    Consumers,
    EventLog,
    Extractor,
    LongTerm,
    MidTerm,
    ShortTerm,
)
from hearth.memory.projecting import project_again
from hearth.memory.projectors import IndexProjector
from hearth.memory.retention import Retention
from hearth.memory.runner import Consumer, Runner, Timing
from hearth.memory.segment_decider import SegmentDecider
from hearth.memory.tiers.life import LifePolicy
from hearth.memory.verify import Verifier
from hearth.memory.working import WorkerHealth, progress

logger = logging.getLogger(__name__)


EXTRACTION_LEASE = 180.0
"""Seconds after which another worker goes on where one that waited for a model has died: longer than a model
may take for all that is asked of it at once.
"""
REBUILDING = "rebuild"
"""The lease of whoever fills long-term memory from the log."""


@runtime_checkable
class Rebuildable(Protocol):
    """What a long-term memory adds that can find its own data lost or broken."""

    @property
    def needs_rebuild(self) -> bool:
        """True from the moment its data was found missing until `mark_rebuilt`."""
        ...

    async def mark_rebuilt(self) -> None:
        """Say that the log was projected again."""
        ...


def _told(error: str) -> str:
    """Of an error of the model what it says, of any other its kind: that may hold anything."""
    kind, _, said = error.partition(": ")
    return said if kind in (ModelUnavailable.__name__, BadAnswer.__name__) else kind


class Given(TypedDict):
    """What every decider by policy is given."""

    log: EventLog
    clock: Clock
    policy: PolicyOf


class Worker:
    """Runs the consumers of a log: deciders of pages, facts, segments, concepts and of what replies drew
    on, and the index projector.

    `extractor` reads facts, the rules where none is given, and `model` where the policy says so. `policy` is
    asked for a tenant's, an agent's and a key's, and is Hearth's own for the default embedder where none is
    given. `purger` goes on with erasures; none are where none is.
    `owner` names this worker in its leases. A process that is alone with its log keeps one name, so that it
    takes over its own leases at once after a crash; where several share a log each needs its own.
    """

    def __init__(
        self,
        *,
        log: EventLog,
        consumers: Consumers,
        short_term: ShortTerm,
        long_term: LongTerm,
        clock: Clock,
        mid_term: MidTerm,
        extractor: Extractor | None = None,
        model: ChatModel | None = None,
        policy: PolicyOf | None = None,
        owner: str = "embedded",
        batch: int = 64,
        timing: Timing | None = None,
        archiving: Archiving | None = None,
        purger: Purger | None = None,
    ) -> None:
        """`archiving`: of the log, where it can move old payloads to archives."""
        self._log = log
        self._consumers = consumers
        self._long_term = long_term
        self._clock = clock
        self._owner = owner
        self._timing = timing or Timing()
        self._purger = purger
        self._pages = PageDecider(log=log, consumers=consumers)
        self._index = IndexProjector(log=log, mid_term=mid_term, short_term=short_term, long_term=long_term)
        policy = policy or (lambda tenant, agent, key: LifePolicy())
        library = Library(log=log, long_term=long_term, clock=clock, appended=self.notify)
        self._retention = Retention(log=log, clock=clock, policy=policy, library=library)
        self._crowding = Crowding(mid_term=mid_term, log=log, clock=clock, policy=policy)
        self._archival = (
            None if archiving is None else Archival(log=log, archiving=archiving, clock=clock, policy=policy)
        )
        rules = extractor or RuleExtractor()
        given: Given = {"log": log, "clock": clock, "policy": policy}
        extraction = ExtractionDecider(model=model, rules=rules, **given)
        parts: tuple[Consumer, ...] = (
            self._pages,
            FactDecider(extractor=rules, **given),
            self._index,
            DrawnDecider(log=log),
            SegmentDecider(mid_term=mid_term, long_term=long_term, **given),
            ConceptDecider(long_term=long_term, **given),
        )
        verifier = Verifier(log=log, consumers=consumers, short_term=short_term, long_term=long_term)
        self.nightly = Nightly(log=log, consumers=consumers, verifier=verifier, clock=clock, owner=owner)
        self._runners = [
            Runner(part, consumers, owner=owner, batch=batch, timing=self._timing) for part in parts
        ]
        self._extracting = model is not None
        self._extraction = self._reading(extraction, batch)
        self._runners.append(self._extraction)
        self._parked = Parked(self._runners, consumers, self._timing)
        self._tasks: list[asyncio.Task[None]] = []

    def _reading(self, extraction: ExtractionDecider, batch: int) -> Runner:
        lease = EXTRACTION_LEASE if self._extracting else self._timing.lease
        return Runner(
            extraction,
            self._consumers,
            owner=self._owner,
            batch=batch,
            timing=msgspec.structs.replace(self._timing, lease=lease),
            ripe=extraction.ripe,
        )

    async def start(self) -> None:
        """Begin to work, in tasks of its own."""
        if self._tasks:
            return
        work = [self._follow(at) for at in range(len(self._runners))]
        self._tasks = [asyncio.create_task(one) for one in (*work, self._watch(), self._purge_all())]

    async def run(self) -> None:
        """Work until `stop` is called or this is cancelled: the form for a process of its own."""
        await self.start()
        try:
            await asyncio.gather(*self._tasks)
        except asyncio.CancelledError:
            await self.stop()

    async def stop(self) -> None:
        """Stop at the next await and give the leases back. What was under way is done again later."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for runner in self._runners:
            try:
                await runner.release()
            except Unavailable:
                logger.warning("a lease was not given back; it runs out by itself", exc_info=True)

    def notify(self) -> None:
        """Say that the log has something new. Call it from the worker's event loop."""
        self._runners[0].wake.set()

    async def drain(self) -> None:
        """Wait until every consumer has handled all that the log held, its own decisions included.

        A parked event counts as handled, a stopped consumer as done. A store that is down is waited for.
        """
        pages, *others = [one for one in self._runners if one is not self._extraction]
        for runner in (pages, self._extraction, *others):
            await runner.catch_up(whole=True)
        # what later parts decided is to be found too
        for runner in self._runners:
            if runner.consumer is self._index:
                await runner.catch_up(whole=True)

    async def tick(self) -> int:
        """Close the exchanges that have been idle for long; returns how many."""
        runner, closed = self._runners[0], 0
        before = self._clock.now() - timedelta(seconds=self._timing.idle)
        async with runner.lock:
            for event in await self._consumers.idle_exchanges(before=before, limit=100):
                lease = await runner.lease(self._consumers.partition(event.tenant, event.user))
                if lease is None or runner.stopped:
                    continue
                decisions = await self._pages.idle(event)
                await runner.advance(lease, seq=lease.seq, decisions=decisions)
                closed += bool(decisions)
        self.notify()
        return closed

    async def sweep(self) -> int:
        """Forget what has outlived its time, and tell which segments have to go; how many records were
        forgotten. Raises LogUnavailable.
        """
        forgotten = await self._retention.sweep()
        if forgotten:
            logger.info("%d records had outlived their time and were forgotten", forgotten)
        due = await self._crowding.sweep()
        if due:
            logger.info("%d segments have to go by their age or by the limits over all users", due)
        if forgotten or due:
            self.notify()
        if self._archival is not None:
            await self._archival.sweep()
        return forgotten

    async def purge(self) -> int:
        """Go on with every erasure that is not over; how many are over with this. Raises LogUnavailable.

        One worker at a time does so.
        """
        if self._purger is None:
            return 0
        async with self._alone(PURGING) as mine:
            return await self._purger.tick() if mine else 0

    async def retry_parked(self) -> tuple[int, int]:
        """See `Parked.retry_all`."""
        tried = await self._parked.retry_all()
        self.notify()
        return tried

    async def retry(self, consumer: str, event_id: str) -> bool:
        """See `Parked.retry`."""
        handled = await self._parked.retry(consumer, event_id)
        self.notify()
        return handled

    async def replay(self, watch: Callable[[int], None] = lambda _: None) -> int:
        """See `project_again`."""
        return await project_again(self._log, self._index, watch)

    async def health(self) -> WorkerHealth:
        """Lag, parked events and failures. Raises LogUnavailable."""
        health = await progress(self._consumers, extracting=self._extracting)
        read, others = health.extraction, self._runners
        if read is not None:
            read = msgspec.structs.replace(
                read, error=self._extraction.stopped or _told(self._extraction.error)
            )
            others = [one for one in others if one is not self._extraction]
        return msgspec.structs.replace(
            health,
            running=bool(self._tasks) and not any(task.done() for task in self._tasks),
            stopped={one.consumer.name: one.stopped for one in others if one.stopped},
            errors={one.consumer.name: one.error for one in others if one.error},
            extraction=read,
            verified=self.nightly.last,
        )

    async def _follow(self, at: int) -> None:
        """Each consumer wakes the next, which then finds its decisions too. What a later one decides may be
        for an earlier one, so they start again. One that is held up holds up another no longer than until
        that one looks by itself.
        """
        runner, decided = self._runners[at], 0
        while True:
            runner.wake.clear()
            await runner.catch_up()
            if at + 1 < len(self._runners):
                self._runners[at + 1].wake.set()
            if at and runner.decided > decided:
                self.notify()
            decided = runner.decided
            with suppress(TimeoutError):
                # asyncio.wait_for would lose a cancellation that comes with the wake-up
                async with asyncio.timeout(self._timing.poll):
                    await runner.wake.wait()
                    if not at:
                        await asyncio.sleep(self._timing.gather)

    async def _purge_all(self) -> None:
        """Again and again; the named boundary of erasures, logged and counted."""
        while True:
            await asyncio.sleep(self._timing.poll)
            try:
                if self._purger is not None and await self._purger.waits():
                    await self.purge()
            except Exception:
                logger.warning("erasures wait until the next look", exc_info=True)
                metrics.FAILURES.labels("worker.purge").inc()

    async def _watch(self) -> None:
        swept = -self._timing.sweep
        while True:
            try:
                await self._rebuild()
                await self.tick()
                if self._archival is not None:
                    await self._archival.purge()
                await self.nightly.step()
                if time.monotonic() - swept >= self._timing.sweep:
                    await self.sweep()
                    swept = time.monotonic()
            except (Unavailable, LeaseLost):
                logger.warning("what is idle, lost or over waits until the next look", exc_info=True)
                metrics.FAILURES.labels("worker.watch").inc()
            await asyncio.sleep(self._timing.tick)

    async def _rebuild(self) -> None:
        """By one worker; the others see that it is done when they look again."""
        if not (isinstance(self._long_term, Rebuildable) and self._long_term.needs_rebuild):
            return
        async with self._alone(REBUILDING) as mine:
            if mine:
                events = await self.replay()
                await self._long_term.mark_rebuilt()
                logger.info("long-term memory was filled from the log: %d events", events)

    def _alone(self, work: str) -> AbstractAsyncContextManager[bool]:
        return alone(self._consumers, work, owner=self._owner, seconds=self._timing.lease)
