"""What an address of Redis means."""

from __future__ import annotations

import pytest
from redis.asyncio import Redis, RedisCluster

from hearth.memory.errors import BadInput
from hearth.memory.stores.redis_client import redis_client


@pytest.mark.parametrize(
    ("address", "given"),
    [
        ("redis://cache:6380/3", {"host": "cache", "port": 6380, "db": 3}),
        ("redis://bob:s%40fe@cache", {"host": "cache", "username": "bob", "password": "s@fe"}),
        ("unix:///run/redis.sock", {"path": "/run/redis.sock"}),
        ("rediss://cache?ssl_ca_certs=/ca.pem", {"host": "cache", "ssl_ca_certs": "/ca.pem"}),
    ],
)
async def test_an_address_names_a_server(address: str, given: dict[str, object]) -> None:
    """Host, port, database, user, password and what stands in the query reach the client."""
    client = redis_client(address)
    assert isinstance(client, Redis)
    known = client.connection_pool.connection_kwargs
    assert {name: known[name] for name in given} == given
    await client.aclose()


async def test_an_address_names_a_cluster() -> None:
    """One node is enough to find the others by; TLS goes for all of them."""
    client = redis_client("rediss+cluster://node:7000")
    assert isinstance(client, RedisCluster)
    (node,) = client.nodes_manager.startup_nodes.values()
    assert (node.host, node.port) == ("node", 7000)
    await client.aclose()


async def test_an_address_names_sentinels() -> None:
    """Several sentinels, their default port, service and database, and who signs in at the primary."""
    client = redis_client("redis+sentinel://bob:pw@one,two:26380/primary/2?client_name=hearth")
    assert isinstance(client, Redis)
    pool = client.connection_pool
    assert pool.service_name == "primary"  # type: ignore[attr-defined]
    given = {name: pool.connection_kwargs[name] for name in ("db", "username", "client_name")}
    assert given == {"db": 2, "username": "bob", "client_name": "hearth"}
    nodes = [s.connection_pool.connection_kwargs for s in pool.sentinel_manager.sentinels]  # type: ignore[attr-defined]
    assert [(node["host"], node["port"]) for node in nodes] == [("one", 26379), ("two", 26380)]
    await client.aclose()


@pytest.mark.parametrize(
    "address",
    [
        "http://cache",
        "redis+sentinel://one:26379",
        "redis://cache:port",
        "redis://:pw@cache?db=x",
        "redis://:pw@cache?tmieout=3",
        "redis+cluster://:pw@node?tmieout=3",
        "redis+sentinel://:pw@one/primary?tmieout=3",
    ],
)
def test_what_is_no_address_is_refused_without_its_password(address: str) -> None:
    """An address that means nothing is an error that shows no secret."""
    with pytest.raises(BadInput) as error:
        redis_client(address)
    assert "redis_url" in str(error.value)
    assert "pw" not in str(error.value)
