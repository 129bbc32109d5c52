"""Checksums, archives, and events found by their tenant and their labels."""

from pathlib import Path

from alembic import op

from hearth.memory.events.sql import tenant_key

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Make what is new; each event is put under its tenant's key."""
    bound = op.get_bind()
    bound.exec_driver_sql(Path(__file__).with_suffix(".sql").read_text(encoding="utf-8"))
    for (tenant,) in bound.exec_driver_sql("SELECT DISTINCT tenant FROM users").fetchall():
        bound.exec_driver_sql(
            "UPDATE events SET tenant_key = %s WHERE user_id IN (SELECT id FROM users WHERE tenant = %s)",
            (tenant_key(tenant), tenant),
        )
