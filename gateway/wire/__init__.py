"""The wire formats that Hearth remembers, by route, and the paths at which LiteLLM serves them."""

from __future__ import annotations

import re

from hearth.gateway.wire import chat, completions, messages, responses
from hearth.gateway.wire.types import Route, Wire

WIRES: dict[Route, Wire] = {
    "chat": chat.WIRE,
    "messages": messages.WIRE,
    "responses": responses.WIRE,
    "completions": completions.WIRE,
}
"""One module-level instance a route."""

_PATHS: tuple[tuple[re.Pattern[str], Route], ...] = (
    (re.compile(r"(?:/v1|/engines/.+|/openai/deployments/.+)?/chat/completions"), "chat"),
    (re.compile(r"/v1/messages"), "messages"),
    (re.compile(r"(?:/v1|/openai/v1)?/responses"), "responses"),
    (re.compile(r"(?:/v1|/engines/.+|/openai/deployments/.+)?/completions"), "completions"),
)
"""Routes of litellm 1.108.7. Left out: `/cursor/chat/completions`, which mixes two formats, and what only
looks alike (`/v1/messages/count_tokens`, `/v1/responses/{id}`, `/v1/threads/{id}/messages`)."""


def route_of(path: str) -> Route | None:
    """The route that a request path belongs to, without its query; None where Hearth keeps out."""
    bare = path.rstrip("/")
    return next((route for pattern, route in _PATHS if pattern.fullmatch(bare)), None)
