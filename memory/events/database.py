"""The log's SQLite file: opening it, its schema version, and the lock that keeps a second process out."""

from __future__ import annotations

import fcntl
import logging
import os
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import IO, Literal, Protocol

from hearth.memory.errors import BadInput, LogUnavailable
from hearth.memory.events.sql import tenant_key

logger = logging.getLogger(__name__)

SCHEMA_VERSION = 3
"""Of `SCHEMA`. A higher one is a newer program's, whose file is refused."""

SCHEMA = ("schema.sql", "schema_2.sql", "schema_3.sql")
"""What makes the tables of each version from those of the one before."""

VIEWS_VERSION = 15
"""Of views.sql and the folds. Where the file's differs, the views are folded again at start."""

APPLICATION_ID = 0x48727468
"""`Hrth`: tells a log from any other SQLite file."""

_COPIES = (
    "CREATE TABLE IF NOT EXISTS copies"
    " (source TEXT NOT NULL, stage INTEGER NOT NULL, place TEXT NOT NULL, moved INTEGER NOT NULL)"
)
"""How far a copy of another log is: a table that older files lack."""
DATA_KEYS = (
    (
        "CREATE TABLE IF NOT EXISTS data_keys (number INTEGER PRIMARY KEY, user_id INTEGER NOT NULL,"
        " generation INTEGER NOT NULL, version INTEGER NOT NULL, master TEXT NOT NULL, wrapped BLOB NOT NULL)"
    ),
    "CREATE INDEX IF NOT EXISTS data_keys_by_user ON data_keys (user_id, version)",
)
"""By what users' payloads are encrypted: a table that older files lack."""

Synchronous = Literal["FULL", "NORMAL"]


class Runs(Protocol):
    """Runs statements, in whatever transaction is open."""

    def execute(self, sql: str, /) -> object:
        """Run one statement."""
        ...


@contextmanager
def translated(what: str) -> Iterator[None]:
    """Turn errors of SQLite and of files into LogUnavailable, ids that are no Unicode into BadInput."""
    try:
        yield
    except UnicodeEncodeError as error:
        raise BadInput("event", error.object, "ids that are valid Unicode") from error
    except (sqlite3.Error, OSError) as error:
        raise LogUnavailable(f"{what}: {error}") from error


def connect_writer(path: Path, synchronous: Synchronous) -> sqlite3.Connection:
    """The one connection that writes."""
    connection = _connect(path)
    configure_writer(connection, synchronous)
    return connection


def configure_writer(connection: sqlite3.Connection, synchronous: Synchronous) -> None:
    """Set what a writing connection needs. Its checkpoints are the writer's own matter, between commits."""
    for pragma in (
        "journal_mode=WAL",
        f"synchronous={synchronous}",
        "secure_delete=ON",
        "wal_autocheckpoint=0",
        "cache_size=-16000",
        "temp_store=MEMORY",
        "busy_timeout=50",
    ):
        connection.execute(f"PRAGMA {pragma}")


def connect_reader(path: Path) -> sqlite3.Connection:
    """A connection that can't write; in WAL it never waits for the writer."""
    connection = _connect(path)
    connection.execute("PRAGMA query_only=ON")
    connection.execute("PRAGMA busy_timeout=250")
    return connection


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=256)


def prepare_schema(db: sqlite3.Connection, path: Path) -> bool:
    """Make the tables in a new file; returns True if the views must be folded again.

    Raises LogUnavailable for a newer program's file and for one that is no log.
    """
    version = _scalar(db, "PRAGMA user_version")
    if version > SCHEMA_VERSION:
        raise LogUnavailable(
            f"{path} was written by a newer Hearth (schema {version}, this one knows {SCHEMA_VERSION}):"
            " upgrade Hearth"
        )
    if version == 0:
        if _scalar(db, "SELECT count(*) FROM sqlite_master"):
            raise LogUnavailable(f"{path} is an SQLite file but no Hearth event log: choose another path")
        _create(db)
    elif version < SCHEMA_VERSION:
        _keep_copy(db, path, version)
        _upgrade(db, version)
    if _scalar(db, "PRAGMA application_id") != APPLICATION_ID:
        raise LogUnavailable(f"{path} is an SQLite file but no Hearth event log: choose another path")
    for sql in (_COPIES, *DATA_KEYS):
        db.execute(sql)
    return _scalar(db, "SELECT value FROM meta WHERE key = 'views'") != VIEWS_VERSION


def refuse_other_form(db: sqlite3.Connection, path: Path) -> None:
    """Raise LogUnavailable unless the file is a log as this program writes them."""
    form = (_scalar(db, "PRAGMA application_id"), _scalar(db, "PRAGMA user_version"))
    if form != (APPLICATION_ID, SCHEMA_VERSION):
        raise LogUnavailable(f"{path} is no event log of this Hearth: a gateway that is started brings it up")


def _create(db: sqlite3.Connection) -> None:
    db.execute("BEGIN IMMEDIATE")
    for script in SCHEMA:
        run_script(db, script)
    run_script(db, "views.sql")
    db.execute("INSERT INTO meta VALUES ('views', ?)", (VIEWS_VERSION,))
    db.execute(f"PRAGMA application_id={APPLICATION_ID}")
    db.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
    db.execute("COMMIT")


def _keep_copy(db: sqlite3.Connection, path: Path, version: int) -> None:
    """A whole copy of the file as the older program left it, for going back to that one."""
    kept = path.with_name(f"{path.name}.schema-{version}")
    draft = path.with_name(f"{kept.name}.draft")
    draft.unlink(missing_ok=True)
    draft.touch(mode=0o600)
    db.execute("VACUUM INTO ?", (str(draft),))
    sync_file(draft)
    draft.replace(kept)
    sync_directory(path.parent)
    logger.warning(
        "%s is of an older Hearth; it is kept as %s, which no erasure reaches: remove it soon", path, kept
    )


def _upgrade(db: sqlite3.Connection, version: int) -> None:
    """Give a file of that schema what it lacks. Events of schema 1 have no checksums, which `verify` says."""
    db.execute("BEGIN IMMEDIATE")
    for step in range(version, SCHEMA_VERSION):
        run_script(db, SCHEMA[step])
    if version == 1:
        for (tenant,) in db.execute("SELECT DISTINCT tenant FROM users").fetchall():
            db.execute(
                "UPDATE events SET tenant_key = ? WHERE user_id IN (SELECT id FROM users WHERE tenant = ?)",
                (tenant_key(tenant), tenant),
            )
    db.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
    db.execute("COMMIT")


def run_script(db: Runs, name: str) -> None:
    """Run a .sql file of this package inside the open transaction, which `executescript` would commit."""
    for statement in files("hearth.memory.events").joinpath(name).read_text(encoding="utf-8").split(";"):
        if statement.strip():
            db.execute(statement)


def _scalar(db: sqlite3.Connection, sql: str) -> int:
    return int((db.execute(sql).fetchone() or (0,))[0])


def take_lock(path: Path) -> IO[str]:
    """Hold `path` beside the database for this process until the returned file is closed.

    Raises LogUnavailable naming the holder's host and process while another process has it.
    """
    lock = path.open("a+", encoding="utf-8")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        lock.seek(0)
        holder = lock.read().strip() or "another process"
        lock.close()
        raise LogUnavailable(
            f"{path.with_suffix('')} is in use by {holder}; an event log has one process:"
            " stop that one, or use its API"
        ) from error
    lock.truncate(0)
    lock.write(f"{socket.gethostname()} process {os.getpid()}")
    lock.flush()
    return lock


def sync_directory(directory: Path) -> None:
    """Make new names in `directory` survive a power cut."""
    sync_file(directory)


def sync_file(path: Path) -> None:
    """Make what is written in the file, or the names in a folder, survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
