"""One question on any route, streamed or not, and what came of it: the vocabulary of the acceptance tests."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import httpx

from tests.acceptance.conftest import APP, GatewayProcess

RouteName = Literal["chat", "bare-chat", "messages", "responses", "completions"]
ROUTES: tuple[RouteName, ...] = ("chat", "bare-chat", "messages", "responses")
PATHS: dict[RouteName, str] = {
    "chat": "/v1/chat/completions",
    "bare-chat": "/chat/completions",
    "messages": "/v1/messages",
    "responses": "/v1/responses",
    "completions": "/v1/completions",
}
MODELS: dict[RouteName, str] = {
    "chat": "gpt",
    "bare-chat": "gpt",
    "messages": "claude",
    "responses": "gpt",
    "completions": "instruct",
}
BLOCK = "<hearth-memory"


@dataclass(frozen=True)
class Answer:
    """A reply as the client saw it."""

    status: int
    headers: httpx.Headers
    raw: bytes

    @property
    def session(self) -> str:
        """The session that Hearth found or made."""
        return self.headers["x-hearth-session"]

    @property
    def recalled(self) -> int:
        """How many memories went into the prompt."""
        return int(self.headers.get("x-hearth-recalled", "0"))


def body(route: RouteName, messages: list[dict[str, Any]], *, stream: bool, **fields: Any) -> dict[str, Any]:
    """A request of the route with these chat-style messages."""
    made: dict[str, Any] = {"model": MODELS[route], "stream": stream, **fields}
    if route == "messages":
        return {**made, "messages": messages, "max_tokens": made.get("max_tokens", 100)}
    if route == "responses":
        return {**made, "input": messages}
    if route == "completions":
        return {**made, "prompt": messages[-1]["content"]}
    return {**made, "messages": messages}


def ask(
    gateway: GatewayProcess,
    user: str,
    messages: str | list[dict[str, Any]],
    /,
    *,
    route: RouteName = "chat",
    stream: bool = False,
    key: str = APP,
    headers: dict[str, str] | None = None,
    **fields: Any,
) -> Answer:
    """Send a conversation as `user` of the app's key and read the whole reply."""
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    sent = {"x-hearth-user": user} if user else {}
    with gateway.client(key, **sent, **(headers or {})) as client:
        reply = client.post(PATHS[route], json=body(route, messages, stream=stream, **fields))
        return Answer(status=reply.status_code, headers=reply.headers, raw=reply.content)


def remember(gateway: GatewayProcess, user: str, text: str) -> str:
    """Add a memory by REST and wait until it is recallable; returns its id."""
    with gateway.client(APP, **{"x-hearth-user": user}) as client:
        reply = client.post("/memory/v1/memories", json={"text": text})
        assert reply.status_code == 201, reply.text
    gateway.drain()
    return str(reply.json()["id"])


def remember_all(gateway: GatewayProcess, user: str, texts: Sequence[str]) -> None:
    """Add memories by REST and wait until they are recallable."""
    with gateway.client(APP, **{"x-hearth-user": user}) as client:
        for text in texts:
            client.post("/memory/v1/memories", json={"text": text}).raise_for_status()
    gateway.drain()


def exchanges(gateway: GatewayProcess, user: str) -> list[dict[str, Any]]:
    """The user's exchanges, oldest first."""
    gateway.drain()
    with gateway.client(APP, **{"x-hearth-user": user}) as client:
        found = client.get("/memory/v1/exchanges", params={"limit": 200}).json()["items"]
    return list(reversed(found))


def sessions(gateway: GatewayProcess, user: str) -> list[dict[str, Any]]:
    """The user's sessions, the latest first."""
    with gateway.client(APP, **{"x-hearth-user": user}) as client:
        found: list[dict[str, Any]] = client.get("/memory/v1/sessions").json()["items"]
    return found


def sent_text(request_body: dict[str, Any]) -> str:
    """All that the provider received, as one text."""
    return json.dumps(request_body, ensure_ascii=False)
