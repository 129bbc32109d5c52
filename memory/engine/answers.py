"""What the engine answers that no port has a word for."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from hearth.memory.types import Scope, SessionMode, SummaryLine

CLOCKS_APART = timedelta(minutes=1)
"""How far ahead of this machine's clock a caller's may be."""


class Opened(msgspec.Struct, frozen=True, kw_only=True):
    """Where a request belongs: its session, exchange and causal parent."""

    scope: Scope
    """With its session."""
    exchange: str
    parent: str | None
    """The exchange before this one; None at a session's start and where a later step doesn't know it."""
    generation: int
    mode: SessionMode = "on"
    """What memory does in the session."""
    summary: tuple[SummaryLine, ...] = ()
    """What has left short-term memory of the session."""
    last_call: datetime | None = None
    """When the session's last reply was finished; None where this request's history does not tell."""


class Forgotten(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a deletion: `done`, or `pending` on the named parts, where the worker completes it."""

    done: bool
    pending: tuple[str, ...] = ()
    receipt: str = ""
    """Its id."""
