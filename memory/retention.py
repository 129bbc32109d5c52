"""Retention: what a policy keeps no longer, and memories past their own end, are forgotten for good."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final
from uuid import NAMESPACE_URL, uuid5

from hearth.memory import metrics
from hearth.memory.errors import StaleGeneration
from hearth.memory.events.kinds import Event, MemoryForgotten, PageForgotten
from hearth.memory.policies import PolicyOf
from hearth.memory.ports import Clock, EventLog, Outlived

_NAMESPACE: Final = uuid5(NAMESPACE_URL, "hearth:retention")
_AT_ONCE: Final = 200
"""Records of one append."""


class Retention:
    """Forgets what has outlived its time, tenant by tenant. Any number of workers may do so at once."""

    def __init__(self, *, log: EventLog, clock: Clock, policy: PolicyOf) -> None:
        self._log = log
        self._clock = clock
        self._policy = policy

    async def sweep(self) -> int:
        """Forget all that is due now; how many records that was. Raises LogUnavailable."""
        return sum([await self._of_tenant(tenant) for tenant in await self._log.tenants()])

    async def _of_tenant(self, tenant: str) -> int:
        now, forgotten = self._clock.now(), 0
        while due := await self._log.outlived(
            tenant, now=now, before=self._before(tenant, now), limit=_AT_ONCE
        ):
            await self._forget(tenant, due, now)
            forgotten += len(due)
            if len(due) < _AT_ONCE:
                break
        return forgotten

    def _before(self, tenant: str, now: datetime) -> datetime | None:
        days = self._policy(tenant, "", "").retention.dialogue_days
        return None if days is None else now - timedelta(days=days)

    async def _forget(self, tenant: str, due: Sequence[Outlived], now: datetime) -> None:
        for one in due:
            payload = (
                PageForgotten(page=one.id, reason="retention")
                if one.is_exchange
                else MemoryForgotten(memory=one.id, reason="expired")
            )
            event = Event(
                id=uuid5(_NAMESPACE, f"{tenant}/{one.user}/{one.generation}/{one.id}").hex,
                tenant=tenant,
                user=one.user,
                agent=one.agent,
                generation=one.generation,
                occurred_at=now,
                payload=payload,
            )
            try:
                await self._log.append([event])
            except StaleGeneration:
                continue  # erased meanwhile: there is nothing left to forget
            metrics.OUTLIVED.labels(payload.reason).inc()
