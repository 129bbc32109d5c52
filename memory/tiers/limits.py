"""How much of what was said stays in mid-term memory."""

from __future__ import annotations

import msgspec


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How much of a user's dialogue stays in mid-term memory; None: any amount."""

    segments: int | None = 2_000
    """MemoryOS's capacity."""
    pages: int | None = None
    bytes: int | None = None
    """Of the pages' texts."""
    days: float | None = None
    """Since a segment was last touched."""
    session_segments: int | None = None
    """Whose latest page is of one session."""
    episodes: int | None = 2_000
    """Of segments that have left."""
    episode_bytes: int | None = None
    """Of their texts."""
    tenant_segments: int | None = None
    """Of all users of the tenant together, as are the next two."""
    tenant_pages: int | None = None
    tenant_bytes: int | None = None
