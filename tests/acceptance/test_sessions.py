"""Sessions, retries and branches: a conversation is found again and each message is stored once."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from hearth.testing.provider import ScriptedProvider
from tests.acceptance.conftest import ALICE, APP, BOB, GatewayProcess, document, start, stop, wait_until
from tests.acceptance.talk import BLOCK, Answer, RouteName, ask, exchanges, sent_text, sessions

MAIN: tuple[RouteName, ...] = ("chat", "messages", "responses")
Message = dict[str, Any]


@dataclass
class Chat:
    """A client that keeps its conversation and sends all of it each time."""

    gateway: GatewayProcess
    provider: ScriptedProvider
    user: str
    route: RouteName = "chat"
    key: str = APP
    messages: list[Message] = field(default_factory=list)

    def say(self, text: str, reply: str = "I see.", **fields: Any) -> Answer:
        """One turn."""
        self.messages.append({"role": "user", "content": text})
        return self.send(reply, **fields)

    def send(self, reply: str = "I see.", *, keep: int | None = None, **fields: Any) -> Answer:
        """Send what there is, or its last `keep` messages, and keep the reply."""
        self.provider.reply(reply)
        sent = self.messages[-keep:] if keep else list(self.messages)
        answer = ask(self.gateway, self.user, sent, route=self.route, key=self.key, **fields)
        assert answer.status == 200, answer.raw
        self.messages.append({"role": "assistant", "content": reply})
        return answer


@pytest.fixture
def chat(gateway: GatewayProcess, provider: ScriptedProvider, user: str) -> Chat:
    """A new conversation of a new user."""
    return Chat(gateway, provider, user)


def kept(gateway: GatewayProcess, user: str, *states: str) -> list[tuple[str, str]]:
    """(user text, reply) of the user's exchanges in those states (default: closed), oldest first."""
    found = exchanges(gateway, user)
    return [(e["user_text"], e["reply_text"]) for e in found if e["state"] in (states or ("closed",))]


# -- one conversation, one session -----------------------------------------------------------------------


@pytest.mark.parametrize("route", MAIN)
def test_case_05_a_growing_conversation_keeps_its_session(chat: Chat, route: RouteName) -> None:
    """From one turn to four, with the whole history resent, the session stays."""
    chat.route = route
    found = [chat.say(f"This is sentence number {number}.").session for number in range(4)]
    assert len(set(found)) == 1
    assert len(sessions(chat.gateway, chat.user)) == 1


@pytest.mark.parametrize("route", MAIN)
def test_a_conversation_keeps_its_session_while_the_log_takes_nothing(chat: Chat, route: RouteName) -> None:
    """Turns that wait in the spool are known: the next ones go on with them, and each is stored once."""
    chat.route = route
    first = chat.say("I keep bees in Bern.").session
    with closing(sqlite3.connect(chat.gateway.home / "log.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        found = [chat.say(text).session for text in ("How many hives do I need?", "And which honey?")]
        other.execute("ROLLBACK")
    assert found == [first, first]
    wait_until(lambda: len(kept(chat.gateway, chat.user)) == 3)
    assert [session["exchanges"] for session in sessions(chat.gateway, chat.user)] == [3]


def test_a_conversation_that_changes_its_provider_keeps_its_session(chat: Chat) -> None:
    """Begun in chat, gone on with in messages and in responses, it is one session with three exchanges."""
    found = []
    for route, text in zip(MAIN, ("I keep bees.", "They are in Bern.", "How many hives?"), strict=True):
        chat.route = route
        found.append(chat.say(text, f"You said: {text}").session)
    assert len(set(found)) == 1
    assert [text for text, _ in kept(chat.gateway, chat.user)] == [
        "I keep bees.",
        "They are in Bern.",
        "How many hives?",
    ]


@pytest.mark.parametrize("route", MAIN)
def test_case_05_a_greeting_names_no_session(
    gateway: GatewayProcess, provider: ScriptedProvider, route: RouteName
) -> None:
    """Two keys with the same system prompt and the same "hi" have nothing in common."""
    opening = [{"role": "system", "content": "You are kind."}, {"role": "user", "content": "hi"}]
    messages = opening[1:] if route == "messages" else opening
    extra = {"system": "You are kind."} if route == "messages" else {}
    one, other = (ask(gateway, "", messages, route=route, key=key, **extra) for key in (ALICE, BOB))
    assert one.session != other.session
    assert BLOCK not in sent_text(provider.last.body)


@pytest.mark.parametrize("route", MAIN)
def test_case_05_equal_openings_are_two_conversations(
    gateway: GatewayProcess, provider: ScriptedProvider, user: str, route: RouteName
) -> None:
    """What two chats say after 300 equal characters, or after the same greeting, stays apart."""
    reminder = f"<system-reminder>{'Be brief. ' * 40}</system-reminder>\n"
    one, other = (Chat(gateway, provider, user, route) for _ in range(2))
    first = [
        talk.say(f"{reminder}{text}").session
        for talk, text in ((one, "I keep bees."), (other, "I fly kites."))
    ]
    second = [talk.say(text).session for talk, text in ((one, "In Bern."), (other, "In Rome."))]
    assert first == second
    assert len(set(first)) == 2


def test_case_05_the_same_words_twice_are_two_exchanges(
    gateway: GatewayProcess, provider: ScriptedProvider, user: str
) -> None:
    """A job that sends one prompt again and again has a session and an exchange each time: no retry."""
    found = [
        Chat(gateway, provider, user).say("Write the daily report.", f"Report {n}.").session for n in range(3)
    ]
    assert len(set(found)) == 3
    assert [reply for _, reply in kept(gateway, user)] == ["Report 0.", "Report 1.", "Report 2."]


def test_case_05_the_header_wins_and_is_the_keys_own(
    gateway: GatewayProcess, provider: ScriptedProvider, chat: Chat
) -> None:
    """`x-hearth-session` beats what the history says, and under another key the same value shares nothing."""
    chat.say("I keep bees.")
    answer = chat.say("In Bern.", headers={"x-hearth-session": f"own-{chat.user}"})
    assert answer.session == f"own-{chat.user}"
    provider.clear()
    foreign = ask(gateway, "", "Where are they?", key=BOB, headers={"x-hearth-session": answer.session})
    assert foreign.session == answer.session
    assert "Bern" not in sent_text(provider.last.body)
    assert "bees" not in sent_text(provider.last.body)
    with gateway.client(BOB) as client:
        listed = client.get("/memory/v1/exchanges", params={"session": answer.session}).json()["items"]
    assert [item["user_text"] for item in listed] == ["Where are they?"]


@pytest.mark.parametrize("route", MAIN)
def test_a_client_that_keeps_its_last_messages_only_stays_in_its_session(
    chat: Chat, route: RouteName
) -> None:
    """With a window of three messages every call begins differently and still is the same conversation."""
    chat.route = route
    found = []
    for number in range(6):
        chat.messages.append({"role": "user", "content": f"This is sentence number {number}."})
        found.append(chat.send(f"Answer number {number}.", keep=3).session)
    assert len(set(found)) == 1
    assert len(kept(chat.gateway, chat.user)) == 6


def test_a_client_that_rewrites_replies_stays_in_its_session(chat: Chat) -> None:
    """Trimmed, re-spaced and cut replies in the history, or none of their words, change nothing."""
    first = chat.say("I keep seven hives of bees near Bern.", "Lovely!\n\n- Bees\n- Bern")
    chat.messages[-1]["content"] = "  Lovely! - Bees - Bern"
    second = chat.say("They made forty jars of honey this year.", "A rich harvest.")
    chat.messages[-1]["content"] = "[reply removed]"
    third = chat.say("How do I sell them?")
    assert first.session == second.session == third.session
    assert len(kept(chat.gateway, chat.user)) == 3


# -- resent histories and restarts -----------------------------------------------------------------------


def test_case_08_a_restart_in_mid_session(provider: ScriptedProvider, tmp_path: Path, user: str) -> None:
    """Three turns, a restart, two more with all their history: five exchanges in order, one session."""
    home = tmp_path / "data"
    gateway = start(document(provider, home), home)
    chat = Chat(gateway, provider, user)
    said = [
        "I keep bees.",
        "They are near Bern.",
        "I have seven hives.",
        "Honey is due.",
        "When do I harvest?",
    ]
    found = [chat.say(text, f"You said: {text}").session for text in said[:3]]
    assert stop(gateway) == 0
    chat.gateway = gateway = start(document(provider, home), home)
    try:
        found += [chat.say(text, f"You said: {text}").session for text in said[3:]]
        assert len(set(found)) == 1
        assert kept(gateway, user) == [(text, f"You said: {text}") for text in said]
        assert [session["exchanges"] for session in sessions(gateway, user)] == [5]
        later = ask(gateway, user, "How many hives do I have?")
        assert later.session not in found
        assert "seven hives" in sent_text(provider.last.body)
    finally:
        assert stop(gateway) == 0


# -- retries ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("route", MAIN)
@pytest.mark.parametrize("mark", [("x-stainless-retry-count", "1"), ("idempotency-key", "one-key")])
def test_a_marked_retry_replaces_its_first_attempt(
    gateway: GatewayProcess, provider: ScriptedProvider, user: str, route: RouteName, mark: tuple[str, str]
) -> None:
    """A client that says that it tries again leaves one exchange, with the newest reply."""
    first_mark = {mark[0]: "0"} if mark[1] == "1" else dict([mark])
    headers = [
        {name: f"{user}{value}" if "key" in name else value for name, value in given.items()}
        for given in (first_mark, dict([mark]))
    ]
    provider.reply("First.")
    first = ask(gateway, user, "I keep bees.", route=route, headers=headers[0])
    provider.reply("Second.")
    second = ask(gateway, user, "I keep bees.", route=route, headers=headers[1])
    assert first.session == second.session
    assert kept(gateway, user, "closed", "open", "failed") == [("I keep bees.", "Second.")]


@pytest.mark.parametrize("route", MAIN)
def test_a_retry_of_the_sdk_after_a_fault_is_one_exchange(
    gateway: GatewayProcess, provider: ScriptedProvider, user: str, route: RouteName
) -> None:
    """The provider fails once; the SDK tries again by itself; one exchange with the reply is left."""
    provider.reply(status=500)
    provider.reply("Noted.")
    headers = {"x-hearth-user": user}
    messages: Any = [{"role": "user", "content": "I keep bees."}]
    if route == "messages":
        with anthropic.Anthropic(base_url=gateway.url, api_key=APP, default_headers=headers) as claude:
            claude.messages.create(model="claude", max_tokens=50, messages=messages)
    else:
        with openai.OpenAI(base_url=f"{gateway.url}/v1", api_key=APP, default_headers=headers) as gpt:
            if route == "chat":
                gpt.chat.completions.create(model="gpt", messages=messages)
            else:
                gpt.responses.create(model="gpt", input=messages)
    assert len(provider.requests) == 2
    assert kept(gateway, user, "closed", "open", "failed") == [("I keep bees.", "Noted.")]
    assert len(sessions(gateway, user)) == 1


# -- regenerated replies and branches --------------------------------------------------------------------


@pytest.mark.parametrize("route", MAIN)
def test_a_regenerated_reply_takes_the_place_of_the_old_one(chat: Chat, route: RouteName) -> None:
    """The same history sent again for another reply leaves one exchange, with the newest reply."""
    chat.route = route
    chat.say("I keep bees.")
    chat.say("Name one of them.", "Call her Ada.")
    chat.messages.pop()
    chat.send("Call her Zoe.")
    chat.say("A good name.")
    assert [reply for _, reply in kept(chat.gateway, chat.user)] == ["I see.", "Call her Zoe.", "I see."]
    assert len(sessions(chat.gateway, chat.user)) == 1
    answer = ask(chat.gateway, chat.user, "What is the name of one of my bees?", route=route)
    assert answer.recalled
    assert "Ada" not in sent_text(chat.provider.last.body)


def test_a_first_reply_is_regenerated_where_the_session_has_a_name(chat: Chat) -> None:
    """Without a history a repeated request is a new reply only in a session that the client names."""
    named = {"x-hearth-session": f"own-{chat.user}"}
    chat.say("Name my first bee.", "Call her Ada.", headers=named)
    chat.messages.pop()
    chat.send("Call her Zoe.", headers=named)
    assert [reply for _, reply in kept(chat.gateway, chat.user)] == ["Call her Zoe."]


@pytest.mark.parametrize("route", MAIN)
def test_an_edited_message_makes_its_first_form_inactive(chat: Chat, route: RouteName) -> None:
    """After an edit the old branch is not recalled; gone on with again, it is, and the other one is not."""
    chat.route = route
    chat.say("Let us talk about my home.")
    before = list(chat.messages)
    chat.say("I live in Bern.", "A fine town.")
    old = list(chat.messages)
    chat.messages = before
    chat.say("I live in Basel.", "On the Rhine.")
    assert _where(chat, route) == {"Basel"}
    assert ("I live in Bern.", "A fine town.") in kept(chat.gateway, chat.user, "inactive")
    chat.messages = old
    chat.say("And I like it there.")
    assert _where(chat, route) == {"Bern"}
    assert len([s for s in sessions(chat.gateway, chat.user) if s["exchanges"] > 1]) == 1


def _where(chat: Chat, route: RouteName) -> set[str]:
    """The towns that a new conversation is told of."""
    chat.gateway.drain()
    ask(chat.gateway, chat.user, "In which town do I live?", route=route)
    return _named(sent_text(chat.provider.last.body), ("Bern", "Basel"))


def _named(text: str, towns: Sequence[str]) -> set[str]:
    return {town for town in towns if town in text}
