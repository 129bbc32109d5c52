"""What users asked to forget in conversations."""

from pathlib import Path

from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Make the table. A log from before has no such request."""
    op.get_bind().exec_driver_sql(Path(__file__).with_suffix(".sql").read_text(encoding="utf-8"))
