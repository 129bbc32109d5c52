"""Running summaries of sessions."""

from pathlib import Path

from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Make the table. What left short-term memory before is in none."""
    op.get_bind().exec_driver_sql(Path(__file__).with_suffix(".sql").read_text(encoding="utf-8"))
