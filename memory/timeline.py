"""The heat of a segment over time, from what the log tells of it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Literal, TypeAlias

import msgspec

from hearth.memory.events.kinds import (
    Event,
    PageSegmented,
    SegmentEvicted,
    SegmentPromoted,
    SegmentVisited,
)
from hearth.memory.ports import WaitingPage
from hearth.memory.tiers.heat import Heat, HeatPolicy, touch, warmth, with_page

What: TypeAlias = Literal["page", "visit", "promotion", "eviction", "now"]


class HeatPoint(msgspec.Struct, frozen=True, kw_only=True):
    """How warm a segment was right after something happened to it; from there it fades until the next one."""

    at: datetime
    heat: float
    what: What
    of: str = ""
    """The page that joined, or the exchange whose recall showed something of the segment."""


def heat_points(
    events: Sequence[Event],
    pages: Iterable[WaitingPage],
    policy: HeatPolicy,
    *,
    now: tuple[datetime, Heat] | None = None,
) -> list[HeatPoint]:
    """Points in the order of the log. `events` are of the segment and of its pages, in that order.

    A visit's event tells the heat that it made. What a page adds is computed from the page and the visits
    that it had before, by the policy of now. `now`: the moment and the heat of a segment that is live.
    """
    known = {page.id: page for page in pages}
    heat, points = Heat(), list[HeatPoint]()
    for event in sorted(events, key=lambda one: one.seq):
        match event.payload:
            case PageSegmented(page=id, segment=segment) if segment is not None:
                heat = _joined(heat, known.get(id), event.occurred_at, policy)
                points.append(_point(event, heat, policy, "page", id))
            case SegmentVisited(exchange=exchange):
                heat = event.payload.heat
                points.append(_point(event, heat, policy, "visit", exchange))
            case SegmentPromoted(warmth=told):
                points.append(HeatPoint(at=event.occurred_at, heat=told, what="promotion"))
            case SegmentEvicted(warmth=told, reason=reason) if reason != "lost a page":
                points.append(HeatPoint(at=event.occurred_at, heat=told, what="eviction"))
            case _:
                pass
    if now is not None:
        points.append(HeatPoint(at=now[0], heat=round(warmth(now[1], now[0], policy), 4), what="now"))
    return points


def _joined(heat: Heat, page: WaitingPage | None, at: datetime, policy: HeatPolicy) -> Heat:
    """With the page; one that is no longer known counts as said when it moved."""
    if page is None:
        return touch(heat, policy.page, at, policy)
    said = min(page.at, at)
    return with_page(heat, said, drawn=page.drawn, seen=page.seen, visited=page.visited, policy=policy)


def _point(event: Event, heat: Heat, policy: HeatPolicy, what: What, of: str) -> HeatPoint:
    shown = round(warmth(heat, event.occurred_at, policy), 4)
    return HeatPoint(at=event.occurred_at, heat=shown, what=what, of=of)
