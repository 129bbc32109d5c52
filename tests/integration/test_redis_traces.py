"""Explanations of recalls in a real Valkey server, shared by gateways."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import msgspec
import pytest
from redis.asyncio import Redis

from hearth.memory.errors import StoreUnavailable
from hearth.memory.recall.traces import Packed, Trace
from hearth.memory.stores.redis_client import redis_client
from hearth.memory.stores.redis_short_term import Client
from hearth.memory.stores.redis_traces import KEEP, RedisTraces
from hearth.memory.types import Scope

NOW = datetime.now(UTC)


@pytest.fixture(name="client")
async def _client(redis_url: str) -> AsyncIterator[Client]:
    client = redis_client(redis_url)
    yield client
    await client.aclose()


@pytest.fixture(name="traces")
def _traces(client: Client) -> RedisTraces:
    return RedisTraces(client, prefix=f"t{uuid4().hex}")


def trace(id: str, *, user: str = "alice", at: datetime = NOW) -> Trace:
    return Trace(
        id=id,
        scope=Scope(tenant="acme", user=user, session="s"),
        at=at,
        status="ok",
        reasons=(),
        milliseconds=1.5,
        tokens=12,
        packed=Packed(ids="a b", verdicts=("in", "below floor"), names=("cosine",), numbers=b"\0" * 32),
    )


async def test_a_trace_comes_back_whole_to_its_user_alone(traces: RedisTraces) -> None:
    """Whoever else asks for it gets none, in any tenant."""
    one = trace("one")
    await traces.keep(one)
    assert await traces.get("acme", "alice", "one") == one
    assert await traces.get("acme", "bob", "one") is None
    assert await traces.get("umbrella", "alice", "one") is None
    assert await traces.get("acme", "alice", "two") is None


async def test_an_erased_users_traces_are_gone(traces: RedisTraces) -> None:
    """All of theirs, and nobody else's."""
    for number in range(3):
        await traces.keep(trace(f"{number}"))
    await traces.keep(trace("hers", user="bob"))
    await traces.drop("acme", "alice")
    assert [await traces.get("acme", "alice", f"{number}") for number in range(3)] == [None] * 3
    assert await traces.get("acme", "bob", "hers") is not None


async def test_traces_leave_by_themselves(traces: RedisTraces, client: Client) -> None:
    """Each key has its time, and the list of a user holds none that are past it."""
    await traces.keep(trace("old", at=NOW - KEEP - timedelta(seconds=1)))
    await traces.keep(trace("new"))
    keys = [key async for key in client.scan_iter(match=f"{traces._prefix}:*")]
    assert len(keys) == 3
    assert all([0 < await client.ttl(key) <= KEEP.total_seconds() for key in keys])
    assert await client.zrange(traces._listed(trace("new").scope), 0, -1) == [b"new"]


async def test_a_server_that_is_down_is_an_unavailable_store() -> None:
    """The client library's errors stay inside."""
    async with Redis(port=1) as nowhere:
        traces = RedisTraces(nowhere)
        with pytest.raises(StoreUnavailable):
            await traces.keep(trace("one"))
        with pytest.raises(StoreUnavailable):
            await traces.get("acme", "alice", "one")


def test_a_trace_survives_its_stored_form() -> None:
    """MessagePack gives it back equal."""
    encoded = msgspec.msgpack.encode(trace("one"))
    assert msgspec.msgpack.decode(encoded, type=Trace) == trace("one")
