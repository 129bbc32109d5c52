"""What every part of the engine rests on: its ports, writing events, and how long it waits for a store."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Awaitable, Mapping
from typing import TypeVar

import msgspec
from purgatory import AsyncCircuitBreakerFactory
from purgatory.domain.model import OpenedState

from hearth.memory import metrics
from hearth.memory.capture import Capture
from hearth.memory.engine.answers import Forgotten
from hearth.memory.erasure.eraser import Eraser
from hearth.memory.erasure.office import Office
from hearth.memory.errors import (
    BadInput,
    HearthError,
    LogUnavailable,
    PrivateSession,
    StaleGeneration,
    StoreUnavailable,
)
from hearth.memory.events.kinds import Event, Payload, happened
from hearth.memory.knowledge.library import Library
from hearth.memory.knowledge.system import SystemMemory
from hearth.memory.policies import Policies
from hearth.memory.portable.porter import Porter
from hearth.memory.ports import Clock, Consumers, EventLog, LongTerm, MidTerm, Shared, ShortTerm, TokenCounter
from hearth.memory.recall.policy import RecallPolicy, Weights
from hearth.memory.recall.traces import TraceRing
from hearth.memory.types import Scope
from hearth.memory.verify import Verifier
from hearth.memory.working import Working

logger = logging.getLogger(__name__)

T = TypeVar("T")


class Parts:
    """The ports of an engine, and what its parts share."""

    def __init__(
        self,
        *,
        log: EventLog,
        office: Office,
        mid_term: MidTerm,
        short_term: ShortTerm,
        long_term: LongTerm,
        capture: Capture,
        worker: Working,
        counter: TokenCounter,
        clock: Clock,
        policy: RecallPolicy,
        consumers: Consumers,
        policies: Policies,
        shared: Shared | None = None,
        weights: Mapping[str, Weights] | None = None,
        eraser: Eraser | None = None,
    ) -> None:
        """`weights`: of tenants that have their own in place of the policy's. `eraser`: over the same stores;
        one of the engine's own where none is given.
        """
        self.log = log
        self.office = office
        self.mid_term = mid_term
        self.short_term = short_term
        self.verifier = Verifier(log=log, consumers=consumers, short_term=short_term, long_term=long_term)
        self.long_term = long_term
        self.capture_path = capture
        self.worker = worker
        self.counter = counter
        self.clock = clock
        self.policy = policy
        self._policies = {
            tenant: msgspec.structs.replace(policy, weights=own) for tenant, own in (weights or {}).items()
        }
        self.policies = policies
        self.traces = TraceRing()
        self.shared = shared
        self.knowledge = Library(
            log=log, long_term=long_term, clock=clock, appended=worker.notify, mask=policies.mask
        )
        self.porter = Porter(log=log, clock=clock, appended=worker.notify, mask=policies.mask)
        self.eraser = eraser or Eraser(
            log=log, office=office, mid_term=mid_term, long_term=long_term, clock=clock
        )
        self.system = SystemMemory(
            log=log, library=self.knowledge, clock=clock, appended=worker.notify, mask=policies.mask
        )
        self._refilling: set[str] = set()
        self._stopgap = secrets.token_bytes(32)
        self._breakers = AsyncCircuitBreakerFactory(
            default_threshold=5, default_ttl=10, exclude=[BadInput, PrivateSession, StaleGeneration]
        )

    def due(self) -> float:
        """When all that one call asks of memory must have ended, if it begins now; as `time.monotonic`."""
        return time.monotonic() + self.policy.deadline_seconds

    async def _append(self, *events: Event) -> None:
        await self.log.append(events)
        self.worker.notify()

    def _event(
        self,
        scope: Scope,
        payload: Payload,
        generation: int,
        *,
        id: str | None = None,
        parent: str | None = None,
    ) -> Event:
        return happened(scope, payload, generation, at=self.clock.now(), id=id or "", parent=parent)

    async def secret(self, tenant: str, *, by: float | None = None) -> bytes:
        """The tenant's `EventLog.secret`; `by` as for `open`.

        Where the log can't be asked, one of this process's own, by which later requests find what was
        captured meanwhile, and nothing else.
        """
        try:
            return await self._of_the_log("secret", self.log.secret(tenant), by)
        except LogUnavailable as error:
            logger.warning("the secret of tenant %s is not known: %s", tenant, error)
            metrics.FAILURES.labels("log.secret").inc()
            return self._stopgap

    async def _of_the_log(self, what: str, work: Awaitable[T], by: float | None) -> T:
        """What the log answers before a call.

        A breaker each: a secret that is known already must not make a broken log look well.
        """
        try:
            return await self._in_time(what, work, self._left(by))
        except (TimeoutError, OpenedState) as error:
            raise LogUnavailable("the event log does not answer in time") from error

    def _left(self, by: float | None) -> float:
        """Seconds until `by`, or those of the policy."""
        return self.policy.deadline_seconds if by is None else max(0.0, by - time.monotonic())

    async def _guard(self, part: str, work: Awaitable[T], fallback: T, limit: float) -> T:
        """The request path's boundary: a store's failure becomes `fallback`, logged, counted and named."""
        try:
            return await self._in_time(part, work, limit)
        except (TimeoutError, OpenedState, HearthError) as error:
            logger.warning("recall goes on without %s: %s", part, str(error) or type(error).__name__)
        except Exception:
            logger.exception("recall goes on without %s", part)
        metrics.RECALL_MISSING.labels(part).inc()
        return fallback

    async def _in_time(self, part: str, work: Awaitable[T], limit: float) -> T:
        """What `work` gives within so many seconds; not even begun while the part's breaker is open."""
        try:
            async with await self._breakers.get_breaker(part), asyncio.timeout(limit):
                return await work
        finally:
            if asyncio.iscoroutine(work):
                work.close()

    async def _removed(self, *removals: tuple[str, Awaitable[None]]) -> Forgotten:
        """What became of those; the worker completes what a store that is down could not."""
        pending: list[str] = []
        for part, removal in removals:
            try:
                await removal
            except StoreUnavailable:
                logger.warning("%s is down; the worker completes the deletion", part, exc_info=True)
                metrics.FAILURES.labels(f"{part}.delete").inc()
                pending.append(part)
        return Forgotten(done=not pending, pending=tuple(dict.fromkeys(pending)))
