"""Short-term memory in one SQLite file: the embedded form of the `ShortTerm` port."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

import msgspec

from hearth.memory.errors import StoreUnavailable
from hearth.memory.events.codec import micros
from hearth.memory.stores.packed import pack_embedding, unpack_embedding
from hearth.memory.tiers.short_term import LATELY_KEPT, Bounds, Held, leaving, text_digest, text_size
from hearth.memory.types import Embedding, Page, PlacedBlock, Scope, ShortTermView, scope_of

logger = logging.getLogger(__name__)

SCHEMA_VERSION = 3
"""A file of another version is set aside: it is quicker made anew from the log than converted."""
_PAGE = msgspec.msgpack.Decoder(Page)
_BLOCK = msgspec.msgpack.Decoder(PlacedBlock)
_ENCODER = msgspec.msgpack.Encoder()


class SqliteShortTerm:
    """The latest pages of each user, their query vectors and their sessions' blocks.

    Writes run in one thread of its own; a read is a few indexed look-ups on the caller's, which in WAL mode
    no writer can hold up. Commits are not synced: what a power cut takes is rebuilt from the log. A file
    that SQLite can't read is set aside and an empty one made.
    """

    def __init__(self, path: Path, *, capacity: int = 10, hard_cap: int = 500) -> None:
        self._path = path
        self._bounds = Bounds(capacity=capacity, hard_pages=hard_cap)
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="short-term")
        self._writer: sqlite3.Connection | None = None
        self._reader: sqlite3.Connection | None = None

    async def start(self) -> None:
        """Open the file. Raises StoreUnavailable where it can't be made or opened."""
        await self._write(self._open)

    async def close(self) -> None:
        """Finish the writes under way and close the file."""
        await self._write(self._close)
        await asyncio.to_thread(self._executor.shutdown)

    async def push(self, page: Page, *, vector: Embedding | None, block: PlacedBlock | None) -> None:
        """Add or replace the page; one without texts brings its block alone. A stale generation is ignored.

        Raises StoreUnavailable.
        """
        await self._write(lambda: self._push(page, vector, block))

    async def latest(self, scope: Scope, *, limit: int) -> ShortTermView:
        """The owner's latest pages, oldest first, and the blocks of `scope.session`.

        Raises StoreUnavailable.
        """
        with _translated():
            reader = self._connection(self._reader)
            pages = reader.execute(
                "SELECT body, vector FROM pages WHERE owner = ?"
                " ORDER BY occurred_us DESC, rowid DESC LIMIT ?",
                (scope.owner, limit),
            ).fetchall()
            blocks = reader.execute(
                "SELECT body FROM blocks WHERE owner = ? AND session = ? ORDER BY at_us, exchange",
                (scope.owner, scope.session),
            ).fetchall()
            lagging = reader.execute(
                "SELECT 1 FROM dropped WHERE owner = ? LIMIT 1", (scope.owner,)
            ).fetchone()
            known = reader.execute(
                "SELECT filled FROM generations WHERE subject = ?", (scope.person,)
            ).fetchone()
        return _view(pages[::-1], blocks, lagging=lagging is not None, known=bool(known and known[0]))

    async def settle(self, scope: Scope, pages: Sequence[Page]) -> None:
        """Mark those pages as safe in long-term memory, with the texts given; beyond capacity they leave.

        Raises StoreUnavailable.
        """
        await self._write(lambda: self._settle(scope, pages))

    async def restore(
        self, scope: Scope, generation: int, pages: Sequence[Page], *, waiting: Collection[str]
    ) -> None:
        """See ShortTerm. Raises StoreUnavailable."""
        await self._write(lambda: self._restore(scope.person, generation, pages, waiting))

    async def drop(self, scope: Scope, records: Sequence[str]) -> None:
        """Remove those pages of the user, whichever agent's, and all blocks that are theirs or show them.

        Raises StoreUnavailable.
        """
        await self._write(lambda: self._drop(scope, records))

    async def clear(self, tenant: str, user: str, *, before: int | None = None) -> None:
        """Remove everything of the user, of all agents; with `before` only what is of an older generation,
        and refuse such pages from now on. Raises StoreUnavailable.
        """
        await self._write(lambda: self._clear(Scope(tenant=tenant, user=user).person, before))

    async def people(self) -> AsyncIterator[Scope]:
        """Everybody of whom something is known here. Raises StoreUnavailable."""
        with _translated():
            found = self._connection(self._reader).execute(
                "SELECT subject FROM generations UNION SELECT subject FROM pages"
            )
            people = [scope_of(row[0]) for row in found.fetchall()]
        for scope in people:
            yield scope

    async def _write(self, work: Callable[[], None]) -> None:
        try:
            written = asyncio.get_running_loop().run_in_executor(self._executor, work)
        except RuntimeError as error:
            raise StoreUnavailable("short-term memory", "it is closed") from error
        with _translated():
            await written

    # -- in the writer's thread ------------------------------------------------------------------------

    def _open(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._writer = _connect(self._path)
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError):
                raise
            self._set_aside(error)
            self._writer = _connect(self._path)
        self._reader = sqlite3.connect(
            self._path, isolation_level=None, check_same_thread=False, timeout=0.05
        )
        self._reader.execute("PRAGMA query_only = ON")

    def _set_aside(self, error: sqlite3.DatabaseError) -> None:
        if isinstance(error, _OlderError):
            # The log has all of it, and no erasure would reach a file that is kept.
            logger.warning("short-term memory %s is %s; it is made anew from the log", self._path, error)
            self._path.unlink()
        else:
            aside = self._path.with_suffix(self._path.suffix + ".broken")
            logger.error(
                "short-term memory %s can't be read (%s); it is set aside as %s", self._path, error, aside
            )
            self._path.replace(aside)
        for companion in ("-wal", "-shm"):
            Path(f"{self._path}{companion}").unlink(missing_ok=True)

    def _close(self) -> None:
        for connection in (self._reader, self._writer):
            if connection is not None:
                connection.close()
        self._reader = self._writer = None

    def _connection(self, connection: sqlite3.Connection | None) -> sqlite3.Connection:
        if connection is None:
            raise StoreUnavailable("short-term memory", "it is not open")
        return connection

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        writer = self._connection(self._writer)
        writer.execute("BEGIN IMMEDIATE")
        try:
            yield writer
        except BaseException:
            writer.execute("ROLLBACK")
            raise
        writer.execute("COMMIT")

    def _push(self, page: Page, vector: Embedding | None, block: PlacedBlock | None) -> None:
        subject = page.scope.person
        with self._transaction() as writer:
            if not _admit(writer, subject, page.generation):
                return
            if page.user_text or page.reply_text:
                _put_page(writer, subject, page, vector)
                self._evict(writer, subject, page.scope.owner)
            if block is not None:
                _put_block(writer, subject, page, block)
                self._trim_blocks(writer, subject, page.scope, block)

    def _settle(self, scope: Scope, pages: Sequence[Page]) -> None:
        subject = scope.person
        with self._transaction() as writer:
            if not pages:
                writer.execute(
                    "INSERT INTO generations VALUES (?, 0, 1) ON CONFLICT DO UPDATE SET filled = 1",
                    (subject,),
                )
            owners = {owner for page in pages for owner in _settle_one(writer, subject, page)}
            writer.execute(
                "DELETE FROM lately WHERE subject = ? AND arrival <= "
                "(SELECT arrival FROM lately WHERE subject = ? ORDER BY arrival DESC LIMIT 1 OFFSET ?)",
                (subject, subject, LATELY_KEPT),
            )
            for owner in owners:
                self._evict(writer, subject, owner)

    def _restore(
        self, subject: str, generation: int, pages: Sequence[Page], waiting: Collection[str]
    ) -> None:
        with self._transaction() as writer:
            if not _admit(writer, subject, generation):
                return
            writer.execute("UPDATE generations SET filled = 1 WHERE subject = ?", (subject,))
            held = dict(writer.execute("SELECT id, settled FROM pages WHERE subject = ?", (subject,)))
            given = {page.id for page in pages}
            gone = [(subject, id) for id, settled in held.items() if settled and id not in given]
            writer.executemany("DELETE FROM pages WHERE subject = ? AND id = ?", gone)
            for page in pages:
                if page.id in waiting and page.id in held:
                    continue
                _put_page(writer, subject, page, None)
                if page.id not in waiting:
                    settled = "UPDATE pages SET settled = 1 WHERE subject = ? AND id = ?"
                    writer.execute(settled, (subject, page.id))
            owners = writer.execute("SELECT DISTINCT owner FROM pages WHERE subject = ?", (subject,))
            for (owner,) in owners.fetchall():
                self._evict(writer, subject, owner)

    def _drop(self, scope: Scope, records: Sequence[str]) -> None:
        keys = [(scope.person, record) for record in records]
        with self._transaction() as writer:
            for table in ("pages", "dropped", "lately"):
                writer.executemany(f"DELETE FROM {table} WHERE subject = ? AND id = ?", keys)  # noqa: S608 - constants
            writer.executemany("DELETE FROM blocks WHERE subject = ? AND exchange = ?", keys)
            showing = "DELETE FROM blocks WHERE subject = ? AND instr(body, CAST(? AS BLOB)) > 0"
            writer.executemany(showing, keys)
        self._leave_no_trace()

    def _clear(self, subject: str, before: int | None) -> None:
        with self._transaction() as writer:
            if before is None:
                for table in ("pages", "blocks", "dropped", "lately"):
                    writer.execute(f"DELETE FROM {table} WHERE subject = ?", (subject,))  # noqa: S608 - constants
            else:
                _admit(writer, subject, before)
        self._leave_no_trace()

    def _leave_no_trace(self) -> None:
        """Bring a deletion into the file itself, where what was deleted is overwritten; empty its log."""
        self._connection(self._writer).execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _evict(self, writer: sqlite3.Connection, subject: str, owner: str) -> None:
        rows = writer.execute(
            "SELECT id, settled, size FROM pages WHERE owner = ? ORDER BY occurred_us DESC, rowid DESC",
            (owner,),
        ).fetchall()
        held = [Held(id=row[0], settled=bool(row[1]), size=row[2]) for row in rows]
        gone = leaving(held, self._bounds)
        writer.executemany(
            "DELETE FROM pages WHERE subject = ? AND id = ?",
            [(subject, i) for i in gone.settled + gone.dropped],
        )
        writer.executemany(
            "INSERT OR IGNORE INTO dropped VALUES (?, ?, ?)", [(subject, i, owner) for i in gone.dropped]
        )

    def _trim_blocks(
        self, writer: sqlite3.Connection, subject: str, scope: Scope, newest: PlacedBlock
    ) -> None:
        horizon = micros(newest.at) - int(self._bounds.block_seconds * 1e6)
        writer.execute("DELETE FROM blocks WHERE subject = ? AND at_us < ?", (subject, horizon))
        writer.execute(
            "DELETE FROM blocks WHERE owner = ? AND session = ? AND exchange NOT IN"
            " (SELECT exchange FROM blocks WHERE owner = ? AND session = ?"
            " ORDER BY at_us DESC, exchange DESC LIMIT ?)",
            (scope.owner, scope.session, scope.owner, scope.session, self._bounds.blocks),
        )


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise StoreUnavailable("short-term memory", str(error)) from error


class _OlderError(sqlite3.DatabaseError):
    """The file is sound, and of an older program."""


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, timeout=5)
    try:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version > SCHEMA_VERSION:
            raise sqlite3.OperationalError(
                f"{path} was written by a newer Hearth (version {version}, this one knows {SCHEMA_VERSION}):"
                " upgrade Hearth, or move that file away, and it is made anew from the log"
            )
        if version not in (0, SCHEMA_VERSION):
            raise _OlderError(f"of an older Hearth (version {version}, not {SCHEMA_VERSION})")
        for pragma in ("journal_mode = WAL", "synchronous = NORMAL", "secure_delete = ON"):
            connection.execute(f"PRAGMA {pragma}")
        connection.executescript((files(__package__) / "sqlite_short_term.sql").read_text())
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _admit(writer: sqlite3.Connection, subject: str, generation: int) -> bool:
    """False for an erased generation; a newer one than any before sweeps out what is left of those."""
    known = writer.execute("SELECT generation FROM generations WHERE subject = ?", (subject,)).fetchone()
    if known is not None and generation <= known[0]:
        return bool(generation == known[0])
    writer.execute(
        "INSERT INTO generations VALUES (?, ?, 0) ON CONFLICT DO UPDATE SET generation = excluded.generation",
        (subject, generation),
    )
    if known is not None and known[0]:  # 0: known, but of no generation yet
        for table in ("pages", "blocks"):
            writer.execute(
                f"DELETE FROM {table} WHERE subject = ? AND generation < ?",  # noqa: S608 - constants
                (subject, generation),
            )
        for table in ("dropped", "lately"):
            writer.execute(f"DELETE FROM {table} WHERE subject = ?", (subject,))  # noqa: S608 - constants
    return True


def _put_page(writer: sqlite3.Connection, subject: str, page: Page, vector: Embedding | None) -> None:
    lately = writer.execute(
        "SELECT 1 FROM lately WHERE subject = ? AND id = ? AND digest = ?",
        (subject, page.id, text_digest(page)),
    )
    writer.execute("DELETE FROM dropped WHERE subject = ? AND id = ?", (subject, page.id))
    writer.execute(
        "INSERT INTO pages VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (subject, id) DO UPDATE SET"
        " owner = excluded.owner, generation = excluded.generation,"
        " occurred_us = excluded.occurred_us, settled = excluded.settled, size = excluded.size,"
        " vector = coalesce(excluded.vector, vector), body = excluded.body",
        (
            subject,
            page.id,
            page.scope.owner,
            page.generation,
            micros(page.occurred_at),
            lately.fetchone() is not None,
            text_size(page),
            None if vector is None else pack_embedding(vector),
            _ENCODER.encode(page),
        ),
    )


def _put_block(writer: sqlite3.Connection, subject: str, page: Page, block: PlacedBlock) -> None:
    writer.execute(
        "INSERT OR REPLACE INTO blocks VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            subject,
            page.scope.owner,
            page.scope.session,
            block.exchange,
            page.generation,
            micros(block.at),
            _ENCODER.encode(block),
        ),
    )


def _settle_one(writer: sqlite3.Connection, subject: str, page: Page) -> list[str]:
    """The owner of the page as it is held, or nothing where it is not here."""
    writer.execute(
        "INSERT OR REPLACE INTO lately (subject, id, digest) VALUES (?, ?, ?)",
        (subject, page.id, text_digest(page)),
    )
    writer.execute("DELETE FROM dropped WHERE subject = ? AND id = ?", (subject, page.id))
    held = writer.execute(
        "UPDATE pages SET settled = 1, size = ?, body = ? WHERE subject = ? AND id = ? RETURNING owner",
        (text_size(page), _ENCODER.encode(page), subject, page.id),
    )
    return [owner for (owner,) in held.fetchall()]


def _view(
    pages: Sequence[tuple[bytes, bytes | None]],
    blocks: Sequence[tuple[bytes]],
    *,
    lagging: bool,
    known: bool,
) -> ShortTermView:
    decoded = [(_PAGE.decode(body), vector) for body, vector in pages]
    return ShortTermView(
        pages=tuple(page for page, _ in decoded),
        vectors={page.id: unpack_embedding(vector) for page, vector in decoded if vector is not None},
        blocks=tuple(_BLOCK.decode(body) for (body,) in blocks),
        lagging=lagging,
        known=known,
    )
