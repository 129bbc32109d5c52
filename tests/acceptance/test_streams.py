"""Streams: each chunk at once, the bytes that LiteLLM alone would send, one exchange whatever the tail."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from hearth.memory.types import Usage
from hearth.testing.provider import ScriptedProvider
from hearth.testing.reply import ToolCall
from tests.acceptance.conftest import (
    ADMIN,
    APP,
    GatewayProcess,
    await_answer,
    document,
    start_litellm,
    wait_until,
)
from tests.acceptance.talk import PATHS, ROUTES, RouteName, ask, body, exchanges, remember

TEXT_ROUTES: tuple[RouteName, ...] = ("chat", "messages", "responses")
HELLO = [{"role": "user", "content": "Say hello to the people of Oslo."}]
TOOL = ToolCall(name="look", arguments={"q": "x"}, id="toolu_1")


def events_of(gateway: GatewayProcess, user: str) -> list[str]:
    """The kinds of the user's log lines that a call writes by itself."""
    gateway.drain()
    with gateway.client(ADMIN) as client:
        found = client.get("/memory/v1/events", params={"user": user, "limit": 200}).json()["items"]
    return [e["kind"] for e in found if e["kind"] in ("step.captured", "exchange.enriched")]


# -- at once ------------------------------------------------------------------------------------------------


def _spoken(raw: bytes) -> int:
    """How many of the scripted words are in a stream so far."""
    return len(set(re.findall(rb"word\d (?=\")", raw)))


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("said", [1, 2, 5])
def test_case_29_what_a_hanging_provider_has_said_is_already_there(
    gateway: GatewayProcess, provider: ScriptedProvider, user: str, route: RouteName, said: int
) -> None:
    """When a provider falls silent, the client has every word that it had sent, though the stream is open."""
    before = {"chat": 1, "bare-chat": 1, "messages": 3, "responses": 4}[route]
    remember(gateway, user, "My friends are the people of Oslo.")
    provider.reply(chunks=tuple(f"word{number} " for number in range(6)), hang_after=before + said)
    read = b""
    with (
        gateway.client(APP, **{"x-hearth-user": user}) as client,
        client.stream("POST", PATHS[route], json=body(route, HELLO, stream=True)) as reply,
    ):
        assert int(reply.headers["x-hearth-recalled"]) == 1
        for chunk in reply.iter_bytes():
            read += chunk
            if _spoken(read) == said:
                break
    assert not provider.last.answered
    wait_until(lambda: [e["outcome"] for e in exchanges(gateway, user)] == ["partial"])


# -- bytes --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bare(_provider: ScriptedProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """LiteLLM's own proxy without Hearth in front of the same provider; gives its address."""
    home = tmp_path_factory.mktemp("bare")
    config = document(_provider, home)
    del config["hearth"]
    config["general_settings"] = {"master_key": APP}
    config["litellm_settings"] = {"use_chat_completions_url_for_anthropic_messages": True}
    process, url, log = start_litellm(config, home)
    await_answer(process, f"{url}/health/liveliness", log)
    yield url
    process.terminate()
    process.wait(60)


_IDS = re.compile(
    rb"(?:chatcmpl|cmpl|msg|resp|rs|fc|item|req|toolu|call)[-_][A-Za-z0-9_=-]{8,}"
    rb"|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
)


def comparable(raw: bytes) -> bytes:
    """A reply with what differs from call to call taken out: ids and times."""
    raw = _IDS.sub(b"id", raw)
    return re.sub(rb'"(created|created_at|completed_at)":[0-9.]+', b'"time":0', raw)


REPLIES: dict[str, dict[str, Any]] = {
    "text": {"text": "Hello, people of Oslo — 🚀 名前."},
    "thinking": {"text": "Hello.", "thinking": "They are from Oslo."},
    "tools": {"tools": [TOOL], "text": "ok"},
    "short": {"text": "ok"},
    "cut": {"text": "One two three four five.", "cut_after": 5, "gap": 0.2},
    "endless": {"text": "One two three.", "done": False},
    "error": {"text": "One two three four five.", "fail_after": 5},
    "split": {"text": "Hello — 🚀 名前.", "split_bytes": 5},
    "batch": {"text": "Hello, people of Oslo.", "batch": 3},
    "crlf": {"text": "Hello, people.", "crlf": True},
    "refused": {"status": 429, "headers": {"retry-after": "7"}},
    "invalid": {"error": "invalid_request"},
    "broken": {"status": 500},
}
MODELS: list[tuple[RouteName, str]] = [
    ("chat", "gpt"),
    ("messages", "claude"),
    ("responses", "gpt"),
    ("messages", "compat"),
    ("responses", "compat"),
]


@pytest.mark.parametrize("kind", REPLIES)
@pytest.mark.parametrize(("route", "model"), MODELS)
def test_case_29_the_client_gets_what_litellm_alone_would_send(
    gateway: GatewayProcess,
    provider: ScriptedProvider,
    bare: str,
    user: str,
    route: RouteName,
    model: str,
    kind: str,
) -> None:
    """Status, type and bytes of a stream are a bare LiteLLM's, though a block went in; ids and times apart.

    A provider that is cut off speaks slowly here: the words of one that ends at once LiteLLM may miss or not.
    LiteLLM itself writes chat and response chunks anew, so the provider's own bytes are no measure there.
    """
    remember(gateway, user, "My friends are the people of Oslo.")
    sent = body(route, HELLO, stream=True, model=model)
    usage = Usage(input=11, output=7)

    def fetch(url: str, **headers: str) -> httpx.Response:
        provider.clear()
        provider.reply(usage=usage, **REPLIES[kind])
        with httpx.Client(base_url=url, timeout=30) as client:
            try:
                with client.stream(
                    "POST", PATHS[route], json=sent, headers={"authorization": f"Bearer {APP}", **headers}
                ) as reply:
                    raw = b"".join(reply.iter_raw())
            except httpx.RemoteProtocolError as error:
                raw = str(error).encode()
        return httpx.Response(reply.status_code, headers=reply.headers, content=raw)

    alone = fetch(bare)
    remembered = fetch(gateway.url, **{"x-hearth-user": user})
    assert int(remembered.headers["x-hearth-recalled"]) == 1
    assert comparable(remembered.content) == comparable(alone.content)
    assert remembered.status_code == alone.status_code
    assert remembered.headers["content-type"] == alone.headers["content-type"]
    if kind == "refused":
        assert remembered.headers["retry-after"] == "7"


# -- messages -----------------------------------------------------------------------------------------------


VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "cut mid-line": {"split_bytes": 7},
    "several at once": {"batch": 4},
    "one write": {"batch": 1000},
    "pings": {"pings": 3},
    "crlf": {"crlf": True},
    "crlf, cut": {"crlf": True, "split_bytes": 5},
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_case_25_raw_events_of_messages(
    gateway: GatewayProcess, provider: ScriptedProvider, user: str, variant: str
) -> None:
    """The client's bytes are the provider's but for the model's name; thoughts and JSON are not kept."""
    provider.reply(
        chunks=("Hel", "lo ", "Ana"),
        thinking="hmm",
        tools=[TOOL],
        usage=Usage(input=11, output=7),
        **VARIANTS[variant],
    )
    answer = ask(gateway, user, HELLO, route="messages", stream=True)
    assert answer.status == 200
    renamed = provider.last.sent.replace(b'"model":"claude-sonnet-4-5"', b'"model":"claude"')
    assert _lines(answer.raw) == _lines(renamed)
    (kept,) = exchanges(gateway, user)
    assert (kept["reply_text"], kept["outcome"], kept["state"]) == ("Hello Ana", "complete", "open")
    assert (kept["usage"]["input"], kept["usage"]["output"]) == (11, 7)


def _lines(raw: bytes) -> list[bytes]:
    return raw.replace(b"\r\n", b"\n").split(b"\n")


def test_case_25_an_unreadable_stream_is_counted_and_never_called_complete(
    gateway: GatewayProcess, provider: ScriptedProvider, user: str
) -> None:
    """Events that are no JSON reach the client, raise the counter, and are no complete reply."""

    def counted() -> float:
        with gateway.client(ADMIN) as client:
            text = client.get("/memory/metrics").text
        found = re.search(r'hearth_failures_total\{place="reply.unparsed"\} (\S+)', text)
        return float(found[1]) if found else 0.0

    before = counted()
    provider.reply(raw=b"event: message_start\ndata: {broken\n\nevent: content_block_delta\ndata: [}\n\n")
    answer = ask(gateway, user, HELLO, route="messages", stream=True)
    assert b"{broken" in answer.raw
    assert counted() == before + 2
    assert [e["outcome"] for e in exchanges(gateway, user)] == ["partial"]


# -- once ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("route", "stream", "fields"),
    [
        ("chat", True, {"stream_options": {"include_usage": True}}),
        ("responses", True, {}),
        ("messages", True, {}),
        ("chat", False, {"num_retries": 1}),
        ("chat", True, {"num_retries": 1}),
    ],
)
def test_case_26_one_call_is_one_exchange_and_one_usage(
    gateway: GatewayProcess,
    provider: ScriptedProvider,
    user: str,
    route: RouteName,
    stream: bool,
    fields: dict[str, Any],
) -> None:
    """However often LiteLLM calls its hooks, or tries again, the log has one step and one usage line."""
    if "num_retries" in fields:
        provider.reply(status=500)
    provider.reply("Hello.", usage=Usage(input=11, output=7))
    answer = ask(gateway, user, HELLO, route=route, stream=stream, **fields)
    assert answer.status == 200, answer.raw
    assert len(provider.requests) == (2 if "num_retries" in fields else 1)
    wait_until(lambda: "exchange.enriched" in events_of(gateway, user))
    # A disk that takes long for the step may let its usage in before it.
    assert sorted(events_of(gateway, user)) == ["exchange.enriched", "step.captured"]
    (kept,) = exchanges(gateway, user)
    assert (kept["steps"], kept["usage"]["input"], kept["usage"]["output"]) == (1, 11, 7)


# -- tails --------------------------------------------------------------------------------------------------


TAILS: dict[str, tuple[dict[str, Any], dict[str, Any], tuple[str, str]]] = {
    "a usage chunk": ({"usage_chunk": True}, {}, ("Hello Ana", "complete")),
    "reasoning alone": ({"text": "", "chunks": (), "thinking": "hmm"}, {}, ("", "complete")),
    "tool calls": ({"text": "", "chunks": (), "tools": [TOOL]}, {}, ("", "complete")),
    "no end": (
        {"done": False, "usage_chunk": False, "cut_after": 4, "gap": 0.2},
        {},
        ("Hello Ana", "partial"),
    ),
    "text with the finish": ({"finish_with_text": True}, {}, ("Hello Ana", "complete")),
    "two choices": ({"choices": ("Goodbye Bo",)}, {"n": 2}, ("Hello Ana", "complete")),
}


@pytest.mark.parametrize("tail", TAILS)
def test_case_27_unusual_tails(
    gateway: GatewayProcess, provider: ScriptedProvider, user: str, tail: str
) -> None:
    """The user's words and what was said are kept however a stream ends; the client gets every chunk."""
    shape, fields, (text, outcome) = TAILS[tail]
    reply: dict[str, Any] = {"chunks": ("Hel", "lo ", "Ana"), **shape}
    provider.reply(**reply)
    answer = ask(gateway, user, HELLO, stream=True, **fields)
    (kept,) = exchanges(gateway, user)
    assert (kept["user_text"], kept["reply_text"], kept["outcome"]) == (HELLO[0]["content"], text, outcome)
    heard = _chat_text(answer.raw)
    assert heard.get(0, "") == text
    if tail == "two choices":
        assert heard[1] == "Goodbye Bo"


def _chat_text(raw: bytes) -> dict[int, str]:
    said: dict[int, str] = {}
    for line in raw.split(b"\n"):
        if not line.startswith(b"data: {"):
            continue
        for choice in json.loads(line.removeprefix(b"data: ")).get("choices", ()):
            said[choice["index"]] = said.get(choice["index"], "") + (choice["delta"].get("content") or "")
    return said


@pytest.mark.parametrize("route", TEXT_ROUTES)
def test_case_27_a_reply_cut_off_on_any_route_is_partial(
    gateway: GatewayProcess, provider: ScriptedProvider, user: str, route: RouteName
) -> None:
    """A connection that closes amid the words leaves them, marked as partial."""
    provider.reply(
        "One two three four five six.", cut_after={"messages": 6, "responses": 7}.get(route, 4), gap=0.2
    )
    ask(gateway, user, "Count to six, please.", route=route, stream=True)
    (kept,) = exchanges(gateway, user)
    assert kept["outcome"] == "partial"
    assert kept["reply_text"].startswith("One two")
    assert "six" not in kept["reply_text"]


# -- usage --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("route", "model"), MODELS)
def test_case_56_usage_is_the_providers(
    gateway: GatewayProcess, provider: ScriptedProvider, user: str, route: RouteName, model: str, stream: bool
) -> None:
    """Each exchange has the provider's own counts, cached tokens included, whoever translates on the way."""
    provider.reply("Hello.", usage=Usage(input=11, output=7, cached_input=5))
    answer = ask(gateway, user, HELLO, route=route, stream=stream, model=model)
    assert answer.status == 200, answer.raw
    wait_until(lambda: "exchange.enriched" in events_of(gateway, user))
    (kept,) = exchanges(gateway, user)
    usage = kept["usage"]
    assert (usage["input"], usage["output"], usage["cached_input"]) == (11, 7, 5)


def test_case_56_no_usage_chunk_for_a_client_that_asked_for_none(
    gateway: GatewayProcess, provider: ScriptedProvider, user: str
) -> None:
    """LiteLLM asks the provider for usage by itself; the exchange has it, and the client's stream has not."""
    provider.reply("Hello.", usage=Usage(input=11, output=7))
    answer = ask(gateway, user, HELLO, stream=True)
    assert b'"usage"' not in answer.raw
    wait_until(lambda: "exchange.enriched" in events_of(gateway, user))
    (kept,) = exchanges(gateway, user)
    assert (kept["usage"]["input"], kept["usage"]["output"]) == (11, 7)
