"""One model call in flight: what the edge, the plugin and the flow know of it together."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal
from uuid import uuid4

from hearth.gateway.chains import ChainLink
from hearth.gateway.wire.types import Route, WireRequest
from hearth.memory.dialogue import Dialogue
from hearth.memory.engine import Opened
from hearth.memory.events.kinds import UNKNOWN
from hearth.memory.types import Embedding, PageKind, PlacedBlock, Recall, SearchResult, SessionMode, Tails

HeaderPairs = Sequence[tuple[str, str]]


@dataclass(slots=True)
class Call:
    """The state of one call. Mutable: it belongs to a single request and to nobody else."""

    route: Route | None
    headers: HeaderPairs
    started_at: datetime
    raw_body: bytes = b""
    """The request as the client sent it; empty inside a stock proxy."""
    id: str = field(default_factory=lambda: uuid4().hex)
    """Id of the captured event, so that one call is one event whatever is called twice."""
    at_edge: bool = False
    """True if the edge captures; False inside a stock proxy, where LiteLLM's log event does."""
    without_block: bool = False
    """True on the second try after the provider refused the prompt for its length or content."""

    due: float = 0.0
    """When memory must let the call go on, as `time.monotonic`; see `Engine.due`."""
    request: WireRequest | None = None
    opened: Opened | None = None
    search: asyncio.Task[SearchResult] | None = None
    """The look-up that the recall will want, begun before its surroundings are known."""
    recall: Recall | None = None
    block: PlacedBlock | None = None
    placed: bool = False
    """True if a block went into the prompt."""
    draft: Draft | None = None
    """What capture writes once the reply is known; None where nothing is written."""
    private: Private | None = None
    """What is written down of its session's switch once the reply is known; None where nothing is."""
    status: Literal["ok", "off", "partial", "failed"] = "off"
    reason: str = ""
    shadow: bool = False
    milliseconds: float = 0.0
    """Time that Hearth took before the call was forwarded."""
    retry_after: str = ""
    """The provider's header of that name, of a refused call."""
    captured: bool = False
    link: ChainLink | None = None
    """The turn to hold where the backend keeps no chain of responses itself."""

    def __post_init__(self) -> None:
        """Until memory is asked, a call has none: its route has none, or it is refused before."""
        self.reason = self.reason or ("refused" if self.route else "route")

    def off(self, reason: str) -> None:
        """Go on without memory, and say why."""
        self.status, self.reason = "off", reason


@dataclass(slots=True, frozen=True, kw_only=True)
class Draft:
    """A step's half that is known before the reply."""

    dialogue: Dialogue
    kind: PageKind
    timezone: str
    tags: tuple[str, ...]
    tails_before: Tails
    retry_key: str
    secret: bytes
    full_tools: bool
    key: str
    """Name of the gateway's key."""
    vector: Embedding | None = None


@dataclass(slots=True, frozen=True, kw_only=True)
class Private:
    """What memory does in a call's session from now on, and by what its next call is found."""

    mode: SessionMode
    dialogue: Dialogue
    secret: bytes


CALL: ContextVar[Call | None] = ContextVar("hearth_call", default=None)
"""The call that this task serves; set by the edge, seen by every LiteLLM hook below it."""


def response_headers(call: Call) -> dict[str, str]:
    """The `x-hearth-*` headers of a reply."""
    headers = {"x-hearth-status": call.status}
    if call.retry_after:
        headers["retry-after"] = call.retry_after
    if call.reason:
        headers["x-hearth-reason"] = call.reason
    if call.opened is not None and call.opened.generation != UNKNOWN:
        headers["x-hearth-session"] = call.opened.scope.session
    if call.private is not None:
        headers["x-hearth-session-memory"] = call.private.mode
    if call.status == "off":
        return headers
    recall = call.recall
    headers["x-hearth-recalled"] = str(len(recall.block.items) if recall else 0)
    headers["x-hearth-tokens"] = str(call.block.tokens if call.block and call.placed else 0)
    headers["x-hearth-ms"] = f"{call.milliseconds:.1f}"
    if recall is not None:
        headers["x-hearth-trace"] = recall.trace
    return headers


__all__ = ["CALL", "Call", "Draft", "HeaderPairs", "Private", "response_headers"]
