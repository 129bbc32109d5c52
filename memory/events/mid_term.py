"""What the log answers of segments, and of pages that have none yet."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from hearth.memory.events import texts
from hearth.memory.events.archive import payload_of
from hearth.memory.events.codec import moment
from hearth.memory.events.kinds import SegmentChanged
from hearth.memory.events.sql import TOLD, USER, Database, Row, marks
from hearth.memory.ports import KnownSegment, WaitingPage
from hearth.memory.tiers.heat import Heat
from hearth.memory.types import SummaryLine

_LINES = msgspec.json.Decoder(tuple[SummaryLine, ...])

SEGMENTS = (
    "SELECT {}s.id, s.owner, s.state, s.level, s.touched, s.fade, s.counted_by, s.episode, s.changed,"
    " p.version, p.body, e.user_id, e.id"
    " FROM segments s LEFT JOIN payloads p ON p.seq = s.seq LEFT JOIN events e ON e.seq = p.seq"
)
"""Rows of segments as `segment_of` reads them, after what else is to be selected."""
_SEGMENTS = f"{SEGMENTS.format('')} WHERE s.user_id = {USER}"
_PAGES = (
    "SELECT g.id, g.session, g.occurred, g.size, g.drawn, g.seen, g.visited,"
    " (SELECT count(*) FROM evidence v WHERE v.user_id = g.user_id AND v.page = g.id)"
    f" FROM pages g WHERE g.user_id = {USER}"
)


def segments(db: Database, tenant: str, user: str, owner: str, *, after: int) -> list[KnownSegment]:
    """See `MidTerm.segments`."""
    sql = f"{_SEGMENTS} AND s.owner = ? AND s.changed > ? ORDER BY s.changed"
    return [segment_of(db, row) for row in db.execute(sql, (tenant, user, owner, after))]


def segments_named(db: Database, tenant: str, user: str, ids: Sequence[str]) -> list[KnownSegment]:
    """See `MidTerm.segments_named`."""
    if not ids:
        return []
    sql = f"{_SEGMENTS} AND s.id IN ({marks(ids)}) ORDER BY s.changed"
    return [segment_of(db, row) for row in db.execute(sql, (tenant, user, *ids))]


def segment_of(db: Database, row: Row) -> KnownSegment:
    """What such a row says."""
    id, owner, state, level, touched, fade, counted_by, episode, changed, *stored = row
    live = state == "live" and stored[1] is not None
    payload = payload_of(db, "segment.changed", *stored) if live else None
    return KnownSegment(
        id=id,
        owner=owner,
        state=state,
        heat=heat_of(level, touched, fade, counted_by),
        segment=payload.segment if isinstance(payload, SegmentChanged) else None,
        episode=episode,
        changed=changed,
    )


def heat_of(level: float, touched: int | None, fade: float, counted_by: str) -> Heat:
    """The heat of a segment's row."""
    last = None if touched is None else moment(touched)
    return Heat(level=level, touched=last, fade_hours=fade, counted_by=counted_by)


def waiting_pages(db: Database, tenant: str, user: str, owner: str, *, limit: int) -> list[WaitingPage]:
    """See `MidTerm.waiting_pages`."""
    waits = "AND g.owner = ? AND g.state = 'active' AND g.segment IS NULL"
    sql = f"{_PAGES} {waits} ORDER BY g.occurred, g.seq LIMIT ?"
    return [_page(row) for row in db.execute(sql, (tenant, user, owner, limit))]


def members(db: Database, tenant: str, user: str, segment: str) -> list[WaitingPage]:
    """See `MidTerm.members`."""
    sql = f"{_PAGES} AND g.segment = ? AND {TOLD} ORDER BY g.occurred, g.seq"
    return [_page(row) for row in db.execute(sql, (tenant, user, segment))]


def _page(row: Row) -> WaitingPage:
    return WaitingPage(
        id=row[0],
        session=row[1],
        at=moment(row[2]),
        size=row[3],
        drawn=row[4],
        seen=row[5],
        visited=None if row[6] is None else moment(row[6]),
        facts=row[7],
    )


def summaries(
    db: Database, tenant: str, user: str, owner: str, sessions: Sequence[str]
) -> dict[str, tuple[SummaryLine, ...]]:
    """See `MidTerm.summaries`."""
    if not sessions:
        return {}
    found = db.execute(
        f"SELECT session, lines FROM summaries WHERE user_id = {USER} AND owner = ?"
        f" AND session IN ({marks(sessions)})",
        (tenant, user, owner, *sessions),
    )
    return {row[0]: lines_of(db, (tenant, user), row[1], owner, row[0]) for row in found}


def lines_of(
    db: Database, who: tuple[str, str], told: str | None, owner: str, session: str
) -> tuple[SummaryLine, ...]:
    """The lines of a summary's row; none where there is no row."""
    return _LINES.decode(texts.read(db, who, told, "summary", owner, session)) if told else ()


def segments_of(db: Database, tenant: str, user: str, pages: Sequence[str]) -> dict[str, str]:
    """See `MidTerm.segments_of`."""
    if not pages:
        return {}
    found = db.execute(
        f"SELECT id, segment FROM pages WHERE user_id = {USER} AND segment <> '' AND id IN ({marks(pages)})",
        (tenant, user, *pages),
    )
    return {row[0]: row[1] for row in found}
