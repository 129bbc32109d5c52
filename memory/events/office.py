"""What the log answers of erasures and holds, and of what is there to be erased."""

from __future__ import annotations

from collections.abc import Sequence

from hearth.memory.erasure.office import Inventory, Person, Sample
from hearth.memory.erasure.receipt import Hold, ProviderHeld, Receipt
from hearth.memory.events import rows
from hearth.memory.events.archive import is_place, payload_of
from hearth.memory.events.codec import moment
from hearth.memory.events.kinds import (
    ErasureChanged,
    HoldPlaced,
    MemoryAdded,
    MemoryChanged,
    PageClosed,
    Payload,
    StepCaptured,
)
from hearth.memory.events.sql import NAMED, STORED, USER, Database, marks, number_of
from hearth.memory.types import OFFICE

_SAMPLED = 12
"""Events of a user whose bytes are looked for afterwards."""
_NAMED = 500
"""Records that one statement names."""
_PROVIDER_HELD = 200
"""Responses that a receipt names."""


def erasure(db: Database, tenant: str, id: str) -> Receipt | None:
    """The receipt of that id, as it stands."""
    found = _receipts(db, "u.tenant = ? AND x.id = ?", (tenant, id))
    return found[0][1] if found else None


def erasures(db: Database, tenant: str, *, limit: int) -> list[Receipt]:
    """The tenant's latest receipts, newest change first."""
    found = _receipts(db, "u.tenant = ? ORDER BY x.seq DESC LIMIT ?", (tenant, max(limit, 0)))
    return [receipt for _, receipt in found]


def open_erasures(db: Database, *, limit: int) -> list[tuple[str, Receipt]]:
    """Erasures that are not over, of all tenants, with their tenants."""
    return _receipts(db, "x.state <> 'purged' ORDER BY x.seq LIMIT ?", (limit,))


def _receipts(db: Database, where: str, values: Sequence[object]) -> list[tuple[str, Receipt]]:
    found = db.execute(
        f"SELECT u.tenant, {STORED} FROM erasures x JOIN users u ON u.id = x.user_id"
        f" JOIN events e ON e.seq = x.seq JOIN payloads p ON p.seq = x.seq WHERE {where}",
        values,
    ).fetchall()
    payloads = [(tenant, payload_of(db, *stored)) for tenant, *stored in found]
    return [(tenant, one.receipt) for tenant, one in payloads if isinstance(one, ErasureChanged)]


def holds(db: Database, tenant: str, *, user: str | None = None) -> list[Hold]:
    """The tenant's holds, or that user's, by name."""
    only = "" if user is None else " AND h.name = ?"
    found = db.execute(
        f"{rows.EVENTS} JOIN holds h ON h.seq = e.seq WHERE h.user_id = {NAMED}{only} ORDER BY h.name",
        (tenant, OFFICE, *([] if user is None else [user])),
    ).fetchall()
    events = [rows.event_of(db, row) for row in found]
    return [
        Hold(user=one.payload.user, reason=one.payload.reason, by=one.payload.by, at=one.occurred_at)
        for one in events
        if isinstance(one.payload, HoldPlaced)
    ]


def inventory(db: Database, tenant: str, user: str | None, records: Sequence[str]) -> Inventory:
    """See `Office.inventory`."""
    some = records[:_NAMED]
    return Inventory(
        sorts=_sorts(db, tenant, user) if not records else {},
        sample=_sample(db, tenant, user, some),
        provider_held=tuple(_provider_held(db, tenant, user, some)),
    )


def _sorts(db: Database, tenant: str, user: str | None) -> dict[str, int]:
    """How much there is of a user, or of all of a tenant's: events with content, exchanges, memories."""
    whose, values = _whose(tenant, user)
    asked = {
        "users": f"SELECT count(*) FROM users u WHERE {whose} AND u.seen = 1",
        "events": f"SELECT count(*) FROM events e JOIN payloads p ON p.seq = e.seq JOIN users u"
        f" ON u.id = e.user_id WHERE {whose} AND e.kind <> 'user.erased'",
        "exchanges": f"SELECT count(*) FROM exchanges x JOIN users u ON u.id = x.user_id"
        f" WHERE {whose} AND x.state <> 'forgotten'",
        "memories": f"SELECT count(*) FROM memories m JOIN users u ON u.id = m.user_id WHERE {whose}",
        "segments": f"SELECT count(*) FROM segments s JOIN users u ON u.id = s.user_id WHERE {whose}",
        "documents": f"SELECT count(*) FROM documents d JOIN users u ON u.id = d.user_id"
        f" WHERE {whose} AND d.about <> ''",
    }
    if user is not None:
        del asked["users"]
    answers = {name: db.execute(sql, values) for name, sql in asked.items()}
    return {name: number for name, answer in answers.items() if (number := number_of(answer))}


def of_session(db: Database, tenant: str, user: str, session: str) -> tuple[list[str], list[str]]:
    """Ids of a session's exchanges, and of the memories that were added in it."""
    exchanges = db.execute(
        f"SELECT id FROM exchanges WHERE user_id = {USER} AND session = ? AND state <> 'forgotten'",
        (tenant, user, session),
    )
    memories = db.execute(
        f"SELECT id FROM memories WHERE user_id = {USER} AND session = ?", (tenant, user, session)
    )
    return [row[0] for row in exchanges], [row[0] for row in memories]


def owners_of(db: Database, tenant: str, user: str, session: str) -> set[str]:
    """See `Office.owners_of`."""
    found = db.execute(
        f"SELECT own_agent FROM sessions WHERE user_id = {USER} AND id = ?"
        f" UNION SELECT own_agent FROM memories WHERE user_id = {USER} AND session = ?",
        (tenant, user, session) * 2,
    )
    return {row[0] for row in found}


def _sample(db: Database, tenant: str, user: str | None, subjects: Sequence[str]) -> Sample:
    """Some events with content of a user, of those records alone, or of a tenant's first users."""
    whose, values = _whose(tenant, user)
    kinds = ("step.captured", "page.closed", "memory.added", "memory.changed", "knowledge.loaded")
    about = f" AND e.subject IN ({marks(subjects)})" if subjects else ""
    found = db.execute(
        f"SELECT e.subject, {STORED} FROM events e JOIN payloads p ON p.seq = e.seq"
        f" JOIN users u ON u.id = e.user_id WHERE {whose} AND e.kind IN ({marks(kinds)}){about}"
        " ORDER BY e.seq % 97, e.seq LIMIT ?",
        (*values, *kinds, *subjects, _SAMPLED),
    ).fetchall()
    return Sample(
        texts=tuple(text for row in found for text in _texts(payload_of(db, *row[1:]))),
        stored=tuple(bytes(row[3]) for row in found if not is_place(bytes(row[3]))),
        records=tuple(dict.fromkeys(row[0] for row in found)),
    )


def _texts(payload: Payload) -> list[str]:
    match payload:
        case StepCaptured(step=said) | PageClosed(page=said):
            return [said.user_text]
        case MemoryAdded(memory=memory) | MemoryChanged(memory=memory):
            return [memory.text]
        case _:
            return []


def _provider_held(
    db: Database, tenant: str, user: str | None, exchanges: Sequence[str]
) -> list[ProviderHeld]:
    """The latest responses that a provider may keep, of seven days; of those exchanges alone, if any."""
    whose, values = _whose(tenant, user)
    about = f" AND k.exchange IN ({marks(exchanges)})" if exchanges else ""
    found = db.execute(
        f"SELECT k.response_id, k.at, {STORED} FROM step_keys k"
        " JOIN events e ON e.seq = k.seq JOIN payloads p ON p.seq = k.seq JOIN users u ON u.id = k.user_id"
        f" WHERE {whose} AND k.response_id <> ''{about} ORDER BY k.seq DESC LIMIT ?",
        (*values, *exchanges, _PROVIDER_HELD),
    ).fetchall()
    steps = [
        (row, payload.step) for row in found if isinstance(payload := payload_of(db, *row[2:]), StepCaptured)
    ]
    return [
        ProviderHeld(response=row[0], model=step.model, at=moment(row[1]))
        for row, step in steps
        if step.route == "responses"
    ]


def next_base(db: Database, tenant: str) -> int:
    """A generation above all that users of the tenant have had."""
    return 1 + number_of(
        db.execute(
            "SELECT coalesce(max(k.generation), 1) FROM (SELECT generation FROM users WHERE tenant = ?1"
            " UNION ALL SELECT generation FROM bases WHERE tenant = ?1) AS k",
            (tenant,),
        )
    )


def closed_users(db: Database, tenant: str, *, limit: int) -> list[Person]:
    """See `Office.closed_users`."""
    found = db.execute(
        "SELECT u.name, b.generation FROM users u JOIN bases b ON b.tenant = u.tenant"
        " WHERE u.tenant = ? AND b.generation > u.generation ORDER BY u.name LIMIT ?",
        (tenant, limit),
    )
    return [Person(tenant=tenant, user=row[0], generation=row[1]) for row in found]


def names(db: Database, tenant: str, *, after: str, limit: int) -> list[str]:
    """All users of the tenant that the log ever saw, by name."""
    found = db.execute(
        "SELECT name FROM users WHERE tenant = ? AND name > ? AND name <> ? ORDER BY name LIMIT ?",
        (tenant, after, OFFICE, limit),
    )
    return [row[0] for row in found]


def unhandled(db: Database, consumer: str, tenant: str, user: str | None, kinds: Sequence[str]) -> int:
    """How many events of those kinds, of a user or of a tenant's, the consumer has not handled."""
    whose, values = _whose(tenant, user)
    return number_of(
        db.execute(
            f"SELECT count(*) FROM events e JOIN users u ON u.id = e.user_id WHERE {whose}"
            f" AND e.kind IN ({marks(kinds)}) AND e.seq > coalesce((SELECT c.seq FROM consumers c"
            " WHERE c.name = ? AND c.partition = e.partition), 0)",
            (*values, *kinds, consumer),
        )
    )


def keys_left(db: Database, tenant: str, user: str | None) -> int:
    """See `Office.keys_left`."""
    whose, values = _whose(tenant, user)
    return number_of(
        db.execute(
            "SELECT count(*) FROM data_keys k JOIN users u ON u.id = k.user_id"
            " LEFT JOIN bases b ON b.tenant = u.tenant"
            f" WHERE {whose} AND (k.generation < u.generation OR k.generation < b.generation)",
            values,
        )
    )


def content_left(db: Database, tenant: str, user: str | None, records: Sequence[str], before: str) -> int:
    """See `Office.content_left`."""
    whose, values = _whose(tenant, user)
    if records:
        of = (
            f"e.subject IN ({marks(records)})"
            " AND e.kind NOT IN ('page.forgotten', 'memory.forgotten', 'forget.asked')"
            " AND e.seq < (SELECT t.seq FROM events t WHERE t.id = ?)"
        )
        asked: tuple[str, ...] = (*records, before)
    else:
        of, asked = "e.generation < u.generation AND e.kind <> 'user.erased'", ()
    found = db.execute(
        "SELECT count(*) FROM events e JOIN payloads p ON p.seq = e.seq JOIN users u ON u.id = e.user_id"
        f" WHERE {whose} AND {of}",
        (*values, *asked),
    )
    return number_of(found)


def people(db: Database, *, after: tuple[str, str], limit: int) -> list[Person]:
    """See `Office.people`."""
    found = db.execute(
        "SELECT tenant, name, generation FROM users WHERE (tenant, name) > (?, ?)"
        " ORDER BY tenant, name LIMIT ?",
        (*after, limit),
    )
    return [Person(tenant=row[0], user=row[1], generation=row[2]) for row in found]


def ids(db: Database, tenant: str, user: str, what: str) -> list[str]:
    """Ids of all of a user's memories, exchanges or sessions."""
    view = {"memory": "memories", "exchange": "exchanges", "session": "sessions"}[what]
    return [
        row[0] for row in db.execute(f"SELECT DISTINCT id FROM {view} WHERE user_id = {USER}", (tenant, user))
    ]


def _whose(tenant: str, user: str | None) -> tuple[str, tuple[str, ...]]:
    if user is None:
        return f"u.tenant = ? AND u.name <> '{OFFICE}'", (tenant,)
    return "u.tenant = ? AND u.name = ?", (tenant, user)
