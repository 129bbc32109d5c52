"""The outer ASGI app: tees each model call's bytes, and keeps a reply's end back until it is written down."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import TypeAlias

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hearth.gateway.call import CALL, Call, response_headers
from hearth.gateway.flow import Flow
from hearth.gateway.runtime import Gateway
from hearth.gateway.token_count import CountReply, is_token_count
from hearth.gateway.wire import WIRES, route_of
from hearth.gateway.wire.refusal import is_no_object, refusal
from hearth.gateway.wire.sse import Gate
from hearth.gateway.wire.surrogates import without_lone_surrogates
from hearth.gateway.wire.types import Wire
from hearth.memory import metrics

logger = logging.getLogger(__name__)

MEGABYTE = 1_000_000

Headroom: TypeAlias = Callable[[Request, Call], Awaitable[int]]
"""Most tokens that memory would add to the prompt of a call that asks for their number."""

REFUSALS = (
    b"context_length",
    b"context length",
    b"prompt is too long",
    b"content_filter",
    b"content filter",
    b"content_policy",
    b"content management policy",
)
"""Marks of a provider's refusal that a block may have caused, in the body of a 400 or 413."""


class Edge:
    """Wraps the composed app. The four text routes are remembered, everything else passes through."""

    def __init__(
        self,
        app: ASGIApp,
        running: Callable[[], Gateway],
        headroom: Headroom,
        *,
        most_bytes: int = 128 * MEGABYTE,
    ) -> None:
        """`most_bytes`: of the body of a model call; a larger one is refused with 413."""
        self._most_bytes = most_bytes
        self._app = app
        self._running = running
        self._headroom = headroom

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "http" or scope["method"] != "POST" or scope["path"].startswith("/memory/"):
            await self._app(scope, receive, send)
            return
        route = route_of(scope["path"])
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]
        call = Call(route=route, headers=headers, started_at=datetime.now(UTC), at_edge=True)
        if is_token_count(scope["path"]):
            await self._count(scope, receive, send, call)
            return
        if route is None:
            await self._app(scope, receive, _PassedThrough(call, send))
            return
        await self._serve(scope, receive, send, call, WIRES[route])

    async def _count(self, scope: Scope, receive: Receive, send: Send, call: Call) -> None:
        call.off("refused")
        tee = _RequestTee(receive, call)
        if not await tee.read(self._most_bytes):
            await self._refuse_size(call, WIRES["messages"], send)
            return

        async def added() -> int:
            return await self._headroom(Request(scope), call)

        await self._app(dict(scope), tee.receive, CountReply(call, added, send).send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send, call: Call, wire: Wire) -> None:
        tee = _RequestTee(receive, call)
        if not await tee.read(self._most_bytes):
            await self._refuse_size(call, wire, send)
            return
        if is_no_object(call.raw_body, call.headers):
            await _refuse(call, wire, send, 400, "The request body is no JSON object.")
            return
        reply = _ReplyTee(call, wire, self._running().flow, send)
        CALL.set(call)
        try:
            await self._app(dict(scope), tee.receive, reply.send)
            if reply.refused:
                logger.info("the provider refused a prompt with a block; trying once without")
                metrics.FAILURES.labels("refused_with_block").inc()
                call.without_block = True
                tee.rewind()
                await self._app(dict(scope), tee.receive, reply.again())
        finally:
            await reply.finish()

    async def _refuse_size(self, call: Call, wire: Wire, send: Send) -> None:
        most = f"{self._most_bytes / MEGABYTE:g} MB (`hearth.max_request_mb`)"
        await _refuse(call, wire, send, 413, f"The request body is larger than {most}.")


class _PassedThrough:
    """Marks the reply of a route that has no memory."""

    def __init__(self, call: Call, send: Send) -> None:
        self._call, self._send = call, send

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            _add_headers(message, self._call)
        await self._send(message)


async def _refuse(call: Call, wire: Wire, send: Send, status: int, message: str) -> None:
    """Answer what LiteLLM would answer with a 500 and pages of traceback, or not before all of it is read."""
    body = refusal(wire.route, message, status)
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    if status == 413:
        headers.append((b"connection", b"close"))  # the rest of the body is not waited for
    start: Message = {"type": "http.response.start", "status": status, "headers": headers}
    _add_headers(start, call)
    await send(start)
    await send({"type": "http.response.body", "body": body})


class _RequestTee:
    """Reads the request's body and gives it to the app, in one piece, as often as it is tried."""

    def __init__(self, receive: Receive, call: Call) -> None:
        self._receive, self._call = receive, call
        self._next: Message | None = None

    async def read(self, most: int) -> bool:
        """Take the whole body in; False where it is larger than `most` bytes, by what it says or has.

        A client that hangs up before its end is left to the app.
        """
        declared = next((value for name, value in self._call.headers if name.lower() == "content-length"), "")
        if declared.isdecimal() and int(declared) > most:
            return False
        parts: list[bytes] = []
        size = 0
        message = await self._receive()
        while message["type"] == "http.request":
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > most:
                return False
            if not message.get("more_body", False):
                self._call.raw_body = without_lone_surrogates(b"".join(parts))
                self.rewind()
                return True
            message = await self._receive()
        self._next = message
        return True

    def rewind(self) -> None:
        """Let the body be received again."""
        self._next = {"type": "http.request", "body": self._call.raw_body, "more_body": False}

    async def receive(self) -> Message:
        """The app's `receive`."""
        given, self._next = self._next, None
        return given if given is not None else await self._receive()


class _ReplyTee:
    """Passes a reply's bytes on at once, but its end only after the exchange is written down."""

    def __init__(self, call: Call, wire: Wire, flow: Flow, send: Send) -> None:
        self._call, self._wire, self._flow, self._send = call, wire, flow, send
        self._status = 0
        self._stream = False
        self._raw: list[bytes] = []
        self._held: Message | None = None
        self._gate = Gate(wire.terminal)
        self.refused = False

    def again(self) -> Send:
        """Forget the refused reply; the second one takes its place."""
        self.refused, self._held, self._raw = False, None, []
        self._gate = Gate(self._wire.terminal)
        return self.send

    async def send(self, message: Message) -> None:
        """The app's `send`."""
        if message["type"] == "http.response.start":
            await self._start(message)
        elif message["type"] == "http.response.body" and not self.refused:
            await self._body(message)
        elif not self.refused:
            await self._send(message)

    async def finish(self) -> None:
        """The app is done, or was cancelled: write down what came, if that has not happened yet."""
        if self._status and not self._call.captured and not self.refused:
            await self._capture()

    async def _start(self, message: Message) -> None:
        self._status = message["status"]
        self._stream = any(
            name.lower() == b"content-type" and b"event-stream" in value for name, value in message["headers"]
        )
        if self._status == 401 and self._call.request is None:
            self._call.off("identity")
        _add_headers(message, self._call)
        if self._may_be_refused():
            self._held = message
        else:
            await self._send(message)

    async def _body(self, message: Message) -> None:
        body, more = message.get("body", b""), message.get("more_body", False)
        self._raw.append(body)
        if self._held is not None and not await self._release(body, more=more):
            return
        if self._call.captured:
            await self._send(message)
        elif self._stream:
            await self._stream_body(message, body, more=more)
        else:
            if not more:
                await self._capture()
            await self._send(message)

    async def _stream_body(self, message: Message, body: bytes, *, more: bool) -> None:
        if passing := self._gate.feed(body):
            await self._send({"type": "http.response.body", "body": passing, "more_body": True})
        if self._gate.complete or not more:
            await self._capture()
            await self._send({**message, "body": self._gate.held})

    async def _release(self, body: bytes, *, more: bool) -> bool:
        """Decide on a held error reply by its body; False if it must not go out."""
        if any(mark in body.lower() for mark in REFUSALS):
            self.refused = True
            return False
        held, self._held = self._held, None
        if held is not None:
            await self._send(held)
        return True

    def _may_be_refused(self) -> bool:
        return self._status in (400, 413) and self._call.placed and not self._call.without_block

    async def _capture(self) -> None:
        call = self._call
        call.captured = True
        raw = b"".join(self._raw)
        reply = self._wire.read_reply(raw, status=self._status, stream=self._stream)
        work = [self._flow.after(call, reply)]
        if call.link is not None:
            work.append(self._flow.chains.keep(call.link, raw))
        await asyncio.gather(*work)


def _add_headers(message: Message, call: Call) -> None:
    present = {name.lower() for name, _ in message.get("headers", [])}
    extra = [
        (name.encode(), value.encode("latin-1", "replace"))
        for name, value in response_headers(call).items()
        if name.encode() not in present
    ]
    message["headers"] = [*message.get("headers", []), *extra]
