"""`hearth chat`: a conversation in the terminal that shows what was recalled for each turn."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any
from uuid import uuid4

import httpx
import typer

from hearth.gateway.commands.client import (
    CONNECT_SECONDS,
    Answer,
    GatewayError,
    Rest,
    gateway,
    read,
    unreachable,
)
from hearth.gateway.commands.options import DEFAULT_URL, ApiKey, Json, Url, User
from hearth.gateway.commands.output import (
    FAILED,
    err,
    moment,
    note,
    one_line,
    out,
    plain,
    say,
    say_json,
    spoken,
)

CHAT = "/v1/chat/completions"
MODEL_SECONDS = 300.0
"""A model's longest silence."""
NAMED_MODELS = 8
"""Models that an error names."""
HELP = "/new starts a new conversation, /quit ends."


def chat(
    model: Annotated[
        str, typer.Option(help="The model; the gateway's own where it has just one.", show_default=False)
    ] = "",
    session: Annotated[
        str, typer.Option(help="Go on in this conversation; else a new one.", show_default=False)
    ] = "",
    user: User = "",
    url: Url = DEFAULT_URL,
    key: ApiKey = "",
    as_json: Json = False,
) -> None:
    """Chat in the terminal; each turn shows what was recalled for it. With --json, one line of JSON a turn.

    /new starts a new conversation, /quit ends. Lines from a pipe are turns too.

    Example: hearth chat --model gpt-4o-mini
    """
    with gateway(url, key, user) as rest:
        conversation = Conversation(rest, model or only_model(rest), session)
        if sys.stdin.isatty():
            note(f"{conversation.model} at {rest.url}. {HELP}")
        failed = False
        for line in _lines():
            if line == "/new":
                conversation = conversation.anew()
                note("A new conversation.")
            elif line.startswith("/"):
                note(HELP)
            else:
                failed = not _turn(conversation, line, as_json=as_json) or failed
    raise typer.Exit(FAILED if failed else 0)


@dataclass
class Conversation:
    """A transcript that grows, under one session id."""

    rest: Rest
    model: str
    session: str = ""
    messages: list[dict[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.session = self.session or uuid4().hex

    def anew(self) -> Conversation:
        """A new conversation with the same model."""
        return Conversation(self.rest, self.model)

    def ask(self, text: str) -> Reply:
        """Send the user's words. Nothing stays of a turn that fails. Raises GatewayError."""
        request = self.rest.http.build_request(
            "POST",
            CHAT,
            json={
                "model": self.model,
                "stream": True,
                "messages": [*self.messages, {"role": "user", "content": text}],
            },
            headers={"x-hearth-session": self.session},
            timeout=httpx.Timeout(MODEL_SECONDS, connect=CONNECT_SECONDS),
        )
        try:
            answer = self.rest.http.send(request, stream=True)
            if not answer.is_success:
                answer.read()
                read(answer)
        except httpx.HTTPError as error:
            raise unreachable(self.rest.url, error) from error
        return Reply(self, text, answer)


class Reply:
    """A reply while it streams. What it has said when it ends, or is left, joins the transcript."""

    def __init__(self, conversation: Conversation, asked: str, answer: httpx.Response) -> None:
        self._conversation, self._asked, self._answer = conversation, asked, answer
        self.text = ""

    @property
    def headers(self) -> httpx.Headers:
        """The reply's headers."""
        return self._answer.headers

    def pieces(self) -> Iterator[str]:
        """The reply's text as it comes. Raises GatewayError."""
        try:
            for line in self._answer.iter_lines():
                piece = _piece(line)
                self.text += piece
                if piece:
                    yield piece
        except httpx.HTTPError as error:
            raise unreachable(self._conversation.rest.url, error) from error
        finally:
            self._answer.close()
            if self.text:
                said = [("user", self._asked), ("assistant", self.text)]
                self._conversation.messages += [{"role": role, "content": text} for role, text in said]


def only_model(rest: Rest) -> str:
    """The gateway's model, where it has just one. Raises GatewayError that names some of several."""
    try:
        listed = read(rest.http.get("/v1/models"))["data"]
    except httpx.HTTPError as error:
        raise unreachable(rest.url, error) from error
    names = sorted(entry["id"] for entry in listed if "*" not in entry["id"])
    if len(names) == 1:
        return str(names[0])
    some = ", ".join(names[:NAMED_MODELS]) + (", …" if len(names) > NAMED_MODELS else "")
    raise GatewayError(f"say which model, with --model: {some or 'this gateway lists none'}", status=400)


def recalled_lines(headers: httpx.Headers, items: list[Answer]) -> Iterator[str]:
    """What memory did for a call, in lines: the sum of it, and each thing recalled."""
    status, reason = headers.get("x-hearth-status", "off"), headers.get("x-hearth-reason", "")
    if status in ("off", "failed"):
        yield f"memory {status}{f': {reason}' if reason else ''}"
        return
    tokens, time = headers.get("x-hearth-tokens", "0"), float(headers.get("x-hearth-ms", "0"))
    yield f"recalled {len(items)} ({tokens} tokens, {time:.0f} ms{f', {status}: {reason}' if reason else ''})"
    for item in items:
        record = item["record"]
        yield (
            f"  · {moment(record['occurred_at'])}  {spoken(record)}" if record else "  · forgotten meanwhile"
        )


def _lines() -> Iterator[str]:
    """What is typed, line by line, until /quit or the end of the input; empty lines are passed over."""
    if sys.stdin.isatty():
        import readline  # noqa: F401 - gives input() line editing and history
    while True:
        try:
            line = input("> " if sys.stdin.isatty() else "").strip()
        except (EOFError, KeyboardInterrupt):
            return
        if line == "/quit":
            return
        if line:
            yield line


def _turn(conversation: Conversation, text: str, *, as_json: bool) -> bool:
    """One turn, printed; False if it failed, which is printed too."""
    try:
        reply = conversation.ask(text)
        items = conversation.rest.recalled(reply.headers)
        if as_json:
            _turn_json(conversation, text, reply, items)
        else:
            _turn_text(reply, items)
    except GatewayError as error:
        note(f"error: {one_line(error)}", style="red")
        return False
    return True


def _turn_text(reply: Reply, items: list[Answer]) -> None:
    for line in recalled_lines(reply.headers, items):
        say(line, style="dim")
    try:
        for piece in reply.pieces():
            out.print(plain(piece), end="", markup=False, soft_wrap=True)
    except KeyboardInterrupt:
        err.print("\n(stopped)", style="dim", end="")
    out.print()


def _turn_json(conversation: Conversation, text: str, reply: Reply, items: list[Answer]) -> None:
    for _ in reply.pieces():
        pass
    say_json(
        {
            "session": conversation.session,
            "user": text,
            "reply": reply.text,
            "status": reply.headers.get("x-hearth-status", "off"),
            "recalled": items,
        }
    )


def _piece(line: str) -> str:
    """The text in one line of the stream. Raises GatewayError for an error event."""
    data = line.removeprefix("data:").strip()
    if not line.startswith("data:") or data == "[DONE]":
        return ""
    try:
        chunk: dict[str, Any] = json.loads(data)
    except ValueError as error:
        raise GatewayError("the gateway's stream can't be read") from error
    if chunk.get("error"):
        nested = chunk["error"]
        raise GatewayError(str(nested.get("message") if isinstance(nested, dict) else nested))
    choices = chunk.get("choices") or [{}]
    return (choices[0].get("delta") or {}).get("content") or ""
