"""Whose records are: an isolated agent's own, or shared by a user's agents."""

from pathlib import Path

from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """Tell it of what there is by its session, and of memories by what their agent has."""
    op.get_bind().exec_driver_sql(Path(__file__).with_suffix(".sql").read_text(encoding="utf-8"))
