"""Folds of what operators do: policies, erasures and holds."""

from __future__ import annotations

from hearth.memory.events.codec import micros
from hearth.memory.events.folds.common import NOBODYS, VIEWS, as_json, session_mark
from hearth.memory.events.folds.stripping import redact
from hearth.memory.events.kinds import (
    ErasureChanged,
    Event,
    HoldLifted,
    HoldPlaced,
    PolicyChanged,
    SessionForgotten,
    TenantErased,
    UserErased,
)
from hearth.memory.events.sql import Database, marks


def fold_policy(db: Database, user: int, event: Event, payload: PolicyChanged) -> None:
    """A value that was lifted keeps its row, so that others see that something changed."""
    for name, value in payload.values.items():
        told = "" if value is None else as_json(value)
        db.execute(
            f"INSERT INTO policies VALUES ({marks(range(8))})"
            " ON CONFLICT (user_id, level, whose, name) DO UPDATE SET"
            " seq = excluded.seq, value = excluded.value, set_by = excluded.set_by, at = excluded.at",
            (
                *(user, payload.level, payload.whose, name),
                *(event.seq, told, payload.by, micros(event.occurred_at)),
            ),
        )


def fold_erased(db: Database, user: int, event: Event, payload: UserErased) -> None:
    """Raise the generation and redact everything before; sessions and parents go from the envelopes too."""
    db.execute("UPDATE users SET generation = ?, seen = 0 WHERE id = ?", (payload.generation, user))
    before = (user, event.seq)
    redact(db, "SELECT seq FROM events WHERE user_id = ? AND seq < ?", before)
    for view in set(VIEWS) - NOBODYS:
        db.execute(f"DELETE FROM {view} WHERE user_id = ?", (user,))
    db.execute(
        "UPDATE events SET session = '', parent = NULL, subject = '' WHERE user_id = ? AND seq < ?", before
    )


def fold_session_forgotten(db: Database, user: int, event: Event, payload: SessionForgotten) -> None:
    """A session is forgotten: what is still on its way of it is refused."""
    db.execute(
        "INSERT INTO forgotten VALUES (?, ?, ?) ON CONFLICT (user_id, id) DO UPDATE SET at = excluded.at",
        (user, session_mark(event), micros(event.occurred_at)),
    )
    summed = "FROM summaries WHERE user_id = ? AND session = ?"
    redact(db, f"SELECT seq {summed}", (user, payload.session))
    db.execute(f"DELETE {summed}", (user, payload.session))


def fold_tenant_erased(db: Database, user: int, event: Event, payload: TenantErased) -> None:
    """Users from before are unreachable until they are erased one by one; new ones begin with the base.

    In a log that is folded again those who came later are there already: no event of theirs is older.
    """
    db.execute(
        "INSERT INTO bases VALUES (?, ?) ON CONFLICT (tenant) DO UPDATE SET generation = excluded.generation",
        (event.tenant, payload.generation),
    )
    db.execute(
        "UPDATE users SET generation = ? WHERE tenant = ? AND (id = ? OR NOT EXISTS"
        " (SELECT 1 FROM events e WHERE e.user_id = users.id AND e.generation < ?))",
        (payload.generation, event.tenant, user, payload.generation),
    )


def fold_erasure(db: Database, user: int, event: Event, payload: ErasureChanged) -> None:
    """How far an erasure is."""
    receipt = payload.receipt
    older = "SELECT seq FROM events WHERE user_id = ? AND subject = ? AND seq < ?"
    redact(db, older, (user, receipt.id, event.seq))
    db.execute(
        "INSERT INTO erasures VALUES (?, ?, ?, ?)"
        " ON CONFLICT (user_id, id) DO UPDATE SET seq = excluded.seq, state = excluded.state",
        (user, receipt.id, event.seq, receipt.state),
    )


def fold_placed(db: Database, user: int, event: Event, payload: HoldPlaced) -> None:
    """A legal hold."""
    db.execute(
        "INSERT INTO holds VALUES (?, ?, ?) ON CONFLICT (user_id, name) DO UPDATE SET seq = excluded.seq",
        (user, payload.user, event.seq),
    )


def fold_lifted(db: Database, user: int, event: Event, payload: HoldLifted) -> None:
    """It is lifted."""
    db.execute("DELETE FROM holds WHERE user_id = ? AND name = ?", (user, payload.user))
