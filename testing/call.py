"""One call in progress: how a finished reply gets onto its connection, at once or over time."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

from hearth.testing import wire_chat, wire_completions, wire_messages, wire_responses
from hearth.testing.http import Connection
from hearth.testing.refusals import Refused, refusal, refused
from hearth.testing.reply import Family, Reply, Request
from hearth.testing.shape import Plan
from hearth.testing.wire import Script, Turn

Later = Coroutine[Any, Any, None] | None
"""What is left to do after a call was handled: None where all is written."""

SSE = "text/event-stream; charset=utf-8"

_BODIES = {"chat": wire_chat.body, "completions": wire_completions.body, "messages": wire_messages.body}
_SCRIPTS = {
    "chat": wire_chat.script,
    "completions": wire_completions.script,
    "messages": wire_messages.script,
}


def body_of(turn: Turn, response: dict[str, Any] | None) -> bytes:
    """The JSON body of a turn; `response` is the responses route's object."""
    return wire_responses.body(response) if response is not None else _BODIES[turn.request.route](turn)


def script_of(turn: Turn, response: dict[str, Any] | None) -> Script:
    """The stream of a turn; `response` is the responses route's object."""
    if response is not None:
        return wire_responses.script(turn, response)
    return _SCRIPTS[turn.request.route](turn)


def headers_for(family: Family, request_id: str) -> dict[str, str]:
    """The headers that each reply of a provider has."""
    common = {"content-type": "application/json", "server": "scripted"}
    if family == "anthropic":
        return {**common, "request-id": request_id, "anthropic-organization-id": "scripted"}
    return {**common, "x-request-id": request_id, "openai-version": "2020-10-01", "openai-processing-ms": "1"}


@dataclass(slots=True)
class Call:
    """A request that waits for its reply on its connection."""

    request: Request
    connection: Connection
    family: Family
    request_id: str
    headers: dict[str, str]

    def __post_init__(self) -> None:
        self.connection.on_lost = self._lost

    def _lost(self) -> None:
        self.request.disconnected = True

    def refuse(self, cause: Refused) -> Later:
        """Answer with the error body of a request that did not pass the checks."""
        status, body = refused(self.family, cause, self.request_id)
        self._now(status, body)
        return None

    def fail(self, reply: Reply) -> Later:
        """Answer with a scripted error."""
        status, body = refusal(self.family, reply, self.request_id)
        return self.plain(reply, status, body)

    def plain(self, reply: Reply, status: int, body: bytes) -> Later:
        """Answer with a body in one piece: at once unless the reply is to be late, cut or missing."""
        self.headers.update(reply.headers)
        if reply.delay or reply.cut_after is not None or reply.hang_after is not None:
            return self._late(reply, status, body)
        self._now(status, body)
        return None

    def stream(self, reply: Reply, what: Plan) -> Later:
        """Answer with a stream: in one write where nothing says otherwise."""
        self.headers.update({"content-type": SSE, "cache-control": "no-cache", **reply.headers})
        if reply.delay or what.pause or what.ending != "end":
            return self._play(reply, what)
        self.connection.head(200, self.headers)
        self.request.written.extend(what.writes)
        self.connection.send_all(what.writes)
        self._end()
        return None

    def _now(self, status: int, body: bytes) -> None:
        self.request.answered = True
        self.request.written.append(body)
        self.connection.whole(status, self.headers, body)

    def _end(self) -> None:
        self.request.answered = True
        self.connection.end()

    async def _late(self, reply: Reply, status: int, body: bytes) -> None:
        await _wait(math.inf if reply.hang_after is not None else reply.delay)
        if reply.cut_after is None:
            self._now(status, body)
            return
        self.connection.head(status, self.headers, length=len(body))
        self.connection.send(body[: len(body) // 2])
        self.connection.cut()

    async def _play(self, reply: Reply, what: Plan) -> None:
        await _wait(reply.delay)
        self.connection.head(200, self.headers)
        for part in what.writes:
            self.request.written.append(part)
            self.connection.send(part)
            await asyncio.sleep(what.pause)
        if what.ending == "hang":
            await _wait(math.inf)
        elif what.ending == "cut":
            self.connection.cut()
        else:
            self._end()


async def _wait(seconds: float) -> None:
    if math.isinf(seconds):
        await asyncio.Event().wait()
    await asyncio.sleep(seconds)
