"""The edge alone, around an app that notes what reaches it."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from hearth.gateway.call import Call
from hearth.gateway.edge import Edge
from hearth.gateway.flow import Flow
from hearth.gateway.runtime import Gateway
from hearth.memory.engine import Engine

OPENAI = {
    "error": {
        "message": "The request body is no JSON object.",
        "type": "invalid_request_error",
        "param": None,
        "code": "400",
    }
}
ANTHROPIC = {
    "type": "error",
    "error": {"type": "invalid_request_error", "message": "The request body is no JSON object."},
}
FORMATS = [
    ("/v1/chat/completions", OPENAI),
    ("/v1/messages", ANTHROPIC),
    ("/v1/responses", OPENAI),
    ("/v1/completions", OPENAI),
]


@dataclass
class Inner:
    """An app that answers every request with one status and keeps the bodies."""

    status: int = 200
    answer: bytes = b"{}"
    bodies: list[bytes] = field(default_factory=list)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        message = await receive()
        self.bodies.append(message["body"])
        size = b"%d" % len(self.answer)
        headers = [(b"content-type", b"application/json"), (b"content-length", size)]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.answer[:3], "more_body": True})
        await send({"type": "http.response.body", "body": self.answer[3:]})


ADDED = 300
MOST = 1_000_000


async def headroom(request: Request, call: Call) -> int:
    """What memory would add, wherever it is asked."""
    call.status, call.reason = "ok", ""
    return ADDED


async def post(inner: Inner, path: str, body: bytes, **headers: str) -> httpx.Response:
    """Send a body through the edge; no call of these tests comes as far as memory."""
    flow = Flow(cast("Engine", SimpleNamespace(shared=None)))
    gateway = cast("Gateway", type("Gateway", (), {"flow": flow}))
    transport = httpx.ASGITransport(cast("Any", Edge(inner, lambda: gateway, headroom, most_bytes=MOST)))
    async with httpx.AsyncClient(transport=transport, base_url="http://hearth") as client:
        return await client.post(path, content=body, headers={"content-type": "application/json", **headers})


@pytest.mark.parametrize(("path", "expected"), FORMATS)
@pytest.mark.parametrize("body", [b"[1,2]", b' "text"', b"7", b"null", b"true", b"[]"])
async def test_a_body_that_is_no_object_is_refused_in_the_routes_own_format(
    path: str, expected: dict[str, Any], body: bytes
) -> None:
    """It is the client's mistake: a 400 that says so, and LiteLLM does not see it."""
    inner = Inner()
    answer = await post(inner, path, body)
    assert (answer.status_code, answer.json()) == (400, expected)
    assert (answer.headers["x-hearth-status"], answer.headers["x-hearth-reason"]) == ("off", "refused")
    assert inner.bodies == []


@pytest.mark.parametrize("body", [b'{"messages": 42}', b"\n {}", b"", b"[1,", b"nonsense"])
async def test_every_other_body_reaches_litellm_as_it_is(body: bytes) -> None:
    """What is wrong with an object, or is no JSON, is LiteLLM's and the provider's to say."""
    inner = Inner()
    assert (await post(inner, "/v1/chat/completions", body)).status_code == 200
    assert inner.bodies == [body]


async def test_a_form_is_no_json() -> None:
    """LiteLLM takes forms too, and a form may begin like a number."""
    inner = Inner()
    kind = "application/x-www-form-urlencoded"
    assert (await post(inner, "/v1/chat/completions", b"7", **{"content-type": kind})).status_code == 200


async def test_other_routes_keep_their_bodies() -> None:
    """The rule is the model routes' alone."""
    inner = Inner(status=404)
    answer = await post(inner, "/v1/embeddings", b"[1,2]")
    assert (answer.status_code, inner.bodies) == (404, [b"[1,2]"])
    assert answer.headers["x-hearth-reason"] == "route"


@pytest.mark.parametrize(("status", "reason"), [(401, "identity"), (429, "refused"), (500, "refused")])
async def test_a_call_that_is_refused_before_memory_says_so(status: int, reason: str) -> None:
    """A key that is not known is a matter of identity; the route would have had memory."""
    answer = await post(Inner(status=status), "/v1/chat/completions", b"{}")
    assert (answer.headers["x-hearth-status"], answer.headers["x-hearth-reason"]) == ("off", reason)


@pytest.mark.parametrize("path", ["/v1/messages/count_tokens", "/v1/messages/count_tokens/?beta=true"])
async def test_a_token_count_holds_what_memory_may_add(path: str) -> None:
    """The number grows by it, and all else of the reply stays."""
    inner = Inner(answer=b'{"input_tokens": 12, "source": "provider"}')
    answer = await post(inner, path, b'{"messages": []}')
    assert answer.json() == {"input_tokens": 12 + ADDED, "source": "provider"}
    assert int(answer.headers["content-length"]) == len(answer.content)
    assert (answer.headers["x-hearth-status"], answer.headers["x-hearth-tokens"]) == ("ok", str(ADDED))
    assert inner.bodies == [b'{"messages": []}']


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (429, b'{"input_tokens": 12}'),
        (200, b'{"error": "no number"}'),
        (200, b'{"input_tokens": "12"}'),
        (200, b'{"input_tokens": true}'),
        (200, b"[12]"),
        (200, b"no JSON"),
        (200, b""),
    ],
)
async def test_a_reply_without_a_count_passes_as_it_is(status: int, body: bytes) -> None:
    """A refusal, and whatever else is no number of tokens, is LiteLLM's own."""
    answer = await post(Inner(status=status, answer=body), "/v1/messages/count_tokens", b"{}")
    assert (answer.status_code, answer.content) == (status, body)
    assert (answer.headers["x-hearth-status"], answer.headers["x-hearth-reason"]) == ("off", "refused")


@pytest.mark.parametrize("path", [*(path for path, _ in FORMATS), "/v1/messages/count_tokens"])
async def test_a_body_that_is_too_large_is_refused_by_what_it_says_and_by_what_it_has(path: str) -> None:
    """With 413, the limit and the setting in the route's own form; nothing of it reaches LiteLLM."""
    inner = Inner()
    for headers in ({}, {"content-length": "5"}, {"content-length": str(MOST + 1)}):
        answer = await post(inner, path, b"{" + b" " * MOST, **headers)
        assert answer.status_code == 413
        assert "larger than 1 MB (`hearth.max_request_mb`)" in answer.json()["error"]["message"]
    assert not inner.bodies
    await post(inner, path, b"{}" + b" " * (MOST - 2))
    assert len(inner.bodies) == 1
