"""Chat completions: `messages` in, `choices` out, streams of chunks that end in `[DONE]`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from hearth.gateway.wire import content
from hearth.gateway.wire.reply import (
    ReplyDraft,
    error_text,
    is_stream,
    openai_usage,
    read_json,
    read_stream,
    refused,
)
from hearth.gateway.wire.types import Body, Route, WireReply, WireRequest
from hearth.gateway.wire.values import mapping, number, sequence, size, string
from hearth.memory.extract.clean import well_formed
from hearth.memory.types import ToolUse, Turn

_TERMINAL = re.compile(rb'^data: ?(?:\[DONE\]|\{ ?"error")', re.MULTILINE)


class ChatWire:
    """The chat completions format."""

    @property
    def route(self) -> Route:
        """`chat`."""
        return "chat"

    def read_request(self, body: Body) -> WireRequest:
        """Parse a request. Never raises for odd input."""
        turns = _turns(sequence(body.get("messages")))
        return WireRequest(
            route="chat",
            turns=turns,
            placeable=content.has_user_words(turns),
            **openai_fields(body),
        )

    def place(self, body: Body, blocks: Mapping[int, str]) -> Body:
        """A copy of the body with each block at the end of its user message."""
        return content.place(body, "messages", blocks, "text")

    def strip(self, body: Body) -> Body:
        """The body without any block of ours."""
        return content.strip(body, "messages")

    def read_reply(self, raw: bytes, *, status: int, stream: bool) -> WireReply:
        """Parse a reply's whole body. Never raises."""
        if status >= 400:
            return refused(raw, status)
        return read_stream(raw, _take_chunk) if is_stream(raw, stream) else read_json(raw, _take_body)

    def terminal(self, chunk: bytes) -> int:
        """Where `[DONE]` or an error begins in `chunk`, -1 if neither does."""
        found = _TERMINAL.search(chunk)
        return found.start() if found else -1


WIRE = ChatWire()


def openai_fields(body: Body) -> dict[str, Any]:
    """The fields of a `WireRequest` that OpenAI's routes name alike."""
    metadata = mapping(body.get("metadata"))
    merged = {**mapping(body.get("client_metadata")), **metadata}
    limits = (body.get(key) for key in ("max_completion_tokens", "max_output_tokens", "max_tokens"))
    return {
        "model": well_formed(string(body.get("model"))),
        "stream": body.get("stream") is True,
        "choices": number(body.get("n")) or 1,
        "body_user": well_formed(string(body.get("user")) or string(body.get("safety_identifier"))),
        "metadata_user": well_formed(string(metadata.get("user_id"))),
        "metadata": {
            well_formed(str(key)): well_formed(value)
            for key, value in merged.items()
            if isinstance(value, str)
        },
        "prompt_cache_key": well_formed(string(body.get("prompt_cache_key"))),
        "offered_tools": len(sequence(body.get("tools"))),
        "stored": body.get("store") is not False,
        "explicit_caching": mapping(body.get("prompt_cache_options")).get("mode") == "explicit",
        "max_output": next(filter(None, map(number, limits)), 0),
    }


def _turns(messages: list[Any]) -> tuple[Turn, ...]:
    names: dict[str, str] = {}
    return tuple(_turn(mapping(message), index, names) for index, message in enumerate(messages))


def _turn(message: Mapping[str, Any], index: int, names: dict[str, str]) -> Turn:
    role, said = string(message.get("role")), message.get("content")
    if role == "user":
        return content.user_turn(said, index)
    if role == "assistant":
        return Turn(
            role="assistant", text=content.assistant_words(said), index=index, tools=_calls(message, names)
        )
    if role in ("tool", "function"):
        name = string(message.get("name")) or names.get(string(message.get("tool_call_id")), "")
        return Turn(
            role="tool", index=index, tools=(ToolUse(name=well_formed(name), result_bytes=size(said)),)
        )
    return Turn(role="system", text=well_formed(content.words(said)), index=index)


def _calls(message: Mapping[str, Any], names: dict[str, str]) -> tuple[ToolUse, ...]:
    """The message's tool calls; notes their names by id, since results carry the id alone."""
    calls = [*map(mapping, sequence(message.get("tool_calls")))]
    if message.get("function_call"):
        calls.append({"function": message["function_call"]})
    found = []
    for call in calls:
        function = mapping(call.get("function")) or mapping(call.get("custom"))
        name = well_formed(string(function.get("name")))
        names[string(call.get("id"))] = name
        arguments = function.get("arguments", function.get("input"))
        found.append(ToolUse(name=name, argument_bytes=size(arguments)))
    return tuple(found)


def _take_body(draft: ReplyDraft, body: Mapping[str, Any]) -> None:
    draft.about(body)
    draft.usage = openai_usage(body.get("usage"))
    for position, choice in enumerate(map(mapping, sequence(body.get("choices")))):
        _take_message(draft, number(choice.get("index", position)), mapping(choice.get("message")))


def _take_chunk(draft: ReplyDraft, chunk: Mapping[str, Any]) -> None:
    if chunk.get("error"):
        draft.error = error_text(chunk)
    draft.about(chunk)
    draft.usage = openai_usage(chunk.get("usage")) or draft.usage
    for choice in map(mapping, sequence(chunk.get("choices"))):
        _take_message(draft, number(choice.get("index")), mapping(choice.get("delta")))


def _take_message(draft: ReplyDraft, choice: int, message: Mapping[str, Any]) -> None:
    """Words and tool calls of a message or of a delta; reasoning has its own fields, never looked at."""
    said = message.get("content")
    draft.say(choice, said if isinstance(said, str) else content.spoken(sequence(said)))
    draft.say(choice, string(message.get("refusal")))
    if choice != 0:
        return
    for position, call in enumerate(map(mapping, sequence(message.get("tool_calls")))):
        _take_call(
            draft,
            number(call.get("index", position)),
            mapping(call.get("function")) or mapping(call.get("custom")),
        )
    if message.get("function_call"):
        _take_call(draft, 0, mapping(message.get("function_call")))


def _take_call(draft: ReplyDraft, key: int, function: Mapping[str, Any]) -> None:
    tool = draft.tool(key)
    tool.name = tool.name or string(function.get("name"))
    tool.arguments.append(string(function.get("arguments")) or string(function.get("input")))
