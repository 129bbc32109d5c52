"""The demo's script: something said on one route, asked about in a new conversation on another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx

from hearth.gateway.commands.chat import recalled_lines
from hearth.gateway.commands.client import Answer, Rest, read, unreachable
from hearth.gateway.commands.output import note, one_line, say

REPLY_TOKENS = 40
"""Length of a reply: enough for a sentence, even on a slow machine."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """One user message of the script, and the route it goes to."""

    path: str
    api: str
    """Whose wire format that is."""
    text: str


LINES = (
    Line(path="/v1/chat/completions", api="OpenAI", text="My name is Ada, and my dog is called Zebedee."),
    Line(path="/v1/messages", api="Anthropic", text="What is the name of my dog?"),
)


@dataclass(frozen=True, kw_only=True)
class Spoken:
    """A line with its reply and what was recalled for it."""

    line: Line
    reply: str
    headers: httpx.Headers
    recalled: list[Answer]

    def document(self) -> Answer:
        """The turn as JSON."""
        return {
            "route": self.line.path,
            "user": self.line.text,
            "reply": self.reply,
            "status": self.headers.get("x-hearth-status", "off"),
            "recalled": self.recalled,
        }


def play(rest: Rest, model: str) -> Iterator[Spoken]:
    """Each line of the script in a conversation of its own. Raises GatewayError."""
    for line in LINES:
        body = {
            "model": model,
            "max_tokens": REPLY_TOKENS,
            "temperature": 0,
            "messages": [{"role": "user", "content": line.text}],
        }
        try:
            answer = rest.http.post(line.path, json=body)
        except httpx.HTTPError as error:
            raise unreachable(rest.url, error) from error
        reply = _text(read(answer))
        yield Spoken(line=line, reply=reply, headers=answer.headers, recalled=rest.recalled(answer.headers))


def show(spoken: Spoken) -> None:
    """Print one turn: the route, both sides, and what was recalled in between."""
    note(f"\nPOST {spoken.line.path} ({spoken.line.api}'s format), a new conversation", style="bold")
    say(f"user      {spoken.line.text}")
    for line in recalled_lines(spoken.headers, spoken.recalled):
        say(f"memory    {line}", style="cyan")
    say(f"model     {one_line(spoken.reply)}")


def _text(body: dict[str, Any]) -> str:
    """The visible text of a chat completion or an Anthropic message."""
    if "choices" in body:
        return str(body["choices"][0]["message"].get("content") or "")
    return "".join(part.get("text", "") for part in body.get("content", []))
