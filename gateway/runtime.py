"""The running gateway of this process, held where LiteLLM can't execute it twice."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from hearth.config.settings import Settings
from hearth.gateway.flow import Flow
from hearth.gateway.switchboard import Switchboard


@dataclass(frozen=True, kw_only=True)
class Gateway:
    """What every hook and route needs."""

    settings: Settings
    flow: Flow
    switchboard: Switchboard


class Runtime:
    """Holds the gateway; inside a stock proxy it is started by the first call that needs it."""

    def __init__(self) -> None:
        self._gateway: Gateway | None = None
        self._starter: Callable[[], Awaitable[Gateway]] | None = None
        self._lock = asyncio.Lock()
        self.counted_together = False
        """True where several processes of one gateway count in files that each of them can read."""
        self.ending = False
        """True from the signal to end on: calls are served, but no new ones should be sent here."""

    def install(self, gateway: Gateway | None) -> None:
        """Set the gateway (`hearth serve`), or forget it at shutdown."""
        self._gateway = gateway

    def running(self) -> Gateway:
        """The installed gateway. Raises RuntimeError before start and after shutdown."""
        if self._gateway is None:
            raise RuntimeError("the gateway is not running")
        return self._gateway

    def start_with(self, starter: Callable[[], Awaitable[Gateway]]) -> None:
        """How to start the gateway where nobody has installed one."""
        self._starter = starter

    async def gateway(self) -> Gateway | None:
        """The running gateway, started now if need be; None where there is none to start."""
        if self._gateway is None and self._starter is not None:
            async with self._lock:
                if self._gateway is None:
                    self._gateway = await self._starter()
        return self._gateway


RUNTIME = Runtime()
