"""Answers to clients that ask how large their prompt is, with what memory may add to it."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from starlette.types import Message, Send

from hearth.gateway.call import Call

Added: TypeAlias = Callable[[], Awaitable[int]]
"""How many tokens memory may add to the prompt; asked only where the provider has given its own number."""

PATH = "/v1/messages/count_tokens"
FIELD = "input_tokens"


def is_token_count(path: str) -> bool:
    """True for Anthropic's token count, by a request's path without its query."""
    return path.rstrip("/") == PATH


class CountReply:
    """Passes a reply on once it is whole, with the tokens that memory may add in its number."""

    def __init__(self, call: Call, added: Added, send: Send) -> None:
        self._call, self._added, self._send = call, added, send
        self._start: Message = {}
        self._parts: list[bytes] = []

    async def send(self, message: Message) -> None:
        """The app's `send`."""
        if message["type"] == "http.response.start":
            self._start = message
            return
        self._parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            await self._finish(b"".join(self._parts))

    async def _finish(self, body: bytes) -> None:
        counted = _counted(body) if self._start["status"] == 200 else None
        added = await self._added() if counted is not None else 0
        if counted is not None and added:
            body = json.dumps({**counted, FIELD: counted[FIELD] + added}).encode()
        named = {b"content-length": b"%d" % len(body), **_headers(self._call, added)}
        kept = [pair for pair in self._start["headers"] if pair[0].lower() not in named]
        await self._send({**self._start, "headers": [*kept, *named.items()]})
        await self._send({"type": "http.response.body", "body": body})


def _headers(call: Call, added: int) -> dict[bytes, bytes]:
    headers = {b"x-hearth-status": call.status.encode()}
    if call.reason:
        headers[b"x-hearth-reason"] = call.reason.encode("latin-1", "replace")
    if call.status == "ok":
        headers[b"x-hearth-tokens"] = b"%d" % added
    return headers


def _counted(body: bytes) -> dict[str, Any] | None:
    """The reply if it holds a number of tokens, else None."""
    try:
        reply = json.loads(body)
    except ValueError:
        return None
    return reply if isinstance(reply, dict) and type(reply.get(FIELD)) is int else None
