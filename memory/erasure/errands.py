"""What only a gateway can do for an erasure, where workers in processes of their own do the rest."""

from __future__ import annotations

import asyncio
import logging
from typing import Final
from uuid import uuid4

from hearth.memory import metrics
from hearth.memory.alone import PURGING, alone
from hearth.memory.erasure.eraser import Eraser
from hearth.memory.erasure.office import Office
from hearth.memory.erasure.provider_held import PLACE, Deletions, Providers
from hearth.memory.erasure.receipt import Receipt
from hearth.memory.ports import Clock, Consumers

logger = logging.getLogger(__name__)

LOOK_SECONDS: Final = 2.0
"""Between two looks for receipts."""
LEASE_SECONDS: Final = 60.0
"""After which others go on where this process has died amid them."""
_OPEN: Final = 100


class Errands:
    """Has providers delete what receipts name, and ticks that off. Any number of gateways do so in turns."""

    def __init__(
        self, providers: Providers, *, eraser: Eraser, office: Office, consumers: Consumers, clock: Clock
    ) -> None:
        self._deletions = Deletions(providers, clock)
        self._eraser = eraser
        self._office = office
        self._consumers = consumers
        self._owner = f"errands-{uuid4().hex}"

    async def tick(self) -> None:
        """Do what can be done now. Raises LogUnavailable."""
        if not await self._open():
            return
        async with alone(self._consumers, PURGING, owner=self._owner, seconds=LEASE_SECONDS) as mine:
            for tenant, receipt in await self._open() if mine else []:
                after = await self._deletions.go_on(receipt)
                if after != receipt:
                    await self._eraser.write(tenant, after)

    async def follow(self) -> None:
        """Again and again; the named boundary of these errands, logged and counted."""
        while True:
            try:
                await self.tick()
            except Exception:
                logger.warning("what providers keep of erased users waits until the next look", exc_info=True)
                metrics.FAILURES.labels("erasure.errands").inc()
            await asyncio.sleep(LOOK_SECONDS)

    async def _open(self) -> list[tuple[str, Receipt]]:
        known = await self._office.open_erasures(limit=_OPEN)
        return [(tenant, one) for tenant, one in known if one.state != "held" and PLACE in one.pending]
