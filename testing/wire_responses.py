"""OpenAI's /v1/responses: the response object and the stream of numbered events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from hearth.testing.wire import Script, Turn, arguments, event, halves, now

_ECHOED: dict[str, Any] = {
    "background": False,
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "reasoning": {"effort": None, "summary": None},
    "safety_identifier": None,
    "service_tier": "default",
    "store": True,
    "temperature": 1.0,
    "text": {"format": {"type": "text"}, "verbosity": "medium"},
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": 1.0,
    "truncation": "disabled",
    "user": None,
}
"""Fields that the response repeats from the request, with their values where the request has none."""


def _usage(turn: Turn) -> dict[str, Any]:
    usage = turn.usage
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {
            "cached_tokens": usage.cached_input,
            "cache_write_tokens": usage.cache_write,
        },
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.input + usage.output,
    }


def response(turn: Turn) -> dict[str, Any]:
    """The response object, complete."""
    asked = turn.request.body
    conversation = asked.get("conversation")
    return {
        "id": turn.ids.item("resp"),
        "object": "response",
        "created_at": now(),
        "status": "completed",
        "completed_at": now(),
        "error": None,
        "incomplete_details": None,
        "model": turn.model,
        "output": _output(turn),
        "usage": _usage(turn),
        **{name: asked.get(name, default) for name, default in _ECHOED.items()},
        **({"conversation": {"id": conversation_id(conversation)}} if conversation else {}),
    }


def conversation_id(conversation: object) -> str:
    """The id in a request's `conversation`, a string or an object."""
    return str(conversation.get("id")) if isinstance(conversation, dict) else str(conversation or "")


def _output(turn: Turn) -> list[dict[str, Any]]:
    reply, items = turn.reply, list[dict[str, Any]]()
    if reply.thinking:
        summary = [{"type": "summary_text", "text": reply.thinking}]
        items.append({"id": turn.ids.item("rs"), "type": "reasoning", "summary": summary})
    if text := reply.choice(0):
        items.append(
            {
                "id": turn.ids.item("msg"),
                "type": "message",
                "status": "completed",
                "content": [{"type": "output_text", "annotations": [], "logprobs": [], "text": text}],
                "role": "assistant",
            }
        )
    for call in reply.tools:
        items.append(
            {
                "id": turn.ids.item("fc"),
                "type": "function_call",
                "status": "completed",
                "arguments": arguments(call),
                "call_id": call.id or turn.ids.call(),
                "name": call.name,
            }
        )
    return items


def script(turn: Turn, whole: dict[str, Any]) -> Script:
    """The response as a stream: created, in_progress, each item with its parts, completed."""
    empty = {**whole, "status": "in_progress", "completed_at": None, "output": [], "usage": None}
    payloads: list[dict[str, Any]] = [
        {"type": "response.created", "response": empty},
        {"type": "response.in_progress", "response": empty},
    ]
    for index, item in enumerate(whole["output"]):
        payloads += _item(turn, index, item)
    payloads.append({"type": "response.completed", "response": whole})
    failed = {**empty, "status": "failed", "error": {"code": "server_error", "message": _FAILED}}
    failure: list[dict[str, Any]] = [
        {"type": "error", "code": "server_error", "message": _FAILED, "param": None},
        {"type": "response.failed", "response": failed},
    ]
    return Script(_numbered(payloads), lambda after: _numbered(failure, after))


_FAILED = "An error occurred while processing your request."


def _numbered(payloads: list[dict[str, Any]], first: int = 0) -> list[bytes]:
    return [event({**payload, "sequence_number": number}) for number, payload in enumerate(payloads, first)]


def _item(turn: Turn, index: int, item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    here = {"item_id": item["id"], "output_index": index}
    kind = item["type"]
    if kind == "message":
        opening, inner = {**item, "status": "in_progress", "content": []}, _message(turn, here, item)
    elif kind == "function_call":
        opening, inner = {**item, "status": "in_progress", "arguments": ""}, _call(here, item)
    else:
        opening, inner = {**item, "summary": []}, _reasoning(here, item)
    yield {"type": "response.output_item.added", "output_index": index, "item": opening}
    yield from inner
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


def _message(turn: Turn, here: dict[str, Any], item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    part = item["content"][0]
    here = {**here, "content_index": 0}
    yield {"type": "response.content_part.added", **here, "part": {**part, "text": ""}}
    for piece in turn.reply.pieces():
        yield {"type": "response.output_text.delta", **here, "delta": piece, "logprobs": []}
    yield {"type": "response.output_text.done", **here, "text": part["text"], "logprobs": []}
    yield {"type": "response.content_part.done", **here, "part": part}


def _call(here: dict[str, Any], item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for part in halves(item["arguments"]):
        yield {"type": "response.function_call_arguments.delta", **here, "delta": part}
    yield {
        "type": "response.function_call_arguments.done",
        **here,
        "name": item["name"],
        "arguments": item["arguments"],
    }


def _reasoning(here: dict[str, Any], item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    part = item["summary"][0]
    here = {**here, "summary_index": 0}
    yield {"type": "response.reasoning_summary_part.added", **here, "part": {**part, "text": ""}}
    for piece in halves(part["text"]):
        yield {"type": "response.reasoning_summary_text.delta", **here, "delta": piece}
    yield {"type": "response.reasoning_summary_text.done", **here, "text": part["text"]}
    yield {"type": "response.reasoning_summary_part.done", **here, "part": part}


def body(whole: dict[str, Any]) -> bytes:
    """The response object as JSON."""
    return msgspec.json.encode(whole)
