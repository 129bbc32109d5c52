"""What a scripted provider is asked and what it is told to answer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any, Literal

import msgspec

from hearth.memory.types import Usage

Route = Literal["chat", "completions", "responses", "messages"]
SideRoute = Literal["embeddings", "count_tokens", "models", "stored", "conversations", "unknown"]
Family = Literal["openai", "anthropic"]
ErrorKind = Literal[
    "invalid_request",
    "authentication",
    "permission",
    "not_found",
    "too_large",
    "rate_limit",
    "server",
    "overloaded",
    "context_length",
    "content_filter",
]

_PIECES = re.compile(r"\s*\S+|\s+")


class ToolCall(msgspec.Struct, frozen=True, kw_only=True):
    """One tool call of a scripted reply."""

    name: str
    arguments: Mapping[str, Any] | str = {}
    """A mapping, or raw JSON text (also broken JSON)."""
    id: str = ""
    """Empty: the provider makes one in its own form (`call_…`, `toolu_…`)."""


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """One answer. The counts `…_after` are in stream events, the first (role, start, created) included."""

    text: str = "ok"
    chunks: tuple[str, ...] = ()
    """Text deltas of a stream; empty means one a word."""
    choices: tuple[str, ...] = ()
    """Texts of choices 1 to n-1 where the request has `n`; missing ones repeat `text` with their index."""
    tools: tuple[ToolCall, ...] = ()
    thinking: str = ""
    """Signed thinking (messages), reasoning item (responses), `reasoning_content` (chat)."""
    redacted: bool = False
    """Put a redacted_thinking block in front (messages only)."""
    finish: str = ""
    """Finish or stop reason in the route's own words; empty means the natural one."""
    model: str = ""
    """The model that says it answered; empty means the one that was asked."""
    usage: Usage | None = None
    """`input` counts cached and written tokens too; None means counted, by the cache if there is one."""
    status: int = 200
    error: ErrorKind | Mapping[str, Any] | None = None
    """A real provider's error by kind, or a whole body; with a status alone the kind follows from it."""
    headers: Mapping[str, str] = {}
    delay: float = 0.0
    """Seconds before the first byte; `math.inf` never answers."""
    gap: float = 0.0
    """Seconds between events."""
    hang_after: int | None = None
    """After so many events nothing more comes and the connection stays open. A plain body never comes."""
    cut_after: int | None = None
    """After so many events the connection is closed without an end. A plain body is cut in the middle."""
    fail_after: int | None = None
    """After so many events the provider's error event comes and the stream ends."""
    done: bool = True
    """False: the terminal event ([DONE], message_stop, response.completed) never comes, the body ends."""
    split_bytes: int = 0
    """Cut the stream every so many bytes and inside every multi-byte character, each piece written alone."""
    batch: int = 1
    """Events in one write."""
    crlf: bool = False
    """Lines end in CRLF."""
    finish_with_text: bool = False
    """The last text and the finish reason share a chunk (chat, completions)."""
    usage_chunk: bool | None = None
    """The usage-only last chunk comes or not, whatever the request says (chat, completions)."""
    pings: int = 1
    """Ping events after the start (messages)."""
    raw: bytes | None = None
    """The whole body instead of all of the above."""

    def pieces(self) -> tuple[str, ...]:
        """The text deltas of choice 0."""
        return self.chunks or words(self.text)

    def choice(self, index: int) -> str:
        """The text of a choice."""
        if index == 0:
            return "".join(self.chunks) or self.text
        return self.choices[index - 1] if index <= len(self.choices) else f"{self.text} [{index}]"


@lru_cache(maxsize=1024)
def words(text: str) -> tuple[str, ...]:
    """`text` in pieces of a word with the space before it; joined they are the text again."""
    return tuple(_PIECES.findall(text))


@dataclass(slots=True)
class Request:
    """One request as the provider received it."""

    route: Route | SideRoute
    method: str
    path: str
    headers: dict[str, str]
    """By lower-case name; of a repeated header the last value."""
    raw_headers: list[tuple[str, str]]
    raw: bytes
    """The body's bytes."""
    body: dict[str, Any]
    """The parsed body, empty where there is none."""
    at: datetime
    context: list[Any] = field(default_factory=list)
    """Responses route: every item that the model sees, those that the provider held included."""
    disconnected: bool = False
    """True once the client hung up before the reply's end."""
    answered: bool = False
    """True once the reply's last byte was written."""
    written: list[bytes] = field(default_factory=list)
    """The parts of the reply's body so far, in the order in which they went out."""

    @property
    def sent(self) -> bytes:
        """The reply's body so far."""
        return b"".join(self.written)

    @property
    def stream(self) -> bool:
        """True if the client asked for a stream."""
        return bool(self.body.get("stream"))

    @property
    def model(self) -> str:
        """The model that was asked for."""
        return str(self.body.get("model", ""))

    @property
    def user_text(self) -> str:
        """The visible text of the newest user message, blocks of the gateway included."""
        if self.route == "completions":
            prompt = self.body.get("prompt", "")
            return prompt if isinstance(prompt, str) else ""
        items = self.body.get("input" if self.route == "responses" else "messages", ())
        if isinstance(items, str):
            return items
        found = [item for item in items if isinstance(item, dict) and item.get("role") == "user"]
        return text_of(found[-1].get("content")) if found else ""


def text_of(content: object) -> str:
    """The text of a content field: a string, or the text parts of a list joined by line ends."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "\n".join(str(part["text"]) for part in content if isinstance(part, dict) and "text" in part)
