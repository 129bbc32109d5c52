"""Work that one process at a time does, of all that share a log."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial

from hearth.memory.errors import Unavailable
from hearth.memory.ports import Consumers, Lease

PURGING = "purge"
"""The lease of whoever goes on with erasures."""


@asynccontextmanager
async def alone(consumers: Consumers, work: str, *, owner: str, seconds: float) -> AsyncIterator[bool]:
    """Whether the work is this owner's until the end, and no other one's. Raises LogUnavailable.

    `seconds`: after which another one may go on where this one has died.
    """
    take = partial(consumers.lease, work, 0, owner=owner)
    if await take(seconds=seconds) is None:
        yield False
        return
    renewing = asyncio.create_task(_renew(take, seconds))
    try:
        yield True
    finally:
        renewing.cancel()
        await asyncio.gather(renewing, return_exceptions=True)
        await take(seconds=0)


async def _renew(take: Callable[..., Awaitable[Lease | None]], seconds: float) -> None:
    """While the log can't be asked the lease may run out: then another one does the same beside."""
    while True:
        await asyncio.sleep(seconds / 3)
        with suppress(Unavailable):
            await take(seconds=seconds)
