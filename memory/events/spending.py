"""What the log answers of what memory itself has asked of models."""

from __future__ import annotations

from datetime import date

from hearth.memory.events.sql import Database
from hearth.memory.ports import Spent


def spending(db: Database, tenant: str, *, since: date) -> list[Spent]:
    """See `EventLog.spending`."""
    found = db.execute(
        "SELECT day, model, calls, input, output, cost FROM spending WHERE tenant = ? AND day >= ?"
        " ORDER BY day, model",
        (tenant, since.isoformat()),
    )
    return [
        Spent(day=date.fromisoformat(day), model=model, calls=calls, input=given, output=output, cost=cost)
        for day, model, calls, given, output, cost in found
    ]
