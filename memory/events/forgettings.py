"""What the log answers of requests to forget that users made in conversations."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from hearth.memory.events.archive import payload_of
from hearth.memory.events.codec import micros, moment
from hearth.memory.events.kinds import ForgetAsked
from hearth.memory.events.sql import STORED, USER, Database, Row
from hearth.memory.ports import DueForgetting
from hearth.memory.types import Forgetting, Scope

_ASKED = (
    "SELECT u.tenant, u.name, e.agent, e.session, e.occurred, f.state,"
    f" {STORED}, u.generation, coalesce(x.own_agent, '') FROM forgettings f"
    " JOIN events e USING (seq) JOIN payloads p USING (seq)"
    " JOIN users u ON u.id = f.user_id"
    " LEFT JOIN exchanges x ON x.user_id = f.user_id AND x.id = f.id"
)


def forgetting(db: Database, tenant: str, user: str, exchange: str) -> Forgetting | None:
    """What an exchange asked to forget."""
    found = _asked(db, f"WHERE f.user_id = {USER} AND f.id = ?", (tenant, user, exchange))
    return found[0].asked if found else None


def forgettings(db: Database, tenant: str, user: str, *, limit: int) -> list[Forgetting]:
    """The user's latest requests, newest first."""
    order = "ORDER BY e.occurred DESC, f.seq DESC LIMIT ?"
    found = _asked(db, f"WHERE f.user_id = {USER} {order}", (tenant, user, max(limit, 0)))
    return [one.asked for one in found]


def due(db: Database, tenant: str, *, now: datetime, limit: int) -> list[DueForgetting]:
    """Requests that can't be undone any more and are not carried out yet."""
    where = "WHERE u.tenant = ? AND f.state = 'waiting' AND f.until <= ? ORDER BY f.until LIMIT ?"
    return _asked(db, where, (tenant, micros(now), limit))


def _asked(db: Database, rest: str, values: Sequence[Any]) -> list[DueForgetting]:
    return [_of(db, row) for row in db.execute(f"{_ASKED} {rest}", values)]


def _of(db: Database, row: Row) -> DueForgetting:
    payload = payload_of(db, *row[6:11])
    if not isinstance(payload, ForgetAsked):
        raise TypeError(f"a request to forget names a {type(payload).__name__}")
    fields = {name: getattr(payload, name) for name in payload.__struct_fields__}
    asked = Forgetting(
        scope=Scope(tenant=row[0], user=row[1], agent=row[2], session=row[3], isolated=bool(row[12])),
        at=moment(row[4]),
        state=row[5],
        **fields,
    )
    return DueForgetting(asked=asked, generation=row[11])
