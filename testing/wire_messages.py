"""Anthropic's /v1/messages: the JSON body and the stream of named events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from hearth.testing.checks import redact, sign
from hearth.testing.refusals import describe
from hearth.testing.wire import Script, Turn, arguments, event, halves

_PING = b'event: ping\ndata: {"type": "ping"}\n\n'


def _usage(turn: Turn, output: int) -> dict[str, Any]:
    """Usage in Anthropic's form: `input_tokens` is what was neither read from nor written to the cache."""
    usage = turn.usage
    return {
        "input_tokens": max(usage.input - usage.cached_input - usage.cache_write, 0),
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cached_input,
        "cache_creation": {
            "ephemeral_5m_input_tokens": usage.cache_write - turn.write_1h,
            "ephemeral_1h_input_tokens": turn.write_1h,
        },
        "output_tokens": output,
        "service_tier": "standard",
    }


def _content(turn: Turn) -> list[dict[str, Any]]:
    reply = turn.reply
    blocks: list[dict[str, Any]] = []
    if reply.redacted:
        blocks.append({"type": "redacted_thinking", "data": redact(reply.thinking or "hidden")})
    if reply.thinking:
        blocks.append({"type": "thinking", "thinking": reply.thinking, "signature": sign(reply.thinking)})
    if text := reply.choice(0):
        blocks.append({"type": "text", "text": text})
    for call in reply.tools:
        raw = msgspec.Raw(arguments(call).encode())
        blocks.append(
            {"type": "tool_use", "id": call.id or turn.ids.tool_use(), "name": call.name, "input": raw}
        )
    return blocks


def _stop(turn: Turn) -> str:
    return turn.reply.finish or ("tool_use" if turn.reply.tools else "end_turn")


def _envelope(turn: Turn, content: list[dict[str, Any]], stop: str | None, output: int) -> dict[str, Any]:
    return {
        "model": turn.model,
        "id": turn.ids.message(),
        "type": "message",
        "role": "assistant",
        "content": content,
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": _usage(turn, output),
    }


def body(turn: Turn) -> bytes:
    """The whole reply as JSON."""
    return msgspec.json.encode(_envelope(turn, _content(turn), _stop(turn), turn.usage.output))


def script(turn: Turn) -> Script:
    """The reply as a stream: start, ping, each block with its deltas, message_delta, message_stop."""
    events = [event({"type": "message_start", "message": _envelope(turn, [], None, 1)})]
    for index, block in enumerate(_content(turn)):
        start, deltas = _opening(block, turn)
        events.append(event({"type": "content_block_start", "index": index, "content_block": start}))
        if index == 0:
            events += [_PING] * turn.reply.pings
        events += [event({"type": "content_block_delta", "index": index, "delta": delta}) for delta in deltas]
        events.append(event({"type": "content_block_stop", "index": index}))
    usage = {name: count for name, count in _usage(turn, turn.usage.output).items() if isinstance(count, int)}
    delta = {"stop_reason": _stop(turn), "stop_sequence": None}
    events.append(event({"type": "message_delta", "delta": delta, "usage": usage}))
    events.append(event({"type": "message_stop"}))
    return Script(events, lambda _: [event(describe("anthropic", "overloaded", turn.ids.request())[1])])


def _opening(block: dict[str, Any], turn: Turn) -> tuple[dict[str, Any], Iterator[dict[str, Any]]]:
    """A block as it starts, still empty, and the deltas that fill it."""
    kind = block["type"]
    if kind == "text":
        pieces = turn.reply.pieces()
        return {"type": "text", "text": ""}, ({"type": "text_delta", "text": piece} for piece in pieces)
    if kind == "thinking":
        return {"type": "thinking", "thinking": "", "signature": ""}, _thinking(block)
    if kind == "tool_use":
        return {**block, "input": {}}, _json(block["input"])
    return block, iter(())


def _thinking(block: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for part in halves(block["thinking"]):
        yield {"type": "thinking_delta", "thinking": part}
    yield {"type": "signature_delta", "signature": block["signature"]}


def _json(raw: msgspec.Raw) -> Iterator[dict[str, Any]]:
    yield {"type": "input_json_delta", "partial_json": ""}
    for part in halves(bytes(raw).decode()):
        yield {"type": "input_json_delta", "partial_json": part}
