"""Ten turns of each known client program, rebuilt from its public sources, through the real gateway."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import pytest

from hearth.testing.provider import ScriptedProvider
from hearth.testing.reply import Reply, Request, ToolCall
from tests.acceptance.conftest import APP, GatewayProcess
from tests.acceptance.talk import BLOCK, MODELS, PATHS, ask, exchanges, sent_text, sessions

FIXTURES = Path(__file__).parents[1] / "fixtures" / "clients"
CLIENTS = ("claude-code", "codex", "open-webui", "librechat", "langchain", "vercel-ai", "aider", "llm")
COMPACTING = ("claude-code", "codex")
"""Compacted in the middle: nothing but an id then tells that it is the same session."""
USER, ACCOUNT = "u-4711", "7d1f0c3a-52b4-4b0e-8a55-0f6f1f9a2b11"
SESSION = "0b9e1f5c-6a1d-4d8e-9d4e-2f3a4b5c6d7e"
ID_FIELDS = ("metadata", "prompt_cache_key", "user")

Call = dict[str, Any]


@dataclass(frozen=True)
class Conversation:
    """What was sent, what the provider got, and what the client got."""

    client: str
    named: bool
    """True if the client's own ids of user and session were sent."""
    user: str
    calls: list[Call]
    received: list[Request]
    replies: list[tuple[int, dict[str, str], bytes]]

    def own(self) -> list[tuple[Call, Request, dict[str, str]]]:
        """The calls of the conversation itself, each with what the provider got and the reply's headers."""
        rows = zip(self.calls, self.received, self.replies, strict=True)
        return [(c, got, reply[1]) for c, got, reply in rows if not c["expect"]["housekeeping"]]


def calls_of(client: str, user: str) -> list[Call]:
    """The fixture under ids that no other test has."""
    session = str(uuid5(NAMESPACE_URL, user))
    raw = (FIXTURES / f"{client}.json").read_text(encoding="utf-8")
    for old, new in ((USER, user), (ACCOUNT, user), (SESSION, session)):
        raw = raw.replace(old, new)
    found: list[Call] = json.loads(raw)
    for call in found:
        _sign(call["body"])
    return found


def _sign(body: dict[str, Any]) -> None:
    """Thinking blocks bear this provider's signature: it refuses all others, as the real one does."""
    for message in body.get("messages", ()):
        for part in message["content"] if isinstance(message.get("content"), list) else ():
            if part.get("type") == "thinking":
                part["signature"] = ScriptedProvider.sign(part["thinking"])


def without_ids(call: Call) -> Call:
    """The call as a program of the same habits sends it that names neither user nor session."""
    headers = {name: value for name, value in call["headers"].items() if name.lower() == "user-agent"}
    body = {name: value for name, value in call["body"].items() if name not in ID_FIELDS}
    return {**call, "headers": headers, "body": body}


def send(gateway: GatewayProcess, call: Call, extra: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
    """Send a call as its client does, under the model name that the gateway serves on that route."""
    body = {**call["body"], "model": MODELS[call["route"]]}
    with gateway.client(APP, **{**call["headers"], **extra}) as client:
        reply = client.post(PATHS[call["route"]], json=body)
    return reply.status_code, dict(reply.headers), reply.content


def scripted(reply: dict[str, Any]) -> Reply:
    """A fixture's reply as the provider gives it."""
    tools = tuple(ToolCall(name=tool["name"], arguments=tool["arguments"]) for tool in reply["tools"])
    return Reply(text=reply["text"], tools=tools)


@pytest.fixture(
    scope="module",
    params=[(client, named) for client in CLIENTS for named in (True, False)],
    ids=lambda param: f"{param[0]}-{'named' if param[1] else 'unnamed'}",
)
def talk(
    request: pytest.FixtureRequest, gateway: GatewayProcess, _provider: ScriptedProvider
) -> Conversation:
    """A client's conversation, held once for all tests that look at it."""
    client, named = request.param
    user = f"{client}-{'named' if named else 'unnamed'}"
    calls = calls_of(client, user)
    calls = calls if named else [without_ids(call) for call in calls]
    _provider.clear()
    answers = iter([scripted(call["reply"]) for call in calls])
    _provider.answer = lambda _: next(answers)
    named_by_client = named and calls[0]["expect"]["user"]
    extra = {} if named_by_client else {"x-hearth-user": user}
    replies = [send(gateway, call, extra) for call in calls]
    received = _provider.requests
    _provider.answer = None
    return Conversation(client, named, user, calls, received, replies)


def test_every_call_is_answered(talk: Conversation) -> None:
    """No call of the client is refused, and none is made twice."""
    assert [raw for status, _, raw in talk.replies if status != 200] == []
    assert len(talk.received) == len(talk.calls)


def test_case_08_each_message_is_stored_once(talk: Conversation, gateway: GatewayProcess) -> None:
    """Through resent histories, tool loops, trims and compaction, ten user messages are ten exchanges."""
    said = dict.fromkeys(call["expect"]["user_text"] for call, _, _ in talk.own())
    kept = exchanges(gateway, talk.user)
    assert [exchange["user_text"] for exchange in kept] == list(said)
    assert {exchange["state"] for exchange in kept} == {"closed"}


def test_case_05_the_conversation_is_one_session(talk: Conversation, gateway: GatewayProcess) -> None:
    """Each call finds its session; a compaction under no id at all opens one more."""
    found = list(dict.fromkeys(headers["x-hearth-session"] for _, _, headers in talk.own()))
    expected = 2 if talk.client in COMPACTING and not talk.named else 1
    assert len(found) == expected
    assert sorted(found) == sorted(session["id"] for session in sessions(gateway, talk.user))


def test_the_clients_own_calls_pass_untouched(talk: Conversation, gateway: GatewayProcess) -> None:
    """Titles, tags, probes, commit messages and summaries go through as sent and leave nothing behind."""
    stored = sent_text({"items": exchanges(gateway, talk.user)})
    rows = zip(talk.calls, talk.received, talk.replies, strict=True)
    for call, received, (_, headers, _) in rows:
        if call["expect"]["housekeeping"]:
            assert (headers["x-hearth-status"], headers["x-hearth-reason"]) == ("off", "housekeeping")
            assert BLOCK not in sent_text(received.body)
            assert not call["reply"]["text"].strip("{}") or call["reply"]["text"] not in stored


def test_case_32_the_steps_of_a_loop_carry_one_block(talk: Conversation) -> None:
    """Within an exchange each request holds the same user message, block included, and no block elsewhere."""
    newest: dict[int, set[str]] = {}
    for call, received, _ in talk.own():
        blocks = sent_text(received.body).count(BLOCK)
        newest.setdefault(call["expect"]["exchange"], set()).add(_newest_block(received.body))
        assert blocks <= call["expect"]["exchange"]
    assert all(len(texts) == 1 for texts in newest.values())


def _newest_block(body: dict[str, Any]) -> str:
    """The newest block and what stands behind it in its message; empty where there is none."""
    items = body.get("messages") or body["input"]
    users = [sent_text(item) for item in items if item.get("role") == "user"]
    blocks = [text[text.index(BLOCK) :] for text in users if BLOCK in text]
    return blocks[-1] if blocks else ""


def test_a_later_session_knows_what_was_said(
    talk: Conversation, gateway: GatewayProcess, provider: ScriptedProvider
) -> None:
    """What the user told the client comes back in a new conversation, in the user's own words."""
    gateway.drain()
    answer = ask(gateway, talk.user, "Which food must I avoid? Can I eat peanuts?", route="messages")
    assert answer.session not in {headers["x-hearth-session"] for _, _, headers in talk.own()}
    assert "I can't eat peanuts, keep that in mind" in sent_text(provider.last.body)
