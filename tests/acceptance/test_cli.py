"""The command line beside a real gateway: the chat, and the demo with its real model."""

from __future__ import annotations

import importlib.util
import json
import os
import pty
import select
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from hearth.gateway.commands.script import LINES
from hearth.testing.provider import ScriptedProvider
from tests.acceptance.conftest import APP, GatewayProcess
from tests.acceptance.talk import sent_text
from tests.servers import free_port

TERMINAL_SECONDS = 60
"""For which a terminal may show nothing new."""
HEARTH = [sys.executable, "-m", "hearth.gateway.cli"]
DEMO_SECONDS = 300


def environment(gateway: GatewayProcess) -> dict[str, str]:
    """The environment in which commands find the gateway."""
    return {**os.environ, "HEARTH_URL": gateway.url, "HEARTH_API_KEY": APP, "PYTHONIOENCODING": "utf-8"}


def chat(
    gateway: GatewayProcess, user: str, *typed: str, options: tuple[str, ...] = ("--model", "gpt")
) -> Any:
    """`hearth chat` with these lines on standard input."""
    return subprocess.run(
        [*HEARTH, "chat", "--user", user, *options],
        input="\n".join(typed),
        capture_output=True,
        encoding="utf-8",
        env=environment(gateway),
        timeout=60,
        check=False,
    )


def test_a_chat_shows_what_was_recalled_for_a_new_conversation(
    gateway: GatewayProcess, provider: ScriptedProvider, user: str
) -> None:
    """What was said before /new is recalled after it, shown with its words, and goes to the provider."""
    provider.reply(text="What a fine name! 🐕")
    done = chat(
        gateway, user, "My dog is called Zebedee.", "/new", "What is my dog called?", "/quit", "never sent"
    )
    assert (done.returncode, done.stderr) == (0, "A new conversation.\n")
    first, second = done.stdout.split("What a fine name! 🐕", 1)
    assert first.startswith("recalled 0 ")
    assert "recalled 1 " in second
    assert "My dog is called Zebedee." in second
    assert "Zebedee" in sent_text(provider.last.body)
    assert len(provider.last.body["messages"]) == 1
    assert "never sent" not in sent_text(provider.last.body)


def test_a_conversation_carries_its_own_history(
    gateway: GatewayProcess, provider: ScriptedProvider, user: str
) -> None:
    """The second turn of a conversation sends the first and its reply, in the same session."""
    provider.reply(text="Noted.")
    done = chat(gateway, user, "I keep bees.", "Since last year.", options=("--model", "gpt", "--json"))
    turns = [json.loads(line) for line in done.stdout.splitlines()]
    assert [turn["user"] for turn in turns] == ["I keep bees.", "Since last year."]
    assert turns[0]["reply"] == "Noted."
    assert turns[0]["session"] == turns[1]["session"]
    assert [message["role"] for message in provider.last.body["messages"]] == ["user", "assistant", "user"]
    with gateway.client(APP, **{"x-hearth-user": user}) as client:
        sessions = client.get("/memory/v1/sessions").json()["items"]
    assert [(session["id"], session["exchanges"]) for session in sessions] == [(turns[0]["session"], 2)]


def test_a_turn_that_fails_is_one_line_and_leaves_nothing(
    gateway: GatewayProcess, provider: ScriptedProvider, user: str
) -> None:
    """The provider's refusal is shown on stderr, the chat goes on without that turn, and ends with 1."""
    provider.reply(status=400, times=1)
    done = chat(gateway, user, "This fails.", "This works.")
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert [message["role"] for message in provider.last.body["messages"]] == ["user"]
    assert "This fails." not in sent_text(provider.last.body)


def test_a_chat_without_a_model_names_those_there_are(gateway: GatewayProcess, user: str) -> None:
    """Where the gateway has several models, the error lists them and says how to choose."""
    done = chat(gateway, user, "hello", options=())
    assert (done.returncode, done.stdout) == (2, "")
    assert "--model" in done.stderr
    assert "claude" in done.stderr


def test_a_chat_in_a_terminal_has_a_prompt(
    gateway: GatewayProcess, provider: ScriptedProvider, user: str
) -> None:
    """On a terminal the chat greets, prompts, streams the reply and ends at /quit."""
    provider.reply(text="Good evening.")
    master, slave = pty.openpty()
    with subprocess.Popen(
        [*HEARTH, "chat", "--user", user, "--model", "gpt"],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env={**environment(gateway), "TERM": "dumb"},
    ) as process:
        os.close(slave)
        terminal = Terminal(master)
        assert "/quit ends" in terminal.until("> ")
        os.write(master, b"Hello!\n")
        assert "recalled 0" in terminal.until("Good evening.")
        terminal.until("> ")
        os.write(master, b"/quit\n")
        assert process.wait(30) == 0
    os.close(master)


class Terminal:
    """What a terminal shows, read piece by piece."""

    def __init__(self, master: int) -> None:
        self._master, self._unread = master, ""

    def until(self, mark: str) -> str:
        """What follows up to and with the mark; an AssertionError where it does not come."""
        while mark not in self._unread:
            chunk = b""
            if select.select([self._master], [], [], TERMINAL_SECONDS)[0]:
                with suppress(OSError):
                    chunk = os.read(self._master, 4096)
            assert chunk, f"{mark!r} is not in {self._unread!r}"
            self._unread += chunk.decode("utf-8", "replace")
        end = self._unread.index(mark) + len(mark)
        shown, self._unread = self._unread[:end], self._unread[end:]
        return shown


@pytest.mark.skipif(importlib.util.find_spec("xllamacpp") is None, reason="the extra `demo` is not installed")
def test_the_demo_recalls_across_two_routes_without_any_key(tmp_path: Path) -> None:
    """`hearth demo --script` with the real model: a new conversation on another route knows the words."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    done = subprocess.run(
        [*HEARTH, "demo", "--script", "--json", "--port", str(free_port())],
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "TMPDIR": str(temporary)},
        timeout=DEMO_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    first, second = json.loads(done.stdout)["turns"]
    assert (first["route"], second["route"]) == tuple(line.path for line in LINES)
    assert first["recalled"] == []
    assert [item["record"]["text"] for item in second["recalled"]] == [LINES[0].text]
    assert first["reply"]
    assert second["reply"]
    assert list(temporary.glob("hearth-demo-*")) == []
