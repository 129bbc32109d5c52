"""OpenAI's /v1/chat/completions: the JSON body and the stream of chunks."""

from __future__ import annotations

from typing import Any

import msgspec

from hearth.testing.refusals import describe
from hearth.testing.wire import (
    DONE,
    FINGERPRINT,
    Script,
    Turn,
    arguments,
    data,
    framed,
    halves,
    now,
    openai_usage,
)


def body(turn: Turn) -> bytes:
    """The whole reply as JSON."""
    choices = [
        {
            "index": index,
            "message": _message(turn, index),
            "logprobs": None,
            "finish_reason": _finish(turn),
        }
        for index in range(turn.choices)
    ]
    return msgspec.json.encode(
        {
            "id": turn.ids.chat(),
            "object": "chat.completion",
            "created": now(),
            "model": turn.model,
            "choices": choices,
            "usage": openai_usage(turn.usage),
            "service_tier": "default",
            "system_fingerprint": FINGERPRINT,
        }
    )


def _message(turn: Turn, index: int) -> dict[str, Any]:
    reply = turn.reply
    message: dict[str, Any] = {
        "role": "assistant",
        "content": reply.choice(index) or None,
        "refusal": None,
        "annotations": [],
    }
    if reply.thinking:
        message["reasoning_content"] = reply.thinking
    if reply.tools:
        message["tool_calls"] = [
            {
                "id": call.id or turn.ids.call(),
                "type": "function",
                "function": {"name": call.name, "arguments": arguments(call)},
            }
            for call in reply.tools
        ]
    return message


def _finish(turn: Turn) -> str:
    return turn.reply.finish or ("tool_calls" if turn.reply.tools else "stop")


def script(turn: Turn) -> Script:
    """The reply as a stream: role, reasoning, text, calls, finish reason, usage where asked for, [DONE]."""
    wanted = bool((turn.request.body.get("stream_options") or {}).get("include_usage"))
    chunk: dict[str, Any] = {
        "id": turn.ids.chat(),
        "object": "chat.completion.chunk",
        "created": now(),
        "model": turn.model,
        "service_tier": "default",
        "system_fingerprint": FINGERPRINT,
        "choices": [],
    }
    if wanted:
        chunk["usage"] = None
    events = list(map(framed(chunk), _deltas(turn)))
    if wanted if turn.reply.usage_chunk is None else turn.reply.usage_chunk:
        events.append(data({**chunk, "usage": openai_usage(turn.usage)}))
    events.append(DONE)
    return Script(events, lambda _: [data(describe("openai", "server", "")[1])])


def _choice(index: int, delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {"index": index, "delta": delta, "logprobs": None, "finish_reason": finish}


def _deltas(turn: Turn) -> list[dict[str, Any]]:
    """Choices in the order of the stream; those of several replies interleave word by word."""
    lanes = [_lane(turn, index) for index in range(turn.choices)]
    if len(lanes) == 1:
        return lanes[0]
    longest = max(map(len, lanes))
    return [lane[step] for step in range(longest) for lane in lanes if step < len(lane)]


def _lane(turn: Turn, index: int) -> list[dict[str, Any]]:
    reply = turn.reply
    pieces = reply.pieces() if index == 0 else (reply.choice(index),)
    content = "" if "".join(pieces) else None
    lane = [_choice(index, {"role": "assistant", "content": content, "refusal": None})]
    if reply.thinking:
        lane += [_choice(index, {"reasoning_content": part}) for part in halves(reply.thinking)]
    lane += [_choice(index, {"content": piece}) for piece in pieces]
    for place, call in enumerate(reply.tools):
        function = {"name": call.name, "arguments": ""}
        start = {"index": place, "id": call.id or turn.ids.call(), "type": "function", "function": function}
        lane.append(_choice(index, {"tool_calls": [start]}))
        for part in halves(arguments(call)):
            lane.append(_choice(index, {"tool_calls": [{"index": place, "function": {"arguments": part}}]}))
    if reply.finish_with_text:
        lane[-1]["finish_reason"] = _finish(turn)
    else:
        lane.append(_choice(index, {}, _finish(turn)))
    return lane
