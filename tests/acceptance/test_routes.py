"""Memory on every route, streamed or not, through a real gateway."""

from __future__ import annotations

import time

import httpx
import pytest

from hearth.testing.provider import ScriptedProvider
from tests.acceptance.conftest import APP, GatewayProcess
from tests.acceptance.talk import BLOCK, PATHS, ROUTES, RouteName, ask, body, exchanges, remember, sent_text


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("route", ROUTES)
def test_case_24_every_route_carries_the_memory_once_and_writes_one_exchange(
    gateway: GatewayProcess, provider: ScriptedProvider, user: str, route: RouteName, stream: bool
) -> None:
    """The provider gets the memory exactly once, and one call is one exchange."""
    remember(gateway, user, "My dog is called Zebedee.")
    answer = ask(gateway, user, "What is the name of my dog?", route=route, stream=stream)
    assert answer.status == 200, answer.raw
    assert sent_text(provider.last.body).count("Zebedee") == 1
    assert answer.recalled == 1
    assert [e["user_text"] for e in exchanges(gateway, user)] == ["What is the name of my dog?"]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("route", ROUTES)
def test_what_was_said_on_one_route_is_known_on_the_next(
    gateway: GatewayProcess, provider: ScriptedProvider, user: str, route: RouteName, stream: bool
) -> None:
    """A statement made on a route is recalled at once in a new conversation on another."""
    other: RouteName = ROUTES[(ROUTES.index(route) + 2) % len(ROUTES)]
    ask(gateway, user, "By the way, my sister Ludmila lives in Valparaíso.", route=route, stream=stream)
    provider.clear()
    ask(gateway, user, "Where does my sister live?", route=other, stream=stream)
    assert "Valparaíso" in sent_text(provider.last.body)


@pytest.mark.parametrize("route", ROUTES)
def test_case_15_an_unrelated_question_reaches_the_provider_as_it_was_sent(
    gateway: GatewayProcess, provider: ScriptedProvider, user: str, route: RouteName
) -> None:
    """Where nothing is worth recalling, the prompt is the client's own, without even an empty block."""
    remember(gateway, user, "customer number 12345")
    answer = ask(gateway, user, "What is 17 % of 900?", route=route)
    assert answer.recalled == 0
    assert BLOCK not in sent_text(provider.last.body)
    assert "12345" not in sent_text(provider.last.body)


def test_completions_have_no_memory_unless_it_is_asked_for(
    gateway: GatewayProcess, provider: ScriptedProvider, user: str
) -> None:
    """On /v1/completions memory is off; asked for, the block stands in front of the prompt."""
    remember(gateway, user, "My dog is called Zebedee.")
    quiet = ask(gateway, user, "What is the name of my dog?", route="completions")
    assert quiet.headers["x-hearth-status"] == "off"
    assert "Zebedee" not in sent_text(provider.last.body)
    ask(
        gateway,
        user,
        "What is the name of my dog?",
        route="completions",
        headers={"x-hearth-memory": "on"},
    )
    prompt = provider.last.body["prompt"]
    assert "Zebedee" in sent_text(provider.last.body)
    assert sent_text({"prompt": prompt}).rstrip('}"]').endswith("What is the name of my dog?")


@pytest.mark.parametrize("route", ROUTES)
def test_the_rest_of_the_body_is_the_clients(
    gateway: GatewayProcess, provider: ScriptedProvider, user: str, route: RouteName
) -> None:
    """With a block, everything but the newest user message is what the same call sends without memory."""
    remember(gateway, user, "My dog is called Zebedee.")
    ask(gateway, user, "What is the name of my dog?", route=route, headers={"x-hearth-memory": "off"})
    plain = dict(provider.last.body)
    ask(gateway, user, "What is the name of my dog?", route=route)
    with_block = dict(provider.last.body)
    field = "input" if route == "responses" else "messages"
    changed, same = with_block.pop(field), plain.pop(field)
    assert with_block == plain
    assert len(changed) == len(same)


@pytest.mark.parametrize("route", ROUTES)
def test_the_reply_has_the_headers_that_explain_it(
    gateway: GatewayProcess, provider: ScriptedProvider, user: str, route: RouteName
) -> None:
    """Session, count, tokens, time, status and trace are in the reply's headers, on streams too."""
    remember(gateway, user, "My dog is called Zebedee.")
    for stream in (False, True):
        headers = ask(gateway, user, "What is the name of my dog?", route=route, stream=stream).headers
        assert headers["x-hearth-status"] == "ok"
        assert int(headers["x-hearth-recalled"]) >= 1
        assert int(headers["x-hearth-tokens"]) > 0
        assert float(headers["x-hearth-ms"]) > 0
        with gateway.client(APP, **{"x-hearth-user": user}) as client:
            trace = client.get(f"/memory/v1/recalls/{headers['x-hearth-trace']}")
        assert trace.status_code == 200, trace.text


def test_routes_without_memory_say_so(gateway: GatewayProcess, provider: ScriptedProvider, user: str) -> None:
    """An embeddings call passes through, and its status header says that memory had no part in it."""
    with gateway.client(APP, **{"x-hearth-user": user}) as client:
        reply = client.post("/v1/embeddings", json={"model": "gpt", "input": "hello"})
    assert reply.headers["x-hearth-status"] == "off"
    assert reply.headers["x-hearth-reason"] == "route"


@pytest.mark.parametrize("route", ROUTES)
def test_what_can_not_be_served_is_refused_as_the_clients_mistake(
    gateway: GatewayProcess, provider: ScriptedProvider, route: RouteName
) -> None:
    """A body that is no object is a 400 and an unknown key a 401; neither is a matter of the route."""
    with gateway.client(APP) as client:
        odd = client.post(PATHS[route], json=[1, 2])
    assert (odd.status_code, odd.headers["x-hearth-reason"]) == (400, "refused")
    assert "no JSON object" in odd.json()["error"]["message"]
    unknown = ask(gateway, "", "Hello", route=route, key="sk-unknown-0123456789abcdef")
    assert (unknown.status, unknown.headers["x-hearth-reason"]) == (401, "identity")
    assert not provider.requests


@pytest.mark.parametrize("route", ROUTES)
def test_case_29_a_refusal_of_the_provider_stays_what_it_was(
    gateway: GatewayProcess, provider: ScriptedProvider, user: str, route: RouteName
) -> None:
    """Status and retry-after of a provider's error reach the client, and nothing is remembered of it."""
    provider.reply(status=429, headers={"retry-after": "7"}, times=3)
    answer = ask(gateway, user, "I keep bees.", route=route, stream=True)
    assert answer.status == 429
    assert answer.headers.get("retry-after") == "7"
    assert [e["state"] for e in exchanges(gateway, user)] == ["failed"]
    provider.clear()
    ask(gateway, user, "What animals do I keep?", route=route)
    assert "bees" not in sent_text(provider.last.body)


@pytest.mark.parametrize("route", ROUTES)
def test_a_client_that_hangs_up_leaves_a_partial_exchange(
    gateway: GatewayProcess, provider: ScriptedProvider, user: str, route: RouteName
) -> None:
    """What had been said when the client left is kept, marked as partial."""
    provider.reply(chunks=("The ", "capital ", "is ") + ("far away ",) * 60, gap=0.05)
    messages = [{"role": "user", "content": "Tell me about the capital."}]
    with (
        gateway.client(APP, **{"x-hearth-user": user}) as client,
        client.stream("POST", PATHS[route], json=body(route, messages, stream=True)) as reply,
    ):
        read = b""
        for chunk in reply.iter_bytes():
            read += chunk
            if b"capital" in read:
                break
    deadline = time.monotonic() + 10
    found: list[dict[str, object]] = []
    while not found and time.monotonic() < deadline:
        found = exchanges(gateway, user)
    assert [e["outcome"] for e in found] == ["partial"]
    assert str(found[0]["reply_text"]).startswith("The capital")


def test_case_13_empty_content_is_left_to_the_provider(
    gateway: GatewayProcess, provider: ScriptedProvider, user: str
) -> None:
    """An empty message makes no memory, and goes upstream as it was sent."""
    for content in ("", "  \n\n", None, [], [{"type": "text", "text": ""}]):
        with gateway.client(APP, **{"x-hearth-user": user}) as client:
            reply = client.post(
                "/v1/chat/completions",
                json={"model": "gpt", "messages": [{"role": "user", "content": content}]},
            )
        assert isinstance(reply, httpx.Response)
        assert BLOCK not in sent_text(provider.last.body)
    assert exchanges(gateway, user) == []
