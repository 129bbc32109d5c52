"""Anthropic's messages: `system` beside `messages`, typed blocks, streams that end in `message_stop`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from hearth.gateway.wire import content
from hearth.gateway.wire.reply import ReplyDraft, error_text, is_stream, read_json, read_stream, refused
from hearth.gateway.wire.types import Body, Route, WireReply, WireRequest
from hearth.gateway.wire.values import mapping, number, sequence, size, string
from hearth.memory.extract.clean import well_formed
from hearth.memory.types import ToolUse, Turn, Usage

_TERMINAL = re.compile(
    rb'^(?:event: ?(?:message_stop|error)[ \r]*$|data: ?\{ ?"(?:type": ?"(?:message_stop|error)"|error"))',
    re.MULTILINE,
)
_FIVE_MINUTES, _ONE_HOUR = 300, 3600


class MessagesWire:
    """The messages format."""

    @property
    def route(self) -> Route:
        """`messages`."""
        return "messages"

    def read_request(self, body: Body) -> WireRequest:
        """Parse a request. Never raises for odd input."""
        turns = tuple(_turns(body))
        metadata = mapping(body.get("metadata"))
        return WireRequest(
            route="messages",
            model=well_formed(string(body.get("model"))),
            turns=turns,
            stream=body.get("stream") is True,
            body_user=well_formed(string(body.get("user"))),
            metadata_user=well_formed(string(metadata.get("user_id"))),
            metadata={well_formed(str(k)): well_formed(v) for k, v in metadata.items() if isinstance(v, str)},
            offered_tools=len(sequence(body.get("tools"))),
            automatic_caching=bool(body.get("cache_control")),
            cache_seconds=_ONE_HOUR if _asks_for_an_hour(body) else _FIVE_MINUTES,
            max_output=number(body.get("max_tokens")),
            placeable=content.has_user_words(turns),
        )

    def place(self, body: Body, blocks: Mapping[int, str]) -> Body:
        """A copy of the body with each block as the last part of its user message."""
        return content.place(body, "messages", blocks, "text")

    def strip(self, body: Body) -> Body:
        """The body without any block of ours."""
        return content.strip(body, "messages")

    def read_reply(self, raw: bytes, *, status: int, stream: bool) -> WireReply:
        """Parse a reply's whole body. Never raises."""
        if status >= 400:
            return refused(raw, status)
        if not is_stream(raw, stream):
            return read_json(raw, _take_body)
        return read_stream(raw, _Stream(), ends=("message_stop",))

    def terminal(self, chunk: bytes) -> int:
        """Where `message_stop` or an error begins in `chunk`, -1 if neither does."""
        found = _TERMINAL.search(chunk)
        return found.start() if found else -1


WIRE = MessagesWire()


def _turns(body: Body) -> Iterator[Turn]:
    if body.get("system"):
        yield content.system_turn(body["system"])
    names: dict[str, str] = {}
    for index, message in enumerate(map(mapping, sequence(body.get("messages")))):
        role, said = string(message.get("role")), message.get("content")
        if role == "user":
            yield content.user_turn(said, index, _results(said, names))
        elif role == "assistant":
            yield Turn(
                role="assistant", text=content.assistant_words(said), index=index, tools=_calls(said, names)
            )
        else:
            yield Turn(role="system", text=well_formed(content.words(said)), index=index)


def _calls(said: object, names: dict[str, str]) -> tuple[ToolUse, ...]:
    """The message's calls of the client's tools; the provider's own (`server_tool_use`) need no answer."""
    found = []
    for part in map(mapping, sequence(said)):
        if part.get("type") == "tool_use":
            name = well_formed(string(part.get("name")))
            names[string(part.get("id"))] = name
            found.append(ToolUse(name=name))
    return tuple(found)


def _results(said: object, names: Mapping[str, str]) -> tuple[ToolUse, ...]:
    return tuple(
        ToolUse(name=names.get(string(part.get("tool_use_id")), ""), result_bytes=size(part.get("content")))
        for part in map(mapping, sequence(said))
        if part.get("type") == "tool_result"
    )


def _asks_for_an_hour(body: Body) -> bool:
    """Whether any cache breakpoint of the request asks for one hour."""
    controls = [body.get("cache_control")]
    for key in ("system", "tools"):
        controls += [mapping(part).get("cache_control") for part in sequence(body.get(key))]
    for message in sequence(body.get("messages")):
        controls += [mapping(part).get("cache_control") for part in sequence(mapping(message).get("content"))]
    return any(mapping(control).get("ttl") == "1h" for control in controls if control)


def _usage(value: object, earlier: Usage | None = None) -> Usage | None:
    """Usage with the cached tokens counted into the input, as the other formats do; later events win."""
    fields = mapping(value)
    if not fields:
        return earlier
    before = earlier or Usage()
    cached = number(fields.get("cache_read_input_tokens")) or before.cached_input
    written = number(fields.get("cache_creation_input_tokens")) or before.cache_write
    plain = number(fields.get("input_tokens"))
    return Usage(
        input=plain + cached + written if plain or not earlier else before.input,
        output=number(fields.get("output_tokens")) or before.output,
        cached_input=cached,
        cache_write=written,
    )


def _take_body(draft: ReplyDraft, body: Mapping[str, Any]) -> None:
    draft.about(body)
    draft.usage = _usage(body.get("usage"))
    parts = sequence(body.get("content"))
    draft.say(0, content.spoken(parts))
    for position, part in enumerate(map(mapping, parts)):
        if part.get("type") == "tool_use":
            tool = draft.tool(position)
            tool.name = string(part.get("name"))
            tool.arguments.append(_encoded(part.get("input")))


def _encoded(value: object) -> str:
    if not value:
        return ""
    try:
        return msgspec.json.encode(value).decode()
    except (ValueError, RecursionError):
        return ""


class _Stream:
    """Takes the events of a stream; knows where texts are parted, so that the words join as in JSON."""

    def __init__(self) -> None:
        self._parted = False

    def __call__(self, draft: ReplyDraft, event: Mapping[str, Any]) -> None:
        kind = string(event.get("type"))
        if kind == "content_block_delta":
            self._delta(draft, event)
        elif kind == "content_block_start":
            self._start(draft, event)
        elif kind == "message_start":
            message = mapping(event.get("message"))
            draft.about(message)
            draft.usage = _usage(message.get("usage"))
        elif kind == "message_delta":
            draft.usage = _usage(event.get("usage"), draft.usage)
        elif kind == "message_stop":
            draft.ended = True
        elif kind == "error" or event.get("error"):
            draft.error = error_text(event)

    def _start(self, draft: ReplyDraft, event: Mapping[str, Any]) -> None:
        block = mapping(event.get("content_block"))
        if block.get("type") == "text":
            if self._parted and draft.texts.get(0):
                draft.say(0, "\n\n")
            self._parted = False
            draft.say(0, string(block.get("text")))
            return
        self._parted = True
        if block.get("type") == "tool_use":
            draft.tool(number(event.get("index"))).name = string(block.get("name"))

    def _delta(self, draft: ReplyDraft, event: Mapping[str, Any]) -> None:
        delta = mapping(event.get("delta"))
        if delta.get("type") == "text_delta":
            draft.say(0, string(delta.get("text")))
        elif delta.get("type") == "input_json_delta" and number(event.get("index")) in draft.tools:
            draft.tool(number(event.get("index"))).arguments.append(string(delta.get("partial_json")))
