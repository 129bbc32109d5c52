"""What the wire formats of the scripted provider share."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from hearth.memory.types import Usage
from hearth.testing.ids import Ids
from hearth.testing.reply import Reply, Request, ToolCall

DONE = b"data: [DONE]\n\n"
FINGERPRINT = "fp_b3f2a91c07"


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One request with the reply that it gets, and all that goes into rendering it."""

    request: Request
    reply: Reply
    ids: Ids
    usage: Usage
    """Resolved: never None as in the reply."""
    write_1h: int = 0
    """The part of `usage.cache_write` that is kept for an hour."""

    @property
    def model(self) -> str:
        """The model that the reply names."""
        return self.reply.model or self.request.model

    @property
    def choices(self) -> int:
        """`n`, at least 1."""
        return int(self.request.body.get("n") or 1)


@dataclass(frozen=True, slots=True)
class Script:
    """A stream before it is shaped: its events, the last one terminal, and what a failure would send."""

    events: list[bytes]
    failure: Callable[[int], list[bytes]]
    """What takes the place of the rest where the stream fails after so many events."""


def data(payload: Mapping[str, Any]) -> bytes:
    """A server-sent event with data alone."""
    return b"data: %b\n\n" % msgspec.json.encode(payload)


def framed(frame: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], bytes]:
    """Events that differ in their one choice only: the frame, whose `choices` is empty, is encoded once."""
    start, end = data(frame).split(b'"choices":[]', 1)
    return lambda choice: b'%b"choices":[%b]%b' % (start, msgspec.json.encode(choice), end)


def event(payload: Mapping[str, Any]) -> bytes:
    """A server-sent event named by its payload's type."""
    return b"event: %b\ndata: %b\n\n" % (payload["type"].encode(), msgspec.json.encode(payload))


def now() -> int:
    """Seconds since 1970, as `created` fields have them."""
    return int(time.time())


def arguments(call: ToolCall) -> str:
    """A call's arguments as JSON text."""
    return call.arguments if isinstance(call.arguments, str) else msgspec.json.encode(call.arguments).decode()


def halves(text: str) -> Iterable[str]:
    """A text in two deltas, one if it is short."""
    middle = len(text) // 2
    return (text[:middle], text[middle:]) if middle else (text,)


def openai_usage(usage: Usage) -> dict[str, Any]:
    """Usage in the form of chat and text completions; `prompt_tokens` counts cached tokens too."""
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {
            "cached_tokens": usage.cached_input,
            "cache_write_tokens": usage.cache_write,
            "audio_tokens": 0,
        },
        "completion_tokens_details": {
            "reasoning_tokens": 0,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }
