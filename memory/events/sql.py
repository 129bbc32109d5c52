"""What the log's queries need of a database: SQLite and PostgreSQL answer the same SQL through it.

Queries are written with `?` and `?1` as placeholders. Where a statement's rows are not read at once a
database may send it together with the next ones, so a caller executes all that it can before it reads.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol, TypeAlias
from zlib import crc32

from hearth.memory.types import LEFT

Row: TypeAlias = tuple[Any, ...]
Owner: TypeAlias = "int | tuple[str, str]"
"""Whose something is: the row of a user in this log, or tenant and name."""
Condition: TypeAlias = "tuple[str, list[Any]]"
"""SQL that is true or false, and the values of its placeholders."""

NAMED = "(SELECT id FROM users WHERE tenant = ? AND name = ?)"
"""The row id of a user, by two values."""
REACHED = "NOT EXISTS (SELECT 1 FROM bases b WHERE b.tenant = u.tenant AND b.generation > u.generation)"
"""Whether the user `u` can be reached: not while the tenant's erasure has yet to come to them."""
USER = f"(SELECT u.id FROM users u WHERE u.tenant = ? AND u.name = ? AND {REACHED})"
"""The row id of a user who can be reached, by two values."""
GENERATION = (
    "SELECT coalesce(max(known.generation), 1) FROM"
    " (SELECT generation FROM users WHERE tenant = ?1 AND name = ?2"
    " UNION ALL SELECT generation FROM bases WHERE tenant = ?1) AS known"
)
"""The generation of a user, by the same two values; 1 for one that the log never saw."""

TOLD = f"g.state NOT IN ({', '.join(repr(state) for state in LEFT)})"
"""Whether the page `g` is on the live branch, evicted or not."""
SESSION_MODE = f"SELECT mode FROM switched WHERE user_id = {USER} AND session = ?"
"""What memory does in a session that was switched, by three values."""

STORED = "e.kind, p.version, p.body, e.user_id, e.id"
"""What `archive.payload_of` reads of an event `e` and its payload `p`."""

COPIED = -1
"""The stage, in the table `copies`, of a log that is the whole copy of another one."""


class Archive(Protocol):
    """Old payloads in compressed files. A written file never changes: another one takes its place."""

    def write(self, name: str, contents: Sequence[bytes]) -> list[bytes]:
        """Keep the contents in a new file; the place of each. Durable when it returns.

        Raises LogUnavailable.
        """
        ...

    def read(self, place: bytes) -> bytes:
        """The content of that place. Raises ArchiveMoved where its file is gone, LogUnavailable."""
        ...

    def size(self, name: str) -> int:
        """Bytes of a file. Raises LogUnavailable."""
        ...

    def remove(self, name: str) -> None:
        """Remove a file, durably. One that is absent is no error. Raises LogUnavailable."""
        ...


class Encrypts(Protocol):
    """A data key of one user."""

    def encrypt(self, content: bytes, *place: str) -> bytes:
        """The content encrypted, readable as that user's and in that place alone."""
        ...


class DataKeys(Protocol):
    """By what the payloads of users are encrypted."""

    @property
    def on(self) -> bool:
        """Whether what is written is to be encrypted."""
        ...

    def newest(
        self, db: Database, users: Collection[tuple[str, str]]
    ) -> Callable[[], Mapping[tuple[str, str], Encrypts]]:
        """By which each of the users' (tenant, name) payloads are encrypted; who has no key is left out.

        The answer is read when it is called for, which raises LogUnavailable for a master key that is not
        configured.
        """
        ...

    def made(self, db: Database, user: int, who: tuple[str, str], generation: int) -> Encrypts:
        """A new key for that generation of the user of that row."""
        ...

    def decrypt(self, db: Database, whose: Owner, encrypted: bytes, *place: str) -> bytes:
        """What was encrypted for that user and for that place.

        Raises ValueError where it was not, and where its key is gone; LogUnavailable as `newest` does.
        """
        ...

    def destroy(self, db: Database, user: int) -> None:
        """Remove all keys of the user of that row."""
        ...

    def wrap_secret(self, tenant: str, secret: bytes) -> bytes:
        """The stored form of a tenant's secret."""
        ...

    def unwrap_secret(self, tenant: str, stored: bytes) -> bytes:
        """The secret of a stored form. Raises ValueError, LogUnavailable."""
        ...

    def check(self, db: Database) -> None:
        """Raise LogUnavailable where a master key is missing that the log needs."""
        ...


class Rows(Protocol):
    """The answer to one statement."""

    def fetchone(self) -> Row | None:
        """The next row, or None."""
        ...

    def fetchall(self) -> list[Row]:
        """The rows that are left."""
        ...

    def __iter__(self) -> Iterator[Row]:
        """The rows that are left, one after another."""
        ...


class Places(Protocol):
    """Where an append's events go: reserved for the open transaction, in the order of its commit."""

    @property
    def now(self) -> datetime:
        """The log's clock."""
        ...

    def following(self, tenant: str, user: str) -> int:
        """The next position for an event of the user."""
        ...


class PastPlaces(Protocol):
    """Where a copy puts the events of another log, one after another, in the open transaction."""

    @property
    def ends(self) -> Mapping[int, int]:
        """The last position of each partition; 0 for an empty one."""
        ...

    def following(self, tenant: str, user: str, recorded: int) -> int:
        """The next position for an event of the user that was recorded at that moment, in microseconds."""
        ...


class Database(Protocol):
    """One connection, in an open transaction where something is written."""

    @property
    def archive(self) -> Archive:
        """Where old payloads are."""
        ...

    @property
    def keys(self) -> DataKeys:
        """By what payloads are encrypted."""
        ...

    def execute(self, sql: str, values: Sequence[Any] = ()) -> Rows:
        """Run one statement."""
        ...

    def now(self) -> datetime:
        """The log's clock."""
        ...

    def places(self, users: set[tuple[str, str]]) -> Places:
        """Keep other appends for these (tenant, user) out until the transaction ends."""
        ...

    def past_places(self) -> PastPlaces:
        """The ends of the partitions, for a log that nobody else writes to."""
        ...

    def trim_step_keys(self, before: int) -> None:
        """Remove a few of the oldest step keys from before that moment, in microseconds."""
        ...

    def has_tag(self, column: str, tag: str) -> Condition:
        """The JSON list in `column` holds `tag`."""
        ...

    def has_entry(self, column: str, key: str, value: str | float | bool | None) -> Condition:
        """The JSON object in `column` has that key with that value, by JSON's own types: `true` is not 1
        and `"1"` is neither, but 1 equals 1.0.
        """
        ...

    def reset_views(self, views: Sequence[str]) -> None:
        """Make those tables empty and of this program's form."""
        ...


def partition_of(tenant: str, user: str, partitions: int) -> int:
    """Which of so many partitions of the log is the user's, the same in every process."""
    return crc32(f"{tenant}\0{user}".encode(errors="surrogatepass")) % partitions


def tenant_key(tenant: str) -> int:
    """By which the events of a tenant are found, together with those of few others."""
    return crc32(tenant.encode(errors="surrogatepass"))


def number_of(rows: Rows) -> int:
    """The one number that was asked for; 0 where there is no row."""
    return int((rows.fetchone() or (0,))[0])


def marks(values: Collection[object]) -> str:
    """Placeholders for the values, to stand in parentheses."""
    return ", ".join("?" * len(values))
