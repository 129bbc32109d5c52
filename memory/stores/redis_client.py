"""Opens a client of Redis or Valkey by its address: one server, a cluster, or one that Sentinel names."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote, urlsplit

from redis.asyncio import BlockingConnectionPool, Redis, RedisCluster, Sentinel
from redis.asyncio.connection import parse_url
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from hearth.memory.addresses import without_secrets
from hearth.memory.errors import BadInput
from hearth.memory.stores.redis_short_term import Client

SCHEMES = ("redis", "rediss", "unix", "redis+cluster", "rediss+cluster", "redis+sentinel", "rediss+sentinel")
CONNECT_SECONDS = 1.0
ANSWER_SECONDS = 2.0
"""Far above any deadline of a call: what a request no longer waits for is still given up in the end."""
CONNECTIONS = 64
"""Of one process at most; one more call waits `WAIT_SECONDS` for a free one and then goes without."""
WAIT_SECONDS = 0.2
SENTINEL_PORT = 26379


def redis_client(address: str) -> Client:
    """A client for `address`, not connected yet; close it with `aclose`.

    `redis://[user:password@]host[:port][/db]`, `rediss://` with TLS, `unix://path`;
    `redis+cluster://host[:port]` for a cluster, of which one node is enough;
    `redis+sentinel://[user:password@]host[:port][,host…]/service[/db]` for a primary that Sentinel knows.
    What an address allows in its query goes to the client (`?ssl_ca_certs=…`). Raises BadInput.
    """
    scheme = urlsplit(address).scheme
    if scheme not in SCHEMES:
        raise BadInput("redis_url", without_secrets(address), f"an address that begins with one of {SCHEMES}")
    plain = address.replace("+cluster", "").replace("+sentinel", "")
    try:
        if scheme.endswith("+cluster"):
            return RedisCluster.from_url(plain, max_connections=CONNECTIONS, **_times())
        if scheme.endswith("+sentinel"):
            return _sentinel(plain)
        pool = BlockingConnectionPool.from_url(
            plain, max_connections=CONNECTIONS, timeout=WAIT_SECONDS, **_times()
        )
        # Does not connect, but complains of a parameter that there is not.
        pool.make_connection()  # type: ignore[no-untyped-call]
    except (ValueError, TypeError) as error:
        raise BadInput("redis_url", without_secrets(address), _expected(error)) from error
    return Redis.from_pool(pool)


def _expected(error: Exception) -> str:
    if isinstance(error, TypeError):
        return f"parameters that the client has ({str(error).partition(' ')[2]})"
    return f"an address that the client can read ({error})"


def _sentinel(address: str) -> Redis:
    parts = urlsplit(address)
    named, _, hosts = parts.netloc.rpartition("@")
    service, _, database = parts.path.strip("/").partition("/")
    if not service:
        raise ValueError("the name of the service that Sentinel knows is missing: …/service")
    user, _, password = named.partition(":")
    given: dict[str, Any] = {"username": unquote(user) or None, "password": unquote(password) or None}
    given |= {"ssl": True} if parts.scheme == "rediss" else {}
    given |= parse_url(f"redis://?{parts.query}")
    nodes = [_node(host) for host in hosts.split(",")]
    sentinel = Sentinel(nodes, sentinel_kwargs=_times(), **given, **_times())  # type: ignore[no-untyped-call]
    found: Redis = sentinel.master_for(service, db=int(database or 0))
    found.connection_pool.make_connection()  # type: ignore[no-untyped-call]
    return found


def _node(host: str) -> tuple[str, int]:
    name, _, port = host.rpartition(":") if ":" in host else (host, "", "")
    return name, int(port or SENTINEL_PORT)


def _times() -> dict[str, Any]:
    # One more try at once, for a connection that the server closed while it lay idle.
    return {
        "socket_connect_timeout": CONNECT_SECONDS,
        "socket_timeout": ANSWER_SECONDS,
        "retry": Retry(NoBackoff(), 1),
        "health_check_interval": 30,
    }
