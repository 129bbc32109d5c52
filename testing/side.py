"""The routes beside the model calls: embeddings, models, token counts, stored responses, conversations."""

from __future__ import annotations

import base64
import hashlib
import math
import struct
from collections.abc import Callable
from typing import Any

from hearth.testing.held import Held
from hearth.testing.ids import Ids
from hearth.testing.refusals import Refused
from hearth.testing.reply import Request

Embed = Callable[[str], list[float]]

MODELS = ("gpt-4o", "gpt-4o-mini", "gpt-5", "claude-sonnet-5", "text-embedding-3-small")
DIMENSIONS = 256
"""Of an embedding where the request names none; small, since only its place in the wire format matters."""


def is_stored(short: str) -> bool:
    """True for the path (without /v1) of one stored response or conversation."""
    return short.startswith(("/responses/", "/conversations/"))


def respond(request: Request, held: Held, ids: Ids, embed: Embed | None) -> dict[str, Any]:
    """The reply's body. Raises Refused."""
    if request.route == "embeddings":
        return embeddings(request.body, embed)
    if request.route == "count_tokens":
        return {"input_tokens": size(request)}
    if request.route == "models":
        return models(anthropic="anthropic-version" in request.headers)
    if request.route == "conversations":
        name = held.open(ids, request.body.get("items"))
        return {"id": name, "object": "conversation", "created_at": 0, "metadata": {}}
    if request.route == "stored":
        return _stored(request, held)
    raise Refused(404, f"Invalid URL ({request.method} {request.path})")


def size(request: Request) -> int:
    """Tokens of a request, at four bytes a token."""
    return -(-len(request.raw) // 4)


def _stored(request: Request, held: Held) -> dict[str, Any]:
    kind, name, *rest = request.path.removeprefix("/v1").strip("/").split("/")
    if kind == "conversations":
        items = held.conversation(name)
        if request.method == "DELETE":
            del held.conversations[name]
            return {"id": name, "object": "conversation.deleted", "deleted": True}
        return (
            _list(items) if rest else {"id": name, "object": "conversation", "created_at": 0, "metadata": {}}
        )
    stored = held.stored(name)
    if request.method == "DELETE":
        del held.responses[name]
        return {"id": name, "object": "response", "deleted": True}
    return _list(stored.given) if rest else stored.response


def _list(items: list[Any]) -> dict[str, Any]:
    data = [{"id": f"item_{place}", **item} for place, item in enumerate(items)]
    first, last = (data[0]["id"], data[-1]["id"]) if data else (None, None)
    return {"object": "list", "data": data, "first_id": first, "last_id": last, "has_more": False}


def models(*, anthropic: bool) -> dict[str, Any]:
    """The list of models in the form of the provider that was asked."""
    if not anthropic:
        data = [{"id": name, "object": "model", "created": 0, "owned_by": "scripted"} for name in MODELS]
        return {"object": "list", "data": data}
    created = "2025-01-01T00:00:00Z"
    named = [
        {"type": "model", "id": name, "display_name": name, "created_at": created}
        for name in MODELS
        if name.startswith("claude")
    ]
    return {"data": named, "has_more": False, "first_id": named[0]["id"], "last_id": named[-1]["id"]}


def embeddings(body: dict[str, Any], embed: Embed | None) -> dict[str, Any]:
    """One vector for each input, in floats or base64 as asked."""
    given = body.get("input", "")
    texts = given if isinstance(given, list) and given and not isinstance(given[0], int) else [given]
    size = int(body.get("dimensions") or DIMENSIONS)
    encoded = body.get("encoding_format") == "base64"
    data = []
    for index, text in enumerate(texts):
        values = embed(str(text)) if embed is not None else vector(str(text), size)
        packed: Any = (
            base64.b64encode(struct.pack(f"<{len(values)}f", *values)).decode() if encoded else values
        )
        data.append({"object": "embedding", "index": index, "embedding": packed})
    tokens = sum(-(-len(str(text)) // 4) for text in texts)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "data": data, "model": body.get("model", ""), "usage": usage}


def vector(text: str, size: int) -> list[float]:
    """A unit vector that depends on the text alone; two texts' vectors are unrelated."""
    raw = hashlib.shake_128(text.encode("utf-8", "surrogatepass")).digest(size)
    values = [byte - 127.5 for byte in raw]
    norm = math.sqrt(sum(value * value for value in values))
    return [value / norm for value in values]
