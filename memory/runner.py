"""A runner: takes one consumer through the log, batch after batch, resumable at any instruction."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Protocol

import msgspec
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, wait_exponential_jitter

from hearth.memory import metrics
from hearth.memory.errors import LeaseLost, Unavailable, UnknownEvent
from hearth.memory.events.kinds import Event
from hearth.memory.ports import Consumers, Lease

logger = logging.getLogger(__name__)

MOST_STARTS = 3
"""Starts of one event without an end after which it is parked."""


class Consumer(Protocol):
    """One part of the worker: what it reads and what it does with it."""

    @property
    def name(self) -> str:
        """Names its cursor."""
        ...

    @property
    def kinds(self) -> Sequence[str]:
        """The kinds of event that it reads."""
        ...

    def together(self, events: Sequence[Event]) -> int:
        """How many of the head may be handled at once, at least one."""
        ...

    async def probe(self, event: Event) -> None:
        """Raise Unavailable if what `handle` needs for the event is down."""
        ...

    async def handle(self, events: Sequence[Event]) -> list[Event]:
        """Do what the events ask for, as often as it takes; return the decisions to append."""
        ...


def all_different(keys: Iterable[Hashable]) -> int:
    """How many of the first keys are each another one, so that none of their events rests on another."""
    seen: set[Hashable] = set()
    for key in keys:
        if key in seen:
            break
        seen.add(key)
    return len(seen)


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """The worker's times, in seconds."""

    lease: float = 30.0
    """How long another worker waits for one that died."""
    poll: float = 2.0
    """How often a consumer looks for events that nobody notified it of."""
    gather: float = 0.15
    """Between a notification and the first consumer's work, so that what follows at once is handled with it:
    one batch costs little more than one event."""
    idle: float = 600.0
    """Silence after which an open exchange is closed."""
    tick: float = 30.0
    """How often idle exchanges are looked for."""
    sweep: float = 3600.0
    """How often what has outlived its time is looked for."""
    backoff: float = 0.05
    """First wait after a failure; doubles, with jitter."""
    longest_backoff: float = 15.0


class Runner:
    """One consumer with its leases, its failures and its waking."""

    def __init__(
        self,
        consumer: Consumer,
        consumers: Consumers,
        *,
        owner: str,
        batch: int,
        timing: Timing,
        ripe: Callable[[Sequence[Event]], bool] = lambda events: True,
    ) -> None:
        """`ripe`: whether pending events are to be handled yet; where the whole log must be, they are."""
        self.consumer = consumer
        self.wake = asyncio.Event()
        self.lock = asyncio.Lock()
        self.stopped = ""
        self.error = ""
        self.decided = 0
        """Events that it has appended."""
        self._consumers = consumers
        self._owner = owner
        self._batch = batch
        self._timing = timing
        self._ripe = ripe
        self._leases: dict[int, tuple[Lease, float]] = {}
        self._sure = False

    async def catch_up(self, *, whole: bool = False) -> None:
        """Handle all that is pending. Waits out failures: the named boundary of the loop, logged and counted.

        What another worker holds is left to it, or waited for where the `whole` log must be handled.
        """
        retrying = AsyncRetrying(
            wait=wait_exponential_jitter(multiplier=self._timing.backoff, max=self._timing.longest_backoff),
            retry=retry_if_exception_type(Exception),
            before_sleep=self._failed,
        )
        async with self.lock:
            await retrying(self._all if self._consumers.partitions == 1 else self._share, whole=whole)
            self.error = ""

    async def lease(self, partition: int) -> Lease | None:
        """The lease of a partition, renewed in good time; None while another worker holds it.

        Raises LeaseLost where another one held it since it was last renewed.
        """
        now = asyncio.get_running_loop().time()
        held = self._leases.get(partition)
        if held is not None and now - held[1] < self._timing.lease / 3:
            return held[0]
        lease = await self._consumers.lease(
            self.consumer.name, partition, owner=self._owner, seconds=self._timing.lease
        )
        if lease is None:
            self._leases.pop(partition, None)
            return None
        if held is not None and held[0].epoch != lease.epoch:
            await self._give_back(partition)
            raise LeaseLost
        self._leases[partition] = (lease, now)
        return lease

    async def advance(self, lease: Lease, *, seq: int, decisions: Sequence[Event] = ()) -> None:
        """Move the cursor and append the decisions. Raises LeaseLost."""
        moved = await self._consumers.advance(lease, seq=seq, decisions=decisions)
        self._leases[lease.partition] = (moved, self._leases[lease.partition][1])
        self.decided += len(decisions)

    async def release(self) -> None:
        """Let another worker take over at once."""
        for partition in list(self._leases):
            await self._give_back(partition)

    async def _give_back(self, partition: int) -> None:
        if self._leases.pop(partition, None) is not None:
            await self._consumers.lease(self.consumer.name, partition, owner=self._owner, seconds=0)

    def _failed(self, state: RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome else None
        self._leases.clear()
        self._sure = False
        self.error = f"{type(error).__name__}: {error}"
        metrics.FAILURES.labels(f"worker.{self.consumer.name}").inc()
        logger.warning("the worker's %s waits and tries again: %s", self.consumer.name, self.error)

    async def _all(self, *, whole: bool) -> None:
        """Alone with the log, and with one lease for all of it."""
        while not self.stopped:
            decided = self.decided
            done = await self._some(0, whole=whole)
            if whole and done is None:
                raise LeaseLost
            # Fewer than there was room for were all; only its own decisions can be more.
            if not done or (done < self._batch and self.decided == decided):
                return

    async def _share(self, *, whole: bool) -> None:
        """Take what no other worker is at, a part of a partition at a time, and give it back at once: so any
        number of workers spread over the partitions, and none waits for one that is idle.
        """
        while not self.stopped:
            places = await self._consumers.behind(self.consumer.name, self.consumer.kinds)
            random.shuffle(places)
            done = 0
            for place in places:
                done += await self._some(place, whole=whole) or 0
                await self._give_back(place)
            if not done:
                if places and whole and not self.stopped:
                    raise LeaseLost
                return

    async def _some(self, partition: int, *, whole: bool) -> int | None:
        """Handle a part of what is pending; how many events, None while another worker has the partition."""
        try:
            lease = await self.lease(partition)
            if lease is None:
                return None
            events = await self._consumers.pending(lease, limit=self._batch, kinds=self.consumer.kinds)
            if not (whole or self._ripe(events)):
                return 0
            handled = len(events)
            while events:
                count = self.consumer.together(events)
                await self._head(partition, events[:count])
                events = events[count:]
        except UnknownEvent as error:
            self._stop(error)
            return 0
        return handled

    def _stop(self, error: UnknownEvent) -> None:
        self.stopped = str(error)
        metrics.FAILURES.labels(f"worker.{self.consumer.name}.stopped").inc()
        logger.error("the worker's %s stops: %s; a newer program must go on", self.consumer.name, error)

    async def _head(self, partition: int, events: Sequence[Event]) -> None:
        """Handle a batch at once, or one by one if its start was counted before: then one of it is poisonous.

        A batch counts on its first event alone, so that one commit is enough and a crash blames no other.
        """
        if not self._sure:
            await self.consumer.probe(events[0])
            self._sure = True
        starts = await self._consumers.start_attempt(self.consumer.name, events[0])
        if starts == 1 and len(events) > 1 and await self._batch_done(partition, events):
            return
        for at, event in enumerate(events):
            if at or starts == 1 < len(events):
                starts = await self._consumers.start_attempt(self.consumer.name, event)
            await self._single(partition, event, starts)

    async def _batch_done(self, partition: int, events: Sequence[Event]) -> bool:
        """False where the batch failed as a whole: the named boundary of handling, logged and counted."""
        try:
            decisions = await self.consumer.handle(events)
        except (Unavailable, LeaseLost, UnknownEvent):
            raise
        except Exception:
            logger.exception(
                "the worker's %s failed on a batch; it goes on event by event", self.consumer.name
            )
            metrics.FAILURES.labels(f"worker.{self.consumer.name}.batch").inc()
            return False
        await self._done(partition, events, decisions)
        return True

    async def _single(self, partition: int, event: Event, starts: int) -> None:
        """Handle one event, or park it: the named boundary of handling, logged and counted."""
        if starts > MOST_STARTS:
            await self._park(partition, event, f"started {MOST_STARTS} times and never ended")
            return
        try:
            decisions = await self.consumer.handle([event])
        except (Unavailable, LeaseLost, UnknownEvent):
            raise
        except Exception as error:
            logger.exception("the worker's %s failed on event %s", self.consumer.name, event.id)
            metrics.FAILURES.labels(f"worker.{self.consumer.name}.event").inc()
            if starts < MOST_STARTS:
                raise
            await self._park(partition, event, repr(error))
            return
        await self._done(partition, [event], decisions)

    async def _done(self, partition: int, events: Sequence[Event], decisions: Sequence[Event]) -> None:
        try:
            await self._advance_to(partition, events[-1], decisions)
        except LeaseLost:
            await self._overtaken(events)
            raise

    async def _park(self, partition: int, event: Event, error: str) -> None:
        await self._consumers.park(self.consumer.name, event, error)
        metrics.FAILURES.labels(f"worker.{self.consumer.name}.parked").inc()
        await self._advance_to(partition, event, ())

    async def _advance_to(self, partition: int, event: Event, decisions: Sequence[Event]) -> None:
        lease = await self.lease(partition)
        if lease is None:
            raise LeaseLost
        await self.advance(lease, seq=event.seq, decisions=decisions)

    async def _overtaken(self, events: Sequence[Event]) -> None:
        """Another worker went on meanwhile, and what this one wrote last may be older than what that one did:
        bring the stores to what the log says now. What it would decide is no longer its matter.
        """
        logger.warning("the worker's %s was overtaken by another one", self.consumer.name)
        await self.consumer.handle(events)
