"""Which segments a tenant has no room for, over all of its users. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

import msgspec

from hearth.memory.tiers.limits import Limits
from hearth.memory.types import Segment

Reason: TypeAlias = Literal["tenant segments", "tenant pages", "tenant bytes", "age"]
"""Why a segment is due."""


class Crowd(msgspec.Struct, frozen=True, kw_only=True):
    """How much mid-term memory all users of a tenant have."""

    segments: int = 0
    pages: int = 0
    bytes: int = 0
    """Of the pages' texts."""

    def without(self, segments: Iterable[Segment]) -> Crowd:
        """What is left once those have gone."""
        some = list(segments)
        return Crowd(
            segments=self.segments - len(some),
            pages=self.pages - sum(one.pages for one in some),
            bytes=self.bytes - sum(one.size for one in some),
        )


def crowded_out(crowd: Crowd, coldest: Sequence[Segment], limits: Limits) -> list[Reason | None]:
    """Why each of the segments, which come coldest first, has to go; None for one that stays.

    As many go as the limits over all users ask for, and none that is pinned. Where they are not enough the
    rest has to wait for the next time.
    """
    reasons: list[Reason | None] = []
    for segment in coldest:
        reason = None if segment.pinned else over(crowd, limits)
        if reason is not None:
            crowd = crowd.without([segment])
        reasons.append(reason)
    return reasons


def over(crowd: Crowd, limits: Limits) -> Reason | None:
    """The first limit over all users that is exceeded."""
    if limits.tenant_segments is not None and crowd.segments > limits.tenant_segments:
        return "tenant segments"
    if limits.tenant_pages is not None and crowd.pages > limits.tenant_pages:
        return "tenant pages"
    if limits.tenant_bytes is not None and crowd.bytes > limits.tenant_bytes:
        return "tenant bytes"
    return None
