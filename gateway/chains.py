"""Conversations that go on by `previous_response_id` at a backend that keeps none itself.

LiteLLM translates such a call to chat and looks for the earlier turns in its database. Where it has none it
forwards the new input alone, and the conversation is lost without a word. So the turns are held here, word
for word with images and tool calls, in this process's memory: a chain that isn't whole is refused, never cut.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from hearth.gateway.wire.responses import answered
from hearth.gateway.wire.types import Body
from hearth.memory import metrics
from hearth.memory.errors import HearthError
from hearth.memory.ports import Shared

logger = logging.getLogger(__name__)

MAX_BYTES = 64 * 2**20
"""Of all held turns together, as JSON; the ones that were longest without use go first."""

KIND = "chain"
KEPT_SECONDS = 24 * 3600
"""How long another process can go on with a chain after its last turn."""
SHARED_SECONDS = 0.150
"""How long a shared turn is waited for."""

Items = list[dict[str, Any]]


class ChainOwner(msgspec.Struct, frozen=True, kw_only=True):
    """Who may go on with a chain: the same key, and the same user where memory knows one."""

    key: str
    tenant: str = ""
    user: str = ""
    generation: int = 0
    """The user's, so that an erasure ends the chain; 0 where memory is off."""

    def may_continue(self, other: ChainOwner) -> bool:
        """Whether a chain of `other` may be continued by this owner."""
        if self.key != other.key:
            return False
        known = self.generation and other.generation
        return not known or (self.user, self.generation) == (other.user, other.generation)


class ChainLink(msgspec.Struct, frozen=True, kw_only=True):
    """A request whose reply may be continued."""

    owner: ChainOwner
    previous: str
    """`previous_response_id`; empty at a chain's start."""
    items: Items
    """Its own input, as forwarded, without the turns before it."""


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(ChainLink).decode


class BrokenChainError(Exception):
    """The turns before `previous_response_id` are not known, and the model's backend does not keep them."""

    def __init__(self, response_id: str) -> None:
        super().__init__(
            f"previous_response_id {response_id[:80]!r} can't be continued: the backend of this model keeps "
            "no conversations, and the gateway does not hold this one any more. Send the whole conversation "
            "in `input`, or give LiteLLM a database (general_settings.database_url), which keeps it."
        )


class Chains:
    """The turns of all chains by the id of their reply."""

    def __init__(self, max_bytes: int = MAX_BYTES, *, shared: Shared | None = None) -> None:
        """`shared` lets another process go on with a chain."""
        self._shared = shared
        self._links: OrderedDict[str, tuple[ChainLink, int]] = OrderedDict()
        self._bytes, self._most = 0, max_bytes

    async def before(self, owner: ChainOwner, response_id: str) -> Items:
        """All items of a chain up to and with the reply `response_id`. Raises BrokenChainError."""
        links: list[ChainLink] = []
        current = response_id
        while current:
            link = self._held(current) or await self._held_elsewhere(current)
            if link is None or not owner.may_continue(link.owner):
                raise BrokenChainError(response_id)
            links.append(link)
            current = link.previous
        return [item for link in reversed(links) for item in link.items]

    def _held(self, response_id: str) -> ChainLink | None:
        held = self._links.get(response_id)
        if held is None:
            return None
        self._links.move_to_end(response_id)
        return held[0]

    async def _held_elsewhere(self, response_id: str) -> ChainLink | None:
        if self._shared is None:
            return None
        try:
            async with asyncio.timeout(SHARED_SECONDS):
                body = await self._shared.get(KIND, response_id)
        except (HearthError, TimeoutError) as error:
            logger.warning("a chain of responses could not be looked for: %s", error or "it took too long")
            metrics.FAILURES.labels("chains.get").inc()
            return None
        return _decode(body) if body else None

    async def keep(self, link: ChainLink, raw: bytes) -> None:
        """Hold an answered turn; `raw` is the reply's body. From a reply that did not end nothing goes on.

        Never raises: where the turn could not be shared, this process alone goes on with it.
        """
        response_id, output = answered(raw)
        if not response_id:
            return
        link = msgspec.structs.replace(link, items=[*link.items, *output])
        size = len(msgspec.json.encode(link.items))
        self._forget(response_id)
        self._links[response_id] = link, size
        self._bytes += size
        while self._bytes > self._most:
            self._forget(next(iter(self._links)))
        if self._shared is not None and size <= self._most:
            await self._share(self._shared, response_id, link)

    async def _share(self, shared: Shared, response_id: str, link: ChainLink) -> None:
        whose = {"tenant": link.owner.tenant, "user": link.owner.user}
        try:
            async with asyncio.timeout(SHARED_SECONDS):
                await shared.keep(KIND, response_id, _encode(link), seconds=KEPT_SECONDS, **whose)
        except (HearthError, TimeoutError) as error:
            logger.warning(
                "a chain of responses is known to this process alone: %s", error or "it took too long"
            )
            metrics.FAILURES.labels("chains.keep").inc()

    def drop(self, tenant: str, user: str | None = None) -> None:
        """Forget all chains of a user who is erased, or of all of a tenant's."""
        owned = [
            name
            for name, (link, _) in self._links.items()
            if link.owner.tenant == tenant and user in (None, link.owner.user)
        ]
        for name in owned:
            self._forget(name)

    def _forget(self, response_id: str) -> None:
        _, size = self._links.pop(response_id, (None, 0))
        self._bytes -= size


def translated(deployments: Iterable[Mapping[str, Any]]) -> bool:
    """True if LiteLLM would look for a chain in a database that it doesn't have.

    So it is where it translates for every one of the deployments. In a group that mixes both kinds LiteLLM
    sends a chain's next turn to the deployment that began it.
    """
    from litellm.proxy.proxy_server import prisma_client
    from litellm.responses.main import provider_stores_the_conversation

    params = [deployment.get("litellm_params") or {} for deployment in deployments]
    if prisma_client is not None or not params:
        return False
    return not any(
        provider_stores_the_conversation(str(one.get("model", "")), one.get("custom_llm_provider"), one)
        for one in params
    )


def items_of(given: object) -> Items:
    """A request's `input` as items; a string is one user message."""
    if isinstance(given, str):
        return [{"role": "user", "content": given}] if given else []
    return list(given) if isinstance(given, list) else []


def continued(body: Body, earlier: Items) -> Body:
    """The body with the turns before it in its own input, so that the backend sees the whole conversation."""
    return {**body, "input": [*earlier, *items_of(body.get("input"))]}
