"""Error bodies as OpenAI and Anthropic send them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from hearth.testing.reply import ErrorKind, Family, Reply

_KIND_OF_STATUS: dict[int, ErrorKind] = {
    400: "invalid_request",
    401: "authentication",
    403: "permission",
    404: "not_found",
    413: "too_large",
    429: "rate_limit",
    503: "overloaded",
    529: "overloaded",
}

_FILTERED = (
    "The response was filtered due to the prompt triggering Azure OpenAI's content management policy. "
    "Please modify your prompt and retry."
)
_TOO_LONG = (
    "This model's maximum context length is 128000 tokens. However, your messages resulted in 130112 tokens. "
    "Please reduce the length of the messages."
)
_RATE = "Rate limit reached for requests. Limit 500, Used 500, Requested 1. Please try again in 7s."
_SERVER = "The server had an error while processing your request. Sorry about that!"
_BUSY = "The engine is currently overloaded, please try again later"

OPENAI: dict[ErrorKind, tuple[int, str, str | None, str | None, str | None]] = {
    "invalid_request": (400, "We could not parse your request.", "invalid_request_error", None, None),
    "authentication": (401, "Incorrect API key provided.", "invalid_request_error", None, "invalid_api_key"),
    "permission": (403, "You are not allowed to sample from this model", "invalid_request_error", None, None),
    "not_found": (404, "The model does not exist.", "invalid_request_error", None, "model_not_found"),
    "too_large": (413, "Request too large.", "invalid_request_error", None, None),
    "rate_limit": (429, _RATE, "requests", None, "rate_limit_exceeded"),
    "server": (500, _SERVER, "server_error", None, None),
    "overloaded": (503, _BUSY, "service_unavailable", None, None),
    "context_length": (400, _TOO_LONG, "invalid_request_error", "messages", "context_length_exceeded"),
    "content_filter": (400, _FILTERED, None, "prompt", "content_filter"),
}
"""Kind → status, message, type, param, code."""

ANTHROPIC: dict[ErrorKind, tuple[int, str, str]] = {
    "invalid_request": (400, "messages: Input should be a valid list", "invalid_request_error"),
    "authentication": (401, "invalid x-api-key", "authentication_error"),
    "permission": (403, "Your API key does not have permission to use it.", "permission_error"),
    "not_found": (404, "model: claude-unknown", "not_found_error"),
    "too_large": (413, "Request exceeds the maximum size", "request_too_large"),
    "rate_limit": (429, "This request would exceed your account's rate limit.", "rate_limit_error"),
    "server": (500, "Internal server error", "api_error"),
    "overloaded": (529, "Overloaded", "overloaded_error"),
    "context_length": (400, "prompt is too long: 210112 tokens > 200000 maximum", "invalid_request_error"),
    "content_filter": (400, "Output blocked by content filtering policy", "invalid_request_error"),
}
"""Kind → status, message, type."""


class Refused(Exception):  # noqa: N818 - it is an answer, not a fault
    """The provider refuses a request that a real one would refuse too."""

    def __init__(
        self, status: int, message: str, *, param: str | None = None, code: str | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.param, self.code = status, message, param, code


def openai_error(message: str, kind: str | None, param: str | None, code: str | None) -> dict[str, Any]:
    """An error body in OpenAI's form."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def anthropic_error(message: str, kind: str, request_id: str) -> dict[str, Any]:
    """An error body in Anthropic's form."""
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": request_id}


def kind_of(reply: Reply) -> ErrorKind:
    """The kind of a failing reply: its own, or the one that belongs to its status, else `server`."""
    if isinstance(reply.error, str):
        return reply.error
    return _KIND_OF_STATUS.get(reply.status, "server")


def refusal(family: Family, reply: Reply, request_id: str) -> tuple[int, bytes]:
    """Status and body of a failing reply; a status of 200 in the reply means the kind's own."""
    if isinstance(reply.error, Mapping):
        return (reply.status if reply.status != 200 else 400), msgspec.json.encode(reply.error)
    status, body = describe(family, kind_of(reply), request_id)
    return (reply.status if reply.status != 200 else status), msgspec.json.encode(body)


def describe(family: Family, kind: ErrorKind, request_id: str) -> tuple[int, dict[str, Any]]:
    """Status and body of a kind of error."""
    if family == "anthropic":
        status, message, name = ANTHROPIC[kind]
        return status, anthropic_error(message, name, request_id)
    status, message, type_, param, code = OPENAI[kind]
    return status, openai_error(message, type_, param, code)


def refused(family: Family, cause: Refused, request_id: str) -> tuple[int, bytes]:
    """Status and body for a request that did not pass the checks."""
    if family == "anthropic":
        name = "not_found_error" if cause.status == 404 else "invalid_request_error"
        return cause.status, msgspec.json.encode(anthropic_error(cause.message, name, request_id))
    body = openai_error(cause.message, "invalid_request_error", cause.param, cause.code)
    return cause.status, msgspec.json.encode(body)
