"""What gateways tell each other by Redis or Valkey: small things for a while, and counts."""

from __future__ import annotations

from typing import Any

import zstandard

from hearth.memory.stores.redis_short_term import Client, translated
from hearth.memory.types import Scope


class RedisShared:
    """See `Shared`. A user's are listed under one key, by which an erasure finds them."""

    def __init__(self, client: Client, *, prefix: str = "hearth") -> None:
        self._client = client
        self._prefix = prefix

    async def keep(self, kind: str, id: str, body: bytes, *, seconds: int, tenant: str, user: str) -> None:
        """See `Shared.keep`. Two round trips."""
        key, listed = self._key(kind, id), self._listed(tenant, user)
        with translated():
            await self._client.set(key, zstandard.compress(body), ex=seconds)
            await self._client.eval(_LIST, 1, listed, key, seconds)

    async def get(self, kind: str, id: str) -> bytes:
        """See `Shared.get`."""
        with translated():
            body: Any = await self._client.get(self._key(kind, id))
        return zstandard.decompress(body) if body else b""

    async def drop(self, tenant: str, user: str) -> None:
        """See `Shared.drop`."""
        listed = self._listed(tenant, user)
        with translated():
            keys: Any = await self._client.zrange(listed, 0, -1)
            for key in (*keys, listed):  # each in a slot of its own
                await self._client.delete(key)

    async def add(self, counter: str, amount: int, *, seconds: int) -> int:
        """See `Shared.add`."""
        key = self._key("count", counter)
        with translated():
            total: Any = await self._client.eval(_ADD, 1, key, amount, seconds)
        return int(total)

    def _key(self, kind: str, id: str) -> str:
        return f"{self._prefix}:{kind}:{id}"

    def _listed(self, tenant: str, user: str) -> str:
        return f"{self._prefix}:{{{Scope(tenant=tenant, user=user).person}}}:shared"


_LIST = """
local now = tonumber(redis.call('TIME')[1])
redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
redis.call('EXPIRE', KEYS[1], math.max(ARGV[2], redis.call('TTL', KEYS[1])))
"""
"""List a key until its end, and no longer those that have ended."""

_ADD = """
local total = redis.call('INCRBY', KEYS[1], ARGV[1])
redis.call('EXPIRE', KEYS[1], ARGV[2])
return total
"""
