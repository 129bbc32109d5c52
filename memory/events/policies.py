"""What the log answers of values of the policy that were set while a gateway ran."""

from __future__ import annotations

from typing import Any

import msgspec

from hearth.memory.events.codec import moment
from hearth.memory.events.sql import USER, Database
from hearth.memory.tiers.layers import Setting, Value
from hearth.memory.types import EVERYBODY

_VALUE: msgspec.json.Decoder[Any] = msgspec.json.Decoder(Value)


def policy_settings(db: Database, tenant: str) -> list[Setting]:
    """See `PolicySettings.policy_settings`."""
    found = db.execute(
        f"SELECT level, whose, name, value, set_by, at FROM policies WHERE user_id = {USER}"
        " AND value <> '' ORDER BY level, whose, name",
        (tenant, EVERYBODY),
    )
    return [
        Setting(
            name=name,
            value=_VALUE.decode(value.encode()),
            level=level,
            source=level,
            whose=whose,
            set_by=set_by,
            set_at=moment(at),
        )
        for level, whose, name, value, set_by, at in found
    ]


def policy_changes(db: Database) -> dict[str, int]:
    """See `PolicySettings.policy_changes`."""
    found = db.execute(
        "SELECT u.tenant, max(p.seq) FROM policies p JOIN users u ON u.id = p.user_id GROUP BY u.tenant", ()
    )
    return dict(found)
