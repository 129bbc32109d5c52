"""How far a copy of another log is."""

from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Make the table."""
    op.get_bind().exec_driver_sql(
        "CREATE TABLE copies (source text NOT NULL, stage bigint NOT NULL, place text NOT NULL,"
        " moved bigint NOT NULL)"
    )
