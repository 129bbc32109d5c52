"""What the gateway itself refuses on a model route: a JSON body that is no object, or that is too large."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from hearth.gateway.wire.types import Route
from hearth.gateway.wire.values import loads

_FORMS = ("multipart/form-data", "application/x-www-form-urlencoded")
"""Media types whose bodies are no JSON; LiteLLM reads them on any route."""


def is_no_object(raw: bytes, headers: Iterable[tuple[str, str]]) -> bool:
    """True for a body that is JSON but a list, a text, a number or the like.

    An empty body, a form, and what is no JSON at all are left to LiteLLM, which says what is wrong with them.
    """
    start = raw.lstrip()[:1]
    if start in (b"", b"{"):
        return False
    media = next((value for name, value in headers if name.lower() == "content-type"), "")
    if media.lower().startswith(_FORMS):
        return False
    value = loads(raw)
    return value is not None or raw.strip() == b"null"


def refusal(route: Route, message: str, status: int = 400) -> bytes:
    """The body of a refusal in the route's own format: Anthropic's on messages, else OpenAI's."""
    kind = "invalid_request_error"
    if route == "messages":
        return msgspec.json.encode({"type": "error", "error": {"type": kind, "message": message}})
    return msgspec.json.encode(
        {"error": {"message": message, "type": kind, "param": None, "code": str(status)}}
    )
