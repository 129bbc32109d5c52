"""A client of the gateway's flow without a network, for the suites that hold conversations with it."""

from __future__ import annotations

from typing import Any

from hearth.config.switches import Mode
from hearth.gateway.call import Call
from hearth.gateway.flow import Flow
from hearth.gateway.identity import Identity, Policy
from hearth.gateway.wire import WIRES
from hearth.gateway.wire.types import Body, Route, WireReply
from hearth.memory.types import Scope
from tests.events import ManualClock


def identity(mode: Mode = Mode.ON, **fields: Any) -> Identity:
    """Alice of acme, with memory as `mode` says."""
    given = {"budget": 1024, "budget_share": 0.1, "timezone": "UTC"} | fields
    return Identity(scope=Scope(tenant="acme", user="alice"), policy=Policy(mode=mode, **given), key="laptop")


class Talker:
    """A client that keeps its conversation and sends all of it each time, on the chat route."""

    def __init__(self, flow: Flow, clock: ManualClock, who: Identity | None = None) -> None:
        self.flow, self.clock, self.who = flow, clock, who or identity()
        self.messages: list[dict[str, Any]] = []
        self.sent: Body = {}

    async def send(
        self,
        reply: WireReply | str = "ok",
        *,
        route: Route = "chat",
        window: int = 0,
        headers: tuple[tuple[str, str], ...] = (),
        **fields: Any,
    ) -> Call:
        """Make the call with the conversation as it stands; `reply` is what the provider says."""
        call = await self.begin(route=route, window=window, headers=headers, **fields)
        await self.end(call, reply)
        return call

    async def begin(
        self,
        *,
        route: Route = "chat",
        window: int = 0,
        headers: tuple[tuple[str, str], ...] = (),
        **fields: Any,
    ) -> Call:
        """The first half of a call: what is done before it is forwarded."""
        body = {"model": "gpt", "messages": list(self.messages), **fields}
        call = Call(route=route, headers=headers, started_at=self.clock.now())
        request = WIRES[route].read_request(body)
        call.request = request
        self.sent = await self.flow.before(call, request, self.who, body, window=window)
        return call

    async def end(self, call: Call, reply: WireReply | str = "ok") -> None:
        """The second half: what is done with the provider's reply."""
        answer = WireReply(text=reply) if isinstance(reply, str) else reply
        await self.flow.after(call, answer)
        self.clock.advance(seconds=1)

    async def say(self, text: str, reply: WireReply | str = "ok", **fields: Any) -> Call:
        """Add a user message, send, and add the answer."""
        self.messages.append({"role": "user", "content": text})
        call = await self.send(reply, **fields)
        answer = reply if isinstance(reply, str) else reply.text
        self.messages.append({"role": "assistant", "content": answer})
        return call

    def prompt(self) -> str:
        """All that went upstream in the last call."""
        return "\n".join(str(message["content"]) for message in self.sent["messages"])


async def exchanges(flow: Flow) -> list[tuple[str, str, str]]:
    """(user text, reply, state) of alice's exchanges, oldest first."""
    await flow.engine.drain()
    found = await flow.engine.exchanges("acme", "alice")
    return [(one.user_text, one.reply_text, one.state) for one in reversed(found)]
