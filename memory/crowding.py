"""Finds the segments that have to go though their user says nothing: too old, or too many in the tenant."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple
from uuid import NAMESPACE_URL, uuid5

from hearth.memory.errors import StaleGeneration
from hearth.memory.events.kinds import SegmentDue, happened
from hearth.memory.policies import PolicyOf
from hearth.memory.ports import Clock, EventLog, MidTerm, TenantSegment
from hearth.memory.tiers.crowding import Reason, crowded_out, over
from hearth.memory.tiers.heat import HeatPolicy
from hearth.memory.tiers.limits import Limits
from hearth.memory.types import Scope, agent_in

_NAMESPACE: Final = uuid5(NAMESPACE_URL, "hearth:crowding")
AT_ONCE: Final = 2_000
"""Segments of a tenant that are found at once."""


class Found(NamedTuple):
    """A segment that is due, and why."""

    one: TenantSegment
    reason: Reason


class Crowding:
    """Tells the segment decider what is due, tenant by tenant. Any number of workers may do so at once."""

    def __init__(self, *, log: EventLog, mid_term: MidTerm, clock: Clock, policy: PolicyOf) -> None:
        self._log = log
        self._mid_term = mid_term
        self._clock = clock
        self._policy = policy

    async def sweep(self) -> int:
        """Tell of all that is due now; how many segments that is. Raises LogUnavailable."""
        return sum([await self._of_tenant(tenant) for tenant in await self._log.tenants()])

    async def _of_tenant(self, tenant: str) -> int:
        policy, now = self._policy(tenant, "", ""), self._clock.now()
        found = await due(self._mid_term, tenant, policy.limits, policy.heat, now)
        for one in found:
            await self._tell(tenant, one, now)
        return len(found)

    async def _tell(self, tenant: str, found: Found, now: datetime) -> None:
        """Once for each state of a segment, whoever else finds it."""
        one, segment = found.one, found.one.segment
        same = f"{tenant}/{one.user}/{one.generation}/{segment.id}/{one.changed}"
        scope = Scope(tenant=tenant, user=one.user, agent=agent_in(segment.owner))
        due = SegmentDue(segment=segment.id, reason=found.reason)
        event = happened(scope, due, one.generation, at=now, id=uuid5(_NAMESPACE, same).hex)
        try:
            await self._log.append([event])
        except StaleGeneration:
            return  # erased meanwhile: it is gone


async def due(mid_term: MidTerm, tenant: str, limits: Limits, heat: HeatPolicy, now: datetime) -> list[Found]:
    """The tenant's segments that have to go now by age and by the limits over all users: the longest
    untouched first, then the coldest; so many at once. Raises LogUnavailable.
    """
    old = await _old(mid_term, tenant, limits, now)
    return [*(Found(one, "age") for one in old), *await _surplus(mid_term, tenant, limits, heat, old)]


async def _old(mid_term: MidTerm, tenant: str, limits: Limits, now: datetime) -> list[TenantSegment]:
    if limits.days is None:
        return []
    found = await mid_term.untouched(tenant, now - timedelta(days=limits.days), limit=AT_ONCE)
    return [one for one in found if not one.segment.pinned]


async def _surplus(
    mid_term: MidTerm, tenant: str, limits: Limits, heat: HeatPolicy, old: Sequence[TenantSegment]
) -> list[Found]:
    """Those that there is no room for beside those that go for their age."""
    if (limits.tenant_segments, limits.tenant_pages, limits.tenant_bytes) == (None, None, None):
        return []
    crowd = (await mid_term.crowd(tenant)).without(one.segment for one in old)
    if over(crowd, limits) is None:
        return []
    gone = {(one.user, one.segment.id) for one in old}
    coldest = await mid_term.coldest(tenant, heat, limit=AT_ONCE)
    left = [one for one in coldest if (one.user, one.segment.id) not in gone]
    reasons = crowded_out(crowd, [one.segment for one in left], limits)
    return [Found(one, reason) for one, reason in zip(left, reasons, strict=True) if reason is not None]
