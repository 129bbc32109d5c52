"""What memory does in sessions that were switched."""

from pathlib import Path

from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Make the table. In a log from before no session was switched."""
    op.get_bind().exec_driver_sql(Path(__file__).with_suffix(".sql").read_text(encoding="utf-8"))
