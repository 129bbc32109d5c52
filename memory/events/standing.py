"""How full a user's tiers are, and what moves between them: counted from the views, without any payload."""

from __future__ import annotations

from datetime import datetime

from hearth.memory.events.codec import micros, moment
from hearth.memory.events.finding import OWN
from hearth.memory.events.mid_term import heat_of
from hearth.memory.events.sql import USER, Database, marks
from hearth.memory.ports import Standing
from hearth.memory.types import Scope

FLOW = (
    "page.segmented",
    "segment.visited",
    "segment.promoted",
    "segment.evicted",
    "memory.added",
)
"""Kinds that are counted."""
_GENERATION = "(SELECT generation FROM users WHERE tenant = ? AND name = ?)"
_LATEST = 20_000
"""Events of a user that are looked at for what happened lately."""


def standing(db: Database, scope: Scope, *, since: datetime, now: datetime) -> Standing:
    """See `MidTerm.standing`. Statements are sent together before the first answer is read."""
    user, owned = (scope.tenant, scope.user), (scope.tenant, scope.user, scope.owner)
    mine = ("AND m.own_agent = ?", (scope.agent,)) if scope.isolated else ("", ())
    own = (f"AND agent = ? AND {OWN}", (*(scope.agent,) * 3, scope.owner)) if scope.isolated else ("", ())
    waiting = db.execute(
        "SELECT count(*), coalesce(sum(size), 0), count(DISTINCT session), min(occurred) FROM pages"
        f" WHERE user_id = {USER} AND owner = ? AND state = 'active' AND segment IS NULL",
        owned,
    )
    moved = db.execute(
        "SELECT count(*), coalesce(sum(CASE WHEN state = 'active' THEN 1 ELSE 0 END), 0),"
        " coalesce(sum(CASE WHEN state = 'active' THEN size ELSE 0 END), 0) FROM pages"
        f" WHERE user_id = {USER} AND owner = ? AND segment IS NOT NULL AND segment <> ''",
        owned,
    )
    heats = db.execute(
        "SELECT id, level, touched, fade, counted_by FROM segments"
        f" WHERE user_id = {USER} AND owner = ? AND state = 'live'",
        owned,
    )
    evicted = db.execute(
        f"SELECT count(*) FROM segments WHERE user_id = {USER} AND owner = ?"
        " AND state IN ('evicted', 'lost')",
        owned,
    )
    holds = "CASE WHEN m.successor IS NULL AND (m.closed IS NULL OR m.closed > ?) THEN 1 ELSE 0 END"
    memories = db.execute(
        f"SELECT m.type, sum({holds}), count(*) FROM memories m"
        f" WHERE m.user_id = {USER} AND (m.expires IS NULL OR m.expires > ?) {mine[0]} GROUP BY m.type",
        (micros(now), *user, micros(now), *mine[1]),
    )
    lately = db.execute(
        "SELECT kind, count(*) FROM (SELECT kind, occurred, agent, subject, user_id FROM events"
        f" WHERE user_id = {USER} AND generation = {_GENERATION} ORDER BY seq DESC LIMIT {_LATEST}) AS e"
        f" WHERE occurred >= ? AND kind IN ({marks(FLOW)}) {own[0]} GROUP BY kind",
        (*user, *user, micros(since), *FLOW, *own[1]),
    )
    summed = db.execute(
        f"SELECT count(*) FROM summaries WHERE user_id = {USER} AND owner = ? AND lines <> '[]'", owned
    )
    there, there_bytes, sessions, oldest = waiting.fetchone() or (0, 0, 0, None)
    ever, pages, pages_bytes = moved.fetchone() or (0, 0, 0)
    return Standing(
        waiting=there,
        waiting_bytes=int(there_bytes),
        sessions=sessions,
        summaries=(summed.fetchone() or (0,))[0],
        oldest=None if oldest is None else moment(oldest),
        heats={row[0]: heat_of(*row[1:]) for row in heats},
        pages=int(pages),
        pages_bytes=int(pages_bytes),
        moved=ever,
        evicted=(evicted.fetchone() or (0,))[0],
        memories={row[0]: (int(row[1]), int(row[2]) - int(row[1])) for row in memories},
        lately=dict(lately.fetchall()),
    )
