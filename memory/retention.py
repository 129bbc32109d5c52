"""Retention: what is past its time, and what users asked to forget a day ago, is forgotten for good."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final
from uuid import NAMESPACE_URL, uuid5

from msgspec import structs

from hearth.memory import metrics
from hearth.memory.errors import NotFound, StaleGeneration, UnderHold
from hearth.memory.events.kinds import Event, MemoryForgotten, PageForgotten, Payload
from hearth.memory.forgetting import for_good
from hearth.memory.knowledge.library import Library
from hearth.memory.outdating import unsaid_pages
from hearth.memory.policies import PolicyOf
from hearth.memory.ports import Clock, EventLog, Outlived

_NAMESPACE: Final = uuid5(NAMESPACE_URL, "hearth:retention")
_AT_ONCE: Final = 200
"""Records of one append."""
_KNOWLEDGE: Final = "knowledge"


class Retention:
    """Forgets what has outlived its time, tenant by tenant. Any number of workers may do so at once."""

    def __init__(self, *, log: EventLog, clock: Clock, policy: PolicyOf, library: Library) -> None:
        self._log = log
        self._clock = clock
        self._policy = policy
        self._library = library

    async def sweep(self) -> int:
        """Forget all that is due now; how many records that was. Raises LogUnavailable."""
        return sum([await self._of_tenant(tenant) for tenant in await self._log.tenants()])

    async def _of_tenant(self, tenant: str) -> int:
        now = self._clock.now()
        forgotten = await self._asked(tenant, now)
        before = self._before(tenant, now)
        if (moment := before.pop(_KNOWLEDGE, None)) is not None:
            forgotten += await self._remove_documents(tenant, moment)
        while due := await self._log.outlived(tenant, now=now, before=before, limit=_AT_ONCE):
            for one in due:
                await self._forget(tenant, one, now)
            forgotten += len(due)
            if len(due) < _AT_ONCE:
                break
        return forgotten

    async def _asked(self, tenant: str, now: datetime) -> int:
        """Forget for good what users asked to forget a day ago."""
        forgotten = 0
        while due := await self._log.due_forgettings(tenant, now=now, limit=_AT_ONCE):
            for one in due:
                made = for_good(one.asked)
                events = [
                    Event(
                        id=uuid5(
                            _NAMESPACE, f"{tenant}/{one.asked.scope.user}/{one.asked.exchange}/{place}"
                        ).hex,
                        tenant=tenant,
                        user=one.asked.scope.user,
                        agent=one.asked.scope.agent,
                        generation=one.generation,
                        occurred_at=now,
                        payload=payload,
                    )
                    for place, payload in enumerate(made)
                ]
                await self._append(events)
                forgotten += len(made) - 1
            metrics.OUTLIVED.labels("asked").inc(len(due))
            if len(due) < _AT_ONCE:
                break
        return forgotten

    def _before(self, tenant: str, now: datetime) -> dict[str, datetime]:
        """Of each kind that is not kept for ever the moment before which it is over."""
        kept = structs.asdict(self._policy(tenant, "", "").retention)
        return {
            name.removesuffix("_days"): now - timedelta(days=days)
            for name, days in kept.items()
            if days is not None
        }

    async def _remove_documents(self, tenant: str, before: datetime) -> int:
        removed, after = 0, ""
        while some := await self._library.documents(tenant, after=after, limit=_AT_ONCE):
            after = some[-1].name
            for document in some:
                if document.loaded_at < before:
                    removed += await self._removed(tenant, document.id)
        return removed

    async def _removed(self, tenant: str, document: str) -> bool:
        try:
            await self._library.remove(tenant, document)
        except NotFound:
            return False  # somebody else was first
        metrics.OUTLIVED.labels("retention").inc()
        return True

    async def _forget(self, tenant: str, one: Outlived, now: datetime) -> None:
        reason = "expired" if one.expired else "retention"
        same = f"{tenant}/{one.user}/{one.generation}/{one.id}"
        events = [
            Event(
                id=uuid5(_NAMESPACE, f"{same}/{ordinal}" if ordinal else same).hex,
                tenant=tenant,
                user=one.user,
                agent=one.agent,
                generation=one.generation,
                occurred_at=now,
                payload=payload,
            )
            for ordinal, payload in enumerate(await self._payloads(tenant, one, reason))
        ]
        if await self._append(events, unless_held=True):
            metrics.OUTLIVED.labels(reason).inc()

    async def _payloads(self, tenant: str, one: Outlived, reason: str) -> Sequence[Payload]:
        """As somebody who forgets it by hand has it: a fact takes the words along that it was read from."""
        if one.kind == "dialogue":
            return [PageForgotten(page=one.id, reason=reason)]
        memory = await self._log.memory(tenant, one.user, one.id)
        words = [] if memory is None else await unsaid_pages(self._log, [memory])
        return [MemoryForgotten(memory=one.id, reason=reason), *words]

    async def _append(self, events: Sequence[Event], *, unless_held: bool = False) -> bool:
        """False where the user was erased meanwhile, so that nothing is left to forget, or is held now."""
        try:
            await self._log.append(events, unless_held=unless_held)
        except (StaleGeneration, UnderHold):
            return False
        return True
