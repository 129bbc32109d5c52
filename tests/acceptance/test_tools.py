"""Tool loops, signed thinking and cached prefixes: what a block must leave alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any, Literal

import pytest

from hearth.testing.provider import ScriptedProvider
from hearth.testing.reply import Request, ToolCall
from tests.acceptance.conftest import GatewayProcess
from tests.acceptance.talk import BLOCK, RouteName, ask, exchanges, remember, remember_all, sent_text

Loop = Literal["chat", "messages", "responses"]
LOOPS: tuple[Loop, ...] = ("chat", "messages", "responses")
QUESTION = "What is the weather where my sister Ludmila lives?"
FACT = "My sister Ludmila lives in Valparaíso."
SCHEMA = {"type": "object", "properties": {"step": {"type": "integer"}}}
TOOLS: dict[Loop, list[dict[str, Any]]] = {
    "chat": [{"type": "function", "function": {"name": "look", "parameters": SCHEMA}}],
    "messages": [{"name": "look", "input_schema": SCHEMA}],
    "responses": [{"type": "function", "name": "look", "parameters": SCHEMA, "strict": False}],
}


def called(route: Loop, step: int) -> list[dict[str, Any]]:
    """The transcript of one tool call and its result, as the route writes it."""
    name, arguments, result = f"call_{step}", {"step": step}, f"Zanzibar forwards all mail: {step}"
    if route == "chat":
        function = {"name": "look", "arguments": json.dumps(arguments)}
        return [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": name, "type": "function", "function": function}],
            },
            {"role": "tool", "tool_call_id": name, "content": result},
        ]
    if route == "messages":
        use = {"type": "tool_use", "id": name, "name": "look", "input": arguments}
        back = {"type": "tool_result", "tool_use_id": name, "content": result}
        return [{"role": "assistant", "content": [use]}, {"role": "user", "content": [back]}]
    return [
        {"type": "function_call", "call_id": name, "name": "look", "arguments": json.dumps(arguments)},
        {"type": "function_call_output", "call_id": name, "output": result},
    ]


def transcript(request: Request) -> list[dict[str, Any]]:
    """The list that a route's body holds the conversation in."""
    found: list[dict[str, Any]] = request.body["input" if request.route == "responses" else "messages"]
    return found


def run_loop(
    gateway: GatewayProcess, provider: ScriptedProvider, user: str, route: Loop, *, steps: int, stream: bool
) -> list[dict[str, Any]]:
    """A user message and `steps` calls, the last one answered; returns the transcript that was sent last."""
    items: list[dict[str, Any]] = [{"role": "user", "content": QUESTION}]
    for step in range(1, steps + 1):
        last = step == steps
        tools = () if last else (ToolCall(name="look", arguments={"step": step}, id=f"call_{step}"),)
        provider.reply("Mild and sunny." if last else "ok", tools=tools)
        answer = ask(gateway, user, items, route=route, stream=stream, tools=TOOLS[route])
        assert answer.status == 200, answer.raw
        if not last:
            items += called(route, step)
    return items


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("route", LOOPS)
def test_case_32_every_step_of_a_loop_carries_the_same_block_in_the_same_place(
    gateway: GatewayProcess, provider: ScriptedProvider, user: str, route: Loop, stream: bool
) -> None:
    """Over five steps the user's message is the same to the byte, and no other message is touched."""
    remember(gateway, user, FACT)
    items = run_loop(gateway, provider, user, route, steps=5, stream=stream)
    sent = [transcript(request) for request in provider.requests]
    assert len(sent) == 5
    assert BLOCK in sent_text(sent[0][0])
    assert "Valparaíso" in sent_text(sent[0][0])
    for messages in sent:
        assert messages[0] == sent[0][0]
        assert BLOCK not in sent_text(messages[1:])
    assert len(sent[-1]) == len(items)
    (kept,) = exchanges(gateway, user)
    assert (kept["steps"], kept["state"], kept["user_text"]) == (5, "closed", QUESTION)
    assert kept["reply_text"] == "Mild and sunny."
    assert "Zanzibar" not in sent_text(kept)


@pytest.mark.parametrize("route", LOOPS)
def test_case_32_a_loop_without_a_block_stays_without(
    gateway: GatewayProcess, provider: ScriptedProvider, user: str, route: Loop
) -> None:
    """Where the first step found nothing, what becomes known amid the loop doesn't change later steps."""
    provider.reply(tools=[ToolCall(name="look", arguments={"step": 1}, id="call_1")])
    items: list[dict[str, Any]] = [{"role": "user", "content": QUESTION}]
    ask(gateway, user, items, route=route, tools=TOOLS[route])
    remember(gateway, user, FACT)
    ask(gateway, user, [*items, *called(route, 1)], route=route, tools=TOOLS[route])
    assert all(BLOCK not in sent_text(request.body) for request in provider.requests)


@pytest.mark.parametrize("route", LOOPS)
def test_case_32_tool_results_alone_are_no_question(
    gateway: GatewayProcess, provider: ScriptedProvider, user: str, route: Loop
) -> None:
    """A result that names a memory recalls nothing, and gets neither a block nor a message after it."""
    remember(gateway, user, "Zanzibar forwards all mail to my sister Ludmila.")
    history = [{"role": "user", "content": "42?"}, *called(route, 1)]
    answer = ask(gateway, user, history, route=route, tools=TOOLS[route])
    assert answer.status == 200, answer.raw
    assert BLOCK not in sent_text(provider.last.body)
    assert len(transcript(provider.last)) == len(history)


@pytest.mark.parametrize("route", LOOPS)
def test_case_51_nothing_of_a_tool_result_is_remembered(
    gateway: GatewayProcess, provider: ScriptedProvider, user: str, route: Loop
) -> None:
    """What a tool says is not the user's word: a later question about it recalls none of it."""
    run_loop(gateway, provider, user, route, steps=2, stream=False)
    provider.clear()
    ask(gateway, user, "Does Zanzibar forward all mail?", route=route)
    assert sent_text(provider.last.body).count("Zanzibar") == 1


@pytest.mark.parametrize("route", LOOPS)
def test_case_33_all_but_the_block_is_deep_equal(
    gateway: GatewayProcess, provider: ScriptedProvider, user: str, route: Loop
) -> None:
    """Tools, unknown keys and a history with calls are what the same call sends without memory."""
    remember(gateway, user, FACT)
    history = [
        {"role": "user", "content": "Hello, is it raining?"},
        *called(route, 1),
        {"role": "assistant", "content": "No."},
        {"role": "user", "content": QUESTION},
    ]
    fields: dict[str, Any] = {"tools": TOOLS[route], "x_unknown": {"deep": [1, None, "é"]}}
    ask(gateway, user, history, route=route, headers={"x-hearth-memory": "off"}, **fields)
    ask(gateway, user, history, route=route, **fields)
    plain, with_block = provider.requests
    assert BLOCK in sent_text(with_block.body)
    sent, unchanged = transcript(with_block), transcript(plain)
    assert sent[:-1] == unchanged[:-1]
    assert sent[-1] != unchanged[-1]
    assert {**with_block.body, "messages": 0, "input": 0} == {**plain.body, "messages": 0, "input": 0}


def test_case_36_signed_thinking_of_an_agent_passes_the_providers_check(
    gateway: GatewayProcess, provider: ScriptedProvider, user: str
) -> None:
    """Thinking with odd spaces, its signature and a redacted block arrive deep-equal, a block beside them."""
    remember(gateway, user, FACT)
    thinking = "  Ludmila … \n\n\tValparaíso?  \u200b名前 "
    blocks = [
        {"type": "redacted_thinking", "data": provider.redact("hidden")},
        {"type": "thinking", "thinking": thinking, "signature": provider.sign(thinking)},
        {"type": "text", "text": "Let me look."},
        {"type": "tool_use", "id": "call_1", "name": "look", "input": {"step": 1}},
    ]
    first = [{"role": "user", "content": QUESTION}]
    fields: dict[str, Any] = {
        "tools": TOOLS["messages"],
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "max_tokens": 2000,
    }
    provider.reply("Let me look.", tools=[ToolCall(name="look", arguments={"step": 1}, id="call_1")])
    ask(gateway, user, first, route="messages", **fields)
    history = [*first, {"role": "assistant", "content": blocks}, called("messages", 1)[1]]
    answer = ask(gateway, user, history, route="messages", **fields)
    assert answer.status == 200, answer.raw
    sent = provider.last.body["messages"]
    assert BLOCK in sent_text(sent[0])
    assert sent[1]["content"] == blocks
    assert "名前" not in sent_text(exchanges(gateway, user)[0])


TOPICS = (
    ("My dog is called Zebedee.", "What is my dog called?"),
    ("My sister Ludmila lives in Valparaíso.", "Where does my sister Ludmila live?"),
    ("I am allergic to kiwi fruit.", "Which fruit am I allergic to?"),
    ("My bicycle is painted turquoise.", "Which colour is my bicycle painted?"),
    ("My piano teacher is Mr Okonkwo.", "Who is my piano teacher?"),
    ("My passport expires in March 2031.", "When does my passport expire?"),
)


def _marked(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}


def _markers(body: Any) -> int:
    return sent_text(body).count('"cache_control"')


def _until_block(message: dict[str, Any]) -> list[Any]:
    """The parts of a user message before its block."""
    return [part for part in message["content"] if BLOCK not in sent_text(part)]


def test_case_38_the_cached_prefix_stays(
    gateway: GatewayProcess, provider: ScriptedProvider, user: str
) -> None:
    """Over six turns the prompt is the same up to the last turn's block, and keeps its four marks."""
    remember_all(gateway, user, [fact for fact, _ in TOPICS])
    system = [_marked("You are brief."), {"type": "text", "text": "You are kind."}]
    tools = [{**TOOLS["messages"][0], "cache_control": {"type": "ephemeral"}}]
    history: list[dict[str, Any]] = []
    for number, (_, question) in enumerate(TOPICS):
        if number == 3:
            remember(gateway, user, "My favourite opera is Rusalka.")
        marked = [_marked(part) for part in ("Hello.", question)]
        messages = [*history, {"role": "user", "content": marked}]
        provider.reply(f"Answer {number}.")
        reply = ask(gateway, user, messages, route="messages", system=system, tools=tools)
        assert reply.recalled >= 1
        plain = [{"type": "text", "text": part["text"]} for part in marked]
        history += [{"role": "user", "content": plain}, {"role": "assistant", "content": f"Answer {number}."}]
    bodies = [request.body for request in provider.requests]
    for body in bodies:
        assert (body["system"], body["tools"]) == (system, tools)
        assert _markers(body) == 4
        assert sent_text(body["messages"][:-1]).count(BLOCK) == 0
    for before, after in pairwise(bodies):
        turns = len(before["messages"])
        assert after["messages"][: turns - 1] == before["messages"][:-1]
        shared = [part["text"] for part in _until_block(before["messages"][-1])]
        assert [part["text"] for part in after["messages"][turns - 1]["content"]] == shared


@pytest.mark.parametrize("route", ["chat", "responses"])
def test_case_38_instructions_and_history_of_openais_routes_stay(
    gateway: GatewayProcess, provider: ScriptedProvider, user: str, route: RouteName
) -> None:
    """Over six turns the body agrees with the one before it on all that stood before that turn's block."""
    remember_all(gateway, user, [fact for fact, _ in TOPICS])
    history: list[dict[str, Any]] = [{"role": "system", "content": "You are brief."}]
    for number, (_, question) in enumerate(TOPICS):
        provider.reply(f"Answer {number}.")
        messages = [*history, {"role": "user", "content": question}]
        assert ask(gateway, user, messages, route=route).recalled >= 1
        history = [*messages, {"role": "assistant", "content": f"Answer {number}."}]
    sent = [transcript(request) for request in provider.requests]
    for before, after in pairwise(sent):
        turns = len(before)
        assert after[: turns - 1] == before[:-1]
        assert before[-1]["content"].startswith(after[turns - 1]["content"])


LABELS: dict[Loop, Callable[[Any], str]] = {
    "chat": lambda message: str(message["role"]),
    "messages": lambda message: str(message["role"]),
    "responses": lambda item: str(item.get("type") or item["role"]),
}


@pytest.mark.parametrize("route", LOOPS)
def test_the_turn_after_a_loop_has_its_blocks_where_they_were(
    gateway: GatewayProcess, provider: ScriptedProvider, user: str, route: Loop
) -> None:
    """After tool calls the loop's block goes back byte for byte, so that the provider's cache holds."""
    remember(gateway, user, FACT)
    items = run_loop(gateway, provider, user, route, steps=3, stream=False)
    first = transcript(provider.last)
    remember(gateway, user, "My dog is called Zebedee.")
    items += [
        {"role": "assistant", "content": "Mild and sunny."},
        {"role": "user", "content": "And what is my dog called?"},
    ]
    ask(gateway, user, items, route=route, tools=TOOLS[route])
    sent = transcript(provider.last)
    assert sent[: len(first)] == first
    assert "Zebedee" in sent_text(sent[-1])
    assert [LABELS[route](item) for item in sent] == [LABELS[route](item) for item in items]
