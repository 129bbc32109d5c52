"""How a stream's events become writes: faults, batches and cuts, as a pure function."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Literal

from hearth.testing.reply import Reply
from hearth.testing.wire import Script

Ending = Literal["end", "cut", "hang"]

SPLIT_PAUSE = 0.0005
"""Seconds between the pieces of a split stream: enough for the client to read each one by itself."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a stream writes and how it ends."""

    writes: list[bytes]
    pause: float
    """Seconds after each write."""
    ending: Ending


def plan(script: Script, reply: Reply) -> Plan:
    """Apply the reply's faults and shaping to a stream."""
    events, ending = _faulty(script, reply)
    if reply.crlf:
        events = [one.replace(b"\n", b"\r\n") for one in events]
    if reply.split_bytes:
        return Plan(split(b"".join(events), reply.split_bytes), reply.gap or SPLIT_PAUSE, ending)
    if reply.batch > 1:
        events = [b"".join(events[at : at + reply.batch]) for at in range(0, len(events), reply.batch)]
    return Plan(events, reply.gap, ending)


def _faulty(script: Script, reply: Reply) -> tuple[list[bytes], Ending]:
    if reply.fail_after is not None:
        return script.events[: reply.fail_after] + script.failure(reply.fail_after), "end"
    if reply.cut_after is not None:
        return script.events[: reply.cut_after], "cut"
    if reply.hang_after is not None:
        return script.events[: reply.hang_after], "hang"
    return (script.events if reply.done else script.events[:-1]), "end"


def split(stream: bytes, size: int) -> list[bytes]:
    """Cut a stream every `size` bytes and before every continuation byte of a UTF-8 character."""
    cuts = set(range(size, len(stream), size)) | {at for at, byte in enumerate(stream) if byte & 0xC0 == 0x80}
    edges = [0, *sorted(cuts), len(stream)]
    return [stream[start:end] for start, end in itertools.pairwise(edges)]
