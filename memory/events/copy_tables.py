"""What a copy of a log consists of, table by table, in terms that hold in any log.

Positions and row ids are each log's own. Read for a copy, an event is named by its id and a user by tenant
and name. The views are copied, not folded again: a fold needs what was redacted since, and knows no kinds and
versions of a newer program.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from hearth.memory.events.archive import in_archive, is_place
from hearth.memory.events.codec import pack
from hearth.memory.events.data_keys import is_encrypted
from hearth.memory.events.sql import NAMED, Database, Row, marks

PAGE_ROWS = 400
"""Rows of a page: a commit's work is short, and a page's share of its cost small."""
PAGE_BYTES = 4_000_000
"""Stored payloads of a page, unless a single one is larger."""

_PLACES = {
    "seq": "seq",
    "first": "seq",
    "last_step": "seq",
    "outdated": "seq",
    "changed": "seq",
    "partition": "partition",
}
"""Columns that say where an event is, by what the event's own row calls it; 0 where there is none."""
_FLAGS = frozenset({"isolated"})
"""Columns that are true or false; SQLite has no type for that."""


class Table(NamedTuple):
    """One table, but for the log itself."""

    name: str
    key: tuple[str, ...]
    """What orders its rows, each of which has another key."""
    columns: tuple[str, ...]
    """What is copied. `user_id` is read as tenant and name."""

    @property
    def values(self) -> tuple[str, ...]:
        """The values of a row as it is read, by column."""
        return tuple(
            part for name in self.columns for part in (("tenant", "name") if name == "user_id" else (name,))
        )


USERS = Table("users", ("id",), ("tenant", "name", "generation", "seen", "events"))
SECRETS = Table("secrets", ("tenant",), ("tenant", "secret"))
OTHERS = (
    Table("forgotten", ("user_id", "id"), ("user_id", "id", "at")),
    Table(
        "step_keys",
        ("seq",),
        (
            *("seq", "user_id", "session", "exchange", "agent", "isolated", "at", "outcome", "retry_key"),
            *("response_id", "last_pair", "last_two_pairs", "user_texts", "chain"),
        ),
    ),
    Table(
        "exchanges",
        ("user_id", "id"),
        (
            "user_id",
            "id",
            "session",
            "parent",
            "state",
            "started",
            "finished",
            "last_step",
            "first",
            "own_agent",
        ),
    ),
    Table(
        "sessions",
        ("user_id", "id", "own_agent"),
        ("user_id", "id", "agent", "exchanges", "started", "last", "first", "own_agent"),
    ),
    Table(
        "pages",
        ("user_id", "id"),
        (
            *("user_id", "id", "seq", "state", "occurred", "outdated", "owner", "session", "size", "segment"),
            *("drawn", "seen", "visited"),
        ),
    ),
    Table(
        "segments",
        ("user_id", "id"),
        (
            *("user_id", "id", "seq", "owner", "state", "level", "touched", "fade", "episode", "changed"),
            "counted_by",
        ),
    ),
    Table("injections", ("seq",), ("seq", "user_id", "records")),
    Table(
        "memories",
        ("user_id", "id"),
        (
            *("user_id", "id", "seq", "type", "agent", "session", "created", "occurred", "expires", "starts"),
            *("closed", "successor", "subject", "attribute", "value", "folded", "tags", "metadata", "first"),
            "own_agent",
        ),
    ),
    Table("evidence", ("user_id", "page", "memory"), ("user_id", "page", "memory")),
    Table(
        "documents",
        ("user_id", "id"),
        ("user_id", "id", "seq", "kind", "name", "version", "last", "about"),
    ),
    Table("labels", ("seq",), ("seq", "user_id", "trace", "tags", "metadata")),
    Table("switched", ("user_id", "session"), ("user_id", "session", "mode", "seq")),
    Table(
        "summaries",
        ("user_id", "owner", "session"),
        ("user_id", "owner", "session", "seq", "lines"),
    ),
    Table("forgettings", ("user_id", "id"), ("user_id", "id", "seq", "until", "state")),
    Table("chunks", ("user_id", "document", "position"), ("user_id", "document", "position", "body")),
    Table(
        "policies",
        ("user_id", "level", "whose", "name"),
        ("user_id", "level", "whose", "name", "seq", "value", "set_by", "at"),
    ),
    Table("bases", ("tenant",), ("tenant", "generation")),
    Table("erasures", ("user_id", "id"), ("user_id", "id", "seq", "state")),
    Table("holds", ("user_id", "name"), ("user_id", "name", "seq")),
    Table(
        "spending",
        ("tenant", "day", "model"),
        ("tenant", "day", "model", "calls", "input", "output", "cost"),
    ),
    Table("refusals", ("user_id", "topic"), ("user_id", "topic", "seq")),
    Table("data_keys", ("number",), ("number", "user_id", "generation", "version", "master", "wrapped")),
    Table("attempts", ("consumer", "event"), ("consumer", "event", "partition", "seq", "count")),
    Table("parked", ("consumer", "seq"), ("consumer", "seq", "error")),
)
"""What refers to events."""
EMPTIED = ("consumers", "payloads", "events", *(table.name for table in (*OTHERS, SECRETS, USERS)))
"""Every table that a copy fills."""


class Page(NamedTuple):
    """Some rows of one table, in the order of their keys."""

    rows: list[Row]
    keys: list[Row]


def read(db: Database, table: Table, after: Sequence[Any]) -> Page:
    """The rows that follow the key `after`, from the first one where that is empty."""
    keys = ", ".join(f"t.{name}" for name in table.key)
    shown = ", ".join(_shown(name) for name in table.columns)
    users = " JOIN users u ON u.id = t.user_id" if "user_id" in table.columns else ""
    where = f" WHERE ({keys}) > ({marks(after)})" if after else ""
    found = db.execute(
        f"SELECT {keys}, {shown} FROM {table.name} t{users}{where} ORDER BY {keys} LIMIT {PAGE_ROWS}", after
    ).fetchall()
    width = len(table.key)
    flags = [at for at, name in enumerate(table.values) if name in _FLAGS]
    return Page([_with_flags(row[width:], flags) for row in found], [row[:width] for row in found])


def write(db: Database, table: Table, rows: Sequence[Row]) -> None:
    """Add rows that `read` found in another log."""
    taken = ", ".join(_taken(name) for name in table.columns)
    sql = f"INSERT INTO {table.name} ({', '.join(table.columns)}) VALUES ({taken})"
    for row in rows:
        db.execute(sql, row)


def _shown(column: str) -> str:
    if column == "user_id":
        return "u.tenant, u.name"
    if column in _PLACES:
        place = "seq" if column == "partition" else column
        return f"(SELECT e.id FROM events e WHERE e.seq = t.{place})"
    return f"t.{column}"


def _taken(column: str) -> str:
    if column == "user_id":
        return NAMED
    if column in _PLACES:
        return f"coalesce((SELECT {_PLACES[column]} FROM events WHERE id = ?), 0)"
    return "?"


def _with_flags(row: Row, flags: Sequence[int]) -> Row:
    return tuple(bool(value) if at in flags else value for at, value in enumerate(row)) if flags else row


# -- the log itself ----------------------------------------------------------------------------------------


class Stored(NamedTuple):
    """An event as it is stored, its body unread; without body and version where it was redacted."""

    seq: int
    partition: int
    tenant: str
    user: str
    id: str
    kind: str
    agent: str
    session: str
    generation: int
    occurred: int
    recorded: int
    parent: str | None
    subject: str
    tenant_key: int
    seal: bytes
    redacted: int
    version: int | None
    body: bytes | None
    content_seal: bytes | None
    previous: str | None
    """The user's event before it."""


_EVENTS = (
    "FROM events e JOIN users u ON u.id = e.user_id LEFT JOIN payloads p ON p.seq = e.seq WHERE e.seq > ?"
)
_PREVIOUS = (
    "(SELECT b.id FROM events b WHERE b.user_id = e.user_id AND b.seq < e.seq ORDER BY b.seq DESC LIMIT 1)"
)


def read_events(db: Database, after: int, condition: str = "") -> list[Stored]:
    """The events that follow the position, as far as `condition` holds for them (as `e`)."""
    sizes = db.execute(
        f"SELECT e.seq, coalesce(length(p.body), 0) {_EVENTS}{condition} ORDER BY e.seq LIMIT {PAGE_ROWS}",
        (after,),
    ).fetchall()
    if not sizes:
        return []
    found = db.execute(
        "SELECT e.seq, e.partition, u.tenant, u.name, e.id, e.kind, e.agent, e.session, e.generation,"
        f" e.occurred, e.recorded, e.parent, e.subject, e.tenant_key, e.seal, e.redacted,"
        f" p.version, p.body, p.seal, {_PREVIOUS}"
        f" {_EVENTS}{condition} AND e.seq <= ? ORDER BY e.seq",
        (after, _last_of_page(sizes)),
    )
    return [_whole(db, Stored._make(row)) for row in found]


def _whole(db: Database, event: Stored) -> Stored:
    """With its payload where that is in an archive: the copy has none."""
    if event.body is None or not is_place(event.body):
        return event
    held = in_archive(db, event.body)
    return event._replace(body=held if is_encrypted(held) else pack(held))


def _last_of_page(sizes: Sequence[Row]) -> int:
    """Position of the last event before the page is full; of the first one at least."""
    last, held = sizes[0][0], 0
    for seq, size in sizes:
        held += size
        if held > PAGE_BYTES and seq != last:
            break
        last = seq
    return int(last)


def write_event(db: Database, event: Stored, seq: int) -> None:
    """Add the event at the position."""
    db.execute(
        "INSERT INTO events"
        " (seq, user_id, id, kind, agent, session, generation, occurred, recorded, parent, subject,"
        f" tenant_key, seal, redacted) VALUES (?, {NAMED}, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (seq, *event[2:16]),
    )
    if event.body is not None:
        db.execute(
            "INSERT INTO payloads (seq, version, body, seal) VALUES (?, ?, ?, ?)",
            (seq, event.version, event.body, event.content_seal),
        )
