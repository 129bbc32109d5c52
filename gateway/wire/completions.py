"""Text completions: a `prompt` that the model continues, so a block can only stand in front of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hearth.gateway.wire import chat
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
from hearth.gateway.wire.types import Body, Route, WireReply, WireRequest
from hearth.gateway.wire.values import mapping, number, sequence, string
from hearth.memory.extract.clean import user_text
from hearth.memory.recall.block import contains_block, detach, prepend
from hearth.memory.types import Turn

_PROMPT_INDEX = -1


class CompletionsWire:
    """The text completions format."""

    @property
    def route(self) -> Route:
        """`completions`."""
        return "completions"

    def read_request(self, body: Body) -> WireRequest:
        """Parse a request. A list of prompts or tokens gives no turns. Never raises for odd input."""
        text = user_text(string(body.get("prompt")))
        turns = (Turn(role="user", text=text, index=_PROMPT_INDEX),) if text else ()
        return WireRequest(
            route="completions", turns=turns, placeable=_placeable(body), **openai_fields(body)
        )

    def place(self, body: Body, blocks: Mapping[int, str]) -> Body:
        """A copy of the body with the block of index -1 in front of a string prompt."""
        block = blocks.get(_PROMPT_INDEX, "")
        if not block or not _placeable(body):
            return body
        return {**body, "prompt": prepend(body["prompt"], block)}

    def strip(self, body: Body) -> Body:
        """The body without any block of ours."""
        prompt = string(body.get("prompt"))
        return {**body, "prompt": detach(prompt)} if contains_block(prompt) else body

    def read_reply(self, raw: bytes, *, status: int, stream: bool) -> WireReply:
        """Parse a reply's whole body. Never raises."""
        if status >= 400:
            return refused(raw, status)
        return (read_stream if is_stream(raw, stream) else read_json)(raw, _take)

    def terminal(self, chunk: bytes) -> int:
        """Where `[DONE]` or an error begins in `chunk`, -1 if neither does."""
        return chat.WIRE.terminal(chunk)


WIRE = CompletionsWire()


def _placeable(body: Body) -> bool:
    prompt = string(body.get("prompt"))
    return not body.get("suffix") and bool(prompt) and not prompt.isspace()


def _take(draft: ReplyDraft, body: Mapping[str, Any]) -> None:
    if body.get("error"):
        draft.error = error_text(body)
    draft.about(body)
    draft.usage = openai_usage(body.get("usage")) or draft.usage
    for choice in map(mapping, sequence(body.get("choices"))):
        draft.say(number(choice.get("index")), string(choice.get("text")))
