"""What the wire modules read from a request and a reply, and the protocol each of them implements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol, TypeAlias

import msgspec

from hearth.memory.types import Outcome, ToolUse, Turn, Usage

Route = Literal["chat", "messages", "responses", "completions"]

Body: TypeAlias = dict[str, Any]
"""A request or reply body as parsed JSON. It does not pass beyond gateway/wire and gateway/plugin.py."""


class WireRequest(msgspec.Struct, frozen=True, kw_only=True):
    """All that Hearth needs of a model request."""

    route: Route
    model: str
    turns: tuple[Turn, ...]
    """The transcript in order, system text included; empty texts stay as turns."""
    stream: bool = False
    choices: int = 1
    """`n`."""
    body_user: str = ""
    """`user`, or `safety_identifier` where there is no `user`."""
    metadata_user: str = ""
    """`metadata.user_id`."""
    metadata: Mapping[str, str] = {}
    """The string entries of the client's `metadata`; presets look for session ids there."""
    prompt_cache_key: str = ""
    """OpenAI's `prompt_cache_key`; some clients put their session id there."""
    offered_tools: int = 0
    """How many tools the request offers; housekeeping calls offer none."""
    previous_response_id: str = ""
    conversation: str = ""
    """The responses route's `conversation` id."""
    stored: bool = True
    """False for `store: false`."""
    automatic_caching: bool = False
    """The provider writes a cache entry at the prompt's very end: Anthropic's top-level `cache_control`."""
    explicit_caching: bool = False
    """OpenAI's `prompt_cache_options.mode: explicit`: only the client's own breakpoints count."""
    cache_seconds: int = 300
    """Life of the provider's cache entry: 300, or 3600 where the request asks for one hour."""
    max_output: int = 0
    """`max_tokens` and its newer names; 0 where absent."""
    placeable: bool = True
    """False where no block can go in: `suffix`, token arrays, prompt lists, no user text."""


class WireReply(msgspec.Struct, frozen=True, kw_only=True):
    """All that Hearth keeps of a model reply, whether it came as JSON or as a stream."""

    text: str = ""
    """Visible text of choice 0."""
    alternatives: tuple[str, ...] = ()
    """Visible texts of the other choices, in order."""
    tools: tuple[ToolUse, ...] = ()
    """Calls that wait for the client, with raw arguments: whoever captures drops those by default."""
    response_id: str = ""
    model: str = ""
    usage: Usage | None = None
    outcome: Outcome = "complete"
    """`partial`: the stream ended without its terminal event; `failed`: an error and no visible text."""
    error: str = ""
    """The provider's error, shortened; empty where there was none."""
    unparsed: int = 0
    """Stream events that could not be read; counted and logged by the caller."""


class Wire(Protocol):
    """One wire format. All methods are pure; none changes its argument."""

    @property
    def route(self) -> Route:
        """The route this format belongs to."""
        ...

    def read_request(self, body: Body) -> WireRequest:
        """Parse a request. Never raises for odd input: what can't be read, the provider may refuse."""
        ...

    def place(self, body: Body, blocks: Mapping[int, str]) -> Body:
        """A copy of the body with each block at the end of the user message of that `Turn.index`.

        A string stays a string, a list gets one more text part after every part it has; all else is the
        same object. An index that is no user message with text is skipped.
        """
        ...

    def strip(self, body: Body) -> Body:
        """The body without any block of ours: `strip(place(b, …)) == b`."""
        ...

    def read_reply(self, raw: bytes, *, status: int, stream: bool) -> WireReply:
        """Parse a reply's whole body. Never raises."""
        ...

    def terminal(self, chunk: bytes) -> int:
        """Offset in `chunk` at which the stream's terminal event starts, -1 if it does not. Cheap."""
        ...
