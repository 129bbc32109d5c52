"""What the log answers of all segments of a tenant: how many there are, and which are the coldest."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from hearth.memory.events.codec import micros
from hearth.memory.events.mid_term import SEGMENTS, heat_of, segment_of
from hearth.memory.events.sql import REACHED, Database, marks
from hearth.memory.ports import TenantSegment
from hearth.memory.tiers.crowding import Crowd
from hearth.memory.tiers.heat import NOTHING, HeatPolicy, order

_LIVE: Final = (
    f"FROM segments s JOIN users u ON u.id = s.user_id WHERE u.tenant = ? AND s.state = 'live' AND {REACHED}"
)
_HOUR: Final = 3.6e9
"""Microseconds of one."""
_NAMED: Final = 500
"""Segments that one statement names."""


def crowd(db: Database, tenant: str) -> Crowd:
    """See `MidTerm.crowd`."""
    held = db.execute(f"SELECT count(*) {_LIVE}", (tenant,))
    pages = db.execute(
        "SELECT count(*), coalesce(sum(g.size), 0) FROM pages g JOIN users u ON u.id = g.user_id"
        f" WHERE u.tenant = ? AND g.state = 'active' AND g.segment <> '' AND {REACHED}",
        (tenant,),
    )
    segments, (count, size) = (held.fetchone() or (0,))[0], pages.fetchone() or (0, 0)
    return Crowd(segments=segments, pages=count, bytes=int(size))


def coldest(db: Database, tenant: str, policy: HeatPolicy, *, limit: int) -> list[TenantSegment]:
    """See `MidTerm.coldest`.

    A segment's place is the logarithm of a sum of two, of which the larger one is known to the database: it
    is less by log 2 at most. So all that can be among the coldest lies within that of the last one.
    """
    sums = "s.level + coalesce(s.touched, 0) / ? * (1.0 / ? - 1.0 / s.fade)"
    rests = "-1e308" if policy.recency <= 0 else "coalesce(s.touched / ? / ? + ?, -1e308)"
    rested = () if policy.recency <= 0 else (_HOUR, policy.fade_hours, math.log(policy.recency))
    known = (
        "SELECT s.user_id AS whose, s.id AS id, s.level AS level, s.touched AS touched, s.fade AS fade,"
        f" {sums} AS summed, {rests} AS rested {_LIVE}"
    )
    values = (_HOUR, policy.fade_hours, *rested, tenant)
    least = "CASE WHEN summed > rested THEN summed ELSE rested END"
    last = db.execute(
        f"SELECT {least} AS least FROM ({known}) AS known ORDER BY least LIMIT 1 OFFSET ?",
        (*values, limit - 1),
    ).fetchone()
    bound = math.inf if last is None else last[0] + math.log(2)
    rows = db.execute(
        f"SELECT whose, id, level, touched, fade FROM ({known}) AS known WHERE {least} <= ?",
        (*values, min(bound, -NOTHING)),
    )
    placed = (
        (order(heat_of(level, touched, fade, ""), policy), id, whose)
        for whose, id, level, touched, fade in rows
    )
    return _read(db, [(whose, id) for _, id, whose in heapq.nsmallest(limit, placed)])


def untouched(db: Database, tenant: str, before: datetime, *, limit: int) -> list[TenantSegment]:
    """See `MidTerm.untouched`."""
    rows = db.execute(
        f"SELECT s.user_id, s.id {_LIVE} AND s.touched < ? ORDER BY s.touched, s.id LIMIT ?",
        (tenant, micros(before), limit),
    )
    return _read(db, [(row[0], row[1]) for row in rows])


def _read(db: Database, named: Sequence[tuple[int, str]]) -> list[TenantSegment]:
    """Those segments whole, in that order."""
    found: dict[tuple[int, str], TenantSegment] = {}
    for start in range(0, len(named), _NAMED):
        ids = sorted({id for _, id in named[start : start + _NAMED]})
        sql = f"{SEGMENTS} JOIN users u ON u.id = s.user_id WHERE s.id IN ({marks(ids)})"
        for whose, name, generation, *row in db.execute(sql.format("s.user_id, u.name, u.generation, "), ids):
            one = segment_of(db, tuple(row))
            if one.segment is not None:
                found[whose, one.id] = TenantSegment(
                    user=name, generation=generation, segment=one.segment, heat=one.heat, changed=one.changed
                )
    return [found[one] for one in named if one in found]
