"""What the log answers of segments, and of pages that have none yet."""

from __future__ import annotations

from collections.abc import Sequence

from hearth.memory.events.codec import decode, moment
from hearth.memory.events.kinds import SegmentChanged
from hearth.memory.events.sql import USER, Database, Row, marks
from hearth.memory.ports import KnownSegment, WaitingPage
from hearth.memory.tiers.heat import Heat


def segments(db: Database, tenant: str, user: str, owner: str, *, after: int) -> list[KnownSegment]:
    """See `MidTerm.segments`."""
    found = db.execute(
        "SELECT s.id, s.state, s.level, s.touched, s.fade, s.episode, s.changed, p.version, p.body"
        " FROM segments s"
        f" LEFT JOIN payloads p ON p.seq = s.seq WHERE s.user_id = {USER} AND s.owner = ? AND s.changed > ?"
        " ORDER BY s.changed",
        (tenant, user, owner, after),
    )
    return [_segment(row) for row in found]


def _segment(row: Row) -> KnownSegment:
    id, state, level, touched, fade, episode, changed, version, body = row
    payload = decode("segment.changed", version, body) if state == "live" and body is not None else None
    return KnownSegment(
        id=id,
        state=state,
        heat=Heat(level=level, touched=None if touched is None else moment(touched), fade_hours=fade),
        segment=payload.segment if isinstance(payload, SegmentChanged) else None,
        episode=episode,
        changed=changed,
    )


def waiting_pages(db: Database, tenant: str, user: str, owner: str, *, limit: int) -> list[WaitingPage]:
    """See `MidTerm.waiting_pages`."""
    found = db.execute(
        "SELECT g.id, g.session, g.occurred, g.size, g.drawn, g.seen, g.visited,"
        " (SELECT count(*) FROM evidence v WHERE v.user_id = g.user_id AND v.page = g.id)"
        f" FROM pages g WHERE g.user_id = {USER} AND g.owner = ? AND g.state = 'active'"
        " AND g.segment IS NULL ORDER BY g.occurred, g.seq LIMIT ?",
        (tenant, user, owner, limit),
    )
    return [
        WaitingPage(
            id=row[0],
            session=row[1],
            at=moment(row[2]),
            size=row[3],
            drawn=row[4],
            seen=row[5],
            visited=None if row[6] is None else moment(row[6]),
            facts=row[7],
        )
        for row in found
    ]


def segments_of(db: Database, tenant: str, user: str, pages: Sequence[str]) -> dict[str, str]:
    """See `MidTerm.segments_of`."""
    if not pages:
        return {}
    found = db.execute(
        f"SELECT id, segment FROM pages WHERE user_id = {USER} AND segment <> '' AND id IN ({marks(pages)})",
        (tenant, user, *pages),
    )
    return {row[0]: row[1] for row in found}
