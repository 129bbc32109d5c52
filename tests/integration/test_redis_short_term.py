"""Short-term memory in a real Valkey server: many writers, round trips, a cluster, a server that is gone."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Awaitable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from redis import Redis as BlockingRedis
from redis.asyncio import Redis, RedisCluster
from redis.exceptions import NoPermissionError

from hearth.memory.errors import StoreUnavailable
from hearth.memory.stores.redis_client import redis_client
from hearth.memory.stores.redis_short_term import RedisShortTerm
from hearth.memory.types import Embedding, Scope
from tests.servers import free_port, valkey
from tests.short_term import ALICE, block, page

ROOT = Path(__file__).parents[2]
EAST = Embedding("e", [1.0])


@pytest.fixture(name="client")
async def _client(redis_url: str) -> AsyncIterator[Redis]:
    async with Redis.from_url(redis_url) as client:
        yield client


@pytest.fixture(scope="module", name="cluster_port")
def _cluster_port() -> Iterator[int]:
    """A cluster of one node that has every slot: commands across slots are refused there all the same."""
    # Its nodes' port would be 10,000 above its own, which may be no port.
    options = {"cluster-enabled": "yes", "cluster-port": str(free_port())}
    with valkey(**options) as server:
        with BlockingRedis(port=server.port) as node:
            node.execute_command("CLUSTER ADDSLOTSRANGE", 0, 16383)
            while node.cluster("INFO")["cluster_state"] != "ok":
                time.sleep(0.02)
        yield server.port


async def test_writers_at_once_lose_nothing(redis_url: str) -> None:
    """Sixty pages and blocks of one user, pushed and settled by two gateways at once, all arrive."""
    prefix = uuid4().hex
    async with Redis.from_url(redis_url) as one, Redis.from_url(redis_url) as other:
        stores = [RedisShortTerm(client, prefix=prefix, capacity=60) for client in (one, other)]
        pushes = [stores[n % 2].push(page(n), vector=EAST, block=block(n)) for n in range(60)]
        settles = [stores[n % 2].settle(ALICE, [page(n)]) for n in range(0, 60, 3)]
        await asyncio.gather(*pushes, *settles)
        view = await stores[0].latest(ALICE, limit=100)
    assert [held.user_text for held in view.pages] == [f"t{n}" for n in range(60)]
    assert len(view.vectors) == 60
    assert len(view.blocks) == 50


class Counting:
    """Counts the commands that a client sends."""

    def __init__(self, client: Redis) -> None:
        self.sent = 0
        self._send = client.execute_command
        client.execute_command = self._counted  # type: ignore[method-assign]

    async def _counted(self, *words: Any, **options: Any) -> Any:
        self.sent += 1
        return await self._send(*words, **options)

    async def of(self, work: Awaitable[object]) -> int:
        """Commands sent for `work`."""
        before = self.sent
        await work
        return self.sent - before


async def test_a_read_is_one_round_trip_and_a_change_two_whatever_is_held(client: Redis) -> None:
    """A user with many pages and sessions costs as many commands as one with a single page."""
    store, counting = RedisShortTerm(client, prefix=uuid4().hex), Counting(client)
    assert await counting.of(store.latest(ALICE, limit=20)) == 1
    assert await counting.of(store.push(page(0), vector=None, block=None)) == 2
    for n in range(1, 40):
        scope = Scope(tenant="acme", user="alice", session=f"s{n}")
        await store.push(page(n, scope=scope), vector=EAST, block=block(n))
    assert await counting.of(store.latest(ALICE, limit=20)) == 1
    assert await counting.of(store.push(page(40), vector=None, block=block(40))) == 2
    assert await counting.of(store.settle(ALICE, [page(n) for n in range(40)])) == 2


async def test_a_server_that_refuses_is_told_from_one_that_is_away(redis_url: str) -> None:
    """A database's number or a password that it does not take: health says that it refuses."""
    for address in (f"{redis_url.rpartition('/')[0]}/99", redis_url.replace("//", "//nobody:wrong@")):
        client = redis_client(address)
        with pytest.raises(StoreUnavailable) as refused:
            await RedisShortTerm(client, prefix=uuid4().hex).latest(ALICE, limit=1)
        assert refused.value.refused
        await client.aclose()
    gone = redis_client(f"redis://127.0.0.1:{free_port()}")
    with pytest.raises(StoreUnavailable) as away:
        await RedisShortTerm(gone, prefix=uuid4().hex).latest(ALICE, limit=1)
    assert not away.value.refused
    await gone.aclose()


async def test_a_cluster_takes_every_change(cluster_port: int) -> None:
    """All keys of a user are in one slot, so that a cluster takes pushes, settlements, drops and clears."""
    async with RedisCluster(host="127.0.0.1", port=cluster_port) as client:
        store = RedisShortTerm(client, capacity=2)
        for n in range(4):
            await store.push(page(n), vector=EAST, block=block(n))
        await store.settle(ALICE, [page(n) for n in range(4)])
        assert [held.user_text for held in (await store.latest(ALICE, limit=9)).pages] == ["t2", "t3"]
        await store.drop(ALICE, [page(3).id])
        assert [one.text for one in (await store.latest(ALICE, limit=9)).blocks] == [
            "block 0",
            "block 1",
            "block 2",
        ]
        await store.clear("acme", "alice", before=2)
        view = await store.latest(ALICE, limit=9)
    assert (view.pages, view.blocks) == ((), ())


async def test_every_key_of_a_user_leaves_in_the_end(client: Redis) -> None:
    """Each key has a time to live, so that who never comes back fills no memory for ever."""
    prefix = uuid4().hex
    store = RedisShortTerm(client, prefix=prefix)
    await store.push(page(1), vector=EAST, block=block(1))
    keys = [key async for key in client.scan_iter(match=f"{prefix}:*")]
    assert len(keys) == 5
    assert all([await client.ttl(key) > 0 for key in keys])


async def test_a_cleared_user_leaves_no_text(client: Redis) -> None:
    """After an erasure the user's only key says which generation counts, and no word."""
    prefix = uuid4().hex
    store = RedisShortTerm(client, prefix=prefix)
    await store.push(page(1), vector=EAST, block=block(1))
    await store.clear("acme", "alice", before=2)
    assert [key async for key in client.scan_iter(match=f"{prefix}:*")] == [
        f"{prefix}:{{acme/alice}}:state".encode()
    ]
    assert b"t1" not in (await client.hget(f"{prefix}:{{acme/alice}}:state", "user") or b"")


async def test_a_server_that_is_gone_is_unavailable() -> None:
    """Every call on a stopped server says which part is missing."""
    with valkey() as server:
        url = f"redis://127.0.0.1:{server.port}/0"
    async with Redis.from_url(url, socket_connect_timeout=1, retry=None) as client:
        store = RedisShortTerm(client)
        for call in (
            store.latest(ALICE, limit=1),
            store.push(page(1), vector=None, block=None),
            store.settle(ALICE, [page(1)]),
            store.drop(ALICE, ["a"]),
            store.clear("acme", "alice"),
        ):
            with pytest.raises(StoreUnavailable, match="short-term memory"):
                await call


async def test_the_rights_that_the_docs_name_are_enough(redis_url: str) -> None:
    """A user of Redis with the rights of docs/operate.md does every call, and reaches no other keys."""
    rights = re.findall(r"`(~hearth:\* [^`]*)`", (ROOT / "docs" / "operate.md").read_text())
    assert len(rights) == 1
    with BlockingRedis.from_url(redis_url) as admin:
        admin.execute_command("ACL SETUSER", "limited", "on", ">pw", *rights[0].split())
    client = redis_client(redis_url.replace("//", "//limited:pw@"))
    store = RedisShortTerm(client)
    await store.push(page(1), vector=EAST, block=block(1))
    await store.settle(ALICE, [page(1)])
    assert len((await store.latest(ALICE, limit=1)).pages) == 1
    await store.drop(ALICE, [page(1).id])
    await store.clear("acme", "alice", before=2)
    with pytest.raises(NoPermissionError):
        await client.set("other", "1")
    await client.aclose()
