"""Which earlier blocks of a session go back into the prompt, so that the provider's cache still fits it.

Where a cache entry ends behind a block (automatic caching, tool loops), a request without that block reads
nothing of it. So a session's blocks are a run that only grows, until something ends it: then all are dropped
at once, and the next run begins with a block that is marked `alone`. A run and the new block together stay
within an allowance: at the published prices a session's input then costs at most about a quarter more.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from hearth.gateway.wire.types import WireRequest
from hearth.memory.dialogue import Dialogue
from hearth.memory.types import PlacedBlock

REPLAY_TOKENS = 2_000
"""Tokens that a run of blocks may have in any prompt."""
REPLAY_SHARE = 0.25
"""Share of the prompt that a run of blocks may have."""
MOST_BLOCKS = 40
"""Blocks of a run; fewer than short-term memory keeps of a session, so that a run never loses its head."""


def stays(request: WireRequest, dialogue: Dialogue) -> bool:
    """Whether blocks stay in the prompt: with automatic caching, and from the first tool call on."""
    return request.automatic_caching or any(pair.tools for pair in dialogue.history)


def run_of(
    placed: Sequence[tuple[int, PlacedBlock]], current: PlacedBlock | None, *, alive: bool, most: int
) -> dict[int, PlacedBlock]:
    """The blocks that go back, by message index.

    `placed` are the history's, oldest first; `current` is this exchange's own where an earlier step or
    attempt has made it: what went with it then goes with it now. `alive` says that the provider's cache
    entry still lives, `most` how many tokens a run may have.
    """
    if current is not None and current.alone:
        return {}
    start = max((place for place, (_, block) in enumerate(placed) if block.alone), default=0)
    run = placed[start:]
    ends = not alive or len(run) >= MOST_BLOCKS or sum(block.tokens for _, block in run) > most
    if current is None and ends:
        return {}
    return {index: block for index, block in run if block.text}


def alive(request: WireRequest, last_call: datetime | None, now: datetime) -> bool:
    """Whether the provider's cache still holds what the session's last call left there."""
    return last_call is not None and (now - last_call).total_seconds() <= request.cache_seconds


def allowance(request: WireRequest) -> int:
    """Tokens that a run of blocks, the newest included, may have in this prompt."""
    return max(REPLAY_TOKENS, int(prompt_tokens(request) * REPLAY_SHARE))


def prompt_tokens(request: WireRequest) -> int:
    """Estimate of the prompt's tokens at four bytes each, tool calls and results included."""
    said = sum(len(turn.text.encode("utf-8", "replace")) for turn in request.turns)
    return (said + _tool_bytes(request)) // 4


def _tool_bytes(request: WireRequest) -> int:
    tools = (tool for turn in request.turns for tool in turn.tools)
    return sum(tool.argument_bytes + tool.result_bytes for tool in tools)
