"""Heat: how alive a segment is, as one number whose order time does not change. Pure.

An exponentially decayed sum: a visit adds `visit`, a page `page`, and the last touch counts `recency` once;
everything fades by exp(-age / fade). Kept forward-decayed (Cormode et al.: Forward Decay, ICDE 2009)
and as a logarithm: what is added later weighs more instead of what is old fading, so that no job
ever counts anew, the coldest is one look-up in an index, and no number overflows.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Final

import msgspec
from msgspec import structs

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
NOTHING: Final = -1e308
"""The level of what was never touched; finite, so that a database can hold it."""


class HeatPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """What heat is made of. MemoryOS's values (Kang et al. 2025), but for `seen`."""

    visit: float = 1.0
    """Of a recall that the reply drew on."""
    seen: float = 0.2
    """Part of a visit that a recall counts which the reply did not draw on."""
    page: float = 1.0
    recency: float = 1.0
    """Of the last touch, whatever it was."""
    fade_hours: float = 24.0
    """Time in which all fades to 1/e."""
    promotion: float = 5.0
    """Heat from which what a segment has gained goes to long-term memory."""

    @property
    def counts(self) -> str:
        """What touches are counted by: heat that was counted by something else has to be counted anew."""
        return f"{self.visit}/{self.seen}/{self.page}/{self.fade_hours}"

    def worth(self, *, used: bool) -> float:
        """Of a recall that the reply drew on, or did not."""
        return self.visit if used else self.visit * self.seen


class Heat(msgspec.Struct, frozen=True, kw_only=True):
    """The heat of one segment, for ever comparable with that of others of the same `fade_hours`."""

    level: float = NOTHING
    """Logarithm of the forward-decayed sum of visits and pages."""
    touched: datetime | None = None
    """When it was last touched."""
    fade_hours: float = 24.0
    counted_by: str = ""
    """`HeatPolicy.counts` of its first touch."""


def touch(heat: Heat, weight: float, at: datetime, policy: HeatPolicy) -> Heat:
    """The heat after a visit or page of that weight. Touches of any order give the same, to the last bits."""
    heat = _of_policy(heat, policy)
    added = math.log(weight) + _age(at, policy) if weight > 0 else NOTHING
    last = at if heat.touched is None else max(heat.touched, at)
    by = policy.counts if heat.touched is None else heat.counted_by
    return Heat(level=_sum(heat.level, added), touched=last, fade_hours=policy.fade_hours, counted_by=by)


def with_page(
    heat: Heat, said: datetime, *, drawn: int, seen: int, visited: datetime | None, policy: HeatPolicy
) -> Heat:
    """With a page that joins, said at that time, and the visits that it had in short-term memory."""
    heat = touch(heat, policy.page, said, policy)
    if visited is None:
        return heat
    return touch(heat, policy.visit * (drawn + policy.seen * seen), visited, policy)


def order(heat: Heat, policy: HeatPolicy) -> float:
    """What segments are sorted by: the coldest has the least, now and at any other time."""
    heat = _of_policy(heat, policy)
    if heat.touched is None or policy.recency <= 0:
        return heat.level
    return _sum(heat.level, math.log(policy.recency) + _age(heat.touched, policy))


def warmth(heat: Heat, at: datetime, policy: HeatPolicy) -> float:
    """The heat at that moment, 0 upwards; a touch that lies ahead counts as of now."""
    heat = _of_policy(heat, policy)
    if heat.touched is not None:
        at = max(at, heat.touched)
    exponent = order(heat, policy) - _age(at, policy)
    return math.exp(exponent) if exponent > -700 else 0.0


def _of_policy(heat: Heat, policy: HeatPolicy) -> Heat:
    """The same heat by another fading, from its last touch on: what it was stays, how it fades changes."""
    if heat.fade_hours == policy.fade_hours or heat.touched is None:
        return structs.replace(heat, fade_hours=policy.fade_hours)
    then = heat.level - _hours(heat.touched) / heat.fade_hours
    return structs.replace(heat, level=then + _age(heat.touched, policy), fade_hours=policy.fade_hours)


def _age(at: datetime, policy: HeatPolicy) -> float:
    return _hours(at) / policy.fade_hours


def _hours(at: datetime) -> float:
    return (at - _EPOCH).total_seconds() / 3600


def _sum(one: float, other: float) -> float:
    """log(exp(one) + exp(other))."""
    high, low = max(one, other), min(one, other)
    return high + math.log1p(math.exp(low - high)) if low > NOTHING else high
