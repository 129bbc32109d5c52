"""What gateways share through a real Valkey server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import msgspec
import pytest
from redis.asyncio import Redis

from hearth.gateway.chains import BrokenChainError, ChainLink, ChainOwner, Chains
from hearth.gateway.daily import DailyTokens
from hearth.memory.encryption.stores import EncryptedShared
from hearth.memory.errors import NotFound, StoreUnavailable
from hearth.memory.recall.traces import Packed, Trace
from hearth.memory.stores.redis_client import redis_client
from hearth.memory.stores.redis_shared import RedisShared
from hearth.memory.stores.redis_short_term import Client
from hearth.memory.types import Scope
from hearth.testing.embedder import ScriptedEmbedder
from tests.api import open_engine
from tests.encrypted import keys_of_everybody
from tests.events import ManualClock

NOW = datetime.now(UTC)
ALICE = {"tenant": "acme", "user": "alice"}


@pytest.fixture(name="client")
async def _client(redis_url: str) -> AsyncIterator[Client]:
    client = redis_client(redis_url)
    yield client
    await client.aclose()


@pytest.fixture(name="shared")
def _shared(client: Client) -> RedisShared:
    return RedisShared(client, prefix=f"t{uuid4().hex}")


async def test_what_is_kept_comes_back_until_its_time(shared: RedisShared, client: Client) -> None:
    """Each thing has its own time, and the list of a user holds none that has ended."""
    await shared.keep("trace", "one", b"body" * 100, seconds=1, **ALICE)
    await shared.keep("trace", "two", b"other", seconds=1000, **ALICE)
    assert await shared.get("trace", "one") == b"body" * 100
    assert await shared.get("chain", "one") == b""
    await asyncio.sleep(1.5)
    assert (await shared.get("trace", "one"), await shared.get("trace", "two")) == (b"", b"other")
    await shared.keep("trace", "three", b"", seconds=10, **ALICE)
    assert await client.zcard(shared._listed("acme", "alice")) == 2
    keys = [key async for key in client.scan_iter(match=f"{shared._prefix}:*")]
    assert all([0 < await client.ttl(key) <= 1000 for key in keys])


async def test_what_is_kept_of_users_is_encrypted_where_the_log_is(
    shared: RedisShared, tmp_path: Path
) -> None:
    """It comes back as it was, says nothing in the server, and what is moved there does not come back."""
    async with keys_of_everybody(tmp_path) as keys:
        encrypted = EncryptedShared(shared, keys)
        await encrypted.keep("trace", "one", b"an elephant", seconds=100, **ALICE)
        await encrypted.keep("count", "two", b"nobody's", seconds=100, tenant="", user="")
        assert (await encrypted.get("trace", "one"), await encrypted.get("count", "two")) == (
            *(b"an elephant", b"nobody's"),
        )
        stored = await shared.get("trace", "one")
        assert b"elephant" not in stored
        await shared.keep("trace", "three", stored, seconds=100, **ALICE)
        assert (await encrypted.get("trace", "three"), await encrypted.get("trace", "none")) == (b"", b"")


async def test_what_is_an_erased_users_goes(shared: RedisShared) -> None:
    """All of theirs, whatever it is, and nobody else's."""
    await shared.keep("trace", "t", b"x", seconds=100, **ALICE)
    await shared.keep("chain", "c", b"x", seconds=100, **ALICE)
    await shared.keep("trace", "bobs", b"x", seconds=100, tenant="acme", user="bob")
    await shared.drop("acme", "alice")
    await shared.drop("acme", "alice")
    found = [await shared.get(*one) for one in (("trace", "t"), ("chain", "c"), ("trace", "bobs"))]
    assert found == [b"", b"", b"x"]


async def test_counts_add_up(shared: RedisShared) -> None:
    """Many that add at once lose nothing, and a counter can be read by adding nothing."""
    await asyncio.gather(*(shared.add("n", 3, seconds=100) for _ in range(20)))
    assert await shared.add("n", 0, seconds=100) == 60


async def test_a_server_that_is_down_is_an_unavailable_store() -> None:
    """The client library's errors stay inside."""
    async with Redis(port=1) as nowhere:
        shared = RedisShared(nowhere)
        for work in (shared.get("a", "b"), shared.drop("a", "b"), shared.add("n", 1, seconds=1)):
            with pytest.raises(StoreUnavailable):
                await work


# -- who uses it --------------------------------------------------------------------------------------------


async def test_a_recall_is_explained_by_another_gateway(
    shared: RedisShared, tmp_path: Path, clock: ManualClock
) -> None:
    """To its own user alone, and no more once they are erased."""
    trace = Trace(
        id="one",
        scope=Scope(tenant="acme", user="alice", session="s"),
        at=clock.now(),
        status="ok",
        reasons=(),
        milliseconds=1.5,
        tokens=12,
        packed=Packed(ids="a b", verdicts=("in", "below floor"), names=("cosine",), numbers=b"\0" * 32),
    )
    await shared.keep("trace", "one", msgspec.msgpack.encode(trace), seconds=100, **ALICE)
    async with open_engine(tmp_path, clock, ScriptedEmbedder(), shared=shared) as engine:
        assert await engine.trace("acme", "alice", "one") == trace
        for tenant, user in (("acme", "bob"), ("umbrella", "alice")):
            with pytest.raises(NotFound):
                await engine.trace(tenant, user, "one")
        recall = await engine.recall(Scope(tenant="acme", user="alice"), "Anything?")
        await engine.drain()
        assert await shared.get("trace", recall.trace)
        await engine.erase("acme", "alice")
        assert await shared.get("trace", recall.trace) == b""
        with pytest.raises(NotFound):
            await engine.trace("acme", "alice", "one")


async def test_a_chain_of_responses_goes_on_at_another_gateway(shared: RedisShared) -> None:
    """The one that did not answer its turns has them all the same, for their owner."""
    owner = ChainOwner(key="app", generation=1, **ALICE)
    here, there = Chains(shared=shared), Chains(shared=shared)
    raw = (
        b'{"id":"%s","object":"response","status":"completed","output":[{"type":"message","role":"assistant",'
    )
    raw += b'"content":[{"type":"output_text","text":"Hello."}]}]}'
    asked = [{"role": "user", "content": "Hi"}]
    await here.keep(ChainLink(owner=owner, previous="", items=asked), raw % b"r1")
    await there.keep(ChainLink(owner=owner, previous="r1", items=asked), raw % b"r2")
    fresh = Chains(shared=shared)
    assert [item["role"] for item in await fresh.before(owner, "r2")] == ["user", "assistant"] * 2
    with pytest.raises(BrokenChainError):
        await fresh.before(ChainOwner(key="other", generation=1, **ALICE), "r2")
    with pytest.raises(BrokenChainError):
        await Chains().before(owner, "r2")


async def test_a_chain_goes_on_in_its_process_while_the_server_is_down() -> None:
    """What can't be shared is held here."""
    async with Redis(port=1) as nowhere:
        chains = Chains(shared=RedisShared(nowhere))
        owner = ChainOwner(key="app", generation=1, **ALICE)
        raw = b'{"id":"r1","object":"response","status":"completed","output":[]}'
        await chains.keep(ChainLink(owner=owner, previous="", items=[{"role": "user"}]), raw)
        assert await chains.before(owner, "r1") == [{"role": "user"}]


async def test_the_days_tokens_are_those_of_all_gateways(shared: RedisShared) -> None:
    """What one spent the other one has no more, and a new day begins with none."""
    here, there = DailyTokens(shared), DailyTokens(shared)
    here.spend("app", 600, NOW)
    assert there.left("app", 1000, NOW)
    there.spend("app", 500, NOW)
    assert there.left("app", 1000, NOW)
    for one in (here, there, here):
        await one.exchange()
    assert not here.left("app", 1000, NOW)
    assert not there.left("app", 1000, NOW)
    here.spend("app", -600, NOW)  # a block that a provider refused
    for one in (here, there):
        await one.exchange()
    assert there.left("app", 1000, NOW)
    tomorrow = NOW.replace(year=NOW.year + 1)
    assert here.left("app", 1, tomorrow)
