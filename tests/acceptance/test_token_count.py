"""Anthropic's token count through a real gateway: the provider's number and what memory may add to it."""

from __future__ import annotations

from typing import Any

import pytest

from hearth.testing.provider import ScriptedProvider, ToolCall
from tests.acceptance.conftest import APP, GatewayProcess
from tests.acceptance.talk import ask, exchanges, remember
from tests.acceptance.test_tools import TOOLS, called

BUDGET = 1024
"""Block tokens where neither key nor call says; a tenth of the model's window is more."""
QUESTION = "What is the name of my dog?"
ASKED: list[dict[str, Any]] = [{"role": "user", "content": QUESTION}]


def count(gateway: GatewayProcess, user: str, messages: list[dict[str, Any]], **headers: str) -> int:
    """The number that a client is given."""
    named = {"x-hearth-user": user} if user else {}
    with gateway.client(APP, **named, **headers) as client:
        body = {"model": "claude", "messages": messages, "tools": TOOLS["messages"]}
        answer = client.post("/v1/messages/count_tokens", json=body)
    assert answer.status_code == 200, answer.text
    return int(answer.json()["input_tokens"])


def providers(gateway: GatewayProcess, user: str, messages: list[dict[str, Any]]) -> int:
    """The provider's own number, as a call without memory is given it."""
    return count(gateway, user, messages, **{"x-hearth-memory": "off"})


def test_the_number_has_room_for_a_block(
    gateway: GatewayProcess, provider: ScriptedProvider, user: str
) -> None:
    """It is the provider's, and the budget that the call has; a block of the same call is no larger."""
    remember(gateway, user, "My dog is called Zebedee.")
    alone = providers(gateway, user, ASKED)
    assert [request.route for request in provider.side] == ["count_tokens"]
    assert count(gateway, user, ASKED) == alone + BUDGET
    assert count(gateway, user, ASKED, **{"x-hearth-budget": "300"}) == alone + 300
    answer = ask(gateway, user, QUESTION, route="messages", headers={"x-hearth-budget": "300"})
    assert 0 < int(answer.headers["x-hearth-tokens"]) <= 300


@pytest.mark.parametrize("headers", [{"x-hearth-memory": "write"}, {"x-hearth-budget": "0"}])
def test_without_recall_it_is_the_providers(
    gateway: GatewayProcess, provider: ScriptedProvider, user: str, headers: dict[str, str]
) -> None:
    """Where no block can come, nothing is added."""
    assert count(gateway, user, ASKED, **headers) == providers(gateway, user, ASKED)


def test_a_count_that_names_nobody_is_the_providers(
    gateway: GatewayProcess, provider: ScriptedProvider
) -> None:
    """An app's key that names no user has no memory, in a count as in a call."""
    assert count(gateway, "", ASKED) == providers(gateway, "", ASKED)


def test_in_a_tool_loop_it_has_the_block_that_stays(
    gateway: GatewayProcess, provider: ScriptedProvider, user: str
) -> None:
    """After a tool call the loop's own block goes back and no new one comes, so its size is what is added."""
    remember(gateway, user, "My dog is called Zebedee.")
    provider.reply(tools=[ToolCall(name="look", arguments={"step": 1}, id="call_1")])
    first = ask(gateway, user, ASKED, route="messages", tools=TOOLS["messages"])
    placed = int(first.headers["x-hearth-tokens"])
    assert placed > 0
    loop = [*ASKED, *called("messages", 1)]
    assert count(gateway, user, loop) == providers(gateway, user, loop) + placed


def test_a_count_writes_nothing(gateway: GatewayProcess, provider: ScriptedProvider, user: str) -> None:
    """Asking for a number is no conversation."""
    count(gateway, user, ASKED)
    assert exchanges(gateway, user) == []


def test_an_unknown_key_gets_no_number(gateway: GatewayProcess, provider: ScriptedProvider) -> None:
    """The route keeps its authentication."""
    with gateway.client("sk-unknown") as client:
        answer = client.post("/v1/messages/count_tokens", json={"model": "claude", "messages": ASKED})
    assert (answer.status_code, answer.headers["x-hearth-status"]) == (401, "off")
