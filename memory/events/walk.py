"""Walks over all that the views say stands in the stores, in short transactions: what replay reads.

A walk goes by key, a part at a time, so that it can be gone on with by another process and holds up nobody.
What changes behind it meanwhile is told by the events since its beginning.
"""

from __future__ import annotations

import msgspec

from hearth.memory.events import rows
from hearth.memory.events.archive import payload_of
from hearth.memory.events.codec import micros
from hearth.memory.events.documents import about_of, chunk_of
from hearth.memory.events.kinds import MemoryAdded, MemoryChanged
from hearth.memory.events.reads import LISTED, PAGES, page_of
from hearth.memory.events.sql import STORED, Database, number_of
from hearth.memory.knowledge.records import chunk_memory
from hearth.memory.ports import Walk, Walked, WalkedUser, WalkPart
from hearth.memory.types import Page, Scope


class Sizes(msgspec.Struct, frozen=True, kw_only=True):
    """How much there is to walk over."""

    events: int
    """That are not redacted."""
    records: int
    users: int


def sizes(db: Database) -> Sizes:
    """How much there is."""
    live = (
        "(SELECT count(*) FROM pages WHERE state = 'active') + (SELECT count(*) FROM memories)"
        " + (SELECT count(*) FROM chunks)"
    )
    return Sizes(
        events=number_of(db.execute("SELECT count(*) FROM payloads")),
        records=number_of(db.execute(f"SELECT {live}")),
        users=number_of(db.execute("SELECT count(*) FROM users")),
    )


def start(db: Database) -> Walk:
    """A walk from the first record, that knows how far the log has come in each partition."""
    ends = db.execute("SELECT partition, max(seq) FROM events GROUP BY partition").fetchall()
    return Walk(ends={row[0]: row[1] for row in ends})


def step(db: Database, walk: Walk, *, limit: int) -> tuple[list[Walked], Walk]:
    """The next records and where to go on; see `EventLog.walk`."""
    found, last = _PARTS[walk.part](db, walk, limit)
    if last is not None:
        return found, msgspec.structs.replace(walk, user=last[0], id=last[1], position=last[2])
    return found, Walk(ends=walk.ends, part=_AFTER[walk.part])


_Found = tuple[list[Walked], tuple[int, str, int] | None]


def _pages(db: Database, walk: Walk, limit: int) -> _Found:
    found = db.execute(
        f"SELECT g.user_id, g.id, {PAGES.removeprefix('SELECT ')}"
        " WHERE g.state = 'active' AND (g.user_id, g.id) > (?, ?) ORDER BY g.user_id, g.id LIMIT ?",
        (walk.user, walk.id, limit),
    ).fetchall()
    pages = [(row[0], page_of(db, row[2:])) for row in found]
    before = _named(db, [(user, page.previous) for user, page in pages if page.previous])
    walked = [Walked(page, before.get((user, page.previous or ""))) for user, page in pages]
    return walked, (found[-1][0], found[-1][1], -1) if found else None


def _named(db: Database, places: list[tuple[int, str]]) -> dict[tuple[int, str], Page]:
    """Those pages that are not forgotten, whatever their state."""
    wanted = list(dict.fromkeys(places))
    if not wanted:
        return {}
    named = ", ".join(["(?, ?)"] * len(wanted))
    found = db.execute(
        f"SELECT g.user_id, {PAGES.removeprefix('SELECT ')} WHERE (g.user_id, g.id) IN (VALUES {named})",
        [value for place in wanted for value in place],
    )
    pages = ((row[0], page_of(db, row[1:])) for row in found.fetchall())
    return {(user, page.id): page for user, page in pages}


def _memories(db: Database, walk: Walk, limit: int) -> _Found:
    found = db.execute(
        f"SELECT m.user_id, m.id, {STORED} FROM memories m"
        " JOIN events e USING (seq) JOIN payloads p USING (seq)"
        " WHERE (m.expires IS NULL OR m.expires > ?) AND (m.user_id, m.id) > (?, ?)"
        " ORDER BY m.user_id, m.id LIMIT ?",
        (micros(db.now()), walk.user, walk.id, limit),
    ).fetchall()
    payloads = [payload_of(db, *row[2:]) for row in found]
    memories = [one.memory for one in payloads if isinstance(one, MemoryAdded | MemoryChanged)]
    return [Walked(one, None) for one in memories], (found[-1][0], found[-1][1], -1) if found else None


def _chunks(db: Database, walk: Walk, limit: int) -> _Found:
    found = db.execute(
        "SELECT c.user_id, c.document, c.position, u.tenant, u.generation, d.about, c.body FROM chunks c"
        " JOIN documents d ON d.user_id = c.user_id AND d.id = c.document JOIN users u ON u.id = c.user_id"
        " WHERE d.about <> '' AND (c.user_id, c.document, c.position) > (?, ?, ?)"
        " ORDER BY c.user_id, c.document, c.position LIMIT ?",
        (walk.user, walk.id, walk.position, limit),
    ).fetchall()
    walked = [
        Walked(
            chunk_memory(
                about_of(db, tenant, document, about),
                chunk_of(db, tenant, document, position, body),
                position,
                tenant=tenant,
                generation=generation,
            ),
            None,
        )
        for _, document, position, tenant, generation, about, body in found
    ]
    return walked, found[-1][:3] if found else None


_PARTS = {"pages": _pages, "memories": _memories, "chunks": _chunks}
_AFTER: dict[str, WalkPart] = {"pages": "memories", "memories": "chunks", "chunks": "done"}


def users(db: Database, *, after: int, limit: int) -> list[WalkedUser]:
    """See `EventLog.walk_users`."""
    listed = f"CASE WHEN {LISTED} THEN 1 ELSE 0 END"
    found = db.execute(
        f"SELECT u.id, u.tenant, u.name, u.generation, {listed} FROM users u"
        " WHERE u.id > ? ORDER BY u.id LIMIT ?",
        (after, limit),
    )
    return [
        WalkedUser(
            place=row[0],
            scope=Scope(tenant=row[1], user=row[2]),
            generation=row[3],
            listed=bool(row[4]),
        )
        for row in found.fetchall()
    ]


def last(db: Database, *, tenant: str, user: str) -> int:
    """Where the user's last event is; 0 where there is none."""
    row = rows.user_row(db, tenant, user)
    if row is None:
        return 0
    return number_of(db.execute("SELECT coalesce(max(seq), 0) FROM events WHERE user_id = ?", (row[0],)))


def unindexed(db: Database, tenant: str, user: str, *, partition: int) -> list[str]:
    """See `EventLog.unindexed`."""
    row = rows.user_row(db, tenant, user)
    if row is None:
        return []
    found = db.execute(
        "SELECT id FROM pages WHERE user_id = ? AND state = 'active' AND seq > coalesce("
        "(SELECT seq FROM consumers WHERE name = 'index' AND partition = ?), 0)",
        (row[0], partition),
    )
    return [one[0] for one in found.fetchall()]
