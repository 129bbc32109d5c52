"""Explanations of recalls in Redis or Valkey, so that any gateway can give what another one computed."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import zstandard

from hearth.memory.recall.traces import Trace
from hearth.memory.stores.redis_short_term import Client, translated
from hearth.memory.types import Scope

KEEP = timedelta(hours=1)
"""Shorter than in a process's own memory: a thousand calls a second fill 10 GB in that time."""

_SECONDS = int(KEEP.total_seconds())
_DECODE = msgspec.msgpack.Decoder(Trace).decode
_encode = msgspec.msgpack.Encoder().encode


class RedisTraces:
    """See `SharedTraces`. One key a trace, and one a user that lists theirs, all in one slot of a cluster."""

    def __init__(self, client: Client, *, prefix: str = "hearth") -> None:
        self._client = client
        self._prefix = prefix

    async def keep(self, trace: Trace) -> None:
        """See `SharedTraces.keep`. One round trip."""
        listed = self._listed(trace.scope)
        at = trace.at.timestamp()
        with translated():
            async with self._client.pipeline(transaction=False) as pipe:
                pipe.set(self._key(trace.scope, trace.id), zstandard.compress(_encode(trace)), ex=_SECONDS)
                pipe.zadd(listed, {trace.id: at})
                pipe.zremrangebyscore(listed, "-inf", at - _SECONDS)
                pipe.expire(listed, _SECONDS)
                await pipe.execute()

    async def get(self, tenant: str, user: str, trace: str) -> Trace | None:
        """See `SharedTraces.get`."""
        with translated():
            body: Any = await self._client.get(self._key(Scope(tenant=tenant, user=user), trace))
        return _DECODE(zstandard.decompress(body)) if body else None

    async def drop(self, tenant: str, user: str) -> None:
        """See `SharedTraces.drop`."""
        scope = Scope(tenant=tenant, user=user)
        listed = self._listed(scope)
        with translated():
            ids: Any = await self._client.zrange(listed, 0, -1)
            await self._client.delete(listed, *(self._key(scope, id.decode()) for id in ids))

    def _listed(self, scope: Scope) -> str:
        return f"{self._prefix}:{{{scope.person}}}:traces"

    def _key(self, scope: Scope, trace: str) -> str:
        return f"{self._listed(scope)}:{trace}"
