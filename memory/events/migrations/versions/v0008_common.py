"""What users share, and texts that hold for all of them."""

from pathlib import Path

from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Make what is new. Facts from before are not counted."""
    op.get_bind().exec_driver_sql(Path(__file__).with_suffix(".sql").read_text(encoding="utf-8"))
