"""Moves an installation to other stores: its log is copied, and long-term memory filled from the copy."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import msgspec

from hearth.memory.acts import write_down
from hearth.memory.addresses import without_secrets
from hearth.memory.admission import Gate, PolicyAdmission
from hearth.memory.clock import SystemClock
from hearth.memory.errors import LogUnavailable
from hearth.memory.events.copying import Copied, Watch, begun, copy, finish
from hearth.memory.events.spool import Spool
from hearth.memory.events.sql_log import SqlLog, refuse_unfinished
from hearth.memory.opening import (
    LOG_FILE,
    LONG_TERM,
    SHORT_TERM,
    Durability,
    Servers,
    open_worker,
    opened_log,
)
from hearth.memory.policies import Policies
from hearth.memory.ports import EventLog
from hearth.memory.stores.qdrant_calls import QdrantCalls
from hearth.memory.stores.qdrant_server import QdrantServer
from hearth.memory.stores.redis_client import redis_client
from hearth.memory.stores.redis_short_term import translated
from hearth.memory.tiers.life import LifePolicy
from hearth.memory.working import CONSUMERS

ANSWER_SECONDS = 10.0
"""For a server of the target that is asked whether it is empty."""


class Installation(msgspec.Struct, frozen=True, kw_only=True):
    """Where a memory is, as `open_memory` takes it."""

    home: Path
    spool: Path
    servers: Servers
    embedder: str = "fast"
    durability: Durability = "power"

    @property
    def log(self) -> str:
        """Names the log: two installations with the same one share it."""
        return self.servers.postgres_url or str((self.home / LOG_FILE).resolve())

    @property
    def short_term(self) -> str:
        """Names the short-term memory in the same way."""
        return self.servers.redis_url or str((self.home / SHORT_TERM).resolve())

    @property
    def long_term(self) -> str:
        """Names the long-term memory in the same way."""
        qdrant = self.servers.qdrant
        return f"{qdrant.url} {qdrant.prefix}" if qdrant else str((self.home / LONG_TERM).resolve())


class Migrated(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a migration."""

    copied: Copied
    spooled: int
    """Captures that still wait in the source's spool, because this program can't read them."""


async def migrate(
    source: Installation,
    target: Installation,
    *,
    watch: Watch,
    also: Callable[[SqlLog, SqlLog], Awaitable[None]],
    gate: Callable[[EventLog], Gate],
    by: str = "",
) -> Migrated:
    """Copy the log of `source`, with what waits in its spool, to `target`, and compare both.

    `also` moves what else is to be moved, before anybody can open the target. `gate` as for
    `open_memory`. `by`: who began it, written down in the source before anything is copied; empty: nobody on
    the command line. Raises LogUnavailable and StoreUnavailable where a side can't be reached or is in use,
    where there is no source, or the target's stores hold something else. Called again it goes on where it
    was. `watch` is told each stage as it begins, with 0 of 0 where it can't be counted.
    """
    if source.log == target.log:
        raise LogUnavailable("source and target have the same log: name another one in the second")
    if not source.servers.postgres_url and not (source.home / LOG_FILE).is_file():
        raise LogUnavailable(f"there is no event log in {source.home}")
    watch("Opening the source", 0, 0)
    async with _opened(source) as here:
        await here.ask(refuse_unfinished)
        policies = Policies(log=here, clock=SystemClock(), own=LifePolicy())
        admission = PolicyAdmission(policies, gate(here))
        outbox = Spool(source.spool, admission, masters=source.servers.masters)
        await outbox.drain(here)
        watch("Opening the target", 0, 0)
        async with _opened(target) as there:
            if not await there.ask(begun):
                await _refuse_leftovers(source, target)
                if by and await here.tenants():
                    await write_down(here, SystemClock(), "migrate", by=by, about=_told(target))
            copied = await copy(here, there, CONSUMERS, watch)
            if not copied.differences:
                await also(here, there)
                await finish(there)
    return Migrated(copied=copied, spooled=await asyncio.to_thread(outbox.pending))


async def fill(target: Installation, events: int, watch: Watch) -> None:
    """Fill long-term memory from the log, which has so many events, unless it is; `watch` as for `migrate`.

    Raises Unavailable; a worker over the target then begins anew.
    """
    async with open_worker(
        target.home,
        embedder=target.embedder,
        durability=target.durability,
        servers=target.servers,
    ) as opened:
        long_term = opened.stores.long_term
        await long_term.count(_NOBODY)
        if long_term.needs_rebuild:
            await opened.worker.replay(lambda read: watch(_FILLING, read, events))
            watch(_FILLING, events, events)
            await long_term.mark_rebuilt()


_FILLING = "Filling long-term memory"
"""A stage; events that nothing is filled from are passed over."""
_NOBODY = "-"
"""An owner who has nothing: asked for, a server that is met for the first time says whether it is filled."""


def _told(place: Installation) -> str:
    """Where to, as an act says it."""
    return f"to {without_secrets(place.log)}"


def _opened(place: Installation) -> AbstractAsyncContextManager[SqlLog]:
    return opened_log(place.home, place.durability, SystemClock(), place.servers, copying=True)


async def _refuse_leftovers(source: Installation, target: Installation) -> None:
    """Short-term and long-term memory of another log would be recalled from: forgotten things, too. A
    collection without any counts as filled from that log, and nobody would fill it from this one.
    """
    held = []
    if target.short_term != source.short_term and await _holds_pages(target):
        held.append("Redis (keys of hearth:)" if target.servers.redis_url else target.short_term)
    if target.long_term != source.long_term and await asyncio.to_thread(_holds_records, target):
        qdrant = target.servers.qdrant
        held.append(f"Qdrant (collections of {qdrant.prefix}*)" if qdrant else target.long_term)
    if held:
        raise LogUnavailable(
            f"the target was begun by another log, or by a gateway or worker that was once started on it, in"
            f" {' and in '.join(held)}, with memory or still without: remove that, or name another"
        )


async def _holds_pages(target: Installation) -> bool:
    if not target.servers.redis_url:
        return (target.home / SHORT_TERM).exists()
    client = redis_client(target.servers.redis_url)
    try:
        with translated():
            async for _ in client.scan_iter(match="hearth:{*}:state", count=1000):
                return True
        return False
    finally:
        await client.aclose()


def _holds_records(target: Installation) -> bool:
    qdrant = target.servers.qdrant
    if qdrant is None:
        folder = target.home / LONG_TERM
        return folder.is_dir() and any(folder.iterdir())
    return any(name.startswith(qdrant.prefix) for name in _collections(qdrant))


def _collections(server: QdrantServer) -> list[str]:
    calls = QdrantCalls(server)
    try:
        found = calls(lambda client, _: client.get_collections(), by=time.monotonic() + ANSWER_SECONDS)
    finally:
        calls.close()
    return [one.name for one in found.collections]
