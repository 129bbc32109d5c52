"""Events that a consumer set aside because it could not handle them, and their next try."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_delay, wait_random

from hearth.memory.errors import LeaseLost, Unavailable
from hearth.memory.events.kinds import Event
from hearth.memory.ports import Consumers
from hearth.memory.runner import Runner, Timing

logger = logging.getLogger(__name__)


class Parked:
    """The parked events of a log, for the runners of one worker."""

    def __init__(self, runners: Sequence[Runner], consumers: Consumers, timing: Timing) -> None:
        self._runners = runners
        self._consumers = consumers
        self._timing = timing

    async def retry_all(self) -> tuple[int, int]:
        """Handle every parked event once more; how many were handled, and how many are still parked.

        Other workers may be at work: an event waits for one that is at its partition, for a lease's time at
        most. Raises Unavailable.
        """
        handled = left = 0
        for consumer, event, _ in await self._consumers.parked():
            try:
                handled += await self._retry_in_turn(consumer, event.id)
            except Unavailable:
                raise
            except Exception:
                logger.exception("event %s is still set aside by %s", event.id, consumer)
                left += 1
        return handled, left

    async def _retry_in_turn(self, consumer: str, event_id: str) -> bool:
        turns = AsyncRetrying(
            retry=retry_if_exception_type(LeaseLost),
            wait=wait_random(0.05, 0.5),
            stop=stop_after_delay(self._timing.lease),
            reraise=True,
        )
        return await turns(self.retry, consumer, event_id)

    async def retry(self, consumer: str, event_id: str) -> bool:
        """Handle a parked event once more; False if it was not parked. It stays parked if it fails.

        Raises what the handling raises, LeaseLost where another worker is at its partition, Unavailable.
        """
        runner = next(one for one in self._runners if one.consumer.name == consumer)
        async with runner.lock:
            parked = (event for name, event, _ in await self._consumers.parked() if name == consumer)
            event = next((event for event in parked if event.id == event_id), None)
            if event is None:
                return False
            try:
                await self._handle_parked(runner, event)
            finally:
                await runner.release()
        return True

    async def _handle_parked(self, runner: Runner, event: Event) -> None:
        """It is parked until all is done, so that nothing is lost where this process ends meanwhile."""
        lease = await runner.lease(self._consumers.partition(event.tenant, event.user))
        if lease is None:
            raise LeaseLost
        try:
            decisions = await runner.consumer.handle([event])
        except Exception as error:
            await self._consumers.park(runner.consumer.name, event, repr(error))
            raise
        await runner.advance(lease, seq=lease.seq, decisions=decisions)
        await self._consumers.unpark(runner.consumer.name, event.id)
