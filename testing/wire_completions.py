"""OpenAI's /v1/completions: the JSON body and the stream of chunks."""

from __future__ import annotations

from typing import Any

import msgspec

from hearth.testing.refusals import describe
from hearth.testing.wire import DONE, FINGERPRINT, Script, Turn, data, framed, now, openai_usage


def _count(turn: Turn) -> int:
    """One choice for each prompt and `n`; a list of numbers is one prompt of tokens."""
    prompt = turn.request.body.get("prompt")
    several = isinstance(prompt, list) and prompt and not isinstance(prompt[0], int)
    return turn.choices * (len(prompt) if several and isinstance(prompt, list) else 1)


def _choice(index: int, text: str, finish: str | None) -> dict[str, Any]:
    return {"text": text, "index": index, "logprobs": None, "finish_reason": finish}


def _frame(turn: Turn) -> dict[str, Any]:
    return {
        "id": turn.ids.completion(),
        "object": "text_completion",
        "created": now(),
        "model": turn.model,
        "system_fingerprint": FINGERPRINT,
        "choices": [],
    }


def body(turn: Turn) -> bytes:
    """The whole reply as JSON."""
    finish = turn.reply.finish or "stop"
    choices = [_choice(index, turn.reply.choice(index), finish) for index in range(_count(turn))]
    return msgspec.json.encode({**_frame(turn), "choices": choices, "usage": openai_usage(turn.usage)})


def script(turn: Turn) -> Script:
    """The reply as a stream: text, finish reason, usage where asked for, [DONE]."""
    frame, finish = _frame(turn), turn.reply.finish or "stop"
    wanted = bool((turn.request.body.get("stream_options") or {}).get("include_usage"))
    events: list[bytes] = []
    for index in range(_count(turn)):
        pieces = turn.reply.pieces() if index == 0 else (turn.reply.choice(index),)
        lane = [_choice(index, piece, None) for piece in pieces]
        if turn.reply.finish_with_text:
            lane[-1]["finish_reason"] = finish
        else:
            lane.append(_choice(index, "", finish))
        events += map(framed(frame), lane)
    if wanted if turn.reply.usage_chunk is None else turn.reply.usage_chunk:
        events.append(data({**frame, "usage": openai_usage(turn.usage)}))
    return Script([*events, DONE], lambda _: [data(describe("openai", "server", "")[1])])
