"""OpenAI's responses: `input` as a string or typed items, streams that end in `response.completed`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from hearth.gateway.wire import content
from hearth.gateway.wire.chat import openai_fields
from hearth.gateway.wire.reply import (
    ReplyDraft,
    error_text,
    is_stream,
    openai_usage,
    read_json,
    read_stream,
    refused,
)
from hearth.gateway.wire.sse import events
from hearth.gateway.wire.types import Body, Route, WireReply, WireRequest
from hearth.gateway.wire.values import loads, mapping, number, sequence, size, string
from hearth.memory.extract.clean import user_text, well_formed
from hearth.memory.recall.block import attach, contains_block, detach
from hearth.memory.types import ToolUse, Turn

_INPUT_INDEX = -1
_ENDS = rb"response\.(?:completed|failed|incomplete|cancelled)|error"
_TERMINAL = re.compile(
    rb"^(?:event: ?(?:"
    + _ENDS
    + rb')[ \r]*$|data: ?(?:\[DONE\]|\{[^{\n]{0,120}?"type": ?"(?:'
    + _ENDS
    + rb')"|\{ ?"error"))',
    re.MULTILINE,
)
_ENDED = re.compile(rb'"type": ?"response\.(?:completed|incomplete)"')
_CALLS = frozenset(
    {
        "function_call",
        "custom_tool_call",
        "local_shell_call",
        "shell_call",
        "apply_patch_call",
        "computer_call",
    }
)
"""Items that wait for the client's answer; the provider's own tools (web search and so on) need none."""
_RESULTS = frozenset(f"{name}_output" for name in _CALLS)


class ResponsesWire:
    """The responses format."""

    @property
    def route(self) -> Route:
        """`responses`."""
        return "responses"

    def read_request(self, body: Body) -> WireRequest:
        """Parse a request. Never raises for odd input."""
        turns = tuple(_turns(body))
        conversation = body.get("conversation")
        return WireRequest(
            route="responses",
            turns=turns,
            previous_response_id=well_formed(string(body.get("previous_response_id"))),
            conversation=well_formed(string(conversation) or string(mapping(conversation).get("id"))),
            placeable=content.has_user_words(turns),
            **openai_fields(body),
        )

    def place(self, body: Body, blocks: Mapping[int, str]) -> Body:
        """A copy of the body with each block at the end of its user message or of a string input (-1)."""
        said = body.get("input")
        if not isinstance(said, str):
            return content.place(body, "input", blocks, "input_text")
        block = blocks.get(_INPUT_INDEX, "")
        return {**body, "input": attach(said, block)} if block and said and not said.isspace() else body

    def strip(self, body: Body) -> Body:
        """The body without any block of ours."""
        said = body.get("input")
        if not isinstance(said, str):
            return content.strip(body, "input")
        return {**body, "input": detach(said)} if contains_block(said) else body

    def read_reply(self, raw: bytes, *, status: int, stream: bool) -> WireReply:
        """Parse a reply's whole body. Never raises."""
        if status >= 400:
            return refused(raw, status)
        if not is_stream(raw, stream):
            return read_json(raw, _take_response)
        return read_stream(raw, _Stream(), ends=("response.completed", "response.incomplete"))

    def terminal(self, chunk: bytes) -> int:
        """Where the final `response.*` event or an error begins in `chunk`, -1 if none does."""
        found = _TERMINAL.search(chunk)
        return found.start() if found else -1


WIRE = ResponsesWire()


def answered(raw: bytes) -> tuple[str, list[dict[str, Any]]]:
    """Id and output items of a response that ended, from its JSON body or its stream; empty for any other.

    A response that reached its limit of tokens (`incomplete`) has ended too.
    """
    if is_stream(raw, stream=False):
        ends = (event.data for event in events(raw) if _ENDED.search(event.data))
        response = next((mapping(mapping(loads(data)).get("response")) for data in ends), {})
    else:
        response = mapping(loads(raw))
    if response.get("status") not in ("completed", "incomplete") or response.get("store") is False:
        return "", []
    return string(response.get("id")), [dict(mapping(item)) for item in sequence(response.get("output"))]


def _turns(body: Body) -> Iterator[Turn]:
    if body.get("instructions"):
        yield content.system_turn(body["instructions"])
    said = body.get("input")
    if isinstance(said, str):
        yield Turn(role="user", text=user_text(said), index=_INPUT_INDEX)
        return
    names: dict[str, str] = {}
    for index, item in enumerate(map(mapping, sequence(said))):
        turn = _turn(item, index, names)
        if turn is not None:
            yield turn


def _turn(item: Mapping[str, Any], index: int, names: dict[str, str]) -> Turn | None:
    """The turn of an input item; None for reasoning and whatever else holds no words.

    A reference to a message that the provider keeps (the Vercel AI SDK sends those) is a reply whose words
    are not here: without it two user messages would be one.
    """
    kind, role, said = string(item.get("type")), string(item.get("role")), item.get("content")
    if kind in _CALLS:
        name = well_formed(string(item.get("name")) or kind.removesuffix("_call"))
        names[string(item.get("call_id"))] = name
        arguments = item.get("arguments", item.get("input"))
        return Turn(
            role="assistant", index=index, tools=(ToolUse(name=name, argument_bytes=size(arguments)),)
        )
    if kind in _RESULTS:
        name = names.get(string(item.get("call_id")), "")
        return Turn(
            role="tool", index=index, tools=(ToolUse(name=name, result_bytes=size(item.get("output"))),)
        )
    if kind == "item_reference":
        return _referred(string(item.get("id")), index)
    if kind not in ("", "message"):
        return None
    if role == "user":
        return content.user_turn(said, index)
    if role == "assistant":
        return Turn(role="assistant", text=content.assistant_words(said), index=index)
    return Turn(role="system", text=well_formed(content.words(said)), index=index)


def _referred(item_id: str, index: int) -> Turn | None:
    """The turn of a reference, by the prefix that the provider gives its ids; only output is referred to."""
    if item_id.startswith("msg_"):
        return Turn(role="assistant", index=index)
    if item_id.startswith(("fc_", "ctc_")):
        return Turn(role="assistant", index=index, tools=(ToolUse(name=""),))
    return None


def _take_response(draft: ReplyDraft, response: Mapping[str, Any]) -> None:
    """Take a whole response object: a JSON body, or what the terminal event carries."""
    draft.about(response)
    draft.usage = openai_usage(response.get("usage")) or draft.usage
    if response.get("error"):
        draft.error = error_text(response)
    if response.get("status") in ("queued", "in_progress"):
        draft.ended = False
    _take_output(draft, sequence(response.get("output")))


def _take_output(draft: ReplyDraft, output: list[Any]) -> None:
    draft.say(
        0,
        "\n\n".join(
            filter(None, (content.spoken(sequence(item.get("content"))) for item in _messages(output)))
        ),
    )
    for position, item in enumerate(map(mapping, output)):
        if string(item.get("type")) in _CALLS:
            tool = draft.tool(position)
            tool.name = string(item.get("name")) or string(item.get("type")).removesuffix("_call")
            tool.arguments[:] = [string(item.get("arguments")) or string(item.get("input"))]


def _messages(output: list[Any]) -> Iterator[Mapping[str, Any]]:
    return (item for item in map(mapping, output) if item.get("type") == "message")


class _Stream:
    """Takes the events of a stream; the terminal event's own output, if any, replaces the pieces."""

    def __init__(self) -> None:
        self._place: tuple[int, int] | None = None

    def __call__(self, draft: ReplyDraft, event: Mapping[str, Any]) -> None:
        kind = string(event.get("type"))
        if kind in ("response.output_text.delta", "response.refusal.delta"):
            self._say(draft, event)
        elif kind in ("response.output_item.added", "response.output_item.done"):
            _take_call(draft, event)
        elif kind in ("response.created", "response.in_progress"):
            draft.about(mapping(event.get("response")))
        elif kind in ("response.completed", "response.incomplete", "response.failed", "response.cancelled"):
            self._end(draft, kind, mapping(event.get("response")))
        elif kind == "error" or event.get("error"):
            draft.error = error_text(event)

    def _say(self, draft: ReplyDraft, event: Mapping[str, Any]) -> None:
        place = number(event.get("output_index")), number(event.get("content_index"))
        if self._place is not None and self._place[0] != place[0]:
            draft.say(0, "\n\n")
        self._place = place
        draft.say(0, string(event.get("delta")))

    def _end(self, draft: ReplyDraft, kind: str, response: Mapping[str, Any]) -> None:
        draft.ended = True
        output = sequence(response.get("output"))
        if any(_messages(output)):
            draft.texts.clear()
        if output:
            draft.tools.clear()
        _take_response(draft, response)
        draft.ended = True
        if kind == "response.failed":
            draft.error = draft.error or "response failed"


def _take_call(draft: ReplyDraft, event: Mapping[str, Any]) -> None:
    item = mapping(event.get("item"))
    if string(item.get("type")) not in _CALLS:
        return
    tool = draft.tool(number(event.get("output_index")))
    tool.name = string(item.get("name")) or string(item.get("type")).removesuffix("_call")
    tool.arguments[:] = [string(item.get("arguments")) or string(item.get("input"))]
