"""The tables of a log in PostgreSQL: made, or brought to this program's form."""

from __future__ import annotations

import psycopg
import sqlalchemy
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from psycopg import sql

from hearth.memory.errors import LogUnavailable
from hearth.memory.events.postgres_pool import CONNECT_SECONDS, translated

_LOCK = 0x48727468
"""One process at a time."""


def upgrade(url: str, schema: str) -> None:
    """Apply the steps that are missing. Blocks; of several processes at once one does it.

    Raises LogUnavailable where the server can't be reached or lacks the rights, and for tables of a newer
    program.
    """
    with translated(), psycopg.connect(url, connect_timeout=CONNECT_SECONDS) as connection:
        connection.execute("SET lock_timeout = '10s'")
        connection.execute("SELECT pg_advisory_lock(%s)", (_LOCK,))
        if connection.execute("SELECT to_regnamespace(%s)", (schema,)).fetchone() == (None,):
            connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
        connection.execute(sql.SQL("SET search_path = {}").format(sql.Identifier(schema)))
        connection.commit()
        _apply(connection)


def _apply(connection: psycopg.Connection) -> None:
    config = Config()
    config.set_main_option("script_location", "hearth.memory.events:migrations")
    config.set_main_option("path_separator", "os")
    engine = sqlalchemy.create_engine(
        "postgresql+psycopg://", creator=lambda: connection, poolclass=sqlalchemy.pool.StaticPool
    )
    with engine.connect() as bound:
        config.attributes["connection"] = bound
        try:
            command.upgrade(config, "head")
        except CommandError as error:
            known = ScriptDirectory.from_config(config).get_current_head()
            raise LogUnavailable(
                f"the tables are of a newer Hearth (this one knows step {known}): upgrade Hearth"
            ) from error
        bound.commit()
