"""The tables of a log in PostgreSQL: made, or brought to this program's form."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import sqlalchemy
from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from psycopg import sql

from hearth.memory.errors import LogUnavailable
from hearth.memory.events.postgres_pool import CONNECT_SECONDS, translated

logger = logging.getLogger(__name__)

_LOCK = 0x48727468
"""One process at a time."""


def upgrade(url: str, schema: str) -> None:
    """Apply the steps that are missing. Blocks; of several processes at once one does it.

    Tables of a newer program are used as they are where its steps allow that. Raises LogUnavailable where
    they don't, and where the server can't be reached or lacks the rights.
    """
    with translated(), psycopg.connect(url, connect_timeout=CONNECT_SECONDS) as connection:
        connection.execute("SET lock_timeout = '10s'")
        connection.execute("SELECT pg_advisory_lock(%s)", (_LOCK,))
        if connection.execute("SELECT to_regnamespace(%s)", (schema,)).fetchone() == (None,):
            connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
        connection.execute(sql.SQL("SET search_path = {}").format(sql.Identifier(schema)))
        connection.commit()
        _refuse_stranger(connection, schema)
        with _unwrapped():
            _apply(connection)


def _refuse_stranger(connection: psycopg.Connection, schema: str) -> None:
    """As after a dump was restored by another role."""
    found = connection.execute("SELECT current_user, has_schema_privilege(%s, 'USAGE')", (schema,)).fetchone()
    if found is not None and not found[1]:
        raise LogUnavailable(
            f"the role {found[0]} may not use the schema {schema}: make it the owner of that"
        )


@contextmanager
def _unwrapped() -> Iterator[None]:
    """Raise the driver's own errors, which everything else knows."""
    try:
        yield
    except sqlalchemy.exc.DBAPIError as error:
        raise (error.orig or error) from None


def _apply(connection: psycopg.Connection) -> None:
    config = Config()
    config.set_main_option("script_location", "hearth.memory.events:migrations")
    config.set_main_option("path_separator", "os")
    engine = sqlalchemy.create_engine(
        "postgresql+psycopg://", creator=lambda: connection, poolclass=sqlalchemy.pool.StaticPool
    )
    with engine.connect() as bound:
        config.attributes["connection"] = bound
        if not _are_newer(bound, known=str(ScriptDirectory.from_config(config).get_current_head())):
            command.upgrade(config, "head")
            bound.commit()


def _are_newer(bound: sqlalchemy.Connection, *, known: str) -> bool:
    """Whether the tables are of a newer program; raises LogUnavailable if only such a one may use them."""
    step = MigrationContext.configure(bound, opts={"version_table": "migrations"}).get_current_revision()
    if step is None or step <= known:
        return False
    since = str(bound.exec_driver_sql("SELECT since FROM usable").scalar_one())
    if since > known:
        raise LogUnavailable(
            f"the tables are of a newer Hearth (step {step}, usable since {since}; this one knows {known}):"
            " upgrade Hearth"
        )
    logger.warning(
        "the tables are of a newer Hearth (step %s); this one knows %s and can use them", step, known
    )
    return True
