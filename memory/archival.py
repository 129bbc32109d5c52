"""Archival: payloads older than a policy keeps in the log go to archives, and deletions reach those."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from hearth.memory import metrics
from hearth.memory.events.archiving import LEAST_BYTES, ArchivesBusy, Archiving
from hearth.memory.policies import PolicyOf
from hearth.memory.ports import Clock, EventLog

logger = logging.getLogger(__name__)


class Archival:
    """Archives what is old, tenant by tenant. Of any number of workers one does so at a time."""

    def __init__(self, *, log: EventLog, archiving: Archiving, clock: Clock, policy: PolicyOf) -> None:
        """`policy` of a tenant."""
        self._log = log
        self._archiving = archiving
        self._clock = clock
        self._policy = policy

    async def sweep(self) -> int:
        """Archive all that is due now; how many payloads that was. Raises LogUnavailable."""
        moved = 0
        for tenant in await self._log.tenants():
            days = self._policy(tenant, "", "").retention.payload_days
            if days is not None:
                moved += await self._archive(tenant, self._clock.now() - timedelta(days=days))
        metrics.ARCHIVED.inc(moved)
        return moved

    async def _archive(self, tenant: str, before: datetime) -> int:
        try:
            return (await self._archiving.archive(tenant, before, least=LEAST_BYTES)).events
        except ArchivesBusy:
            return 0
        finally:
            await self._archiving.release()

    async def purge(self) -> int:
        """Take out of the archives what was deleted since; how many were written anew or removed.

        Raises LogUnavailable.
        """
        try:
            purged = await self._archiving.purge()
        except ArchivesBusy:
            return 0
        if purged:
            logger.info("%d archives were written anew without what was deleted", purged)
            await self._archiving.release()
        return purged
