"""The tokens that a key's blocks have cost today, in all processes of the gateway."""

from __future__ import annotations

import asyncio
import logging
from datetime import datetime

from hearth.memory import metrics
from hearth.memory.errors import HearthError
from hearth.memory.ports import Shared

logger = logging.getLogger(__name__)

EXCHANGE_SECONDS = 5.0
"""Between two looks at what the others spent: a limit may be exceeded by what all spend in this time."""
KEPT_SECONDS = 48 * 3600


class DailyTokens:
    """Block tokens by key and UTC day. Without `shared` they are this process's alone, and end with it."""

    def __init__(self, shared: Shared | None = None) -> None:
        self._shared = shared
        self._day = ""
        self._own: dict[str, int] = {}
        """Spent here and not told yet."""
        self._total: dict[str, int] = {}
        """Spent by all, as far as it was told."""

    def left(self, key: str, limit: int | None, now: datetime) -> bool:
        """Whether the key may still spend tokens today."""
        self._begin(now)
        return limit is None or self._total.get(key, 0) + self._own.get(key, 0) < limit

    def spend(self, key: str, tokens: int, now: datetime) -> None:
        """Count a placed block; less than nothing for one that was refused."""
        self._begin(now)
        self._own[key] = self._own.get(key, 0) + tokens

    async def follow(self) -> None:
        """Tell the others and hear from them, again and again, until cancelled."""
        while self._shared is not None:
            await asyncio.sleep(EXCHANGE_SECONDS)
            try:
                await self.exchange()
            except HearthError as error:
                logger.warning("the day's tokens of other gateways are not known: %s", error)
                metrics.FAILURES.labels("daily").inc()

    async def exchange(self) -> None:
        """Tell what was spent here, and learn what all spent, of the keys that were seen today.

        Raises StoreUnavailable, and then tells it the next time.
        """
        shared, day = self._shared, self._day
        if shared is None:
            return
        for key in {*self._own, *self._total}:
            spent = self._own.get(key, 0)
            total = await shared.add(f"tokens:{day}:{key}", spent, seconds=KEPT_SECONDS)
            if day != self._day:
                return
            self._own[key] = self._own.get(key, 0) - spent
            self._total[key] = total

    def _begin(self, now: datetime) -> None:
        day = now.date().isoformat()
        if day != self._day:
            self._day, self._own, self._total = day, {}, {}
