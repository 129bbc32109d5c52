"""The facade: what a gateway, a command line or a program asks of memory."""

from __future__ import annotations

from hearth.memory.engine.answers import Forgotten, Opened
from hearth.memory.engine.capturing import Capturing
from hearth.memory.engine.keeping import Keeping
from hearth.memory.engine.removing import Removing
from hearth.memory.engine.searching import Searching


class Engine(Searching, Capturing, Keeping, Removing):
    """Memory over its ports. Start it, use it from one event loop, close it."""

    async def drain(self) -> None:
        """Wait until everything acknowledged so far stands in every projection."""
        await self.capture_path.drain()
        await self.worker.drain()
        await self.knowledge.refresh()


__all__ = ["Engine", "Forgotten", "Opened"]
