"""What is gathered from a reply, JSON or stream, before it becomes a `WireReply`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from hearth.gateway.wire.sse import events
from hearth.gateway.wire.types import WireReply
from hearth.gateway.wire.values import loads, mapping, number, size, string
from hearth.memory.extract import clean
from hearth.memory.types import Outcome, ToolUse, Usage

_ERROR_CHARS = 300
_DONE = b"[DONE]"


@dataclass
class ToolDraft:
    """A tool call whose arguments arrive in pieces."""

    name: str = ""
    arguments: list[str] = field(default_factory=list)

    def finish(self) -> ToolUse:
        """The call with its raw arguments, which the caller drops unless it captures tools in full."""
        raw = "".join(self.arguments)
        keys = mapping(loads(raw.encode("utf-8", "replace")))
        return ToolUse(
            name=clean.well_formed(self.name),
            argument_keys=tuple(clean.well_formed(key) for key in keys),
            argument_bytes=size(raw),
            arguments=clean.well_formed(raw),
        )


@dataclass
class ReplyDraft:
    """A reply in the making."""

    texts: dict[int, list[str]] = field(default_factory=dict)
    """Pieces of visible text by choice."""
    tools: dict[object, ToolDraft] = field(default_factory=dict)
    response_id: str = ""
    model: str = ""
    usage: Usage | None = None
    error: str = ""
    ended: bool = False
    """Whether the terminal event, or a whole JSON body, was seen."""
    unparsed: int = 0

    def say(self, choice: int, text: str) -> None:
        """Add a piece of visible text."""
        if text:
            self.texts.setdefault(choice, []).append(text)

    def tool(self, key: object) -> ToolDraft:
        """The tool call of that key, new where there is none yet."""
        return self.tools.setdefault(key, ToolDraft())

    def about(self, source: Mapping[str, Any]) -> None:
        """Take the reply's id and model from a body or chunk that names them."""
        self.response_id = self.response_id or string(source.get("id"))
        self.model = self.model or string(source.get("model"))

    def finish(self) -> WireReply:
        """The reply as Hearth keeps it."""
        said = {choice: clean.assistant_text("".join(pieces)) for choice, pieces in self.texts.items()}
        text = said.pop(0, "")
        return WireReply(
            text=text,
            alternatives=tuple(said[choice] for choice in sorted(said)),
            tools=tuple(draft.finish() for draft in self.tools.values()),
            response_id=clean.well_formed(self.response_id),
            model=clean.well_formed(self.model),
            usage=self.usage,
            outcome=self._outcome(text),
            error=self.error,
            unparsed=self.unparsed,
        )

    def _outcome(self, text: str) -> Outcome:
        if self.error:
            return "partial" if text else "failed"
        return "complete" if self.ended else "partial"


def error_text(value: object) -> str:
    """A provider's error, whatever its shape, as one line of at most 300 characters."""
    fields = mapping(value)
    inner = fields.get("error", fields)
    details = mapping(inner)
    kind = string(details.get("type")) or string(details.get("code"))
    message = string(inner) or string(details.get("message")) or string(fields.get("message"))
    message = message or string(fields.get("detail"))
    line = " ".join(": ".join(filter(None, (kind, message))).split())
    return clean.well_formed(line[:_ERROR_CHARS]) or "error"


def refused(raw: bytes, status: int) -> WireReply:
    """The reply of a call that the provider answered with an HTTP error."""
    body = loads(raw)
    text = error_text(body) if body is not None else raw[:_ERROR_CHARS].decode("utf-8", "replace")
    return WireReply(outcome="failed", error=f"{status} {text}"[:_ERROR_CHARS])


def is_stream(raw: bytes, stream: bool) -> bool:
    """Whether a body holds events: a stream's own, unless it turned out to be one JSON object."""
    head = raw[:64].lstrip()
    return head.startswith((b"data:", b"event:", b":", b"id:", b"retry:")) or (
        stream and not head.startswith((b"{", b"["))
    )


def read_stream(
    raw: bytes, take: Callable[[ReplyDraft, Mapping[str, Any]], None], ends: Collection[str] = ()
) -> WireReply:
    """Feed each event's JSON object to `take`; `[DONE]`, or an event named in `ends`, ends the stream."""
    draft = ReplyDraft()
    for event in events(raw):
        data = event.data.strip()
        if data == _DONE or event.name in ends:
            draft.ended = True
        if data and data != _DONE:
            _feed(draft, data, take, whole=event.whole)
    return draft.finish()


def _feed(
    draft: ReplyDraft, data: bytes, take: Callable[[ReplyDraft, Mapping[str, Any]], None], *, whole: bool
) -> None:
    value = loads(data)
    if isinstance(value, dict):
        take(draft, value)
    elif whole:
        draft.unparsed += 1


def read_json(raw: bytes, take: Callable[[ReplyDraft, Mapping[str, Any]], None]) -> WireReply:
    """Feed a whole JSON body to `take`; one that can't be read gives a partial reply."""
    draft = ReplyDraft()
    value = loads(raw)
    if not isinstance(value, dict):
        draft.unparsed += 1
        return draft.finish()
    draft.ended = True
    if value.get("error"):
        draft.error = error_text(value)
    take(draft, value)
    return draft.finish()


def openai_usage(value: object) -> Usage | None:
    """Usage as chat, completions (`prompt_tokens`) and responses (`input_tokens`) give it; None if absent."""
    fields = mapping(value)
    if not fields:
        return None
    details = mapping(fields.get("prompt_tokens_details")) or mapping(fields.get("input_tokens_details"))
    return Usage(
        input=number(fields.get("prompt_tokens")) or number(fields.get("input_tokens")),
        output=number(fields.get("completion_tokens")) or number(fields.get("output_tokens")),
        cached_input=number(details.get("cached_tokens")) or number(fields.get("cache_read_input_tokens")),
        cache_write=number(fields.get("cache_creation_input_tokens")),
    )
