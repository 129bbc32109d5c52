"""Replay: what the log says is written into fresh stores beside those in use, which they then replace.

It decides nothing and asks no model. Views are folded in one transaction, long-term memory is filled into an
index of its own with the vectors that the old one has, and of short-term memory each user's pages are
exchanged at once. Killed at any moment it leaves whole stores in use, and goes on where it was when
called again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from contextlib import AsyncExitStack
from functools import partial
from typing import Literal, TypeAlias, get_args

import msgspec

from hearth.memory.acts import write_down
from hearth.memory.alone import alone
from hearth.memory.clock import SystemClock
from hearth.memory.embed.load import load_embedder
from hearth.memory.errors import StoreUnavailable
from hearth.memory.events.copying import Watch
from hearth.memory.events.sql_log import SqlLog
from hearth.memory.events.walk import Sizes, last, sizes
from hearth.memory.migrating import Installation
from hearth.memory.opening import LONG_TERM, keys_for_stores, opened_log, opened_short_term
from hearth.memory.ports import Embedder, Indexed, Lease, ShortTerm, Walk, Walked
from hearth.memory.projectors import IndexProjector
from hearth.memory.stores.edge_fresh import EdgeFresh
from hearth.memory.stores.encrypted_child import EncryptedFilling
from hearth.memory.stores.fresh import Filling, Fresh
from hearth.memory.stores.memory_short_term import InMemoryShortTerm
from hearth.memory.stores.vector_child_main import shared_terms
from hearth.memory.tiers.indexed import as_stored, index_record, is_recallable
from hearth.memory.types import EVERYBODY, OFFICE, Page, Scope
from hearth.memory.worker import REBUILDING

Part: TypeAlias = Literal["views", "long-term", "short-term"]
PARTS: tuple[Part, ...] = get_args(Part)
"""What is made from the log, in the order in which one rests on the other."""

TOGETHER = 128
"""Records read and written at once."""
KEPT_EVERY = 2_000
"""Records after which the place is kept: what a killed replay does again at most."""
SWITCHING_SECONDS = 120.0
"""For which no worker begins to fill what is not filled for the moment of a switch."""
PAGES = 500
"""Of a user, read for short-term memory, which keeps fewer."""
USERS = 500


class Replayed(msgspec.Struct, frozen=True, kw_only=True):
    """What a replay did."""

    events: int
    """Of the log, redacted ones left out."""
    records: int = 0
    """That long-term memory holds."""
    embedded: int = 0
    """Texts of these that no vector was kept of."""
    users: int = 0
    """Whose short-term memory was exchanged, of whom there is anything: as `EventLog.users` has them."""


class _Place(msgspec.Struct, frozen=True, kw_only=True):
    """How far long-term memory is filled."""

    walk: Walk
    records: int = 0
    embedded: int = 0


async def replay(place: Installation, parts: Collection[Part], watch: Watch, *, by: str = "") -> Replayed:
    """Make those parts anew; `watch` is told the stage, how much of it is done, and how much there is.

    `by`: who began it, written down as an act of the installation; empty: nobody on the command line.

    Raises LogUnavailable and StoreUnavailable where a store can't be reached or is in use.
    """
    watch("Opening the log", 0, 0)
    async with AsyncExitStack() as stack:
        log = await stack.enter_async_context(
            opened_log(place.home, place.durability, SystemClock(), place.servers)
        )
        if by:
            await write_down(log, SystemClock(), "replay", by=by, about=", ".join(parts))
        there = await log.ask(sizes)
        done = Replayed(events=there.events)
        if "views" in parts:
            await log.rebuild_views(lambda count: watch("Folding views", count, there.events))
            there = await log.ask(sizes)
        if "long-term" in parts:
            filled = await _fill_long_term(place, log, there, watch)
            done = msgspec.structs.replace(done, records=filled.records, embedded=filled.embedded)
        if "short-term" in parts:
            opening = opened_short_term(place.home, place.servers.redis_url, log)
            short_term, _ = await stack.enter_async_context(opening)
            users = await _restore_short_term(log, short_term, there.users, watch)
            done = msgspec.structs.replace(done, users=users)
        return done


async def _fill_long_term(place: Installation, log: SqlLog, there: Sizes, watch: Watch) -> _Place:
    watch("Loading the embedder and opening long-term memory", 0, 0)
    embedder = await asyncio.to_thread(load_embedder, place.embedder)
    fresh = await asyncio.to_thread(_fresh, place, embedder)
    try:
        keys = keys_for_stores(log)
        filling = Filling(fresh, embedder) if keys is None else EncryptedFilling(fresh, embedder, keys=keys)
        kept = await asyncio.to_thread(fresh.place)
        begun = msgspec.json.decode(kept, type=_Place) if kept else _Place(walk=await log.begin_walk())
        filled = await _walk(log, fresh, filling, begun, partial(watch, "Filling long-term memory"), there)
        ends = dict(filled.walk.ends)
        if not await _catch_up(log, filling, ends):
            await _compare(fresh, filled)
        await _switch(log, fresh, filling, ends)
    except BaseException:
        await asyncio.to_thread(fresh.close)
        raise
    return filled


def _fresh(place: Installation, embedder: Embedder) -> Fresh:
    folder, name, dimension = place.home / LONG_TERM, embedder.name, embedder.dimension
    if place.servers.qdrant is None:
        return EdgeFresh(folder, embedder=name, dimension=dimension, loader=place.embedder)
    # takes half a second to load, which a collection in files should not pay
    from hearth.memory.stores.qdrant_fresh import QdrantFresh

    server = place.servers.qdrant
    terms = shared_terms(place.servers.postgres_url, server.connections)
    return QdrantFresh(server, folder, terms, embedder=name, dimension=dimension, loader=place.embedder)


async def _walk(
    log: SqlLog,
    fresh: Fresh,
    filling: Filling,
    begun: _Place,
    watch: Callable[[int, int], None],
    there: Sizes,
) -> _Place:
    at, since = begun, 0
    while at.walk.part != "done":
        walked, following = await log.walk(at.walk, limit=TOGETHER)
        items = [_indexed(one) for one in walked if is_recallable(one.record)]
        await filling.upsert(items)
        since += len(walked)
        embedded = begun.embedded + filling.embedded
        at = _Place(walk=following, records=at.records + len(items), embedded=embedded)
        if since >= KEPT_EVERY or following.part == "done":
            await filling.flush()
            await asyncio.to_thread(fresh.keep_place, msgspec.json.encode(at))
            since = 0
        watch(at.records, there.records)
    return at


def _indexed(walked: Walked) -> Indexed:
    record = as_stored(walked.record) if isinstance(walked.record, Page) else walked.record
    return index_record(record, as_stored(walked.previous) if walked.previous else None)


async def _catch_up(log: SqlLog, filling: Filling, ends: dict[int, int]) -> int:
    """Project what was appended since those ends, which it moves on; how many events.

    Others may be writing the same records into the target. Where one of them was sooner with something newer,
    that event is among the next ones here, so that when there are none left the newest stands.
    """
    projector = IndexProjector(log=log, mid_term=log, short_term=InMemoryShortTerm(), long_term=filling)
    count = 0
    for partition in range(log.partitions):
        place = Lease(consumer="replay", partition=partition, owner="", seq=ends.get(partition, 0), epoch=0)
        while events := await log.pending(place, limit=TOGETHER, kinds=projector.kinds):
            await projector.handle(events)
            place = msgspec.structs.replace(place, seq=events[-1].seq)
            count += len(events)
        ends[partition] = place.seq
    return count


async def _switch(log: SqlLog, fresh: Fresh, filling: Filling, ends: dict[int, int]) -> None:
    """Killed in here, the target is in use and not marked as filled: then a worker fills it."""
    async with alone(log, REBUILDING, owner="replay", seconds=SWITCHING_SECONDS):
        await asyncio.to_thread(fresh.hand_over)
        await _catch_up(log, filling, ends)
        await asyncio.to_thread(fresh.switch)


async def _compare(fresh: Fresh, filled: _Place) -> None:
    held = await asyncio.to_thread(fresh.held)
    if held != filled.records:
        raise StoreUnavailable(
            "long-term memory",
            f"the fresh index holds {held} of {filled.records} records: nothing was exchanged",
        )


async def _restore_short_term(log: SqlLog, short_term: ShortTerm, total: int, watch: Watch) -> int:
    """User by user in the store that is in use: each one's pages are exchanged in one step, so that whoever
    reads meanwhile finds those from before or those from after. Of whom the log knows nothing, nothing stays.
    """
    after = done = listed = 0
    while users := await log.walk_users(after=after, limit=USERS):
        for user in users:
            if user.scope.user not in (EVERYBODY, OFFICE):
                await _restore(log, short_term, user.scope)
            done += 1
            listed += user.listed
            watch("Restoring short-term memory", done, total)
        after = users[-1].place
    async for scope in short_term.people():
        if not await log.ask(partial(last, tenant=scope.tenant, user=scope.user)):
            await short_term.clear(scope.tenant, scope.user)
    return listed


async def _restore(log: SqlLog, short_term: ShortTerm, scope: Scope) -> None:
    """Until the log got nothing of the user meanwhile: what was forgotten would stand there again."""
    end, there = -1, frozenset[str]()
    while (now := await log.ask(partial(last, tenant=scope.tenant, user=scope.user))) != end:
        end, before = now, there
        generation, pages, waiting = await _latest(log, scope)
        await short_term.restore(scope, generation, pages, waiting=waiting)
        there = frozenset(page.id for page in pages)
        if gone := before - there:
            await short_term.drop(scope, sorted(gone))


async def _latest(log: SqlLog, scope: Scope) -> tuple[int, list[Page], frozenset[str]]:
    """The generation, the latest pages, and those of them that long-term memory does not have."""
    generation = await log.generation(scope.tenant, scope.user)
    pages = await log.pages(scope.tenant, scope.user, limit=PAGES)
    waiting = frozenset(await log.unindexed(scope.tenant, scope.user))
    return generation, [as_stored(page) for page in pages], waiting
